"""Join: pairs of records with equal keys, weighted so that no record can matter more than its own weight.

A heavy key is aggregated, not expanded: each side is first summed over the records that agree in all columns that any
later step reads, and the groups are paired. 150,000 records on each side of one key are one pair, if only the key is
read. Pairs are written out only where a later step tells them apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from wpinq.batch import WEIGHT, integers, weight_series
from wpinq.errors import PlanError
from wpinq.functions import bind
from wpinq.identity import identities
from wpinq.operators.keys import keyed
from wpinq.operators.lattice import DITHERED, common, dither_key, record_ids, record_key
from wpinq.operators.map import Map
from wpinq.plan import Collection as Weighted
from wpinq.plan import Keyed, Node, Record, Shape
from wpinq.schema import Column, Schema
from wpinq.state.bykey import KEY, ByKey, Port
from wpinq.state.dither import GRID, draws, rounded

if TYPE_CHECKING:
    from wpinq.collection import Collection

BITS = 40
LEAST_BITS = 32
LEFT, RIGHT, TOTAL = "\0left", "\0right", "\0total"
ROOM = 80  # bits of a lattice; 47 more are left for the total weight


def join(
    self: Collection,
    other: Collection,
    on: object = None,
    *,
    left: object = None,
    right: object = None,
    result: object = None,
    columns: Sequence[str] | Mapping[str, object] | None = None,
) -> Collection:
    """Pair the records of two collections that have equal keys.

    Weights:    out[x, y] = self[x] * other[y] / D(k), where k is their key and D(k) = |self[k]| + |other[k]| the summed
                absolute weight of the records of that key on both sides; computed as described below.
    Stability:  1 for each input, exactly, rounding included. In units of the inputs' lattice 1/L, with K = 2^b L:
                out = self[x] * other[y] * R(D), R(D) = max(0, floor(K^2 / D) - K), in units of 1/(L K^2).
                Proof: a change is a path of unit steps. Let |self[x]| grow by one, so D becomes D + 1, with A and B the
                two sides' sums before, A + B = D, g = R(D + 1) and d = R(D) - R(D + 1) >= 0. The output moves by at
                most B (g + |self[x]| d) + (A - |self[x]|) B d <= B (g + A d). Where D < K, d <= K^2 / (D (D + 1)) + 1
                and g <= K^2 / (D + 1) - K, so that is at most K^2 (D^2 - A^2) / (D^2 + D) + B (A - K) <= K^2, one unit
                of the input; beyond, all is 0. The K that is subtracted pays for the floor, and shrinks weights by
                the factor 1 - D / K: 9e-7 for a million whole records of one key (b = 40).
                b is 40 for whole weights, and less where the lattice is finer, so that all fits 128 bits. Where b would
                be below 32, as in a join of joins, pairs are divided exactly and rounded to 2^-40 by a keyed dither:
                stability 1 + 2^-16, but for a probability below 2^-180.
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("Join"); privacy rule 1.

    Args:
        other: The other collection; the same one may be joined with itself and is then used twice.
        on: The key in both: a column, several columns, or a function of a record. Keys are equal as values are,
            whatever their columns' types; None equals None.
        left: The key of this collection, where the two differ.
        right: The key of the other.
        result: A function of the paired record, as in `map`; by default the key, the other columns of this collection
            and those of the other (with `_2` after names that are taken). Naming few columns makes a join cheap.
        columns: Names for the columns of the result, as in `map`.

    Raises:
        PlanError: A key is missing, or the two keys have different numbers of columns.

    >>> views, users = protected(user="text", page="text"), protected(user="text", town="text")
    >>> towns = views.join(users, on="user", result=lambda page, town: (page, town))
    >>> evaluate(towns, [("ann", "a")], [("ann", "Rome")])
    {('a', 'Rome'): Fraction(549755813887, 1099511627776)}
    """
    ours, theirs = (on if side is None else side for side in (left, right))
    if ours is None or theirs is None:
        raise PlanError("join: name the key of both sides, on='user' or left=..., right=....")
    (one, two), _ = common([self._node, other._node])
    one, left_keys = keyed(one, ours, "join(on=...)")
    two, right_keys = keyed(two, theirs, "join(on=...)")
    if len(left_keys) != len(right_keys):
        raise PlanError(f"join: the keys ({', '.join(left_keys)}) and ({', '.join(right_keys)}) differ in number.")
    whole = Join(one, two, left_keys, right_keys, None)
    if result is None:
        return self._then(whole)
    function = bind(result, whole.schema, "join(result=...)", columns=columns)
    pairs = Join(one, two, left_keys, right_keys, function.reads or whole.schema.names[:1])
    try:
        return self._then(Map(pairs, bind(result, pairs.schema, "join(result=...)", columns=columns)))
    except PlanError:  # parameters matched by position: all columns have their place
        return self._then(Map(whole, function))


@dataclass(frozen=True, eq=False)
class Join(Node):
    """Plan node of `join`: the columns of `chosen`, or all."""

    left: Node
    right: Node
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    chosen: tuple[str, ...] | None

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Both sides."""
        return (self.left, self.right)

    @cached_property
    def places(self) -> dict[str, tuple[int, Column]]:
        """For each output column its side, and the column there."""
        names = [(name, 0, self.left.schema[name]) for name in self.left_keys]
        names += [(c.name, 0, c) for c in self.left.schema if c.name not in self.left_keys]
        names += [(c.name, 1, c) for c in self.right.schema if c.name not in self.right_keys]
        found: dict[str, tuple[int, Column]] = {}
        for name, side, column in names:
            fresh = Schema(tuple(Column(n, c.kind) for n, (_, c) in found.items())).fresh(name) if found else name
            found[fresh] = (side, column)
        return {name: place for name, place in found.items() if self.chosen is None or name in self.chosen}

    @cached_property
    def schema(self) -> Schema:
        """The key, and the other columns of both."""
        return Schema(tuple(Column(name, column.kind) for name, (_, column) in self.places.items()))

    @cached_property
    def fine(self) -> int:
        """The lattice of both inputs."""
        return common(self.inputs)[1]

    @property
    def scale(self) -> int | None:
        """K, where the exact rule fits 128 bits."""
        bits = min(BITS, (ROOM - 3 * (self.fine - 1).bit_length()) // 2)
        return self.fine << bits if bits >= LEAST_BITS else None

    @property
    def lattice(self) -> int:
        """Of the exact rule, or of the dither."""
        return self.fine * self.scale**2 if self.scale else GRID

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """1, and a hair above it with a dither."""
        return (Fraction(1) if self.scale else DITHERED,) * 2

    @property
    def title(self) -> str:
        """How `explain` shows it."""
        keys = [
            one if one == two else f"{one} = {two}" for one, two in zip(self.left_keys, self.right_keys, strict=True)
        ]
        return f"join({', '.join(keys)})" + ("" if self.scale else " with dither")

    @property
    def identity(self) -> tuple[bytes | None, ...]:
        """Keys and columns."""
        return (repr((self.left_keys, self.right_keys, self.schema.names)).encode(),)

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """Whole records: their absolute weights are summed by key."""
        return (frozenset(self.left.schema.names), frozenset(self.right.schema.names))

    def lower(self, needed: frozenset[str]) -> Shape:
        """Records by key. A dither is drawn for whole output records, so its columns are never pruned."""
        schema = self.schema.select((needed if self.scale else self.schema.names) or self.schema.names[:1])
        ports = [
            Port(node.schema.expanded(), keys, self._kept(side, schema), node.lattice, self.fine)
            for side, (node, keys) in enumerate(zip(self.inputs, (self.left_keys, self.right_keys), strict=True))
        ]
        pairs = Pairs(self, schema)
        key = record_key(self)
        return Keyed((self.left_keys, self.right_keys), lambda _: ByKey(ports, pairs, schema, key))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Pair by pair, key by key."""
        sides = [
            _by_key(given, [node.schema.names.index(name) for name in keys], self.fine)
            for given, node, keys in zip(inputs, self.inputs, (self.left_keys, self.right_keys), strict=True)
        ]
        places = [(side, self.inputs[side].schema.names.index(column.name)) for side, column in self.places.values()]
        out: dict[Record, Fraction] = defaultdict(Fraction)
        for key in sides[0].keys() & sides[1].keys():
            total = sum(abs(weight) for side in sides for _, weight in side[key])
            sums: dict[Record, int] = defaultdict(int)
            for x, a in sides[0][key]:
                for y, b in sides[1][key]:
                    sums[tuple((x, y)[side][place] for side, place in places)] += a * b
            for record, weight in zip(sums, self._weights(key, sums, total), strict=True):
                out[record] += weight
        return out

    def _weights(self, key: Record, sums: dict[Record, int], total: int) -> list[Fraction]:
        if self.scale:
            return [Fraction(product * reciprocal(total, self.scale), self.lattice) for product in sums.values()]
        keys = Schema(tuple(self.left.schema[name] for name in self.left_keys))
        ids = np.repeat(record_ids([key], keys, record_key(self)), len(sums), axis=0)
        draw = draws(dither_key(self), ids, record_ids(sums, self.schema, record_key(self)))
        products = np.array(list(sums.values()), object)
        return [Fraction(int(weight), GRID) for weight in rounded(products * GRID, total * self.fine, draw)]

    def _kept(self, side: int, schema: Schema) -> tuple[str, ...]:
        wanted = (column.name for name, (at, column) in self.places.items() if at == side and name in schema)
        return tuple(dict.fromkeys(wanted))


def reciprocal(total: int, scale: int) -> int:
    """R(D) of the exact rule."""
    return max(0, scale * scale // total - scale)


def _by_key(given: Weighted, places: list[int], lattice: int) -> dict[Record, list[tuple[Record, int]]]:
    found: dict[Record, list[tuple[Record, int]]] = defaultdict(list)
    for record, weight in given.items():
        found[tuple(record[place] for place in places)].append((record, int(weight * lattice)))
    return found


class Pairs:
    """What a join makes of the rows of some keys."""

    def __init__(self, join: Join, schema: Schema) -> None:
        self._join, self._schema = join, schema
        places = [(side, name, column.name) for name, (side, column) in join.places.items() if name in schema]
        self._columns = [{name: old for at, name, old in places if at == side} for side in (0, 1)]
        self._keys = (record_key(join), dither_key(join))

    def __call__(self, sides: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """Pairs of groups, with their weights."""
        total = pl.concat([side.select(*KEY, pl.col(WEIGHT).abs().cast(pl.Int128)) for side in sides])
        totals = total.group_by(KEY).agg(pl.col(WEIGHT).sum().alias(TOTAL))
        a, b = map(self._groups, sides, self._columns, (LEFT, RIGHT))
        pairs = a.join(totals, on=KEY).join(b, on=KEY)
        scale = self._join.scale
        if scale is None:
            return self._dithered(pairs)
        top, whole = (pl.lit(number, pl.Int128) for number in (scale * scale, scale))
        reciprocals = pl.max_horizontal(top // pl.col(TOTAL) - whole, pl.lit(0, pl.Int128))
        weight = pl.col(LEFT) * pl.col(RIGHT) * reciprocals
        return pairs.select(*self._schema.names, weight.alias(WEIGHT)).filter(pl.col(WEIGHT) != 0)

    def _groups(self, rows: pl.DataFrame, columns: dict[str, str], weight: str) -> pl.DataFrame:
        """Sums over the records that agree in the key and in the columns that are needed."""
        named = [pl.col(old).alias(new) for new, old in columns.items()]
        grouped = rows.select(*KEY, *named, pl.col(WEIGHT).cast(pl.Int128).alias(weight))
        return grouped.group_by(*KEY, *columns).agg(pl.col(weight).sum())

    def _dithered(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Exact fractions, rounded by the dither of the key and the record."""
        identity, dither = self._keys
        words = pairs.select(KEY).to_numpy()
        draw = draws(dither, words, identities(pairs, self._schema, identity))
        products = integers(pairs[LEFT]) * integers(pairs[RIGHT])
        weight = rounded(products * GRID, integers(pairs[TOTAL]) * self._join.fine, draw)
        found = pairs.select(self._schema.names).with_columns(weight_series(weight, GRID))
        return found.filter(pl.col(WEIGHT) != 0)
