"""`tail -f access.log | wpinq run DATAFLOW -`: records as they come, answers at each epoch and of each closed window.

A stream is standard input, files that grow (`--follow`), or a topic of Kafka. Epochs are closed by the clock every so
many seconds, and windows a declared lateness after they end. With `--recover` a closed epoch is on the disk before
anything is answered from it, so a run that is killed goes on with the same answers: files and topics are read on from
where the last closed epoch ended, and of standard input what had not been closed is lost, and counted nowhere.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from wpinq.cli.bins import ask
from wpinq.cli.errors import say
from wpinq.cli.inputs import named_as_options
from wpinq.cli.interrupt import interruptible
from wpinq.errors import NotReadyError, PlanError, SourceError
from wpinq.scripts.script import LIMITLESS, Dataflow, Rehearsal, chosen, rehearsed
from wpinq.sources.columns import parse_columns

if TYPE_CHECKING:
    from wpinq.cli.inputs import Input
    from wpinq.measurements.measurement import Measurement
    from wpinq.streaming import Live
    from wpinq.streaming.kafka import Topic

BLOCK = 1 << 20
WAITING = 64
"""Blocks that are read ahead of the dataflow."""
TOPIC = "kafka://"
LINES = "-"


def streams(source: str, *, follow: bool) -> bool:
    """Whether an input never ends."""
    return follow or source == LINES or source.startswith(TOPIC)


@dataclass(frozen=True)
class Stream:
    """Records that come for as long as the command runs, as the command line names them.

    Attributes:
        place: "-" for lines of a web log, a topic, or a path or pattern of files that grow; their ledger is kept beside
            the files, or in memory, where nothing else is said.
        script: The dataflow script.
        budget: Epsilon, as it was written.
        every: Seconds after which an epoch is closed.
        lateness: Seconds after its end at which a window is closed.
        recover: Where closed epochs are kept for a restart.
    """

    place: Input
    script: Path
    budget: str | None
    every: float
    lateness: float
    recover: Path | None

    @property
    def topic(self) -> Topic | None:
        """The topic, if it is one."""
        from wpinq.streaming.kafka import from_url

        return from_url(self.place.source) if self.place.source.startswith(TOPIC) else None

    def kinds(self) -> dict[str, str | None]:
        """The columns with their types; nothing but a header is read.

        Raises:
            SourceError: There is no such column, or a topic's columns are not named.
        """
        from wpinq.sources.columns import chosen as picked
        from wpinq.sources.text.weblog import KINDS

        columns, topic = parse_columns(self.place.columns), self.topic
        if topic is not None and topic.form != "log":
            if columns is None:
                raise SourceError("--columns: name those of the messages, as in --columns user,page:int.")
            types = columns if isinstance(columns, Mapping) else dict.fromkeys(columns)
            return {name: str(kind or "text") for name, kind in types.items()}
        if topic is None and self.place.source != LINES:
            result = self.place.schema()
        else:
            arrived = {topic.arrived: "instant"} if topic is not None and topic.arrived else {}
            names = None if columns is None else [name for name in columns if name not in arrived]
            result = picked(KINDS, names, "a web log")
            return {**{column.name: column.kind.value for column in result}, **arrived}
        return {column.name: column.kind.value for column in result}

    def rehearse(self, script: Dataflow) -> Rehearsal:
        """Run the script over a source in memory, so that its errors show before anything is charged."""
        from wpinq.streaming.source import live

        place = self.place
        with named_as_options():
            views = live(
                self.kinds(), LIMITLESS, name=place.name or "stream", unit=place.unit, where=place.where,
                derive=place.derive,
            )  # fmt: skip
        result = rehearsed(script, views)
        views.close()
        return result

    def open(self, windows: Sequence[int]) -> Live:
        """The live source.

        Args:
            windows: The lengths of the windows that will be asked for, in microseconds; so long their records are held.

        Raises:
            PlanError: There is no budget, or no ledger to go on with.
            SourceError: The broker of a topic does not answer.
        """
        from wpinq.streaming.journal import DataflowDirectory
        from wpinq.streaming.kafka import reach
        from wpinq.streaming.source import live

        name, place = self._home()
        if self.budget is None:
            raise PlanError("--budget: a stream needs one each time, that of its ledger; it holds for all that comes.")
        if self.recover is not None and place is None:
            raise PlanError("--recover: give --ledger PATH too; one in memory is lost with the process.")
        if (topic := self.topic) is not None:
            reach(topic)
        longest = max(windows, default=0) / 1e6 + self.lateness
        script = blake2b(self.script.read_bytes()).digest()
        return live(
            self.kinds(), self.budget, ledger=place, name=self.place.name or name,
            lateness=dt.timedelta(seconds=self.lateness), unit=self.place.unit, where=self.place.where,
            derive=self.place.derive, keep=math.ceil(longest / self.every) + 1,
            recover=None if self.recover is None else DataflowDirectory(self.recover, script),
        )  # fmt: skip

    def _home(self) -> tuple[str, Path | None]:
        """The name of the data set and the place of its ledger where they were not given."""
        from wpinq.protection import beside
        from wpinq.sources.files import Files

        if self.place.source == LINES:
            return "stdin", self.place.ledger
        if (topic := self.topic) is not None:
            return topic.topic, self.place.ledger
        result = Files.find(self.place.source)
        return result.name, self.place.ledger or beside(result.path)

    def feed(self, views: Live) -> Callable[[], bool]:
        """What sends the records of one epoch, and tells whether more can come."""
        if self.place.source == LINES:
            blocks: queue.Queue[bytes | None] = queue.Queue(WAITING)
            threading.Thread(target=_read, args=(sys.stdin.buffer, blocks), name="wpinq reads", daemon=True).start()
            return partial(_take, views, blocks, self.every, tuple(self.kinds()))
        return partial(_look, views, self.topic or self.place.source, self.every)


def answer(stream: Stream, script: Dataflow, asked: Mapping[str, Sequence[str]]) -> None:
    """Answer the bins asked for: continual measurements at each epoch, windows when they close, others once."""
    from wpinq.cli.show import protects_line
    from wpinq.measurements.windows import WindowedMeasurement

    rehearsal = stream.rehearse(script)
    known = rehearsal.measurements
    windowed = [item for item in known.values() if isinstance(item, WindowedMeasurement)]
    if any(not entry.timed for entry in windowed):
        raise PlanError("window: those of a stream are closed by the clock; cut them by a timestamp or a date.")
    questions = {name: ask(texts, chosen(known, name).node.schema) for name, texts in asked.items()}
    views = stream.open([item.span for item in windowed])
    try:
        measurements = rehearsal.charge(views)
        say(protects_line(views._node))  # what is printed on standard output is answers alone
        feed, going, resumed = stream.feed(views), True, views.resume()
        if resumed:
            _show(resumed, measurements, questions, once=True)
        while going:
            going = feed()
            epoch = views.advance()
            _show(epoch, measurements, questions, once=epoch == 1)
    finally:
        views.close()


def _look(views: Live, source: Topic | str, every: float) -> bool:
    """Wait, and see what has come."""
    time.sleep(every)
    views.follow(source)
    return True


def _take(views: Live, blocks: queue.Queue[bytes | None], every: float, columns: Sequence[str]) -> bool:
    """Send lines as they come, until it is time to close the epoch or there are no more."""
    end = time.monotonic() + every
    while (left := end - time.monotonic()) > 0:
        interruptible()
        try:
            block = blocks.get(timeout=left)
        except queue.Empty:
            break
        if block is None:
            return False
        _send(views, block, columns)
    return True


def _read(lines: BinaryIO, blocks: queue.Queue[bytes | None]) -> None:
    """Whole lines as they come, from a thread of its own, since a pipe may be silent for long."""
    rest = b""
    raw = getattr(lines, "raw", lines)  # a buffer is locked while it waits, and an interrupted process cannot end then
    while data := raw.read(BLOCK):
        whole = (rest + data).rfind(b"\n") + 1
        block, rest = (rest + data)[:whole], (rest + data)[whole:]
        if block:
            blocks.put(block)
    if rest:
        blocks.put(rest + b"\n")
    blocks.put(None)


def _send(views: Live, block: bytes, columns: Sequence[str]) -> None:
    from wpinq.records.text import series, valid_text
    from wpinq.sources.text.lines import as_lines
    from wpinq.sources.text.weblog import parse

    views.send(parse(series(valid_text(as_lines(block)), "line")).select(columns))


def _show(
    epoch: int, measurements: Mapping[str, Measurement], questions: Mapping[str, list[Any]], *, once: bool
) -> None:
    """Print the answers that an epoch brought."""
    from wpinq.measurements.continual import ContinualMeasurement
    from wpinq.measurements.windows import WindowedMeasurement

    for name, bins in questions.items():
        one = measurements[name]
        if isinstance(one, WindowedMeasurement):
            for time_ in one.closed(epoch):
                _print(f"window {time_.isoformat()}", name, bins, one.observe_many(bins, time_).tolist())
        elif once or isinstance(one, ContinualMeasurement):
            with contextlib.suppress(NotReadyError):
                when = epoch if isinstance(one, ContinualMeasurement) else 1
                _print(f"epoch {when}", name, bins, one.observe_many(bins).tolist())
    sys.stdout.flush()


def _print(when: str, name: str, bins: Sequence[Any], values: Sequence[Any]) -> None:
    from wpinq.cli.show import written

    for item, value in zip(bins, values, strict=True):
        typer.echo(f"{when}  {name}  {written(item)}  {value:,}")
