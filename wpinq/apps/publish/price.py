"""What a question or a period costs one unit, in each of the sums that a ledger may keep, and how many fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wpinq.core import PURE, RHO, Composition, Promise, epsilon_of
from wpinq.exact import decimal

if TYPE_CHECKING:
    from wpinq import Quote

SHOWN = Fraction(1, 10**6)
"""The delta at which people are told what a rho means."""


@dataclass(frozen=True)
class Price:
    """A price. Prices of different questions and periods add up, since each period is a table of its own.

    Attributes:
        epsilon: Of noise that an epsilon bounds.
        rho: Of Gaussian noise.
        delta: Of thresholds, and of Gaussian noise of an epsilon and a delta.
        divergence: Of all noise, as the ledger adds it up: at its order, or as rho; 0 where it adds up epsilons alone.
        concentrated: Of all noise, the zero-concentrated loss; 0 where the ledger adds up epsilons alone.
    """

    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    divergence: Fraction = Fraction(0)
    concentrated: Fraction = Fraction(0)

    @classmethod
    def of(cls, quotes: Iterable[Quote[Any]], promise: Promise) -> Price:
        """What quotes cost under a promise, each question once, as it is charged."""
        each = {quote.question: quote for quote in quotes}.values()
        costs = [cost for quote in each for _, charge in quote.charges for cost in charge.costs]
        curves = promise.accounting != PURE
        sums = [promise.begun(), Composition(curves=curves)]
        at_order, concentrated = (quote.including(costs).divergence if curves else Fraction(0) for quote in sums)
        epsilon, rho = (sum((getattr(quote, name) for quote in each), Fraction(0)) for name in ("epsilon", "rho"))
        delta = sum((cost.delta for cost in costs), Fraction(0))
        return cls(epsilon, rho, delta, at_order, concentrated)

    @classmethod
    def read(cls, facts: Mapping[str, str]) -> Price:
        """What `facts` wrote; an earlier wpinq wrote epsilon and delta alone."""
        return cls(*(Fraction(facts.get(amount.name, "0")) for amount in fields(cls)))

    @property
    def facts(self) -> dict[str, str]:
        """It as evidence and the register hold it; epsilon and delta always."""
        amounts = {amount.name: getattr(self, amount.name) for amount in fields(self)}
        return {name: str(amount) for name, amount in amounts.items() if amount or name in ("epsilon", "delta")}

    @property
    def text(self) -> str:
        """It for people: `epsilon 1`, `rho 0.01`, with its delta."""
        noise = [
            f"{name} {decimal(amount)}" for name, amount in (("epsilon", self.epsilon), ("rho", self.rho)) if amount
        ]
        delta = f", delta {decimal(self.delta)}" if self.delta else ""
        return f"{' and '.join(noise) or 'epsilon 0'}{delta}"

    def __add__(self, other: Price) -> Price:
        return Price(*(getattr(self, amount.name) + getattr(other, amount.name) for amount in fields(self)))

    def promised(self, promise: Promise) -> tuple[Fraction, Fraction]:
        """An (epsilon, delta) that it is by itself: of Gaussian noise, at the delta of the promise, or `SHOWN`."""
        if not self.rho:
            return self.epsilon, self.delta
        delta = SHOWN if promise.accounting == RHO else promise.delta - promise.failing
        epsilon = epsilon_of(lambda order: order * self.concentrated, delta)
        return Fraction(-(-epsilon * 10**6 // 1), 10**6), delta + self.delta

    def spent(self, promise: Promise) -> Composition:
        """The sums of a ledger that holds nothing but this."""
        return begun(promise, self.epsilon, self.divergence, self.delta, gaussian=self.rho > 0)

    def fits(self, promise: Promise, spent: Composition) -> int | None:
        """How many of it fit what is left of a promise; None where nothing ends them."""
        sums = [] if promise.accounting == RHO or spent.gaussian or self.rho else [
            (promise.budget - spent.epsilon, self.epsilon)
        ]  # fmt: skip
        sums += [(promise.limit - spent.divergence, self.divergence)] if spent.curves else []
        many = [max((int(left // each) for left, each in sums if each), default=0)] if sums else []
        many += [int((promise.failing - spent.delta) // self.delta)] if self.delta else []
        return max(min(many), 0) if many else None

    def lasting(self, promise: Promise, spent: Composition, like: str = "") -> str:
        """For how many more periods that is, as a clause; and that delta ends them, where it does."""
        many, without = self.fits(promise, spent), replace(self, delta=Fraction(0)).fits(promise, spent)
        if many is None:
            return ""
        ends = "; then delta is spent" if without is None or without > many else ""
        return f", for {many:,} more period{'s' * (many != 1)}{like}{ends}"


def begun(promise: Promise, epsilon: Fraction, divergence: Fraction, delta: Fraction, *, gaussian: bool) -> Composition:
    """The sums of a ledger by their amounts alone."""
    result = promise.begun()
    result.pure.amount, result.renyi.amount, result.delta, result.gaussian = epsilon, divergence, delta, gaussian
    return result
