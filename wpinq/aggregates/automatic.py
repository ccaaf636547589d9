"""Automatic: a question under `at_most="auto"` chooses its bound first, for a part of its epsilon.

The number that errs least depends on what is asked: of whose records (what WHERE leaves), in how many bins, at which
epsilon. So it is chosen by each question for itself, before any partition, as `bound_choice.py` does, from people by
number of records. That is a question of its own, in which one person moves one cell by 1; it is charged first, under
the same analyst, and what is asked then is asked with the chosen number as if it had been given (privacy rules 25 and
26). The choice is part of the question, so another part of epsilon is another question.

**The parts.** For one total the best bound depends on a few heavy people, whom little epsilon hides: half goes to the
choice. For many bins it depends on many, and their noise is what costs: a third for up to 30, a quarter for up to 100,
a sixth for up to 300, and a tenth beyond. Where groups are not given their number is data, so the part is that of 100.
These were chosen by trying some on real data; `tests/benchmarks/bench_totals.py` measures the half for one total, and
nothing in the repository compares the others.

Where the plan bounds by itself what one person moves, as a count of people does, nothing is left out and nothing is
chosen: all of epsilon is for the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wpinq.core.ledger.budget import Allowance
from wpinq.core.operators.contribution.sample import under
from wpinq.core.operators.contribution.unit_key import Whole
from wpinq.core.plan.node import Node, rewrite_all, steps
from wpinq.core.plan.stability import Survey
from wpinq.core.plan.unit import Choice
from wpinq.errors import BudgetError, PlanError
from wpinq.exact import decimal

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder
    from wpinq.core.pricing.quote import Quote

PARTS = ((1, Fraction(1, 2)), (30, Fraction(1, 3)), (100, Fraction(1, 4)), (300, Fraction(1, 6)))
"""For up to so many bins, the part of epsilon that goes to the choice."""
LEAST = Fraction(1, 10)
UNNAMED = 100
"""As so many bins count groups that are not given."""
NAME = "bound on contributions"


def part(bins: int) -> Fraction:
    """The part of epsilon that goes to the choice.

    >>> [str(part(bins)) for bins in (1, 2, 100, 1000)]
    ['1/2', '1/3', '1/4', '1/10']
    """
    return next((share for most, share in PARTS if bins <= most), LEAST)


@dataclass(frozen=True)
class Automatic:
    """A choice that was priced and not charged yet.

    Attributes:
        waiting: The step whose bound is to be chosen.
        quote: What the choice costs.
        choice: How it is made.
        rest: The epsilon that is left for what is asked.
        whole: A quote of all that is asked, which tells whether it fits.
    """

    waiting: Whole
    quote: Quote[Any]
    choice: Choice
    rest: Fraction
    whole: Quote[Any]

    def insist(self) -> None:
        """Refuse what costs more than is left, choice and answer together, before the choice is charged.

        Raises:
            BudgetError: It does.
        """
        if all(ledger.holds(charge) for ledger, charge in self.quote.charges):
            return  # it is free; so is what followed from it, or it is charged by itself
        for ledger, charge in self.whole.charges:
            if not Allowance.of(ledger, charge.analyst, [charge])[1].fits:
                raise BudgetError(
                    f"at_most='auto': choice and answer cost epsilon {decimal(self.whole.epsilon)} together, and less"
                    f" is left of the budget of {ledger.name!r}; nothing was charged."
                )

    def number(self, of: Builder[Any]) -> int:
        """Charge for the choice, and make it.

        Raises:
            BudgetError, LedgerError: Nothing was charged.
        """
        import numpy as np

        from wpinq.aggregates.bound_choice import GRID, best_bound

        self.insist()
        (cells,) = of._commit([self.quote])
        noisy = np.asarray(cells.observe_many(range(len(GRID))), np.float64)
        price = self.choice.bins / float(self.choice.asking)
        return best_bound(noisy, float(1 / self.choice.epsilon), price, self.waiting.data.unit.auto)

    def bounds(self, roots: Sequence[Node], number: int) -> list[Node]:
        """Plans with the chosen bound where one waited."""
        unit = replace(self.waiting.data.unit, at_most=number, choice=self.choice, whole=False, auto=0)
        source = self.waiting.data
        few = {step for step in waiting(roots) if (step.data.book, step.data.name) == (source.book, source.name)}
        return rewrite_all(roots, lambda step: under(step, unit) if step in few else step)


def waiting(roots: Sequence[Node]) -> list[Whole]:
    """The steps in some plans whose bound is to be chosen."""
    return [node for node in steps(*roots) if isinstance(node, Whole) and node.data.unit.auto]


def priced(
    of: Builder[Any], roots: Sequence[Node], epsilon: Fraction, bins: int | None, *, parts: int = 1,
    analyst: str | None = None,
) -> Automatic | None:  # fmt: skip
    """The price of the choice that some plans wait for; None where they need none.

    Args:
        of: A collection.
        roots: The plans.
        epsilon: What choice and answers cost together.
        bins: In how many bins answers are; None where that is data.
        parts: How many measurements share what is left of it.
        analyst: Who is charged.

    Raises:
        PlanError: They wait for several.
    """
    free = [survey for survey in map(Survey.of, roots) if survey.unbounded]
    if not free or not all(survey.waits for survey in free):  # a choice would be paid for, and nothing answered
        return None
    steps_waiting = list(dict.fromkeys(waiting(roots)))
    if not steps_waiting:
        return None
    if len(steps_waiting) > 1:
        raise PlanError(
            "at_most='auto': one bound is chosen, and this looks at people's records in two ways; give a number for one"
            " of the tables, or ask for each by itself."
        )
    from wpinq.aggregates.bound_choice import GRID
    from wpinq.aggregates.lengths import Lengths

    known = UNNAMED if bins is None else bins
    choice_cost = epsilon * part(known)
    rest = epsilon - choice_cost
    lengths = of._then(Lengths(steps_waiting[0].source, tuple(GRID.tolist())))
    quote, whole = (lengths.quote(cost, NAME, analyst=analyst) for cost in (choice_cost, epsilon))
    return Automatic(steps_waiting[0], quote, Choice(choice_cost, known, rest / parts, asked=True), rest, whole)
