"""Answers of aggregates: what follows from charged noisy moments, with intervals for their noise."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from wpinq.aggregates.groups import Groups
from wpinq.aggregates.keywords import LEVEL
from wpinq.aggregates.moments import Moments
from wpinq.aggregates.ratios import BinNoise, Floats, Range
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact
from wpinq.noise.accuracy import level_of_each

if TYPE_CHECKING:
    from wpinq.measurements.measurement import Measurement

AnswerRule: TypeAlias = Callable[[Floats, BinNoise | None], Range]
"""What follows for an aggregate from its noisy moments, one row of each: its intervals, or without noise its values."""


class Answer:
    """A charged aggregate, computed when it is first asked for, with intervals for its noise.

    Over windows there is one for each, `answer.at(time)`; over a live source it is that of the next epoch to close.

    Attributes:
        measurement: The charged measurement of moments that it follows from.
    """

    def __init__(self, measurement: Measurement, plan: Moments, where: Groups, rule: AnswerRule) -> None:
        self.measurement = measurement
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
        result = copy(self)
        result.measurement = at(time)
        return result

    def of(self, where: Groups) -> Answer:
        """The same for other groups of the same columns."""
        return Answer(self.measurement, self._plan, where, self._rule)

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

    def _noise(self, level: Amount, together: int) -> BinNoise:
        """The noise of one moment, and how often the interval of one of so many answers together may fail."""
        self._insist_on_one()
        half = self.measurement.interval(level, bins=together)
        miss = 1 - level_of_each(exact(level, "interval(level=...)"), together)
        return BinNoise(float(self.measurement.scale), 1 / self.measurement.node.resolution, float(miss), half)

    def _ranges(self, noise: BinNoise | None) -> Range:
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
