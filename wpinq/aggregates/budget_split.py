"""Plan how to split a budget over several questions, by the errors that noise makes in each; nothing is charged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wpinq.arguments import MAPPING, NOTHING, takes
from wpinq.core.measurements.answer import LEVEL
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact, positive
from wpinq.html.numbers import upwards

if TYPE_CHECKING:
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.pricing.quote import Quote

DIGITS = 10**4
"""Of an epsilon that is planned: it is a multiple of the whole over this."""


@dataclass(frozen=True)
class PlannedBudget:
    """What each question gets of a budget, and which error is to be expected of it.

    Attributes:
        epsilons: What each question is measured with, by its name; what they cost one person in all sums to the whole.
        errors: By how much noise moves a bin of each, at most, with probability 0.95.
    """

    epsilons: Mapping[str, Fraction]
    errors: Mapping[str, float]

    def __getitem__(self, name: str) -> Fraction:
        return self.epsilons[name]

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.epsilons]

    def __repr__(self) -> str:
        rows = [("question", "epsilon", "noise moves a bin by at most, 95%")]
        rows += [(name, decimal(amount), upwards(self.errors[name])) for name, amount in self.epsilons.items()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                         for row in rows)  # fmt: skip


@takes("plan_budget", questions=MAPPING, wanted=MAPPING | NOTHING)
def plan_budget(
    questions: Mapping[str, Any], epsilon: Amount, wanted: Mapping[str, Amount] | None = None
) -> PlannedBudget:
    """Split epsilon over several collections that are to be measured, so that each is as near to what is wanted.

    Without `wanted` noise moves a bin of each by the same amount; else by amounts in these proportions. Nothing of the
    data is looked at: errors follow from the plans and from epsilon alone.

    Args:
        questions: Collections by name.
        epsilon: What all of them cost together, also who is in several tables of a ledger.
        wanted: For each name by how much noise may move a bin; only proportions count.

    Raises:
        PlanError: There is no question, one is no collection, or `wanted` names others.
        ExactnessError: An amount is not above zero.

    >>> from wpinq import plan_budget
    >>> from wpinq.testing import protected
    >>> views = protected(user="text", page="text")
    >>> plan = plan_budget({"pages": views.map("page"), "pairs": views.join(views, on="user")}, epsilon=1)
    >>> plan
    question  epsilon  noise moves a bin by at most, 95%
    pages     0.3333   9
    pairs     0.6667   9
    >>> views.map("page").measure(epsilon=plan["pages"]).interval()
    9.0
    """
    whole = positive(epsilon, "plan_budget(epsilon=...)")
    if not questions or not all(
        hasattr(question, "quote") and hasattr(question, "_node") for question in questions.values()
    ):
        raise PlanError("plan_budget(questions): takes a mapping from names to collections, one at least.")
    if wanted is not None and set(wanted) != set(questions):
        raise PlanError(f"plan_budget(wanted=...): an amount is needed for each of {', '.join(map(repr, questions))}.")
    targets = {name: positive((wanted or {}).get(name, 1), "plan_budget(wanted=...)") for name in questions}
    quotes = {name: question.quote(epsilon=whole) for name, question in questions.items()}
    times = {name: max(quote.paid.values()) / whole for name, quote in quotes.items()}  # of a person in several tables
    needs = {name: times[name] * exact(quote.scale, "scale") / targets[name] for name, quote in quotes.items()}
    parts = _rounded({name: need / sum(needs.values()) for name, need in needs.items()})
    epsilons = {name: whole * part / times[name] for name, part in parts.items()}
    return PlannedBudget(
        epsilons, {name: _error(questions[name].quote(epsilon=part)) for name, part in epsilons.items()}
    )


def _rounded(parts: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Parts of 1 as short decimals that sum to 1; the largest takes what is left."""
    result = {name: max(Fraction(round(part * DIGITS), DIGITS), Fraction(1, DIGITS)) for name, part in parts.items()}
    largest = max(result, key=lambda name: result[name])
    result[largest] += 1 - sum(result.values())
    return result


def _error(quote: Quote[Measurement]) -> float:
    return float(quote.query.interval(LEVEL))
