"""What a release may spend: in all, or so much in each month, say, which the same people lose month after month."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from wpinq.errors import BudgetError, PlanError
from wpinq.exact import decimal
from wpinq.publish.declared import Budget, Every, amount
from wpinq.publish.periods import FORMS, Period
from wpinq.publish.register import Register

LENGTHS: tuple[Every, ...] = ("hour", "day", "week", "month", "year")


def check(budget: Budget, every: Every) -> None:
    """Refuse a budget for stretches that periods do not fit into.

    Raises:
        PlanError: They do not.
    """
    fits = budget.per is None or (
        LENGTHS.index(budget.per) >= LENGTHS.index(every) and not (every == "week" and budget.per in ("month", "year"))
    )
    if not fits:
        raise PlanError(f"budget.per = {budget.per!r}: each {every} must lie in one {budget.per}; give another, or the"
                        " budget in all.")  # fmt: skip


def said(budget: Budget) -> str:
    """What a budget means for the people in the data, in words."""
    epsilon = decimal(amount(budget.epsilon, "budget.epsilon"))
    if budget.per is None:
        return (
            f"Epsilon {epsilon} in all, over all periods: what a privacy unit loses adds up over the periods that its"
            " records are in, and is never more than this."
        )
    return (
        f"Epsilon {epsilon} in each {budget.per}. A privacy unit whose records are in several of them loses the sum:"
        f" after n, at most n times {epsilon}. There is no bound over all time."
    )


@dataclass(frozen=True)
class Allowance:
    """What the ledger of a release may hold when a period is asked for.

    Args:
        budget: What the release file says.
        register: The periods so far.
        period: The period.
    """

    budget: Budget
    register: Register
    period: Period

    @property
    def epsilon(self) -> Fraction:
        """Epsilon that the ledger holds in all by now."""
        each = amount(self.budget.epsilon, "budget.epsilon")
        if self.budget.per is None:
            return each
        stretches = {self._stretch(name, record.every) for name, record in self.register.records().items()}
        return each * len(stretches | {Period.of(self.period.start, self.budget.per).name})

    @property
    def delta(self) -> Fraction:
        """Delta in all."""
        return amount(self.budget.delta, "budget.delta")

    def insist(self, price: Fraction) -> None:
        """Refuse a period whose stretch has too little left.

        Raises:
            BudgetError: It has; nothing was charged.
        """
        if self.budget.per is None:
            return
        own = Period.of(self.period.start, self.budget.per).name
        spent = sum(
            (
                Fraction(record.facts["cost"]["epsilon"])
                for name, record in self.register.records().items()
                if "cost" in record.facts and name != self.period.name and self._stretch(name, record.every) == own
            ),
            Fraction(0),
        )
        left = amount(self.budget.epsilon, "budget.epsilon") - spent
        if price > left:
            raise BudgetError(
                f"{self.period.name}: costs epsilon {decimal(price)}, and {decimal(left)} is left in {own}; nothing was"
                f" charged. The next {self.budget.per} has a budget of its own.",
                requested=price,
                remaining=left,
            )

    def _stretch(self, name: str, every: str) -> str:
        assert self.budget.per is not None and every in FORMS  # noqa: S101
        return Period.of(Period.parse(name, every).start, self.budget.per).name  # type: ignore[arg-type]
