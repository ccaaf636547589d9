"""Equal values of a column are added up while a source is read, before anything hashes rows.

`Dense` counts the integers of a column in an array, where they lie close together. `Repeats` adds up equal values as
far as a small table finds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock

import numpy as np
import polars as pl

from wpinq.core import kernels
from wpinq.core.kernels import Views, repeats
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.state.table import Weights

MAX_PLACES = 1 << 21
"""The length of the array, of 16 megabytes, that a thread may have."""
ROWS_PER_ROUND = 1 << 24
"""Rows that are counted before the counts are passed on, so that a reader can be stopped."""
PLACES_PER_BATCH = 1 << 15
"""Places of the array that leave in one batch."""
SPARSE = 8
"""The array may have so many places for each counted row."""


class Gathered:
    """The counts of several threads; the last thread passes on the sum, so each integer is one record."""

    def __init__(self, threads: int) -> None:
        self._lock, self._threads = Lock(), threads
        self._counts: Dense | None = None

    def take(self, counts: Dense) -> Iterator[Batch]:
        """The batches that a thread passes on when it has read its share."""
        with self._lock:
            self._threads -= 1
            self._counts = counts if self._counts is None else self._counts
            apart = self._counts is not counts and not self._counts.merge(counts)
            whole = None if self._threads else self._counts
        if apart:
            yield from counts.take()
        if whole is not None:
            yield from whole.take()


class Dense:
    """Counts of the integers in a range, which grows with them."""

    def __init__(self, schema: Schema) -> None:
        self._schema, self.rows, self._low = schema, 0, 0
        self._edges: list[int] = []
        self._counts: Weights = np.zeros(0, np.int64)

    @classmethod
    def of(cls, schema: Schema) -> Dense | None:
        """For one column of integers; else None."""
        return cls(schema) if len(schema) == 1 and schema.columns[0].kind is Kind.INT else None

    def add(self, frames: Sequence[pl.DataFrame]) -> bool:
        """Count the integers of frames; return False, and count none, if there is a null or they are not dense."""
        columns = [frame.to_series() for frame in frames if frame.height]
        if any(column.null_count() for column in columns):
            return False
        parts = [np.ascontiguousarray(column.to_numpy()) for column in columns]
        rows = self.rows + sum(map(len, parts))
        edges = self._edges + [edge for part in parts for edge in (int(part.min()), int(part.max()) + 1)]
        if not self._reach(edges, rows):
            return False
        for part in parts:
            kernels.count(part, self._low, self._counts)
        return True

    def merge(self, other: Dense) -> bool:
        """Add the counts of another; return False, and add none, if together they are not dense."""
        if not self._reach(self._edges + other._edges, self.rows + other.rows):
            return False
        if other._edges:
            self._counts[other._low - self._low :][: len(other._counts)] += other._counts
        return True

    def take(self) -> Iterator[Batch]:
        """What was counted, piece by piece, with its numbers as weights; nothing is counted afterwards."""
        for start in range(0, len(self._counts), PLACES_PER_BATCH):
            counts = self._counts[start : start + PLACES_PER_BATCH]
            result = np.flatnonzero(counts)
            if len(result):
                numbers = result + (self._low + start)
                yield Batch(pl.DataFrame({self._schema.names[0]: numbers, WEIGHT: counts[result]}), self._schema)
        self.rows, self._edges, self._counts = 0, [], np.zeros(0, np.int64)

    def _reach(self, edges: list[int], rows: int) -> bool:
        """Grow the array to the range of these edges; return False, and keep it, if so many rows are not dense there.

        It grows by whole pieces, because each growth leaves the old array in memory for a while.
        """
        if edges and max(edges) - min(edges) > min(SPARSE * rows, MAX_PLACES):
            return False
        self.rows = rows
        if not edges:
            return True
        low, high = self._edges = [min(edges), max(edges)]
        if low < self._low or high > self._low + len(self._counts):
            low, high = low // PLACES_PER_BATCH * PLACES_PER_BATCH, -(-high // PLACES_PER_BATCH) * PLACES_PER_BATCH
            counts = np.zeros(high - low, np.int64)
            counts[self._low - low :][: len(self._counts)] = self._counts
            self._low, self._counts = low, counts
        return True


FEW = 0.75
"""Where more of the rows than that are left, little repeats near by, and the next frames go on as they are."""
PAUSE = 8
"""Frames that go on as they are, before it is tried again."""
VIEWS = frozenset({Kind.TEXT, Kind.BYTES, Kind.ANY})


class Repeats:
    """Counts the rows of each value of one column, frame by frame. Whether it does changes the speed and no sum."""

    def __init__(self, schema: Schema) -> None:
        self._kind = schema.columns[0].kind if len(schema) == 1 else None
        self._pause = 0

    def count(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The same records with their weights in fewer rows; or the frame as it is, without weights."""
        if kernels.LIB is None or self._kind is None or self._pause or not frame.height:
            self._pause = max(self._pause - 1, 0)
            return frame
        column = frame.to_series().rechunk()
        missing = column.null_count()
        values = column.drop_nulls() if missing else column
        if self._kind in VIEWS:
            rows, counts = repeats.of_views(kernels.LIB, Views(values.rechunk()))
        else:
            rows, counts = repeats.of_words(kernels.LIB, _words(values))
        self._pause = PAUSE if len(rows) > FEW * frame.height else 0
        distinct = values.gather(rows)
        if missing:
            distinct, counts = distinct.extend_constant(None, 1), np.append(counts, missing)
        return pl.DataFrame({column.name: distinct, WEIGHT: counts})  # not a list: a name may be empty


def _words(values: pl.Series) -> kernels.Words:
    """One word for each value; a column holds no -0.0 and no NaN, so equal numbers have equal bits."""
    plain = values.to_physical()
    return (plain if plain.dtype == pl.Float64 else plain.cast(pl.Int64)).to_numpy().view(np.uint64)
