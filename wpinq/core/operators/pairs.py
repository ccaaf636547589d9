"""The pairs of a join, written out in pieces.

Each side is first summed over the records of a key that agree in all columns that are read later, and the groups are
paired, `PAIRS_PER_PIECE` at a time. The caller adds up each piece as it comes, so no more pairs are in memory at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from wpinq.core.operators.resolution import GRID, draws, rounded
from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT, Batch, integers, weight_series
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.records.weights import WeightType
from wpinq.core.state.bykey import KEY, ByKey, Port, hashed_rows, key_words
from wpinq.core.state.states import Hashed
from wpinq.core.state.table import Weights
from wpinq.core.state.write_buffer import Tally, Waiting

LEFT, RIGHT, TOTAL, COUNT, RATE = "\0left", "\0right", "\0total", "\0count", "\0rate"
ON = "\0key "
"""What the names of key columns begin with."""
PAIRS_PER_PIECE = 1 << 21
"""Pairs that are written out at a time."""


@dataclass(frozen=True)
class PairWeighting:
    """The weights of pairs; see `join`.

    Attributes:
        scale: K of the exact rule; None where pairs are rounded by a dither.
        fine: Resolution of the inputs.
        at_most: Keys that weigh this or more have no pairs.
        held: How products are held where pairs are not weighed but counted; None where they are weighed.
        alone: Whether records of the left side stay without a partner, as far as the records of their key on the
            right weigh less than 1.
    """

    scale: int | None
    fine: int
    at_most: int | None
    held: WeightType | None = None
    alone: bool = False

    @property
    def exact(self) -> bool:
        """Whether no pair is rounded by a dither."""
        return self.scale is not None or self.held is not None

    @property
    def cut(self) -> int:
        """The number that is subtracted from K^2 / D: K, or more where keys are bounded."""
        scale = self.scale or 0
        return max(scale, -(-(scale**2) // (self.fine * self.at_most))) if self.at_most else scale

    def rate(self, total: int) -> int:
        """R(D) of the exact rule."""
        return max(0, (self.scale or 0) ** 2 // total - self.cut)

    def dithered(self, products: Weights, totals: Weights, draw: Weights) -> Weights:
        """Products of weights over the weights of their keys, as exact fractions, rounded by their dither."""
        if self.at_most is None:
            return rounded(products * GRID, totals * self.fine, draw)
        most = self.fine * self.at_most
        return rounded(products * GRID * np.maximum(most - totals, 0), totals * self.fine * most, draw)


@dataclass(frozen=True)
class Pairs:
    """Makes the weighted pairs of the rows of some keys.

    Attributes:
        schema: Columns of a pair.
        columns: For each side, the columns of a pair that it gives, and their names there.
        rule: How they are weighed.
        keys: Of the identities of pairs, and of their dither.
    """

    schema: Schema
    columns: Sequence[Mapping[str, str]]
    rule: PairWeighting
    keys: tuple[bytes, bytes]

    def __call__(self, sides: Sequence[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Pairs and their weights, in pieces; equal ones may stand in several rows.

        Args:
            sides: Rows of whole keys: the columns of the key, the columns that are kept, and `WEIGHT`. A record may
                stand in several rows if they agree in sign.
        """
        on = [name for name in sides[0].columns if name.startswith(ON)]
        left, right = (_groups(*item, on) for item in zip(sides, self.columns, (LEFT, RIGHT), strict=True))
        if self.rule.alone:
            yield self._alone(left, right, on)
        counts = (pl.lit(0, pl.Int64), (pl.col(RIGHT) != 0).cast(pl.Int64))
        sized = (side.select(*on, TOTAL, count.alias(COUNT)) for side, count in zip((left, right), counts, strict=True))
        keys = pl.concat(sized).group_by(on).agg(pl.col(TOTAL, COUNT).sum()).filter(pl.col(COUNT) > 0)
        if self.rule.scale:
            top, cut = (pl.lit(number, pl.Int128) for number in (self.rule.scale**2, self.rule.cut))
            keys = keys.with_columns((top // pl.col(TOTAL) - cut).alias(RATE)).filter(pl.col(RATE) > 0)
        elif self.rule.at_most:
            keys = keys.filter(pl.col(TOTAL) < pl.lit(self.rule.fine * self.rule.at_most, pl.Int128))
        left, right = (side.drop(TOTAL).filter(pl.col(weight) != 0) for side, weight in ((left, LEFT), (right, RIGHT)))
        left = left.join(keys, on=on, nulls_equal=True)
        if self.rule.scale:  # all of a pair's weight but what the right side gives
            left = left.with_columns(pl.col(LEFT) * pl.col(RATE)).drop(RATE)
        for piece in pieces(left):
            yield self._weighed(piece.lazy().join(right.lazy(), on=on, nulls_equal=True))

    def _alone(self, left: pl.DataFrame, right: pl.DataFrame, on: Sequence[str]) -> pl.DataFrame:
        """Groups of the left side without a partner, with null for all columns of the right side."""
        partners = right.group_by(on).agg(pl.col(TOTAL).sum().alias(RATE))
        without = left.join(partners, on=on, how="left", nulls_equal=True).filter(pl.col(LEFT) != 0)
        rest = (pl.lit(self.rule.fine, pl.Int128) - pl.col(RATE).fill_null(0)).clip(lower_bound=0)
        kind = self.rule.held.column if self.rule.held else pl.Int128()
        weighed = without.with_columns((pl.col(LEFT) * rest).cast(kind).alias(WEIGHT)).filter(pl.col(WEIGHT) != 0)
        empty = right.head(0).select(*on, *self.columns[1])
        return weighed.join(empty, on=on, how="left").select(*self.schema.names, WEIGHT)

    def _weighed(self, pairs: pl.LazyFrame) -> pl.DataFrame:
        if self.rule.exact:
            kind = self.rule.held.column if self.rule.held else pl.Int128()
            weight = (pl.col(LEFT) * pl.col(RIGHT)).cast(kind).alias(WEIGHT)
            return pairs.select(*self.schema.names, weight).collect()
        return self._dithered(pairs.collect())

    def _dithered(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Exact fractions, rounded by the dither of the key and the pair."""
        identity, dither = self.keys
        draw = draws(dither, pairs.select(KEY).to_numpy(), identities(pairs, self.schema, identity))
        products = integers(pairs[LEFT]) * integers(pairs[RIGHT])
        weight = self.rule.dithered(products, integers(pairs[TOTAL]), draw)
        column = weight_series(weight, WeightType(GRID, wide=True))
        return pairs.select(self.schema.names).with_columns(column).filter(pl.col(WEIGHT) != 0)


def _groups(rows: pl.DataFrame, columns: Mapping[str, str], weight: str, on: Sequence[str]) -> pl.DataFrame:
    """Sums over the records that agree in the key and in the columns that are needed; and of absolute weights."""
    named = [pl.col(old).alias(new) for new, old in columns.items()]
    size = pl.col(WEIGHT).abs().cast(pl.Int128).alias(TOTAL)
    chosen = rows.select(*on, *named, size, pl.col(WEIGHT).alias(weight))
    floats = [Column(name, Kind.FLOAT) for name, dtype in chosen.schema.items() if dtype == pl.Float64]
    grouped = canonical.bits(chosen).group_by(*on, *columns).agg(pl.col(weight, TOTAL).sum())
    return canonical.numbers(grouped, floats).with_columns(pl.col(weight).cast(pl.Int128))


def pieces(left: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Cut groups into runs of at most `PAIRS_PER_PIECE` pairs, or of one group; at least one run, perhaps empty."""
    ends = left[COUNT].cum_sum().to_numpy()
    start = 0
    while True:
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + PAIRS_PER_PIECE, side="right")))
        yield left[start:stop]
        if stop >= left.height:
            return
        start = stop


