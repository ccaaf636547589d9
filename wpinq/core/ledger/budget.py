"""The state of a budget: what there is, what was spent on what, and what is left.

An `Allowance` is what one analyst may still spend: the rest of their cap and of the whole budget, before and after some
charges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from wpinq.core.ledger.ledger import Ledger
from wpinq.core.ledger.sums.accountant import Accountant
from wpinq.core.ledger.sums.cost import Charge, Composition
from wpinq.core.ledger.sums.privacy_filter import PURE, RHO, Promise
from wpinq.errors import ExactnessError
from wpinq.exact import Amount, decimal, positive
from wpinq.lazy import shown_by


@dataclass(frozen=True)
class Budget:
    """What a ledger says now. Amounts are exact fractions; `float(amount)` is a float.

    Attributes:
        name: The data set.
        unit: Whom each answer protects.
        promise: What the ledger promises in all, and how charges are added up.
        total: Epsilon that may be spent in all, on all versions and tables; rho in a ledger of rho.
        spent: Epsilon that was spent. With Renyi accounting epsilons may add up to more than the total.
        divergence: The Renyi divergence that was spent beside it, of `promise.limit`, at `promise.order`; rho in a
            ledger of rho.
        left: Epsilon that one more question may cost, whatever its noise: what the better sum allows.
        delta: Delta that `release`, `select` and `sql` may spend in all.
        delta_spent: Delta that was spent.
        questions: Epsilon that was spent on each question, by its name; divergence where divergences are added up.
    """

    name: str
    unit: str
    promise: Promise
    total: Fraction
    spent: Fraction
    divergence: Fraction
    left: Fraction
    delta: Fraction
    delta_spent: Fraction
    questions: Mapping[str, Fraction]
    told: str = field(default="", repr=False)

    @classmethod
    def of(cls, ledger: Ledger) -> Budget:
        """Ask a ledger.

        Raises:
            LedgerError: It cannot be trusted or read.
        """
        state = ledger.state()
        promise, spent = state.promise, state.spent
        return cls(
            state.name, state.unit, promise, promise.budget, spent.epsilon, spent.divergence, state.left,
            promise.failing, spent.delta, state.questions, state.told,
        )  # fmt: skip

    @property
    def delta_left(self) -> Fraction:
        """Delta that is left."""
        return self.delta - self.delta_spent

    def split(self, parts: int | Sequence[Amount], of: Amount | None = None) -> list[Fraction]:
        """Epsilons that use the whole budget: they add up to it exactly, or to more where Renyi accounting allows it.

        They are parts of the whole and not of what is left, so that a script that is run again asks the same
        questions, which are free.

        Args:
            parts: How many equal ones, or a weight for each.
            of: What is split instead of the whole, in a ledger of pure epsilon.

        Raises:
            ExactnessError: There is no part, a weight is not above zero, or parts of the budget do not add up.

        >>> from wpinq import budget
        >>> from wpinq.testing import protected
        >>> year = budget(protected(page="text"))
        >>> sum(year.split(12, of=1)), year.split([3, 1], of=1)
        (Fraction(1, 1), [Fraction(3, 4), Fraction(1, 4)])
        """
        if of is not None and self.promise.accounting != PURE:
            raise ExactnessError("split(of=...): divergences do not add up as epsilons do; split the whole budget.")
        if isinstance(parts, bool) or not isinstance(parts, (int, Sequence)) or isinstance(parts, str):
            raise ExactnessError("split(...): takes a number of equal parts, or a list with a weight for each.")
        weights = [Fraction(1)] * parts if isinstance(parts, int) else [positive(part, "split(...)") for part in parts]
        if not weights:
            raise ExactnessError("split(...): there is no part; give a whole number above zero, or weights.")
        promise = self.promise if of is None else self.promise.raised(positive(of, "split(of=...)"))
        return promise.shares(weights)

    def __repr__(self) -> str:
        head = [] if self.promise.accounting == PURE or not self.questions else [f"  {self.promise.kind:>10}  question"]
        rows = (f"  {decimal(amount):>10}  {label}" for label, amount in self.questions.items())
        return "\n".join([f"{self}", *head, *rows])

    def __str__(self) -> str:
        what = " for thresholds and selections" if self.delta < self.promise.delta else ""
        delta = f" Delta {decimal(self.delta_left)} of {decimal(self.delta)} is left{what}." if self.delta else ""
        return f"{self.promise.left_line(self.left, self.told, self.name)}{delta}"

    _repr_html_ = shown_by("budget_html")


MANY = 1_000
"""As many questions of one kind are counted, and no more."""


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

    @classmethod
    def of(cls, ledger: Ledger, analyst: str | None, charges: Sequence[Charge] = ()) -> tuple[Allowance, Allowance]:
        """What an analyst may still spend, now and after some charges; nothing is charged.

        Raises:
            LedgerError: The ledger cannot be trusted or read.

        >>> from wpinq.core.ledger import Cost
        >>> ledger = Ledger.open(None, name="views", unit="record", budget=Fraction(1))
        >>> ledger.cap("ann", Fraction(1, 2))
        >>> charge = Charge("5eed5eed", (Cost("1/8"),), "1", "pages", "ann")
        >>> now, then = Allowance.of(ledger, "ann", [charge])
        >>> str(now.own), str(then.own), str(then.left), then.more
        ('1/2', '3/8', '7/8', 3)
        """
        with ledger.transaction() as transaction:
            known = transaction.accountant
            costs = [cost for charge_ in charges for cost in charge_.costs]
            new = [cost for charge_ in charges if charge_.key not in known.charges for cost in charge_.costs]
            after = known.spent.including(new)
            fits = _fitting(known, analyst)
            more = _most(lambda number: fits(after.including(costs, number))) if costs else 0
            return _said(known, analyst, known.spent), _said(known, analyst, after, more, fits=not new or fits(after))

    @staticmethod
    def capped(ledger: Ledger) -> dict[str, Capped]:
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
