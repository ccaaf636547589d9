"""What one analyst may still spend: the rest of the own cap and of the whole budget, before and after some charges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from wpinq.core.ledger.accountant import Accountant
from wpinq.core.ledger.charge import Charge
from wpinq.core.ledger.cost import Composition
from wpinq.core.ledger.ledger import Ledger
from wpinq.core.ledger.privacy_filter import RHO

MANY = 1_000
"""As many questions of one kind are counted, and no more."""


@dataclass(frozen=True)
class Allowance:
    """What an analyst may still spend of one data set.

    Attributes:
        name: The data set.
        kind: What its budget is in: epsilon or rho. With Renyi accounting it is the epsilon of one more question.
        budget: The whole budget.
        left: What is left of it, for everybody.
        cap: The analyst's cap; None where the curator has set none, and then only the budget bounds.
        own: What is left of that.
        delta: Delta that may be spent in all.
        delta_left: Delta that is left, for everybody.
        delta_cap: The analyst's cap of delta; None where there is none.
        delta_own: What is left of that.
        more: How many further questions of this kind both allow, `MANY` at most; 0 where none was given.
        fits: Whether both allow what was given.
    """

    name: str
    kind: str
    budget: Fraction
    left: Fraction
    cap: Fraction | None
    own: Fraction | None
    delta: Fraction
    delta_left: Fraction
    delta_cap: Fraction | None = None
    delta_own: Fraction | None = None
    more: int = 0
    fits: bool = True


def allowances(ledger: Ledger, analyst: str | None, charges: Sequence[Charge] = ()) -> tuple[Allowance, Allowance]:
    """What an analyst may still spend, now and after some charges; nothing is charged.

    Raises:
        LedgerError: The ledger cannot be trusted or read.

    >>> from wpinq.core.ledger import Cost
    >>> ledger = Ledger.open(None, name="views", unit="record", budget=Fraction(1))
    >>> ledger.cap("ann", Fraction(1, 2))
    >>> charge = Charge("5eed5eed", (Cost("1/8"),), "1", "pages", "ann")
    >>> now, then = allowances(ledger, "ann", [charge])
    >>> str(now.own), str(then.own), str(then.left), then.more
    ('1/2', '3/8', '7/8', 3)
    """
    with ledger.transaction() as transaction:
        known = transaction.accountant
        costs = [cost for charge_ in charges for cost in charge_.costs]
        new = [cost for charge_ in charges if charge_.key not in known.charges for cost in charge_.costs]
        after = known.spent.including(new)
        fits = _fitting(known, analyst)
        more = _most(lambda number: fits(after.including(costs * number))) if costs else 0
        return _said(known, analyst, known.spent), _said(known, analyst, after, more, fits=not new or fits(after))


@dataclass(frozen=True)
class Capped:
    """What one analyst may spend, and has spent.

    Attributes:
        cap: Of epsilon, or of rho in a ledger of rho.
        spent: Of the same.
        delta_cap: Of delta; None where there is none.
        delta_spent: Of the same.
    """

    cap: Fraction
    spent: Fraction
    delta_cap: Fraction | None
    delta_spent: Fraction


def caps(ledger: Ledger) -> dict[str, Capped]:
    """The caps of each analyst that has one, and what each has spent; for the curator.

    Raises:
        LedgerError: The ledger cannot be trusted or read.
    """
    with ledger.transaction() as transaction:
        known = transaction.accountant
        paid, none = known.lost if known.promise.accounting == RHO else known.paid, Fraction(0)
        return {
            name or "": Capped(cap, paid.get(name, none), known.delta_caps.get(name), known.failed.get(name, none))
            for name, cap in sorted(known.caps.items(), key=lambda entry: entry[0] or "")
        }


def _fitting(known: Accountant, analyst: str | None) -> Callable[[Composition], bool]:
    """Whether the accountant would admit charges of the analyst that come to these totals."""
    cap = known.caps.get(analyst)
    capped, delta = None if cap is None else known.promise.share(cap), known.delta_caps.get(analyst)

    def fits(after: Composition) -> bool:
        mine = known.by(analyst, after)
        whole = after.delta <= known.promise.failing and known.promise.holds(after)
        return whole and (capped is None or capped.holds(mine)) and (delta is None or mine.delta <= delta)

    return fits


def _most(fits: Callable[[int], bool]) -> int:
    """The largest number that fits, of those up to `MANY`; what fits of a number fits of a smaller one."""
    low, high = 0, 1
    while high <= MANY and fits(high):
        low, high = high, high * 2
    high = min(high, MANY + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _said(known: Accountant, analyst: str | None, spent: Composition, more: int = 0, *, fits: bool = True) -> Allowance:
    promise, cap, delta = known.promise, known.caps.get(analyst), known.delta_caps.get(analyst)
    kind = "rho" if promise.accounting == RHO else "epsilon"
    left = promise.rho_left if kind == "rho" else promise.left
    share, mine = None if cap is None else promise.share(cap), known.by(analyst, spent)
    return Allowance(
        known.name, kind, promise.budget, left(spent), cap,
        None if share is None else (share.rho_left if kind == "rho" else share.left)(mine),
        promise.failing, promise.failing - spent.delta,
        delta, None if delta is None else max(delta - mine.delta, Fraction(0)), more, fits,
    )  # fmt: skip
