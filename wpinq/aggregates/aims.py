"""What a rank statistic aims at: which point of a grid answers, and between which points the truth lies.

A point j of the grid with weight B below it and E at it holds the ranks from B to B + E. Both aims make two choices by
permute-and-flip, at half of epsilon each, from losses that are exact integers. A choice stays as it is where all losses
move alike, so it costs its rate times the spread of how losses move with one unit: largest movement less least.

`RankAim` chooses the point nearest to the wanted rank, and then how far on both sides of it the interval goes: the
least of some twenty distances at which the interval holds the wanted rank with ranks to spare. Its chance to fail is
that of choosing one of twenty with that much loss, whatever the data. (Each end chosen by itself would be one of a
thousand points, at half the price each: such intervals were three times as wide.) It is still some two times what would
do on smooth data: where numbers lie in heaps with gaps between them the chance is used up, and nothing tells which it
is.

`ExtremeAim` is told for the largest number; for the least all is mirrored. Nobody can be told the extreme record
itself: one record more, anywhere up to the bound, may change no answer by much. So an interval that always holds the
true extreme ends at the bound, and what can be found is where it begins: at a point that a few records are beyond, as
few as tell it from none. From there the answer goes outwards, to where few or no records are beyond. It pays for each
of them, and for each doubling of the way: bounds that are far from all records draw it away by little, where without
that price it would be anywhere between the extreme and the bound.

Source: McKenna and Sheldon, "Permute-and-flip", NeurIPS 2020; Smith, "Privacy-preserving statistical estimation with
optimal convergence rates", STOC 2011, for the losses; Durfee and Rogers, "Practical differentially private top-k
selection with pay-what-you-get composition", NeurIPS 2019, for the spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wpinq.records.fields import Field

Losses: TypeAlias = NDArray[Any]
"""Exact whole numbers, of 64 bits or Python's."""

Pick: TypeAlias = Callable[[int, NDArray[np.int64], Losses, Fraction], int]
"""Chooses one of some places, from its turn, the places, their losses and the rate; gives the place."""

TILT = 2
"""How much more it costs to begin beyond the extreme than to begin too far inwards."""
FINE = 16
"""Losses are told apart to this share of a nat, or finer."""
DOUBLING = Fraction(5, 4), Fraction(1, 16)
"""What each doubling of the way outwards costs: nats, or units beyond where that is more, so little noise stays put."""


@dataclass(frozen=True)
class Terms:
    """What a choice may cost and may risk.

    Attributes:
        epsilon: Of both choices together.
        l1: The largest movement that one unit can cause, in units of 1/resolution.
        miss: How often the interval may fail.
        size: Points of the grid.
    """

    epsilon: Fraction
    l1: int
    miss: Fraction
    size: int

    def rate(self, spread: Fraction | int) -> Fraction:
        """The rate of one of two choices, whose losses' movements part by so much for each unit of weight moved."""
        return self.epsilon / 2 / (spread * self.l1)

    def spare(self, candidates: int, rate: Fraction) -> int:
        """The loss of which one of so many candidates is chosen as seldom as the interval may fail."""
        return math.ceil(math.log(max(candidates, 1) / float(self.miss)) / float(rate) * (1 + 1e-9))


class Aim(Protocol):
    """How answers are chosen."""

    @property
    def code(self) -> tuple[Field, ...]:
        """All that the choices depend on, beside the weights."""

    def choose(self, mass: Losses, pick: Pick) -> tuple[int, int, int]:
        """From the weight at each point, the places of the answer and of the ends of its interval."""


