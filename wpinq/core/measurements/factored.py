"""Measurements of every epoch with Gaussian noise: up to a last one that is told beforehand, or for ever."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import partial
from statistics import NormalDist
from threading import Lock
from typing import Any

import numpy as np

from wpinq.arguments import WHOLE, require
from wpinq.core.measurements.continual import ContinualMeasurement, refuse_unless_linear
from wpinq.core.noise import DiscreteGaussian, endless_sums
from wpinq.core.noise.accuracy import level_of_each
from wpinq.core.noise.endless_sums import located
from wpinq.core.noise.factored_sums import FORM, MOST, PLACES, Running, Whole, factors
from wpinq.core.noise.gaussian_curve import shift_of, square_of
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.gaussian_price import moved_squared
from wpinq.core.pricing.privacy_cost import Payment
from wpinq.core.pricing.quote import Quote, price
from wpinq.core.pricing.sensitivity import unit_sensitivities
from wpinq.core.runs.epochs import Epochs
from wpinq.core.runs.timeline import Timeline
from wpinq.core.state.table import Ids
from wpinq.errors import PlanError
from wpinq.exact import Amount, exact

GRID = DiscreteGaussian(Fraction(4) ** PLACES)
"""What normal variables are made of, in both ranks."""
NUMBER = 1 << 20
"""No segment of a tree has this number or a larger one: so blocks of words are none of a tree's."""
ENDED = 2
"""The rank of the noise of sums of segments that have ended; 0 and 1 are those of normal variables."""


class GaussianContinual(ContinualMeasurement):
    """What both have in common: normal variables that are keyed functions of release, bin and epoch.

    So the noise is the same for ever, in any process, and computed for observed bins alone: some 60 numbers are held
    for each, and an epoch costs as many steps, or where a bin is first observed, as many for each epoch before, of the
    segment if there are segments.
    """

    def __init__(self, quote: Quote[Any]) -> None:
        super().__init__(quote)
        self._square: Fraction = quote.mechanism.square
        self._running: dict[bytes, tuple[int, Running]] = {}
        self._lock = Lock()

    def interval(self, level: Amount = Fraction(95, 100), bins: int = 1, epoch: int | None = None) -> float:
        """Half the width of an interval around an answer; see `ContinualMeasurement.interval`.

        It is that of the normal law, and half a step for rounding.

        Raises:
            PlanError, NotReadyError: See `ContinualMeasurement.interval`.
        """
        rest = float(1 - level_of_each(exact(level, "interval(level=...)"), bins))
        wide = self._deviation(self._closed_epoch(epoch)) * self._unit
        return math.ceil(-NormalDist().inv_cdf(rest / 2) * wide + 0.5) / self._unit

    def _noise(self, epoch: int, ids: Ids) -> np.ndarray:
        """The noise of an epoch for each bin."""
        with self._lock:
            return np.array([self._of(epoch, ids[row : row + 1]) for row in range(len(ids))], np.int64)

    @abstractmethod
    def _of(self, epoch: int, bin_: Ids) -> int:
        """The noise of one bin at an epoch."""

    def _sums(self, number: int, length: int, square: Fraction, epoch: int, bin_: Ids) -> int:
        """Factored sums of one bin; what they have come to is held, where that is further than before.

        Args:
            number: Of the blocks of words, from `NUMBER`.
            length: The horizon of the factors.
            square: The variance of their normal variables.
            epoch: Of so many.
            bin_: Its identity.
        """
        held, known = self._running.get(bin_.tobytes(), (number, None))
        if known is None or held != number or known.epoch > epoch:
            fresh = Running.begin(factors(length), square)
            if known is None or held < number:
                self._running[bin_.tobytes()] = number, fresh
            known = fresh

        def draw(rank: int, after: int, last: int) -> Whole:
            return GRID.draw(self._noises, self._blocks(number, rank, np.arange(after + 1, last + 1), bin_))

        return known.at(epoch, draw)


