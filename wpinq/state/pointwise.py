"""State of a step that maps the weights of one record, at each of its inputs, to its weight in the output.

One table of weights by identity for each input. A record's columns pass through and are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl

from wpinq.batch import WEIGHT, Batch, array_type, weight_series
from wpinq.identity import identities
from wpinq.schema import Schema
from wpinq.state.table import Ids, Table, Weights, combine

Rule: TypeAlias = Callable[[Sequence[Weights], Ids], Weights]
"""From the weights of some records at each input, and their identities, to their weights in the output."""


@dataclass(frozen=True)
class Points:
    """What a pointwise step is.

    Attributes:
        schema: The columns of a record, at every input.
        keep: Those that are passed on.
        ports: Number of inputs.
        coarse: Lattice of the inputs.
        lattice: Lattice of the output.
        rule: Maps weights to weights, and zeros to zero.
    """

    schema: Schema
    keep: tuple[str, ...]
    ports: int
    coarse: int
    lattice: int
    rule: Rule


class Pointwise:
    """The weights of records at each input by identity."""

    def __init__(self, points: Points, key: bytes) -> None:
        self._points, self._key = points, key
        self._type = array_type(points.coarse)
        self._tables = [Table(self._type) for _ in range(points.ports)]
        self._pending: list[list[Batch]] = [[] for _ in range(points.ports)]

    def absorb(self, port: int, batch: Batch) -> None:
        """Keep the change until it is asked for."""
        self._pending[port].append(batch.expand(batch.schema.ranged).consolidate())

    def emit(self) -> Batch:
        """How the output moved with the pending changes."""
        points = self._points
        changes = [Batch.concat(pending, points.schema).consolidate() for pending in self._pending]
        self._pending = [[] for _ in changes]
        found = [identities(change.frame, points.schema, self._key) for change in changes]
        ids = np.concatenate(found)
        rows, ids, _ = combine(ids, np.ones(len(ids), np.int64))
        before, after = [], []
        for table, own, change in zip(self._tables, found, changes, strict=True):
            moved = Table(self._type)
            moved.add(*combine(own, change.weights)[1:])
            before.append(table.lookup(ids))
            after.append(before[-1] + moved.lookup(ids))
            table.add(*moved.items())
        weight = points.rule(after, ids) - points.rule(before, ids)
        alive = np.flatnonzero(weight)
        records = pl.concat([change.frame.select(points.keep) for change in changes])[rows[alive]]
        return Batch(
            records.with_columns(weight_series(weight[alive], points.lattice).alias(WEIGHT)),
            points.schema.select(points.keep),
        )
