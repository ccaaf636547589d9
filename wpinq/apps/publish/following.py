"""Following a stream: its records are sorted into periods, each of which is published when the clock has closed it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from wpinq.apps.publish.declared import Stream
from wpinq.apps.publish.intake import Intake
from wpinq.apps.publish.periods import Period
from wpinq.apps.publish.publisher import Outcome, Publisher
from wpinq.apps.publish.spool import Spool
from wpinq.apps.publish.stream import schema_of, spool_of, topic_of
from wpinq.core import Kind
from wpinq.errors import BudgetError, PlanError, SourceError, WpinqError

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

    Args:
        publisher: Publishes the periods.
        ticks: Seconds that no setting of the clock moves, by which it is compared; None where the clock is no real one.

    Raises:
        PlanError: The release file names no stream, or no column of times.
        BusyError: Another process follows it.
        SourceError: The stream is not there, or its columns are not those of the release file.
    """

    def __init__(self, publisher: Publisher, ticks: Callable[[], float] | None = None) -> None:
        file, home = publisher.file, publisher.home
        if file.stream is None and file.data.listen is None:
            raise PlanError("follow: the release file has no [stream]; publish its periods with run.")
        self._publisher, self._stream = publisher, file.stream or Stream()
        self.schema, at = schema_of(file.data, home), self._stream.at
        if at is not None and (at not in self.schema or self.schema[at].kind not in (Kind.TIME, Kind.INSTANT)):
            raise PlanError(f"stream.at: {at!r} is no column of times; there are {self.schema}.")
        place = spool_of(file.data, publisher.name, home)
        self.intake, late = publisher.opening.intake, self._stream.late == "next"
        if self.intake is not None:
            self.intake.hold(publisher.clock())
        self._spool: Spool | Intake = self.intake or Spool(
            place, self.schema, at, file.period, publisher.clock(), late=late
        )
        self._reader: Growing | Followed | None = None
        self._told: dict[str, str] = {}
        self._ticks, self._shown = ticks, False
        self._seen: tuple[dt.datetime, float] | None = None

    @property
    def clock(self) -> Callable[[], dt.datetime]:
        """The time."""
        return self._publisher.clock

    def step(self) -> Iterator[Outcome | WpinqError]:
        """Take in what came, close the periods that are over, and publish what is closed; say what is new.

        Raises:
            SourceError: The stream cannot be read, or what came not kept. The next step begins where this one did.
        """
        now = self._now()
        if isinstance(self._spool, Spool):
            try:
                self._reader = self._reader or self._opened(self._spool)
                self._spool.take(self._reader, now)
            except BaseException:
                self._left()  # it may have read what was not kept
                raise
        self._spool.close(now, dt.timedelta(seconds=self._stream.lateness))
        if not self._shown:  # of a process that was killed after it had published a period
            with self._publisher.register.locked():
                self._publisher.show()
            self._shown = True
        for period in self._waiting():
            try:
                with self._publisher.register.locked():
                    outcome = self._publisher.run(period)
            except WpinqError as error:
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
        self._spool.release()

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

    def _waiting(self) -> list[Period]:
        """Closed periods that are not published yet, the oldest first."""
        records = self._publisher.register.records()
        done = {name for name, record in records.items() if record.stage == "published"}
        return [one for one in self._spool.closed() if one.name not in done]

    def _forget(self) -> None:
        """Delete the records of published periods but the last few, where the release file says so.

        Of what was sent nothing is left: a database that was put back from a backup may have it again.
        """
        waiting = self._waiting()
        if not isinstance(self._spool, Spool):
            for period in self._spool.undestroyed():
                if period not in waiting:
                    self._spool.destroy(period)
            return
        if self._stream.keep is None:
            return
        done = [one for one in self._spool.closed() if one not in waiting]
        for period in done[: max(len(done) - self._stream.keep, 0)]:
            self._spool.forget(period)

    def _left(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def _opened(self, spool: Spool) -> Growing | Followed:
        data, positions = self._publisher.file.data, spool.positions
        topic = topic_of(data)
        if topic is not None:
            from wpinq.streaming.kafka import Followed

            return Followed(topic, self.schema, positions)
        from wpinq.streaming.file_tail import Growing

        source = str(self._publisher.home / data.source)
        return Growing(source, self.schema, [positions], history=True, **data.form("table", "tz"))
