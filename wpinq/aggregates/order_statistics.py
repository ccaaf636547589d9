"""Minimum, maximum, median and quantiles, as functions of a collection.

How they are chosen is in `rank_aim.py` and `utility.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from wpinq.aggregates.groups import groups
from wpinq.aggregates.keywords import Options
from wpinq.aggregates.quoted import QuotedAggregate
from wpinq.aggregates.rank_aim import RankAim
from wpinq.aggregates.ranks import GridPoints, QueryCost, ask_rank
from wpinq.aggregates.scale import Bounds, Cells, FineCells, Grid, Magnitudes, Scale, limits, refuse_no_numbers
from wpinq.aggregates.utility import Aim, ExtremeAim, Terms
from wpinq.arguments import FLAG, NAME, NAMES, NOTHING, takes
from wpinq.core.measurements.answer import LEVEL, Answer
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.exact import USUAL, Amount, decimal, exact, positive

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder

EXTREMES = Grid(1 << 16, 1000)
"""A thousand steps, or all integers between narrow bounds."""
FINEST, FINER = Grid(1 << 22, 1 << 22), Grid(1 << 16, 1 << 16)
"""Of quantiles: the steps of one group, and of each of several."""
MOST_SHARES = 1000


@takes(column=NAME, interval=FLAG, by=NAMES | NOTHING)
def quantile(
    self: Builder[Any], column: str, share: Amount, bounds: Bounds, epsilon: Amount | None = None, *,
    within: Amount | None = None, step: Amount | None = None, confidence: Amount = LEVEL, interval: bool = True,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the number below which a share of a column's numbers lies, as a point of a grid.

    Several shares are asked together with `quantiles`, where they cost no more and err little more than one.

    Args:
        column: A column of numbers. A null or a NaN leaves the record out, an infinity is clamped.
        share: From 0 to 1.
        bounds: The least and the largest number, which do not depend on the data.
        epsilon: What it costs the privacy unit, exact.
        within: Instead of epsilon, how many records, by weight, may lie between the answer and the true quantile; the
            least epsilon is charged for which there are no more with probability `confidence`, in each group, whatever
            the numbers. It counts records, since how far apart their numbers are is private. Of about N records a
            hundredth of N makes the 0.5-quantile one from 0.49 to 0.51.
        step: Of the grid; by default 1 for integers within bounds that are 2^22 apart or nearer, else that part of what
            lies between the bounds. In groups 2^16 takes the place of 2^22.
        confidence: How often the interval holds the true quantile; by default 0.95.
        interval: Whether there is one. It costs a quarter of epsilon, without which the answer errs less.
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
    return ask_quantile(self, column, bounds, epsilon, options, share=share, interval=interval).charge(self)


def ask_quantile(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None, options: Options, *,
    share: Amount, interval: bool = True, call: str = "quantile",
) -> QuotedAggregate:  # fmt: skip
    """Quote a quantile; see `quantile`."""
    wanted = _share(share, f"{call}(share=...)")
    title = f"{call}({column})" if call == "median" else f"{call}({column}, {decimal(wanted)})"
    return _ask_shares(self, column, bounds, epsilon, options, shares=(wanted,), interval=interval, title=title)


@takes(column=NAME, interval=FLAG, by=NAMES | NOTHING)
def quantiles(
    self: Builder[Any], column: str, shares: Sequence[Amount], bounds: Bounds | None = None,
    epsilon: Amount | None = None, *,
    step: Amount | None = None, confidence: Amount = LEVEL, interval: bool = True,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for several quantiles together, which err much less than if each were paid for.

    One is chosen first, and the others among the numbers on its two sides. Each record is on one side only, so what
    is chosen there costs no more than one choice. They never fall where shares rise.

    Args:
        column: A column of numbers. A null or a NaN leaves the record out, an infinity is clamped.
        shares: From 0 to 1, each once.
        bounds: The least and the largest number, which do not depend on the data. Without them the grid is that of all
            numbers up to 2^63, which know nine digits; answers err by a few more ranks. Not in groups.
        epsilon: What all of them together cost the privacy unit, exact.
        step: Of the grid between bounds; see `quantile`.
        confidence: How often each interval holds the true quantile; by default 0.95.
        interval: Whether there are intervals. They cost a quarter of epsilon, divided among them, and are wide where
            there are many.
        by: Columns that make groups.
        keys: The groups to answer.
        name: Tells repetitions apart.
        analyst: Who is charged.

    Returns:
        A row for each share in each group: the group, `share`, `value`, and its interval.

    Raises:
        PlanError: See `quantile`; or there is no share, or one stands twice.
        BinError, ExactnessError, BudgetError, LedgerError: See `count`.

    Of 20,000 numbers nine deciles at epsilon 1 are 5 ranks off, on average, where there are no intervals.

    Source: Kaplan, Schnapp and Stemmer, "Differentially private approximate quantiles", ICML 2022.

    >>> import wpinq
    >>> people = wpinq.protect([(age,) for age in range(101)], budget=400, columns={"age": int})
    >>> people.quantiles("age", [0.25, 0.5, 0.75], (0, 100), epsilon=400).frame["value"].to_list()
    [25.0, 50.0, 75.0]
    """
    if isinstance(shares, (str, bytes)) or not hasattr(shares, "__iter__"):
        raise PlanError("quantiles(shares=...): takes a list of shares, for example [0.25, 0.5, 0.75].")
    wanted = [_share(share, "quantiles(shares=...)") for share in shares]
    if not 1 <= len(wanted) <= MOST_SHARES or len(set(wanted)) < len(wanted):
        raise PlanError(f"quantiles(shares=...): takes from 1 to {MOST_SHARES:,} shares, each once.")
    options = Options(by, keys, name, analyst, step, confidence)
    rising = tuple(sorted(wanted))
    quoted = _ask_shares(
        self, column, bounds, epsilon, options, shares=rising, interval=interval, title=f"quantiles({column})",
    )  # fmt: skip
    (made,) = self._commit([quoted.quote])
    result: Answer = made.answers(wanted, [rising.index(share) for share in wanted])
    return result


