"""A smooth prior over staircases: neighbouring multiplicities are about equally frequent.

The gap between two columns, which is the number of items of one multiplicity, is negative binomial: its mean is a
smooth function of the multiplicity, which it leaves by 15% (standard deviation) beyond Poisson noise. The logarithm of
the mean is piecewise linear in the logarithm of the multiplicity, and fitted to the released numbers by expectation
maximization: the slope of such a gap's likelihood is linear in the gap, so posterior mean gaps are all that a fit
needs. The last column's height is uniform. `reconcile` says what it costs where the truth is not smooth.

One pass forward and one backward give each column's exact distribution; as a step's weight depends on the gap alone, it
is a correlation, of about the band's width squared multiplications.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wpinq.errors import PlanError
from wpinq.postprocess.degrees.path import Ints
from wpinq.postprocess.degrees.posterior.curves import SHORT, Posterior, weigh
from wpinq.postprocess.degrees.posterior.marginals import Floats, begins

SPREAD = 0.15
SIZE = SPREAD**-2
ROUNDS = 5
NEWTON = 4
ROUGHNESS = 0.6
MOST_PAIRS = 1 << 30
"""Pairs of neighbouring columns' heights: some seconds."""
MOST_GAP = 1 << 24


class SmoothPosterior:
    """The posterior of a noisy CDF and a noisy sequence under the smooth prior.

    Args:
        cdf: Noisy values of the columns, multiplicities 1, 2, ...
        sequence: Noisy values of the rows, ranks 1, 2, ...
        scales: Scales of their noise, positive.

    Raises:
        PlanError: There are too many columns, or the noise is too wide, for some seconds of work.
    """

    def __init__(self, cdf: npt.ArrayLike, sequence: npt.ArrayLike, scales: tuple[Fraction, Fraction]) -> None:
        uniform = Posterior(cdf, sequence, scales)
        self._path, self._band = uniform._path, uniform._band
        check_work(self._band)
        lo, hi = self._band
        self._starts = begins(self._band)
        self._own = np.empty(int(self._starts[-1]))
        weigh(uniform._curves, uniform._weights, self._band, 0.0, self._own)
        self._heights = np.arange(len(self._own)) - np.repeat(self._starts[:-1] - lo, np.diff(self._starts))
        counted = np.arange(1, int((hi[:-1] - lo[1:]).max(initial=0)) + 1)
        self._ways = np.append(0.0, np.cumsum(np.log((SIZE - 1 + counted) / counted)))

    @cached_property
    def means(self) -> Floats:
        """The prior's mean gap after each column but the last."""
        gaps = -np.diff(self._path).astype(np.float64)
        trend = Trend(len(gaps))
        means = trend.fit(gaps, gaps + 0.5)
        for _ in range(ROUNDS):
            sums = np.add.reduceat(self.marginals(means) * self._heights, self._starts[:-1])
            means = trend.fit(np.maximum(-np.diff(sums), 0.0), means)
        return means

    def quantiles(self, levels: tuple[float, ...]) -> Ints:
        """Return the posterior quantiles of each column's height: one row of heights for each level."""
        below = np.cumsum(self._fitted) - np.repeat(np.arange(len(self._path)), np.diff(self._starts))
        counts = [np.add.reduceat((below < level).astype(np.int64), self._starts[:-1]) for level in levels]
        lo, hi = self._band
        return np.minimum.accumulate(np.minimum(lo + np.array(counts), hi), axis=1)

    bands = quantiles

    @cached_property
    def _fitted(self) -> Floats:
        return self.marginals(self.means)

    def marginals(self, means: Floats) -> Floats:
        """Return the probability of each height of each column, one column after another."""
        cells = [slice(*pair) for pair in zip(self._starts[:-1], self._starts[1:], strict=True)]
        likely = [np.exp(self._own[here] - self._own[here].max()) for here in cells]
        steps = [self._steps(c, mean) for c, mean in enumerate(means)]
        chances = np.empty(len(self._own))
        past = [likely[0]]
        for c, step in enumerate(steps):
            past.append(scaled(np.correlate(step, past[c], "valid")[::-1]) * likely[c + 1])
        future = np.ones(len(likely[-1]))
        for c in range(len(cells) - 1, -1, -1):
            both = scaled(past[c] * future)
            chances[cells[c]] = both / both.sum()
            if c > 0:
                future = scaled(np.correlate(steps[c - 1], (likely[c] * future)[::-1], "valid"))
        return chances

    def _steps(self, c: int, mean: float) -> Floats:
        """Return the scaled weights of all gaps between the bands of column c and the next one, least gap first."""
        lo, hi = self._band
        least, most = int(lo[c] - hi[c + 1]), int(hi[c] - lo[c + 1])
        gaps = np.arange(max(least, 0), most + 1)
        logs = self._ways[gaps] + gaps * np.log(mean / (SIZE + mean))
        return np.concatenate([np.zeros(max(-least, 0)), np.exp(np.maximum(logs - logs.max(), -600.0))])


class Trend:
    """Positive numbers along 1, 2, ..., `count` with few bends: a knot each up to 8, then 24 evenly in logarithm."""

    def __init__(self, count: int) -> None:
        far = np.geomspace(8, count, 25)[1:] if count > 8 else np.zeros(0)
        knots = np.append(np.arange(1.0, min(count, 8) + 1), far)
        at, positions = np.log(np.arange(1, count + 1)), np.log(knots)
        self._basis = np.array([np.interp(at, positions, row) for row in np.eye(len(knots))]).T
        widths = np.diff(positions)
        bends = np.diff(np.diff(np.eye(len(knots)), axis=0) / widths[:, None], axis=0)
        apart = (widths[1:] + widths[:-1]) / 2
        self._rough = ROUGHNESS * bends.T @ (bends / apart[:, None]) + 1e-6 * np.eye(len(knots))

    def fit(self, gaps: Floats, means: Floats) -> Floats:
        """Return the means under which the gaps are likeliest, less a penalty on bends; `means` is where to start."""
        if not len(gaps):
            return means
        for _ in range(NEWTON):
            weights = 1 / (1 / means + SPREAD**2)
            wanted = np.log(means) + (gaps - means) / means
            weighted = self._basis.T * weights
            logs = self._basis @ np.linalg.solve(weighted @ self._basis + self._rough, weighted @ wanted)
            means = np.exp(np.clip(logs, np.maximum(np.log(means) - 2, -20), np.minimum(np.log(means) + 2, 40)))
        return means


def scaled(masses: Floats) -> Floats:
    """Divide by the greatest, and keep all above zero: curves that contradict each other must not end in 0 / 0."""
    return np.maximum(masses / max(float(masses.max()), 1e-300), 1e-300)


def check_work(band: tuple[Ints, Ints]) -> None:
    """Refuse bands that would take minutes."""
    lo, hi = band
    cells = (hi - lo + 1).astype(np.float64)
    if len(lo) > SHORT or cells[1:] @ cells[:-1] > MOST_PAIRS or (hi[:-1] - lo[1:]).max(initial=0) > MOST_GAP:
        raise PlanError(
            f"reconcile(prior='smooth'): more than {SHORT:,} columns, or too wide noise, for some seconds of work; "
            "use prior='uniform'."
        )