class FactoredMeasurement(GaussianContinual):
    """A charged, noisy histogram of every epoch up to a horizon, from the one that closes after it was made.

    The noise is that of `core/noise/factored_sums.py`.

    Attributes:
        scale: The standard deviation of the normal variables, in weight; an answer's is `deviation`.
    """

    def __init__(self, quote: Quote[Any], horizon: int) -> None:
        super().__init__(quote)
        self._horizon = horizon

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
        refuse_divergences(paid, "measure(horizon=...)")
        refuse_unless_linear(survey.steps)
        square = factors(horizon).square * moved_squared(survey) / shift_of(paid.epsilon, paid.delta) ** 2
        noise = DiscreteGaussian(square)
        return price(
            survey, paid.epsilon, call="measure", kind=partial(cls, horizon=horizon), mechanism=noise,
            fields=(noise.name, FORM, horizon), name=name, analyst=analyst, delta=paid.delta,
            epochs=Epochs(log, survey.root, None), noise=noise,
        )  # fmt: skip

    @property
    def _shown_epochs(self) -> tuple[int, ...]:
        return *(epoch for epoch in super()._shown_epochs if epoch < self._horizon), self._horizon

    @property
    def _terms(self) -> str:
        return f"continual=True, horizon={self._horizon}"

    @property
    def _title(self) -> str:
        return "gaussian noise of factored sums"

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

    def _of(self, epoch: int, bin_: Ids) -> int:
        return self._sums(NUMBER, self._horizon, self._square, epoch, bin_)


class EndlessMeasurement(GaussianContinual):
    """A charged, noisy histogram of every epoch that closes after it was made, for ever, with Gaussian noise.

    The noise is that of `core/noise/endless_sums.py`, which has the proof.

    Attributes:
        scale: The standard deviation of one answer that was asked alone, in weight; an answer's is `deviation`.
    """

    def __init__(self, quote: Quote[Any], spare: int) -> None:
        super().__init__(quote)
        self._spare = spare

    @classmethod
    def quoted(
        cls, survey: Survey, log: Timeline, paid: Payment, *, name: str | None, analyst: str | None
    ) -> Quote[ContinualMeasurement]:
        """Quote it.

        Raises:
            PlanError: A step of the plan is not linear for each record, it is too late for it, the ledger adds up
                divergences, or the noise is too wide; see `price`.
        """
        refuse_divergences(paid, "measure(continual=True, mechanism='gaussian')")
        refuse_unless_linear(survey.steps)
        bins, moved = max(unit.l1 for unit in unit_sensitivities(survey)), moved_squared(survey)
        noise = DiscreteGaussian(moved / shift_of(paid.epsilon, paid.delta) ** 2)
        DiscreteGaussian(noise.square * endless_sums.ROOM)  # refuses what could not be drawn, before any charge
        spare = math.ceil(square_of(moved, bins, paid.epsilon, paid.delta) - noise.square)
        return price(
            survey, paid.epsilon, call="measure", kind=partial(cls, spare=spare), mechanism=noise,
            fields=(noise.name, endless_sums.FORM, spare), name=name, analyst=analyst, delta=paid.delta,
            epochs=Epochs(log, survey.root, None), noise=noise,
        )  # fmt: skip

    @property
    def _shown_epochs(self) -> tuple[int, ...]:
        return 1, 100, 10_000, 65_000  # the factors of a longer segment take seconds

    @property
    def _title(self) -> str:
        return "gaussian noise of factored sums of segments"

    def _deviation(self, epoch: int) -> float:
        return endless_sums.deviation(self._square, epoch, self._spare) / self._unit

    def _of(self, epoch: int, bin_: Ids) -> int:
        """The sums of the segments that have ended, and the segment so far."""
        at = located(epoch)
        square = endless_sums.running_square(self._square, at.length)
        total = self._sums(NUMBER + at.segment, at.length, square, at.epoch, bin_)
        if at.segment:
            blocks = self._blocks(NUMBER, ENDED, np.arange(at.segment), bin_)
            whole = DiscreteGaussian(endless_sums.sum_square(self._square, self._spare))
            total += int(whole.draw(self._noises, blocks).sum())
        return total


def refuse_divergences(paid: Payment, call: str) -> None:
    """Refuse a ledger that adds up divergences.

    Raises:
        PlanError: It does; nothing was charged.
    """
    if not paid.delta:
        raise PlanError(
            f"{call}: its noise is proved for epsilon= and delta= of a ledger that adds up both; this one adds up "
            "divergences. Take mechanism='geometric', without horizon=. Nothing was charged."
        )
