"""Group by: gather the records of each key into groups of decreasing weight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import polars as pl

from wpinq.arguments import FLAG, MAPPING, NAMES, NOTHING, require
from wpinq.errors import PlanError
from wpinq.functions import bind
from wpinq.operators.align import fit_resolution, record_key
from wpinq.operators.keys import Extend, keyed
from wpinq.plan.builder import Builder, C
from wpinq.plan.forms import Unary
from wpinq.plan.node import Record, Weighted
from wpinq.plan.shapes import Keyed, Shape
from wpinq.records.batch import WEIGHT
from wpinq.records.kinds import code, declared
from wpinq.records.schema import Column, Kind, Schema
from wpinq.records.values import encode, joined
from wpinq.state.bykey import KEY, ByKey, Port

MAX_COPIES = 1 << 20
"""Copies of one record in a whole group: bounded, so that running out of memory cannot reveal a heavy record."""
NEXT, SIZE, CODE = "\0next", "\0size", "\0code"


def group_by(
    self: Builder[C],
    key: object,
    reduce: object = None,
    columns: Sequence[str] | Mapping[str, object] | None = None,
    *,
    whole: bool = False,
) -> C:
    """Gather the records of each key into groups, and reduce each group to a value.

    Weights:    with the records of a key in the order of falling weight w_1 >= w_2 >= ..., the group of the first i
                gets (w_i - w_(i+1)) / 2, the last one w_n / 2: records that all weigh 1 are one group of weight
                1/2. Ties make no group between them. Negative weights make groups among themselves, of negative
                weight. With `whole`, all records of a key are one group of weight 1, each as often as it counts.
    Stability:  1. Let w_i >= 0 grow by d without passing another: the group of the first i gains d/2 and the one
                before it loses d/2, so d in all; a larger change is a path of such steps, and where weights meet
                nothing jumps, because ties emit nothing. The positive and the negative parts of weights are two such
                collections, and a weight moves one of them at a time. Half steps of the resolution make it exact
                (privacy rule 18).
                With `whole` 2: the group of a key leaves and another takes its place; so whole weights only.
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("GroupBy"); McSherry, PINQ, SIGMOD 2009 (`whole`).

    Args:
        key: A column, several columns, or a function of a record as in `map`.
        reduce: A function of the group, a tuple of records in a canonical order that says nothing, each a tuple of all
            columns. `len` is quick: it gathers no records. By default the group itself.
        columns: Names, or names with types, of what `reduce` returns; by default `value`, and `group` without it.
        whole: One record for each key, as in PINQ.

    Raises:
        PlanError: There is no such column, `reduce` does not fit, or `whole` is asked of weights that are not whole or
            above 2^20.

    >>> from wpinq.testing import evaluate, protected
    >>> degrees = protected(src="text", dst="text").group_by("src", len)
    >>> evaluate(degrees, [("a", "b"), ("a", "c"), ("b", "c")])
    {('a', 2): Fraction(1, 2), ('b', 1): Fraction(1, 2)}
    """
    require(whole, FLAG, "group_by(whole=...)")
    require(columns, NAMES | MAPPING | NOTHING, "group_by(columns=...)")
    node, keys = keyed(fit_resolution(self._node, 2), key, "group_by(key=...)")
    if whole and node.resolution != 1:
        raise PlanError("group_by(whole=True): the weights are not whole here; leave it out, or group earlier.")
    if whole and node.gain > MAX_COPIES:
        raise PlanError(
            f"group_by(whole=True): one record can weigh more than {MAX_COPIES:,} here, and a group would hold it as "
            "often; leave it out, or let records weigh less."
        )
    if reduce is len:
        (name, kind), *more = declared(columns or ["value"], "group_by(reduce=len)")
        if more or kind not in (None, Kind.INT):
            raise PlanError("group_by(reduce=len): columns= names the one column of sizes, which are integers.")
        return self._then(GroupBy(node, keys, self._node.schema.names, name, count=True, whole=whole))
    groups = GroupBy(node, keys, self._node.schema.names, "group", count=False, whole=whole)
    if reduce is None:
        return self._then(groups)
    group = groups.schema.names[-1:]
    function = bind(reduce, groups.schema.select(group), "group_by(reduce=...)", columns=columns)
    return self._then(Extend(groups, function, None, given=group, kept=groups.schema.names[:-1]))


@dataclass(frozen=True, eq=False)
class GroupBy(Unary):
    """Plan node of `group_by`: `own` are the columns before a key was made."""

    keys: tuple[str, ...]
    own: tuple[str, ...]
    name: str
    count: bool
    whole: bool

    @cached_property
    def schema(self) -> Schema:
        """The key, and the group or its size."""
        key = Schema(tuple(Column(name, self.source.schema[name].kind) for name in self.keys))
        return Schema((*key.columns, Column(key.fresh(self.name), Kind.INT if self.count else Kind.ANY)))

    @property
    def resolution(self) -> int:
        """Half steps; whole groups count whole."""
        return 1 if self.whole else 2 * self.source.resolution

    @cached_property
    def gain(self) -> Fraction:
        """The prefixes of a key weigh half of its heaviest record together; a whole group no more than its records."""
        return self.source.gain if self.whole else self.source.gain / 2

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """1, and 2 for whole groups."""
        return (Fraction(2 if self.whole else 1),)

    @property
    def title(self) -> str:
        return f"group_by({', '.join(self.keys)}{', len' if self.count else ''}{', whole' if self.whole else ''})"

    @property
    def bias(self) -> str:
        """That groups are weighed, not counted."""
        return "" if self.whole else "a group weighs half a record, so it is no count of groups"

    def lower(self, needed: frozenset[str]) -> Shape:
        """Records by key."""
        before = self.source.schema.expanded()
        keep = self.keys if self.count else tuple(dict.fromkeys((*self.keys, *self.own)))
        port = Port(before, self.keys, keep, self.source.held, self.source.held)
        key = record_key(self)
        return Keyed((self.keys,), lambda _: ByKey([port], self._compute, self.schema, key))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Level by level, key by key."""
        names = self.source.schema.names
        result: dict[Record, dict[Record, Fraction]] = defaultdict(dict)
        for record, weight in inputs[0].items():
            values = dict(zip(names, record, strict=True))
            result[tuple(values[name] for name in self.keys)][tuple(values[name] for name in self.own)] = weight
        out: dict[Record, Fraction] = defaultdict(Fraction)
        for key, group in result.items():
            for members, weight in self._levels(group):
                out[(*key, len(members) if self.count else tuple(sorted(members, key=encode)))] += weight
        return out

    def _levels(self, group: Mapping[Record, Fraction]) -> Iterable[tuple[list[Record], Fraction]]:
        if self.whole:
            members = [record for record, weight in group.items() for _ in range(int(weight))]
            return [(members, Fraction(1))] if members else []
        levels = []
        for sign in (1, -1):
            sizes = {record: sign * weight for record, weight in group.items() if sign * weight > 0}
            steps = sorted({Fraction(0), *sizes.values()})
            for below, level in pairwise(steps):
                members = [record for record, size in sizes.items() if size >= level]
                levels.append((members, sign * (level - below) / 2))
        return levels

    def _compute(self, sides: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
        rows, kind = sides[0], self.held.column
        parts = [rows.filter(pl.col(WEIGHT) > 0)]
        if not self.whole:
            parts.append(rows.filter(pl.col(WEIGHT) < 0))
        result = []
        for sign, part in zip((1, -1), parts, strict=False):
            sized = part.with_columns(pl.col(WEIGHT) * sign)
            groups = self._gathered(sized) if self.whole else self._prefixes(sized)
            result.append(groups.with_columns(pl.col(WEIGHT).cast(kind) * sign))
        return [pl.concat(result).select(*self.schema.names, WEIGHT)]

    def _prefixes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The first so many records of each key, wherever the next weight is smaller."""
        rows = rows.sort(*KEY, WEIGHT, descending=[False, False, True])
        following = pl.col(WEIGHT).shift(-1).over(KEY).fill_null(pl.lit(0, rows.schema[WEIGHT]))
        size = pl.col(WEIGHT).cum_count().over(KEY).cast(pl.Int64)
        rows = rows.with_columns(following.alias(NEXT), size.alias(SIZE))
        ends = rows.filter(pl.col(WEIGHT) > pl.col(NEXT)).with_columns(pl.col(WEIGHT) - pl.col(NEXT))
        name = self.schema.names[-1]
        if self.count:
            return ends.select(*self.keys, pl.col(SIZE).alias(name), WEIGHT)
        coded = rows.select(*KEY, pl.Series(CODE, self._codes(rows), dtype=pl.Binary))
        lists = coded.group_by(KEY, maintain_order=True).agg(CODE)
        gathered = ends.join(lists, on=KEY, how="left", maintain_order="left")
        groups = [_group(codes[:size]) for codes, size in zip(gathered[CODE], gathered[SIZE], strict=True)]
        return gathered.with_columns(pl.Series(name, groups, dtype=pl.Binary)).select(*self.keys, name, WEIGHT)

    def _gathered(self, rows: pl.DataFrame) -> pl.DataFrame:
        """All records of each key, each as often as it counts."""
        name, one = self.schema.names[-1], pl.lit(1, pl.Int64).alias(WEIGHT)
        first = [pl.col(column).first() for column in self.keys]
        if self.count:
            return rows.group_by(KEY).agg(*first, pl.col(WEIGHT).sum().alias(name)).select(*self.keys, name, one)
        coded = rows.with_columns(pl.Series(CODE, self._codes(rows), dtype=pl.Binary))
        lists = coded.group_by(KEY).agg(*first, CODE, WEIGHT)
        groups = [
            _group(code for code, times in zip(codes, weights, strict=True) for _ in range(times))
            for codes, weights in zip(lists[CODE], lists[WEIGHT], strict=True)
        ]
        return lists.with_columns(pl.Series(name, groups, dtype=pl.Binary)).select(*self.keys, name, one)

    def _codes(self, rows: pl.DataFrame) -> list[bytes]:
        """Whole records in canonical bytes."""
        kinds = [self.source.schema[name].kind for name in self.own]
        pairs = zip(self.own, kinds, strict=True)
        columns = [[code(value, kind) for value in rows[name].to_physical()] for name, kind in pairs]
        return [joined(record) for record in zip(*columns, strict=True)]


def _group(codes: Iterable[bytes]) -> bytes:
    """The canonical bytes of a tuple of records, from theirs."""
    return joined(sorted(codes))
