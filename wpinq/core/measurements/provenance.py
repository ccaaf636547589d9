"""What an answer is of: query, data set, unit, cost, level, and what is not in it."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.operators.shave import Shave, ShaveBy
from wpinq.core.plan.bias import biases
from wpinq.core.plan.key_weight import key_weight
from wpinq.core.plan.node import Node, sources, steps
from wpinq.core.plan.stability import by_ledger


@dataclass(frozen=True)
class About:
    """What an answer is of.

    Attributes:
        query: What was asked, for people.
        charged: What was charged for it.
        delta: What it cost each data set beside epsilon.
        threshold: What a noisy weight had to reach for its row to be published; None where rows were given by name.
        bias: What bounds, clamping and weights keep out of it.
        level: How often its intervals hold, for the noise; None where each caller may say.
        intervals: Whether it has any.
    """

    query: str
    charged: Sequence[ChargedQuery]
    delta: Fraction = Fraction(0)
    threshold: float | None = None
    bias: tuple[str, ...] | None = None
    level: Fraction | None = None
    intervals: bool = True

    def described(self, level: Fraction) -> dict[str, Any]:
        """All of it, as JSON has it."""
        data = list(dict.fromkeys(one for each in self.charged for one in sources(each.node)))
        bias = self.bias
        if bias is None:
            bias = tuple(dict.fromkeys(clause for one in self.charged for clause in biases(one.node)))
        return {
            "query": self.query,
            "data set": ", ".join(one.name for one in data),
            "version": ", ".join(one.version for one in data),
            "before the bound": list(dict.fromkeys(f"{one.name}: {step}" for one in data for step in one.before)),
            "unit": "; ".join(dict.fromkeys(one.unit.text for one in data)),
            "protects": "; ".join(dict.fromkeys(one.unit.protects for one in data)),
            "cost": self._cost,
            "level": float(level),
            "intervals are of": "noise alone, each by itself" if self.intervals else None,
            "beside noise": list(bias),
            "threshold": self.threshold,
            "cut": cut([one.node for one in self.charged]),
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
        }

    @property
    def _cost(self) -> dict[str, float]:
        """What it costs; without an epsilon where all noise is Gaussian, which no epsilon bounds."""
        rho = {"rho": float(self.rho)} if self.rho else {}
        epsilon = {"epsilon": float(self.epsilon)} if self.epsilon or not rho else {}
        noise = sum(one.quote.payment.delta for one in {one.question: one for one in self.charged}.values())
        return {**epsilon, "delta": float(self.delta * self._tables + noise), **rho}

    @property
    def _tables(self) -> int:
        """In how many tables of a ledger one unit can be."""
        each = [paid for one in self.charged for paid in by_ledger(one.quote.sensitivities).values()]
        return max(map(len, each), default=1)

    @property
    def rho(self) -> Fraction:
        """What Gaussian noise costs one unit, likewise."""
        return sum((one.rho for one in {one.question: one for one in self.charged}.values()), Fraction(0))

    @property
    def epsilon(self) -> Fraction:
        """What it costs one unit, in all tables of a ledger together; what was measured once is charged once.

        With the choice of a bound, where the question chose it.
        """
        paid: dict[str, Fraction] = defaultdict(Fraction)
        read = dict.fromkeys(data for one in self.charged for data in sources(one.node))
        for book, choice in dict.fromkeys((data.book, data.unit.choice) for data in read):
            if choice is not None and choice.asked:
                paid[book] += choice.epsilon
        for one in {one.question: one for one in self.charged}.values():
            for book, shares in by_ledger(one.quote.sensitivities).items():
                paid[book] += one.epsilon * sum(shares)
        return max(paid.values(), default=Fraction(0))


def cut(roots: Iterable[Node]) -> float | None:
    """The multiplicity that no item can pass, where plans count items by slices and a bound says so; else None."""
    shaved = {node.source for root in roots for node in steps(root) if isinstance(node, (Shave, ShaveBy))}
    found = [key_weight(items, frozenset(items.schema.names)) for items in shaved]
    return min((float(one) for one in found if one is not None), default=None)
