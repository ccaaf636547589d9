"""Staircases as a chain of columns: exact marginals, and samples, of weights that speak of single columns.

A staircase is told column by column: heights never increase, column c lies in its band, and has the logarithmic weight
`own` of its height. After d columns it may end, with the weight `ends[d]`: it is then no longer alive.
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


def forward(own: Floats, band: tuple[Ints, Ints], starts: Ints, tails: Floats, scales: Floats) -> None:
    """Write the mass of all beginnings that are at least y high in their last column: exp(scales[c]) * tails.

    Sums are floored at 1e-300, so that curves that contradict each other cannot end in 0 / 0.
    """
    lo, hi = band
    tail, before, scale = np.ones(1), hi[0], 0.0
    for c in range(len(lo)):
        here = slice(starts[c], starts[c + 1])
        heights = np.arange(lo[c], hi[c] + 1)
        logs = own[here] + np.log(np.maximum(tail[np.maximum(heights - before, 0)], 1e-300))
        scale += logs.max()
        tail, before = np.cumsum(np.exp(logs - logs.max())[::-1])[::-1], lo[c]
        tails[here] = tail
        scales[c] = scale


def backward(weights: tuple[Floats, Floats, Floats], band: tuple[Ints, Ints], starts: Ints, chances: Floats) -> None:
    """Write the distribution function of each column's height, given that it is alive.

    Of `weights` the first are each cell's own, then the tails of `forward`, then those of ending.
    """
    own, tails, ends = weights
    lo, hi = band
    columns = len(lo)
    ahead, below, scale = np.zeros(1), hi[columns - 1], NEVER
    for c in range(columns - 1, -1, -1):
        here = slice(starts[c], starts[c + 1])
        heights = np.arange(lo[c], hi[c] + 1)
        near = np.minimum(np.maximum(heights - below, 0), len(ahead) - 1)
        goes = np.where(heights >= below, scale + np.log(np.maximum(ahead[near], 1e-300)), NEVER)
        top = max(ends[c + 1], goes.max())
        future = top + np.log(np.maximum(np.exp(ends[c + 1] - top) + np.exp(goes - top), 1e-300))
        logs = own[here] + future
        scale, below = logs.max(), lo[c]
        ahead = np.cumsum(np.exp(logs - scale))
        if c > 0:
            past = tails[starts[c - 1] : starts[c]]
            logs = logs + np.log(np.maximum(past[np.maximum(heights - lo[c - 1], 0)], 1e-300))
        sums = np.cumsum(np.exp(logs - logs.max()))
        chances[here] = sums / sums[-1]


@dataclass(frozen=True, eq=False)
class Chain:
    """Weighted columns, summed forward once.

    Attributes:
        own: Logarithmic weights of the heights of the columns' bands, one column after another.
        band: Least and greatest heights; the greatest do not increase.
        starts: Where each column begins in `own`, and one more for the end.
        tails: Mass of the beginnings at least as high as each cell, scaled for each column.
        masses: Entry d is the logarithmic mass of the first d columns.
        run: How kernels are run: as they are, or compiled.
    """

    own: Floats
    band: tuple[Ints, Ints]
    starts: Ints
    tails: Floats
    masses: Floats
    run: Callable[[Any], Any]

    @classmethod
    def of(cls, own: Floats, band: tuple[Ints, Ints], *, large: bool) -> Chain:
        """Sum forward; `large` chains are compiled."""
        starts = begins(band)
        tails, scales = np.zeros(len(own)), np.zeros(len(band[0]))
        run: Callable[[Any], Any] = compiled if large else _plainly
        if len(scales):
            run(forward)(own, band, starts, tails, scales)
        return cls(own, band, starts, tails, np.append(0.0, scales + np.log(tails[starts[:-1]])), run)

    def quantiles(self, ends: Floats, levels: tuple[float, ...]) -> Ints:
        """Return the quantiles of each column's height, one row for each level; 0 where it is no longer alive."""
        lasts = np.exp(self.masses + ends - (self.masses + ends).max())
        gone = np.cumsum(lasts)[:-1] / lasts.sum()
        answers = np.zeros((len(levels), len(gone)), np.int64)
        if not len(gone):
            return answers
        chances = np.zeros(len(self.own))
        self.run(backward)((self.own, self.tails, ends), self.band, self.starts, chances)
        for row, level in zip(answers, levels, strict=True):
            wanted = (level - gone) / np.maximum(1 - gone, 1e-300)
            short = np.append(0, np.cumsum(chances < np.repeat(wanted, np.diff(self.starts))))
            count = np.diff(short[self.starts])
            row[:] = np.where(wanted > 0, np.minimum(self.band[0] + count, self.band[1]), 0)
        return answers

    def volumes(self, lengths: Ints, rng: np.random.Generator) -> Floats:
        """Draw one staircase for each length, in columns, and return the sums of their heights."""
        sums, at = np.zeros(len(lengths)), np.zeros(len(lengths), np.int64)
        for c in range(int(lengths.max(initial=0)) - 1, -1, -1):
            alive = np.flatnonzero(lengths > c)
            low, tail = self.band[0][c], self.tails[self.starts[c] : self.starts[c + 1]]
            least = np.maximum(at[alive], low)
            left = tail[np.minimum(least - low, len(tail) - 1)] * (1 - rng.random(len(alive)))
            # the tails decrease: the height is the last one whose tail holds what is left
            drawn = low + np.searchsorted(-tail, -left, side="right") - 1
            at[alive] = np.maximum(drawn, least)
            sums[alive] += at[alive]
        return sums


def begins(band: tuple[Ints, Ints]) -> Ints:
    """Return where each column's cells begin, and where the last one's end."""
    return np.append(0, np.cumsum(band[1] - band[0] + 1)).astype(np.int64)


def _plainly(kernel: Callable[..., None]) -> Callable[..., None]:
    return kernel
