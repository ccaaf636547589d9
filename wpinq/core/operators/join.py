"""Join: pairs of records with equal keys, weighted so that a change of one record changes the output by no more.

A heavy key is aggregated, not expanded: each side is first summed over the records that agree in all columns that any
later step reads, and the groups are paired. 150,000 records on each side of one key are one pair, if only the key is
read. Different pairs are written out piece by piece, and each piece goes at once through all following stateless steps
(`map`, `filter`, `flat_map`, `concat` ...), after which equal records are added up. So a join holds its inputs, and the
next step with a state holds the different records that reach it, as it would anyway. No data are refused for making too
many pairs; `at_most` bounds the pairs for all data.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from wpinq.arguments import WHOLE
from wpinq.core.functions.bind import bind
from wpinq.core.operators.keys import both_keyed
from wpinq.core.operators.look_up import look_up, mapped
from wpinq.core.operators.map import Map
from wpinq.core.operators.pairs import Joined, Pairs, PairWeighting
from wpinq.core.operators.resolution import (
    DITHER_STABILITY,
    GRID,
    ROUNDING_NOTE,
    common_resolution,
    dither_key,
    draws,
    node_of,
    record_ids,
    record_key,
)
from wpinq.core.plan.forms import Binary
from wpinq.core.plan.node import Builder, C, Node, Record, Weighted
from wpinq.core.plan.shapes import Keyed, Shape
from wpinq.core.records.schema import Column, Schema
from wpinq.core.records.weights import WeightType
from wpinq.core.state.bykey import Port
from wpinq.errors import PlanError

BITS = 40
LEAST_BITS = 32
LARGEST_AT_MOST = 2**LEAST_BITS
ROOM = 80  # bits of a resolution; those of 2^40 records and of pairs that weigh 64 for each are left (`weights.py`)
SPARE_BITS = 6
KEY_BITS = 20  # of the number of the heaviest records in a key that keeps its pairs


def join(
    self: Builder[C],
    other: Builder[C],
    on: object = None,
    *,
    left: object = None,
    right: object = None,
    result: object = None,
    at_most: int | None = None,
    columns: Sequence[str] | Mapping[str, object] | None = None,
    how: str = "inner",
) -> C:
    """Pair the records of two collections that have equal keys, and weigh the pairs; `join_rows` counts them.

    Weights:    out[x, y] = self[x] * other[y] / D(k), where k is their key and D(k) = |self[k]| + |other[k]| the summed
                absolute weight of the records of that key on both sides; computed as described below.
    Stability:  1 for each input, exactly, rounding included. In units of the inputs' resolution 1/L, with K = 2^b L:
                out = self[x] * other[y] * R(D), R(D) = max(0, floor(K^2 / D) - K), in units of 1/(L K^2).
                Proof: a change is a path of unit steps. Let |self[x]| grow by one, so D becomes D + 1, with A and B the
                two sides' sums before, A + B = D, g = R(D + 1) and d = R(D) - R(D + 1) >= 0. The output moves by at
                most B (g + |self[x]| d) + (A - |self[x]|) B d <= B (g + A d). Where D < K, d <= K^2 / (D (D + 1)) + 1
                and g <= K^2 / (D + 1) - K, so that is at most K^2 (D^2 - A^2) / (D^2 + D) + B (A - K) <= K^2, one unit
                of the input; beyond, all is 0. The K that is subtracted pays for the floor, and shrinks weights by
                the factor 1 - D / K: 9e-7 for a million whole records of one key (b = 40).
                b is 40 for whole weights, and less where the resolution is finer or one record can weigh more than 64,
                so that all fits 128 bits: a source holds 2^40 records at the most, the two sides of a key weigh D <=
                2^40 g units of 1/L, g the sum of their gains, and their pairs D K^2 / 4 units at the most,
                of which L K^2 g / 4 < 2^86 makes less than 2^126. Where b would be below 32, as in a join of joins,
                or a million of the heaviest records would reach K, pairs are divided exactly and rounded to 2^-40 by a
                keyed dither: stability 1 + 2^-16, but for a probability below 2^-180 (2^-90 where signs change).
                With `at_most` N: R(D) = max(0, floor(K^2 / D) - S), S = ceil(K^2 / (L N)) >= K, in the ideal
                self[x] * other[y] * (1 / D - 1 / N). Proof: the same with S for the K that is subtracted, because
                A < K <= S where g > 0; where g = 0 < d, d <= K^2 / (D (D + 1)) + 1, so B A d <= K^2 / 4 + K^2 / 4.
                With a public table 1: each record goes to one place, as in `map`, or is dropped for want of a row.
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("Join"); privacy rule 1.

    Args:
        other: The other collection; the same one may be joined with itself and is then used twice. Or a public table,
            of which each record gets the row of its key, and its whole weight: a frame, a file or whatever else can be
            protected, alone or with types, `("towns.csv", {"size": int})`.
        on: The key in both: a column, several columns, or a function of a record. Keys are equal as values are,
            whatever their columns' types; None equals None, but no key of a public table.
        left, right: The key of this collection and of the other, where the two differ.
        result: A function of the paired record, as in `map`; by default the key, the other columns of this collection
            and those of the other (with `_2` after names that are taken). Naming few columns makes a join cheap, and
            so does making few different values: pairs are not kept.
        at_most: Leave out keys that weigh this or more, both sides together; others keep 1 - D / at_most of their
            weight. It costs no privacy, and no data can then make more than at_most / 4 pairs for each record.
        columns: Names for the columns of the result, as in `map`.
        how: "inner", or of a public table "left": records without a row stay, with nulls in its columns.

    Raises:
        PlanError: A key is missing, the two keys have different numbers of columns, or `at_most` is no whole number
            from 1 to 2^32; or a public table's key is not one unique column of a type that fits.
        SourceError: The public table cannot be read, or is too large.

    >>> from wpinq.testing import evaluate, protected
    >>> views, users = protected(user="text", page="text"), protected(user="text", town="text")
    >>> towns = views.join(users, on="user", result=lambda page, town: (page, town))
    >>> evaluate(towns, [("ann", "a")], [("ann", "Rome")])
    {('a', 'Rome'): Fraction(549755813887, 1099511627776)}
    """
    public = not hasattr(other, "_node")
    if (at_most is not None) if public else not (isinstance(how, str) and how == "inner"):
        raise PlanError("join: at_most= is of a protected table, whose pairs are weighed, and how= of a public one.")
    if public:
        looked_up = look_up(self._node, other, on, left=left, right=right, how=how)
        return self._then(looked_up if result is None else mapped(looked_up, result, columns))
    if at_most is not None and not (WHOLE.holds(at_most) and 0 < at_most <= LARGEST_AT_MOST):
        raise PlanError("join(at_most=...): give a whole number from 1 to 2^32.")
    sides, keys = both_keyed((self._node, node_of(other, "join")), on, left, right, "join")
    whole = Join(*sides, *keys, None, at_most)
    return self._then(whole if result is None else made(whole, result, columns, "join"))


def made(whole: Join, result: object, columns: Sequence[str] | Mapping[str, object] | None, call: str) -> Map:
    """The join with the columns that the function reads, mapped by the function."""
    function = bind(result, whole.schema, f"{call}(result=...)", columns=columns)
    pairs = replace(whole, chosen=function.reads or whole.schema.names[:1])
    try:
        function = bind(result, pairs.schema, f"{call}(result=...)", columns=columns)
    except PlanError:  # parameters matched by position: all columns have their place
        pairs = whole
    return Map(pairs, function)


@dataclass(frozen=True, eq=False)
class Join(Binary):
    """Plan node of `join`: the columns of `chosen`, or all."""

    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    chosen: tuple[str, ...] | None
    at_most: int | None
    keeps_sign = True
    both_keys = False

    @cached_property
    def places(self) -> dict[str, tuple[int, Column]]:
        """For each output column its side, and the column there."""
        names = [(name, 0, self.left.schema[name]) for name in self.left_keys]
        names += [(c.name, 0, c) for c in self.left.schema if c.name not in self.left_keys]
        names += [(c.name, 1, c) for c in self.right.schema if self.both_keys or c.name not in self.right_keys]
        result: dict[str, tuple[int, Column]] = {}
        for name, side, column in names:
            fresh = Schema(tuple(Column(n, c.kind) for n, (_, c) in result.items())).fresh(name) if result else name
            result[fresh] = (side, column)
        return {name: origin for name, origin in result.items() if self.chosen is None or name in self.chosen}

    def carried(self, name: str) -> tuple[int, str] | None:
        side, column = self.places[name]
        return side, column.name

    @cached_property
    def schema(self) -> Schema:
        """The key, and the other columns of both, as far as they are chosen."""
        return Schema(tuple(Column(name, column.kind) for name, (_, column) in self.places.items()))

    @cached_property
    def fine(self) -> int:
        """The resolution of both inputs."""
        return common_resolution(self.inputs)[1]

    @cached_property
    def scale(self) -> int | None:
        """K, where the exact rule fits 128 bits, and a key of a million of the heaviest records keeps its pairs."""
        heavy = math.ceil(max(node.gain for node in self.inputs)).bit_length() - 1
        wide = max(0, math.ceil(self._pairs_gain).bit_length() - SPARE_BITS)
        bits = min(BITS, (ROOM - 3 * (self.fine - 1).bit_length() - wide) // 2)
        return self.fine << bits if bits >= max(LEAST_BITS, KEY_BITS + heavy) else None

    @property
    def _pairs_gain(self) -> Fraction:
        """A B / (A + B) <= (A + B) / 4: what the pairs of sides that weigh A and B weigh."""
        return sum((node.gain for node in self.inputs), Fraction(0)) / 4

    @cached_property
    def gain(self) -> Fraction:
        """The gain of pairs, times the stability of a dither."""
        return self._pairs_gain * self.stability[0]

    @property
    def rule(self) -> PairWeighting:
        """How pairs are weighed."""
        return PairWeighting(self.scale, self.fine, self.at_most)

    @cached_property
    def resolution(self) -> int:
        """Of the exact rule, or of the dither."""
        return self.fine * self.scale**2 if self.scale else GRID

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """1, and 1 + 2^-16 with a dither."""
        return (Fraction(1) if self.scale else DITHER_STABILITY,) * 2

    @property
    def dithers(self) -> bool:
        return self.scale is None

    def kept_apart(self, index: int) -> Mapping[str, str]:
        """The key."""
        names = {name: column.name for name, (side, column) in self.places.items() if side == 0}
        keys = dict(zip(self.left_keys, self._keys[index], strict=True))
        return {} if self.dithers else {name: keys[key] for name, key in names.items() if key in keys}

    @property
    def needs(self) -> tuple[bool, ...]:
        """A pair has a record of each input."""
        return True, True

    def bounds(self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]) -> Fraction | None:
        """The pairs of a key weigh A B / (A + B), where it weighs A and B on both sides: they grow with either."""
        kept = self.kept_apart(0)
        if {kept[name] for name in columns if name in kept} != set(self.left_keys):
            return None
        weights = [of(node, frozenset(keys)) for node, keys in zip(self.inputs, self._keys, strict=True)]
        if None in weights:
            return None
        ours, theirs = (weight or Fraction(0) for weight in weights)
        return ours * theirs / (ours + theirs) if ours + theirs else Fraction(0)

    @property
    def title(self) -> str:
        keys = [ours if ours == theirs else f"{ours} = {theirs}" for ours, theirs in zip(*self._keys, strict=True)]
        bound = f"; at most {self.at_most:,}" if self.at_most else ""
        return f"join({', '.join(keys)}{bound})" + ("" if self.scale else " with dither")

    @property
    def bias(self) -> str:
        """That pairs are weighed, not counted."""
        keys = f"; a key that weighs {self.at_most:,} or more is not in it" if self.at_most else ""
        return f"a pair of the join weighs 1 / (its key's records on both sides), so it is no count of pairs{keys}"

    @property
    def rounding(self) -> str:
        """The factor that pays for the floor, or the dither."""
        most = f"{self.at_most:,}" if self.at_most else ""
        if self.scale is None:
            return ROUNDING_NOTE + (f", after keys that weigh D keep 1 - D/{most}" if most else "")
        most = most or f"2^{(self.scale // self.fine).bit_length() - 1}"
        return f"pairs of a key that weighs D keep 1 - D/{most} of their weight"

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """The key and what the output needs; whole records where weights may be negative.

        D adds up absolute weights, record by record. Records that agree in the columns that are read may be taken as
        one where no weight is negative: nothing cancels then, so the absolute weight of the sum is the sum of theirs.
        """
        sides = zip(self.inputs, self._keys, self._sides(needed), strict=True)
        return tuple(
            frozenset((*keys, *columns.values()) if node.nonnegative else node.schema.names)
            for node, keys, columns in sides
        )

    @property
    def _keys(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.left_keys, self.right_keys

    def _sides(self, needed: frozenset[str]) -> list[dict[str, str]]:
        """For each side, the output's columns that it gives, and their names there.

        A dither is drawn for whole output records, so its columns are never pruned.
        """
        names = (needed if self.rule.exact else self.schema.names) or self.schema.names[:1]
        return [
            {name: column.name for name, (at, column) in self.places.items() if at == side and name in names}
            for side in (0, 1)
        ]

    def lower(self, needed: frozenset[str]) -> Shape:
        """Records by key."""
        read, columns = self.required(needed), self._sides(needed)
        schema = self.schema.select(name for origins in columns for name in origins)
        held = [WeightType.of(self.fine, node.gain, self.title) for node in self.inputs]
        ports = [
            Port(node.schema.select(names).expanded(), keys, tuple(dict.fromkeys(origins.values())), node.held, fine)
            for node, names, keys, origins, fine in zip(self.inputs, read, self._keys, columns, held, strict=True)
        ]
        key = record_key(self)
        pairs = Pairs(schema, columns, self.rule, (key, dither_key(self)))
        itself = None
        if self.left_keys == self.right_keys and self.left.schema == self.right.schema:
            itself = Keyed(self._keys[:1], lambda _: Joined([self._both(*ports)], pairs, key))
        return Keyed(self._keys, lambda _: Joined(ports, pairs, key), itself=itself)

    def _both(self, left: Port, right: Port) -> Port:
        """The one input where both sides are one step: it has the columns of both."""
        schema = self.left.schema.select((*left.schema.names, *right.schema.names)).expanded()
        return replace(left, schema=schema, keep=tuple(dict.fromkeys((*left.keep, *right.keep))))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Pair by pair, key by key."""
        sides = [
            _by_key(collection, [node.schema.names.index(name) for name in keys], self.fine)
            for collection, node, keys in zip(inputs, self.inputs, self._keys, strict=True)
        ]
        places = [(side, self.inputs[side].schema.names.index(column.name)) for side, column in self.places.values()]
        out: dict[Record, Fraction] = defaultdict(Fraction)
        for key in sides[0].keys() & sides[1].keys():
            total = sum(abs(weight) for side in sides for _, weight in side[key])
            sums: dict[Record, int] = defaultdict(int)
            for x, a in sides[0][key]:
                for y, b in sides[1][key]:
                    sums[tuple((x, y)[side][index] for side, index in places)] += a * b
            for record, weight in zip(sums, self._weights(key, sums, total), strict=True):
                out[record] += weight
        return out

    def _weights(self, key: Record, sums: dict[Record, int], total: int) -> list[Fraction]:
        if self.scale:
            return [Fraction(product * self.rule.rate(total), self.resolution) for product in sums.values()]
        keys = Schema(tuple(self.left.schema[name] for name in self.left_keys))
        ids = np.repeat(record_ids([key], keys, record_key(self)), len(sums), axis=0)
        draw = draws(dither_key(self), ids, record_ids(sums, self.schema, record_key(self)))
        products, totals = np.array(list(sums.values()), object), np.full(len(sums), total, object)
        return [Fraction(int(weight), GRID) for weight in self.rule.dithered(products, totals, draw)]


def _by_key(collection: Weighted, positions: list[int], resolution: int) -> dict[Record, list[tuple[Record, int]]]:
    result: dict[Record, list[tuple[Record, int]]] = defaultdict(list)
    for record, weight in collection.items():
        result[tuple(record[index] for index in positions)].append((record, int(weight * resolution)))
    return result
