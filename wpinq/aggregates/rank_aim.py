"""Quantiles: how several are chosen together, and an interval for each.

`splitting.py` chooses points of a grid. Then the half width of each interval is chosen by permute-and-flip: the least
of some fifty widths for which the interval holds the wanted rank with a margin of ranks. (Choosing each end by itself
would be a choice among a million points, at half of the epsilon each: such intervals were three times as wide.) A
quarter of epsilon is for all intervals together, in equal parts.

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

Source: see `splitting.py` and `utility.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wpinq.aggregates.heap import PARTS, Heap
from wpinq.aggregates.splitting import Split, quantiles, tree_of
from wpinq.aggregates.utility import FINE, Losses, Terms, View
from wpinq.core.records.fields import Field

NARROWER = Fraction(3, 4)
"""The loss, in nats, of each width beside the next wider one; on smooth numbers intervals are narrowest with it."""
INTERVALS = Fraction(1, 4)
"""Of epsilon, for all intervals."""


@dataclass(frozen=True)
class RankAim:
    """The numbers at some shares of the total weight N.

    Attributes:
        shares: They rise.
        terms: What all choices cost and risk.
        intervals: Whether each has an interval.
    """

    shares: tuple[Fraction, ...]
    terms: Terms
    intervals: bool = True

    @property
    def answers(self) -> int:
        """How many there are."""
        return len(self.shares)

    @property
    def tree(self) -> Split:
        """What is chosen after what."""
        return tree_of(self.shares)

    @property
    def epsilon(self) -> Fraction:
        """Of the answers."""
        return self.terms.epsilon * (1 - INTERVALS if self.intervals else 1)

    @cached_property
    def margins(self) -> tuple[Margin, ...]:
        """The intervals."""
        return tuple(Margin(share, self.terms, INTERVALS / len(self.shares)) for share in self.shares)

    @property
    def code(self) -> tuple[Field, ...]:
        """The shares, and what the intervals spare."""
        spared = tuple((margin.spare, margin.tilt) for margin in self.margins) if self.intervals else None
        return "split", self.shares, spared, self.terms.size, PARTS

    @property
    def misses(self) -> Fraction:
        """What lies between the answer and the wanted rank, of one share; one of the points misses nothing."""
        (share,) = self.shares
        rate = self.tree.rate(self.epsilon, self.terms.l1, 1)
        return Fraction(self.terms.spare(2 * max(self.terms.size - 1, 1), rate), share.denominator)

    def choices(self, view: View) -> list[tuple[int, int, int]]:
        """The points, each with the ends of its interval; without an interval all three are one."""
        heap = view.heap
        values = quantiles(heap, self.tree, self.epsilon, self.terms.l1, lambda turn, *more: view.cut(2 * turn, *more))
        if not self.intervals:
            return [(values[index],) * 3 for index in range(len(self.shares))]
        return [self._around(heap, index, values[index], view) for index in range(len(self.shares))]

    def _around(self, heap: Heap, index: int, value: int, view: View) -> tuple[int, int, int]:
        far, losses, rate = self.margins[index].widths(heap, value)
        at = int(far[view.flip(2 * index + 1, np.arange(len(far)), losses, rate)])
        return value, max(value - at, 0), min(value + at, heap.size - 1)


@dataclass(frozen=True)
class Margin:
    """An interval around a point, as far below it as above.

    Ranks with no record between them have the same number, so an interval must hold the wanted rank strictly.

    Attributes:
        share: Of the total weight.
        terms: What all choices cost, and what this one risks.
        part: Of their epsilon.
    """

    share: Fraction
    terms: Terms
    part: Fraction

    @property
    def unit(self) -> int:
        """Losses are whole numbers of 1/unit of a unit of 1/resolution."""
        return self.share.denominator

    @cached_property
    def rate(self) -> Fraction:
        """The rate: the difference to the wanted rank changes by the larger of both shares of a unit's weight."""
        return self.terms.rate(2 * max(self.share, 1 - self.share) * self.unit, self.part)

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

    def widths(self, heap: Heap, value: int) -> tuple[NDArray[np.int64], Losses, Fraction]:
        """The half widths, what each loses, and the rate of that: what is missing of the margin, or is too much of it.

        Too much is what the next narrower one would still have. The widest holds all points of the grid, so its loss is
        not counted in ranks. The tilt comes on top.
        """
        far = widths(max(value, heap.size - 1 - value))
        wanted, all_ = self.share.numerator * heap.weight, 3 * self.unit * heap.weight
        spared, losses = [], []
        for at in far.tolist():
            low, high = value - at, value + at
            under = wanted - self.unit * heap.under(low) if low > 0 else all_
            over = self.unit * heap.upto(high) - wanted if high < heap.size - 1 else all_
            spared.append(min(under, over))
        for index, has in enumerate(spared):
            missing = max(self.spare - has, 0) if index < len(far) - 1 else 0
            surplus = spared[index - 1] - self.spare if index else 0
            losses.append(max(missing, surplus) * self.fine + (len(far) - 1 - index) * self.tilt)
        return far, np.array(losses, object), self.rate / self.fine


def widths(most: int) -> NDArray[np.int64]:
    """The candidates for the half width of an interval, in points, up to `most`.

    >>> widths(10).tolist()
    [0, 1, 2, 3, 4, 6, 8, 10]
    """
    powers = 1 << np.arange(most.bit_length())
    some = np.unique(np.concatenate([[0], powers, 3 * powers // 2]))
    return np.append(some[some < most], most).astype(np.int64)
