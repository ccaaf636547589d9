"""Lengths: people by their number of records, from which bounds on contributions are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import polars as pl

from wpinq.core.operators.contribution.unit_key import ByUnit
from wpinq.core.plan.node import Record, Weighted
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.state.states import State
from wpinq.core.state.table import Table, combine


@dataclass(frozen=True, eq=False)
class Lengths(ByUnit):
    """Each person once, as the first number of a grid that is at least their number of records, or the last number.

    Stability:  a person with all records changes the output by 1: 1 divided by the unit's bound.
    """

    grid: tuple[int, ...]
    shown = "suggest_bound"

    @cached_property
    def schema(self) -> Schema:
        """The place in the grid."""
        return Schema((Column("cell", Kind.INT),))

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """Of a person, who moves the source by the unit's bound."""
        return (1 / self.most,)

    @property
    def moves_at_most(self) -> Mapping[frozenset[str], Fraction]:
        """One person by 1, whatever bounds the records of one."""
        return {frozenset(): Fraction(1)}

    @cached_property
    def gain(self) -> Fraction:
        """There are no more people than records."""
        return self.source.gain

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """The columns that name the unit."""
        return (frozenset(self.unit_key.unit.columns),)

    def state(self, keep: tuple[str, ...], key: bytes) -> State:
        """The number of records of each person."""
        return Counts(self, key)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Person by person."""
        unit_key = self.unit_key
        counts: dict[bytes, int] = {}
        for record, weight in inputs[0].items():
            counts[unit_key.of(record)] = counts.get(unit_key.of(record), 0) + int(weight)
        cells = [
            next((j for j, most in enumerate(self.grid) if n <= most), len(self.grid) - 1) for n in counts.values()
        ]
        return {(cell,): Fraction(cells.count(cell)) for cell in set(cells)}


class Counts:
    """How many records each person has."""

    def __init__(self, plan: Lengths, key: bytes) -> None:
        self._plan, self._unit_key, self._key = plan, plan.unit_key, key
        self._table = Table()
        self._emitted = Batch.empty(plan.schema)

    def absorb(self, port: int, batch: Batch) -> None:
        """Count records."""
        batch = batch.select(self._unit_key.unit.columns).consolidate()
        self._table.add(*combine(self._unit_key.ids(batch.frame, self._key), batch.weights)[1:])

    def emit(self) -> Batch:
        """The people at each place of the grid now, less those that were there before."""
        _, counts = self._table.items()
        cells = np.minimum(np.searchsorted(self._plan.grid, counts), len(self._plan.grid) - 1)
        frame = pl.DataFrame({"cell": cells.astype(np.int64), WEIGHT: np.ones(len(cells), np.int64)})
        before, self._emitted = self._emitted, Batch(frame, self._plan.schema).consolidate()
        return Batch.concat([self._emitted, before.scale(-1)], self._plan.schema).consolidate()
