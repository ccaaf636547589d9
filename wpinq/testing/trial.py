"""Run a dataflow on a case in one of several ways, and note all that can be seen of the run from outside."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import polars as pl

from wpinq.collection import Collection
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.plan.node import Record, sources
from wpinq.core.records.schema import Kind, polars_type
from wpinq.errors import NotReadyError, WpinqError
from wpinq.protection import protect
from wpinq.streaming.source import live
from wpinq.testing.case import EPOCHS, Case, Row
from wpinq.testing.watch import Asked, Seen, watched, windowed

SECRET = Secret(bytes(range(32)))
"""The same in every run, so that noise and samples are the same."""
DELTA = Fraction(1, 1000)
PROMISE = {"budget": 10**12, "delta": "1/2"}
WINDOWS = 4
"""Windows that are looked at."""


@dataclass
class Trace:
    """What a run did.

    Attributes:
        events: For each call what became of it, and what the ledger has spent after it.
        seen: The questions, and what was printed.
        broken: Failures after a charge, and errors that are none of this library.
    """

    events: list[tuple[str, ...]] = field(default_factory=list)
    watched: Seen = field(default_factory=Seen)
    broken: list[str] = field(default_factory=list)
    spent: Any = (Fraction(0), Fraction(0))


def run(
    dataflow: Callable[..., Any], case: Case, *, way: str = "local", own: bool = True, replay: Seen | None = None,
    release: bool = False, answer: bool = True, promise: Mapping[str, Any] | None = None,
) -> Trace:  # fmt: skip
    """Run a dataflow over the records of a case.

    Args:
        dataflow: Is given the protected collection.
        case: The records.
        way: "local", "bytewax" or "shards" are engines; "order" hands the records over in another order, "tuples" as
            Python's values and no frame, "pieces" a live source's one by one.
        own: Whether the unit's records are among them.
        replay: Another run, from whose histograms questions are answered.
        release: Whether each measurement is released too.
        answer: Whether anything is computed, beside what the dataflow observes itself.
        promise: What the ledger promises.
    """
    rows = case.rows(own=own)
    if way == "order":
        rows = [*rows[1::2], *reversed(rows[::2])]
    engine = way if way in ("bytewax", "shards") else "local"
    with watched(engine, replay) as observed:
        made = Run(dataflow, case, rows, promise or PROMISE, tuples=way == "tuples")
        if case.live:
            made.live(observed, single=way == "pieces")
        else:
            made.finite(observed, release=release, answer=answer)
    made.trace.watched = observed
    return made.trace


class Run:
    """One run of a dataflow."""

    def __init__(
        self, dataflow: Callable[..., Any], case: Case, rows: list[Row], promise: Mapping[str, Any], *, tuples: bool
    ) -> None:
        self.dataflow, self.case, self.rows, self.tuples, self.trace = dataflow, case, rows, tuples, Trace()
        self.words = {**case.words, **promise, "secret": SECRET}

    def finite(self, observed: Seen, *, release: bool, answer: bool) -> None:
        """All records at once."""
        records = self.records_of([row for _, row in self.rows])
        views = protect(records, columns=self.case.columns, name="audit", version="1", **self.words)
        self.attempt("dataflow", views, lambda: self.dataflow(views))
        if answer:
            self.answer(views, observed)
        if release:
            for released in [question for question in observed.questions if releasable(question)]:
                measurement: Any = released.question
                self.attempt(f"release {released.title}", views, partial(measurement.release, delta=DELTA))

    def live(self, observed: Seen, *, single: bool) -> None:
        """Epoch by epoch."""
        views = live(self.case.columns, name="audit", **self.words)
        try:
            for epoch in range(1, EPOCHS + 1):
                if epoch == 1 + self.case.early:
                    self.attempt("dataflow", views, lambda: self.dataflow(views))
                rows = [row for at, row in self.rows if at == epoch]
                for some in [[row] for row in rows] if single else [rows]:
                    views.send(self.records_of(some))
                until = self.until(observed, epoch)
                self.attempt(f"advance {epoch}", views, partial(views.advance, until))
            self.answer(views, observed)
        finally:
            views.close()

    def records_of(self, rows: list[Record]) -> Any:
        """Records as a frame, which holds NaN as it is; as tuples where a column has values of any kind."""
        if self.tuples or None in self.case.columns.values():
            return rows
        columns = zip(*rows, strict=True) if rows else [()] * len(self.case.columns)
        return pl.DataFrame(
            pl.Series(name, list(values), polars_type(Kind(kind)), strict=False)
            for (name, kind), values in zip(self.case.columns.items(), columns, strict=True)
        )

    def answer(self, views: Collection, observed: Seen) -> None:
        """Compute what was charged, window by window where there are windows."""
        for watched_question in list(observed.questions):
            question: Any = watched_question.question
            if windowed(question):
                for time in self.times(question)[:WINDOWS]:
                    name = f"window {time} of {watched_question.title}"
                    self.attempt(name, views, partial(_window, question, time))
            elif watched_question.paid and not question.settled:
                self.attempt(f"observe {watched_question.title}", views, question._settled, charged=True)

    def times(self, question: Measurement) -> list[Any]:
        """Times in windows that are looked at, which do not depend on whether the unit is there."""
        first = question.times.window
        assert first is not None  # noqa: S101  who calls has looked
        if first.at in self.case.columns:
            return self.case.values(first.at)
        return list(range(1, EPOCHS + 1)) if first.kind is Kind.INT else []

    def until(self, observed: Seen, epoch: int) -> Any:
        """Until when windows close with an epoch, so that the last closes all but the last of them."""
        cut: list[Any] = [entry.question for entry in observed.questions if windowed(entry.question)]
        times = self.times(cut[0]) if cut else []
        return times[min(len(times) - 1, epoch * len(times) // EPOCHS)] if times else None

    def attempt(self, name: str, views: Collection, call: Callable[[], Any], *, charged: bool = False) -> None:
        """Do something, and note what became of it, what it said and what was spent."""
        became: tuple[str, ...] = ("done",)
        try:
            with contextlib.suppress(NotReadyError):
                call()
        except WpinqError as error:
            became = (type(error).__name__, str(error))
            if charged or type(error).__name__ in ("EngineError", "InternalError"):
                self.trace.broken.append(f"{name}: {type(error).__name__}: {error}")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  a script may raise anything; panics of Polars are no Exception
            became = (type(error).__name__, str(error))
        ledger = sources(views._node)[0].ledger
        self.trace.spent = ledger.spent()
        self.trace.events.append((name, *became, f"spent {self.trace.spent}"))


def _window(question: Measurement, time: Any) -> None:
    question.at(time)._settled()


def releasable(entry: Asked) -> bool:
    """Whether its bins can be published by a threshold whose law the audit knows."""
    question = entry.question
    return type(question) is Measurement and entry.content is not None and getattr(
        question._mechanism, "name", "") in ("geometric", "laplace")  # fmt: skip
