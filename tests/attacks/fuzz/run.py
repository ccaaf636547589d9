"""Run a case through the public calls, and note all that happened and every histogram that an answer came from."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import polars as pl
from attacks.fuzz import sources
from attacks.fuzz.case import Case
from attacks.fuzz.names import NAMES
from default_engine import flow

import wpinq
from wpinq.core.engines.job import Job, Lowered
from wpinq.core.ledger import Ledger
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.measurements.continual import EveryEpoch
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.plan.node import sources as read_by
from wpinq.core.state.histogram import Histogram, is_steps
from wpinq.errors import WpinqError

HOME = str(Path(wpinq.__file__).parent)
SECRET = Secret(bytes(range(32)))
Content = dict[object, int]


@dataclass
class QuotedAggregate:
    """One question, and what was answered from.

    Attributes:
        question: The object.
        line: Which line of the program made it.
        content: Its histogram in units of 1/resolution, by identity or as steps; None as long as it has no answer.
        changes: Of a continual one, by epoch.
        taus: Thresholds of what was released, in steps of the noise.
    """

    question: ChargedQuery
    line: int
    content: Content | None = None
    changes: dict[int, Content] = field(default_factory=dict)
    taus: list[int] = field(default_factory=list)


@dataclass
class Trace:
    """What a run of a case did.

    Attributes:
        events: For each line what became of it, without answers, and what each ledger has spent after it.
        asked: Every question, in the order of their making.
        columns: For each name the columns of the collection.
        errors: What failed after it was charged, or was no error of wpinq.
        stderr: What was written there.
    """

    events: list[tuple[object, ...]] = field(default_factory=list)
    asked: list[QuotedAggregate] = field(default_factory=list)
    columns: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    stderr: str = ""
    spent: list[tuple[Fraction, Fraction]] = field(default_factory=list)
    made: list[int] = field(default_factory=list)


def run(case: Case, way: str = "") -> Trace:
    """Run a case; `way` is another way to hand over or to compute the same: "split", "tuples", "parquet", "shards"."""
    with tempfile.TemporaryDirectory() as place, silent() as said, watched() as trace:
        Runner(case, Path(place), way, trace).go()
    trace.stderr = said[0]
    return trace


class Runner:
    def __init__(self, case: Case, place: Path, way: str, trace: Trace) -> None:
        self.case, self.place, self.way, self.trace = case, place, way, trace
        self.made: dict[int, wpinq.Collection] = {}
        self.epoch, self.refused = 0, set[int]()
        self.env: dict[str, object] = dict(
            NAMES, table=self.table, advance=self.advance, settle=self.settle, double=double, sql=wpinq.sql,
            degrees=wpinq.degrees,
        )  # fmt: skip

    def go(self) -> None:
        with patched_shards(3 if self.way == "shards" else 0), ledgers_in_memory():
            for number, line in enumerate(self.case.lines):
                outcome = self.step(number, line)
                if outcome[0] != "done":
                    self.refused.add(number)
                self.trace.events.append((*outcome, *(self.spent() if costs(line) else ())))
            self.trace.events.append((*self.attempt(self.settle), *self.spent()))
        self.trace.spent = self.spent()
        self.trace.made = sorted(self.made)
        for one in self.made.values():
            if isinstance(one, wpinq.Live):
                one.close()

    def step(self, number: int, line: str) -> tuple[object, ...]:
        WATCH[0] = number
        before = self.spent() if costs(line) else []
        outcome = self.attempt(lambda: exec(line, self.env))
        if costs(line) and outcome[0] != "done" and before != self.spent():
            self.trace.errors.append(f"line {number} failed and was charged: {outcome}")
        name = line.split(" = ", maxsplit=1)[0]
        if outcome[0] == "PlanError" and ".at(" in line and "no measurement of windows" not in str(outcome):
            self.trace.errors.append(f"line {number}: a window that was paid can never be answered: {outcome}")
        if isinstance(found := self.env.get(name), wpinq.Collection):
            self.trace.columns[name] = tuple((column.name, column.kind.value) for column in found._node.schema)
        return outcome

    def attempt(self, call: object) -> tuple[object, ...]:
        try:
            call()  # type: ignore[operator]
        except (NameError, KeyError, AttributeError) as error:  # a line that was left out
            return ("skipped", type(error).__name__)
        except WpinqError as error:
            if isinstance(error, wpinq.EngineError) or "report this" in str(error):
                self.trace.errors.append(f"failed after the charge: {type(error).__name__}: {error}")
            return (type(error).__name__, str(error).replace(str(self.place), "PLACE"))
        except BaseException as error:  # a panic of Polars is no Exception
            if any(HOME in frame.filename for frame in traceback.extract_tb(error.__traceback__)):
                self.trace.errors.append(f"raw {type(error).__name__}: {error}")
            return (type(error).__name__, str(error))
        return ("done",)

    def table(self, number: int) -> wpinq.Collection:
        if number not in self.made:
            given = self.case.tables[number]
            place = None if given.ledger is None else self.place / f"ledger{given.ledger}"
            self.made[number] = sources.opened(given, self.place / str(number), place, SECRET, self.way)
        return self.made[number]

    def advance(self, until: object = None) -> None:
        self.epoch += 1
        for number, table in enumerate(self.case.tables):
            live = self.made.get(number)
            if isinstance(live, wpinq.Live):
                rows = [row for row, epoch in zip(table.rows, table.epochs, strict=True) if epoch == self.epoch]
                sources.send(live, table, rows, self.way)
                live.advance(until)

    def settle(self) -> None:
        """Compute what waits; of a live source whatever is closed."""
        for asked in list(self.trace.asked):
            if not asked.question.settled and asked.line not in self.refused:
                with suppress(wpinq.NotReadyError):
                    asked.question._settled()

    def spent(self) -> list[tuple[Fraction, Fraction]]:
        """What each table's ledger has spent."""
        return [read_by(self.made[n]._node)[0].ledger.spent() for n in sorted(self.made)]


