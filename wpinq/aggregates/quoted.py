"""A quoted aggregate, and how its answer is computed once the quote is committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wpinq.aggregates.groups import Groups
from wpinq.aggregates.moments import Moments
from wpinq.core.measurements.answer import LEVEL, Answer
from wpinq.core.pricing.quote import Quote

if TYPE_CHECKING:
    from wpinq.core.plan.builder import Builder


def noise_of(quote: Quote[Any]) -> tuple[float, float | None]:
    """The scale of an answer's noise and half the width of its interval of 95%, as far as they are known beforehand.

    Of a sum both are in the unit of its numbers. How far noise moves a mean, a spread or a rank depends on the answer,
    so that there is no width: the scale is that of what is measured for it.
    """
    unit = quote.node.unit if isinstance(quote.node, Moments) else 1.0
    half = getattr(quote.query, "interval", None)
    width = None if half is None or unit is None else unit * float(half(LEVEL))
    return float(quote.scale) * (1.0 if unit is None else unit), width


@dataclass(frozen=True)
class ExpectedNoise:
    """The noise of a column before it is asked for.

    Attributes:
        column: Its name.
        mechanism: The name of the noise.
        scale: The scale of what is measured for it.
        half: Half the width of an interval of 95%; None where it depends on the answer.
    """

    column: str
    mechanism: str
    scale: float
    half: float | None


def expected_noise(quote: Quote[Any], column: str | None = None) -> ExpectedNoise:
    """The noise of what was quoted; without a name it is called by its last step."""
    return ExpectedNoise(column or quote.node.title, str(getattr(quote.mechanism, "name", "")), *noise_of(quote))


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
