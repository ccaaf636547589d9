"""Ranks: minimum, maximum, median and quantiles of a column, chosen on a declared grid by an exponential mechanism.

`aims` defines the candidates and losses. Both choices, of the answer and of its interval, are made at the first use of
either, at half of epsilon each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wpinq.aggregates.groups import Groups
from wpinq.aggregates.quoted import QuotedAggregate
from wpinq.aggregates.utility import Aim, Losses, Terms
from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.measurements.answer import Answer, Released
from wpinq.core.measurements.provenance import About
from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.noise.accuracy import least
from wpinq.core.noise.exponential import PermuteAndFlip
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.node import Node
from wpinq.core.pricing.quote import Quote, price
from wpinq.core.pricing.threshold import l1_sensitivity
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.identity import identities
from wpinq.core.records.weights import CAPACITY
from wpinq.core.runs.epochs import answered_from
from wpinq.errors import ExactnessError, PlanError
from wpinq.exact import decimal
from wpinq.failures import redacted


class QueryCost(NamedTuple):
    """The epsilon of a query, or by what weight its answer may be off; its confidence, and who is charged."""

    call: str
    epsilon: Fraction | None
    confidence: Fraction
    name: str | None = None
    analyst: str | None = None
    within: Fraction | None = None


class GridPoints(NamedTuple):
    """The numbers of the cells, and the largest distance of a record's number from that of its cell."""

    numbers: Sequence[float]
    blur: float = 0.0


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
    terms = Terms(Fraction(1), l1_sensitivity(survey), 1 - confidence, len(points.numbers))
    if epsilon is None:
        epsilon = _epsilon(aim, terms, None if within is None else within * survey.root.resolution, call)
    elif within is not None:
        raise PlanError(f"{call}(epsilon=, within=): give either what it costs, or how many records it may be off by.")
    result = aim(replace(terms, epsilon=epsilon))
    ranks = Ranks(result, points, confidence, where, node.title)
    quote = price(
        survey, epsilon, call=call, kind=Quantile, mechanism=ranks, fields=("exponential", *result.code),
        name=name, analyst=analyst, epochs=epochs,
    )  # fmt: skip
    return QuotedAggregate(quote, Quantile.answer)


def _epsilon(aim: Callable[[Terms], Aim], terms: Terms, within: Fraction | None, call: str) -> Fraction:
    """The least epsilon, in four significant digits, for which an answer is off by so many units of 1/resolution."""
    if within is None:
        raise ExactnessError(
            f"{call}(): give either epsilon=, what it costs, or within=, how many records the answer may be off by."
        )
    if not 1 <= within <= CAPACITY * terms.l1:
        raise PlanError(f"{call}(within=...): is a number of records, from 1 to as many as there can be.")
    return least(lambda epsilon: aim(replace(terms, epsilon=epsilon)).misses <= within, 10 * terms.l1 / within)


class Quantile(ChargedQuery):
    """A charged rank statistic, chosen when it is first asked for and the same for ever.

    Attributes:
        confidence: How often an interval holds the true statistic of the numbers, clamped to their bounds.
    """

    purpose = "exponential"

    def __init__(self, quote: Quote[Any]) -> None:
        super().__init__(quote)
        ranks: Ranks = quote.mechanism
        self._aim, self._points, self.confidence, self._where, self._call = ranks
        self._found: np.ndarray | None = None
        self._charged = self

    def answer(self, where: Groups | None = None) -> Answer:
        """What is told of it, for its groups or others of the same columns, answered from the same run."""
        found = self
        if where is not None:
            found = Quantile(self.quote)
            found._where, found._charged = where, self._charged
        about = About(self._call, (self,), level=self.confidence)
        return Answer(about, lambda *_: found._released(), many=found._where.keys is not None)

    def _released(self) -> Released:
        return self._where.released(*self._all().T)

    def _all(self) -> np.ndarray:
        refuse_inside(self._call)
        if self._found is None:
            self._found = redacted(self._call, self._choose)
        return self._found

    def _choose(self) -> np.ndarray:
        """One row for each group: the answer and both ends, as numbers."""
        histogram, words = self._charged._settled()
        numbers, blur = self._points
        size = len(numbers)
        frame = bin_frame(self._where.bins(range(size)), self.node.schema)
        ids = identities(frame, self.node.schema, self.key_owner.identity_key)
        weights = histogram.lookup(frame, ids).reshape(-1, size)
        result = np.empty((len(self._where), 3))
        for row, (mass, own) in enumerate(zip(weights, ids.reshape(-1, size, 2), strict=True)):

            def pick(turn: int, places: NDArray[np.int64], losses: Losses, rate: Fraction, own: Any = own) -> int:
                least: Losses = losses - losses.min()
                return int(places[PermuteAndFlip(rate).choose(words, own[places], least, turn)])

            result[row] = [numbers[place] for place in self._aim.choose(mass, pick)]
        value, low, high = result.T
        return np.stack([value, np.maximum(low - blur, numbers[0]), np.minimum(high + blur, numbers[-1])], axis=1)

    def __repr__(self) -> str:
        return f"<{self._call}, epsilon {decimal(self.epsilon)}>"