class Joined:
    """State of a join: the first change is paired by key columns, twice as fast; a second one by identities.

    What is joined with itself is one input, and held once.

    A side of which nothing but the key is read is added up by identity as it comes; then the first change is paired by
    identities, too.

    Args:
        ports: The inputs, or the one that is both sides.
        pairs: Makes pairs of rows.
        key: The key of identities.
    """

    def __init__(self, ports: Sequence[Port], pairs: Pairs, key: bytes) -> None:
        self._ports, self._pairs, self._key = ports, pairs, key
        bare = [not port.keep and port.schema.names == port.keys for port in ports]
        self._by_identity = any(bare)
        self._pending: list[Waiting | Tally] = [
            Tally(port.schema, key, threads=1) if keyless else Waiting(port.schema)
            for port, keyless in zip(ports, bare, strict=True)
        ]
        self._first: list[Batch | Hashed] = []
        self._table = None if pairs.rule.exact and comparable(ports) else self._made()

    def absorb(self, port: int, batch: Batch) -> None:
        """Keep the change until it is asked for."""
        if self._table is None and self._first:
            self._table = self._made()
            self._table.begin([self._table.rows(*item) for item in zip(self._ports, self._first, strict=True)])
            self._first = []
        if self._table is None:
            self._pending[port].absorb(batch.select(self._ports[port].schema.names))
        else:
            self._table.absorb(port, batch)

    def emit(self) -> Batch:
        """How the output moved with the pending changes."""
        return Batch.concat(self.pieces(), self._pairs.schema).consolidate()

    def pieces(self) -> Iterator[Batch]:
        """The same, in pieces whose sum it is."""
        if self._table is not None:
            yield from self._table.pieces()
        elif not self._first:
            changes = [Hashed(*side.take()) if isinstance(side, Tally) else side.rows() for side in self._pending]
            self._first = changes if any(map(len, changes)) else []
            sides = [self._rows(port, change) for port, change in zip(self._ports, changes, strict=True)]
            for piece in self._paired(sides):
                yield Batch(piece, self._pairs.schema)

    def last(self) -> Iterator[Batch]:
        """The same, when nothing is asked afterwards."""
        return self.pieces()

    @property
    def size(self) -> int:
        """Bytes of records that wait, about; what is added up by identity counts what it holds itself."""
        if self._table is not None:
            return self._table.size
        return sum(side.size for side in self._pending if isinstance(side, Waiting))

    def _made(self) -> ByKey:
        return ByKey(self._ports, self._paired, self._pairs.schema, self._key)

    def _paired(self, sides: Sequence[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        return self._pairs([sides[0], sides[-1]])

    def _rows(self, port: Port, change: Batch | Hashed) -> pl.DataFrame:
        """The rows of one side by the columns of its key, or by identities."""
        if isinstance(change, Hashed):
            return hashed_rows(port, change)
        if (change.frame[WEIGHT] < 0).any():  # what cancels has no absolute weight
            change = change.consolidate()
        change = change.refine(port.coarse, port.fine)
        kept = change.frame.select(*port.keep, pl.col(WEIGHT).cast(port.fine.column))
        if self._by_identity:
            return kept.with_columns(key_words(port, change, self._key))
        return kept.with_columns(change.frame[name].alias(f"{ON}{index}") for index, name in enumerate(port.keys))


def comparable(ports: Sequence[Port]) -> bool:
    """Whether columns are equal where values are: not floats, whose 0.0 is -0.0, or values of any type."""
    kinds = [[port.schema[name].kind for name in port.keys] for port in ports]
    odd = (Kind.FLOAT, Kind.ANY)
    return kinds[0] == kinds[-1] and not any(column.kind in odd for port in ports for column in port.schema)
