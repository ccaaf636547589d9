"""Collections that tell how often things are counted: the two of *Things that count*, and the corner of both.

Source: McSherry, Things that count, 2018.

`CornerBin` computes the bins of the corner for whole ranges of cells, without a row for each record.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.arguments import COLLECTION, takes
from wpinq.core.functions.bind import bind
from wpinq.core.functions.expressions import Expressions
from wpinq.core.operators.map import Map
from wpinq.core.records.batch import END, WEIGHT, Batch
from wpinq.core.records.schema import Schema

if TYPE_CHECKING:
    from wpinq.collection import Collection

CORNER = "corner of degrees"
"""What the ledger calls it."""
WIDEST = 1 << 22
"""Bins of one side up to which they are counted in an array. They are fewer than the root of the number of records."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CornerBin(Expressions):
    """The bin of a cell, `index` where `rank > index`, else `-rank`; the same function as its expression."""

    def of_ranges(self, batch: Batch) -> Batch | None:
        """The bins of all cells of some rectangles; None where weights are wide, or the rectangles lie far out."""
        frame = batch.frame
        if frame[WEIGHT].dtype != pl.Int64:
            return None
        index, rank = ((_edge(batch, name, 0), _edge(batch, name, 1)) for name in self.schema.names)
        weight = frame[WEIGHT].to_numpy()
        if np.minimum(index[1], rank[1]).max(initial=0) > WIDEST:
            return None
        columns = _reaching((index[0] + 1, index[1] + 1), rank, weight)  # index k, where rank >= k + 1
        rows = _reaching(rank, index, weight)  # rank r, where index >= r
        bins = np.concatenate([np.flatnonzero(columns) - 1, -np.flatnonzero(rows)])
        sums = np.concatenate([columns[columns != 0], rows[rows != 0]])
        return Batch(pl.DataFrame({self.output.names[0]: bins, WEIGHT: sums}), self.output)


@lru_cache  # to bind it tries it on probes, and a command asks once before there is a ledger and once after
def corner_bin(schema: Schema) -> CornerBin:
    """The function over cells: of two columns, `index` and `rank`."""
    index, rank = (pl.col(name) for name in schema.names)
    bound = bind(pl.when(rank > index).then(index).otherwise(-rank), schema, "map")
    values = {field.name: getattr(bound, field.name) for field in fields(bound)}
    return CornerBin(**{**values, "note": CORNER})


def _edge(batch: Batch, name: str, end: int) -> Integers:
    """Where ranges of a column begin, or end (exclusive)."""
    if batch.schema[name].ranged:
        return batch.frame[END + name if end else name].to_numpy()
    return batch.frame[name].to_numpy() + end


def _reaching(x: tuple[Integers, Integers], y: tuple[Integers, Integers], weight: Integers) -> Integers:
    """For each x the weighted number of cells (x, y) of some rectangles with y >= x.

    It is `y1 - y0` up to `y0`, and then `y1 - x` up to `y1`: sums of such are sums of their steps.
    """
    first = np.maximum(x[0], 0)
    last = np.maximum(np.minimum(x[1], y[1]), first)
    bend = np.clip(y[0] + 1, first, last)
    flat, ends, slope = (np.zeros(last.max(initial=0) + 1, np.int64) for _ in range(3))
    for steps, low, high, height in (
        (flat, first, bend, weight * (y[1] - y[0])),
        (ends, bend, last, weight * y[1]),
        (slope, bend, last, weight),
    ):
        np.add.at(steps, low, height)
        np.subtract.at(steps, high, height)
    sums: Integers = np.cumsum(flat + ends) - np.arange(len(slope)) * np.cumsum(slope)
    return sums


@takes("degrees.cdf", collection=COLLECTION)
def cdf(collection: Collection) -> Collection:
    """The cumulative degree distribution, as a collection to measure.

    Bin k weighs as much as there are records counted k times or more.

    >>> from wpinq.degrees import cdf
    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(cdf(protected(page="text")), [("a",), ("a",), ("b",)])
    {(1,): 2, (2,): 1}
    """
    return _last(collection.shave(name="index"))


@takes("degrees.sequence", collection=COLLECTION)
def sequence(collection: Collection) -> Collection:
    """The frequency sequence, as a collection to measure.

    Bin r weighs how often the r-th most frequent record is counted.

    >>> from wpinq.degrees import sequence
    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(sequence(protected(page="text")), [("a",), ("a",), ("b",)])
    {(1,): 2, (2,): 1}
    """
    return _last(cdf(collection).shave(name="rank"))


@takes("degrees.corner", collection=COLLECTION)
def corner(collection: Collection) -> Collection:
    """Both curves at once, each record counted only by the one that tells it better, as a collection to measure.

    Record k of the r-th most frequent record counts in bin k where r > k, and in bin -r elsewhere.
    Since each is counted once, one measurement at the full epsilon has both.

    >>> from wpinq.degrees import corner
    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(corner(protected(page="text")), [("a",), ("a",), ("b",)])
    {(-1,): 2, (1,): 1}
    """
    cells = cdf(collection).shave(name="rank")
    return cells._then(Map(cells._node, corner_bin(cells._node.schema)))


def _last(sliced: Collection) -> Collection:
    """Forget the record and keep the number of its slice."""
    return sliced.map(pl.col(sliced.columns[-1]))
