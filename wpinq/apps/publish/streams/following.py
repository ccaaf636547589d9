"""Following a stream: its records are sorted into periods, each of which is published when the clock has closed it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from wpinq.apps.publish.file.declared import Stream
from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.intake import Intake
from wpinq.apps.publish.publisher import Outcome, Publisher
from wpinq.apps.publish.stream import schema_of, spool_of, topic_of
from wpinq.apps.publish.streams.hosts import Host, refuse_shared
from wpinq.apps.publish.streams.spool import Spool
from wpinq.apps.publish.streams.spool_database import Taken
from wpinq.apps.publish.streams.spool_folder import Folder
from wpinq.core import Kind
from wpinq.errors import BudgetError, EngineError, PlanError, SourceError, WpinqError
from wpinq.streaming.shared.keeper import HeldError

if TYPE_CHECKING:
    from wpinq.streaming.file_tail import Growing
    from wpinq.streaming.kafka import Followed


JUMP = 3600.0
"""Seconds by which the clock may be set while a process follows."""


def ticks() -> float:
    """Seconds that no clock's setting moves, those in which the machine slept included where the system counts them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Follower:
    """Follows the stream of a release: one process at a time. Killed at any moment, another one goes on from there.

    With workers, processes of several hosts wait for their turn, and read meanwhile (`hosts.py`).

    Args:
        publisher: Publishes the periods.
        ticks: Seconds that no setting of the clock moves, by which it is compared; None where the clock is no real one.
        workers: How many processes of this host read for all hosts that follow; None where this process reads alone.

    Raises:
        PlanError: The release file names no stream, or no column of times; or several processes follow it, or cannot.
        BusyError: Another process follows it.
        SourceError: The stream is not there, or its columns are not those of the release file.
        LedgerError: The ledger, which keeps the stream of several hosts, cannot be used.
    """

    def __init__(
        self, publisher: Publisher, ticks: Callable[[], float] | None = None, workers: int | None = None
    ) -> None:
        file, home = publisher.file, publisher.home
        if file.stream is None and file.data.listen is None:
            raise PlanError("follow: the release file has no [stream]; publish its periods with run.")
        self._publisher, self._stream = publisher, file.stream or Stream()
        self.schema, at = schema_of(file.data, home), self._stream.at
        if at is not None and (at not in self.schema or self.schema[at].kind not in (Kind.TIME, Kind.INSTANT)):
            raise PlanError(f"stream.at: {at!r} is no column of times; there are {self.schema}.")
        self.intake, self._late = publisher.opening.intake, self._stream.late == "next"
        self._host = None if workers is None else Host(publisher, self.schema, workers)
        self._spool: Spool | Intake | None = self.intake
        if self.intake is not None:
            self.intake.hold(publisher.clock())
        elif self._host is None:
            refuse_shared(publisher, self.schema)
            store = Folder(spool_of(file.data, publisher.name, home))
            self._spool = Spool(store, self.schema, at, file.period, publisher.clock(), late=self._late)
        self._reader: Growing | Followed | Taken | None = None
        self._told: dict[str, str] = {}
        self._ticks, self._shown = ticks, False
        self._seen: tuple[dt.datetime, float] | None = None

    @property
    def waits(self) -> str | None:
        """What is to be said where another process keeps the stream, for which the workers of this one read."""
        held = None if self._host is None else self._host.waits
        return None if held is None else held.waits

    @property
    def begins(self) -> Period | None:
        """The first period of all, where this process began the stream and the release file does not name it."""
        return None if self._spool is None else self._spool.begins

    @property
    def host(self) -> Host | None:
        """What this host does for a release that several follow."""
        return self._host

    @property
    def clock(self) -> Callable[[], dt.datetime]:
        """The time."""
        return self._publisher.clock

    def step(self) -> Iterator[Outcome | WpinqError]:
        """Take in what came, close the periods that are over, and publish what is closed; say what is new.

        While another process keeps the stream nothing is done.

        Raises:
            SourceError, LedgerError: The stream cannot be read, or what came not kept. The next step begins where this
                one did.
            EngineError: Another process keeps the stream now; the next step waits for it.
        """
        try:
            now = self._now()
        except SourceError:
            if self._host is not None:  # one whose clock is right may keep the stream
                self._left()
            raise
        try:
            self._advance(now)
        except BaseException:
            self._left()  # it may have read what was not kept
            raise
        if self._spool is None:
            return
        if not self._shown:  # of a process that was killed after it had published a period
            with self._publisher.register.locked():
                self._publisher.show()
            self._shown = True
        for period in self._waiting():
            try:
                if isinstance(self._spool, Spool):
                    self._spool.files(period)
                with self._publisher.register.locked():
                    outcome = self._publisher.run(period)
            except WpinqError as error:
                if self._host is not None and isinstance(error, EngineError):  # it keeps the stream no more
                    self._left()
                    raise
                if self._told.get(period.name) != str(error):
                    self._told[period.name] = str(error)
                    yield error
                if isinstance(error, BudgetError):
                    return
            else:
                yield outcome
        self._forget()

    def close(self) -> None:
        """Leave the stream."""
        self._left()
        if self._spool is not None:
            self._spool.release()
        if self._host is not None:
            self._host.close()

    def _advance(self, now: dt.datetime) -> None:
        """Take in what came, and close the periods that are over."""
        until: dt.datetime | None = now
        if self._host is not None and self._spool is None:
            try:
                self._spool, self._reader = self._host.keep(self._stream.at, now, late=self._late)
            except HeldError:
                return
            now = self._now()  # it may have taken its time
        if isinstance(self._spool, Spool):
            self._reader = self._reader or self._opened(self._spool)
            self._spool.take(self._reader, now)
            until = now if self._host is None else self._host.until(now)
        if self._spool is not None and until is not None:
            self._spool.close(until, dt.timedelta(seconds=self._stream.lateness))

    def _now(self) -> dt.datetime:
        """The time, which closes periods and so charges for them: not one that has jumped since the last look."""
        now = self._publisher.clock()
        if self._ticks is None:
            return now
        ticked = self._ticks()
        before, last = self._seen or (now, ticked)
        if abs((now - before).total_seconds() - (ticked - last)) > JUMP:
            raise SourceError(
                f"the clock went from {before:%Y-%m-%d %H:%M} to {now:%Y-%m-%d %H:%M} within {ticked - last:.0f} "
                "seconds; nothing is published. Set it, or if it is right now, start again."
            )
        self._seen = now, ticked
        return now

    def _published(self) -> set[str]:
        """The names of the periods that are published."""
        records = self._publisher.register.records()
        return {name for name, record in records.items() if record.stage == "published"}

    def _waiting(self) -> list[Period]:
        """Closed periods that are not published yet, the oldest first."""
        done, closed = self._published(), [] if self._spool is None else self._spool.closed()
        return [one for one in closed if one.name not in done]

    def _forget(self) -> None:
        """Delete the records of published periods but the last few, where the release file says so.

        Of what was sent nothing is left: a database that was put back from a backup may have it again.
        """
        done = self._published()
        if isinstance(self._spool, Spool):
            self._spool.published(done, self._stream.keep)
        elif self._spool is not None:
            for period in self._spool.undestroyed():
                if period.name in done:
                    self._spool.destroy(period)

    def _left(self) -> None:
        """Read no more; of a stream that several hosts follow, let another one keep it."""
        if self._reader is not None:
            self._reader.close()
        self._reader = None
        if self._host is not None and isinstance(self._spool, Spool):
            self._spool.release()
            self._spool = None
            self._host.left()

    def _opened(self, spool: Spool) -> Growing | Followed:
        data, positions = self._publisher.file.data, spool.positions
        topic = topic_of(data)
        if topic is not None:
            from wpinq.streaming.kafka import Followed

            return Followed(topic, self.schema, positions)
        from wpinq.streaming.file_tail import Growing

        source = str(self._publisher.home / data.source)
        return Growing(source, self.schema, [positions], history=True, **data.form("table", "tz"))
