"""What a release may spend: in all, or so much in each month, say, which the same people lose month after month."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from wpinq.apps.publish.file.declared import Budget, Every, amount
from wpinq.apps.publish.file.periods import FORMS, Period
from wpinq.apps.publish.price import SHOWN, Price
from wpinq.apps.publish.state import Record, Register
from wpinq.core import RENYI, RHO, Asked, Composition, Ledger, Promise, epsilon_of
from wpinq.errors import BudgetError, PlanError
from wpinq.exact import decimal

COST, BEFORE = "cost", "cost before"
"""Of a period's facts: what it costs, and what was charged for it before, of other records or questions."""
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
    """What a budget means for the people in the data, in words, with the composition that it has."""
    each, delta = _each(budget), decimal(_delta(budget))
    what, more, after = f"Epsilon {decimal(each)}", "", f"at most n times {decimal(each)}"
    if budget.accounting == RENYI:
        what += f" at delta {delta}, by Renyi divergences at one order,"
        after += f", at delta {delta} for all of them together"
    if budget.rho is not None:
        what, year = f"Rho {decimal(each)}", 12 * each
        more = f" Rho is zero-concentrated: {decimal(each)} of it is epsilon {_of_rho(each)} at delta 0.000001."
        after += f" in rho; {decimal(year)}, after 12, is epsilon {_of_rho(year)} at that delta"
    if budget.per is None:
        return (
            f"{what} in all, over all periods: what a privacy unit loses adds up over the periods that its records are"
            f" in, and is never more than this.{more}"
        )
    return (
        f"{what} in each {budget.per}.{more} A privacy unit whose records are in several of them loses the sum: after"
        f" n, {after}. There is no bound over all time."
    )


def _of_rho(rho: Fraction) -> str:
    """The epsilon of a zero-concentrated loss at `SHOWN`, rounded up."""
    return f"{math.ceil(epsilon_of(lambda order: order * rho, SHOWN) * 1000) / 1000:g}"


def _each(budget: Budget) -> Fraction:
    """Epsilon, or rho, in all or in each stretch."""
    return amount(budget.epsilon if budget.rho is None else budget.rho, "budget")


def _delta(budget: Budget) -> Fraction:
    return amount(budget.delta, "budget.delta")


def new_promise(budget: Budget) -> Promise:
    """What a new ledger would promise, for one stretch where there are several."""
    promise = asked_of(budget, _each(budget)).promise()
    assert promise is not None  # noqa: S101  there is an amount
    return promise


def unchanged(budget: Budget, held: Promise) -> None:
    """Refuse a budget that is not that of the ledger, which is raised by hand alone.

    Raises:
        PlanError: It is another one.
    """
    wanted = new_promise(budget)
    if budget.per is None and float(wanted.budget) != float(held.budget):
        raise PlanError(f"[budget]: the ledger's is {held.text}, and not {wanted.text}; write what it holds, or to "
                        "spend more: `wpinq ledger raise PATH EPSILON`.")  # fmt: skip


def standing(budget: Budget, held: Promise) -> str:
    """What a budget means, in words; where the ledger holds another one, that no period is published."""
    try:
        unchanged(budget, held)
    except PlanError as error:
        return f"No period is published before these agree: {error}"
    return said(budget)


def asked_of(budget: Budget, total: Fraction | None) -> Asked:
    """What a ledger is asked for, with a budget of so much in all; None for what it holds."""
    if budget.rho is not None:
        return Asked(total, _delta(budget), RHO)
    return Asked(total, _delta(budget), budget.accounting)


@dataclass(frozen=True)
class Funds:
    """What is left to be spent.

    Attributes:
        unit: "epsilon" or "rho".
        total: The budget.
        left: What is left of it.
        stretch: The stretch of time that it is of; None where it is in all.
    """

    unit: str
    total: Fraction
    left: Fraction
    stretch: str | None


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
    def total(self) -> Fraction:
        """Epsilon, or rho, that the ledger holds in all by now."""
        if self.budget.per is None:
            return _each(self.budget)
        stretches = {Period.of(_of(record).start, self.budget.per) for _, record in self.register.everybody()}
        return _each(self.budget) * len(stretches | {Period.of(self.period.start, self.budget.per)})

    def terms(self, ledger: Path) -> tuple[Asked, Fraction | None]:
        """What a ledger is opened with: what it is asked for, and the least that it allows if it is there already."""
        total, fixed = self.total, not Ledger.exists(ledger) or self.budget.per is None
        return asked_of(self.budget, total if fixed else None), None if fixed else total

    def insist(self, price: Price, before: Price, promise: Promise) -> None:
        """Refuse a period whose stretch has too little left.

        Each stretch keeps the promise by itself: its epsilons, or its divergences at the ledger's order, add up to
        what the budget of one allows, for all releases over the ledger together. The sums of n stretches then fit the
        ledger, whose limit grows by more.

        Args:
            price: What the period costs.
            before: What was charged for it before, of other records or questions.
            promise: What the ledger promises in all.

        Raises:
            BudgetError: It has; nothing was charged.
        """
        if self.budget.per is None:
            return
        stretch, spent = Period.of(self.period.start, self.budget.per).name, self.spent(but=self.period.name) + before
        limit = promise.raised(_each(self.budget))
        if not limit.holds((spent + price).spent(limit)):
            left = limit.rho_left(spent.spent(limit)) if price.rho else limit.left(spent.spent(limit))
            note = limit.told(spent.spent(limit))
            raise BudgetError(
                f"{self.period.name}: costs {price.text}, and {decimal(left)} is left in {stretch}"
                f"{f' ({note})' if note else ''}; nothing was charged. The next {self.budget.per} has a budget of its"
                " own.",
                requested=price.rho or price.epsilon,
                remaining=left,
            )

    def spent(self, but: str | None = None) -> Price:
        """What the periods in the stretch of this one cost, of all releases over the ledger, but for one of this one's.

        What is begun counts: it was charged, or is about to be.
        """
        assert self.budget.per is not None  # noqa: S101
        stretch, ours = Period.of(self.period.start, self.budget.per), (self.register.release, but)
        others = [record for release, record in self.register.everybody() if (release, record.period) != ours]
        within = [each for each in others if _of(each).start < stretch.end and stretch.start < _of(each).end]
        return sum(map(paid, within), Price())

    def funds(self, sums: tuple[Promise, Composition]) -> Funds:
        """What is left, in all or in the stretch of this period.

        Args:
            sums: What the ledger promises, and what was spent.
        """
        promise, spent = sums
        stretch = None
        if self.budget.per is not None:
            stretch = Period.of(self.period.start, self.budget.per).name
            promise = promise.raised(_each(self.budget))
            spent = self.spent().spent(promise)
        if promise.accounting == RHO:
            return Funds("rho", promise.budget, promise.rho_left(spent), stretch)
        return Funds("epsilon", promise.budget, promise.left(spent), stretch)


def _of(record: Record) -> Period:
    assert record.every in FORMS  # noqa: S101
    return Period.parse(record.period, record.every)  # type: ignore[arg-type]


def paid(record: Record) -> Price:
    """What was charged for a period, or is about to be: for all records and questions that it had."""
    return sum((Price.read(record.facts[key]) for key in (COST, BEFORE) if key in record.facts), Price())