def ask_shares(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None, options: Options, *,
    shares: tuple[Fraction, ...], index: int,
) -> QuotedAggregate:  # fmt: skip
    """Quote quantiles together, and answer one of them; shares rise."""
    quoted = _ask_shares(self, column, bounds, epsilon, options, shares=shares, title=f"quantiles({column})")
    return QuotedAggregate(quoted.quote, lambda made, where: made.answer(where, index))


def _share(share: Amount, call: str) -> Fraction:
    wanted = exact(share, call)
    if 0 < wanted < 1 / USUAL:
        raise PlanError(f"{call}: a share above zero is 1e-100 at least.")
    if not 0 <= wanted <= 1:
        raise PlanError(f"{call}: a share is between 0 and 1; the median is 0.5.")
    return wanted


@takes(column=NAME, interval=FLAG, by=NAMES | NOTHING)
def median(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None = None, *,
    within: Amount | None = None, step: Amount | None = None, confidence: Amount = LEVEL, interval: bool = True,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the median of a column's numbers; arguments and errors are those of `quantile`."""
    options = Options(by, keys, name, analyst, step, confidence, within)
    return ask_median(self, column, bounds, epsilon, options, interval=interval).charge(self)


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


def _ask_shares(
    self: Builder[Any], column: str, bounds: Bounds | None, epsilon: Amount | None, options: Options, *,
    shares: tuple[Fraction, ...], title: str, interval: bool = True,
) -> QuotedAggregate:  # fmt: skip
    """Quote quantiles, in each group."""
    call = title.partition("(")[0]
    grid, cells = (FINER, Cells) if options.by else (FINEST, FineCells)
    aim = partial(RankAim, shares, intervals=interval)
    return _ask(self, column, bounds, epsilon, options, call=call, aim=aim, title=title, grid=grid, cells=cells)


def _ask(
    self: Builder[Any], column: str, bounds: Bounds | None, epsilon: Amount | None, options: Options, *,
    call: str, aim: Callable[[Terms], Aim], title: str = "", grid: Grid = EXTREMES, cells: type[Cells] = Cells,
) -> QuotedAggregate:  # fmt: skip
    """Quote a choice among the points of a grid, for each group."""
    points = _points(self, column, bounds, options, call=call, grid=grid)
    where = groups(self._node, options.by, options.keys, call)
    scale = points.numbers
    assert isinstance(scale, (Scale, Magnitudes))  # noqa: S101  see `_points`
    node = cells(self._node, where.by, scale, title or f"{call}({column})")
    level = exact(options.confidence, f"{call}(confidence=...)")
    amounts = {"epsilon": epsilon, "within": options.within}
    exactly = {
        what: None if amount is None else positive(amount, f"{call}({what}=...)") for what, amount in amounts.items()
    }
    cost = QueryCost(call, confidence=level, name=options.name, analyst=options.analyst, **exactly)
    return ask_rank(node, where, points, aim, cost)


def _points(
    self: Builder[Any], column: str, bounds: Bounds | None, options: Options, *, call: str, grid: Grid
) -> GridPoints:
    """The grid: between bounds, or of all numbers.

    Raises:
        PlanError: See `limits`; or there are no bounds, and a step or groups.
    """
    if bounds is None:
        refuse_no_numbers(self._node, column, call)
        if options.by is not None or options.step is not None:
            raise PlanError(f"{call}: by= and step= need bounds=, the least and the largest number.")
        return GridPoints(Magnitudes(column))
    low, high, spacing = limits(self._node, column, bounds, options.step, call, grid=grid)
    whole = self._node.schema[column].kind is not Kind.FLOAT and (low / spacing).denominator == 1
    blur = 0.0 if whole and (1 / spacing).denominator == 1 else float(spacing) / 2
    return GridPoints(Scale(column, low, spacing, 0, int((high - low) / spacing)), blur)


ask_median = partial(ask_quantile, share=Fraction(1, 2), call="median")
ask_min = partial(_ask, call="min", aim=partial(ExtremeAim, False))
ask_max = partial(_ask, call="max", aim=partial(ExtremeAim, True))
