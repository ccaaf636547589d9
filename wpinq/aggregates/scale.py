"""A numeric column on a declared grid, from which every aggregate of numbers is computed.

A record with a null or NaN is left out of the aggregate; an infinity is clamped like any other number beyond the
bounds.

`Cells` replaces each record's number by the nearest point of the grid, or by the bucket that holds it.

`Magnitudes` is a grid for numbers of which no bounds are known: as fine near every size as floats are, and the same for
all data. Sizes go from 2^-30 to 2^63. Each power of two is cut into 2^`MAGNITUDE_BITS` parts, on both sides of zero, so
a number is known to nine digits, and as many points of the grid lie between 1 and 2 as between a million and two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wpinq.core.plan.forms import Linear
from wpinq.core.plan.node import Node, Record
from wpinq.core.records.batch import END, WEIGHT, Batch
from wpinq.core.records.fields import SHOWN
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact, positive

Bounds: TypeAlias = "tuple[Amount, Amount]"
"""The least and the largest number, which do not depend on the data."""

FINE = 1 << 20
"""Steps within the bounds, by default and at the most."""

FARTHEST = 1 << 52
"""Steps from the centre to the furthest bound: a double holds them, and the halves between them, exactly."""

LARGEST = Fraction(10**100)
"""No bound is larger: sums of such numbers and their squares still are floats."""


class Steps(Protocol):
    """The numbers of a column as whole numbers: nearest points of a grid, or buckets between edges."""

    @property
    def column(self) -> str:
        """Its name."""
        ...

    @property
    def bias(self) -> str:
        """What is clamped or left out, as a clause."""
        ...

    def steps(self) -> pl.Expr:
        """The whole number of each row, or null where it has none."""
        ...

    def steps_of(self, value: object) -> int | None:
        """The same for one value."""
        ...


@dataclass(frozen=True)
class Scale:
    """Numbers of a column, clamped to bounds and rounded to whole steps from a centre.

    Attributes:
        column: Its name.
        centre: The number that is 0 steps.
        spacing: A step.
        low: The least number of steps.
        high: The largest.

    Raises:
        PlanError: There are more steps than can be computed with. Refused here, whatever the records are: beyond
            2^53 a clamped number could pass its bound, and beyond 2^63 the run would fail where there is a number.
    """

    column: str
    centre: Fraction
    spacing: Fraction
    low: int
    high: int

    def __post_init__(self) -> None:
        if max(abs(self.low), abs(self.high)) > FARTHEST:
            raise PlanError(
                f"bounds of {self.column!r}: they are more than 2^52 steps of {decimal(self.spacing)} from "
                f"{decimal(self.centre)}; give a wider step=, or subtract a number from the column with map first."
            )

    @property
    def bias(self) -> str:
        """The bias from clamping numbers beyond the bounds, as a clause."""
        low, high = (decimal(self.centre + self.spacing * end) for end in (self.low, self.high))
        return f"{self.column} is clamped to {low}..{high}"

    def steps(self) -> pl.Expr:
        """Whole steps, or null where there is no number."""
        number = pl.col(self.column).cast(pl.Float64).fill_nan(None)
        steps = ((number - float(self.centre)) / float(self.spacing) + 0.5).floor()
        return steps.clip(self.low, self.high).cast(pl.Int64)

    def steps_of(self, value: object) -> int | None:
        """The same for one value."""
        if not isinstance(value, (int, float)) or math.isnan(value):
            return None
        steps = (float(value) - float(self.centre)) / float(self.spacing) + 0.5
        return math.floor(min(max(steps, self.low), self.high))

    def number(self, steps: float) -> float:
        """Steps as a number of the column."""
        return float(self.centre) + float(self.spacing) * steps

    def points(self, steps: Iterable[int]) -> list[float]:
        """The numbers of some steps, each the nearest float: 0.3, and not three times 0.1.

        >>> Scale("x", Fraction(0), Fraction(1, 10), 1, 4).points([1, 2, 3])
        [0.1, 0.2, 0.3]
        """
        parts = math.lcm(self.centre.denominator, self.spacing.denominator)
        first, each = int(self.centre * parts), int(self.spacing * parts)
        return [(first + each * step) / parts for step in steps]


@dataclass(frozen=True)
class Grid:
    """The largest number of steps between the bounds, and the default number."""

    most: int = FINE
    usual: int = FINE


def ends(bounds: Bounds, call: str) -> tuple[Fraction, Fraction]:
    """Read bounds.

    Raises:
        PlanError: They are not two numbers that rise.
        ExactnessError: One is no finite number.
    """
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise PlanError(f"{call}: bounds= are two numbers that do not depend on the data, for example bounds=(0, 100).")
    low, high = (exact(bound, f"{call}(bounds=...)") for bound in bounds)
    if low >= high:
        raise PlanError(f"{call}: the lower of the bounds is not below the upper one.")
    if max(abs(low), abs(high)) > LARGEST or high - low < 1 / LARGEST:
        raise PlanError(f"{call}: the bounds are beyond 10^100, or nearer to each other than 10^-100.")
    return low, high


def limits(
    node: Node, column: str, bounds: Bounds, step: Amount | None, call: str, *, grid: Grid = Grid()
) -> tuple[Fraction, Fraction, Fraction]:  # fmt: skip
    """Read bounds and a step; by default 1 for integers within narrow bounds, else a share of what lies between.

    Raises:
        PlanError: The column holds no numbers, or bounds and step make no grid.
        ExactnessError: A bound or the step is no finite number.
    """
    kind = refuse_no_numbers(node, column, call)
    low, high = ends(bounds, call)
    whole = kind is not Kind.FLOAT and high - low <= grid.most and (low.denominator, high.denominator) == (1, 1)
    result = Fraction(1) if whole else (high - low) / grid.usual
    if step is not None:
        result = positive(step, f"{call}(step=...)")
    count = (high - low) / result
    if count.denominator != 1 or count > grid.most:
        raise PlanError(f"{call}: step= does not divide what lies between the bounds into at most {grid.most} steps.")
    return low, high, result


def refuse_no_numbers(node: Node, column: str, call: str) -> Kind:
    """The type of a column of numbers.

    Raises:
        PlanError: There is no such column, or it holds no numbers.
    """
    kind = node.schema[column].kind
    if kind not in (Kind.INT, Kind.FLOAT, Kind.BOOL):
        plain = kind in (Kind.TEXT, Kind.ANY)
        hint = f"declare it, columns={{{column!r}: float}}" if plain else "compute a number from it first"
        raise PlanError(f"{call}: column {column!r} is of the type {kind.value}; {hint}.")
    return kind


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


LEAST_POWER, LARGEST_POWER = -30, 63
"""Smaller numbers are taken for zero, and larger ones clamped."""
MAGNITUDE_BITS = 30
TOP = (LARGEST_POWER - LEAST_POWER << MAGNITUDE_BITS) + 1
"""The point of the largest number, counted from that of zero."""
SIZE = 2 * TOP + 1
"""How many points there are."""


@dataclass(frozen=True)
class Magnitudes:
    """Numbers of a column as points of this grid.

    Attributes:
        column: Its name.
    """

    column: str

    @property
    def bias(self) -> str:
        """What is clamped, as a clause."""
        return f"{self.column} is clamped to -2^{LARGEST_POWER}..2^{LARGEST_POWER}"

    def steps(self) -> pl.Expr:
        """The point of each row, or null where there is no number."""
        number = pl.col(self.column).cast(pl.Float64).fill_nan(None)
        return number.map_batches(_points_of, return_dtype=pl.Int64, is_elementwise=True)

    def steps_of(self, value: object) -> int | None:
        """The same for one value."""
        if not isinstance(value, (int, float)) or math.isnan(value):
            return None
        return int(points(np.array([float(value)]))[0])

    def points(self, positions: Sequence[int]) -> list[float]:
        """The numbers of some points: of those in a part, the one that is nearest to zero."""
        return [_number(point - TOP) for point in positions]

    def ends(self, points: Sequence[int], *, upper: bool) -> list[float]:
        """Below or above all numbers that are at some points."""
        outward = 1 if upper else -1
        outer = [point + outward if (point - TOP) * outward >= 0 else point for point in points]
        return self.points([min(max(point, 0), 2 * TOP) for point in outer])


def points(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """The points of numbers; every operation on floats is exact."""
    mantissa, power = np.frexp(np.where(np.isfinite(numbers), np.abs(numbers), 2.0**LARGEST_POWER))
    part = ((2 * mantissa - 1) * 2.0**MAGNITUDE_BITS).astype(np.int64)
    size = 1 + ((power.astype(np.int64) - 1 - LEAST_POWER) << MAGNITUDE_BITS) + part
    size = np.where(np.abs(numbers) < 2.0**LEAST_POWER, 0, np.minimum(size, TOP))
    result: NDArray[np.int64] = TOP + np.where(numbers < 0, -size, size)
    return result


def _points_of(series: pl.Series) -> pl.Series:
    known = series.is_not_null()
    values = pl.Series(series.name, points(series.fill_null(0.0).to_numpy()))
    return pl.select(pl.when(known).then(values).otherwise(None).alias(series.name)).to_series()


def _number(point: int) -> float:
    if not point:
        return 0.0
    power, part = divmod(abs(point) - 1, 1 << MAGNITUDE_BITS)
    size = float(np.ldexp(1 + part / 2**MAGNITUDE_BITS, power + LEAST_POWER))
    return size if point > 0 else -size