def costs(line: str) -> bool:
    """Whether the line asks something, or closes an epoch."""
    return not line.startswith(("c", "p"))


def double(collection: wpinq.Collection, times: int) -> wpinq.Collection:
    """The collection 2^times times; slices that are thicker than any weight add equal records up on the way."""
    for one in range(1, times + 1):
        collection = collection.concat(collection)
        if one % 5 == 0:
            collection = collection.shave(2**61).map([pl.col(name) for name in collection.columns])
    return collection


# ---- what is watched

WATCH = [0]


@contextmanager
def watched() -> Iterator[Trace]:
    """Note every question and its histogram."""
    trace = Trace()
    made: dict[int, QuotedAggregate] = {}
    init, answer, receive = ChargedQuery.__init__, ChargedQuery.answer_from, EveryEpoch.receive
    taken = Measurement._passing

    def created(self: ChargedQuery, *args: object, **options: object) -> None:
        init(self, *args, **options)  # type: ignore[arg-type]
        made[id(self.quote)] = QuotedAggregate(self, WATCH[0])
        trace.asked.append(made[id(self.quote)])

    def answered(self: ChargedQuery, histogram: Histogram) -> None:
        made[id(self.quote)].content = content(self, histogram)
        answer(self, histogram)

    def received(self: EveryEpoch, epoch: int, change: Histogram) -> None:
        mine = made[id(self.quote)]
        mine.changes[epoch] = content(mine.question, change)
        receive(self, epoch, change)

    def passing(self: Measurement, tau: int) -> object:
        made[id(self.quote)].taus.append(tau)
        return taken(self, tau)

    with (
        patch.object(ChargedQuery, "__init__", created),
        patch.object(ChargedQuery, "answer_from", answered),
        patch.object(EveryEpoch, "receive", received),
        patch.object(Measurement, "_passing", passing),
    ):
        yield trace


def content(question: ChargedQuery, histogram: Histogram) -> Content:
    """Weights in units of 1/resolution: by identity, or by the start and the end of a step."""
    ids, weights = histogram.content()
    if weights.ndim == 2:
        numbers = [(int(high) << 64 | int(low)) for low, high in weights.tolist()]
        numbers = [number - 2**128 if number >= 2**127 else number for number in numbers]
    else:
        numbers = weights.tolist()
    keys = ids.view("int64") if is_steps(question.node.schema) else ids
    return dict(zip(map(tuple, keys.tolist()), numbers, strict=True))


@contextmanager
def ledgers_in_memory() -> Iterator[None]:
    """Data sets of one ledger share one that is held in memory: files take most of the time otherwise."""
    opened: dict[Path, Ledger] = {}
    real = Ledger.open

    def once(place: Path | None, **options: object) -> Ledger:
        if place is None:
            return real(None, **options)  # type: ignore[arg-type]
        return opened.get(place) or opened.setdefault(place, real(None, **options))  # type: ignore[arg-type]

    with patch.object(Ledger, "open", once):
        yield


@contextmanager
def patched_shards(shards: int) -> Iterator[None]:
    """Cut every keyed step into so many shards; also those for which the loop would be chosen, which has none."""
    once = flow.run

    def cut(job: Job, plan: Lowered | None = None, **words: int) -> list[Histogram]:  # the loop is told its threads
        return once(replace(job, shards=shards), plan, **words)

    stacked = False if shards else Lowered.stacked
    with patch.object(flow, "run", cut if shards else once), patch.object(Lowered, "stacked", stacked):
        yield


@contextmanager
def silent() -> Iterator[list[str]]:
    """Keep what is written to standard error, by Rust too."""
    said = [""]
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            said[0] = file.read().decode(errors="replace")
