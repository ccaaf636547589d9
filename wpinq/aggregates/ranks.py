"""Ranks: minimum, maximum, median and quantiles of a column, chosen on a declared grid by an exponential mechanism.

A point j of the grid with weight B below it and E at it holds the ranks from B to B + E; its loss is how far the wanted
rank is from them. One unit moves a rank, and the wanted rank with it, by no more than the unit weighs. The first point
holds all ranks below 0 and the last all ranks beyond, so some point never has a loss, whatever the data.

Half of epsilon buys the answer and a quarter each end of its interval: for these the wanted rank is moved outwards by
as much as the choice may miss it. Nobody can be told the extreme record itself, so `min` and `max` want a rank that is
a few records inwards, as few as the mechanism can tell from none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypedDict, Unpack

import numpy as np
import polars as pl

from wpinq.aggregates.groups import Groups
from wpinq.bins import bin_frame
from wpinq.engines.failures import quietly
from wpinq.errors import PlanError
from wpinq.exact import decimal
from wpinq.identity import identities
from wpinq.noise.exponential import PermuteAndFlip
from wpinq.operators.lattice import measurable
from wpinq.plan import Node
from wpinq.question import Question
from wpinq.runs import refuse_inside
from wpinq.selection import moves
from wpinq.versions import answerable, live_log

SHARES = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
"""Of epsilon: for the answer, and for the ends of its interval."""


class Cost(TypedDict):
    """What a question costs whom, and how often its interval holds."""

    call: str
    epsilon: Fraction
    confidence: Fraction
    name: str | None
    analyst: str | None


@dataclass(frozen=True)
class Rank:
    """A wanted rank as a function of the total weight N, in lattice units: share N, kept off the ends, and moved.

    Attributes:
        share: From 0 to 1.
        inwards: How far from the ends it stays, less a half, though never beyond the middle. The half keeps it off the
            gap between two numbers, so that one record inwards is the extreme itself.
    """

    share: Fraction
    inwards: int = 0

    @property
    def slope(self) -> Fraction:
        """By how much more than the unit's own weight a rank and the wanted rank can part: at most 1."""
        return Fraction(1) if self.inwards else max(self.share, 1 - self.share)

    @property
    def unit(self) -> int:
        """Ranks are whole numbers of 1/unit."""
        return math.lcm(2, self.share.denominator)

    def of(self, total: int) -> int:
        """The wanted rank, in 1/unit."""
        wanted = int(self.share * self.unit) * total
        if not self.inwards:
            return wanted
        least = min((2 * self.inwards - 1) * self.unit // 2, total * self.unit // 2)
        return min(max(wanted, least), total * self.unit - least)


class Quantile(Question):
    """A charged rank statistic, chosen when it is first asked for and the same for ever.

    Attributes:
        confidence: How often the interval holds the number at the wanted rank.
    """

    def __init__(
        self, node: Node, where: Groups, points: Sequence[float], share: Fraction, *, extreme: bool = False,
        **cost: Unpack[Cost],
    ) -> None:  # fmt: skip
        epsilon, confidence, call = cost["epsilon"], cost["confidence"], cost["call"]
        if not 0 < confidence < 1:
            raise PlanError(f"{call}: confidence= is strictly between 0 and 1; write 0.95, say.")
        root = measurable(node)
        plan, self._where, self._points, self.confidence = answerable(root, call), where, tuple(points), confidence
        self._call = node.title
        self._unit_moves = moves(plan)
        miss = (1 - confidence) / 2
        self._rank = Rank(share, self._misses(Fraction(1), epsilon * SHARES[0], 2 * miss) if extreme else 0)
        self._choices = [PermuteAndFlip(self._rate(epsilon * part)) for part in SHARES]
        ends = self._misses(self._rank.slope, epsilon * SHARES[1], miss)
        self._shifts = (0, -ends, ends)
        fields = (self._rank.share, self._rank.inwards, ends, len(points))
        super().__init__(
            plan,
            epsilon,
            cost["name"],
            call=call,
            purpose="exponential",
            fields=("exponential", *fields),
            analyst=cost["analyst"],
        )
        self._found: np.ndarray | None = None
        if (log := live_log(root)) is not None:
            log.asked.append((self, root))

    @property
    def value(self) -> float:
        """The answer, where there is one group.

        Raises:
            PlanError: There are groups; use `table`.
            SourceError, EngineError, LedgerError: The dataflow could not run.
        """
        return float(self._one()[0])

    def interval(self) -> tuple[float, float]:
        """An interval that holds the number at the wanted rank with `confidence`, where there is one group.

        Raises:
            PlanError, SourceError, EngineError, LedgerError: See `value`.
        """
        found = self._one()
        return float(found[1]), float(found[2])

    def table(self) -> pl.DataFrame:
        """One row for each group, in the order of `keys`: the key, `value`, `low` and `high`."""
        value, low, high = self._all().T
        return self._where.table({"value": value, "low": low, "high": high})

    def _one(self) -> np.ndarray:
        if self._where.keys is not None:
            raise PlanError("an answer by groups has many values; use table().")
        found: np.ndarray = self._all()[0]
        return found

    def _all(self) -> np.ndarray:
        refuse_inside(self._call)
        if self._found is None:
            self._found = quietly(self._call, self._choose)
        return self._found

    def _choose(self) -> np.ndarray:
        """One row for each group: the answer and both ends, as numbers."""
        histogram, words = self._settled()
        size = len(self._points)
        frame = bin_frame(self._where.bins(range(size)), self.node.schema)
        ids = identities(frame, self.node.schema, self.home.identity_key)
        weights = histogram.lookup(frame, ids).reshape(-1, size)
        found = np.empty((len(self._where), len(SHARES)))
        for row, (mass, own) in enumerate(zip(weights, ids.reshape(-1, size, 2), strict=True)):
            for turn, (choice, shift) in enumerate(zip(self._choices, self._shifts, strict=True)):
                place = choice.choose(words, own, self._losses(mass, shift), turn)
                found[row, turn] = self._points[place]
        value, low, high = found.T
        return np.stack([value, np.minimum(low, value), np.maximum(high, value)], axis=1)

    def _losses(self, mass: np.ndarray, shift: int) -> np.ndarray:
        """How far the wanted rank is from those of each point, in 1/unit of a lattice unit: exact integers."""
        largest = (int(np.abs(mass).sum()) + abs(shift)) * self._rank.unit
        mass = mass.astype(np.int64 if 4 * largest < 2**63 else object)
        above = np.cumsum(mass) * self._rank.unit
        below = above - mass * self._rank.unit
        wanted = self._rank.of(int(mass.sum())) + shift * self._rank.unit
        short, over = wanted - above, below - wanted
        short[-1] = over[0] = 0
        losses = np.maximum(np.maximum(short, over), 0)
        relative: np.ndarray = losses - losses.min()
        return relative

    def _rate(self, epsilon: Fraction) -> Fraction:
        """Loss per 1/unit of a lattice unit, so that one unit costs epsilon."""
        return epsilon / (2 * self._rank.slope * self._unit_moves * self._rank.unit)

    def _misses(self, slope: Fraction, epsilon: Fraction, chance: Fraction) -> int:
        """How far a choice misses the wanted rank with this probability at the most, in lattice units."""
        far = 2 * float(slope) * self._unit_moves / float(epsilon) * math.log(len(self._points) / float(chance))
        return math.ceil(far * (1 + 1e-9))

    def __repr__(self) -> str:
        return f"<{self._call}, epsilon {decimal(self.epsilon)}>"
