"""Group by: gather the records of each key into groups of decreasing weight.

`GroupSizes` counts the records of each key from the numbers of records and keys, without the records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import polars as pl

from wpinq.arguments import FLAG, MAPPING, NAMES, NOTHING, require
from wpinq.core import kernels
from wpinq.core.functions.bind import bind
from wpinq.core.kernels import Weights
from wpinq.core.kernels.reservoirs import Codes, Numbers
from wpinq.core.operators.keys import Extend, keyed
from wpinq.core.operators.resolution import fit_resolution, record_key
from wpinq.core.plan.forms import Unary
from wpinq.core.plan.node import Builder, C, Node, Record, Weighted
from wpinq.core.plan.shapes import Keyed, Shape
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.kinds import codes, declared_kinds, joined_codes
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.records.values import encode, joined
from wpinq.core.state.bykey import KEY, RECORD, ByKey, Port
from wpinq.core.state.states import State
from wpinq.core.state.summed import Fresh, Summed
from wpinq.errors import PlanError

OWNER, TIMES = "\0owner", "\0times"


class GroupSizes:
    """Of the first change the weights of numbered records, and whose they are; of all changes records by key.

    Args:
        summed: Takes in the records.
        keys: Takes in the keys.
        port: The input.
        compute: From rows of some whole keys (what tells keys apart, `WEIGHT`, and of how many records, `TIMES`) and
            the names of the columns that tell them apart, to these columns, sizes and `WEIGHT`.
        by_key: Makes the state for all changes.
    """

    def __init__(
        self,
        summed: Summed,
        keys: Numbers,
        port: Port,
        compute: Callable[[Sequence[pl.DataFrame], Sequence[str]], pl.DataFrame],
        by_key: Callable[[], ByKey],
    ) -> None:
        self._summed, self._keys, self._port, self._compute, self._by_key = summed, keys, port, compute, by_key
        self._places = [port.schema.names.index(name) for name in port.keys]
        self._owners: list[Codes] = [np.empty(0, np.int32)]
        self._kept = [Batch.empty(port.schema).frame.select(port.keep)]
        self._emitted = False
        self._later: ByKey | None = None

    def absorb(self, port: int, batch: Batch) -> None:
        """Add weights up, or keep a later change until it is asked for."""
        if self._emitted:
            self._later = self._later or self._records()
            self._later.absorb(port, batch)
            return
        for frame, columns, fresh in self._summed.absorb(port, batch):
            known = len(self._keys)
            ids = self._summed.identity_of([columns[index] for index in self._places])
            self._owners.append(self._keys.codes(ids[fresh]))
            if self._port.keep:
                rows = frame.select(self._port.keep).filter(pl.Series(fresh))
                self._kept.append(rows.filter(pl.Series(_first_occurrences(self._owners[-1], known))))

    def emit(self) -> Batch:
        """How the sizes moved with the pending changes."""
        if self._later is not None:
            return self._later.emit()
        if self._emitted:
            return self._by_key().emit()
        self._emitted = len(self._summed) > 0
        self._owners, self._kept = [np.concatenate(self._owners)], [pl.concat(self._kept, rechunk=True)]
        sizes = self._compute([_alike(self._owners[0], self._summed.weights())], [OWNER])
        named = sizes.with_columns(self._kept[0][sizes[OWNER]].get_columns()) if self._port.keep else sizes
        schema = self._by_key().schema
        return Batch(named.select(*schema.names, WEIGHT), schema).consolidate()

    @property
    def size(self) -> int:
        """Bytes that are held of a finite source, about."""
        return self._summed.size + self._keys.size + 4 * len(self._summed) + 16 * len(self._port.keep) * len(self._keys)

    def last(self) -> Iterator[Batch]:
        """The same as `emit`; nothing is asked afterwards."""
        yield self.emit()

    def _records(self) -> ByKey:
        """The first change as records by key."""
        (owners,), (keys,), weights = self._owners, self._kept, self._summed.weights()
        words = zip((*KEY, *RECORD), (*self._keys.ids()[owners].T, *self._summed.ids().T), strict=True)
        columns = [pl.Series(name, np.ascontiguousarray(word)) for name, word in words]
        kept = keys[owners].get_columns() if self._port.keep else []
        rows = pl.DataFrame({column.name: column for column in (*kept, pl.Series(WEIGHT, weights), *columns)})
        later = self._by_key()
        later.begin([rows.filter(pl.col(WEIGHT) != 0)])
        return later


def _alike(owners: Codes, weights: Weights) -> pl.DataFrame:
    """How many records of each weight everyone has. Those of the least weight, which are many, are not sorted."""
    least = weights.min(initial=1)
    heavy = np.flatnonzero(weights != least)
    counts = np.bincount(owners) - np.bincount(owners[heavy], minlength=owners.max(initial=-1) + 1)
    some = np.flatnonzero(counts)
    values = np.unique(weights[heavy])
    pairs = np.sort(owners[heavy].astype(np.int64) * len(values) + np.searchsorted(values, weights[heavy]))
    starts = np.flatnonzero(np.diff(pairs, prepend=-1))
    rest = pairs[starts]
    columns = {
        OWNER: [some, rest // max(len(values), 1)],
        WEIGHT: [np.full(len(some), least), values[rest % max(len(values), 1)]],
        TIMES: [counts[some], np.diff(starts, append=len(pairs))],
    }
    frame = pl.DataFrame({name: np.concatenate(parts) for name, parts in columns.items()})
    return frame.with_columns(pl.col(OWNER).cast(pl.Int32))


def _first_occurrences(codes: Codes, known: int) -> Fresh:
    """Which rows have a number that no row before had; so many numbers were known before."""
    before = np.maximum.accumulate(np.concatenate([np.array([known - 1], np.int32), codes]))
    return codes > before[:-1]


MAX_COPIES = 1 << 20
"""Copies of one record in a whole group: bounded, so that running out of memory cannot reveal a heavy record."""
NEXT, SIZE, CODE, PLACE = "\0next", "\0size", "\0code", "\0place"


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
        (name, kind), *more = declared_kinds(columns or ["value"], "group_by(reduce=len)")
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
    keeps_sign = True

    @cached_property
    def schema(self) -> Schema:
        """The key, and the group or its size."""
        key = Schema(tuple(Column(name, self.source.schema[name].kind) for name in self.keys))
        return Schema((*key.columns, Column(key.fresh(self.name), Kind.INT if self.count else Kind.ANY)))

    @cached_property
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
    def local(self) -> Mapping[str, str]:
        """The key: its groups are made of its records."""
        return {name: name for name in self.keys}

    def bounds(self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]) -> Fraction | None:
        """A key has one whole group, of weight 1, whatever the data; its prefixes weigh half of its heaviest record.

        Of keys that agree in some columns there are no more whole groups than records.
        """
        if self.whole and columns.issuperset(self.keys):
            return Fraction(1)
        weight = of(self.source, columns.intersection(self.keys))
        return weight if self.whole or weight is None else weight / 2

    @property
    def moves_at_most(self) -> Mapping[frozenset[str], Fraction]:
        """A whole group is there once, or not; that of a key leaves, and another takes its place."""
        if not (self.whole and self.source.nonnegative):
            return {}
        return {frozenset(self.schema.names): Fraction(1), frozenset(self.keys): Fraction(2)}

    @property
    def title(self) -> str:
        return f"group_by({', '.join(self.keys)}{', len' if self.count else ''}{', whole' if self.whole else ''})"

    @property
    def bias(self) -> str:
        """That groups are weighed, not counted."""
        return "" if self.whole else "a group weighs half a record, so it is no count of groups"

    def lower(self, needed: frozenset[str]) -> Shape:
        """Records by key."""
        key, held, schema = record_key(self), self.source.held, self.schema.select(self.schema.kept(needed))
        named = tuple(name for name in self.keys if name in schema)
        keep = named if self.count else tuple(dict.fromkeys((*named, *self.own)))
        port = Port(self.source.schema.expanded(), self.keys, keep, held, held)

        compute = partial(self._compute, schema)

        def by_key() -> ByKey:
            return ByKey([port], lambda sides: [compute(sides, KEY).select(*schema.names, WEIGHT)], schema, key)

        def state(_: bytes) -> State:
            if not self.count or kernels.LIB is None or held.column != pl.Int64:
                return by_key()
            return GroupSizes(Summed(kernels.LIB, port.schema, key), Numbers(kernels.LIB), port, compute, by_key)

        return Keyed((self.keys,), state, alone=not self.count)

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

    def _compute(self, schema: Schema, sides: Sequence[pl.DataFrame], by: Sequence[str]) -> pl.DataFrame:
        """The groups of some whole keys, which the columns `by` tell apart: these, the schema's, and the weight."""
        rows, kind = sides[0], self.held.column
        parts = [rows.filter(pl.col(WEIGHT) > 0)]
        if not self.whole:
            parts.append(rows.filter(pl.col(WEIGHT) < 0))
        named = [name for name in self.keys if name in schema and name in rows.columns]
        groups = self._gathered if self.whole else self._sizes if self.count else self._prefixes
        result = []
        for sign, part in zip((1, -1), parts, strict=False):
            if sign < 0 and part.is_empty():  # as it is for records, and a dozen queries of Polars would say so
                continue
            reduced = groups(part.with_columns(pl.col(WEIGHT) * sign), named, by)
            result.append(reduced.with_columns(pl.col(WEIGHT).cast(kind) * sign))
        *_, name = self.schema.names
        return pl.concat(result).select(*by, *named, *([name] if name in schema else []), WEIGHT)

    def _sizes(self, rows: pl.DataFrame, named: Sequence[str], by: Sequence[str]) -> pl.DataFrame:
        """How many of the first records of each key there are, wherever the next weight is smaller."""
        alike = rows
        if TIMES not in rows.columns:
            alike = rows.group_by(*by, WEIGHT).agg(*(pl.col(name).first() for name in named), pl.len().alias(TIMES))
        alike = alike.sort(*by, WEIGHT, descending=[*(False for _ in by), True])
        begins = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in by)  # no key is null
        total, zero = pl.col(TIMES).cast(pl.Int64).cum_sum(), pl.lit(0, rows.schema[WEIGHT])
        before = pl.when(begins).then(total - pl.col(TIMES)).forward_fill()
        following = pl.when(begins.shift(-1, fill_value=True)).then(zero).otherwise(pl.col(WEIGHT).shift(-1))
        return alike.with_columns(pl.col(WEIGHT) - following, (total - before).alias(self.schema.names[-1]))

    def _prefixes(self, rows: pl.DataFrame, named: Sequence[str], by: Sequence[str]) -> pl.DataFrame:
        """The first so many records of each key, wherever the next weight is smaller."""
        rows = rows.sort(*by, WEIGHT, descending=[*(False for _ in by), True])
        following = pl.col(WEIGHT).shift(-1).over(by).fill_null(pl.lit(0, rows.schema[WEIGHT]))
        size = pl.col(WEIGHT).cum_count().over(by).cast(pl.Int64)
        rows = rows.with_columns(following.alias(NEXT), size.alias(SIZE))
        ends = rows.filter(pl.col(WEIGHT) > pl.col(NEXT)).with_columns(pl.col(WEIGHT) - pl.col(NEXT))
        coded = rows.select(*by, self._codes(rows))
        lists = coded.group_by(by, maintain_order=True).agg(CODE).with_row_index(PLACE)
        gathered = ends.join(lists.drop(CODE), on=by, how="left", maintain_order="left")
        members = lists[CODE].to_list()
        groups = [_group(members[index][:size]) for index, size in gathered.select(PLACE, SIZE).iter_rows()]
        return gathered.with_columns(pl.Series(self.schema.names[-1], groups, dtype=pl.Binary))

    def _gathered(self, rows: pl.DataFrame, named: Sequence[str], by: Sequence[str]) -> pl.DataFrame:
        """All records of each key, each as often as it counts."""
        name, weight = self.schema.names[-1], pl.lit(1, pl.Int64).alias(WEIGHT)
        first = [pl.col(column).first() for column in named]
        if self.count:
            times = pl.col(TIMES) if TIMES in rows.columns else 1
            return rows.group_by(by).agg(*first, (pl.col(WEIGHT) * times).sum().alias(name)).with_columns(weight)
        coded = rows.with_columns(self._codes(rows))
        lists = coded.group_by(by).agg(*first, CODE, WEIGHT)
        groups = [
            _group(code for code, times in zip(members, weights, strict=True) for _ in range(times))
            for members, weights in lists.select(CODE, WEIGHT).iter_rows()
        ]
        return lists.with_columns(pl.Series(name, groups, dtype=pl.Binary), weight)

    def _codes(self, rows: pl.DataFrame) -> pl.Series:
        """Whole records in canonical bytes."""
        return joined_codes([codes(rows[name], self.source.schema[name].kind) for name in self.own]).alias(CODE)


def _group(members: Iterable[bytes]) -> bytes:
    """The canonical bytes of a tuple of records, from theirs."""
    return joined(sorted(members))
