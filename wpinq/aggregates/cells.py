"""Cells: on which point of a declared grid each record's number lies."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import polars as pl

from wpinq.aggregates.scale import Scale
from wpinq.functions.covering import SHOWN
from wpinq.plan.node import Record, Shape, Stateless, Unary, Weighted
from wpinq.records.batch import WEIGHT, Batch
from wpinq.records.schema import Column, Kind, Schema


@dataclass(frozen=True, eq=False)
class Cells(Unary):
    """Each record as its group and the nearest point of the grid.

    Weights:    out[g, j] = sum of in[x] over the records x of group g whose number is nearest to point j
    Stability:  1; each record goes to one place, or is dropped where it has no number.
    """

    by: tuple[str, ...]
    scale: Scale
    call: str = field(metadata=SHOWN)

    @cached_property
    def schema(self) -> Schema:
        """The group and the point."""
        columns = self.source.schema.expanded()
        groups = tuple(columns[name] for name in self.by)
        return Schema((*groups, Column(Schema(groups).fresh("cell") if groups else "cell", Kind.INT)))

    @property
    def title(self) -> str:
        """How `explain` shows it."""
        return f"{self.call} by {', '.join(self.by)}" if self.by else self.call

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """Groups and numbers."""
        return (frozenset((*self.by, self.scale.column)),)

    def lower(self, needed: frozenset[str]) -> Shape:
        """Each record by itself."""
        return Stateless(self._apply)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Record by record."""
        out: dict[Record, Fraction] = {}
        for record, weight in inputs[0].items():
            values = dict(zip(self.source.schema.names, record, strict=True))
            cell = self.scale.steps_of(values[self.scale.column])
            if cell is not None:
                key = (*(values[name] for name in self.by), cell)
                out[key] = out.get(key, Fraction(0)) + weight
        return out

    def _apply(self, batch: Batch) -> Batch:
        batch = batch.select({*self.by, self.scale.column})
        batch = batch.expand(batch.schema.ranged)
        cell = self.scale.steps().alias("\0cell")
        frame = batch.frame.with_columns(cell).filter(pl.col("\0cell").is_not_null())
        found = frame.select(*self.by, pl.col("\0cell").alias(self.schema.names[-1]), WEIGHT)
        return Batch(found, self.schema).consolidate()
