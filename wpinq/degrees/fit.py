"""A fit: the degree distribution that two noisy curves agree on, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wpinq.degrees.corridor import Ints
from wpinq.degrees.horizon import MOST_COLUMNS, margin
from wpinq.degrees.path import conjugate
from wpinq.degrees.posterior import quantiles
from wpinq.degrees.squares import nondecreasing
from wpinq.errors import PlanError
from wpinq.exact import decimal


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A degree distribution, fitted to released numbers: post-processing, so looking at it costs nothing.

    Attributes:
        cdf: Entry k - 1 is the number of items of multiplicity at least k. Nonincreasing, above zero.
        sequence: Entry r - 1 is the multiplicity of the r-th largest item. Nonincreasing, above zero. The two are each
            other's conjugate, unless an item is longer than the observed columns: `cdf` then ends with those.
        noisy_cdf: The observed values of columns 1, 2, ...
        noisy_sequence: The observed values of ranks 1, 2, ...
        scales: Scales of the noise of the CDF and of the sequence.
        method: How it was fitted: `"posterior"`, `"path"` or `"squares"`.
    """

    cdf: Ints
    sequence: Ints
    noisy_cdf: npt.NDArray[Any]
    noisy_sequence: npt.NDArray[Any]
    scales: tuple[Fraction, Fraction]
    method: str

    @property
    def distinct(self) -> int:
        """How many items have multiplicity at least 1."""
        return len(self.sequence)

    @property
    def largest(self) -> int:
        """The multiplicity of the largest item, 0 when there is none."""
        return int(self.sequence[:1].sum())

    @property
    def records(self) -> int:
        """The total of all multiplicities."""
        return int(self.sequence.sum())

    def quantile(self, q: float) -> int:
        """Return the least multiplicity that at least the share `q` of the items do not exceed, 0 without items.

        Raises:
            PlanError: `q` is not between 0 and 1.
        """
        if not 0 <= q <= 1:
            raise PlanError(f"fit.quantile({q!r}): a quantile is asked for as a number between 0 and 1.")
        if self.distinct == 0:
            return 0
        rank = max(int(np.ceil(q * self.distinct)), 1)
        return int(self.sequence[self.distinct - rank])

    def band(self, level: float = 0.9) -> tuple[Ints, Ints]:
        """Return a pointwise credible band of the CDF: for each column its least and greatest plausible value.

        It is Bayesian, under the prior that all staircases are equally likely, whatever the method of the fit. Its
        frequentist coverage at 0.9 was measured at 88% to 97% on heavy-tailed and on lumpy data, more where the values
        are near zero, and is not guaranteed. It speaks of the noise alone: not of records that were bounded or dropped.

        Args:
            level: Posterior probability of each column's interval, between 0 and 1.

        Returns:
            Low and high, as long as the observed columns, so it may reach beyond `cdf`.

        Raises:
            PlanError: `level` is not between 0 and 1.

        Source: privacy rule 40.
        """
        if not 0 < level < 1:
            raise PlanError(f"fit.band({level!r}): the level is a probability between 0 and 1, such as 0.9.")
        low, high = quantiles(self.noisy_cdf, self.noisy_sequence, self.scales, ((1 - level) / 2, (1 + level) / 2))
        return low, high

    def plot(self, path: str | Path, truth: npt.ArrayLike | None = None) -> None:
        """Draw noisy values, the fitted staircase and its band, and the truth where given (see `plot.plot_fit`)."""
        from wpinq.degrees.plot import plot_fit

        plot_fit(self, path, truth)

    def synthesize(self, path: str | Path | None = None, users: Any = None, **options: Any) -> Any:
        """Write a synthetic data set with exactly the fitted multiplicities (see `synthesize.synthesize`)."""
        from wpinq.degrees.synthesize import synthesize

        return synthesize(self, path, users=users, **options)

    def __repr__(self) -> str:
        cdf, sequence = (decimal(scale) for scale in self.scales)
        return (
            f"<Fit of {self.distinct:,} items, {self.records:,} records, largest {self.largest:,}; "
            f"method {self.method!r}, scales {cdf} and {sequence}>"
        )


def staircase(
    heights: Ints, noisy: tuple[npt.NDArray[Any], npt.NDArray[Any]], scales: tuple[Fraction, Fraction], method: str
) -> Fit:
    """Make a fit of fitted column heights, one for each observed column.

    Where the horizon cut the columns, the sequence alone says how long the items are that reach its end: isotonic
    regression of its first ranks.
    """
    longer: Ints = np.zeros(0, np.int64)
    if len(heights) >= MOST_COLUMNS:
        near = min(int(heights[-min(margin(scales[1]), len(heights))]), len(noisy[1]))
        tops = -nondecreasing(-noisy[1][:near].astype(np.float64))
        longer = np.rint(np.minimum(tops[tops > len(heights)], 2.0**53)).astype(np.int64)
        heights = np.maximum(heights, len(longer))
    cdf = heights[: int(np.count_nonzero(heights))]
    sequence = conjugate(cdf, int(cdf[:1].sum()))
    sequence[: len(longer)] = longer
    return Fit(cdf, sequence, *noisy, scales, method)
