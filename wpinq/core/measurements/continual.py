"""Measurements that answer at every epoch of a live source.

The noise is that of `epoch_noise.py`. Its key does not cover a digest of the histogram, which changes from epoch to
epoch; the counts of a closed epoch never change (privacy rule 5).

Epochs have the numbers of the source, not counted from the measurement on: a measurement that is made again later is
the same release, with the same answer for each epoch. If they were counted from the measurement on, both would have the
same noise at different epochs, and the difference of their answers would be exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from wpinq.arguments import NOTHING, WHOLE, require
from wpinq.core.measurements.epoch_noise import EndlessNoise, FactoredNoise, NoiseOfEpochs, TreeNoise
from wpinq.core.measurements.measurement import Measurement, quoted
from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.measurements.times import Moment, Times
from wpinq.core.noise import Mechanism, counting_tree, endless_sums, factored_sums, mechanism
from wpinq.core.noise.accuracy import level_of_each
from wpinq.core.noise.gaussian import DiscreteGaussian
from wpinq.core.noise.gaussian_curve import shift_of, square_of
from wpinq.core.noise.threshold import refuse_other_law
from wpinq.core.operators.contribution.first import First, first
from wpinq.core.operators.window import combines_records
from wpinq.core.plan.node import Node, Source, rewrite
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import GAUSSIAN, Payment, moved_squared
from wpinq.core.pricing.quote import Quote
from wpinq.core.pricing.sensitivity import unit_sensitivities
from wpinq.core.records.fields import Field
from wpinq.core.records.identity import identities
from wpinq.core.runs.compaction import refuse_merged
from wpinq.core.runs.epochs import Epochs
from wpinq.core.runs.prefix_sums import Changes
from wpinq.core.runs.timeline import Timeline, refuse_forgotten
from wpinq.core.state.histogram import Histogram
from wpinq.core.state.table import Ids
from wpinq.errors import NotReadyError, PlanError
from wpinq.exact import decimal
from wpinq.lazy import above

FAR = 24
"""A segment that is reached after 10^11 epochs; noise that is too wide there is refused before it is charged."""


class EveryEpoch(Times):
    """Answers at each epoch that closes after the measurement was made, up to a last one or for ever.

    No run answers it, because the live source hands it the change of each epoch. Bins are given by name, because a
    published table would reveal new bins.

    Args:
        quote: That of the measurement.
        noise: Makes the noise.

    Attributes:
        noise: The noise of each epoch.
        first: The first epoch that can be asked for.
    """

    continual = True
    unreleased = "a continual measurement is observed bin by bin; release an epoch's measurement"

    def __init__(self, quote: Quote[Any], noise: NoiseOfEpochs = TreeNoise) -> None:
        super().__init__(quote)
        self.first, self._closed = 0, 0
        self._owner = quote.sources[0]
        self.noise = noise(quote.mechanism, self._owner.secret, quote.key)
        self.changes = self._no_changes()
        self._keep = None if quote.epochs is None else quote.epochs.log.keep

    def begin(self, epoch: int, total: Histogram) -> None:
        """Answer from this epoch on, whose histogram this is, and goes on to be; none before can be asked for."""
        self.first = epoch
        self.changes = self._no_changes()
        self.receive(epoch, total.copy())

    def receive(self, epoch: int, change: Histogram) -> None:
        """Take in the change of the histogram in the next epoch."""
        self.changes.append(change)
        self._closed = epoch
        if self._keep is not None:
            self.changes.forget(epoch - self._keep - self.first + 2)

    def check(self, window: Any, epoch: int | None) -> None:
        """See `Times`."""
        super().check(window, None)

    def parts(self, query: ChargedQuery, frame: pl.DataFrame, epoch: int | None) -> tuple[np.ndarray, np.ndarray]:
        """See `Times`."""
        closed, ids = self.closed(epoch), identities(frame, self.quote.node.schema, self._owner.identity_key)
        return self.lookup(closed, frame, ids), self.noise.again(closed, ids)

    def lookup(self, epoch: int, frame: pl.DataFrame, ids: Ids) -> np.ndarray:
        """The true weights of bins at the end of a closed epoch."""
        return self.changes.lookup(epoch - self.first + 1, frame, ids)

    def half_width(self, level: Fraction, bins: int, epoch: int | None) -> float:
        """See `Times`."""
        return self.noise.half_width(self.closed(epoch), float(1 - level_of_each(level, bins)))

    def variance(self, epoch: int | None) -> float:
        """See `Times`."""
        return self.noise.deviation(self.closed(epoch)) ** 2

    def moments(self, epoch: int, since: int = 0, *, again: bool = False) -> Iterator[Moment]:
        """See `Times`."""
        yield Moment(epoch)

    def explain(self) -> str:
        """See `Times`; and how wide the noise is at some epochs."""
        lines, delta = self.noise_lines(), self.quote.delta
        if delta:
            lines.append(f"  each data set pays delta {decimal(delta)} as well, once for all epochs")
        text: str = above("explain_measurement")(self.quote, lines)
        return text

    def noise_lines(self) -> list[str]:
        """See `Times`: two lines."""
        quote, noise = self.quote, self.noise
        unit = quote.mechanism.grid * quote.node.resolution
        wide = [f"{noise.deviation(epoch) / unit:,.4g} at epoch {epoch:,}" for epoch in noise.shown]
        delta = f", delta={decimal(quote.delta)}" if quote.delta else ""
        return [
            f"{quote.call}(epsilon={decimal(quote.epsilon)}{delta}, {noise.terms})  {noise.title}",
            f"  standard deviation of the noise on a bin: {', '.join(wide)}",
        ]

    def closed(self, epoch: int | None) -> int:
        """The number of an epoch that can be asked for; by default of the last.

        Raises:
            NotReadyError: It is still open, was closed before, or is not kept.
            PlanError: It is no number, or after the last one that was paid for.
        """
        require(epoch, WHOLE | NOTHING, "observe(epoch=...)")
        last = self._closed if epoch is None else epoch
        if not self._closed or last > self._closed:
            raise NotReadyError("observe: the epoch is still open; call advance() first.")
        if self._keep is not None and last <= self._closed - self._keep:
            raise NotReadyError(f"observe: the last {self._keep} epochs are kept, no earlier one; see live(keep=...).")
        if last < self.first:
            raise NotReadyError(f"observe: made after epoch {last} closed; ask for epoch {self.first} or a later one.")
        if self.noise.last is not None and last > self.noise.last:
            raise PlanError(
                f"observe: measured up to epoch {self.noise.last}, its horizon, and no later one; ask for an earlier "
                "epoch, or measure anew with a larger horizon=, which is charged."
            )
        return last

    def _no_changes(self) -> Changes:
        node, key = self.quote.node, self._owner.identity_key
        return Changes(lambda: Histogram(node.schema, key, node.held.array))


def continual_measurement(
    survey: Survey, log: Timeline, paid: Payment, horizon: int | None, *, name: str | None, analyst: str | None
) -> Quote[Measurement]:  # fmt: skip
    """Quote a measurement of every epoch of what a live source is sent.

    Args:
        survey: The plan.
        log: The live source.
        paid: What it costs the privacy unit, and the name of its noise.
        horizon: With Gaussian noise, the last epoch.
        name, analyst: See `quoted`.

    Raises:
        PlanError: A step of the plan is not linear for each record, it is too late for it, or the noise has another
            law than is proved, is too wide, or is for a ledger that adds up epsilon and delta; or see `price`.
    """
    survey = Survey.of(rewrite(survey.root, first))
    refuse_forgotten(log, survey.root)
    refuse_merged(log, survey.root)
    refuse_unless_linear(survey.steps)
    epochs = Epochs(log, survey.root, None)
    if paid.noise != GAUSSIAN:
        result = quoted(
            survey, paid, times=EveryEpoch, name=name, analyst=analyst, epochs=epochs,
            fields=("continual", counting_tree.FORM),
        )  # fmt: skip
        refuse_other_law(result.mechanism, "measure(continual=True)")
        refuse_too_wide(result.mechanism)
        return result
    law, noise, fields = _endless(survey, paid) if horizon is None else _factored(survey, paid, horizon)
    return quoted(
        survey, paid, times=partial(EveryEpoch, noise=noise), name=name, analyst=analyst, epochs=epochs,
        fields=fields, law=law,
    )  # fmt: skip


def _factored(survey: Survey, paid: Payment, horizon: int) -> tuple[DiscreteGaussian, NoiseOfEpochs, tuple[Field, ...]]:
    """The normal variables of a measurement up to a last epoch, what makes its noise, and what its key is bound to."""
    require(horizon, WHOLE, "measure(horizon=...)")
    if not 1 <= horizon <= factored_sums.MOST:
        raise PlanError(f"measure(horizon={horizon}): takes from 1 to {factored_sums.MOST:,} epochs.")
    _refuse_divergences(paid, "measure(horizon=...)")
    square = factored_sums.factors(horizon).square * moved_squared(survey) / shift_of(paid.epsilon, paid.delta) ** 2
    return DiscreteGaussian(square), partial(FactoredNoise, horizon=horizon), (factored_sums.FORM, horizon)


def _endless(survey: Survey, paid: Payment) -> tuple[DiscreteGaussian, NoiseOfEpochs, tuple[Field, ...]]:
    """Likewise of one without a last epoch."""
    _refuse_divergences(paid, "measure(continual=True, mechanism='gaussian')")
    bins, moved = max(unit.l1 for unit in unit_sensitivities(survey)), moved_squared(survey)
    law = DiscreteGaussian(moved / shift_of(paid.epsilon, paid.delta) ** 2)
    DiscreteGaussian(law.square * endless_sums.ROOM)  # refuses what could not be drawn, before any charge
    spare = math.ceil(square_of(moved, bins, paid.epsilon, paid.delta) - law.square)
    return law, partial(EndlessNoise, spare=spare), (endless_sums.FORM, spare)


def _refuse_divergences(paid: Payment, call: str) -> None:
    if not paid.delta:
        raise PlanError(
            f"{call}: its noise is proved for epsilon= and delta= of a ledger that adds up both; this one adds up "
            "divergences. Take mechanism='geometric', without horizon=. Nothing was charged."
        )


def refuse_too_wide(noise: Mechanism) -> None:
    """Refuse noise that could not be drawn at a later epoch.

    Raises:
        PlanError: Its scale would be out of range there; nothing was charged.
    """
    mechanism("geometric", noise.scale * noise.grid / min(counting_tree.segment(FAR).shares))


def refuse_unless_linear(walk: Iterable[Node]) -> None:
    """Refuse a plan with a step that combines records, except a bound that keeps each user's first records for ever.

    Raises:
        PlanError: A step is not linear for each record, or records of a source can be taken back.

    Source: Dwork, Naor, Pitassi, Rothblum, STOC 2010: the tree hides a stream of changes, of which a record moves one.
    """
    for node in walk:
        if isinstance(node, Source) and node.data.retractions:
            raise PlanError(
                f"measure(continual=True): records of {node.data.name} can be taken back, so one would be in two "
                "epochs for the price of one. Measure an epoch, or windows; or make the source without "
                "retractions=True, and send what reverses a record as a record with a column that says so. Nothing "
                "was charged."
            )
        if node.windows:
            raise PlanError("measure(continual=True): leave it out; each window is measured when it has closed.")
        if not isinstance(node, First) and combines_records(node):
            raise PlanError(
                f"measure(continual=True): {node.title} is not linear for each record, so one early record can move "
                "every later epoch. Use window(...) and measure each window when it has closed, or measure an epoch."
            )
