"""The state of a ledger at one moment: what it promises, what was spent, and its last row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from wpinq.core.ledger.accountant import Accountant
from wpinq.core.ledger.cost import Composition
from wpinq.core.ledger.privacy_filter import Promise


class Seal(NamedTuple):
    """The digest of what a question about a version was answered from."""

    question: str
    version: str
    digest: bytes


@dataclass(frozen=True)
class LedgerState:
    """A ledger as one transaction read it; what others charge later does not change it.

    Attributes:
        name: The data set.
        unit: The privacy unit and its bound.
        promise: What it promises in all, and how charges are added up.
        spent: What was spent, in each sum that it keeps.
        questions: What was spent by name of the question: epsilon, or divergence where these are kept.
        rows: How many rows it has.
        code: The code of the last row, which covers all rows before it, in hexadecimal digits; empty without rows.
    """

    name: str
    unit: str
    promise: Promise
    spent: Composition
    questions: Mapping[str, Fraction]
    rows: int
    code: str

    @classmethod
    def of(cls, accountant: Accountant) -> LedgerState:
        """What an accountant holds now."""
        last = accountant.last
        return cls(
            accountant.name, accountant.people, accountant.promise, accountant.spent.including(()),
            dict(accountant.spent_on()), last.number if last else 0, last.mac.hex() if last else "",
        )  # fmt: skip

    @property
    def left(self) -> Fraction:
        """Epsilon that one more question may cost, whatever its noise."""
        return self.promise.left(self.spent)

    @property
    def told(self) -> str:
        """What charges add up to, for people, where divergences are added up too."""
        return self.promise.told(self.spent)
