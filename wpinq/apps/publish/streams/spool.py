"""A spool: the records of a stream, sorted into periods as they come, and kept until each is published.

Records of open periods are kept piece by piece, with how far the stream was read: what a killed process had added
beyond that is added anew. A period that is closed is a directory of Parquet files that stays as it is, so that
publishing it is what publishing any file is. Where pieces are kept is said by a store: a directory beside the ledger
(`spool_folder.py`), or the database of the ledger, for several hosts (`spool_database.py`).

Which periods there are, and when they close, follows from the clock and the release file, never from records: one
record with a wrong time neither opens a period nor closes one (privacy rule 13). A record of a period that is closed
already, or that lies before the first one or more than a period ahead, is left out, by its own time alone; with
`late = "next"` one of a closed period is counted in the first one that is open.
"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Container, Iterator, Mapping
from typing import Any, Protocol

import polars as pl

from wpinq.apps.publish.file.declared import Schedule
from wpinq.apps.publish.file.periods import Period, through
from wpinq.core import Kind, Schema, in_columns, polars_type
from wpinq.errors import PlanError, SourceError


class Reader(Protocol):
    """What reads on in a stream: `Growing`, `Followed` and `Taken`."""

    def take(self) -> Iterator[pl.DataFrame]:
        """Frames of the records that came since the last look."""

    def positions(self) -> dict[str, Any]:
        """How far it has read, as JSON can hold it."""


class Store(Protocol):
    """Where the pieces of periods are kept; what it raises is a `SourceError`, or of a database a `LedgerError`.

    With them it keeps facts: `positions`, up to which the stream was read, and the names of the `first` open period and
    of that which was first of all, `begin`.

    Attributes:
        label: What messages call it.
    """

    label: str

    @property
    def facts(self) -> Mapping[str, Any] | None:
        """The facts that were entered last; None where none were."""

    @property
    def full(self) -> bool:
        """Whether what was added should be entered, though more has come."""

    def begin(self) -> None:
        """Drop what was added and not entered."""

    def add(self, period: str, content: bytes) -> None:
        """Add a piece, a Parquet file, to an open period."""

    def enter(self, facts: Mapping[str, Any]) -> None:
        """Make what was added durable, and with it these facts."""

    def close(self, period: str, empty: bytes, facts: Mapping[str, Any]) -> None:
        """Close a period and enter facts; where it has no piece, it gets this one."""

    def closed(self) -> list[str]:
        """The closed periods that are here, but such as were `published`, in order."""

    def kept(self) -> list[str]:
        """All closed periods that are here, in order."""

    def files(self, period: str) -> None:
        """Have the files of a closed period be where the release reads them."""

    def published(self, periods: Container[str]) -> None:
        """Know that periods were published."""

    def forget(self, period: str) -> None:
        """Delete the records of a closed period."""

    def release(self) -> None:
        """Let another process write to it."""


class Spool:
    """See above.

    Args:
        store: Where pieces are kept; it is released where the spool cannot be opened.
        schema: The columns of records.
        at: The column of a record's own time; None for the time at which it is read.
        period: Which periods there are.
        now: The time, from which on there are periods where the release file names no first one.
        late: Whether a record of a closed period is counted in the first one that is open.

    Attributes:
        begins: The first period of all, where there was no spool before and the time alone chose it; else None.

    Raises:
        SourceError: It cannot be read or written, or was begun with periods of another kind.
    """

    def __init__(
        self, store: Store, schema: Schema, at: str | None, period: Schedule, now: dt.datetime, *, late: bool = False
    ) -> None:
        self._store, self._schema, self._at, self._period, self._late = store, schema, at, period, late
        self.begins: Period | None = None
        try:
            if store.facts is None:
                begin = Period.parse(str(period.first), period.every) if period.first else self._now(now)
                store.enter({"positions": {}, "first": begin.name, "begin": begin.name})
                self.begins = None if period.first else begin
            _ = self.first
        except PlanError:
            store.release()
            raise SourceError(f"{store.label}: was begun with periods of another kind; put period.every back, or give"
                              " the release another name.") from None  # fmt: skip
        except BaseException:
            store.release()
            raise

    @property
    def positions(self) -> dict[str, Any]:
        """How far the stream was read, of all that is kept."""
        return dict(self._facts["positions"])

    @property
    def first(self) -> Period:
        """The first period that is open."""
        return Period.parse(self._facts["first"], self._period.every)

    def take(self, reader: Reader, now: dt.datetime) -> None:
        """Keep the records that came, durably, and with them how far the stream was read.

        Raises:
            SourceError, LedgerError: The stream cannot be read, or the spool not written; nothing is lost.
        """
        self._store.begin()
        for frame in reader.take():
            for period, own in self._sorted(frame, now):
                self._store.add(period.name, self._piece(own))
            if self._store.full:
                self._enter(positions=reader.positions())
        self._enter(positions=reader.positions())

    def close(self, now: dt.datetime, lateness: dt.timedelta) -> list[Period]:
        """Close the periods that ended so long ago; what is read from then on is too late for them.

        Raises:
            SourceError, LedgerError: The spool cannot be written.
        """
        closed = []
        while self.first.ended(now - lateness, self._period.zone):
            period = self.first
            empty = in_columns([pl.Series(one.name, [], polars_type(one.kind)) for one in self._schema])
            self._store.close(period.name, self._piece(empty), {**self._facts, "first": period.next.name})
            closed.append(period)
        return closed

    def closed(self) -> list[Period]:
        """The closed periods whose records are here, but such as were said to be `published`, the oldest first."""
        return [Period.parse(name, self._period.every) for name in self._store.closed()]

    def files(self, period: Period) -> None:
        """Have the files of a closed period be where the release reads them.

        Raises:
            SourceError: They are damaged, or cannot be written.
        """
        self._store.files(period.name)

    def published(self, periods: Container[str], keep: int | None) -> None:
        """Know that these were published, and delete the records of all published ones but the last few.

        Args:
            periods: The names of all periods that were published.
            keep: Of how many the records stay; None for all.
        """
        self._store.published(periods)
        if keep is not None:
            done = [name for name in self._store.kept() if name in periods]
            for name in done[: max(len(done) - keep, 0)]:
                self._store.forget(name)

    def release(self) -> None:
        """Let another process write to it."""
        self._store.release()

    @property
    def _facts(self) -> Mapping[str, Any]:
        assert self._store.facts is not None  # noqa: S101  they are entered when it is opened
        return self._store.facts

    def _enter(self, **changed: Any) -> None:
        self._store.enter({**self._facts, **changed})

    def _now(self, now: dt.datetime) -> Period:
        """The period of a time, by the clocks of the zone."""
        from zoneinfo import ZoneInfo

        return Period.of(now.astimezone(ZoneInfo(self._period.zone)).replace(tzinfo=None), self._period.every)

    def _sorted(self, frame: pl.DataFrame, now: dt.datetime) -> Iterator[tuple[Period, pl.DataFrame]]:
        """The records of each open period, by the clocks of its zone."""
        latest = self._now(now)
        if self._at is None:
            yield max(latest, self.first), frame
            return
        time = pl.col(self._at)
        if self._schema[self._at].kind is Kind.INSTANT:
            time = time.dt.convert_time_zone(self._period.zone).dt.replace_time_zone(None)
        for period in through(self.first, max(latest, self.first).next):
            start = period.start
            if self._late and period == self.first:
                start = Period.parse(self._facts.get("begin", period.name), self._period.every).start
            own = frame.filter(time.is_between(start, period.end, closed="left"))
            if own.height:
                yield period, own

    def _piece(self, frame: pl.DataFrame) -> bytes:
        content = io.BytesIO()
        frame.select(self._schema.names).write_parquet(content)
        return content.getvalue()
