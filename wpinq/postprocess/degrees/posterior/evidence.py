"""The evidence of a fit: released numbers, and the posterior quantiles of staircases that follow from them.

Two kinds: `Curves`, a noisy CDF and a noisy sequence, and `Cornered`, the measured corner. Both give posterior
quantiles as whole staircases, and sums of bins that are free of any prior: true value plus noise of known scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.errors import PlanError
from wpinq.exact import decimal
from wpinq.postprocess.degrees.path import Ints, conjugate
from wpinq.postprocess.degrees.posterior.curves import Posterior
from wpinq.postprocess.degrees.posterior.diagonal import Corner
from wpinq.postprocess.degrees.posterior.horizon import MOST_COLUMNS, MOST_ROWS
from wpinq.postprocess.degrees.posterior.law import REACH, Law, NoiseTerm
from wpinq.postprocess.degrees.posterior.marginals import NEVER, Chain

if TYPE_CHECKING:
    from wpinq.postprocess.degrees.posterior.smooth import SmoothPosterior

Staircase: TypeAlias = tuple[Ints, Ints]
"""Heights of the columns and lengths of the rows, without zeros at their ends."""

NoiseTerms: TypeAlias = tuple[NoiseTerm, ...]
"""Independent noises."""


class Evidence(Protocol):
    """The interface between a fit and the released numbers."""

    @property
    def noisy(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Values of columns 1, 2, ... and of ranks 1, 2, ...: truth plus noise, where the bins tell it."""

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """Scales of the noise of the two."""

    def staircases(self, levels: tuple[float, ...]) -> list[Staircase]:
        """Posterior quantiles, cell by cell."""

    def drawn(self, rng: np.random.Generator) -> Staircase:
        """One staircase, with its posterior probability."""

    def expected(self) -> npt.NDArray[np.float64]:
        """The posterior mean height of each column."""

    def distinct(self) -> tuple[float, NoiseTerms]:
        """The number of items, with the noise on it."""

    def largest(self) -> tuple[float, NoiseTerms]:
        """The largest multiplicity, with the noise on it."""

    def records(self) -> tuple[float, NoiseTerms]:
        """The total, with the noise on it."""

    def sums(self) -> dict[str, float]:
        """Unbiased estimates, by name, from sums of bins, where they are about as accurate as the posterior."""


@dataclass(frozen=True, eq=False)
class Curves:
    """A noisy CDF and a noisy sequence, and whether the prior over staircases is the smooth one."""

    noisy: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    scales: tuple[Fraction, Fraction]
    smooth: bool = False

    @cached_property
    def posterior(self) -> Posterior | SmoothPosterior:
        """All staircases, weighed."""
        if self.smooth:
            from wpinq.postprocess.degrees.posterior.smooth import SmoothPosterior  # few ask for it

            return SmoothPosterior(*self.noisy, self.scales)
        return Posterior(*self.noisy, self.scales)

    def staircases(self, levels: tuple[float, ...]) -> list[Staircase]:
        """Posterior quantiles of the columns given, and of the rows that reach beyond them."""
        heights = self.posterior.bands(levels)
        return [
            with_rows(*pair) for pair in zip(heights, self._lengths(int(heights[:, -1].max()), levels), strict=True)
        ]

    def drawn(self, rng: np.random.Generator) -> Staircase:
        """One staircase of the columns given, with the median rows beyond them."""
        return self.staircase(self._uniform("draw").drawn(len(self.noisy[0]), rng))

    def expected(self) -> npt.NDArray[np.float64]:
        """The posterior mean height of each column given."""
        ends = np.append(np.full(len(self.noisy[0]), NEVER), 0.0)
        return np.minimum.accumulate(self._uniform("frequencies").marginals(ends).expected())

    def _uniform(self, call: str) -> Chain:
        """The posterior under the uniform prior."""
        if not isinstance(self.posterior, Posterior):
            raise PlanError(f"fit.{call}(): prior='smooth' has no draws; use prior='uniform', or degrees.release.")
        return self.posterior.chain

    def staircase(self, heights: Ints) -> Staircase:
        """The staircase of a path, also by rows; beyond the observed columns rows are posterior medians."""
        cut = len(heights) >= MOST_COLUMNS
        return with_rows(heights, self._lengths(int(heights[-1]), (0.5,))[0] if cut else heights[:0])

    def _lengths(self, last: int, levels: tuple[float, ...]) -> Ints:
        """Posterior quantiles of the rows that may reach beyond the columns, of which the last one is `last` high.

        If some plausibly do, these are the quantiles of the same staircases, by rows.
        """
        columns, rows = self.noisy
        rows = rows[: last + math.ceil(REACH * self.scales[0])]
        if float(rows.max()) + REACH * self.scales[1] < len(columns):
            return np.zeros((len(levels), 0), np.int64)
        return Posterior(rows, columns, self.scales[::-1]).bands(levels)

    def distinct(self) -> tuple[float, NoiseTerms]:
        """The first column."""
        return float(self.noisy[0][0]), (NoiseTerm(float(self.scales[0]), 1),)

    def largest(self) -> tuple[float, NoiseTerms]:
        """The first row."""
        return float(self.noisy[1][0]), (NoiseTerm(float(self.scales[1]), 1),)

    def records(self) -> tuple[float, NoiseTerms]:
        """The columns and rows of the fitted corner's side, one at least, less the square that both count."""
        cdf, rows = self.staircases((0.5,))[0]
        side = max(int(np.count_nonzero(cdf > np.arange(len(cdf)))), 1)
        # a side that was given too short for the square leaves more to the other
        tall = min(len(self.noisy[0]), max(side, int(np.count_nonzero(cdf > len(self.noisy[1])))))
        long = min(len(self.noisy[1]), max(side, int(np.count_nonzero(rows > len(self.noisy[0])))))
        columns, rows = self.noisy[0][:tall], self.noisy[1][:long]
        noise = NoiseTerm(float(self.scales[0]), len(columns)), NoiseTerm(float(self.scales[1]), len(rows))
        return float(columns.sum()) + float(rows.sum()) - tall * long, noise

    def sums(self) -> dict[str, float]:
        """The first column and row; a total of two whole curves has half as much noise again as the posterior's."""
        return {"distinct": self.distinct()[0], "largest": self.largest()[0]}

    def __str__(self) -> str:
        return f"scales {decimal(self.scales[0])} and {decimal(self.scales[1])}"


