"""`tail -f access.log | wpinq run DATAFLOW -`: records as they come, answers at each epoch and of each closed window.

A stream is standard input, files that grow (`--follow`), or a topic of Kafka. Epochs are closed by the clock every so
many seconds, and windows a declared lateness after they end. With `--recover` a closed epoch is on the disk before
anything is answered from it, so a run that is killed goes on with the same answers: files and topics are read on from
where the last closed epoch ended, and of standard input what had not been closed is lost, and counted nowhere.
"""

from __future__ import annotations

import datetime as dt
import math
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from wpinq.apps.cli.lines import say
from wpinq.apps.cli.process import check_input, interruptible, why
from wpinq.apps.scripts.script import Dataflow, Rehearsal, rehearsed
from wpinq.errors import PlanError, SourceError
from wpinq.exact import positive
from wpinq.sources.form import Words, parse_columns

if TYPE_CHECKING:
    from wpinq.apps.cli.inputs import Input
    from wpinq.sources.text.csv import TextReader
    from wpinq.streaming.collection import Live
    from wpinq.streaming.shared.crew import Workers
    from wpinq.streaming.shared.home import Home
    from wpinq.streaming.shared.keeper import HeldError
    from wpinq.streaming.topic import Topic

BLOCK = 1 << 20
WAITING = 64
"""Blocks that are read ahead of the dataflow."""
NOTICE = 0.5
"""Seconds after which a stream without records sees that it shall end."""
TOPIC = "kafka://"
LINES = "-"
AGAIN = 2.0
"""Seconds after which a process that waits looks whether it may keep the stream."""


def streams(source: str, *, follow: bool) -> bool:
    """Whether an input never ends."""
    return follow or source == LINES or source.startswith(TOPIC)


