"""Loss functions of rank statistics: they choose a point of a grid as the answer, and the ends of its interval.

A point j of the grid with weight B below it and weight E at it has the ranks from B to B + E. Both classes make two
choices by permute-and-flip, at half of epsilon each, from losses that are exact integers. A choice does not change when
all losses change by the same amount, so its sensitivity is the spread: the largest change of a loss by one unit, less
the least change.

`RankAim` chooses the point nearest to the wanted rank, and then the half width of its interval: the least of some
twenty widths for which the interval holds the wanted rank with a margin of ranks. (Choosing each end by itself would be
a choice among a thousand points, at half of the epsilon each: such intervals were three times as wide.)

*Why it holds, whatever the data.* Permute-and-flip is the largest of independent exponential variables less rate * loss
(Ding et al., 2021), so a candidate whose loss is larger by L than that of another is chosen with probability
exp(-rate L) / 2 at the most, that of being above that one. One of the widths has loss 0 and holds the margin; narrower
ones that do not hold the wanted rank have at least the margin as loss. Each width also loses a fixed `tilt` more than
the next wider one, which no data move and so costs nothing: so the n-th one below has n tilts more, and all that fail
are chosen with probability exp(-rate margin) / (exp(rate tilt) - 1) / 2 at the most. The margin makes this 1 -
confidence. That is reached where all widths that fail miss the wanted rank by nothing, as between two values with a
large gap. On smooth numbers those that fail miss it by many ranks and are hardly ever chosen, so the interval holds in
99% of answers and more where 95% is said: the law of an answer depends on the data there, and a release does not reveal
which is the case.

`ExtremeAim` is described for the largest number; for the least all is mirrored. No private answer can be the extreme
record itself: one more record, anywhere up to the bound, must not change the distribution of answers by much. So an
interval that always holds the true extreme ends at the bound, and what can be chosen is its beginning: a point with a
few records beyond it, as few as noise allows. From there the answer is chosen outwards, to where few or no records are
beyond. Its loss counts these records, and grows with each doubling of the distance: so bounds that are far from all
records move the answer by little, while without that term it could be anywhere between the extreme and the bound.

Source: McKenna and Sheldon, "Permute-and-flip", NeurIPS 2020; Smith, "Privacy-preserving statistical estimation with
optimal convergence rates", STOC 2011, for the losses; Ding, Kifer, Saghaian, Steinke, Wang, Xiao and Zhang, "The
permute-and-flip mechanism is identical to report-noisy-max with exponential noise", 2021; Durfee and Rogers, "Practical
differentially private top-k selection with pay-what-you-get composition", NeurIPS 2019, for the spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wpinq.core.records.fields import Field

Losses: TypeAlias = NDArray[Any]
"""Exact whole numbers, of 64 bits or Python's."""

Pick: TypeAlias = Callable[[int, NDArray[np.int64], Losses, Fraction], int]
"""Chooses one of some points, from the number of the choice, the points, their losses and the rate."""

NARROWER = Fraction(3, 4)
"""The loss, in nats, of each width beside the next wider one; on smooth numbers intervals are narrowest with it."""
TILT = 2
"""The factor by which the loss of beginning beyond the extreme is larger than that of beginning too far inwards."""
FINE = 16
"""Losses are rounded to 1/16 of a nat, or finer."""
DOUBLING = Fraction(5, 4), Fraction(1, 16)
"""The loss of each doubling of the distance: in nats, or if that is more, in units of records beyond the point."""


@dataclass(frozen=True)
class Terms:
    """The parameters of both choices.

    Attributes:
        epsilon: The epsilon of both choices together.
        l1: The L1 sensitivity, in units of 1/resolution.
        miss: The probability with which the interval may fail.
        size: The number of points of the grid.
    """

    epsilon: Fraction
    l1: int
    miss: Fraction
    size: int

    def rate(self, spread: Fraction | int) -> Fraction:
        """The rate of one of two choices whose losses have this spread for each unit of weight that changes."""
        return self.epsilon / 2 / (spread * self.l1)

    def spare(self, candidates: float, rate: Fraction) -> int:
        """The loss at which any of so many candidates is chosen with probability `miss` at most, beside one without.

        Args:
            candidates: How many there are; of some that lose more, the sum of exp(-rate * how much more).
            rate: Of the losses.
        """
        return max(1, math.ceil(math.log(candidates / 2 / float(self.miss)) / float(rate) * (1 + 1e-9)))


