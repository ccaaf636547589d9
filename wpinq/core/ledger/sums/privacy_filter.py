"""What a ledger promises in all, and the filter: which charges keep the promise.

- "pure": the epsilons add up to `budget` at most.
- "renyi": (epsilon, delta). The epsilons add up to `budget` at most, or the Renyi divergences at one order add up to
  `limit` at most. Where the first holds, the loss is within epsilon for certain; where the second does, it is beyond
  epsilon with a probability of at most `delta - failing`. One of them holds after every charge, whichever charges are
  chosen and whichever answers they follow from, so both together promise that, without a union bound.
- "rho": the zero-concentrated losses add up to `budget` at most.

The order is fixed before any charge: if the best of several were taken after each, different ones would hold for
different answers, and their probabilities of failure would add up. `failing`, the part of delta that thresholds and
selections may spend, is fixed for the same reason: if they could spend all, whoever asks could spend it where the loss
is small so far, and keep it for the conversion where the loss is large, which together is more than delta.

Source: Feldman and Zrnic, NeurIPS 2021 (Renyi filter); Whitehouse, Ramdas, Rogers, Wu, ICML 2023 (with deltas).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from wpinq.core.ledger.sums.cost import ZERO, Composition, read_amount, write_amount
from wpinq.core.ledger.sums.renyi import Order, best_order, limit, pure_within
from wpinq.errors import ExactnessError
from wpinq.exact import decimal

PURE, RENYI, RHO = "pure", "renyi", "rho"
SHARE = Fraction(1, 100)
"""Of delta, for thresholds and selections."""


@dataclass(frozen=True)
class Promise:
    """The budget of a ledger.

    Attributes:
        accounting: "pure", "renyi" or "rho".
        budget: Epsilon in all; with "rho" that.
        delta: Delta in all.
        failing: Of it, what thresholds and selections may spend.
        order: Of the divergences that are added up; None for zero-concentrated losses, and where none are.
        limit: Of their sum.
    """

    accounting: str = PURE
    budget: Fraction = ZERO
    delta: Fraction = ZERO
    failing: Fraction = ZERO
    order: Order = None
    limit: Fraction = ZERO

    @classmethod
    def of(cls, budget: Fraction, delta: Fraction, accounting: str) -> Promise:
        """A new one.

        Raises:
            ExactnessError: Renyi divergences cannot keep it.

        >>> promise = Promise.of(Fraction(1), Fraction(1, 10**6), "renyi")
        >>> promise.order, round(float(promise.limit), 3), promise.failing
        (Fraction(22, 1), 0.535, Fraction(1, 100000000))
        """
        if accounting != RENYI:
            return cls(accounting, budget, delta, delta, None, budget)
        if not delta:
            raise ExactnessError("accounting='renyi': takes a delta above zero, for example delta='1e-6'.")
        spendable = delta - delta * SHARE
        order = best_order(budget, spendable)
        most = limit(budget, spendable, order)
        if most <= 0:
            raise ExactnessError(
                f"accounting='renyi': with epsilon {decimal(budget)} and delta {decimal(delta)} it allows no more than"
                " the sum of epsilons does; leave it out, or take more of either."
            )
        return cls(accounting, budget, delta, delta * SHARE, order, most)

    @classmethod
    def opened(cls, body: dict[str, Any]) -> Promise:
        """What the first row of a ledger says.

        Raises:
            ValueError: It adds up charges in another way, or its limit is above what it promises.
        """
        accounting = body["accounting"]
        if accounting not in (PURE, RENYI, RHO):
            raise ValueError
        budget, delta = read_amount(body["budget"]), read_amount(body["delta"])
        if accounting != RENYI:
            return cls(accounting, budget, delta, delta, None, budget)
        order, most, failing = (read_amount(body[name]) for name in ("order", "limit", "failing"))
        if not 0 <= failing < delta or most > limit(budget, delta - failing, order):
            raise ValueError
        return cls(accounting, budget, delta, failing, order, most)

    def body(self) -> dict[str, str]:
        """What the first row of a ledger says of it."""
        text = {"accounting": self.accounting, "budget": write_amount(self.budget), "delta": write_amount(self.delta)}
        if self.order is not None:
            text |= {
                "order": write_amount(self.order),
                "limit": write_amount(self.limit),
                "failing": write_amount(self.failing),
            }
        return text

    @property
    def kind(self) -> str:
        """What is added up of each question, for people: epsilon, divergence or rho."""
        return {PURE: "epsilon", RENYI: "divergence", RHO: "rho"}[self.accounting]

    @property
    def text(self) -> str:
        """The promise for people.

        >>> Promise.of(Fraction(1), Fraction(1, 10**6), "renyi").text
        "epsilon 1, delta 0.000001 by accounting='renyi'"
        """
        amount = f"{'rho' if self.accounting == RHO else 'epsilon'} {decimal(self.budget)}, delta {decimal(self.delta)}"
        return f"{amount} by accounting='renyi'" if self.accounting == RENYI else amount

    @property
    def told_share(self) -> str:
        """In brackets, for people, which part of delta is for thresholds, where that is not all of it."""
        part = f"{decimal(self.failing)} of its delta {decimal(self.delta)}"
        return f" (thresholds and selections may spend {part})" if self.failing < self.delta else ""

    def left_line(self, left: Fraction, sums: str, name: str) -> str:
        """What is left of it, as a sentence; with Renyi accounting, what both sums are."""
        if self.accounting == PURE:
            return f"Epsilon {decimal(left)} of {decimal(self.budget)} is left for {name}."
        return f"Of {self.text}, one more question of epsilon {decimal(left)} is left for {name}. {sums}."

    def insist_on_cap(self, name: str, epsilon: Fraction, delta: Fraction | None) -> None:
        """Refuse caps of an analyst that are negative or above what all may spend together.

        Raises:
            ExactnessError: One is.
        """
        for amount, most, what in ((epsilon, self.budget, "budget"), (delta or ZERO, self.failing, "delta")):
            if not 0 <= amount <= most:
                raise ExactnessError(
                    f"cap of {name!r}: {decimal(amount)} is not between 0 and the {what}, {decimal(most)}."
                )

    def raised(self, budget: Fraction) -> Promise:
        """The same with more of a budget: at the same order, so that what was added up stays."""
        if self.order is None:
            return replace(self, budget=budget, limit=budget)
        return replace(self, budget=budget, limit=limit(budget, self.delta - self.failing, self.order))

    def share(self, budget: Fraction) -> Promise:
        """A part of it, such as an analyst's."""
        return replace(self, budget=budget, limit=self.limit * budget / self.budget)

    def begun(self) -> Composition:
        """What is spent before any charge."""
        return Composition(order=self.order, curves=self.accounting != PURE)

    def holds(self, spent: Composition) -> bool:
        """Whether it holds after these charges, deltas left aside."""
        pure = self.accounting != RHO and not spent.gaussian and spent.epsilon <= self.budget
        return pure or (spent.curves and spent.divergence <= self.limit)

    def left(self, spent: Composition, bins: Fraction = Fraction(1)) -> Fraction:
        """Epsilon that one more question may cost, whatever its noise: what the better sum allows.

        Args:
            spent: What was spent.
            bins: How many bins a unit moves at least, where it moves none by more than its part.
        """
        pure = ZERO if self.accounting == RHO or spent.gaussian else self.budget - spent.epsilon
        rest = (self.limit - spent.divergence) / bins
        return max(pure, bins * pure_within(rest, self.order) if spent.curves else ZERO, ZERO)

    def rho_left(self, spent: Composition) -> Fraction:
        """Rho that Gaussian noise may still cost."""
        return max(self.limit - spent.divergence, ZERO) / (self.order or 1) if spent.curves else ZERO

    def shares(self, weights: list[Fraction]) -> list[Fraction]:
        """Epsilons in these proportions that fit all together, whatever their noise, before anything else is spent."""
        most = self.budget / sum(weights) if self.accounting != RHO else ZERO
        if self.accounting != PURE:
            most = max(most, pure_within(self.limit, self.order, tuple(sorted(weights))))
        return [most * weight for weight in weights]

    def asks(self, after: Composition, before: Composition) -> str:
        """What charges cost, for people."""
        kind = "rho" if after.only_gaussian(before) else "epsilon"
        return f"costs {kind} {decimal(after.since(before))}"

    def told(self, spent: Composition) -> str:
        """Both sums, for people; nothing of a pure ledger, which has one.

        >>> Promise.of(Fraction(1), Fraction(1, 10**6), "renyi").told(Composition())
        'Epsilons add up to 0 of 1, Renyi divergences at order 22 to 0 of 0.535352'
        """
        amounts = f"{decimal(spent.divergence)} of {decimal(self.limit)}"
        if self.accounting == PURE:
            return ""
        if self.order is None:
            return f"Zero-concentrated losses add up to {amounts}"
        pure = "no bound" if spent.gaussian else f"{decimal(spent.epsilon)} of {decimal(self.budget)}"
        return f"Epsilons add up to {pure}, Renyi divergences at order {decimal(self.order)} to {amounts}"
