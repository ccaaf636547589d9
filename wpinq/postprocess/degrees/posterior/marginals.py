"""Staircases as a Markov chain of columns: exact marginals for weights that factor over columns.

A staircase is described column by column: heights never increase, column c lies in its band, and has the logarithmic
weight `own` of its height. After d columns it may end, going down to the height d, with the weight `ends[d]`: it is
then no longer alive. Each time that it goes down it takes a step, which has a weight too.
One pass forward and one backward give every column's distribution in time linear in the cells of the band.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels.loops import compiled

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ForwardSums = tuple[Floats, Floats, Floats]

NEVER = -1e18
"""Logarithmic weight of what cannot be; finite, so that differences stay numbers."""


FLOOR = 1e-300
"""The least of all masses but those that cannot be, so that curves that contradict each other cannot end in 0 / 0."""


@compiled
def forward(shares: Floats, band: tuple[Ints, Ints], starts: Ints, step: float, sums_: ForwardSums) -> None:
    """Write the mass of all beginnings that are at least y high in their last column, scaled.

    Also what each column is scaled by, and the scaled masses of those that end after 1, 2, ... columns. What arrives at
    a height is what was there, and `step` times what was above: the tail there, less 1 - `step` of the tail above.
    """
    (lo, hi), (tails, peaks, ended) = band, sums_
    tail, before, rest = np.array([1.0, 0.0]), hi[0] + 1, 1 - step
    for c in range(len(lo)):
        here = slice(starts[c], starts[c + 1])
        masses = shares[here] * arriving(tail, np.arange(lo[c], hi[c] + 1) - before + 1, rest)
        peaks[c] = masses.max()
        tail, before = np.append(np.cumsum((masses / peaks[c])[::-1])[::-1], 0.0), lo[c]
        tails[here] = tail[:-1]
        ended[c] = tail[0] - rest * tail[min(max(c + 2 - before, 0), len(tail) - 1)]


def arriving(tail: Floats, above: Ints, rest: float) -> Floats:
    """Return what arrives at heights so far above the lowest but one of the column before, which has this tail."""
    return np.maximum(tail[np.maximum(above - 1, 0)] - rest * tail[np.maximum(above, 0)], FLOOR)


@compiled
def backward(
    weights: tuple[Floats, Floats, Floats, Floats],
    band: tuple[Ints, Ints],
    starts: Ints,
    step: float,
    room: tuple[Floats, Floats],
) -> None:
    """Write the distribution function of each column's height, given that it is alive.

    Of `weights` the first are each cell's share of its column's largest, then the tails of `forward`, then the
    logarithms of those largest, and of ending. `found` has room for one more than the widest column has cells, and for
    the answer.
    """
    (shares, tails, highest, ends), (lo, hi), (ahead, chances) = weights, band, room
    below, last, scale, rest = hi[-1], 1, NEVER, 1 - step
    ahead[:2] = 0.0
    for c in range(len(lo) - 1, -1, -1):
        here, heights = slice(starts[c], starts[c + 1]), np.arange(lo[c], hi[c] + 1)
        upto, under = np.clip(heights - below + 1, 0, last), np.clip(heights - below, 0, last)
        top = max(ends[c + 1], scale)
        stops, goes = math.exp(ends[c + 1] - top), math.exp(scale - top)
        on = np.where(heights >= below, np.maximum(ahead[upto] - rest * ahead[under], FLOOR), 0.0)
        future = stops * np.where(heights > c + 1, step, 1.0) + goes * on
        masses = shares[here] * np.maximum(future, FLOOR)
        peak = masses.max()
        scale, below, last = top + highest[c] + math.log(peak), lo[c], len(heights)
        masses /= peak
        ahead[0], ahead[1 : last + 1] = 0.0, np.cumsum(masses)
        if c > 0:
            past = np.append(tails[starts[c - 1] : starts[c]], 0.0)
            masses *= arriving(past, heights - lo[c - 1] + 1, rest)
        sums = np.cumsum(masses)
        chances[here] = sums / sums[-1]


@dataclass(frozen=True, eq=False)
class Marginals:
    """The distribution of each column's height.

    Attributes:
        band: Least and greatest heights.
        starts: Where each column begins in `chances`, and one more for the end.
        gone: Probability that the column is no longer alive.
        chances: Distribution function of its height, if it is.
    """

    band: tuple[Ints, Ints]
    starts: Ints
    gone: Floats
    chances: Floats

    def quantiles(self, levels: tuple[float, ...]) -> Ints:
        """Return the quantiles of each column's height, one row for each level; 0 where it is no longer alive."""
        answers = np.zeros((len(levels), len(self.gone)), np.int64)
        for row, level in zip(answers, levels, strict=True):
            wanted = (level - self.gone) / np.maximum(1 - self.gone, 1e-300)
            short = np.append(0, np.cumsum(self.chances < np.repeat(wanted, np.diff(self.starts))))
            count = np.diff(short[self.starts])
            row[:] = np.where(wanted > 0, np.minimum(self.band[0] + count, self.band[1]), 0)
        return answers

    def means(self, values: Floats, ended: Floats) -> Floats:
        """Return the mean of what is given for each height of each column, and for those no longer alive."""
        held = np.add.reduceat(self.shares * values, self.starts[:-1])
        return np.asarray(self.gone * ended + (1 - self.gone) * held)

    @property
    def shares(self) -> Floats:
        """The probability of each height of each column, if it is alive."""
        single = np.diff(self.chances, prepend=0.0)
        single[self.starts[1:-1]] += 1.0  # where a column's distribution function starts anew
        return np.asarray(single)

    @property
    def heights(self) -> Ints:
        """The heights that `chances` speaks of, one column after another."""
        lo, hi = self.band
        return np.asarray(np.arange(self.starts[-1]) - np.repeat(self.starts[:-1] - lo, hi - lo + 1))

    def expected(self) -> Floats:
        """Return the mean height of each column, 0 where it is no longer alive."""
        return self.means(self.heights.astype(np.float64), np.zeros(len(self.gone)))


