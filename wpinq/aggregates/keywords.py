"""Keyword arguments of all aggregates; `count` and `sum` document them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wpinq.core.measurements.answer import LEVEL
from wpinq.core.pricing.privacy_cost import LAPLACE, Terms
from wpinq.exact import Amount


@dataclass(frozen=True)
class Options:
    """The keyword arguments of an aggregate.

    Attributes:
        by: The columns that make groups.
        keys: The groups to answer.
        name: Tells repetitions apart.
        analyst: Who is charged.
        step: To whose multiples numbers are rounded; None where the bounds tell.
        confidence: How often the interval of a rank holds, or what was asked for by `within`.
        within: How near to the truth noise shall leave an answer, instead of epsilon.
        mechanism: What adds noise to counts and sums.
        rho, delta: What Gaussian noise costs, instead of epsilon or beside it.
    """

    by: str | Sequence[str] | None = None
    keys: Any = None
    name: str | None = None
    analyst: str | None = None
    step: Amount | None = None
    confidence: Amount = LEVEL
    within: Amount | None = None
    mechanism: str = LAPLACE
    rho: Amount | None = None
    delta: Amount | None = None

    def terms(self, epsilon: Amount | None, call: str) -> Terms:
        """What was said of the cost of noise."""
        return Terms(epsilon, self.mechanism, self.rho, self.delta, self.within, self.confidence, call)
