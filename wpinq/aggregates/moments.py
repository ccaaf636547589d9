"""Moments: the count of records, the sum and the sum of squares of their numbers, as one weighted collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import polars as pl

from wpinq.aggregates.scale import FINE, Cells, Scale
from wpinq.core.plan.forms import Linear
from wpinq.core.plan.node import Record
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.fields import SHOWN
from wpinq.core.records.schema import Column, Kind, Schema


@dataclass(frozen=True, eq=False)
class Moments(Linear):
    """For each record one record (group, p) for each moment p, weighted by a function of its number y in [-1, 1].

    Weights:    out[g, p] = sum over the records x of group g of in[x] * f_p(y(x)), with f_0 = 1, f_1 = y and
                f_2 = 2 y^2 - 1, rounded to the resolution for each record
    Stability:  the number of moments, since no |f_p| is above 1.

    Attributes:
        by: The columns that make a group.
        scale: The numbers; y is its steps over the largest of them. None where records are only counted.
        powers: The moments: some of 0, 1, 2.
        call: The aggregate, for people.
    """

    by: tuple[str, ...]
    scale: Scale | None
    powers: tuple[int, ...]
    call: str = field(metadata=SHOWN)

    @cached_property
    def schema(self) -> Schema:
        """The group, and which moment it is."""
        columns = self.source.schema.expanded()
        groups = tuple(columns[name] for name in self.by)
        return Schema((*groups, Column(Schema(groups).fresh("moment") if groups else "moment", Kind.INT)))

    @property
    def reach(self) -> int:
        """The largest number of steps, which is a y of 1."""
        return max(abs(self.scale.low), abs(self.scale.high), 1) if self.scale else 1

    @property
    def unit(self) -> float | None:
        """What a weight of 1 stands for in the answer, where that is one moment times it; None where it is another."""
        if self.powers == (1,) and self.scale is not None:
            return float(self.scale.spacing) * self.reach
        return 1.0 if self.powers == (0,) else None

    @property
    def fine(self) -> int:
        """Steps of a weight of 1."""
        return self.reach * max(1, FINE // self.reach) if 2 in self.powers else self.reach

    @cached_property
    def resolution(self) -> int:
        """That of its input, and the steps of the numbers."""
        return self.source.resolution * self.fine

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """One for each moment."""
        return (Fraction(len(self.powers)),)

    @property
    def local(self) -> Mapping[str, str]:
        """The groups."""
        return {name: name for name in self.by}

    @property
    def slices(self) -> Mapping[str, Fraction]:
        """One moment alone moves as far as its records."""
        return {self.schema.names[-1]: Fraction(1)}

    @property
    def title(self) -> str:
        """The aggregate, and its groups; buckets of numbers are what a histogram is of."""
        by = self.by[:-1] if isinstance(self.source, Cells) else self.by
        return f"{self.call} by {', '.join(by)}" if by else self.call

    @property
    def bias(self) -> str:
        """What is clamped."""
        return self.scale.bias if self.scale else ""

    @property
    def reads(self) -> tuple[str, ...]:
        """Groups and numbers; a record without either still counts."""
        return (*self.by, *([self.scale.column] if self.scale else [])) or self.source.schema.names[:1]

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        """Its moments."""
        values = dict(zip(self.source.schema.names, record, strict=True))
        steps = self.scale.steps_of(values[self.scale.column]) if self.scale else 0
        if steps is None:
            return []
        group = [values[name] for name in self.schema.names[:-1]]
        return [((*group, power), Fraction(self._units(steps, power), self.fine)) for power in self.powers]

    def _units(self, steps: int, power: int) -> int:
        """f_p in steps of the resolution."""
        if power == 0:
            return self.fine
        if power == 1:
            return steps * (self.fine // self.reach)
        square = self.reach**2
        return ((2 * steps**2 - square) * 2 * self.fine + square) // (2 * square)

    def apply(self, batch: Batch) -> Batch:
        """Row by row."""
        steps = self.scale.steps() if self.scale else pl.lit(0, pl.Int64)
        frame = batch.frame.with_columns(steps.alias("\0steps")).filter(pl.col("\0steps").is_not_null())
        groups, label = self.schema.names[:-1], self.schema.names[-1]
        parts = [
            frame.select(*groups, pl.lit(power, pl.Int64).alias(label), self._weight(power).alias(WEIGHT))
            for power in self.powers
        ]
        return Batch(pl.concat(parts).filter(pl.col(WEIGHT) != 0), self.schema).consolidate()

    def _weight(self, power: int) -> pl.Expr:
        """The weights of the rows; what is multiplied with them is below 2^62."""
        steps, square = pl.col("\0steps"), self.reach**2
        units: pl.Expr = pl.lit(self.fine, pl.Int64)
        if power == 1:
            units = steps * (self.fine // self.reach)
        if power == 2:
            units = ((2 * steps * steps - square) * (2 * self.fine) + square) // (2 * square)
        kind = self.held.column
        return pl.col(WEIGHT).cast(kind) * units.cast(kind)
