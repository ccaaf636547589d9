"""A live source as a collection: what is sent or followed, epoch by epoch, and what is kept for a restart."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from wpinq.arguments import MAPPING, NAMES, NOTHING, PATH, WHOLE, instance, takes
from wpinq.collection import Collection
from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.operators.contribution.sample import bounded
from wpinq.core.operators.contribution.unit_key import origin
from wpinq.core.plan.node import Node
from wpinq.core.records.log import Epoch
from wpinq.core.runs.compaction import covers, merge, mergeable
from wpinq.core.runs.timeline import Timeline
from wpinq.errors import EngineError, PlanError, SourceError, redacted
from wpinq.sources.form import Words
from wpinq.streaming.epoch_store import EpochStore
from wpinq.streaming.file_tail import Growing
from wpinq.streaming.frames import Positions
from wpinq.streaming.ingest_stats import Received
from wpinq.streaming.kafka import Followed
from wpinq.streaming.running import TORN, Running
from wpinq.streaming.sent import frames, stored_time, takes_back
from wpinq.streaming.topic import Topic

if TYPE_CHECKING:
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.streaming.answers import Answers
    from wpinq.streaming.shared.crew import Workers
    from wpinq.streaming.shared.home import Home
    from wpinq.streaming.shared.parts import Parts

PARTS = "parts"
"""The name of what workers have read, among positions."""
KAFKA = "kafka "  # what names of topics begin with


class Live(Collection):
    """A live source: a protected collection that can be sent to.

    Safe under threads. Epochs are closed by the caller alone, never by the number or the contents of records.
    """

    __slots__ = (
        "__weakref__",
        "_data",
        "_end",
        "_followed",
        "_journal",
        "_lateness",
        "_lock",
        "_log",
        "_looked",
        "_positions",
        "_received",
        "_resumed",
        "_resuming",
        "_running",
        "_workers",
    )  # fmt: skip

    def __init__(self, records: Node, log: Timeline, lateness: dt.timedelta | None, journal: EpochStore | None) -> None:
        super().__init__(bounded(records))
        self._data, self._log, self._lateness = origin(records).data, log, lateness
        self._followed: dict[str, Growing | Followed] = {}
        self._received = Received()
        self._looked: int | None = None
        self._journal, self._resumed, self._resuming = journal, journal is None, False
        self._positions: Positions = {}
        self._lock, self._running = threading.RLock(), Running(self._data, log)
        self._workers: dict[str, Workers] = {}
        self._end = weakref.finalize(self, _closed, self._running, journal, self._followed, self._workers)

    @property
    def epoch(self) -> int:
        """The number of the last closed epoch; 0 before the first."""
        return self._log.closed

    @property
    def _parts(self) -> Parts | None:
        """What workers have read, where several processes read the source."""
        return None if self._journal is None else self._journal.parts

    def send(self, records: Any, weight: int = 1) -> None:
        """Add records to the epoch that is open, or take back what was sent, of a source with `retractions=True`.

        Each is one record; send it as often as it counts. One that is taken back is named by all of its columns, and
        weighs one less from this epoch on. Taken back more often than it came it weighs less than nothing; `wpinq.live`
        says what follows.

        Args:
            records: Tuples, or anything with the Arrow C stream protocol that has the columns by name. A value that is
                not of its column's type is null; what is no record is dropped, uncounted.
            weight: 1, or -1 to take records back.

        Raises:
            PlanError: The weight is another number, or -1 where records are not taken back; none was taken.
            SourceError: It holds no such records; none was taken.
            EngineError: The dataflow has failed or was closed.

        >>> from wpinq import live
        >>> likes = live({"post": "text"}, budget=10**6, retractions=True)
        >>> likes.send([("a",), ("a",), ("b",)])
        >>> likes.advance()
        1
        >>> likes.send([("a",)], weight=-1)
        >>> now = likes.measure(epsilon=10**5)
        >>> likes.advance(), now.observe("a"), now.observe("b")
        (2, 1, 1)
        >>> likes.close()
        """
        refuse_inside("send")
        back = takes_back(weight, declared=self._data.retractions)
        read = redacted("send", lambda: frames(records, self._log.schema))
        with self._lock:
            self._check()
            for frame in read:
                self._received.take(frame)
                self._log.send(frame, back=back)

    @takes(source=PATH | instance("a topic", Topic), workers=WHOLE | NOTHING)
    def follow(
        self, source: str | os.PathLike[str] | Topic, *, format: str | None = None, separator: str | None = None,  # noqa: A002
        decimal: str | None = None, encoding: str | None = None, workers: int | None = None,
    ) -> None:  # fmt: skip
        """Add what has come to files, or to a topic of Kafka, since they were last followed.

        Args:
            source: A path or pattern of `.log` (of web servers), `.csv`, `.tsv`, `.txt` or `.jsonl` files, of which
                whole lines are read; one that was cut is read again. Or a topic that `wpinq.kafka(...)` names.
            format, separator, decimal, encoding: The form of files, as `protect` explains it.
            workers: Of a stream that is kept in the database of its ledger: how many processes of this host read for it
                from the first call on, 1 by default; 0 leaves it to those of others.

        Raises:
            PlanError: It is neither a path nor a topic, or there are workers and the stream is not in a database.
            SourceError: There is no such file or topic, or its columns are not those of the source.
            EngineError: The dataflow has failed or was closed.
        """
        refuse_inside("follow")
        with self._lock:
            self._check()
            form = Words(format=format, separator=separator, decimal=decimal, encoding=encoding)
            if self._parts is not None:
                self._employ(self._parts.home, source, form, 1 if workers is None else workers)
                self._take(self._parts)
                return
            if workers is not None:
                raise PlanError("follow(workers=...): give ledger= and recover= the URL of one database.")
            following = self._following(source, form)
            self._looked = self._looked or time.time_ns()  # what is written from now on may not be read
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
                if self._parts is not None:
                    self._positions[PARTS] = self._parts.positions()
                self._running.tear()  # an interrupt leaves an epoch that is written and not closed
                try:
                    self._journal.append(epoch, self._positions)
                except SourceError:
                    self._running.mend()
                    raise
            self._close(epoch)
            self._merge()
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

    @takes(measurements=MAPPING, to=NAMES)
    def answers(
        self, measurements: Mapping[str, Measurement], bins: Any, to: str | Sequence[str] = ()
    ) -> Answers:  # fmt: skip
        """The answers to some measurements, epoch by epoch, for a loop and for sinks.

        A loop over it gives the answers of the epochs that closed since the last loop, each a mapping with
        `measurement`, `bin`, `value`, `half_width` (of the 90% interval, of noise alone), `epoch`, `window_start`,
        `window_end`, and whom it protects at which cost: continual measurements at each epoch, windows when they have
        closed, others once. Sinks get the same. They fail and work again as `wpinq/docs/live.md` says; a warning
        tells of both. With `live(recover=...)` what they had not got before a restart is handed over at once.

        Args:
            measurements: Measurements of this source, by the names that answers have; made before this is called.
            bins: Which bins are answered, of all measurements or, in a mapping, of each by its name. A continual
                selection answers those that it has published.
            to: Sinks: "json:FILE", "parquet:DIRECTORY", "http://...", "postgresql://...?table=NAME" or "kafka://...".

        Raises:
            PlanError: One is no measurement of this source, or bins are named of one that is not there.
            BinError: A collection could never hold such a bin.
            SourceError: There is no such sink; or see `resume`.
            EngineError, LedgerError: See `advance`.

        >>> from wpinq import live
        >>> views = live({"page": "text"}, budget=10**6)
        >>> total = views.measure(epsilon=10**5, continual=True)
        >>> with views.answers({"total": total}, bins=["home"]) as answers:
        ...     for epoch in (1, 2):
        ...         views.send([("home",)])
        ...         _ = views.advance()
        ...         for answer in answers:
        ...             print(answer["epoch"], answer["measurement"], answer["bin"], answer["value"])
        1 total home 1
        2 total home 2
        >>> views.close()
        """
        from wpinq.streaming.answers import Answers

        refuse_inside("answers")
        return Answers.asked(self, measurements, bins, to)

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
            if self._parts is not None:
                self._parts.resume(self._positions.get(PARTS, {}))
            self._resumed, self._resuming = True, False

    def _following(self, source: str | os.PathLike[str] | Topic, form: Words) -> Growing | Followed:
        topic = source if isinstance(source, Topic) else None
        name = f"{KAFKA}{topic.topic}" if topic else os.fspath(cast("str", source))
        if name not in self._followed:
            schema, others = self._log.schema, self._followed.values()
            if topic:
                self._followed[name] = Followed(topic, schema, self._positions.get(name))
            else:
                files = [told for other, told in self._positions.items() if not other.startswith(KAFKA)]
                self._followed[name] = Growing(name, schema, files, others, **form)
        return self._followed[name]

    def _employ(self, home: Home, source: str | os.PathLike[str] | Topic, form: Words, number: int) -> None:
        """Let processes of this host read a source for the stream, where they do not yet."""
        from wpinq.streaming.shared.crew import employed

        name = str(source)
        if number and name not in self._workers:
            self._workers[name] = employed(home, source, form, number)

    def _take(self, parts: Parts) -> None:
        """Add what workers have read."""
        for part in parts.take():
            self._received.add(**part.received.facts)
            self._log.add(part.frame)

    def _close(self, epoch: Epoch) -> None:
        self._looked = None
        self._running.take(partial(self._log.close, epoch), epoch.merged)
        self._log.forget()

    def _merge(self) -> None:
        """Merge kept epochs of which nothing is held any more, where it is time.

        As many as are held stay by themselves beside those, so that a restart may keep twice as many.
        """
        plans, log, journal = self._running.continual, self._log, self._journal
        if journal is None or log.keep is None:
            return
        if log.merged is not None:  # of what was merged there is no more to keep for others
            plans = [root for root in plans if covers(log.merged, root)]
        last = log.forgotten - 2 * log.keep
        if not journal.long(last) or not mergeable(plans):
            return
        self._running.tear()  # an interrupt leaves it open which file is the journal
        journal.merge(last, lambda epochs: merge(plans, log.schema, epochs, last))
        self._running.mend()
        log.merged = journal.merged

    def _clock(self) -> int | None:
        """The time by which windows close: the lateness before the first look at what is followed, or before now."""
        looked: int | None = (self._looked or time.time_ns()) // 1000
        if self._parts is not None:
            looked = self._parts.looked
        late = self._lateness
        return None if late is None or looked is None else looked - late // dt.timedelta(microseconds=1)


def _closed(
    running: Running, journal: EpochStore | None, followed: Mapping[str, Growing | Followed],
    workers: Mapping[str, Workers],
) -> None:  # fmt: skip
    running.close()
    for some in workers.values():
        some.close()
    for item in followed.values():
        item.close()
    if journal is not None:
        journal.close()