@dataclass(frozen=True)
class Stream:
    """Records that come for as long as the command runs, as the command line names them.

    Attributes:
        data: "-" for lines of a web log, a topic, or a path or pattern of files that grow; their ledger is kept beside
            the files, or in memory, where nothing else is said.
        script: The dataflow script.
        budget: Epsilon, as it was written.
        every: Seconds after which an epoch is closed.
        lateness: Seconds after its end at which a window is closed.
        recover: Where closed epochs are kept for a restart.
        keep: For how many epochs what came is held; by default for as many as windows need.
        workers: How many processes of this host read for a stream that is kept in the database of its ledger; None
            where this process reads it alone.
        stop: Set when the process shall end.
    """

    data: Input
    script: Path
    budget: str | None
    every: float
    lateness: float
    recover: Path | None
    keep: int | None = None
    workers: int | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def topic(self) -> Topic | None:
        """The topic, if it is one."""
        from wpinq.streaming.topic import from_url, kafka

        if not self.data.source.startswith(TOPIC):
            return None
        address, form = from_url(self.data.source), self.data.words.get("format")
        if form is None:
            return address
        return kafka(address.brokers, address.topic, form=form, arrived=address.arrived, config=dict(address.config))

    @property
    def digest(self) -> bytes:
        """A digest of the script."""
        return blake2b(self.script.read_bytes()).digest()

    def kinds(self) -> dict[str, str | None]:
        """The columns with their types; nothing but a header is read.

        Raises:
            SourceError: There is no such column, or a topic's columns are not named.
        """
        from wpinq.sources.form import chosen as picked
        from wpinq.streaming.topic import log_of

        columns, topic = parse_columns(self.data.columns), self.topic
        log = None if topic is None else log_of(topic.form)
        if topic is not None and log is None:
            if columns is None:
                raise SourceError("--columns: name those of the messages, as in --columns user,page:int.")
            types = columns if isinstance(columns, Mapping) else dict.fromkeys(columns)
            return {name: str(kind or "text") for name, kind in types.items()}
        if log is not None and topic is not None:
            arrived = {topic.arrived: "instant"} if topic.arrived else {}
            names = None if columns is None else [name for name in columns if name not in arrived]
            picks = picked(log.kinds, names, "a web log")
            return {**{column.name: column.kind.value for column in picks}, **arrived}
        schema = self.lines().schema if self.data.source == LINES else self.data.schema()
        return {column.name: column.kind.value for column in schema}

    def lines(self) -> TextReader:
        """What reads the lines of standard input."""
        from wpinq.sources import open_lines

        return open_lines("standard input", parse_columns(self.data.columns), **self.data.words)

    def rehearse(self, script: Dataflow) -> Rehearsal:
        """Run the script over a source in memory, so that its errors show before anything is charged."""
        views = self.empty(replace(self.data, rho=None, accounting=None), None)
        result = rehearsed(script, views)
        views.close()
        return result

    def empty(self, data: Input, budget: Fraction | None) -> Live:
        """A source in memory that is protected alike, with a budget; without any there is no limit."""
        from wpinq.protection import LIMITLESS
        from wpinq.streaming.source import live

        endless = budget is None and data.rho is None
        return live(
            self.kinds(), name=data.name or "stream", unit=data.unit, where=data.where, derive=data.derive,
            **({"rho": LIMITLESS} if endless else data.promise(budget)),
        )  # fmt: skip

    def taken(self) -> set[Path]:
        """Files that no answers may be written to: what is read, if it is files, and the ledger."""
        if self.data.source == LINES or self.topic is not None:
            return {self.data.ledger.resolve()} if self.data.ledger else set()
        return self.data.files()

    def epochs_held(self, windows: Sequence[int]) -> int:
        """For how many epochs what came is held.

        Args:
            windows: The lengths of the windows that will be asked for, in microseconds.

        Raises:
            PlanError: `--keep` is too few for them.
        """
        longest = max(windows, default=0) / 1e6 + self.lateness
        least = math.ceil(longest / self.every) + 1
        if self.keep is not None and self.keep < least:
            raise PlanError(
                f"--keep {self.keep}: windows, --lateness and --every need {least} epochs; give that or more, or leave "
                "it out."
            )
        return self.keep or least

    def open(self, keep: int) -> Live:
        """The live source.

        Args:
            keep: For how many epochs what came is held.

        Raises:
            PlanError: There is no budget, or no ledger to go on with.
            SourceError: The broker of a topic does not answer, or standard input cannot be read.
        """
        from wpinq.streaming.kafka import reach
        from wpinq.streaming.source import live

        name, ledger = self._home()
        if self.budget is None and self.data.rho is None:
            raise PlanError("--budget: a stream needs one each time, that of its ledger; it holds for all that comes.")
        amount = None if self.budget is None else positive(self.budget, "--budget")
        if self.recover is not None and ledger is None:
            raise PlanError("--recover: give --ledger PATH too; one in memory is lost with the process.")
        self._refuse_workers()
        if (topic := self.topic) is not None:
            reach(topic)
        if self.data.source == LINES:
            check_input()
        return live(
            self.kinds(), ledger=ledger, name=self.data.name or name,
            lateness=dt.timedelta(seconds=self.lateness), unit=self.data.unit, where=self.data.where,
            derive=self.data.derive, keep=keep,
            recover=self.recover if self.workers is None else ledger, **self.data.promise(amount),
        )  # fmt: skip

    @contextmanager
    def kept(self, keep: int, waits: Callable[[HeldError], None]) -> Iterator[Live]:
        """The live source, once this process keeps it.

        While another process keeps a stream of several, the workers of this one read for it.

        Args:
            keep: For how many epochs what came is held.
            waits: Is told that it waits, each time that it has looked.

        Raises:
            HeldError: It shall end, and another process keeps the stream still.
            PlanError, SourceError: See `open`.
        """
        from wpinq.streaming.shared.keeper import HeldError

        with ExitStack() as ending:
            workers: Workers | None = None
            while True:
                try:
                    views = ending.enter_context(closing(self.open(keep)))
                    break
                except HeldError as held:
                    if workers is None:
                        say(held.waits)
                        workers = ending.enter_context(closing(self._employed(held.home)))
                    waits(held)
                    if self.stop.wait(AGAIN):
                        raise
            if workers is None and self.workers is not None:
                assert views._parts is not None  # noqa: S101  it is in a database
                ending.enter_context(closing(self._employed(views._parts.home)))
            yield views

    def _employed(self, home: Home) -> Workers:
        """Processes of this host that read for the stream."""
        from wpinq.streaming.shared.crew import LONGEST, employed

        form = Words() if self.topic else self.data.words
        return employed(home, self.topic or self.data.source, form, self.workers or 0, min(self.every / 2, LONGEST))

    def _refuse_workers(self) -> None:
        """Refuse workers of a stream that several processes cannot read.

        Raises:
            PlanError: It is one.
        """
        if self.workers is None:
            return
        from wpinq.streaming.source import in_database

        if not in_database(self.data.ledger):
            raise PlanError("--workers: give --ledger the URL of a PostgreSQL database, in which the stream is kept.")
        if self.recover is not None:
            raise PlanError("--recover: leave it out beside --workers, with which the ledger's database keeps epochs.")
        if self.data.source == LINES:
            raise PlanError("--workers: leave it out, standard input is read by one process; give files or a topic.")

    def _home(self) -> tuple[str, Path | None]:
        """The name of the data set and the place of its ledger where they were not given."""
        from wpinq.protection import beside
        from wpinq.sources.files import Files
        from wpinq.sources.form import file_form

        if self.data.source == LINES:
            return "stdin", self.data.ledger
        if (topic := self.topic) is not None:
            return topic.topic, self.data.ledger
        result = Files.find(self.data.source, file_form(self.data.words.get("format")))
        return result.name, self.data.ledger or beside(result.path)

    def feed(self, views: Live) -> Callable[[], bool]:
        """What sends the records of one epoch, and tells whether more can come."""
        if self.data.source == LINES:
            blocks: Blocks = queue.Queue(WAITING)
            threading.Thread(target=_read, args=(sys.stdin.buffer, blocks), name="wpinq reads", daemon=True).start()
            return partial(_take, views, blocks, self, self.lines())
        return partial(_look, views, self.topic or self.data.source, self)


