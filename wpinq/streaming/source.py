"""`wpinq.live`: a protected source that a caller sends to while its dataflow stays up in this process."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
import weakref
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wpinq.arguments import NOTHING, PATH, described, instance, takes
from wpinq.collection import Collection
from wpinq.errors import EngineError, PlanError, SourceError
from wpinq.exact import Amount, exact, positive
from wpinq.failures import redacted
from wpinq.functions.isolate import refuse_inside
from wpinq.ledger import Ledger, wording
from wpinq.measurements.timeline import Timeline
from wpinq.operators.contribution.before import before
from wpinq.operators.contribution.sample import bounded
from wpinq.operators.contribution.unit_key import origin
from wpinq.plan.dataset import DataSet
from wpinq.plan.node import Node, Source
from wpinq.plan.unit import Unit
from wpinq.records.schema import Kind
from wpinq.sources import Columns
from wpinq.sources.columns import named
from wpinq.sources.form import Words
from wpinq.sources.log import Epoch
from wpinq.state.memory import LIMIT
from wpinq.streaming.growing import Growing
from wpinq.streaming.journal import Journal, Positions, open_journal
from wpinq.streaming.kafka import Followed, Topic
from wpinq.streaming.received import Received
from wpinq.streaming.running import TORN, Running
from wpinq.streaming.sent import frames, stored_time

if TYPE_CHECKING:
    from wpinq.ledger.secret import Secret


@takes(ledger=PATH | NOTHING, recover=PATH | NOTHING, unit=instance("what wpinq.users(...) returns", Unit) | NOTHING)
def live(
    columns: Columns,
    budget: Amount,
    *,
    ledger: str | os.PathLike[str] | None = None,
    unit: Unit | None = None,
    delta: Amount | None = None,
    name: str = "live",
    lateness: dt.timedelta | None = None,
    keep: int | None = None,
    recover: str | os.PathLike[str] | None = None,
    secret: Secret | None = None,
    where: object = None,
    derive: Mapping[str, object] | None = None,
) -> Live:
    """Protect records that are still to come.

    Args:
        columns: Names of the columns, whose values may be of any kind, or a mapping from names to types.
        budget: Epsilon that may be spent in all, exact.
        ledger: Where the ledger is kept; in memory by default.
        unit: Whom the guarantee protects: by default one record, or people, with `users(...)`. A person may be in every
            window, so each window that is asked for is charged then; where `users(..., period="1h", at="time")`
            protects a person in one period, windows cost as one.
        delta: Delta that may be spent in all, by `release` and `select`; as that of `protect`.
        name: Names the data set in its ledger.
        lateness: Windows are closed by the clock, this long after they end, at every `advance()`; columns without a
            zone hold UTC then. By default they are closed by `advance(until=...)` alone.
        keep: For how many epochs what was sent is held. By default for ever, so that a plan may be measured at any
            time and counts all that was ever sent, and memory grows with that. With a number, memory is bounded by what
            is sent in twice as many epochs, and by the bins of what is measured: once the first epochs are let go, only
            plans that were measured before can be measured again; a window can be observed while the epoch that closed
            it is among the last ones, and counts what was sent in as many epochs up to that one; and a continual
            measurement can be observed at the last ones.
        recover: A directory in which each epoch is kept, encrypted, before anything is answered from it. A process
            that is killed loses the open epoch alone. The next one, with the same arguments, takes in the closed epochs
            when it first sends, follows or advances, so what it measures before that is what was measured at the very
            beginning: it costs nothing again and has the same answers. Followed files and topics are read on from where
            the last closed epoch ended. It needs a ledger. The directory is read through at a restart and grows by some
            bytes a record for ever, with `keep` too, which lets go of epochs in memory alone.
        secret: The secret of the data set; by default the one beside the ledger, or the environment's.
        where, derive: Steps on each record before a person's are bounded; see `protect`.

    All plans that are measured are steps of one dataflow. Should one step fail, the source ends for all of them, and
    every later question about an open epoch is refused: that one step failed would be seen. No record can make a step
    fail (`wpinq/docs/vulnerabilities.md` says why); what can is a lack of memory, a table that is joined and cannot be
    read any more, and an error of this library.

    Returns:
        The source, which is also the protected collection of all that was sent.

    Raises:
        SourceError: The columns are not declared well, or the directory belongs to another data set, was put back from
            a copy, or is in use.
        PlanError: `keep` is no whole number above zero, or `lateness` no timedelta from zero on, or there is a
            directory and no ledger.
        ExactnessError: The budget is not a finite number above zero.
        LedgerError: The ledger cannot be trusted or written, or holds another unit or budget.

    >>> from wpinq import live
    >>> views = live({"user": "text", "page": "text"}, budget=1)
    >>> cdf = views.map(lambda page: page).shave().map(lambda page, index: index).measure(epsilon=1)
    >>> views.send([("ann", "home"), ("bob", "home")])
    >>> views.advance()
    1
    >>> type(cdf.observe(1))
    <class 'int'>
    >>> views.close()
    """
    refuse_inside("live")
    if keep is not None and (not isinstance(keep, int) or isinstance(keep, bool) or keep < 1):
        raise PlanError(f"live(keep={described(keep)}): give a number of epochs above zero, or nothing to keep all.")
    if lateness is not None and not (isinstance(lateness, dt.timedelta) and lateness >= dt.timedelta(0)):
        raise PlanError(f"live(lateness={described(lateness)}): give a timedelta, not below zero, or nothing.")
    if recover is not None and ledger is None:
        raise PlanError("live(recover=...): give ledger=PATH too; one in memory is lost with the process.")
    name = wording(name, "live(name=...)") or "live"
    log = Timeline(named(columns, Kind.ANY, None, "live"), name, keep)
    unit = unit or Unit()
    place = None if ledger is None else Path(ledger)
    amount, extra = positive(budget, "live(budget=...)"), None if delta is None else exact(delta, "live(delta=...)")
    first = before(log.schema, unit, where, derive, "live")  # mistakes show before a ledger is made
    book = Ledger.open(place, name=name, unit=unit.text, budget=amount, delta=extra, secret=secret)
    LIMIT.beside(place)
    journal = None
    if recover is not None and place is not None:
        derived = partial(book.secret.derive, "journal", name, unit.text, repr(log.schema))
        journal = open_journal(recover, place.with_name(place.name + ".live"), derived)
    version = os.urandom(16).hex() if journal is None else journal.version
    data = DataSet(log, book, name, f"live {version}", unit, declared=False)
    return Live(first.over(Source(data)), log, lateness, journal)


class Live(Collection):
    """A live source: a protected collection that can be sent to.

    Safe under threads. Epochs are closed by the caller alone, never by the number or the contents of records.
    """

    __slots__ = (
        "__weakref__", "_data", "_end", "_followed", "_journal", "_lateness", "_lock", "_log", "_positions",
        "_received", "_resumed", "_resuming", "_running",
    )  # fmt: skip

    def __init__(self, records: Node, log: Timeline, lateness: dt.timedelta | None, journal: Journal | None) -> None:
        super().__init__(bounded(records))
        self._data, self._log, self._lateness = origin(records).data, log, lateness
        self._followed: dict[str, Growing | Followed] = {}
        self._received = Received()
        self._journal, self._resumed, self._resuming = journal, journal is None, False
        self._positions: Positions = {}
        self._lock, self._running = threading.RLock(), Running(self._data, log)
        self._end = weakref.finalize(self, _closed, self._running, journal, self._followed)

    @property
    def epoch(self) -> int:
        """The number of the last closed epoch; 0 before the first."""
        return self._log.closed

    def send(self, records: Any) -> None:
        """Add records to the epoch that is open.

        Args:
            records: Tuples, or anything with the Arrow C stream protocol that has the columns by name. A value that is
                not of its column's type is null; what is no record is dropped, uncounted.

        Raises:
            SourceError: It holds no such records; none was taken.
            EngineError: The dataflow has failed or was closed.
        """
        refuse_inside("send")
        read = redacted("send", lambda: frames(records, self._log.schema))
        with self._lock:
            self._check()
            for frame in read:
                self._received.take(frame)
                self._log.send(frame)

    @takes(source=PATH | instance("a topic", Topic))
    def follow(
        self, source: str | os.PathLike[str] | Topic, *, format: str | None = None, separator: str | None = None,  # noqa: A002
        decimal: str | None = None, encoding: str | None = None,
    ) -> None:  # fmt: skip
        """Add what has come to files, or to a topic of Kafka, since they were last followed.

        Args:
            source: A path or pattern of `.log` (of web servers), `.csv`, `.tsv`, `.txt` or `.jsonl` files, of which
                whole lines are read; one that was cut is read again. Or a topic that `wpinq.kafka(...)` names.
            format, separator, decimal, encoding: The form of files, as `protect` explains it.

        Raises:
            PlanError: It is neither a path nor a topic.
            SourceError: There is no such file or topic, or its columns are not those of the source.
            EngineError: The dataflow has failed or was closed.
        """
        refuse_inside("follow")
        with self._lock:
            self._check()
            form = Words(format=format, separator=separator, decimal=decimal, encoding=encoding)
            following = self._following(source, form)
            before = following.offered
            for frame in following.take():
                self._received.take(frame)
                self._log.send(frame)
            self._received.offered += following.offered - before

    def advance(self, until: Any = None) -> int:
        """Close the open epoch, and return when every measurement has taken it in.

        Args:
            until: A time, as a window's column holds times: windows that end by then count nothing that is sent later.

        Returns:
            The number of the epoch, from 1.

        Raises:
            PlanError: `until` is not a time.
            SourceError: The directory of `live(recover=...)` cannot be written; nothing was closed.
            EngineError: A step of the dataflow failed, or an interrupt came before; no epoch can be closed any more.
                What `live(recover=...)` keeps is whole: the next source takes in the epochs that were closed.
            LedgerError: The histogram of a measurement could not be sealed.
        """
        refuse_inside("advance")
        with self._lock:
            self._check()
            epoch = self._log.ready(self._clock() if until is None else stored_time(until))
            if self._journal is not None:
                self._positions |= {name: item.positions() for name, item in self._followed.items()}
                self._running.tear()  # an interrupt leaves an epoch that is written and not closed
                try:
                    self._journal.append(epoch, self._positions)
                except SourceError:
                    self._running.mend()
                    raise
            self._close(epoch)
            return self._log.closed

    def resume(self) -> int:
        """Take in the epochs that are kept in the directory of `live(recover=...)`, if that was not done yet.

        It is done by itself when something is first sent, followed or advanced.

        Returns:
            The number of the last closed epoch; 0 where there is none.

        Raises:
            SourceError: What is kept is damaged; another source can begin with it again.
            EngineError, LedgerError: See `advance`.
        """
        refuse_inside("resume")
        with self._lock:
            self._check()
            return self._log.closed

    def close(self) -> None:
        """End the dataflow. What was measured can still be observed; nothing more can be sent."""
        self._end()

    def _check(self) -> None:
        if not self._end.alive:
            raise EngineError("the live source was closed; make another one with wpinq.live(...).")
        self._running.check()
        if self._journal is not None and not self._resumed:
            if self._resuming:
                raise EngineError(TORN)
            self._resuming = True
            for epoch, positions in self._journal.read():
                self._positions = positions
                self._close(epoch)
            self._resumed, self._resuming = True, False

    def _following(self, source: str | os.PathLike[str] | Topic, form: Words) -> Growing | Followed:
        topic = source if isinstance(source, Topic) else None
        name = f"kafka {topic.topic}" if topic else os.fspath(cast("str", source))
        if name not in self._followed:
            before, schema = self._positions.get(name), self._log.schema
            self._followed[name] = Followed(topic, schema, before) if topic else Growing(name, schema, before, **form)
        return self._followed[name]

    def _close(self, epoch: Epoch) -> None:
        self._running.take(partial(self._log.close, epoch))
        self._log.forget()

    def _clock(self) -> int | None:
        late = self._lateness
        return None if late is None else time.time_ns() // 1000 - late // dt.timedelta(microseconds=1)


def _closed(running: Running, journal: Journal | None, followed: Mapping[str, Growing | Followed]) -> None:
    running.close()
    for item in followed.values():
        item.close()
    if journal is not None:
        journal.close()
