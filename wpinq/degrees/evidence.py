"""What a fit was made from: released numbers, and what they say about a staircase.

Two kinds: `Curves`, a noisy CDF and a noisy sequence, and `Cornered`, the measured corner. Both give posterior
quantiles as whole staircases, and sums of bins that are free of any prior: true value plus noise of known scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.degrees.corridor import Ints
from wpinq.degrees.durfee import Corner
from wpinq.degrees.horizon import MOST_COLUMNS, MOST_ROWS, margin
from wpinq.degrees.path import conjugate
from wpinq.degrees.posterior import Posterior
from wpinq.degrees.smooth import SmoothPosterior
from wpinq.degrees.squares import nondecreasing
from wpinq.errors import PlanError
from wpinq.exact import decimal

Staircase: TypeAlias = tuple[Ints, Ints]
"""Heights of the columns and lengths of the rows, without zeros at their ends."""

Noise: TypeAlias = tuple[tuple[float, int], ...]
"""Scales, and how many independent noises of each."""


class Evidence(Protocol):
    """What a fit asks of the released numbers."""

    @property
    def noisy(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Values of columns 1, 2, ... and of ranks 1, 2, ...: truth plus noise, where the bins tell it."""

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """Scales of the noise of the two."""

    def staircases(self, levels: tuple[float, ...]) -> list[Staircase]:
        """Posterior quantiles, cell by cell."""

    def distinct(self) -> tuple[float, Noise]:
        """The number of items, with the noise on it."""

    def largest(self) -> tuple[float, Noise]:
        """The largest multiplicity, with the noise on it."""

    def records(self) -> tuple[float, Noise]:
        """The total, with the noise on it."""


@dataclass(frozen=True, eq=False)
class Curves:
    """A noisy CDF and a noisy sequence, and whether the prior over staircases is the smooth one."""

    noisy: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    scales: tuple[Fraction, Fraction]
    smooth: bool = False

    @cached_property
    def posterior(self) -> Posterior | SmoothPosterior:
        """All staircases, weighed."""
        return (SmoothPosterior if self.smooth else Posterior)(*self.noisy, self.scales)

    def staircases(self, levels: tuple[float, ...]) -> list[Staircase]:
        """Posterior quantiles of the columns."""
        return [self.staircase(heights) for heights in self.posterior.quantiles(levels)]

    def staircase(self, heights: Ints) -> Staircase:
        """Tell fitted heights of the observed columns by rows too.

        Where the horizon cut the columns, the sequence alone says how long the items are that reach its end: isotonic
        regression of its first ranks.
        """
        longer: Ints = np.zeros(0, np.int64)
        if len(heights) >= MOST_COLUMNS:
            near = min(int(heights[-min(margin(self.scales[1]), len(heights))]), len(self.noisy[1]))
            tops = -nondecreasing(-self.noisy[1][:near].astype(np.float64))
            longer = np.rint(np.minimum(tops[tops > len(heights)], 2.0**53)).astype(np.int64)
            heights = np.maximum(heights, len(longer))
        cdf = heights[: int(np.count_nonzero(heights))]
        sequence = conjugate(cdf, int(cdf[:1].sum()))
        sequence[: len(longer)] = longer
        return cdf, sequence

    def distinct(self) -> tuple[float, Noise]:
        """The first column."""
        return float(self.noisy[0][0]), ((float(self.scales[0]), 1),)

    def largest(self) -> tuple[float, Noise]:
        """The first row."""
        return float(self.noisy[1][0]), ((float(self.scales[1]), 1),)

    def records(self) -> tuple[float, Noise]:
        """The columns and rows of the fitted corner's side, less the square that both count."""
        cdf = self.staircases((0.5,))[0][0]
        side = int(np.count_nonzero(cdf > np.arange(len(cdf))))
        columns, rows = (curve[:side] for curve in self.noisy)
        noise = (float(self.scales[0]), len(columns)), (float(self.scales[1]), len(rows))
        return float(columns.sum()) + float(rows.sum()) - side * len(rows), noise

    def __str__(self) -> str:
        return f"scales {decimal(self.scales[0])} and {decimal(self.scales[1])}"


@dataclass(frozen=True, eq=False)
class Cornered:
    """The measured corner: bins of the columns and of the rows, as many of each, with one scale of noise."""

    bins: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    scale: Fraction

    @cached_property
    def corner(self) -> Corner:
        """All staircases, weighed."""
        return Corner(*self.bins, self.scale)

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """One scale for both."""
        return self.scale, self.scale

    @cached_property
    def noisy(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Of the columns and rows that reach beyond the fitted corner; further bins say nothing of their own."""
        side = len(self.corner.quantiles((0.5,))[0][0])
        return self.bins[0][:side] + np.arange(1, side + 1), self.bins[1][:side] + np.arange(side)

    def staircases(self, levels: tuple[float, ...]) -> list[Staircase]:
        """Posterior quantiles of the columns and rows that reach beyond the corner, and by them of all others."""
        pairs = self.corner.quantiles(levels)
        if any(int(heights[:1].sum()) > MOST_ROWS for heights, _ in pairs):
            raise PlanError(f"release(...): there are more than {MOST_ROWS:,} items; coarsen what is counted.")
        return [(whole(*pair, MOST_COLUMNS), whole(*pair[::-1], None)) for pair in pairs]

    def distinct(self) -> tuple[float, Noise]:
        """The first column and the cell on the diagonal before it."""
        return float(self.bins[0][0]) + 1, ((float(self.scale), 1),)

    def largest(self) -> tuple[float, Noise]:
        """The first row."""
        return float(self.bins[1][0]), ((float(self.scale), 1),)

    def records(self) -> tuple[float, Noise]:
        """All bins that may hold more than noise."""
        reach = self.corner.reach
        return float(sum(bins[:reach].sum() for bins in self.bins)), ((float(self.scale), 2 * reach),)

    def __str__(self) -> str:
        return f"one corner, scale {decimal(self.scale)}"


def whole(tall: Ints, long: Ints, most: int | None) -> Ints:
    """Join columns that reach beyond the corner with the columns that its long rows imply, `most` at most.

    >>> whole(np.array([5, 2]), np.array([4, 2]), None).tolist()
    [5, 2, 1, 1]
    """
    length = int(long[:1].sum())
    kept = length if most is None else min(length, most)
    return np.concatenate([tall, conjugate(np.minimum(long, kept), kept)[len(tall) :]])
