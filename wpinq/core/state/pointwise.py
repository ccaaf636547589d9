"""State of a step that maps the weights of one record, at each of its inputs, to its weight in the output.

The first change is added up as it arrives, which is many times faster. From the second change on there is one table of
weights by identity for each input, and columns pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl

from wpinq.core import kernels
from wpinq.core.records.batch import WEIGHT, Batch, bytes_of_row, integers, weight_series
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.records.weights import WeightType
from wpinq.core.state.summed import Summed
from wpinq.core.state.table import Ids, Table, Weights, combine
from wpinq.core.state.write_buffer import Waiting

PointFunction: TypeAlias = Callable[[Sequence[pl.Series], Callable[[], Ids]], pl.Series]
"""Maps the weights of some records at each input to their weights in the output; their identities on demand."""


@dataclass(frozen=True)
class PointwiseRule:
    """The parameters of a pointwise step.

    Attributes:
        schema: The columns of a record, at every input.
        keep: Those that are passed on.
        ports: Number of inputs.
        before: How the weights of the inputs are held.
        after: How those of the output are.
        rule: Maps weights to weights, and zeros to zero.
    """

    schema: Schema
    keep: tuple[str, ...]
    ports: int
    before: WeightType
    after: WeightType
    rule: PointFunction

    @property
    def sides(self) -> list[str]:
        """Names of columns for the weights at each input."""
        return [f"\0side {port}" for port in range(self.ports)]

    def ruled(self, records: pl.DataFrame, weight: pl.Series) -> Batch:
        """Some records, as far as they are passed on, with their weights in the output."""
        weighted = records.select(self.keep).with_columns(weight.cast(self.after.column).alias(WEIGHT))
        return Batch(weighted.filter(pl.col(WEIGHT) != 0), self.schema.select(self.keep))


class Pointwise:
    """Weights by record: of the first change as they come, of all changes by identity."""

    def __init__(self, points: PointwiseRule, key: bytes) -> None:
        self._points, self._key = points, key
        self._first: _InColumns | _InNumbers = _InColumns(points, key)
        if kernels.LIB is not None and points.before.column == pl.Int64:
            self._first = _InNumbers(points, Summed(kernels.LIB, points.schema, key, len(points.sides)))
        self._emitted = False
        self._pending = [Waiting(points.schema) for _ in points.sides]
        floats = any(column.kind is Kind.FLOAT for column in points.schema)  # 0.0 and -0.0 are one value
        self._tables = _Tables(points, key) if floats else None

    def absorb(self, port: int, batch: Batch) -> None:
        """Keep the change until it is asked for."""
        if self._emitted or self._tables is not None:
            self._pending[port].absorb(batch)
        else:
            self._first.absorb(port, batch)

    @property
    def size(self) -> int:
        """Bytes that are held of a finite source, about."""
        return self._first.size + sum(waiting.size for waiting in self._pending)

    def last(self) -> Iterator[Batch]:
        """The same as `emit`; nothing is asked afterwards."""
        yield self.emit()

    def emit(self) -> Batch:
        """How the output moved with the pending changes."""
        if not self._emitted and self._tables is None:
            self._emitted = bool(self._first)
            return self._first.emit()
        changes = [waiting.rows() for waiting in self._pending]
        if self._tables is None:
            self._tables = _Tables(self._points, self._key)
            self._first.move(self._tables)
        return self._tables.moved(changes)


class _InColumns:
    """A first change, as records."""

    def __init__(self, points: PointwiseRule, key: bytes) -> None:
        self._points, self._key = points, key
        self._waiting = [Waiting(points.schema) for _ in points.sides]
        self._changes: list[Batch] = []

    def __bool__(self) -> bool:
        return any(self._waiting)

    @property
    def size(self) -> int:
        """Bytes that are held, about."""
        return sum(waiting.size for waiting in self._waiting)

    def absorb(self, port: int, batch: Batch) -> None:
        """Let records wait."""
        self._waiting[port].absorb(batch)

    def move(self, tables: _Tables) -> None:
        """Let tables take the change in."""
        tables.moved(self._changes)

    def emit(self) -> Batch:
        """What follows from the change."""
        changes = self._changes = [waiting.rows() for waiting in self._waiting]
        points, names = self._points, self._points.schema.names
        kind = points.before.column
        zero, weight = pl.lit(0, kind), pl.col(WEIGHT).cast(kind)
        rows = [
            change.frame.lazy().select(
                *names, *((weight if side == port else zero).alias(name) for side, name in enumerate(points.sides))
            )
            for port, change in enumerate(changes)
        ]
        sums = pl.concat(rows).group_by(names).agg(pl.col(points.sides).sum()).collect()
        weights = sums[points.sides].get_columns()
        return points.ruled(sums, points.rule(weights, lambda: identities(sums, points.schema, self._key)))


class _InNumbers:
    """A first change, by the numbers of records: see `Summed`."""

    def __init__(self, points: PointwiseRule, summed: Summed) -> None:
        self._points, self._summed = points, summed
        self._kept = [Batch.empty(points.schema).frame.select(points.keep)]

    def __bool__(self) -> bool:
        return len(self._summed) > 0

    @property
    def size(self) -> int:
        """Bytes that are held, about: as if texts of all records were as long as those that came last."""
        return self._summed.size + len(self._summed) * bytes_of_row(self._kept[-1])

    def absorb(self, port: int, batch: Batch) -> None:
        """Add weights up, and hold what is passed on of records that were not seen before."""
        for frame, _, fresh in self._summed.absorb(port, batch):
            self._kept.append(frame.select(self._points.keep).filter(pl.Series(fresh)))

    def move(self, tables: _Tables) -> None:
        """Let tables take the change in."""
        tables.add(self._summed.ids(), [self._summed.weights(port) for port in range(len(self._points.sides))])

    def emit(self) -> Batch:
        """What follows from the change."""
        points, records = self._points, pl.concat(self._kept, rechunk=True)
        self._kept = self._kept[:1]
        weights = [pl.Series(side, self._summed.weights(port)) for port, side in enumerate(points.sides)]
        return points.ruled(records, points.rule(weights, self._summed.ids))


class _Tables:
    """The weights of records at each input by identity."""

    def __init__(self, points: PointwiseRule, key: bytes) -> None:
        self._points, self._key = points, key
        self._type = points.before.array
        self._tables = [Table(self._type) for _ in points.sides]

    def add(self, ids: Ids, weights: Sequence[Weights]) -> None:
        """Take in the weights of distinct records at each input."""
        for table, changes in zip(self._tables, weights, strict=True):
            table.add(*combine(ids, changes)[1:])

    def moved(self, changes: Sequence[Batch]) -> Batch:
        """How the output moves with changes, which are taken in."""
        points = self._points
        changes = [change.consolidate() for change in changes]
        result = [identities(change.frame, points.schema, self._key) for change in changes]
        ids = np.concatenate(result)
        rows, ids, _ = combine(ids, np.ones(len(ids), np.int64))
        before, after = [], []
        for table, side_ids, change in zip(self._tables, result, changes, strict=True):
            moved = Table(self._type)
            moved.add(*combine(side_ids, change.weights)[1:])
            before.append(table.lookup(ids))
            after.append(before[-1] + moved.lookup(ids))
            table.add(*moved.items())
        weight = self._ruled(after, ids) - self._ruled(before, ids)
        records = pl.concat([change.frame.select(points.keep) for change in changes])[rows]
        return points.ruled(records, weight_series(weight, points.after))

    def _ruled(self, weights: Sequence[np.ndarray], ids: Ids) -> np.ndarray:
        columns = [weight_series(weight, self._points.before) for weight in weights]
        return integers(self._points.rule(columns, lambda: ids))
