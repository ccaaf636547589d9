"""The state of a budget: what there is, what was spent on what, and what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape

from wpinq.errors import ExactnessError
from wpinq.exact import Amount, decimal, positive
from wpinq.ledger.ledger import Ledger

SPENT_ALL = (
    "Nothing is left for new questions; what was asked stays free to ask again. `wpinq ledger raise PATH EPSILON`"
    " allows more, for next month too, which the same people lose as well"
)


@dataclass(frozen=True)
class Budget:
    """What a ledger says now. Amounts are exact fractions; `float(amount)` is a float.

    Attributes:
        name: The data set.
        unit: Whom each answer protects.
        total: Epsilon that may be spent in all, on all versions and tables.
        spent: Epsilon that was spent.
        delta: Delta that may be spent in all.
        delta_spent: Delta that was spent.
        questions: Epsilon that was spent on each question, by its name.
    """

    name: str
    unit: str
    total: Fraction
    spent: Fraction
    delta: Fraction
    delta_spent: Fraction
    questions: Mapping[str, Fraction]

    @classmethod
    def of(cls, ledger: Ledger) -> Budget:
        """Ask a ledger.

        Raises:
            LedgerError: It cannot be trusted or read.
        """
        with ledger._session() as session:
            known = session.accountant
            return cls(
                known.name, known.unit, known.budget, known.spent.epsilon, known.delta, known.spent.delta,
                dict(known.spent_on()),
            )  # fmt: skip

    @property
    def left(self) -> Fraction:
        """Epsilon that is left."""
        return self.total - self.spent

    @property
    def delta_left(self) -> Fraction:
        """Delta that is left."""
        return self.delta - self.delta_spent

    def split(self, parts: int | Sequence[Amount], of: Amount | None = None) -> list[Fraction]:
        """Epsilons that add up to the whole budget, exactly.

        They are parts of the whole and not of what is left, so that a script that is run again asks the same
        questions, which are free.

        Args:
            parts: How many equal ones, or a weight for each.
            of: What is split instead of the whole.

        Raises:
            ExactnessError: There is no part, or a weight is not above zero.

        >>> from wpinq import budget
        >>> from wpinq.testing import protected
        >>> year = budget(protected(page="text"))
        >>> sum(year.split(12, of=1)), year.split([3, 1], of=1)
        (Fraction(1, 1), [Fraction(3, 4), Fraction(1, 4)])
        """
        whole = self.total if of is None else positive(of, "split(of=...)")
        if isinstance(parts, bool) or not isinstance(parts, (int, Sequence)) or isinstance(parts, str):
            raise ExactnessError("split(...): takes a number of equal parts, or a list with a weight for each.")
        weights = [Fraction(1)] * parts if isinstance(parts, int) else [positive(one, "split(...)") for one in parts]
        if not weights:
            raise ExactnessError("split(...): there is no part; give a whole number above zero, or weights.")
        return [whole * weight / sum(weights) for weight in weights]

    def __repr__(self) -> str:
        lines = [f"{self}", *(f"  {decimal(amount):>10}  {label}" for label, amount in self.questions.items())]
        return "\n".join(lines)

    def __str__(self) -> str:
        delta = f" Delta {decimal(self.delta_left)} of {decimal(self.delta)} is left." if self.delta else ""
        return f"Epsilon {decimal(self.left)} of {decimal(self.total)} is left for {self.name}.{delta}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(label)}</td><td>{decimal(amount)}</td></tr>" for label, amount in self.questions.items()
        )
        head = "<tr><th>question</th><th>epsilon</th></tr>"
        about = f"<small>Each answer protects {escape(self.unit)}.</small>"
        return f"<div><b>{escape(str(self))}</b><table>{head}{rows}</table>{about}</div>"


def last_row(ledger: Ledger) -> tuple[int, str]:
    """The number of a ledger's last row, and its code, which covers all rows before it.

    Raises:
        LedgerError: It cannot be trusted or read.
    """
    with ledger._session() as session:
        last = session.accountant.last
        return (0, "") if last is None else (last.number, last.mac.hex())