class Aim(Protocol):
    """Chooses an answer and its interval."""

    @property
    def code(self) -> tuple[Field, ...]:
        """All that the choices depend on, beside the weights."""

    @property
    def misses(self) -> Fraction:
        """The weight, in 1/resolution, by which an answer is off with probability `miss` at the most."""

    def choose(self, mass: Losses, pick: Pick) -> tuple[int, int, int]:
        """Choose, by the weight at each point, the indices of the answer and of both ends of its interval."""


@dataclass(frozen=True)
class RankAim:
    """The quantile: the number at a share of the total weight N.

    Ranks with no record between them have the same number, so an interval must hold the wanted rank strictly.
    """

    share: Fraction
    terms: Terms

    @property
    def unit(self) -> int:
        """Losses are whole numbers of 1/unit of a unit of 1/resolution."""
        return self.share.denominator

    @cached_property
    def rate(self) -> Fraction:
        """The rate: the difference to the wanted rank changes by the larger of both shares of a unit's weight."""
        return self.terms.rate(2 * max(self.share, 1 - self.share) * self.unit)

    @cached_property
    def fine(self) -> int:
        """Losses of widths are whole numbers of 1/fine of a rank's, so that a tilt is one where a rank is many nats."""
        return math.ceil(FINE * self.rate)

    @cached_property
    def tilt(self) -> int:
        """What each width loses more than the next wider one, in 1/fine of a rank."""
        return math.ceil(NARROWER * self.fine / self.rate)

    @cached_property
    def spare(self) -> int:
        """The margin: how many ranks the interval holds on both sides of the wanted one."""
        return self.terms.spare(1 / math.expm1(float(self.tilt * self.rate / self.fine)), self.rate)

    @property
    def code(self) -> tuple[Field, ...]:
        """The share, and what to spare."""
        return "middle, tilted", self.share, self.spare, self.tilt, self.terms.size

    @property
    def misses(self) -> Fraction:
        """What lies between the answer and the wanted rank: one of the points with that much loss would be chosen."""
        return Fraction(self.terms.spare(max(self.terms.size - 1, 1), self.rate), self.unit)

    def choose(self, mass: Losses, pick: Pick) -> tuple[int, int, int]:
        """The nearest point, and one as far below as another above."""
        above, below, wanted = self.ranks(mass)
        losses = np.maximum(below - wanted, wanted - above)
        losses[0], losses[-1] = (wanted - above)[0], (below - wanted)[-1]
        value = pick(0, np.arange(len(mass)), np.maximum(losses, 0), self.rate)
        far = widths(max(value, len(mass) - 1 - value))
        at = pick(1, far, self.wide(mass, value - far, value + far), self.rate / self.fine)
        return value, max(value - at, 0), min(value + at, len(mass) - 1)

    def wide(self, mass: Losses, low: NDArray[np.int64], high: NDArray[np.int64]) -> Losses:
        """The losses of intervals: the missing ranks of the margin, or the surplus of the next smaller interval.

        Only the last one holds all points of the grid, so its loss is not counted in ranks. The tilt comes on top.
        """
        above, below, wanted = self.ranks(mass)
        all_ = int(np.abs(above).max()) + int(np.abs(below).max()) + abs(wanted)
        under = np.where(low > 0, wanted - below[np.maximum(low, 0)], all_)
        over = np.where(high < len(mass) - 1, above[np.minimum(high, len(mass) - 1)] - wanted, all_)
        spared = np.minimum(under, over)
        losses: Losses = np.maximum(self.spare - spared, 0)
        losses[-1] = 0
        losses[1:] = np.maximum(losses[1:], spared[:-1] - self.spare)
        tilted: Losses = losses * self.fine + np.arange(len(losses))[::-1].astype(losses.dtype) * self.tilt
        return tilted

    def ranks(self, mass: Losses) -> tuple[Losses, Losses, int]:
        """The last and the first rank of each point, and the wanted one, in 1/unit."""
        mass = roomy(mass, 8 * self.unit * self.fine, self.spare * self.fine + 64 * self.tilt)
        above = np.cumsum(mass) * self.unit
        return above, above - mass * self.unit, int(self.share * self.unit) * int(mass.sum())


