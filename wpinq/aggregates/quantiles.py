"""Minimum, maximum, median and quantiles, as methods of a collection; how they are chosen is in `ranks.py`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Unpack

from wpinq.aggregates.cells import Cells
from wpinq.aggregates.groups import Groups, groups
from wpinq.aggregates.options import LEVEL, Bounds, Ranked, check_options
from wpinq.aggregates.ranks import Cost, Quantile
from wpinq.aggregates.scale import Grid, Scale, limits
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact, positive

if TYPE_CHECKING:
    from wpinq.collection import Collection

GRID = Grid(1 << 16, 1000)
"""A thousand steps, or all integers between narrow bounds."""


def quantile(
    self: Collection, column: str, share: Amount, bounds: Bounds, epsilon: Amount, **more: Unpack[Ranked]
) -> Quantile:  # fmt: skip
    """Charge for the number below which a share of a column's numbers lies, as a point of a grid.

    Args:
        column: A column of numbers. A null or a NaN leaves the record out, an infinity is clamped.
        share: From 0 to 1.
        bounds: The least and the largest number, which do not depend on the data.
        epsilon: What it costs the privacy unit, exact.
        more: `step` of the grid, by default 1 for integers within narrow bounds, else a thousandth of the bounds;
            `confidence`, how often the interval holds the number at that rank, by default 0.95; and what `count` takes.

    Raises:
        PlanError: The column holds no numbers, bounds and step make no grid, or `by` and `keys` do not go together.
        BinError, ExactnessError, BudgetError, LedgerError: See `count`.

    Source: A. Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011.
    """
    wanted = exact(share, "quantile(share=...)")
    if not 0 <= wanted <= 1:
        raise PlanError("quantile(share=...): a share is between 0 and 1; the median is 0.5.")
    title = f"quantile({column}, {decimal(wanted)})"
    return Quantile(*_plan(self, column, bounds, title, more), wanted, **_cost(epsilon, "quantile", more))


def median(self: Collection, column: str, bounds: Bounds, epsilon: Amount, **more: Unpack[Ranked]) -> Quantile:
    """Charge for the median of a column's numbers; arguments and errors are those of `quantile`."""
    plan = _plan(self, column, bounds, f"median({column})", more)
    return Quantile(*plan, Fraction(1, 2), **_cost(epsilon, "median", more))


def min(self: Collection, column: str, bounds: Bounds, epsilon: Amount, **more: Unpack[Ranked]) -> Quantile:  # noqa: A001
    """Charge for a number that only a few of a column's numbers are below; arguments are those of `quantile`."""
    plan = _plan(self, column, bounds, f"min({column})", more)
    return Quantile(*plan, Fraction(0), extreme=True, **_cost(epsilon, "min", more))


def max(self: Collection, column: str, bounds: Bounds, epsilon: Amount, **more: Unpack[Ranked]) -> Quantile:  # noqa: A001
    """Charge for a number that only a few of a column's numbers are above; arguments are those of `quantile`."""
    plan = _plan(self, column, bounds, f"max({column})", more)
    return Quantile(*plan, Fraction(1), extreme=True, **_cost(epsilon, "max", more))


def _plan(self: Collection, column: str, bounds: Bounds, title: str, more: Ranked) -> tuple[Cells, Groups, list[float]]:
    """The cells of each group, the groups, and the numbers that the cells stand for."""
    call = title.split("(", maxsplit=1)[0]
    check_options(more, Ranked.__optional_keys__, call)
    low, high, spacing = limits(self._node, column, bounds, more.get("step"), call, grid=GRID)
    scale = Scale(column, low, spacing, 0, int((high - low) / spacing))
    where = groups(self._node, more.get("by"), more.get("keys"), call)
    return Cells(self._node, where.by, scale, title), where, scale.points()


def _cost(epsilon: Amount, call: str, more: Ranked) -> Cost:
    level = exact(more.get("confidence", LEVEL), f"{call}(confidence=...)")
    return {
        "call": call, "epsilon": positive(epsilon, f"{call}(epsilon=...)"), "confidence": level,
        "name": more.get("name"), "analyst": more.get("analyst"),
    }  # fmt: skip
