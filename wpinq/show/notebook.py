"""What a notebook shows of plans, quotes, measurements and budgets, and the line that a measurement is at a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wpinq.core.ledger.sums.privacy_filter import PURE
from wpinq.core.measurements.answer import LEVEL
from wpinq.exact import decimal
from wpinq.html.numbers import beside_noise, nearly, of_noise, whose
from wpinq.html.parts import facts, framed, gauge, lines, table, text
from wpinq.show.explain import explained

if TYPE_CHECKING:
    from wpinq.core.ledger.budget import Budget
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.plan.node import Node
    from wpinq.core.pricing.quote import Quote


def plan_html(root: Node, heading: str) -> str:
    """A plan that is not measured yet."""
    return framed(heading, lines(explained(root, None)))


def quote_html(quote: Quote[Any]) -> str:
    """A quote, as its text."""
    return framed("Quote", lines(str(quote).splitlines()), text("A quote charges nothing; measure(quote=...) does."))


def measurement_text(measurement: Measurement) -> str:
    """A measurement in one line, without any answer."""
    name = f"{measurement.name!r}, " if measurement.name else ""
    paid, scale = measurement.quote.payment.text, nearly(measurement.scale)
    return f"<measurement {name}{measurement.node.schema}, {paid}, scale {scale}>"


def measurement_html(measurement: Measurement) -> str:
    """A measurement: its bins, its noise, and what it cost."""
    about = measurement.about
    noise = f"{measurement.quote.mechanism.name}, scale {nearly(measurement.scale)}"
    if not measurement.times.continual:  # else it differs from epoch to epoch
        noise += f"; {of_noise(measurement.interval(), LEVEL, 'a bin')}"
    known = {"bins": str(measurement.node.schema), "noise": noise, "cost": whose(about)}
    return framed(f"Measurement {about['query']}", facts(known.items()), text(beside_noise(about["beside noise"])))


def budget_html(budget: Budget) -> str:
    """A budget: what is left, and what was asked."""
    promise, pure = budget.promise, budget.promise.accounting == PURE
    left, whole = (budget.left, budget.total) if pure else (promise.limit - budget.divergence, promise.limit)
    rows = [(label, decimal(amount)) for label, amount in budget.questions.items()]
    spent = table(("question", promise.kind), rows) if rows else text("Nothing was asked yet.")
    return framed(str(budget), gauge(left, whole, str(budget)), spent, text(f"Each answer protects {budget.unit}."))
