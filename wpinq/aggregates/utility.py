"""Loss functions of rank statistics: they choose a point of a grid as the answer, and the ends of its interval.

A point j of the grid with weight B below it and weight E at it has the ranks from B to B + E. Choices are made from
losses that are exact integers. A choice does not change when all losses change by the same amount, so its sensitivity
is the spread: the largest change of a loss by one unit, less the least change. Quantiles are in `rank_aim.py`.

`ExtremeAim` makes two choices by permute-and-flip, at half of epsilon each. It is described for the largest number; for
the least all is mirrored. No private answer can be the extreme record itself: one more record, anywhere up to the
bound, must not change the distribution of answers by much. So an interval that always holds the true extreme ends at
the bound, and what can be chosen is its beginning: a point with a few records beyond it, as few as noise allows. From
there the answer is chosen outwards, to where few or no records are beyond. Its loss counts these records, and grows
with each doubling of the distance: so bounds that are far from all records move the answer by little, while without
that term it could be anywhere between the extreme and the bound.

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

from wpinq.aggregates.heap import Heap
from wpinq.core.noise.valleys import Valley
from wpinq.core.records.fields import Field

Losses: TypeAlias = NDArray[Any]
"""Exact whole numbers, of 64 bits or Python's."""

Pick: TypeAlias = Callable[[int, NDArray[np.int64], Losses, Fraction], int]
"""Chooses one of some points, from the number of the choice, the points, their losses and the rate."""

TILT = 2
"""The factor by which the loss of beginning beyond the extreme is larger than that of beginning too far inwards."""
FINE = 16
"""Losses are rounded to 1/16 of a nat, or finer."""
DOUBLING = Fraction(5, 4), Fraction(1, 16)
"""The loss of each doubling of the distance: in nats, or if that is more, in units of records beyond the point."""


HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Terms:
    """The parameters of all choices.

    Attributes:
        epsilon: The epsilon of all choices together.
        l1: The L1 sensitivity, in units of 1/resolution.
        miss: The probability with which the interval may fail.
        size: The number of points of the grid.
    """

    epsilon: Fraction
    l1: int
    miss: Fraction
    size: int

    def rate(self, spread: Fraction | int, part: Fraction = HALF) -> Fraction:
        """The rate of a choice at this part of epsilon, by the spread of its losses for each unit of weight."""
        return self.epsilon * part / (spread * self.l1)

    def spare(self, candidates: float, rate: Fraction) -> int:
        """The loss at which any of so many candidates is chosen with probability `miss` at most, beside one without.

        Args:
            candidates: How many there are; of some that lose more, the sum of exp(-rate * how much more).
            rate: Of the losses.
        """
        return max(1, math.ceil(math.log(candidates / 2 / float(self.miss)) / float(rate) * (1 + 1e-9)))


class View(Protocol):
    """What a group weighs, and the choices that are made of it; each has a number of its own."""

    @property
    def heap(self) -> Heap:
        """The weights that there are."""

    @property
    def mass(self) -> Losses:
        """The weight at each point."""

    def flip(self, turn: int, points: NDArray[np.int64], losses: Losses, rate: Fraction) -> int:
        """Choose one of some places by permute-and-flip."""

    def cut(self, turn: int, valley: Valley, rate: Fraction) -> int:
        """Choose one of very many places by the exponential mechanism."""


class Aim(Protocol):
    """Chooses answers and their intervals."""

    @property
    def code(self) -> tuple[Field, ...]:
        """All that the choices depend on, beside the weights."""

    @property
    def answers(self) -> int:
        """How many there are."""

    @property
    def misses(self) -> Fraction:
        """The weight, in 1/resolution, by which an answer is off with probability `miss` at the most."""

    def choices(self, view: View) -> list[tuple[int, int, int]]:
        """Choose the points of each answer and of both ends of its interval."""


@dataclass(frozen=True)
class ExtremeAim:
    """The largest number, or the least."""

    largest: bool
    terms: Terms
    answers = 1

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

    def choices(self, view: View) -> list[tuple[int, int, int]]:
        """One answer."""
        return [self.choose(view.mass, view.flip)]

    def choose(self, mass: Losses, pick: Pick) -> tuple[int, int, int]:
        """Where the interval begins, and from there outwards the answer; it ends at the bound."""
        last = len(mass) - 1
        turned = mass if self.largest else mass[::-1]

        def unmirrored(point: int | NDArray[np.int64]) -> Any:
            return point if self.largest else last - point

        inner = int(unmirrored(pick(0, unmirrored(np.arange(last + 1)), self.inner(turned), self.inner_rate)))
        value = pick(1, unmirrored(np.arange(inner, last + 1)), self.outer(turned, inner), self.rate)
        ends = sorted((int(unmirrored(inner)), int(unmirrored(last))))
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


def roomy(mass: Losses, times: int, more: int) -> Losses:
    """Weights as 64-bit integers where products and sums with them fit, else as Python integers."""
    largest = int(np.abs(mass).sum()) * times + 8 * more
    return mass.astype(np.int64 if largest < 2**63 else object)
