"""A measurement of every epoch up to a last one that is told beforehand, with Gaussian noise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from statistics import NormalDist
from threading import Lock
from typing import Any

import numpy as np

from wpinq.arguments import WHOLE, require
from wpinq.core.measurements.continual import ContinualMeasurement, refuse_unless_linear
from wpinq.core.noise import DiscreteGaussian
from wpinq.core.noise.accuracy import level_of_each
from wpinq.core.noise.factored_sums import FORM, MOST, PLACES, Running, Whole, factors
from wpinq.core.noise.gaussian_curve import shift_of
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.explain import show_measured
from wpinq.core.pricing.gaussian_price import moved_squared
from wpinq.core.pricing.privacy_cost import Payment
from wpinq.core.pricing.quote import Quote, price
from wpinq.core.runs.epochs import Epochs
from wpinq.core.runs.timeline import Timeline
from wpinq.core.state.table import Ids
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact

GRID = DiscreteGaussian(Fraction(4) ** PLACES)
"""What normal variables are made of, in both ranks."""
NUMBER = 1 << 20
"""No segment has this number: so blocks of words are none of a tree's."""


class FactoredMeasurement(ContinualMeasurement):
    """A charged, noisy histogram of every epoch up to a horizon, from the one that closes after it was made.

    The noise is that of `core/noise/factored_sums.py`, of normal variables that are keyed functions of release, bin and
    epoch. So it is the same for ever, in any process, and computed for observed bins alone: some 60 numbers are held
    for each, and an epoch costs as many steps, or where a bin is first observed, as many for each epoch before.

    Attributes:
        scale: The standard deviation of the normal variables, in weight; an answer's is `deviation`.
    """

    def __init__(self, quote: Quote[Any], horizon: int) -> None:
        super().__init__(quote)
        self._horizon, self._square = horizon, quote.mechanism.square
        self._running: dict[bytes, Running] = {}
        self._lock = Lock()

    @classmethod
    def quoted_until(
        cls, survey: Survey, log: Timeline, paid: Payment, horizon: int, *, name: str | None, analyst: str | None
    ) -> Quote[FactoredMeasurement]:
        """Quote it.

        Raises:
            PlanError: A step of the plan is not linear for each record, it is too late for it, the ledger adds up
                divergences, the horizon is none, or the noise too wide; see `price`.
        """
        require(horizon, WHOLE, "measure(horizon=...)")
        if not 1 <= horizon <= MOST:
            raise PlanError(f"measure(horizon={horizon}): takes from 1 to {MOST:,} epochs.")
        if not paid.delta:
            raise PlanError(
                "measure(horizon=...): its noise is proved for epsilon= and delta= of a ledger that adds up both; this "
                "one adds up divergences. Leave horizon= out and take mechanism='geometric'. Nothing was charged."
            )
        refuse_unless_linear(survey.steps)
        square = factors(horizon).square * moved_squared(survey) / shift_of(paid.epsilon, paid.delta) ** 2
        noise = DiscreteGaussian(square)
        return price(
            survey, paid.epsilon, call="measure", kind=partial(cls, horizon=horizon), mechanism=noise,
            fields=(noise.name, FORM, horizon), name=name, analyst=analyst, delta=paid.delta,
            epochs=Epochs(log, survey.root, None), noise=noise,
        )  # fmt: skip

    def interval(self, level: Amount = Fraction(95, 100), bins: int = 1, epoch: int | None = None) -> float:
        """Half the width of an interval around an answer; see `ContinualMeasurement.interval`.

        It is that of the normal law, and half a step for rounding.

        Raises:
            PlanError, NotReadyError: See `ContinualMeasurement.interval`.
        """
        rest = float(1 - level_of_each(exact(level, "interval(level=...)"), bins))
        wide = self._deviation(self._closed_epoch(epoch)) * self._unit
        return math.ceil(-NormalDist().inv_cdf(rest / 2) * wide + 0.5) / self._unit

    def explain(self) -> str:
        """Show the plan, what the measurement costs, and how wide its noise is at some epochs; print and return it."""
        at = [epoch for epoch in (1, 100, 10_000, 1_000_000) if epoch < self._horizon]
        wide = [f"{self._deviation(epoch):,.4g} at epoch {epoch:,}" for epoch in (*at, self._horizon)]
        paid = f"epsilon={decimal(self.epsilon)}, delta={decimal(self.quote.delta)}"
        noise = [
            f"{self.quote.call}({paid}, continual=True, horizon={self._horizon})  gaussian noise of factored sums",
            f"  standard deviation of the noise on a bin: {', '.join(wide)}",
            f"  each data set pays delta {decimal(self.quote.delta)} as well, once for all epochs",
        ]
        return show_measured(self.node, self.epsilon, noise=noise)

    def _deviation(self, epoch: int) -> float:
        variance = float(self._square) * factors(self._horizon).deviation(epoch) ** 2
        return math.sqrt(variance + 1 / 12) / self._unit

    def _closed_epoch(self, epoch: int | None) -> int:
        last = super()._closed_epoch(epoch)
        if last > self._horizon:
            raise PlanError(
                f"observe: measured up to epoch {self._horizon}, its horizon, and no later one; ask for an earlier "
                "epoch, or measure anew with a larger horizon=, which is charged."
            )
        return last

    def _noise(self, epoch: int, ids: Ids) -> np.ndarray:
        """The noise of an epoch for each bin."""
        with self._lock:
            return np.array([self._of(epoch, ids[row : row + 1]) for row in range(len(ids))], np.int64)

    def _of(self, epoch: int, bin_: Ids) -> int:
        """The noise of one bin; what it has come to is kept, where that is further than before."""
        known = self._running.get(bin_.tobytes())
        if known is None or known.epoch > epoch:
            fresh = Running.begin(factors(self._horizon), self._square)
            if known is None:
                self._running[bin_.tobytes()] = fresh
            known = fresh

        def draw(rank: int, after: int, last: int) -> Whole:
            return GRID.draw(self._noises, self._blocks(NUMBER, rank, np.arange(after + 1, last + 1), bin_))

        return known.at(epoch, draw)