def _look(views: Live, source: Topic | str, stream: Stream) -> bool:
    """Wait, and see what has come."""
    interruptible()
    ends = stream.stop.wait(stream.every)
    form = Words() if stream.topic else stream.data.words
    views.follow(
        source, format=form.get("format"), separator=form.get("separator"), decimal=form.get("decimal"),
        encoding=form.get("encoding"), workers=None if stream.workers is None else 0,
    )  # fmt: skip
    return not ends


Blocks: TypeAlias = "queue.Queue[bytes | OSError | None]"
"""Whole lines, why no more can be read, and the end."""


def _take(views: Live, blocks: Blocks, stream: Stream, lines: TextReader) -> bool:
    """Send lines as they come, until it is time to close the epoch or there are no more."""
    end = time.monotonic() + stream.every
    while (left := end - time.monotonic()) > 0 and not stream.stop.is_set():
        interruptible()
        try:
            block = blocks.get(timeout=min(left, NOTICE))
        except queue.Empty:
            continue
        if block is None:
            return False
        if isinstance(block, OSError):
            raise SourceError(f"standard input cannot be read: {why(block)}")
        _send(views, block, lines)
    return not stream.stop.is_set()


def _read(lines: BinaryIO, blocks: Blocks) -> None:
    """Whole lines as they come, from a thread of its own, since a pipe may be silent for long."""
    rest = b""
    raw = getattr(lines, "raw", lines)  # a buffer is locked while it waits, and an interrupted process cannot end then
    try:
        while data := raw.read(BLOCK):
            whole = (rest + data).rfind(b"\n") + 1
            block, rest = (rest + data)[:whole], (rest + data)[whole:]
            if block:
                blocks.put(block)
    except OSError as error:
        blocks.put(error)
    if rest:
        blocks.put(rest + b"\n")
    blocks.put(None)


def _send(views: Live, block: bytes, lines: TextReader) -> None:
    views._received.offered += block.count(b"\n")
    for frame in lines.frames(lines.text(block), lines.schema):
        views.send(frame)
