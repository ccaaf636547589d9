"""Continual selection: bins that nobody named, published from the epoch on at which they pass a threshold, and counted.

One epsilon and one delta pay for all epochs that there will ever be: `core/noise/tails.py` has the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn

import numpy as np
import polars as pl

from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.measurements.answer import About, Answer, Released
from wpinq.core.measurements.continual import EveryEpoch, refuse_too_wide, refuse_unless_linear
from wpinq.core.measurements.epoch_noise import TreeNoise
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.measurements.published import by_name, ordered
from wpinq.core.measurements.times import Moment, noisy
from wpinq.core.noise import mechanism
from wpinq.core.noise.counting_tree import FORM
from wpinq.core.noise.tails import lasting_threshold, share_at
from wpinq.core.operators.contribution.first import first
from wpinq.core.plan.node import Node, rewrite
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.quote import Quote, price
from wpinq.core.pricing.sensitivity import unit_sensitivities
from wpinq.core.pricing.threshold import refuse_unnamed
from wpinq.core.records.batch import Batch
from wpinq.core.runs.epochs import Epochs, log_of
from wpinq.core.runs.key_recovery import CHANGED, found_in
from wpinq.core.runs.timeline import between
from wpinq.core.state.histogram import Histogram
from wpinq.core.state.table import Ids, Table, Weights, combine
from wpinq.errors import EngineError, PlanError, redacted
from wpinq.exact import decimal

NAMELESS = "bins are published by a threshold here, and none is observed by its name; use release(), or measure(...)"


class PassingEpochs(EveryEpoch):
    """The bins that passed a threshold by an epoch, and their weights.

    Whether a bin passes is seen when an epoch is closed. Until it does its weight alone is held; from then on what it
    changes at every epoch, so that earlier epochs have the same answers for ever.

    Args:
        quote: That of the selection.
        least: The weight from which bins are looked at, in steps of the resolution.
    """

    unreleased = ""
    noise: TreeNoise

    def __init__(self, quote: Quote[Any], least: int) -> None:
        super().__init__(quote)
        self._least = least
        self._since = Table()
        self._named, self._places = Batch.empty(quote.node.schema).frame.select(quote.node.schema.names), Table()

    def begin(self, epoch: int, total: Histogram) -> None:
        """Look at bins from this epoch on, in this histogram, which takes in each epoch before `receive` is called."""
        self._since, self._total = Table(), total
        super().begin(epoch, total)

    def receive(self, epoch: int, change: Histogram) -> None:
        """Take in the change of the histogram in an epoch, and find the bins that pass at its end."""
        node = self.quote.node
        counted = Histogram(node.schema, self._owner.identity_key, node.held.array)
        for ids, weights in rows_of(change):
            known = self._since.lookup(ids) > 0
            counted.add((ids[known], weights[known]))
        passed = redacted("advance", lambda: list(self._pass_at(epoch))) if share_at(epoch) else []
        for ids, weights in passed:
            counted.add((ids, weights))
            self._since.add(ids, np.full(len(ids), epoch))
        super().receive(epoch, counted.copy())  # added up, so that threads that ask at once need not

    def published(self, epoch: int) -> Ids:
        """The bins that were published by an epoch."""
        ids, since = self._since.copy().items()  # another thread may add to it
        return ids[since <= epoch]

    def threshold(self, epoch: int) -> int:
        """The threshold at an epoch at which bins are looked at, or at the last one before it, in steps."""
        while not share_at(epoch):
            epoch -= 1
        quote, scales = self.quote, self.noise.scales(epoch)
        chance = quote.delta * share_at(epoch)
        return max(
            lasting_threshold(
                scales, quote.mechanism.grid, unit.l1, unit.linf, chance=unit.data_sets * chance, least=self._least
            )
            for unit in unit_sensitivities(quote.node)
        )

    def names(self, ids: Ids) -> pl.DataFrame:
        """The names of published bins, in their order: found in what was sent, from the last epoch backwards."""
        with self._owner.turn:
            new = ids[self._places.lookup(ids) == 0]
            end, width = self._closed, 1
            while len(new):
                if not end:
                    raise EngineError(CHANGED)
                begin = max(end - width, 0)
                frame, places = found_in(between(self.quote.node, begin, end), new)
                order, named_ids, _ = combine(new[places], np.ones(len(places), np.int64))
                self._places.add(named_ids, self._named.height + 1 + order)
                self._named = pl.concat([self._named, frame])
                new, end, width = np.delete(new, places, axis=0), begin, 4 * width
            return self._named[self._places.lookup(ids) - 1]

    def _pass_at(self, epoch: int) -> Iterator[tuple[Ids, Weights]]:
        """The bins that are looked at at an epoch and pass, and did not before, with their weights."""
        tau, grid = self.threshold(epoch), self.quote.mechanism.grid
        for ids, weights in rows_of(self._total):
            some, true = ids[weights >= self._least], weights[weights >= self._least]
            passes = (noisy(true, self.noise.draw(epoch, some), grid) >= tau).astype(np.bool_)
            some, true = some[passes], true[passes]
            new = self._since.lookup(some) == 0
            if new.any():
                yield some[new], true[new]


class ContinualSelection(Measurement):
    """Charged bins of a live source: those that passed a threshold by an epoch, with their noisy weights at it.

    Made again, it is the same release at no further cost, and looks at bins from the next epoch on: keep it.

    Attributes:
        delta: What it costs each data set, once, beside epsilon.
        least: The weight from which bins are looked at.
    """

    times: PassingEpochs

    def __init__(self, quote: Quote[Any], least: int) -> None:
        super().__init__(quote, partial(PassingEpochs, least=least))
        self.delta, self.least = quote.delta, Fraction(least, quote.node.resolution)

    @property
    def bins(self) -> pl.DataFrame:
        """The bins that were published by the last closed epoch, ordered by name.

        Raises:
            NotReadyError: No epoch closed since it was made.
            EngineError: The dataflow that names them could not run.
        """
        refuse_inside("select")
        closed = self.times.closed(None)
        return redacted("select", lambda: by_name(self.times.names(self.times.published(closed)), self.node.schema))

    def release(self, epoch: int | None = None) -> Answer:  # type: ignore[override]
        """The bins that were published by the end of an epoch, with their noisy weights then. It costs nothing more.

        Args:
            epoch: A closed epoch, from the first that closed after it was made; by default the last.

        Returns:
            The bins and their noisy weights, the largest first, then by name. Intervals are those of the noise on a
            weight, which is larger, on average, where it made a bin pass.

        Raises:
            NotReadyError: The epoch is still open, or was closed before.
            EngineError: The dataflow that names the bins could not run.
        """
        refuse_inside("release")
        closed = self.times.closed(epoch)
        names, counts = redacted("release", lambda: self._counts(closed))
        table = ordered(names, counts, self.node.schema, whole=self.node.held.whole)
        about = About(self.quote.label, (self,), self.delta, self.times.threshold(closed) / self._unit)

        def released(level: Fraction, simultaneous: bool) -> Released:
            half = self.interval(level, max(table.height, 1) if simultaneous else 1, closed)
            last = table[:, -1]
            return table, {last.name: (last - half, last + half)}

        return Answer(about, released)

    def pairs(self, bins: Iterable[Any], moment: Moment) -> list[tuple[Any, Any]]:
        """Each bin that was published by an epoch, whatever bins are asked for, with its noisy weight.

        Raises:
            NotReadyError, EngineError: See `release`.
        """
        rows = self.release(moment.epoch).rows
        return [(tuple(key) if len(key) > 1 else key[0], weight) for *key, weight in rows]

    def observe(self, bin: Any, window: Any = None, *, epoch: int | None = None) -> NoReturn:  # noqa: A002
        """Refuse: whoever saw the noise of bins could choose one by it.

        Raises:
            PlanError: Always.
        """
        raise PlanError(f"observe: {NAMELESS}.")

    def observe_many(self, bins: Any, window: Any = None, *, epoch: int | None = None) -> NoReturn:
        """Refuse; see `observe`.

        Raises:
            PlanError: Always.
        """
        raise PlanError(f"observe_many: {NAMELESS}.")

    def __repr__(self) -> str:
        label = f"{self.name!r}, " if self.name else ""
        cost = f"epsilon {decimal(self.epsilon)}, delta {decimal(self.delta)}"
        return f"<continual selection {label}{self.node.schema}, {cost}>"

    def _counts(self, epoch: int) -> tuple[pl.DataFrame, np.ndarray]:
        """The names of the bins that were published by an epoch, and their noisy weights."""
        ids = self.times.published(epoch)
        names = self.times.names(ids)
        true = self.times.lookup(epoch, names, ids)
        return names, self._released(true, self.times.noise.draw(epoch, ids))


def rows_of(histogram: Histogram) -> Iterator[tuple[Ids, Weights]]:
    """The identities and weights of a histogram by identity, in order and in lots."""
    for part in histogram.parts():
        assert len(part) == 2  # noqa: S101  steps come of `shave` alone, which is not linear
        yield part


def continual_quote(
    node: Node, epsilon: Fraction, delta: Fraction, least: Fraction, *, name: str | None, analyst: str | None
) -> Quote[ContinualSelection]:
    """Quote a continual selection of a plan over what a live source is sent.

    Raises:
        PlanError: The plan reads no live source, a step is not linear for each record, weights could decrease, it has
            no fingerprint, the source lets go of records, in which the names are found, or `least` is no weight; or see
            `price`.
    """
    call = "select(continual=True)"
    survey = Survey.of(rewrite(node, first))
    log = log_of(survey.sources)
    if log is None:
        raise PlanError(f"{call}: a finite source has no epochs; use wpinq.live(...).")
    refuse_unless_linear(survey.steps)
    refuse_unnamed(survey.root, call)
    if not survey.root.nonnegative:
        raise PlanError(f"{call}: weights could decrease, which would show bins by their noise; do not subtract.")
    if log.keep is not None:
        raise PlanError(f"{call}: the names of bins are found in all that was sent; leave live(keep=...) out.")
    steps = least * survey.root.resolution
    if steps < 1 or steps.denominator != 1:
        raise PlanError(f"{call}: at_least={least} is no weight above zero that a bin could have; write 10, say.")
    noise = mechanism("geometric", survey.scale(epsilon) * survey.root.resolution)
    refuse_too_wide(noise)
    return price(
        survey, epsilon, call="select", kind=partial(ContinualSelection, least=int(steps)), mechanism=noise,
        fields=("continual selection", FORM, delta, int(steps)), name=name, analyst=analyst, delta=delta,
        epochs=Epochs(log, survey.root, None),
    )  # fmt: skip
