"""What a period would cost, which errors to expect, and how long the budget lasts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from wpinq.aggregates.expected_noise import ExpectedNoise
from wpinq.apps.publish.price import Price
from wpinq.core import Composition, Promise
from wpinq.exact import decimal


@dataclass(frozen=True)
class Priced:
    """What one question would cost in one period.

    Attributes:
        name: The question.
        asked: What is asked.
        price: What it costs.
        expected: What noise is to be expected in each of its columns.
        threshold: The noisy count below which groups are left out; None where they are declared.
    """

    name: str
    asked: str
    price: Price
    expected: list[ExpectedNoise]
    threshold: float | None = None


@dataclass(frozen=True)
class Plan:
    """What a period would cost, and how long the budget lasts.

    Attributes:
        period: The period whose source was opened for its columns.
        questions: Each question's price.
        budget: The budget in words.
        promise: What the ledger promises.
        spent: What it holds.
        renewed: Whether the budget comes anew for each stretch of time.
    """

    period: str
    questions: list[Priced]
    budget: str
    promise: Promise
    spent: Composition
    renewed: bool

    @property
    def price(self) -> Price:
        """What a period costs."""
        return sum((one.price for one in self.questions), Price())

    @property
    def epsilon(self) -> Fraction:
        """Of it, what an epsilon bounds."""
        return self.price.epsilon

    @property
    def delta(self) -> Fraction:
        """What a period costs beside that."""
        return self.price.delta

    @property
    def left(self) -> Fraction | None:
        """What is left for one more question of this noise, epsilon or rho; None where it comes anew."""
        left = self.promise.rho_left if self.price.rho else self.promise.left
        return None if self.renewed else left(self.spent)

    @property
    def left_line(self) -> str:
        """What is left, and for how many periods, as a sentence; of a ledger with two sums, what both are."""
        if self.left is None:
            return ""
        lasts = self.price.lasting(self.promise, self.spent)
        told = f" {told}." if (told := self.promise.told(self.spent)) else ""
        return f"{'Rho' if self.price.rho else 'Epsilon'} {decimal(self.left)} is left{lasts}.{told}"

    @property
    def lasts(self) -> int | None:
        """For how many more periods the budget lasts; None where nothing ends it."""
        return None if self.renewed else self.price.fits(self.promise, self.spent)
