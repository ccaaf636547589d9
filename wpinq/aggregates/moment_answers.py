"""What follows from charged noisy moments, with intervals for their noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from wpinq.aggregates.groups import Groups
from wpinq.aggregates.moments import Moments
from wpinq.aggregates.ratios import BinNoise, Floats, Range
from wpinq.core.measurements.answer import Answer, Released
from wpinq.core.measurements.provenance import About
from wpinq.core.noise.accuracy import level_of_each
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.core.measurements.measurement import Measurement

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
        at = self._at if hasattr(self.measurement, "at") else None
        return Answer(about, self._released, many=self.where.keys is not None, at=at)

    def _at(self, time: Any) -> Answer:
        return replace(self, measurement=self.measurement.at(time)).answer()  # type: ignore[attr-defined]

    def _released(self, level: Fraction, simultaneous: bool) -> Released:
        if hasattr(self.measurement, "at"):
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
