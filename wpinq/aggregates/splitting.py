"""Several quantiles at once, by recursive splitting: one is chosen, and the others on its two sides.

A tree of choices: each is among the places between two cuts that were chosen before, for a share of the weight that
lies between them, and splits them. A choice on which others rest takes a cut (`heap.py`); one on which none rests takes
a point, whose rank is anything from what weighs less to that and its own weight. A place with B before it and A behind
it, of the weight B + A between the two cuts, has the loss |(1 - q) B - q A| for the share q.

*What it costs.* Let a unit move the weights by m in all, of which m_c goes to what is between the cuts of choice c,
whatever cuts were chosen. It moves B and A by b and a with |b| + |a| <= m_c, and the loss by max(q, 1 - q) m_c at most,
up or down. So the exponential mechanism at rate r changes each probability by a factor of exp(2 r max(q, 1 - q) m_c) at
most: once by the loss of the place, once by those of all others. With r = e_c / (2 max(q, 1 - q) S) this is e_c m_c /
S, S being the largest movement of any unit. The probability of all cuts together is a product over the tree, so what is
lost is the sum of e_c m_c / S over its choices. What is between the cuts of two choices has no part in common, unless
one rests on the other. So each bit of movement, at one place, is counted in the choices along one path from the root
alone, and with e_c that sum to epsilon along every path the loss is epsilon m / S at most: epsilon for whole units,
and in proportion for less, as prices of parts of a partition ask. It is for units of one record and of people with many
records alike, since nothing was said of where m lies; movements may have both signs.

*How epsilon is split.* A choice at e_c errs by about 2 max(q, 1 - q) S / e_c. Of all trees and splits along their
paths the one is taken for which these sum to the least, where the error of a choice counts for those that rest on it
too, by half of the square of what they have of it. With a_c for each choice, and B for the sum of what its two sides
are worth, a tree is worth (sqrt(a_c) + sqrt(B))^2, and the choice gets sqrt(a_c) of sqrt(a_c) + sqrt(B) of what is
left.

Source: Kaplan, Schnapp and Stemmer, "Differentially private approximate quantiles", ICML 2022, for the recursion, with
equal parts of epsilon for each level; Smith, STOC 2011, for the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from math import isqrt
from typing import TypeAlias

from wpinq.aggregates.heap import Heap
from wpinq.core.noise.valleys import Valley

Choose: TypeAlias = Callable[[int, Valley, Fraction], int]
"""Chooses a place, from the number of the choice, the losses and their rate."""

PARTS_OF_EPSILON = 1 << 10
"""A choice gets a whole number of so many parts of what is left along its path."""
FINE = 1 << 20
"""What a tree is worth is rounded to this, and its root to the root of this."""
ALL = 9
"""Among so many quantiles all are tried as the first one to be chosen; of more, those in the middle."""


@dataclass(frozen=True)
class Split:
    """A choice of one quantile, and those that rest on it.

    Attributes:
        index: The number of the quantile, in the order of shares.
        share: Of the weight between the two cuts.
        part: Of epsilon.
        below: The choice among what lies before it, where there are lower shares.
        above: The choice among what lies behind it.
    """

    index: int
    share: Fraction
    part: Fraction
    below: Split | None = None
    above: Split | None = None

    @property
    def last(self) -> bool:
        """Whether no other choice rests on it."""
        return self.below is None and self.above is None

    def rate(self, epsilon: Fraction, l1: int, parts: int) -> Fraction:
        """Of its losses, for this epsilon of all choices along a path and this L1 sensitivity in 1/resolution."""
        return epsilon * self.part / (2 * max(self.share, 1 - self.share) * l1 * self.share.denominator * parts)


@dataclass(frozen=True)
class Between:
    """What lies between two cuts, of which a share is to lie before a place.

    Losses are whole numbers: of 1/denominator of the share of what the heap counts in.
    """

    heap: Heap
    start: int
    end: int
    share: Fraction

    @cached_property
    def base(self) -> int:
        """What lies before the first cut."""
        return self.heap.before(self.start)

    @cached_property
    def wanted(self) -> int:
        """What the share weighs."""
        return self.share.numerator * (self.heap.before(self.end) - self.base)

    def weight(self, cut: int) -> int:
        """What lies between the first cut and this one."""
        return self.share.denominator * (self.heap.before(cut) - self.base)

    def reach(self, weight: int) -> int:
        """The first cut with so much before it, in units of a loss."""
        return self.heap.reach(self.base - (-weight // self.share.denominator))


class Cuts(Between):
    """The losses of cuts."""

    @property
    def first(self) -> int:
        """The first cut."""
        return self.start

    @property
    def last(self) -> int:
        """The last cut."""
        return self.end

    @cached_property
    def least(self) -> int:
        """That of a cut beside the wanted rank."""
        near = min(max(self.reach(self.wanted), self.start), self.end)
        return min(self.loss(near), self.loss(max(near - 1, self.start)))

    def loss(self, cut: int) -> int:
        """How far the rank is from the wanted one."""
        return abs(self.weight(cut) - self.wanted)

    def within(self, loss: int) -> tuple[int, int]:
        """The cuts that are no farther."""
        start, stop = self.reach(self.wanted - loss), self.reach(self.wanted + loss + 1) - 1
        return max(start, self.start), min(stop, self.end)


class Points(Between):
    """The losses of points of the grid, of which the outer ones may be cut."""

    @property
    def first(self) -> int:
        """The first point that is not cut off."""
        return min(self.start // self.heap.parts, self.heap.size - 1)

    @property
    def last(self) -> int:
        """The last point that is not cut off."""
        return max((self.end - 1) // self.heap.parts, self.first)

    @property
    def least(self) -> int:
        """One of the points has the wanted rank."""
        return 0

    def loss(self, point: int) -> int:
        """How far its ranks are from the wanted one."""
        under = self.weight(max(point * self.heap.parts, self.start))
        upto = self.weight(min((point + 1) * self.heap.parts, self.end))
        return max(under - self.wanted, self.wanted - upto, 0)

    def within(self, loss: int) -> tuple[int, int]:
        """The points that are no farther."""
        start = -(-self.reach(self.wanted - loss) // self.heap.parts) - 1
        stop = (self.reach(self.wanted + loss + 1) - 1) // self.heap.parts
        return max(start, self.first), min(stop, self.last)


def quantiles(heap: Heap, tree: Split, epsilon: Fraction, l1: int, choose: Choose) -> dict[int, int]:
    """Choose a point of the grid for each quantile.

    Args:
        heap: The weights.
        tree: What is chosen after what.
        epsilon: Of all choices together.
        l1: The L1 sensitivity, in units of 1/resolution.
        choose: Makes a choice.

    Returns:
        Points by the number of the quantile; they never fall where shares rise.
    """
    points: dict[int, int] = {}
    todo: list[tuple[Split | None, int, int]] = [(tree, 0, heap.end)]
    while todo:
        split, start, end = todo.pop()
        if split is None:
            continue
        rate = split.rate(epsilon, l1, heap.parts)
        if split.last:
            points[split.index] = choose(split.index, Points(heap, start, end, split.share), rate)
            continue
        cut = choose(split.index, Cuts(heap, start, end, split.share), rate)
        points[split.index] = min(cut // heap.parts, heap.size - 1)
        todo += [(split.below, start, cut), (split.above, cut, end)]
    return points


@lru_cache(maxsize=64)
def tree_of(shares: tuple[Fraction, ...]) -> Split:
    """What is chosen after what, for shares that rise.

    >>> tree = tree_of((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)))
    >>> tree.index, tree.share, tree.below.index, tree.above.index
    (1, Fraction(1, 2), 0, 2)
    >>> tree.part + tree.below.part
    Fraction(1, 1)
    """
    bounds = (Fraction(0), *shares, Fraction(1))

    @cache
    def best(start: int, stop: int) -> tuple[int, int, int]:
        """What the quantiles from one to before another are worth, the first of them, and the worth of its sides."""
        if start == stop:
            return 0, start, 0
        low, high = bounds[start], bounds[stop + 1]
        worth = []
        for index in _candidates(start, stop):
            sides = best(start, index)[0] + best(index + 1, stop)[0]
            error = _error(shares[start:stop], index - start, low, high)
            worth.append(((isqrt(error) + isqrt(sides)) ** 2, index, sides))
        return min(worth)

    def built(start: int, stop: int, left: Fraction) -> Split | None:
        if start == stop:
            return None
        _, index, sides = best(start, stop)
        low, high = bounds[start], bounds[stop + 1]
        error = isqrt(_error(shares[start:stop], index - start, low, high))
        taken = Fraction(max(1, PARTS_OF_EPSILON * error // (error + isqrt(sides))), PARTS_OF_EPSILON)
        rest = left * (1 - taken)
        return Split(
            index, (shares[index] - low) / (high - low), left * taken,
            built(start, index, rest), built(index + 1, stop, rest),
        )  # fmt: skip

    result = built(0, len(shares), Fraction(1))
    assert result is not None  # noqa: S101  there is a share
    return result


def _candidates(start: int, stop: int) -> range:
    middle = (start + stop) // 2
    return range(start, stop) if stop - start <= ALL else range(middle - 1, middle + 2)


def _error(shares: tuple[Fraction, ...], index: int, low: Fraction, high: Fraction) -> int:
    """How much the error of a choice counts, squared: its own, and what others have of it."""
    chosen = shares[index]
    others = sum((((share_of - low) / (chosen - low)) ** 2 for share_of in shares[:index]), Fraction(0))
    others += sum((((high - share_of) / (high - chosen)) ** 2 for share_of in shares[index + 1 :]), Fraction(0))
    share = (chosen - low) / (high - low)
    return int(max(share, 1 - share) * (1 + others / 2) * FINE**2)
