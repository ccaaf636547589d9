"""A grid for numbers of which no bounds are known: as fine near every size as floats are, and the same for all data.

Sizes go from 2^-30 to 2^63. Each power of two is cut into 2^`FINE` parts, on both sides of zero, so a number is known
to nine digits, and as many points of the grid lie between 1 and 2 as between a million and two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

LEAST_POWER, LARGEST_POWER = -30, 63
"""Smaller numbers are taken for zero, and larger ones clamped."""
FINE = 30
TOP = (LARGEST_POWER - LEAST_POWER << FINE) + 1
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
    part = ((2 * mantissa - 1) * 2.0**FINE).astype(np.int64)
    size = 1 + ((power.astype(np.int64) - 1 - LEAST_POWER) << FINE) + part
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
    power, part = divmod(abs(point) - 1, 1 << FINE)
    size = float(np.ldexp(1 + part / 2**FINE, power + LEAST_POWER))
    return size if point > 0 else -size
