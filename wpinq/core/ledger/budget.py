"""The state of a budget: what there is, what was spent on what, and what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from wpinq.core.ledger.ledger import Ledger
from wpinq.core.ledger.privacy_filter import PURE, Promise
from wpinq.errors import ExactnessError
from wpinq.exact import Amount, decimal, positive
from wpinq.html.parts import framed, gauge, table, text


def left_line(promise: Promise, left: Fraction, sums: str, name: str) -> str:
    """What is left of a budget, as a sentence; of one with Renyi accounting, what both sums are."""
    if promise.accounting == PURE:
        return f"Epsilon {decimal(left)} of {decimal(promise.budget)} is left for {name}."
    return f"Of {promise.text}, one more question of epsilon {decimal(left)} is left for {name}. {sums}."


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
        return f"{left_line(self.promise, self.left, self.told, self.name)}{delta}"

    def _repr_html_(self) -> str:
        pure = self.promise.accounting == PURE
        left, whole = (self.left, self.total) if pure else (self.promise.limit - self.divergence, self.promise.limit)
        rows = [(label, decimal(amount)) for label, amount in self.questions.items()]
        spent = table(("question", self.promise.kind), rows) if rows else text("Nothing was asked yet.")
        return framed(str(self), gauge(left, whole, str(self)), spent, text(f"Each answer protects {self.unit}."))


def code_of_row(ledger: Ledger, number: int) -> str | None:
    """The code of one of a ledger's rows; None where it has no such row.

    Raises:
        LedgerError: It cannot be trusted or read.
    """
    with ledger.transaction() as transaction:
        return transaction.code(number)
