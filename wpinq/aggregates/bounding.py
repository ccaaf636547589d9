"""Suggest a bound on contributions: a charged, private choice of `at_most`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from wpinq.aggregates.groups import Groups
from wpinq.aggregates.lengths import Lengths
from wpinq.aggregates.rank_aim import RankAim
from wpinq.aggregates.ranks import GridPoints, QueryCost, ask_rank
from wpinq.arguments import COLLECTION, takes
from wpinq.core.measurements.answer import LEVEL
from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.operators.contribution.share import Share
from wpinq.core.operators.contribution.unit_key import Whole
from wpinq.core.plan.node import read_by, sources, steps
from wpinq.core.runs.epochs import log_of
from wpinq.errors import PlanError
from wpinq.exact import Amount, exact, positive

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder

GRID = tuple(digit * 10**power for power in range(7) for digit in (1, 2, 3, 5, 7))
"""1, 2, 3, 5, 7, 10, 20, ... up to 7 million; chosen before any data was seen."""


@takes(collection=COLLECTION)
def suggest_bound(
    collection: Builder[Any], epsilon: Amount, share: Amount = Fraction(95, 100), grid: Sequence[int] = GRID
) -> int:
    """Choose how many records to keep of each person, so that about this share of people lose none.

    Every person is counted once, by its number of records before any bound, so the choice needs no bound itself. It
    is charged to the ledger of the collection, which protects people in either way (`shared=True` needs no number).
    The unit of a ledger is fixed; to protect with the suggested bound another ledger is opened, and a person then
    loses the sum of what both spend.

    Args:
        collection: Any that reads one source whose unit is a person.
        epsilon: What it costs a person, exact.
        share: The share of people who shall lose no record.
        grid: Numbers to choose from, rising, that do not depend on the data.

    Returns:
        A number of the grid; the same whenever it is asked.

    Raises:
        PlanError: The unit is not a person, there are several sources, one is live, or the grid does not rise.
        BudgetError, LedgerError, ExactnessError: See `measure`.
    """
    walk = steps(collection._node)
    entered = [node.source for node in walk if isinstance(node, (Bound, Share, Whole))]
    if len(entered) != 1 or len(read_by(walk)) != 1:
        raise PlanError("suggest_bound: takes a collection over one source whose unit is wpinq.users(...).")
    if log_of(sources(collection._node)) is not None:
        raise PlanError(
            "suggest_bound: answers at once, and a live source when an epoch closes; give a file of the past."
        )
    numbers = tuple(grid)
    whole = all(isinstance(number, int) and 0 < number < 2**31 for number in numbers)
    if not numbers or not whole or any(lower >= upper for lower, upper in pairwise(numbers)):
        raise PlanError("suggest_bound(grid=...): takes whole numbers above zero that rise.")
    wanted = exact(share, "suggest_bound(share=...)")
    if not 0 < wanted < 1:
        raise PlanError("suggest_bound(share=...): a share is strictly between 0 and 1, for example 0.95.")
    cost = positive(epsilon, "suggest_bound(epsilon=...)")
    lengths = Lengths(entered[0], numbers)
    quoted = ask_rank(
        lengths,
        Groups(),
        GridPoints(numbers),
        partial(RankAim, (wanted,), intervals=False),
        QueryCost("suggest_bound", cost, LEVEL),
    )
    return int(quoted.charge(collection).value)
