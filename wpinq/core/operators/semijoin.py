"""Semijoin: the records whose key another collection has.

Its kernel is that of `antijoin` and `limit` too. The records of a key are lined up in the order of a keyed hash, end to
end, each as long as its weight; a semijoin keeps the stretch below the weight of the other side, an antijoin what is
above it, and a limit what is below a constant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import polars as pl

from wpinq.core.operators.keys import both_keyed, keyed
from wpinq.core.operators.look_up import those_in
from wpinq.core.operators.resolution import common_resolution, node_of, record_ids, record_key
from wpinq.core.plan.node import Builder, C, Node, Record, Weighted
from wpinq.core.plan.person_bound import least
from wpinq.core.plan.shapes import Keyed, Shape
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.schema import Schema
from wpinq.core.records.weights import CAPACITY
from wpinq.core.state.bykey import KEY, RECORD, ByKey, Port
from wpinq.errors import PlanError

ROWS_PER_LOT = 1 << 19
"""Rows that are sorted at a time."""


def semijoin(self: Builder[C], other: object, on: object = None, *, left: object = None, right: object = None) -> C:
    """Keep, for each key, as much weight as the other collection has of it.

    Where a key is unique here, a record x keeps min(self[x], other's weight of its key). Where it is not, the records
    that come first in the order of a keyed hash are kept: the key is enforced, never trusted.

    Weights:    with the records x_1, x_2, ... of a key k in that order, S_i = max(self[x_1], 0) + ... + max(self[x_i],
                0) and B = max(other[k], 0): out[x_i] = min(S_i, B) - min(S_(i-1), B)
                Of a public table each record whose key is in it, as it is; None is in none.
    Stability:  2 for this collection and 1 for the other; with a public table 1, since each record stays or goes by
                itself. When self[x_i] moves by d, so do S_i and all later sums; the
                share of x_i moves by d at the most, and the shares of the later ones, all in one direction, by what is
                left of the movement of min(S, B), d at the most. When B moves by d, the shares move in one direction
                and their sum min(S, B) by d at the most (privacy rule 21, for weights).
    Source:     McSherry, PINQ, SIGMOD 2009 (joins by key).

    Args:
        other: Whose keys count; only its key columns are read. With `distinct` before it, a key counts once. Or a
            public table (a frame, a path), of whose keys, in one column, it does not matter how often they stand there.
        on: The key in both: a column, several columns, or a function of a record.
        left: The key of this collection, where the two differ.
        right: The key of the other.

    Raises:
        PlanError: A key is missing, or the two keys have different numbers of columns.

    >>> from wpinq.testing import evaluate, protected
    >>> orders, items = protected(order="integer", day="text"), protected(order="integer")
    >>> evaluate(orders.semijoin(items, on="order"), [(1, "Mon"), (2, "Tue")], [(1,), (1,)])
    {(1, 'Mon'): 1}
    """
    return _filled(self, other, on, left, right, above=False)


def antijoin(self: Builder[C], other: object, on: object = None, *, left: object = None, right: object = None) -> C:
    """Keep, for each key, what the other collection does not make up for: the rest of `semijoin`.

    Weights:    out[x_i] = max(S_i, B) - max(S_(i-1), B), in the terms of `semijoin`; of a public table each record
                whose key is not in it, as it is
    Stability:  2 for this collection and 1 for the other, as there.
    Source:     as `semijoin`.

    Args:
        other: Whose keys count; or a public table, see `semijoin`.
        on: The key in both: a column, several columns, or a function of a record.
        left: The key of this collection, where the two differ.
        right: The key of the other.

    Raises:
        PlanError: A key is missing, or the two keys have different numbers of columns.

    >>> from wpinq.testing import evaluate, protected
    >>> orders, items = protected(order="integer", day="text"), protected(order="integer")
    >>> evaluate(orders.antijoin(items, on="order"), [(1, "Mon"), (2, "Tue")], [(1,), (1,)])
    {(2, 'Tue'): 1}
    """
    return _filled(self, other, on, left, right, above=True)


def limit(self: Builder[C], key: object, at_most: int = 1) -> C:
    """Bound the weight of each key: enforce that a key is unique.

    Weights:    out[x_i] = min(S_i, at_most) - min(S_(i-1), at_most), in the terms of `semijoin`
    Stability:  2, as there.
    Source:     privacy rule 21.

    Args:
        key: A column, several columns, or a function of a record.
        at_most: The largest weight of a key, a whole number above zero, and below what any key can weigh.

    Raises:
        PlanError: There is no such column, `at_most` is no whole number above zero, or so large that it bounds nothing.

    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(protected(user="text", page="text").limit("user"), [("ann", "a"), ("ann", "a"), ("ann", "a")])
    {('ann', 'a'): 1}
    """
    if not isinstance(at_most, int) or isinstance(at_most, bool) or at_most < 1:
        raise PlanError("limit(at_most=...): give a whole number above zero.")
    if at_most >= CAPACITY * self._node.gain:
        raise PlanError(f"limit(at_most=...): no key weighs more than {CAPACITY * self._node.gain}; give less.")
    node, keys = keyed(self._node, key, "limit(key=...)")
    return self._then(Fill((node,), (keys,), self._node.schema.names, at_most, above=False))


def _filled(self: Builder[C], other: object, on: object, left: object, right: object, *, above: bool) -> C:
    call = "antijoin" if above else "semijoin"
    if not hasattr(other, "_node"):
        return self._then(those_in(self._node, other, on, left=left, right=right, call=call, there=not above))
    sides, keys = both_keyed((self._node, node_of(other, call)), on, left, right, call)
    return self._then(Fill(sides, keys, self._node.schema.names, None, above=above))


@dataclass(frozen=True, eq=False)
class Fill(Node):
    """Plan node of `semijoin`, `antijoin` and `limit`: `own` are the columns before a key was made."""

    sides: tuple[Node, ...]
    keys: tuple[tuple[str, ...], ...]
    own: tuple[str, ...]
    bound: int | None
    above: bool
    keeps_sign = True

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The collection whose records are kept, and the one whose keys count."""
        return self.sides

    @cached_property
    def schema(self) -> Schema:
        return self.sides[0].schema.select(self.own).expanded()

    @cached_property
    def resolution(self) -> int:
        return common_resolution(self.sides)[1]

    @cached_property
    def gain(self) -> Fraction:
        """Records only lose weight; the other side's weights are added up in the same type, so both must fit."""
        return max(side.gain for side in self.sides)

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """2 for the records, 1 for the keys."""
        return (Fraction(2), Fraction(1))[: len(self.sides)]

    @property
    def title(self) -> str:
        name = "limit" if self.bound else "antijoin" if self.above else "semijoin"
        return f"{name}({', '.join(self.keys[0])}{f', {self.bound}' if self.bound else ''})"

    def kept_apart(self, index: int) -> Mapping[str, str]:
        """The key."""
        pairs = zip(self.keys[0], self.keys[index], strict=True)
        return {ours: theirs for ours, theirs in pairs if ours in self.own}

    @property
    def needs(self) -> tuple[bool, ...]:
        """Records are those of the first input."""
        return (True, False)[: len(self.sides)]

    @property
    def moves_at_most(self) -> Mapping[frozenset[str], Fraction]:
        """What a limit leaves of a key may all leave, and other records take its place."""
        key = frozenset(self.keys[0])
        return {key: 2 * Fraction(self.bound)} if self.bound and key.issubset(self.own) else {}

    def bounds(self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]) -> Fraction | None:
        """Records only lose weight, and a limit says how much a key keeps."""
        limit = Fraction(self.bound) if self.bound and columns.issuperset(self.keys[0]) else None
        return least(limit, of(self.sides[0], columns))

    @property
    def bias(self) -> str:
        """What a limit cuts."""
        return f"what is beyond {self.bound} of one {' and '.join(self.keys[0])} is not in it" if self.bound else ""

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """Whole records, whose hash orders them, and the keys of the other side."""
        return (frozenset(self.sides[0].schema.names), *(frozenset(keys) for keys in self.keys[1:]))

    def lower(self, needed: frozenset[str]) -> Shape:
        keep = self.schema.kept(needed)
        first = Port(self.sides[0].schema.expanded(), self.keys[0], keep, self.sides[0].held, self.held)
        others = [
            Port(side.schema.expanded().select(keys), keys, (), side.held, self.held)
            for side, keys in zip(self.sides[1:], self.keys[1:], strict=True)
        ]
        schema, key = self.schema.select(keep), record_key(self)
        made: Callable[[bytes], ByKey] = lambda _: ByKey([first, *others], self._compute, schema, key)  # noqa: E731
        return Keyed(self.keys, made, matched=len(self.sides) == 2 and not self.above)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Order the records of each key, and cut their cumulative weight at the bound."""
        bounds: dict[Record, Fraction] = defaultdict(Fraction)
        for collection, side, keys in zip(inputs[1:], self.sides[1:], self.keys[1:], strict=True):
            for record, weight in collection.items():
                bounds[_pick(record, side.schema, keys)] += weight
        schema = self.sides[0].schema.expanded()
        ids = record_ids(inputs[0], schema, record_key(self)).tolist()
        sums: dict[Record, Fraction] = defaultdict(Fraction)
        choose = max if self.above else min
        out: dict[Record, Fraction] = {}
        for _, (record, weight) in sorted(zip(ids, inputs[0].items(), strict=True), key=lambda pair: pair[0]):
            key = _pick(record, schema, self.keys[0])
            bound = Fraction(self.bound) if self.bound else max(bounds[key], Fraction(0))
            before, sums[key] = sums[key], sums[key] + max(weight, Fraction(0))
            out[_pick(record, schema, self.own)] = choose(sums[key], bound) - choose(before, bound)
        return out

    def _compute(self, sides: Sequence[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The records of some keys at a time."""
        lots = 1 + sides[0].height // ROWS_PER_LOT
        for lot in range(lots):
            yield self._cut([side.filter(pl.col(KEY[0]) % lots == lot) if lots > 1 else side for side in sides])

    def _cut(self, sides: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """Cumulative weights, cut at the bound."""
        kind = self.held.column
        zero = pl.lit(0, kind)
        rows = sides[0].filter(pl.col(WEIGHT) > 0).sort(*KEY, *RECORD)
        if self.bound:
            rows = rows.with_columns(pl.lit(self.bound * self.resolution, kind).alias("\0bound"))
        else:
            bounds = sides[1].group_by(KEY).agg(pl.max_horizontal(pl.col(WEIGHT).sum(), zero).alias("\0bound"))
            rows = rows.join(bounds, on=KEY, how="left", maintain_order="left").with_columns(
                pl.col("\0bound").fill_null(zero)
            )
        total = pl.col(WEIGHT).cum_sum().over(KEY)
        cut = pl.max_horizontal if self.above else pl.min_horizontal
        share = cut(total, "\0bound") - cut(total - pl.col(WEIGHT), "\0bound")
        kept = [name for name in self.own if name in rows.columns]
        return rows.select(*kept, share.alias(WEIGHT)).filter(pl.col(WEIGHT) != 0)


def _pick(record: Record, schema: Schema, names: Sequence[str]) -> Record:
    return tuple(record[schema.names.index(name)] for name in names)
