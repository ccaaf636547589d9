"""State of a step that maps the weights of one record, at each of its inputs, to its weight in the output.

The first change is added up by columns, which is many times faster. When a second change comes, identities are
computed; from then on there is one table of weights by identity for each input, and columns pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl

from wpinq.records.batch import WEIGHT, Batch, integers, weight_series
from wpinq.records.identity import identities
from wpinq.records.schema import Kind, Schema
from wpinq.records.weights import WeightType
from wpinq.state.table import Ids, Table, combine
from wpinq.state.waiting import Waiting

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
        kept = records.select(self.keep).with_columns(weight.cast(self.after.column).alias(WEIGHT))
        return Batch(kept.filter(pl.col(WEIGHT) != 0), self.schema.select(self.keep))


class Pointwise:
    """Weights by record: of the first change in columns, of all changes by identity."""

    def __init__(self, points: PointwiseRule, key: bytes) -> None:
        self._points, self._key = points, key
        self._pending = [Waiting(points.schema) for _ in points.sides]
        self._first: list[Batch] = []
        floats = any(column.kind is Kind.FLOAT for column in points.schema)  # 0.0 and -0.0 are one value
        self._tables = _Tables(points, key) if floats else None

    def absorb(self, port: int, batch: Batch) -> None:
        """Keep the change until it is asked for."""
        self._pending[port].absorb(batch)

    def emit(self) -> Batch:
        """How the output moved with the pending changes."""
        changes = [waiting.rows() for waiting in self._pending]
        if self._tables is None and self._first:
            self._tables = _Tables(self._points, self._key)
            self._tables.moved(self._first)
            self._first = []
        if self._tables is not None:
            return self._tables.moved(changes)
        self._first = changes if any(map(len, changes)) else []
        return self._in_columns(changes)

    def _in_columns(self, changes: Sequence[Batch]) -> Batch:
        points, names = self._points, self._points.schema.names
        kind = points.before.column
        zero, own = pl.lit(0, kind), pl.col(WEIGHT).cast(kind)
        rows = [
            change.frame.lazy().select(
                *names, *((own if place == port else zero).alias(name) for place, name in enumerate(points.sides))
            )
            for port, change in enumerate(changes)
        ]
        sums = pl.concat(rows).group_by(names).agg(pl.col(points.sides).sum()).collect()
        weights = sums[points.sides].get_columns()
        return points.ruled(sums, points.rule(weights, lambda: identities(sums, points.schema, self._key)))


class _Tables:
    """The weights of records at each input by identity."""

    def __init__(self, points: PointwiseRule, key: bytes) -> None:
        self._points, self._key = points, key
        self._type = points.before.array
        self._tables = [Table(self._type) for _ in points.sides]

    def moved(self, changes: Sequence[Batch]) -> Batch:
        """How the output moves with changes, which are taken in."""
        points = self._points
        changes = [change.consolidate() for change in changes]
        result = [identities(change.frame, points.schema, self._key) for change in changes]
        ids = np.concatenate(result)
        rows, ids, _ = combine(ids, np.ones(len(ids), np.int64))
        before, after = [], []
        for table, own, change in zip(self._tables, result, changes, strict=True):
            moved = Table(self._type)
            moved.add(*combine(own, change.weights)[1:])
            before.append(table.lookup(ids))
            after.append(before[-1] + moved.lookup(ids))
            table.add(*moved.items())
        weight = self._ruled(after, ids) - self._ruled(before, ids)
        records = pl.concat([change.frame.select(points.keep) for change in changes])[rows]
        return points.ruled(records, weight_series(weight, points.after))

    def _ruled(self, weights: Sequence[np.ndarray], ids: Ids) -> np.ndarray:
        columns = [weight_series(weight, self._points.before) for weight in weights]
        return integers(self._points.rule(columns, lambda: ids))
