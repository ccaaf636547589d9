"""Counts, sums, means and variances: charged noisy moments, and what follows from them.

Each is one measurement. The moments that an aggregate needs share its epsilon equally: `count` and `sum` take one,
`mean` two (count and sum), `variance` and `stdev` three (squares too). Numbers are clamped to declared bounds, rounded
to a declared step and centred, so the noise of a mean is that of half the distance between the bounds.

A null or a NaN leaves the record out, an infinity is clamped. Where there are no records the answer is noise within the
bounds, and its interval says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np
import polars as pl

from wpinq.aggregates.groups import Groups, groups
from wpinq.aggregates.moments import Moments
from wpinq.aggregates.options import LEVEL, Bounds, Numbers, Where, check_options
from wpinq.aggregates.ratios import Floats, Noise, Range
from wpinq.aggregates.ratios import mean as mean_range
from wpinq.aggregates.ratios import spread as spread_range
from wpinq.aggregates.scale import Scale, limits
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact
from wpinq.noise.accuracy import level_of_each
from wpinq.operators.lattice import room

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.measurement import Measurement

Rule: TypeAlias = Callable[[Floats, Noise | None], Range]
"""What follows for an aggregate from its noisy moments, one row of each: its intervals, or without noise its values."""


class Answer:
    """A charged aggregate, computed when it is first asked for, with intervals for its noise.

    Over windows there is one for each, `answer.at(time)`; over a live source it is that of the next epoch to close.

    Attributes:
        measurement: The charged measurement of moments that it follows from.
    """

    def __init__(self, collection: Collection, plan: Moments, where: Groups, rule: Rule, **cost: Any) -> None:
        self.measurement = collection._then(plan).measure(**cost)
        self._plan, self._where, self._rule = plan, where, rule

    def at(self, time: Any) -> Answer:
        """The answer for one window that has closed.

        Args:
            time: Any time in the window, as the column of the time holds them.

        Raises:
            BinError: The column could never hold such a time.
            NotReadyError: The window has not closed yet.
            PlanError: There are no windows.
        """
        at: Callable[[Any], Measurement] | None = getattr(self.measurement, "at", None)
        if at is None:
            raise PlanError(f"{self._plan.call}: the collection has no windows; ask value, interval() or table().")
        found = copy(self)
        found.measurement = at(time)
        return found

    @property
    def value(self) -> float:
        """The noisy answer, where there is one group.

        Raises:
            PlanError: There are groups; use `table`.
        """
        return float(self._one(self._ranges(None)[0]))

    def interval(self, level: Amount = LEVEL) -> tuple[float, float]:
        """An interval that holds the true answer with this probability, where there is one group.

        It speaks of the noise alone: of the records that were let in, and of numbers as they were clamped and rounded.

        Raises:
            PlanError: There are groups; use `table`. Or the level is not strictly between 0 and 1.
        """
        low, high = self._ranges(self._noise(level, 1))
        return float(self._one(low)), float(self._one(high))

    def table(self, level: Amount = LEVEL, simultaneous: bool = False) -> pl.DataFrame:
        """One row for each group, in the order of `keys`: the key, `value`, `low` and `high`.

        Args:
            level: Of the intervals.
            simultaneous: Whether all intervals hold together with this probability, or each.

        Raises:
            PlanError: The level is not strictly between 0 and 1, or there are windows; use `at`.
        """
        values, _ = self._ranges(None)
        low, high = self._ranges(self._noise(level, len(self._where) if simultaneous else 1))
        return self._where.table({"value": values, "low": low, "high": high})

    def _noise(self, level: Amount, together: int) -> Noise:
        """The noise of one moment, and how often the interval of one of so many answers together may fail."""
        self._insist_on_one()
        half = self.measurement.interval(level, bins=together)
        miss = 1 - level_of_each(exact(level, "interval(level=...)"), together)
        return Noise(float(self.measurement.scale), 1 / self.measurement.node.lattice, float(miss), half)

    def _ranges(self, noise: Noise | None) -> Range:
        self._insist_on_one()
        noisy = self.measurement.observe_many(self._where.bins(self._plan.powers))
        return self._rule(noisy.astype(np.float64).reshape(-1, len(self._plan.powers)).T, noise)

    def _insist_on_one(self) -> None:
        if hasattr(self.measurement, "at"):
            raise PlanError(f"{self._plan.call}: there is an answer for each window; take one, .at(time).")

    def _one(self, found: np.ndarray) -> Any:
        if self._where.keys is not None:
            raise PlanError("an answer by groups has many values; use table().")
        return found[0]

    def __repr__(self) -> str:
        return f"<{self._plan.title}, epsilon {decimal(self.measurement.epsilon)}>"


def count(self: Collection, epsilon: Amount, **more: Unpack[Where]) -> Answer:
    """Charge for how many records there are, by weight, in all or in each of the given groups.

    Args:
        epsilon: What it costs the privacy unit, exact.
        more: `by`, a column, or several, that make groups; `keys`, the groups to answer, present or not, as bins of
            these columns; `name`, which tells repetitions apart; `analyst`, who is charged.

    Raises:
        PlanError: `by` and `keys` do not go together, or name no column.
        BinError: A key is no value of the columns.
        ExactnessError, BudgetError, LedgerError: See `measure`.
    """
    return _asked(self, Moments(self._node, (), None, (0,), "count()"), _first, epsilon, more)


def count_distinct(self: Collection, columns: str | Sequence[str], epsilon: Amount, **more: Unpack[Where]) -> Answer:
    """Charge for how many different values a column (or several together) has, in all or in each group.

    Args:
        columns: A column, or several. A null is a value.
        epsilon: What it costs the privacy unit, exact.
        more: As in `count`.

    Raises:
        PlanError, BinError, ExactnessError, BudgetError, LedgerError: See `count`.
    """
    by = more.get("by") or ()
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    kept = self.map([pl.col(name) for name in dict.fromkeys((*((by,) if isinstance(by, str) else by), *names))])
    plan = Moments(kept.distinct()._node, (), None, (0,), f"count_distinct({', '.join(names)})")
    return _asked(self, plan, _first, epsilon, more)


def sum(self: Collection, column: str, bounds: Bounds, epsilon: Amount, **more: Unpack[Numbers]) -> Answer:  # noqa: A001
    """Charge for the sum of a column's numbers, clamped to bounds.

    Args:
        column: A column of numbers.
        bounds: The least and the largest number, which do not depend on the data. Noise grows with the larger size.
        epsilon: What it costs the privacy unit, exact.
        more: `step`, to whose multiples numbers are rounded, by default 1 for integers, else about a millionth of the
            bounds; and what `count` takes.

    Raises:
        PlanError: The column holds no numbers, bounds and step make no grid, or a bound is more than 2^52 steps from 0.
        BinError, ExactnessError, BudgetError, LedgerError: See `count`.
    """
    low, high, step = limits(self._node, column, bounds, more.get("step"), "sum")
    scale = Scale(column, Fraction(0), step, -((-low) // step), high // step)
    plan = Moments(self._node, (), scale, (1,), f"sum({column})")
    unit = float(step) * plan.reach
    return _asked(self, plan, lambda moments, noise: _times(unit, _first(moments, noise)), epsilon, more)


def mean(self: Collection, column: str, bounds: Bounds, epsilon: Amount, **more: Unpack[Numbers]) -> Answer:
    """Charge for the mean of a column's numbers, clamped to bounds; half of epsilon is spent on their number.

    Arguments and errors are those of `sum`. Of no records it is a number within the bounds.
    """
    scale = _centred(self, column, bounds, more.get("step"), "mean")
    plan = Moments(self._node, (), scale, (0, 1), f"mean({column})")
    half, middle = float(scale.spacing) * plan.reach, float(scale.centre)

    def rule(moments: Floats, noise: Noise | None) -> Range:
        low, high = _times(half, mean_range(moments, noise))
        return middle + low, middle + high

    return _asked(self, plan, rule, epsilon, more)


def variance(
    self: Collection, column: str, bounds: Bounds, epsilon: Amount, sample: bool = False, **more: Unpack[Numbers]
) -> Answer:
    """Charge for the variance of a column's numbers, by default of the records themselves: divided by their number.

    A third of epsilon each is spent on number, sum and sum of squares. With `sample` it is divided by one less, as SQL
    does. The other arguments and the errors are those of `sum`.
    """
    plan, half = _squared(self, column, bounds, more, "variance")

    def rule(moments: Floats, noise: Noise | None) -> Range:
        return _times(half**2, spread_range(moments, noise, sample=sample))

    return _asked(self, plan, rule, epsilon, more)


def stdev(
    self: Collection, column: str, bounds: Bounds, epsilon: Amount, sample: bool = False, **more: Unpack[Numbers]
) -> Answer:
    """Charge for the standard deviation: the root of `variance`, with the same arguments and noise."""
    plan, half = _squared(self, column, bounds, more, "stdev")

    def rule(moments: Floats, noise: Noise | None) -> Range:
        low, high = spread_range(moments, noise, sample=sample)
        return _times(half, (np.sqrt(low), np.sqrt(high)))

    return _asked(self, plan, rule, epsilon, more)


def _squared(
    collection: Collection, column: str, bounds: Bounds, more: Numbers, call: str
) -> tuple[Moments, float]:  # fmt: skip
    """Three moments, and half of what lies between the bounds."""
    scale = _centred(collection, column, bounds, more.get("step"), call)
    plan = Moments(collection._node, (), scale, (0, 1, 2), f"{call}({column})")
    return plan, float(scale.spacing) * plan.reach


def _asked(collection: Collection, plan: Moments, rule: Rule, epsilon: Amount, more: Where | Numbers) -> Answer:
    """Charge for the moments of each group, on a lattice that they fit."""
    call = plan.call.split("(", maxsplit=1)[0]
    check_options(more, (Numbers if plan.scale else Where).__optional_keys__, call)
    where = groups(plan.source, more.get("by"), more.get("keys"), call)
    fitted = replace(plan, source=room(plan.source, plan.fine), by=where.by)
    cost = {"epsilon": epsilon, "name": more.get("name"), "analyst": more.get("analyst")}
    return Answer(collection, fitted, where, rule, **cost)


def _centred(collection: Collection, column: str, bounds: Bounds, step: Amount | None, call: str) -> Scale:
    """Numbers from the middle of their bounds on, in half steps, so that the bounds are -1 and 1."""
    low, high, spacing = limits(collection._node, column, bounds, step, call)
    count = int((high - low) / spacing)
    return Scale(column, (low + high) / 2, spacing / 2, -count, count)


def _first(moments: Floats, noise: Noise | None) -> Range:
    width = noise.half if noise else 0.0
    return moments[0] - width, moments[0] + width


def _times(unit: float, found: Range) -> Range:
    return unit * found[0], unit * found[1]