@dataclass(frozen=True)
class RankAim:
    """The number at a share of the total weight N.

    Two ranks are the same statistic where nothing lies between them, so an interval is to hold the wanted one strictly.
    """

    share: Fraction
    terms: Terms

    @property
    def unit(self) -> int:
        """Losses are whole numbers of 1/unit of a unit of 1/resolution."""
        return self.share.denominator

    @property
    def rate(self) -> Fraction:
        """A rank less the wanted one moves by the larger share of what a unit moves, up or down."""
        return self.terms.rate(2 * max(self.share, 1 - self.share) * self.unit)

    @property
    def spare(self) -> int:
        """How many ranks the interval is to hold on both sides of the wanted one."""
        return self.terms.spare(len(widths(self.terms.size - 1)) - 1, self.rate)

    @property
    def code(self) -> tuple[Field, ...]:
        """The share, and what to spare."""
        return "middle", self.share, self.spare, self.terms.size

    def choose(self, mass: Losses, pick: Pick) -> tuple[int, int, int]:
        """The nearest point, and one as far below as another above."""
        above, below, wanted = self.ranks(mass)
        losses = np.maximum(below - wanted, wanted - above)
        losses[0], losses[-1] = (wanted - above)[0], (below - wanted)[-1]
        value = pick(0, np.arange(len(mass)), np.maximum(losses, 0), self.rate)
        far = widths(max(value, len(mass) - 1 - value))
        at = pick(1, far, self.wide(mass, value - far, value + far), self.rate)
        return value, max(value - at, 0), min(value + at, len(mass) - 1)

    def wide(self, mass: Losses, low: NDArray[np.int64], high: NDArray[np.int64]) -> Losses:
        """The losses of intervals: how many ranks too few one spares, or the next smaller one too many.

        The last, and no other, holds all points, and so all ranks that there are not.
        """
        above, below, wanted = self.ranks(mass)
        all_ = int(np.abs(above).max()) + int(np.abs(below).max()) + abs(wanted)
        under = np.where(low > 0, wanted - below[np.maximum(low, 0)], all_)
        over = np.where(high < len(mass) - 1, above[np.minimum(high, len(mass) - 1)] - wanted, all_)
        spared = np.minimum(under, over)
        losses: Losses = np.maximum(self.spare - spared, 0)
        losses[-1] = 0
        losses[1:] = np.maximum(losses[1:], spared[:-1] - self.spare)
        return losses

    def ranks(self, mass: Losses) -> tuple[Losses, Losses, int]:
        """The last and the first rank of each point, and the wanted one, in 1/unit."""
        mass = roomy(mass, 8 * self.unit, self.spare)
        above = np.cumsum(mass) * self.unit
        return above, above - mass * self.unit, int(self.share * self.unit) * int(mass.sum())


@dataclass(frozen=True)
class ExtremeAim:
    """The largest number, or the least."""

    largest: bool
    terms: Terms

    @property
    def inner_rate(self) -> Fraction:
        """Of half a unit of weight. Losses inwards move by what comes beyond, outwards by `TILT` times the less."""
        return self.terms.rate(2 * (1 + TILT))

    @property
    def inwards(self) -> int:
        """How much weight the interval begins inwards, in halves: half of one unit is the extreme itself."""
        return self.terms.spare(self.terms.size - 1, self.inner_rate * TILT)

    @property
    def fine(self) -> int:
        """Losses of the answer are whole numbers of 1/fine of a unit of 1/resolution."""
        return math.ceil(FINE * self.terms.rate(1))

    @property
    def rate(self) -> Fraction:
        """What is beyond moves one way for all points."""
        return self.terms.rate(1) / self.fine

    @property
    def code(self) -> tuple[Field, ...]:
        """Which, and how far inwards."""
        return "extreme", self.largest, self.inwards, self.terms.size

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
        """The losses of beginning at each point: how far the wanted rank is from those that it holds, in halves."""
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
    """How far an interval may reach from the answer, in points, at the most so far.

    >>> widths(10).tolist()
    [0, 1, 2, 3, 4, 6, 8, 10]
    """
    powers = 1 << np.arange(most.bit_length())
    some = np.unique(np.concatenate([[0], powers, 3 * powers // 2]))
    return np.append(some[some < most], most).astype(np.int64)


def roomy(mass: Losses, times: int, more: int) -> Losses:
    """Weights of 64 bits where they can be multiplied so, and added to, else Python's integers."""
    largest = int(np.abs(mass).sum()) * times + 8 * more
    return mass.astype(np.int64 if largest < 2**63 else object)