@dataclass(frozen=True)
class ExtremeAim:
    """The largest number, or the least."""

    largest: bool
    terms: Terms

    @cached_property
    def inner_rate(self) -> Fraction:
        """Of half a unit of weight. Losses inwards move by what comes beyond, outwards by `TILT` times the less."""
        return self.terms.rate(2 * (1 + TILT))

    @cached_property
    def inwards(self) -> int:
        """The weight, in half units, that lies beyond the beginning of the interval; half a unit is the extreme."""
        return self.terms.spare(max(self.terms.size - 1, 1), self.inner_rate * TILT)

    @cached_property
    def fine(self) -> int:
        """Losses of the answer are whole numbers of 1/fine of a unit of 1/resolution."""
        return math.ceil(FINE * self.terms.rate(1))

    @cached_property
    def rate(self) -> Fraction:
        """The rate: the weight beyond a point changes in the same direction for all points."""
        return self.terms.rate(1) / self.fine

    @property
    def code(self) -> tuple[Field, ...]:
        """Which, and how far inwards."""
        return "extreme", self.largest, self.inwards, self.terms.size

    @property
    def misses(self) -> Fraction:
        """What lies beyond the beginning of the interval, and so beyond the answer."""
        return Fraction(self.inwards + self.terms.spare(max(self.terms.size - 1, 1), self.inner_rate), 2)

    def choose(self, mass: Losses, pick: Pick) -> tuple[int, int, int]:
        """Where the interval begins, and from there outwards the answer; it ends at the bound."""
        last = len(mass) - 1
        turned = mass if self.largest else mass[::-1]

        def place(found: int | NDArray[np.int64]) -> Any:
            return found if self.largest else last - found

        inner = int(place(pick(0, place(np.arange(last + 1)), self.inner(turned), self.inner_rate)))
        value = pick(1, place(np.arange(inner, last + 1)), self.outer(turned, inner), self.rate)
        ends = sorted((int(place(inner)), int(place(last))))
        return value, ends[0], ends[1]

    def inner(self, mass: Losses) -> Losses:
        """The losses of beginning at each point: the distance of its ranks from the wanted one, in half units."""
        mass = roomy(mass, 8 * TILT, self.inwards)
        beyond = (mass.sum() - np.cumsum(mass)) * 2
        inwards = self.inwards - beyond - 2 * mass
        inwards[0] = 0  # it holds all ranks that there are not
        losses: Losses = np.maximum(np.maximum(beyond - self.inwards, TILT * inwards), 0)
        return losses

    def outer(self, mass: Losses, inner: int) -> Losses:
        """The losses of the points from one on: the weight beyond, and a nat for each doubling of the way."""
        each = math.ceil(max(DOUBLING[0] / self.rate, DOUBLING[1] * self.terms.l1 * self.fine))
        mass = roomy(mass, 8 * self.fine, 64 * each)
        doublings = np.frexp(np.arange(len(mass) - inner))[1].astype(mass.dtype)
        beyond = (mass.sum() - np.cumsum(mass))[inner:]
        losses: Losses = beyond * self.fine + doublings * each
        return losses


def widths(most: int) -> NDArray[np.int64]:
    """The candidates for the half width of an interval, in points, up to `most`.

    >>> widths(10).tolist()
    [0, 1, 2, 3, 4, 6, 8, 10]
    """
    powers = 1 << np.arange(most.bit_length())
    some = np.unique(np.concatenate([[0], powers, 3 * powers // 2]))
    return np.append(some[some < most], most).astype(np.int64)


def roomy(mass: Losses, times: int, more: int) -> Losses:
    """Weights as 64-bit integers where products and sums with them fit, else as Python integers."""
    largest = int(np.abs(mass).sum()) * times + 8 * more
    return mass.astype(np.int64 if largest < 2**63 else object)
