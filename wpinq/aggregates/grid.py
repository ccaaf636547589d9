"""Cells: replace each record's number by the nearest point of a declared grid, or by the bucket that holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import polars as pl

from wpinq.aggregates.scale import Steps
from wpinq.core.functions.covering import SHOWN
from wpinq.core.plan.forms import Linear
from wpinq.core.plan.node import Record
from wpinq.core.records.batch import END, WEIGHT, Batch
from wpinq.core.records.schema import Column, Kind, Schema


@dataclass(frozen=True, eq=False)
class Cells(Linear):
    """Each record as its group and the nearest point of the grid, or the bucket that holds it.

    Weights:    out[g, j] = sum of in[x] over the records x of group g whose number is nearest to j, or in bucket j
    Stability:  1; each record goes to one place, or is dropped where it has no number.
    """

    by: tuple[str, ...]
    scale: Steps
    call: str = field(metadata=SHOWN)

    @cached_property
    def schema(self) -> Schema:
        """The group and the point."""
        columns = self.source.schema.expanded()
        groups = tuple(columns[name] for name in self.by)
        return Schema((*groups, Column(Schema(groups).fresh("cell") if groups else "cell", Kind.INT)))

    @property
    def local(self) -> Mapping[str, str]:
        """The groups."""
        return {name: name for name in self.by}

    @property
    def title(self) -> str:
        """The aggregate, and its groups."""
        return f"{self.call} by {', '.join(self.by)}" if self.by else self.call

    @property
    def bias(self) -> str:
        """What is clamped."""
        return self.scale.bias

    @property
    def reads(self) -> tuple[str, ...]:
        """Groups and numbers."""
        return (*self.by, self.scale.column)

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        """The cell of its number."""
        values = dict(zip(self.source.schema.names, record, strict=True))
        cell = self.scale.steps_of(values[self.scale.column])
        return [] if cell is None else [((*(values[name] for name in self.by), cell), Fraction(1))]

    def apply(self, batch: Batch) -> Batch:
        """Row by row."""
        cell = self.scale.steps().alias("\0cell")
        frame = batch.frame.with_columns(cell).filter(pl.col("\0cell").is_not_null())
        result = frame.select(*self.by, pl.col("\0cell").alias(self.schema.names[-1]), WEIGHT)
        return Batch(result, self.schema).consolidate()


@dataclass(frozen=True, eq=False)
class FineCells(Cells):
    """The points of a grid of millions, without groups: they are held as steps, which are found by their numbers."""

    @cached_property
    def schema(self) -> Schema:
        """The point."""
        return Schema((Column("cell", Kind.INT, ranged=True),))

    def apply(self, batch: Batch) -> Batch:
        """Row by row."""
        weighed = batch.frame.select(self.scale.steps().alias("cell"), WEIGHT).filter(pl.col("cell").is_not_null())
        return Batch(weighed.with_columns((pl.col("cell") + 1).alias(f"{END}cell")), self.schema)
