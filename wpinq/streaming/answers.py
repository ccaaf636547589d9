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
from wpinq.core.measurements.continual_selection import ContinualSelection
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.measurements.times import Moment
from wpinq.core.plan.dataset import DataSet
from wpinq.core.records.bins import bin_frame
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
            for moment in measurement.times.moments(epoch, since, again=once):
                with suppress(NotReadyError):
                    yield from self._rows(name, bins, moment)

    def _rows(self, name: str, bins: Iterable[Any], moment: Moment) -> Iterator[dict[str, Any]]:
        """The answers of a measurement at one moment."""
        measurement = self.measurements[name]
        pairs = measurement.pairs(bins, moment)
        half = measurement.interval(self.level, epoch=moment.epoch if measurement.times.continual else None)
        start, end = (None, None) if moment.window is None else map(shown, moment.window)
        when = f"epoch {moment.epoch}" if start is None else f"window {start}"
        if name not in self.told:
            self.told[name] = known(measurement)
        for item, value in pairs:
            key = row_key(self.stream, name, when, item)
            span = {"window_start": start, "window_end": end, "epoch": moment.epoch}
            answer = {"measurement": name, "bin": item, "value": value, "half_width": half, "level": float(self.level)}
            yield {"key": key, "stream": self.stream, **answer, **span, **self.told[name]}


def shown(time: Any) -> str:
    """A time of a window as text."""
    return str(time.isoformat() if hasattr(time, "isoformat") else time)


def listed(bins: Any) -> Any:
    """Bins as a list; what is none stays as it is, to be refused."""
    return list(bins) if isinstance(bins, Iterable) and not isinstance(bins, (str, bytes)) else bins


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
        times = {name: measurement.times for name, measurement in questions.measurements.items()}
        self._windows = {name: kind.window for name, kind in times.items() if kind.window is not None}
        self._late: dict[str, int | None] = dict.fromkeys(self._windows, 0)
        for epoch in delivery.missing(self._told):
            delivery.offer(Release(questions.stream, epoch, list(questions.rows(epoch))))

    @classmethod
    def asked(
        cls, views: Stream, measurements: Mapping[str, Measurement], bins: Any, to: str | Sequence[str]
    ) -> Answers:
        """See `Live.answers`."""
        for name, measurement in measurements.items():
            if not isinstance(measurement, Measurement) or measurement.times.log is not views._log:
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
