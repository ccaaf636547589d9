"""An aggregate that was quoted, and how its answer follows once the quote is committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from wpinq.measurements.quote import Quote

if TYPE_CHECKING:
    from wpinq.plan.builder import Builder

A_co = TypeVar("A_co", covariant=True)


@dataclass(frozen=True)
class QuotedAggregate(Generic[A_co]):
    """A quoted aggregate.

    Attributes:
        quote: What it costs.
        answer: Gives the answer of the query that was charged for the quote.
    """

    quote: Quote[Any]
    answer: Callable[[Any], A_co]

    def charge(self, of: Builder[Any]) -> A_co:
        """Charge for it alone, as the collection that it was asked of charges.

        Raises:
            BudgetError, LedgerError, PlanError: See `commit`.
        """
        (made,) = of._commit([self.quote])
        return self.answer(made)
