"""Staircases as a chain of columns: exact marginals, and samples, of weights that speak of single columns.

A staircase is told column by column: heights never increase, column c lies in its band, and has the logarithmic weight
`own` of its height. After d columns it may end, going down to the height d, with the weight `ends[d]`: it is then no
longer alive. Each time that it goes down it takes a step, which has a weight too.
One pass forward and one backward give every column's distribution in time linear in the cells of the band.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wpinq.degrees.corridor import Ints
from wpinq.degrees.path import compiled

Floats = npt.NDArray[np.float64]

NEVER = -1e18
"""Logarithmic weight of what cannot be; finite, so that differences stay numbers."""


def forward(own: Floats, band: tuple[Ints, Ints], starts: Ints, step: float, found: tuple[Floats, Floats]) -> None:
    """Write the mass of all beginnings that are at least y high in their last column, scaled.

    And the logarithmic masses of those that end after 1, 2, ... columns: `found` has room for both. What arrives at a
    height is what was there, and `step` times what was above: the tail there, less 1 - `step` of the tail above.
    Sums are floored at 1e-300, so that curves that contradict each other cannot end in 0 / 0.
    """
    (lo, hi), (tails, masses) = band, found
    tail, before, scale, rest = np.array([1.0, 0.0]), hi[0] + 1, -np.log(step), 1 - step
    for c in range(len(lo)):
        here = slice(starts[c], starts[c + 1])
        above = np.arange(lo[c], hi[c] + 1) - before + 1
        arrives = tail[np.maximum(above - 1, 0)] - rest * tail[np.maximum(above, 0)]
        logs = own[here] + np.log(np.maximum(arrives, 1e-300))
        scale += logs.max()
        tail, before = np.append(np.cumsum(np.exp(logs - logs.max())[::-1])[::-1], 0.0), lo[c]
        tails[here] = tail[:-1]
        ends = tail[0] - rest * tail[min(max(c + 2 - before, 0), len(tail) - 1)]
        masses[c] = scale + np.log(max(ends, 1e-300))


def backward(
    weights: tuple[Floats, Floats, Floats], band: tuple[Ints, Ints], starts: Ints, step: float, chances: Floats
) -> None:
    """Write the distribution function of each column's height, given that it is alive.

    Of `weights` the first are each cell's own, then the tails of `forward`, then those of ending.
    """
    own, tails, ends = weights
    lo, hi = band
    columns, rest = len(lo), 1 - step
    ahead, below, scale = np.zeros(2), hi[columns - 1], NEVER
    for c in range(columns - 1, -1, -1):
        here = slice(starts[c], starts[c + 1])
        heights = np.arange(lo[c], hi[c] + 1)
        upto = np.minimum(np.maximum(heights - below + 1, 0), len(ahead) - 1)
        under = np.minimum(np.maximum(heights - below, 0), len(ahead) - 1)
        goes = np.where(heights >= below, scale + np.log(np.maximum(ahead[upto] - rest * ahead[under], 1e-300)), NEVER)
        stops = ends[c + 1] + np.where(heights > c + 1, np.log(step), 0.0)
        top = max(stops.max(), goes.max())
        future = top + np.log(np.maximum(np.exp(stops - top) + np.exp(goes - top), 1e-300))
        logs = own[here] + future
        scale, below = logs.max(), lo[c]
        ahead = np.append(0.0, np.cumsum(np.exp(logs - scale)))
        if c > 0:
            past = np.append(tails[starts[c - 1] : starts[c]], 0.0)
            above = heights - lo[c - 1] + 1
            arrives = past[np.maximum(above - 1, 0)] - rest * past[np.maximum(above, 0)]
            logs = logs + np.log(np.maximum(arrives, 1e-300))
        sums = np.cumsum(np.exp(logs - logs.max()))
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
        single = np.diff(self.chances, prepend=0.0)
        single[self.starts[1:-1]] += 1.0  # where a column's distribution function starts anew
        held = np.add.reduceat(single * values, self.starts[:-1])
        return np.asarray(self.gone * ended + (1 - self.gone) * held)


@dataclass(frozen=True, eq=False)
class Chain:
    """Weighted columns, summed forward once.

    Attributes:
        own: Logarithmic weights of the heights of the columns' bands, one column after another.
        band: Least and greatest heights; the greatest do not increase.
        starts: Where each column begins in `own`, and one more for the end.
        step: Weight of each step down.
        tails: Mass of the beginnings at least as high as each cell, scaled for each column.
        masses: Entry d is the logarithmic mass of those that end after d columns.
        run: How kernels are run: as they are, or compiled.
    """

    own: Floats
    band: tuple[Ints, Ints]
    starts: Ints
    step: float
    tails: Floats
    masses: Floats
    run: Callable[[Any], Any]

    @classmethod
    def of(cls, own: Floats, band: tuple[Ints, Ints], *, large: bool, step: float = 1.0) -> Chain:
        """Sum forward; `large` chains are compiled."""
        starts = begins(band)
        tails, masses = np.zeros(len(own)), np.zeros(len(band[0]))
        run: Callable[[Any], Any] = compiled if large else _plainly
        if len(masses):
            run(forward)(own, band, starts, step, (tails, masses))
        return cls(own, band, starts, step, tails, np.append(0.0, masses), run)

    def marginals(self, ends: Floats) -> Marginals:
        """Sum backward, with logarithmic weights of ending after 0, 1, ... columns."""
        lasts = np.exp(self.masses + ends - (self.masses + ends).max())
        gone = np.cumsum(lasts)[:-1] / lasts.sum()
        chances = np.zeros(len(self.own))
        if len(gone):
            self.run(backward)((self.own, self.tails, ends), self.band, self.starts, self.step, chances)
        return Marginals(self.band, self.starts, gone, chances)

    def quantiles(self, ends: Floats, levels: tuple[float, ...]) -> Ints:
        """Return the quantiles of each column's height, one row for each level; 0 where it is no longer alive."""
        return self.marginals(ends).quantiles(levels)


def begins(band: tuple[Ints, Ints]) -> Ints:
    """Return where each column's cells begin, and where the last one's end."""
    return np.append(0, np.cumsum(band[1] - band[0] + 1)).astype(np.int64)


def _plainly(kernel: Callable[..., None]) -> Callable[..., None]:
    return kernel