@dataclass(frozen=True, eq=False)
class Cornered:
    """The measured corner: bins of the columns and of the rows, as many of each, with noise of one law."""

    bins: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    scale: Fraction
    gaussian: bool = False

    @property
    def law(self) -> Law:
        """That of the noise on each bin."""
        return Law(float(self.scale), self.gaussian)

    @cached_property
    def corner(self) -> Corner:
        """All staircases, weighed."""
        return Corner(*self.bins, self.law)

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """One scale for both."""
        return self.scale, self.scale

    @cached_property
    def noisy(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Of the columns and rows that reach beyond the fitted corner; further bins hold noise only."""
        side = len(self.corner.quantiles((0.5,))[0][0])
        return self.bins[0][:side] + np.arange(1, side + 1), self.bins[1][:side] + np.arange(side)

    def staircases(self, levels: tuple[float, ...]) -> list[Staircase]:
        """Posterior quantiles of the columns and rows that reach beyond the corner, and by them of all others."""
        pairs = self.corner.quantiles(levels)
        if any(int(heights[:1].sum()) > MOST_ROWS for heights, _ in pairs):
            raise PlanError(f"release(...): there are more than {MOST_ROWS:,} items; coarsen what is counted.")
        return [(whole(*pair, MOST_COLUMNS), whole(*pair[::-1], None)) for pair in pairs]

    def drawn(self, rng: np.random.Generator) -> Staircase:
        """One staircase, under the chosen prior."""
        pair = self.corner.weighed(self.corner.chosen).drawn(rng)
        return whole(*pair, MOST_COLUMNS), whole(*pair[::-1], None)

    def expected(self) -> npt.NDArray[np.float64]:
        """The posterior mean height of each column, under the chosen prior."""
        return self.corner.weighed(self.corner.chosen).expected()

    def distinct(self) -> tuple[float, NoiseTerms]:
        """The first column and the cell on the diagonal before it."""
        return float(self.bins[0][0]) + 1, (self.law.of(1),)

    def largest(self) -> tuple[float, NoiseTerms]:
        """The first row."""
        return float(self.bins[1][0]), (self.law.of(1),)

    def records(self) -> tuple[float, NoiseTerms]:
        """All bins that may hold more than noise."""
        reach = self.corner.reach
        return float(sum(bins[:reach].sum() for bins in self.bins)), (self.law.of(2 * reach),)

    def sums(self) -> dict[str, float]:
        """All three; of the records the bins of the median corner."""
        side = len(self.corner.quantiles((0.5,))[0][0])
        records = float(sum(bins[:side].sum() for bins in self.bins))
        return {"distinct": self.distinct()[0], "largest": self.largest()[0], "records": records}

    def __str__(self) -> str:
        return f"one corner, {'standard deviation' if self.gaussian else 'scale'} {decimal(self.scale)}"


def with_rows(heights: Ints, lengths: Ints) -> Staircase:
    """Join columns with the rows that reach beyond them; cells that neither covers stay empty.

    >>> [curve.tolist() for curve in with_rows(np.array([3, 2]), np.array([4, 3]))]
    [[3, 2, 2, 1], [4, 3, 1]]
    """
    beyond = lengths[lengths > len(heights)]
    heights = np.maximum(heights, len(beyond))
    if heights[0] > MOST_ROWS:
        raise PlanError(f"reconcile(...): there are more than {MOST_ROWS:,} items; coarsen what is counted.")
    length = min(int(beyond[:1].sum()), max(len(heights), MOST_COLUMNS))
    cdf = np.concatenate([heights, conjugate(np.minimum(beyond, length), length)[len(heights) :]])
    sequence = conjugate(heights, int(heights[0]))
    sequence[: len(beyond)] = beyond
    return cdf[: int(np.count_nonzero(cdf))], sequence


def whole(tall: Ints, long: Ints, most: int | None) -> Ints:
    """Join columns that reach beyond the corner with the columns that its long rows imply, `most` at most.

    >>> whole(np.array([5, 2]), np.array([4, 2]), None).tolist()
    [5, 2, 1, 1]
    """
    length = int(long[:1].sum())
    reach = length if most is None else min(length, most)
    return np.concatenate([tall, conjugate(np.minimum(long, reach), reach)[len(tall) :]])
