"""The ledger: what is asked is charged before it is answered, once, and nothing beyond the budget."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from wpinq.core.plan.unit import users
from wpinq.errors import BudgetError
from wpinq.protection import protect
from wpinq.testing.checks.result import Result, judged

TENTH = Fraction(1, 10)
LOOKED = "quotes, charges, the same again, two names, two uses of a source, a refusal, the ledger opened again"
RECORDS = [("ann", "/"), ("bob", "/"), ("ann", "/about")]


def spending(_: float) -> Result:
    """What a ledger has spent after each act is what it must be, exactly, also where it is opened again."""
    acts: list[tuple[str, Fraction, Fraction]] = []
    with TemporaryDirectory(prefix="wpinq-audit-") as folder:
        words = {
            "unit": users("user", at_most=2),
            "columns": {"user": str, "page": str},
            "name": "views",
            "version": "1",
        }
        ledger = Path(folder) / "ledger"
        views = protect(RECORDS, 1, ledger=ledger, **words)  # type: ignore[arg-type]
        acts.append(("nothing was asked", views.budget.spent, Fraction(0)))
        pages = views.map("page")
        pages.quote(epsilon=TENTH)
        acts.append(("a quote was made", views.budget.spent, Fraction(0)))
        first = pages.measure(TENTH)
        acts.append(("a tenth was measured", views.budget.spent, TENTH))
        answer = first.observe("/")
        again = pages.measure(TENTH).observe("/")
        acts.append(("the same was asked again", views.budget.spent, TENTH))
        pages.measure(TENTH, name="other")
        pages.concat(pages).measure(TENTH)
        acts.append(("three tenths were measured", views.budget.spent, 3 * TENTH))
        try:
            pages.measure(1, name="too much")
            acts.append(("more than there is was charged", Fraction(1), Fraction(0)))
        except BudgetError:
            acts.append(("more than there is was refused", views.budget.spent, 3 * TENTH))
        opened = protect(RECORDS, ledger=ledger, **words)  # type: ignore[arg-type]
        acts.append(("the ledger was opened again", opened.budget.spent, 3 * TENTH))
        acts.append(("the answer was another one", Fraction(answer != again), Fraction(0)))
    problems = [f"{act}, and {spent} is spent, not {must}" for act, spent, must in acts if spent != must]
    return judged(len(acts), "acts", problems, LOOKED)
