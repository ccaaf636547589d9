"""The answers of a live source, epoch by epoch: for a loop in Python, for the command line, and for sinks."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, Self

from wpinq.arguments import described
from wpinq.core.measurements.continual import ContinualMeasurement
from wpinq.core.measurements.continual_selection import ContinualSelection
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.measurements.windows import WindowedMeasurement, windows
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import steps
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.log import Log
from wpinq.core.runs.timeline import Timeline
from wpinq.errors import NotReadyError, PlanError
from wpinq.streaming.epoch_store import EpochStore
from wpinq.streaming.ingest_stats import late
from wpinq.streaming.sinks import Release, open_sinks, row_key
from wpinq.streaming.sinks.delivery import Delivery

LEVEL = Fraction(9, 10)


@dataclass(frozen=True)
class Questions:
    """What is asked of a stream at each epoch.

    Attributes:
        stream: A code for the stream.
        measurements: By name.
        bins: Those that are asked of each; a continual selection answers those that it has published.
        since: For each measurement the epoch after which it was added, if that is not the beginning.
        level: How often the half width of an answer holds, for the noise.
        told: What is known of the answers of each before there are any.
    """

    stream: str
    measurements: Mapping[str, Measurement]
    bins: Mapping[str, list[Any]]
    since: Mapping[str, int]
    level: Fraction = LEVEL
    told: dict[str, dict[str, Any]] = field(default_factory=dict)

    def rows(self, epoch: int, *, once: bool = False) -> Iterator[dict[str, Any]]:
        """The answers that an epoch brought: continual ones each time, windows when they close, others once.

        Args:
            epoch: The epoch.
            once: Give again what was told once, too.
        """
        for name, bins in self.bins.items():
            measurement, since = self.measurements[name], self.since.get(name, 0)
            if epoch <= since and not once:
                continue
            if isinstance(measurement, WindowedMeasurement):
                for time in measurement.closed(epoch):
                    start, end = shown(time), shown(measurement.end(time))
                    span = {"window_start": start, "window_end": end}
                    pairs = list(zip(bins, measurement.observe_many(bins, time).tolist(), strict=True))
                    yield from self._rows(name, f"window {start}", {"epoch": epoch, **span}, pairs, None)
            elif isinstance(measurement, ContinualMeasurement):
                with suppress(NotReadyError):
                    pairs = measurement.pairs(bins, epoch)
                    yield from self._rows(name, f"epoch {epoch}", {"epoch": epoch}, pairs, epoch)
            elif once or epoch == max(since + 1, answered(measurement)):
                with suppress(NotReadyError):
                    pairs = list(zip(bins, measurement.observe_many(bins).tolist(), strict=True))
                    then = answered(measurement)
                    yield from self._rows(name, f"epoch {then}", {"epoch": then}, pairs, None)

    def _rows(
        self, name: str, when: str, about: Mapping[str, Any], pairs: Iterable[tuple[Any, Any]], epoch: int | None
    ) -> Iterator[dict[str, Any]]:
        measurement = self.measurements[name]
        half = (
            measurement.interval(self.level, epoch=epoch)
            if isinstance(measurement, ContinualMeasurement)
            else measurement.interval(self.level)
        )
        if name not in self.told:
            self.told[name] = known(measurement)
        for item, value in pairs:
            key = row_key(self.stream, name, when, item)
            span = {"window_start": None, "window_end": None, **about}
            answer = {"measurement": name, "bin": item, "value": value, "half_width": half, "level": float(self.level)}
            yield {"key": key, "stream": self.stream, **answer, **span, **self.told[name]}


def shown(time: Any) -> str:
    """A time of a window as text."""
    return str(time.isoformat() if hasattr(time, "isoformat") else time)


def answered(measurement: Measurement) -> int:
    """The epoch that answers a measurement with a single answer."""
    epochs = measurement.quote.epochs
    return 1 if epochs is None or epochs.epoch is None else epochs.epoch


def listed(bins: Any) -> Any:
    """Bins as a list; what is none stays as it is, to be refused."""
    return list(bins) if isinstance(bins, Iterable) and not isinstance(bins, (str, bytes)) else bins


def log_of(measurement: Measurement) -> Log | None:
    """The live source that a measurement is of."""
    if isinstance(measurement, WindowedMeasurement):
        return measurement._log
    return None if measurement.quote.epochs is None else measurement.quote.epochs.log


def known(measurement: Measurement) -> dict[str, Any]:
    """What is known of every answer of a measurement before there are any."""
    about = measurement.about
    beside = "; ".join(about["beside noise"])
    epsilon = None if measurement.rho else float(measurement.epsilon)  # no epsilon bounds Gaussian noise that costs rho
    rho = {"rho": float(measurement.rho)} if measurement.key_owner.ledger.curves else {}
    rho |= {"delta": float(measurement.quote.payment.delta)} if measurement.quote.payment.delta else {}
    return {"epsilon": epsilon, "unit": about["unit"], "protects": about["protects"], "beside_noise": beside, **rho}


class Stream(Protocol):
    """What is needed of a live source (`collection.py`)."""

    _data: DataSet
    _log: Timeline
    _journal: EpochStore | None

    @property
    def epoch(self) -> int:
        """The number of the last closed epoch."""

    def resume(self) -> int:
        """Take in what was kept for a restart."""


class Answers:
    """The answers of a live source, each once: a loop over it gives those of the epochs that closed since the last one.

    `Live.answers` makes it. Each is a mapping with what goes to sinks (`wpinq/docs/live.md`). The answers of an
    epoch are handed to the sinks when the loop comes to it; at the end, call `close`, or use it in a `with` statement.

    Attributes:
        delivery: Hands them to sinks.
    """

    def __init__(self, views: Stream, questions: Questions, delivery: Delivery) -> None:
        self._views, self.delivery, self._questions = views, delivery, questions
        self._told = views.resume()
        windowed = {
            name: measurement
            for name, measurement in questions.measurements.items()
            if isinstance(measurement, WindowedMeasurement)
        }
        self._windows = {name: next(iter(windows(steps(measurement.node)))) for name, measurement in windowed.items()}
        self._late: dict[str, int | None] = dict.fromkeys(windowed, 0)
        for epoch in delivery.missing(self._told):
            delivery.offer(Release(questions.stream, epoch, list(questions.rows(epoch))))

    @classmethod
    def asked(
        cls, views: Stream, measurements: Mapping[str, Measurement], bins: Any, to: str | Sequence[str]
    ) -> Answers:
        """See `Live.answers`."""
        for name, measurement in measurements.items():
            if not isinstance(measurement, Measurement) or log_of(measurement) is not views._log:
                raise PlanError(f"answers({{{described(name)}: ...}}): it is no measurement of this live source.")
        each = bins if isinstance(bins, Mapping) else dict.fromkeys(measurements, listed(bins))
        if wrong := [name for name in each if name not in measurements]:
            raise PlanError(f"answers(bins={{{described(wrong[0])}: ...}}): there are {', '.join(measurements)}.")
        selected: dict[str, list[Any]] = {
            name: [] for name, measurement in measurements.items() if isinstance(measurement, ContinualSelection)
        }
        if isinstance(bins, Mapping) and (named := [name for name in selected if name in bins]):
            raise PlanError(f"answers(bins={{{described(named[0])}: ...}}): name none; it answers those it published.")
        chosen = {name: listed(items) for name, items in each.items()} | selected
        for name, items in chosen.items():
            bin_frame(items, measurements[name].node.schema)
        questions = Questions(views._data.version, measurements, chosen, {})
        sinks = open_sinks([to] if isinstance(to, str) else to, "answers(to=...)")
        keep, notes = views._log.keep or sys.maxsize, None if views._journal is None else views._journal.notes
        delivery = Delivery(sinks, questions.stream, notes, keep, stop=threading.Event(), tell=warnings.warn)
        return cls(views, questions, delivery)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for release in self.fresh():
            self.delivery.offer(release)
            yield from release.rows

    def fresh(self) -> Iterator[Release]:
        """The answers of each epoch that has closed since; who takes them offers them to the sinks."""
        while self._told < self._views.epoch:
            self._told += 1
            self._count()
            yield Release(self._questions.stream, self._told, list(self._questions.rows(self._told)))

    def latest(self) -> list[dict[str, Any]]:
        """What was answered last, and what is answered once."""
        return list(self._questions.rows(self._told, once=True)) if self._told else []

    def _count(self) -> None:
        """Count the records of an epoch that came too late; exactly, so for the curator alone."""
        for name, window in self._windows.items():
            more, before = late(window, self._views._log, self._told), self._late[name]
            self._late[name] = None if more is None or before is None else before + more

    def close(self) -> None:
        """Hand over what waits still, and let go of the sinks.

        Raises:
            SourceError: A sink has not got all.
        """
        try:
            self.delivery.finish()
        finally:
            self.delivery.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
