"""Counts, sums, means and variances, computed from charged noisy moments.

Each is one measurement. The moments that an aggregate needs share its cost equally: `count` and `sum` take one,
`mean` two (count and sum), `variance` and `stdev` three (squares too); Gaussian noise of two is the square root of 2
wider than of one, Laplace noise twice as wide. Numbers are clamped to declared bounds, rounded to a declared step and
centred, so the noise of a mean is proportional to half the distance between the bounds.

A null or a NaN leaves the record out, an infinity is clamped. Without records the answer is noise within the
bounds, and its interval covers them.

`Derived` computes an aggregate from charged noisy moments, with intervals for their noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from wpinq.aggregates.groups import Groups, groups
from wpinq.aggregates.keywords import Options
from wpinq.aggregates.moments import Moments
from wpinq.aggregates.quoted import QuotedAggregate
from wpinq.aggregates.ratios import BinNoise, Floats, Range
from wpinq.aggregates.ratios import mean as mean_range
from wpinq.aggregates.ratios import spread as spread_range
from wpinq.aggregates.scale import Bounds, Scale, limits
from wpinq.arguments import NAME, NAMES, NOTHING, WHOLE, require, takes
from wpinq.core.measurements.answer import LEVEL, About, Answer, Released
from wpinq.core.measurements.measure import quote_terms
from wpinq.core.noise.accuracy import level_of_each
from wpinq.core.operators.distinct import distinct
from wpinq.core.operators.map import choose
from wpinq.core.operators.resolution import fit_resolution
from wpinq.core.pricing.privacy_cost import LAPLACE
from wpinq.errors import PlanError
from wpinq.exact import Amount, exact, positive

if TYPE_CHECKING:
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.plan.node import Builder


@takes(mechanism=NAME, by=NAMES | NOTHING)
def count(
    self: Builder[Any], epsilon: Amount | None = None, *, within: Amount | None = None,
    confidence: Amount = LEVEL,
    mechanism: str = LAPLACE, rho: Amount | None = None, delta: Amount | None = None,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for how many records there are, by weight, in all or in each of the given groups.

    Args:
        epsilon: What it costs the privacy unit, exact.
        within: Instead of epsilon, by how much noise may move an answer: the least epsilon that does it is charged.
        confidence: How often noise shall move an answer by no more than `within`.
        mechanism: "geometric" (discrete Laplace), "laplace", "gaussian" or "best"; see `measure`.
        rho: Instead of epsilon, what Gaussian noise costs; see `measure`.
        delta: With epsilon, of Gaussian noise; see `measure`.
        by: A column, or several, that make groups; by default there is one group, of all records.
        keys: The groups to answer, present or not, as bins of these columns; they go with `by`.
        name: Tells repetitions apart: the same question under another name has new noise, and costs again.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        PlanError: `by` and `keys` do not go together, or name no column.
        BinError: A key is no value of the columns.
        ExactnessError, BudgetError, LedgerError: See `measure`.
    """
    options = Options(by, keys, name, analyst, None, confidence, within, mechanism, rho, delta)
    return ask_count(self, Moments(self._node, (), None, (0,), "count()"), epsilon, options).charge(self)


def ask_count(self: Builder[Any], plan: Moments, epsilon: Amount | None, options: Options) -> QuotedAggregate:
    """Quote a count of what a plan counts; see `count`."""
    return _asked(self, plan, _first, epsilon, options)


