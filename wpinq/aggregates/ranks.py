"""Ranks: minimum, maximum, median and quantiles of a column, chosen on a declared grid by an exponential mechanism.

`utility.py` and `rank_aim.py` define the candidates and losses. All choices, of the answers and of their intervals, are
made at the first use of any.

`GroupViews` tells what each group of a histogram on a grid weighs, and makes its choices. The random words of a group
are those of its bins: a choice among points has those of the points, and one among very many places those of the
group's first point. Each choice of a group has a number, so no two share a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wpinq.aggregates.groups import Groups
from wpinq.aggregates.heap import Heap
from wpinq.aggregates.quoted import QuotedAggregate
from wpinq.aggregates.scale import SIZE, Magnitudes, Scale
from wpinq.aggregates.utility import Aim, Losses, Terms
from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.measurements.answer import About, Answer, Released
from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.noise import Words
from wpinq.core.noise.accuracy import least
from wpinq.core.noise.exponential import PermuteAndFlip
from wpinq.core.noise.valleys import Draws, Valley, ValleyChoice
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.node import Node
from wpinq.core.pricing.quote import Quote, price
from wpinq.core.pricing.sensitivity import l1_sensitivity
from wpinq.core.records.identity import column_identities, integer_identities, tuple_identities
from wpinq.core.records.schema import Schema, in_columns
from wpinq.core.records.weights import CAPACITY
from wpinq.core.runs.epochs import answered_from
from wpinq.core.state.histogram import Histogram
from wpinq.errors import ExactnessError, PlanError, redacted


class QueryCost(NamedTuple):
    """The epsilon of a query, or by what weight its answer may be off; its confidence, and who is charged."""

    call: str
    epsilon: Fraction | None
    confidence: Fraction
    name: str | None = None
    analyst: str | None = None
    within: Fraction | None = None


@dataclass(frozen=True)
class GridPoints:
    """The numbers of the cells, and the largest distance of a record's number from that of its cell."""

    numbers: Sequence[float] | Scale | Magnitudes
    blur: float = 0.0

    @property
    def size(self) -> int:
        """How many there are, which `len` cannot always tell."""
        if isinstance(self.numbers, Magnitudes):
            return SIZE
        return self.numbers.high - self.numbers.low + 1 if isinstance(self.numbers, Scale) else len(self.numbers)

    def at(self, points: NDArray[np.int64]) -> NDArray[np.float64]:
        """The numbers of some cells."""
        if isinstance(self.numbers, (Scale, Magnitudes)):
            return np.array(self.numbers.points(points.ravel().tolist())).reshape(points.shape)
        return np.asarray(self.numbers, np.float64)[points]

    def around(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Intervals that hold all numbers of records in some cells, as far as those lie between the outer numbers."""
        if isinstance(self.numbers, Magnitudes):
            ends = (self.numbers.ends(at.ravel().tolist(), upper=upper) for at, upper in ((low, False), (high, True)))
            below, above = (np.array(end).reshape(low.shape) for end in ends)
            return below, above
        least, most = self.at(np.array([0, self.size - 1]))
        return np.maximum(self.at(low) - self.blur, least), np.minimum(self.at(high) + self.blur, most)


class Ranks(NamedTuple):
    """The mechanism of a rank statistic.

    Attributes:
        aim: Which rank, and how it is chosen.
        points: The numbers of the cells.
        confidence: The probability with which an interval holds the truth.
        where: The groups that are answered.
        title: The aggregate, for people.
    """

    aim: Aim
    points: GridPoints
    confidence: Fraction
    where: Groups
    title: str


def ask_rank(
    node: Node, where: Groups, points: GridPoints, aim: Callable[[Terms], Aim], cost: QueryCost
) -> QuotedAggregate:  # fmt: skip
    """Quote a rank statistic.

    Args:
        node: The cells of each group.
        where: The groups.
        points: The numbers that the cells stand for; intervals are widened by their blur.
        aim: Which rank, from what it may cost and risk.
        cost: What it costs whom.

    Raises:
        PlanError: `confidence` is not strictly between 0 and 1, `within` is less than a record or more than all, there
            are windows, or see `price`.
        ExactnessError: Neither epsilon nor `within` is given.
    """
    call, epsilon, confidence, name, analyst, within = cost
    if not 0 < confidence < 1:
        raise PlanError(f"{call}: confidence= is strictly between 0 and 1; write 0.95, say.")
    survey, epochs = answered_from(fit_noise(node), call)
    terms = Terms(Fraction(1), l1_sensitivity(survey), 1 - confidence, points.size)
    if epsilon is None:
        epsilon = _epsilon(aim, terms, None if within is None else within * survey.root.resolution, call)
    elif within is not None:
        raise PlanError(f"{call}(epsilon=, within=): give either what it costs, or how many records it may be off by.")
    result = aim(replace(terms, epsilon=epsilon))
    ranks = Ranks(result, points, confidence, where, node.title)
    quote = price(
        survey, epsilon, call=call, kind=ChargedRanks, mechanism=ranks, fields=("exponential", *result.code),
        name=name, analyst=analyst, epochs=epochs,
    )  # fmt: skip
    return QuotedAggregate(quote, ChargedRanks.answer)


def _epsilon(aim: Callable[[Terms], Aim], terms: Terms, within: Fraction | None, call: str) -> Fraction:
    """The least epsilon, in four significant digits, for which an answer is off by so many units of 1/resolution."""
    if within is None:
        raise ExactnessError(
            f"{call}(): give either epsilon=, what it costs, or within=, how many records the answer may be off by."
        )
    if not 1 <= within <= CAPACITY * terms.l1:
        raise PlanError(f"{call}(within=...): is a number of records, from 1 to as many as there can be.")
    return least(lambda epsilon: aim(replace(terms, epsilon=epsilon)).misses <= within, 10 * terms.l1 / within)


class ChargedRanks(ChargedQuery):
    """Charged rank statistics, chosen when one is first asked for and the same for ever.

    Attributes:
        confidence: How often an interval holds the true statistic of the numbers, clamped to their bounds.
    """

    purpose = "exponential"

    def __init__(self, quote: Quote[Any]) -> None:
        super().__init__(quote)
        ranks: Ranks = quote.mechanism
        self._aim, self._points, self.confidence, self._where, self._call = ranks
        self._numbers: np.ndarray | None = None
        self._charged = self

    def answer(self, where: Groups | None = None, index: int = 0) -> Answer:
        """What is told of one statistic, for its groups or others of the same columns, answered from the same run."""
        return self.made_of(where, lambda numbers: numbers[:, index])

    def made_of(self, where: Groups | None, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Answer:
        """What a function makes of all statistics of each group, such as the distance of two quantiles.

        Args:
            where: As in `answer`.
            function: Takes an array of groups, statistics, and answer and both ends; gives answer and ends by group.
        """
        ranks = self._of(where)
        return ranks._answer(lambda: ranks._where.released(*function(ranks._all()).T), many=bool(ranks._where.by))

    def answers(self, shares: Sequence[Fraction], indices: Sequence[int]) -> Answer:
        """What is told of some statistics: a row for each share in each group."""

        def released() -> Released:
            numbers = self._all()[:, list(indices)]
            groups = self._where.repeated(len(shares))
            shown = pl.Series("share", [float(share) for share in shares] * len(self._where))
            return groups.released(*numbers.reshape(-1, 3).T, shown)

        return self._answer(released, many=True)

    def _of(self, where: Groups | None) -> ChargedRanks:
        if where is None:
            return self
        result = ChargedRanks(self.quote)
        result._where, result._charged = where, self._charged
        return result

    def _answer(self, released: Callable[[], Released], *, many: bool) -> Answer:
        """An answer, whose intervals are left out where there are none."""
        intervals = getattr(self._aim, "intervals", True)
        about = About(self._call, (self,), level=self.confidence if intervals else None, intervals=intervals)

        def result(*_: object) -> Released:
            table, ends = released()
            return table, ends if intervals else {}

        return Answer(about, result, many=many)

    def _all(self) -> np.ndarray:
        refuse_inside(self._call)
        if self._numbers is None:
            self._numbers = redacted(self._call, self._choose)
        return self._numbers

    def _choose(self) -> np.ndarray:
        """For each group and each statistic the answer and both ends, as numbers."""
        histogram, words = self._charged._settled()
        views = GroupViews(self.node.schema, self._where, self._points.size, self.key_owner.identity_key)
        points = np.array([self._aim.choices(view) for view in views.of(histogram, words)], np.int64)
        value, low, high = np.moveaxis(points.reshape(-1, self._aim.answers, 3), 2, 0)
        return np.stack([self._points.at(value), *self._points.around(low, high)], axis=2)


@dataclass(frozen=True)
class GroupViews:
    """How to find the weights of groups.

    Attributes:
        schema: The columns of a bin: those of groups, and last the point.
        where: The groups.
        size: How many points the grid has.
        key: Of identities.
    """

    schema: Schema
    where: Groups
    size: int
    key: bytes

    @cached_property
    def _keys(self) -> list[NDArray[np.uint64]]:
        """The identities of the values of each group's columns."""
        if self.where.schema is None or self.where.keys is None:
            return []
        return column_identities(self.where.keys, self.where.schema, self.key)

    @cached_property
    def _points(self) -> NDArray[np.uint64]:
        return integer_identities(np.arange(self.size if self.where.by else 0), self.key)

    def of(self, histogram: Histogram, words: Words) -> Iterator[GroupView]:
        """Group by group."""
        return (GroupView(self, row, histogram, words) for row in range(len(self.where)))

    def identities(self, row: int, size: int) -> NDArray[np.uint64]:
        """Of the bins of a group and the points from 0 on."""
        points = self._points[:size] if size <= len(self._points) else integer_identities(np.arange(size), self.key)
        if not self._keys:
            return points
        return tuple_identities(
            [*(np.repeat(key[row : row + 1], size, axis=0) for key in self._keys), points], self.key
        )


@dataclass(frozen=True)
class GroupView:
    """What one group weighs, and its choices; see `utility.View`."""

    views: GroupViews
    row: int
    histogram: Histogram
    words: Words

    @cached_property
    def mass(self) -> Losses:
        """The weight at each point."""
        name = self.views.schema.names[-1]
        frame = in_columns([pl.Series(name, np.arange(self.views.size))])  # of one column; others go by identities
        return self.histogram.lookup(frame, self.views.identities(self.row, self.views.size))

    @cached_property
    def heap(self) -> Heap:
        """The weights that there are."""
        if self.views.schema.ranged:
            return Heap(self.views.size, *self.histogram.numbers())
        return Heap(self.views.size, np.arange(self.views.size), self.mass)

    def flip(self, turn: int, points: NDArray[np.int64], losses: Losses, rate: Fraction) -> int:
        """Choose one of some places by permute-and-flip."""
        ids = self.views.identities(self.row, int(points.max()) + 1)[points]
        least: Any = losses - losses.min()
        return int(points[PermuteAndFlip(rate).choose(self.words, ids, least, turn)])

    def cut(self, turn: int, valley: Valley, rate: Fraction) -> int:
        """Choose one of very many places by the exponential mechanism."""
        return ValleyChoice(rate).choose(Draws(self.words, self.views.identities(self.row, 1), turn), valley)
