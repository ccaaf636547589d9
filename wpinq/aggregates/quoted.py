"""A quoted aggregate, and how its answer is computed once the quote is committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wpinq.aggregates.groups import Groups
from wpinq.core.measurements.answer import Answer
from wpinq.core.pricing.quote import Quote

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder


@dataclass(frozen=True)
class QuotedAggregate:
    """A quoted aggregate.

    Attributes:
        quote: What it costs.
        answer: Gives the answer of the query that was charged for the quote, for its groups, or for others.
    """

    quote: Quote[Any]
    answer: Callable[[Any, Groups | None], Answer]

    def charge(self, of: Builder[Any]) -> Answer:
        """Commit the quote alone, by way of the collection, and return the answer.

        Raises:
            BudgetError, LedgerError, PlanError: See `commit`.
        """
        (made,) = of._commit([self.quote])
        return self.answer(made, None)