@takes(columns=NAMES, mechanism=NAME, by=NAMES | NOTHING)
def count_distinct(
    self: Builder[Any], columns: str | Sequence[str], epsilon: Amount | None = None, *, within: Amount | None = None,
    confidence: Amount = LEVEL,
    mechanism: str = LAPLACE, rho: Amount | None = None, delta: Amount | None = None,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for how many different values a column (or several together) has, in all or in each group.

    Args:
        columns: A column, or several. A null is a value.
        epsilon: What it costs the privacy unit, exact.
        within, confidence, mechanism, rho, delta: Instead of it or beside it, as in `count`.
        by: Columns that make groups; this and what follows as in `count`.
        keys: The groups to answer.
        name: Tells repetitions apart.
        analyst: Who is charged.

    Raises:
        PlanError, BinError, ExactnessError, BudgetError, LedgerError: See `count`.
    """
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    grouping = (by,) if isinstance(by, str) else tuple(by or ())
    projected = choose(self._node, (*grouping, *names), "count_distinct(columns=...)")
    plan = Moments(distinct(self._then(projected))._node, (), None, (0,), f"count_distinct({', '.join(names)})")
    options = Options(by, keys, name, analyst, None, confidence, within, mechanism, rho, delta)
    return _asked(self, plan, _first, epsilon, options).charge(self)


@takes(column=NAME, mechanism=NAME, by=NAMES | NOTHING)
def sum(  # noqa: A001
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None = None, *, within: Amount | None = None,
    confidence: Amount = LEVEL, step: Amount | None = None,
    mechanism: str = LAPLACE, rho: Amount | None = None, delta: Amount | None = None,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the sum of a column's numbers, clamped to bounds.

    Args:
        column: A column of numbers.
        bounds: The least and the largest number, which do not depend on the data. Noise grows with the larger size.
        epsilon: What it costs the privacy unit, exact.
        within, confidence, mechanism, rho, delta: Instead of it or beside it, as in `count`.
        step: To whose multiples numbers are rounded; by default 1 for integers, else about a millionth of the bounds.
        by: Columns that make groups; this and what follows as in `count`.
        keys: The groups to answer.
        name: Tells repetitions apart.
        analyst: Who is charged.

    Raises:
        PlanError: The column holds no numbers, bounds and step make no grid, or a bound is more than 2^52 steps from 0.
        BinError, ExactnessError, BudgetError, LedgerError: See `count`.
    """
    options = Options(by, keys, name, analyst, step, confidence, within, mechanism, rho, delta)
    return ask_sum(self, column, bounds, epsilon, options).charge(self)


def ask_sum(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None, options: Options
) -> QuotedAggregate:
    """Quote a sum; see `sum`."""
    low, high, step = limits(self._node, column, bounds, options.step, "sum")
    scale = Scale(column, Fraction(0), step, -((-low) // step), high // step)
    plan = Moments(self._node, (), scale, (1,), f"sum({column})")
    unit = float(step) * plan.reach
    if options.within is not None:
        near = positive(options.within, "sum(within=...)") / (step * plan.reach)
        options = replace(options, within=near)
    return _asked(self, plan, lambda moments, noise: _times(unit, _first(moments, noise)), epsilon, options)


@takes(column=NAME, mechanism=NAME, by=NAMES | NOTHING)
def mean(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None = None, *, within: Amount | None = None,
    records: int | None = None, confidence: Amount = LEVEL, step: Amount | None = None,
    mechanism: str = LAPLACE, rho: Amount | None = None, delta: Amount | None = None,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the mean of a column's numbers, clamped to bounds; half of epsilon is spent on their number.

    Arguments and errors are those of `sum`. Of no records it is a number within the bounds. Noise moves a mean of few
    records further: `within` goes with `records`, the least number of them, by weight, for which it shall hold in every
    group. Whether there are as many is not looked at.
    """
    options = Options(by, keys, name, analyst, step, confidence, within, mechanism, rho, delta)
    if (within is None) is not (records is None):
        raise PlanError("mean(within=...): goes with records=, the least number of them for which it shall hold.")
    if within is not None:
        epsilon, options = _paid_for_mean(self, column, bounds, epsilon, options, records=records or 0)
    return ask_mean(self, column, bounds, epsilon, options).charge(self)


def _paid_for_mean(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None, options: Options, *, records: int
) -> tuple[Fraction | None, Options]:
    """What it costs that noise moves the mean of so many records by no more than what is wanted.

    The mean t is off by the noise X of the sum less t times the noise Y of the number, over the noisy number. With y
    in [-1, 1] that is at most (|X| + |Y|) / (records - |Y|). Both are at most z with probability 1 - miss / 2 each, so
    the scale that makes 2 z / (records - z) the wanted distance is small enough. It may be up to a third smaller
    than that needs.
    """
    require(records, WHOLE, "mean(records=...)")
    scale = _centred(self, column, bounds, options.step, "mean")
    plan = Moments(self._node, (), scale, (0, 1), f"mean({column})")
    near = positive(options.within, "mean(within=...)") / (scale.spacing * plan.reach)
    miss = 1 - exact(options.confidence, "mean(confidence=...)")
    if not 0 < miss < 1 or records < 1:
        raise PlanError("mean(within=...): confidence is strictly between 0 and 1, and records above zero.")
    widest = replace(options, within=records * near / (2 + near), confidence=1 - miss / 2)
    moments = self._then(replace(plan, source=fit_resolution(plan.source, plan.fine)))
    paid = quote_terms(moments, widest.terms(epsilon, "mean"), None, None).payment
    return paid.epsilon or None, replace(options, within=None, rho=paid.rho or None, delta=paid.delta or None)


def ask_mean(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None, options: Options
) -> QuotedAggregate:
    """Quote a mean; see `mean`."""
    scale = _centred(self, column, bounds, options.step, "mean")
    plan = Moments(self._node, (), scale, (0, 1), f"mean({column})")
    half, middle = float(scale.spacing) * plan.reach, float(scale.centre)

    def rule(moments: Floats, noise: BinNoise | None) -> Range:
        low, high = _times(half, mean_range(moments, noise))
        return middle + low, middle + high

    return _asked(self, plan, rule, epsilon, options)


@takes(column=NAME, mechanism=NAME, by=NAMES | NOTHING)
def variance(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None = None, sample: bool = False, *,
    step: Amount | None = None,
    mechanism: str = LAPLACE, rho: Amount | None = None, delta: Amount | None = None,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the variance of a column's numbers, by default of the records themselves: divided by their number.

    A third of epsilon each is spent on number, sum and sum of squares. With `sample` it is divided by one less, as SQL
    does. The other arguments and the errors are those of `sum`.
    """
    options = Options(by, keys, name, analyst, step, mechanism=mechanism, rho=rho, delta=delta)
    return ask_variance(self, column, bounds, epsilon, options, sample=sample).charge(self)


@takes(column=NAME, mechanism=NAME, by=NAMES | NOTHING)
def stdev(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None = None, sample: bool = False, *,
    step: Amount | None = None,
    mechanism: str = LAPLACE, rho: Amount | None = None, delta: Amount | None = None,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the standard deviation: the root of `variance`, with the same arguments and noise."""
    options = Options(by, keys, name, analyst, step, mechanism=mechanism, rho=rho, delta=delta)
    return ask_stdev(self, column, bounds, epsilon, options, sample=sample).charge(self)


def _ask_spread(
    self: Builder[Any], column: str, bounds: Bounds, epsilon: Amount | None, options: Options, *,
    call: str, root: bool = False, sample: bool = False,
) -> QuotedAggregate:  # fmt: skip
    """Quote three moments, and what follows from them: the variance, or its root."""
    scale = _centred(self, column, bounds, options.step, call)
    plan = Moments(self._node, (), scale, (0, 1, 2), f"{call}({column})")
    half = float(scale.spacing) * plan.reach

    def rule(moments: Floats, noise: BinNoise | None) -> Range:
        low, high = spread_range(moments, noise, sample=sample)
        return _times(half, (np.sqrt(low), np.sqrt(high))) if root else _times(half**2, (low, high))

    return _asked(self, plan, rule, epsilon, options)


ask_variance = partial(_ask_spread, call="variance")
ask_stdev = partial(_ask_spread, call="stdev", root=True)


def _asked(
    collection: Builder[Any], plan: Moments, rule: AnswerRule, epsilon: Amount | None, options: Options
) -> QuotedAggregate:
    """Quote the moments of each group, at a resolution that they fit."""
    call = plan.call.split("(", maxsplit=1)[0]
    where = groups(plan.source, options.by, options.keys, call)
    fitted = replace(plan, source=fit_resolution(plan.source, plan.fine), by=where.by)
    quote = quote_terms(collection._then(fitted), options.terms(epsilon, call), options.name, options.analyst)
    return QuotedAggregate(
        quote, lambda made, other: Derived(made, fitted, where if other is None else other, rule).answer()
    )


def _centred(collection: Builder[Any], column: str, bounds: Bounds, step: Amount | None, call: str) -> Scale:
    """Numbers from the middle of their bounds on, in half steps, so that the bounds are -1 and 1."""
    low, high, spacing = limits(collection._node, column, bounds, step, call)
    count = int((high - low) / spacing)
    return Scale(column, (low + high) / 2, spacing / 2, -count, count)


def _first(moments: Floats, noise: BinNoise | None) -> Range:
    width = noise.half if noise else 0.0
    return moments[0] - width, moments[0] + width


def _times(unit: float, interval: Range) -> Range:
    return unit * interval[0], unit * interval[1]


AnswerRule: TypeAlias = Callable[[Floats, BinNoise | None], Range]
"""Computes an aggregate from its noisy moments, one row of each: intervals, or if no noise is given the values."""


@dataclass(frozen=True)
class Derived:
    """An aggregate of charged moments.

    Attributes:
        measurement: The moments; over windows there are those of each.
        plan: How they are laid out.
        where: The groups that are answered.
        rule: What follows from them.
    """

    measurement: Measurement
    plan: Moments
    where: Groups
    rule: AnswerRule

    def answer(self) -> Answer:
        """What is told of it."""
        about = About(self.plan.title, (self.measurement,))
        at = self._at if self.measurement.times.window is not None else None
        return Answer(about, self._released, many=self.where.keys is not None, at=at)

    def _at(self, time: Any) -> Answer:
        return replace(self, measurement=self.measurement.at(time)).answer()

    def _released(self, level: Fraction, simultaneous: bool) -> Released:
        if self.measurement.times.window is not None:
            raise PlanError(f"{self.plan.call}: there is an answer for each window; take one, .at(time).")
        together = len(self.where) if simultaneous else 1
        half = self.measurement.interval(level, bins=together)
        miss = 1 - level_of_each(level, together)
        scale, step = float(self.measurement.scale), 1 / self.measurement.node.resolution
        noise = BinNoise(scale, step, float(miss), half, gaussian=self.measurement.gaussian)
        values, _ = self._ranges(None)
        return self.where.released(values, *self._ranges(noise))

    def _ranges(self, noise: BinNoise | None) -> Range:
        noisy = self.measurement.observe_many(self.where.bins(self.plan.powers))
        return self.rule(noisy.astype(np.float64).reshape(-1, len(self.plan.powers)).T, noise)