@dataclass(frozen=True, eq=False)
class Chain:
    """Weighted columns, summed forward once.

    Attributes:
        shares: Weights of the heights of the columns' bands, one column after another, as shares of a column's largest.
        highest: Logarithm of the largest weight of each column.
        band: Least and greatest heights; the greatest do not increase.
        starts: Where each column begins in `shares`, and one more for the end.
        step: Weight of each step down.
        tails: Mass of the beginnings at least as high as each cell, scaled for each column.
        masses: Entry d is the logarithmic mass of those that end after d columns.
    """

    shares: Floats
    highest: Floats
    band: tuple[Ints, Ints]
    starts: Ints
    step: float
    tails: Floats
    masses: Floats

    @classmethod
    def of(cls, logs: Floats, band: tuple[Ints, Ints], *, step: float = 1.0) -> Chain:
        """Sum forward, with each cell's logarithmic weight; `own` is overwritten by the shares."""
        starts, columns = begins(band), len(band[0])
        if not columns:
            return cls(logs, np.zeros(0), band, starts, step, np.zeros(0), np.zeros(1))
        highest, tails = np.maximum.reduceat(logs, starts[:-1]), np.empty(len(logs))
        logs -= np.repeat(highest, np.diff(starts))
        np.exp(logs, out=logs)
        peaks, ended = np.empty((2, columns))
        forward(logs, band, starts, step, (tails, peaks, ended))
        masses = np.cumsum(highest + np.log(peaks)) - math.log(step) + np.log(np.maximum(ended, FLOOR))
        return cls(logs, highest, band, starts, step, tails, np.append(0.0, masses))

    def marginals(self, ends: Floats) -> Marginals:
        """Sum backward, with logarithmic weights of ending after 0, 1, ... columns."""
        lasts = np.exp(self.masses + ends - (self.masses + ends).max())
        gone = np.cumsum(lasts)[:-1] / lasts.sum()
        chances = np.zeros(len(self.shares))
        if len(gone):
            weights = self.shares, self.tails, self.highest, ends
            work = np.empty(int(np.diff(self.starts).max()) + 1)
            backward(weights, self.band, self.starts, self.step, (work, chances))
        return Marginals(self.band, self.starts, gone, chances)

    def drawn(self, columns: int, rng: np.random.Generator, least: int = 0) -> Ints:
        """Draw a staircase of so many columns: the last column first, then each one given the one after it.

        Args:
            columns: How many it has.
            rng: Gives the numbers.
            least: The height that it goes down to after them, taking a step if it is higher.
        """
        heights, height = np.zeros(columns, np.int64), least
        lo = self.band[0]
        for c in range(columns - 1, -1, -1):
            tail = np.append(self.tails[self.starts[c] : self.starts[c + 1]], 0.0)
            same, above = (min(max(height - int(lo[c]) + more, 0), len(tail) - 1) for more in (0, 1))
            stays, goes = tail[same] - tail[above], self.step * tail[above]
            mass = rng.random() * (stays + goes)
            if mass >= stays:
                index = int(np.searchsorted(-tail, -(mass - stays) / self.step, "left")) - 1
                height = int(lo[c]) + max(index, above)
            heights[c] = height
        return heights

    def quantiles(self, ends: Floats, levels: tuple[float, ...]) -> Ints:
        """Return the quantiles of each column's height, one row for each level; 0 where it is no longer alive."""
        return self.marginals(ends).quantiles(levels)


def begins(band: tuple[Ints, Ints]) -> Ints:
    """Return where each column's cells begin, and where the last one's end."""
    return np.append(0, np.cumsum(band[1] - band[0] + 1)).astype(np.int64)
