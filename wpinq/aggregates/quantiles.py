"""Minimum, maximum, median and quantiles, as functions of a collection; how they are chosen is in `aims`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from wpinq.aggregates.grid import Cells
from wpinq.aggregates.groups import groups
from wpinq.aggregates.keywords import LEVEL, Bounds, Options
from wpinq.aggregates.quoted import QuotedAggregate
from wpinq.aggregates.ranks import GridPoints, QueryCost, ask_rank
from wpinq.aggregates.scale import Grid, Scale, limits
from wpinq.aggregates.utility import Aim, ExtremeAim, RankAim, Terms
from wpinq.arguments import NAME, NAMES, NOTHING, takes
from wpinq.core.measurements.answer import Answer
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.exact import USUAL, Amount, decimal, exact, positive

if TYPE_CHECKING:
    from wpinq.core.plan.builder import Builder

GRID = Grid(1 << 16, 1000)
"""A thousand steps, or all integers between narrow bounds."""


@takes(column=NAME, by=NAMES | NOTHING)
def quantile(
    self: Builder[Any], column: str, share: Amount, bounds: Bounds, epsilon: Amount | None = None, *,
    within: Amount | None = None, step: Amount | None = None, confidence: Amount = LEVEL,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the number below which a share of a column's numbers lies, as a point of a grid.

    Args:
        column: A column of numbers. A null or a NaN leaves the record out, an infinity is clamped.
        share: From 0 to 1.
        bounds: The least and the largest number, which do not depend on the data.
        epsilon: What it costs the privacy unit, exact.
        within: Instead of epsilon, how many records, by weight, may lie between the answer and the true quantile; the
            least epsilon is charged for which there are no more with probability `confidence`, in each group, whatever
            the numbers. It counts records, since how far apart their numbers are is private. Of about N records a
            hundredth of N makes the 0.5-quantile one from 0.49 to 0.51.
        step: Of the grid; by default 1 for integers within narrow bounds, else a thousandth of the bounds.
        confidence: How often the interval holds the true quantile; by default 0.95.
        by: Columns that make groups; this and what follows as in `count`.
        keys: The groups to answer.
        name: Tells repetitions apart.
        analyst: Who is charged.

    Raises:
        PlanError: The column holds no numbers, bounds and step make no grid, or `by` and `keys` do not go together.
        BinError, ExactnessError, BudgetError, LedgerError: See `count`.

    The interval holds the quantile whatever the numbers are, which takes more room than most numbers need: the law of
    the answer depends on how densely they lie there. On smooth numbers it holds in 99% of answers where 95% is said.

    Source: A. Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011.
    """
    options = Options(by, keys, name, analyst, step, confidence, within)
    return ask_quantile(self, column, bounds, epsilon, options, share=share).charge(self)


def ask_quantile(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None, options: Options, *, share: Amount
) -> QuotedAggregate:
    """Quote a quantile; see `quantile`."""
    wanted = exact(share, "quantile(share=...)")
    if 0 < wanted < 1 / USUAL:
        raise PlanError("quantile(share=...): a share above zero is 1e-100 at least.")
    if not 0 <= wanted <= 1:
        raise PlanError("quantile(share=...): a share is between 0 and 1; the median is 0.5.")
    aim, title = partial(RankAim, wanted), f"quantile({column}, {decimal(wanted)})"
    return _ask(self, column, bounds, epsilon, options, call="quantile", aim=aim, title=title)


@takes(column=NAME, by=NAMES | NOTHING)
def median(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None = None, *,
    within: Amount | None = None, step: Amount | None = None, confidence: Amount = LEVEL,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the median of a column's numbers; arguments and errors are those of `quantile`."""
    options = Options(by, keys, name, analyst, step, confidence, within)
    return ask_median(self, column, bounds, epsilon, options).charge(self)


@takes(column=NAME, by=NAMES | NOTHING)
def min(  # noqa: A001
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None = None, *,
    within: Amount | None = None, step: Amount | None = None, confidence: Amount = LEVEL,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the least of a column's numbers; arguments and errors are those of `quantile`. See `max`."""
    options = Options(by, keys, name, analyst, step, confidence, within)
    return ask_min(self, column, bounds, epsilon, options).charge(self)


@takes(column=NAME, by=NAMES | NOTHING)
def max(  # noqa: A001
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None = None, *,
    within: Amount | None = None, step: Amount | None = None, confidence: Amount = LEVEL,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the largest of a column's numbers; arguments and errors are those of `quantile`.

    Hiding each record hides the largest one: the answer may be a few records inwards, some 10 / epsilon of them, or
    beyond all of them towards the bound, by about as much as those few are apart; bounds near the truth help. The
    interval holds the true largest number, clamped to the bounds, with `confidence`, and always ends at the bound.
    With `within` no more records than that lie beyond the beginning of the interval, and so beyond the answer.
    `min` and `max` have independent noise: of fewer than some 30 / epsilon records `min` may exceed `max`.
    """
    options = Options(by, keys, name, analyst, step, confidence, within)
    return ask_max(self, column, bounds, epsilon, options).charge(self)


def _ask(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None, options: Options, *,
    call: str, aim: Callable[[Terms], Aim], title: str = "",
) -> QuotedAggregate:  # fmt: skip
    """Quote a choice among the points of a grid, for each group."""
    low, high, spacing = limits(self._node, column, bounds, options.step, call, grid=GRID)
    scale = Scale(column, low, spacing, 0, int((high - low) / spacing))
    where = groups(self._node, options.by, options.keys, call)
    whole = self._node.schema[column].kind is not Kind.FLOAT and (low / spacing).denominator == 1
    blur = 0.0 if whole and (1 / spacing).denominator == 1 else float(spacing) / 2
    cells = Cells(self._node, where.by, scale, title or f"{call}({column})")
    level = exact(options.confidence, f"{call}(confidence=...)")
    amounts = {"epsilon": epsilon, "within": options.within}
    exactly = {what: None if said is None else positive(said, f"{call}({what}=...)") for what, said in amounts.items()}
    cost = QueryCost(call, confidence=level, name=options.name, analyst=options.analyst, **exactly)
    return ask_rank(cells, where, GridPoints(tuple(scale.points()), blur), aim, cost)


ask_median = partial(_ask, call="median", aim=partial(RankAim, Fraction(1, 2)))
ask_min = partial(_ask, call="min", aim=partial(ExtremeAim, False))
ask_max = partial(_ask, call="max", aim=partial(ExtremeAim, True))
