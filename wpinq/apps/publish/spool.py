"""A spool: the records of a stream, sorted into periods as they come, and kept until each is published.

Its directory lies beside the ledger, for its owner alone. Records of open periods are written piece by piece, and then
how far the stream was read: what a killed process had written beyond that is written anew. A period that is closed is a
directory of Parquet files that stays as it is, so that publishing it is what publishing any file is.

Which periods there are, and when they close, follows from the clock and the release file, never from records: one
record with a wrong time neither opens a period nor closes one (privacy rule 13). A record of a period that is closed
already, or that lies before the first one or more than a period ahead, is left out, by its own time alone; with
`late = "next"` one of a closed period is counted in the first one that is open.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from wpinq.apps.publish.declared import Schedule
from wpinq.apps.publish.periods import Period, through
from wpinq.apps.publish.state import BusyError
from wpinq.core import Kind, Schema, in_columns, polars_type
from wpinq.errors import PlanError, SourceError
from wpinq.storage import settle, write


class Reader(Protocol):
    """What reads on in a stream: `Growing` and `Followed`."""

    def take(self) -> Iterator[pl.DataFrame]:
        """Frames of the records that came since the last look."""

    def positions(self) -> dict[str, Any]:
        """How far it has read, as JSON can hold it."""


class Spool:
    """See above.

    Args:
        place: Its directory.
        schema: The columns of records.
        at: The column of a record's own time; None for the time at which it is read.
        period: Which periods there are.
        now: The time, from which on there are periods where the release file names no first one.
        late: Whether a record of a closed period is counted in the first one that is open.

    Raises:
        BusyError: Another process writes to it.
        SourceError: It cannot be written.
    """

    def __init__(
        self, place: Path, schema: Schema, at: str | None, period: Schedule, now: dt.datetime, *, late: bool = False
    ) -> None:
        self._place, self._schema, self._at, self._period, self._late = place, schema, at, period, late
        self._open, self._state = place / "open", dict[str, Any]()
        try:
            for each in (place, self._open):
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(place / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SourceError(f"{place}: cannot be written: {error.strerror}.") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._state = self._read(now)
        except BlockingIOError:
            self.release()
            raise BusyError(f"{place}: another process follows the stream; try again when it has ended.") from None
        except (OSError, ValueError, KeyError, PlanError):
            self.release()
            raise SourceError(f"{place}: state.json cannot be read or written, or is damaged.") from None
        except BaseException:
            self.release()
            raise

    @property
    def positions(self) -> dict[str, Any]:
        """How far the stream was read, of all that is kept."""
        return dict(self._state["positions"])

    @property
    def first(self) -> Period:
        """The first period that is open."""
        return Period.parse(self._state["first"], self._period.every)

    def take(self, reader: Reader, now: dt.datetime) -> None:
        """Write the records that came, durably, and then how far the stream was read.

        Raises:
            SourceError: The stream cannot be read, or the spool not written; nothing is lost.
        """
        number = self._state["pieces"] + 1
        try:
            for path in self._open.glob("*/*.parquet"):  # of a process that was killed before it entered them
                if int(path.name.partition("-")[0]) >= number:
                    path.unlink()
            places = set()
            for piece, frame in enumerate(reader.take()):
                for period, own in self._sorted(frame, now):
                    places.add(self._written(period, f"{number}-{piece}", own))
            for place in places:
                settle(place)
            self._enter(pieces=number, positions=reader.positions())
        except OSError as error:
            raise SourceError(f"{self._place}: cannot be written: {error.strerror}.") from None

    def close(self, now: dt.datetime, lateness: dt.timedelta) -> list[Period]:
        """Close the periods that ended so long ago; what is read from then on is too late for them.

        Raises:
            SourceError: The spool cannot be written.
        """
        closed = []
        try:
            while self.first.ended(now - lateness, self._period.zone):
                period = self.first
                if not self.place(period).exists():
                    settle(self._written(period, "0-0", in_columns(
                        [pl.Series(one.name, [], polars_type(one.kind)) for one in self._schema]
                    )))  # fmt: skip
                    settle(self._open)
                    (self._open / period.name).rename(self.place(period))
                    settle(self._place)
                shutil.rmtree(self._open / period.name, ignore_errors=True)  # what came after a kill: it is too late
                self._enter(first=period.next.name)
                closed.append(period)
        except OSError as error:
            raise SourceError(f"{self._place}: cannot be written: {error.strerror}.") from None
        return closed

    def closed(self) -> list[Period]:
        """The closed periods whose records are here, the oldest first."""
        names = [one.name for one in self._place.iterdir() if one.is_dir() and one != self._open]
        return sorted(Period.parse(name, self._period.every) for name in names)

    def place(self, period: Period) -> Path:
        """Where the files of a closed period are."""
        return self._place / period.name

    def forget(self, period: Period) -> None:
        """Delete the records of a closed period."""
        shutil.rmtree(self.place(period), ignore_errors=True)

    def release(self) -> None:
        """Let another process write to it."""
        os.close(self._lock)

    def _sorted(self, frame: pl.DataFrame, now: dt.datetime) -> Iterator[tuple[Period, pl.DataFrame]]:
        """The records of each open period, by the clocks of its zone."""
        from zoneinfo import ZoneInfo

        here = now.astimezone(ZoneInfo(self._period.zone)).replace(tzinfo=None)
        latest = Period.of(here, self._period.every)
        if self._at is None:
            yield max(latest, self.first), frame
            return
        time = pl.col(self._at)
        if self._schema[self._at].kind is Kind.INSTANT:
            time = time.dt.convert_time_zone(self._period.zone).dt.replace_time_zone(None)
        for period in through(self.first, max(latest, self.first).next):
            start = period.start
            if self._late and period == self.first:
                start = Period.parse(self._state.get("begin", period.name), self._period.every).start
            own = frame.filter(time.is_between(start, period.end, closed="left"))
            if own.height:
                yield period, own

    def _written(self, period: Period, name: str, frame: pl.DataFrame) -> Path:
        """Write a piece of an open period; its directory, whose names are not durable yet."""
        place, content = self._open / period.name, io.BytesIO()
        place.mkdir(mode=0o700, exist_ok=True)
        frame.select(self._schema.names).write_parquet(content)
        with (place / f"{name}.parquet").open("wb") as file:
            file.write(content.getvalue())
            file.flush()
            os.fsync(file.fileno())
        return place

    def _read(self, now: dt.datetime) -> dict[str, Any]:
        from zoneinfo import ZoneInfo

        path, first = self._place / "state.json", self._period.first
        if not path.exists():
            here = now.astimezone(ZoneInfo(self._period.zone)).replace(tzinfo=None)
            begin = Period.parse(str(first), self._period.every) if first else Period.of(here, self._period.every)
            self._state = {"positions": {}, "pieces": 0, "first": begin.name, "begin": begin.name}
            self._enter()
        state: dict[str, Any] = json.loads(path.read_text())
        Period.parse(state["first"], self._period.every)
        return state

    def _enter(self, **changed: Any) -> None:
        self._state |= changed
        write(self._place / "state.json", json.dumps(self._state).encode())
