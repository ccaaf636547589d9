"""What an answer is of: query, data set, unit, cost, level, and what is not in it."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.plan.node import Node, sources, steps
from wpinq.core.plan.person_bound import key_weight
from wpinq.core.plan.phrase import biases
from wpinq.core.plan.stability import by_ledger

LEVEL = Fraction(95, 100)
"""How often an interval holds where nothing is said."""


@dataclass(frozen=True)
class About:
    """What an answer is of.

    Attributes:
        query: The question, as people read it.
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
        read = list(dict.fromkeys(data for query in self.charged for data in sources(query.node)))
        bias = self.bias
        if bias is None:
            bias = tuple(dict.fromkeys(clause for query in self.charged for clause in biases(query.node)))
        return {
            "query": self.query,
            "data set": ", ".join(data.name for data in read),
            "version": ", ".join(data.version for data in read),
            "before the bound": list(dict.fromkeys(f"{data.name}: {step}" for data in read for step in data.before)),
            "unit": "; ".join(dict.fromkeys(data.unit.text for data in read)),
            "protects": "; ".join(dict.fromkeys(data.unit.protects for data in read)),
            "cost": self._cost,
            "level": float(level),
            "intervals are of": "noise alone, each by itself" if self.intervals else None,
            "beside noise": list(bias),
            "threshold": self.threshold,
            "cut": cut([query.node for query in self.charged]),
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
        }

    @property
    def _cost(self) -> dict[str, float]:
        """What it costs; without an epsilon where all noise is Gaussian, which no epsilon bounds."""
        rho = {"rho": float(self.rho)} if self.rho else {}
        epsilon = {"epsilon": float(self.epsilon)} if self.epsilon or not rho else {}
        noise = sum(query.quote.payment.delta for query in {query.question: query for query in self.charged}.values())
        return {**epsilon, "delta": float(self.delta * self._tables + noise), **rho}

    @property
    def _tables(self) -> int:
        """In how many tables of a ledger one unit can be."""
        each = [paid for query in self.charged for paid in by_ledger(query.quote.sensitivities).values()]
        return max(map(len, each), default=1)

    @property
    def rho(self) -> Fraction:
        """What Gaussian noise costs one unit, likewise."""
        return sum((query.rho for query in {query.question: query for query in self.charged}.values()), Fraction(0))

    @property
    def epsilon(self) -> Fraction:
        """What it costs one unit, in all tables of a ledger together; what was measured once is charged once.

        With the choice of a bound, where the question chose it.
        """
        paid: dict[str, Fraction] = defaultdict(Fraction)
        read = dict.fromkeys(data for query in self.charged for data in sources(query.node))
        for book, choice in dict.fromkeys((data.book, data.unit.choice) for data in read):
            if choice is not None and choice.asked:
                paid[book] += choice.epsilon
        for query in {query.question: query for query in self.charged}.values():
            for book, shares in by_ledger(query.quote.sensitivities).items():
                paid[book] += query.epsilon * sum(shares)
        return max(paid.values(), default=Fraction(0))


def cut(roots: Iterable[Node]) -> float | None:
    """The multiplicity that no item can pass, where plans count items by slices and a bound says so; else None."""
    from wpinq.core.operators.slices import Slicing

    shaved = {node.source for root in roots for node in steps(root) if isinstance(node, Slicing)}
    weights = [key_weight(items, frozenset(items.schema.names)) for items in shaved]
    return min((float(weight) for weight in weights if weight is not None), default=None)
