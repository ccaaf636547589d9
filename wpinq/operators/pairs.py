"""What a join makes of the rows of some keys: pairs of groups, written out in pieces that are summed as they come.

Each side is first summed over the records of a key that agree in all columns that are read later, and the groups are
paired. So memory follows the number of different results and not the number of pairs, which are made `PIECE` at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from wpinq.batch import WEIGHT, integers, weight_series
from wpinq.errors import EngineError
from wpinq.functions import Function
from wpinq.identity import identities
from wpinq.schema import Schema
from wpinq.state.bykey import KEY
from wpinq.state.dither import GRID, draws, rounded

LEFT, RIGHT, TOTAL, COUNT = "\0left", "\0right", "\0total", "\0count"
PIECE = 1 << 22
"""Pairs that are written out at a time."""
MOST = 1 << 26
"""Different results that one shard may hold, where they are not few for the records that it has."""


@dataclass(frozen=True)
class Pairs:
    """The rows of some keys on both sides, to their weighted pairs.

    Attributes:
        title: Name of the step, for messages.
        schema: Columns of a pair.
        columns: For each side, the columns of a pair that it gives, and their names there.
        scale: K of the exact rule; None where pairs are rounded by a dither.
        fine: Lattice of the inputs.
        keys: Of the identities of pairs, and of their dither.
        function: What is made of a pair, if anything.
    """

    title: str
    schema: Schema
    columns: Sequence[Mapping[str, str]]
    scale: int | None
    fine: int
    keys: tuple[bytes, bytes]
    function: Function | None

    def __call__(self, sides: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """Results and their weights; equal ones may stand in several rows.

        Raises:
            EngineError: There are more different results than memory should be given to.
        """
        totals = pl.concat([side.select(*KEY, pl.col(WEIGHT).abs().cast(pl.Int128).alias(TOTAL)) for side in sides])
        totals = totals.group_by(KEY).agg(pl.col(TOTAL).sum())
        left, right = (_groups(*one) for one in zip(sides, self.columns, (LEFT, RIGHT), strict=True))
        partners = right.group_by(KEY).agg(pl.len().cast(pl.Int64).alias(COUNT))
        left = left.join(totals.join(partners, on=KEY), on=KEY)
        if self.scale:  # all of a pair's weight but what the right side gives
            top, whole = (pl.lit(number, pl.Int128) for number in (self.scale**2, self.scale))
            left = left.with_columns(pl.col(LEFT) * (top // pl.col(TOTAL) - whole)).filter(pl.col(TOTAL) < self.scale)
        made = (self._weighed(piece.lazy().join(right.lazy(), on=KEY)) for piece in pieces(left))
        if left[COUNT].sum() <= PIECE:
            return next(made)
        return self._summed(made, max(MOST, 4 * sum(side.height for side in sides)))

    def _weighed(self, pairs: pl.LazyFrame) -> pl.DataFrame:
        if self.scale:
            found = pairs.select(*self.schema.names, (pl.col(LEFT) * pl.col(RIGHT)).alias(WEIGHT)).collect()
        else:
            found = self._dithered(pairs.collect())
        found = found.filter(pl.col(WEIGHT) != 0)
        return found if self.function is None else self.function.apply(found, [WEIGHT])

    def _dithered(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Exact fractions, rounded by the dither of the key and the pair."""
        identity, dither = self.keys
        draw = draws(dither, pairs.select(KEY).to_numpy(), identities(pairs, self.schema, identity))
        products = integers(pairs[LEFT]) * integers(pairs[RIGHT])
        weight = rounded(products * GRID, integers(pairs[TOTAL]) * self.fine, draw)
        return pairs.select(self.schema.names).with_columns(weight_series(weight, GRID))

    def _summed(self, made: Iterator[pl.DataFrame], most: int) -> pl.DataFrame:
        """Each result once: what was added up waits until as much again has come."""
        waiting: list[pl.DataFrame] = []
        rows = settled = 0
        for piece in made:
            waiting.append(_added([piece]))
            rows += waiting[-1].height
            if rows > max(PIECE, 2 * settled):
                waiting = [_added(waiting)]
                rows = settled = waiting[0].height
            if settled > most:
                raise EngineError(
                    f"{self.title}: over {most:,} different pairs would be held; let result=... make fewer of them."
                )
        return _added(waiting)


def _groups(rows: pl.DataFrame, columns: Mapping[str, str], weight: str) -> pl.DataFrame:
    """Sums over the records that agree in the key and in the columns that are needed."""
    named = [pl.col(old).alias(new) for new, old in columns.items()]
    grouped = rows.select(*KEY, *named, pl.col(WEIGHT).alias(weight)).group_by(*KEY, *columns).agg(pl.col(weight).sum())
    return grouped.with_columns(pl.col(weight).cast(pl.Int128))


def pieces(left: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Cut groups into runs of at most `PIECE` pairs, or of one group; one run, perhaps empty, at the least."""
    ends = left[COUNT].cum_sum().to_numpy()
    start = 0
    while True:
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + PIECE, side="right")))
        yield left[start:stop]
        if stop >= left.height:
            return
        start = stop


def _added(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Add up the weights of equal results."""
    whole = pl.concat(frames)
    names = [name for name in whole.columns if name != WEIGHT]
    return whole.group_by(names).agg(pl.col(WEIGHT).sum()).filter(pl.col(WEIGHT) != 0)
