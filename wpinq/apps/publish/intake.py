"""An intake: records that are sent to a release, held until their period is published, and then by nobody.

One SQLite database beside the ledger, `LEDGER.intake/NAME/records`, holds each record encrypted. Everything about a
period hangs on 32 random bytes of its own, made durable before its first record is and kept apart from the database, in
`LEDGER.intake/NAME/keys` or where the release file says: the key that records are encrypted with, the digests by which
a repeated record is known, the identities and samples of its records, the digests that the ledger holds of it, and its
noise (`Reader.secret`). They are destroyed after charge and answers are durable. From then on what is left in the
ledger, the database or a backup of either says no more of the period than what was published, to its curator too.

Which period a record is in follows from the clock of this machine when it comes, or from a field of it, and which are
open from the clock alone: see `spool.py`. Taking records and closing periods are transactions of one database, so no
record is put into a period that is closed.

A repeated record is one of the same person with the same key, within the periods that are not destroyed yet. Whether
there was one shows in no reply, and keys of other people are never looked at.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import polars as pl

from wpinq import Secret
from wpinq.apps.publish.file.declared import File
from wpinq.apps.publish.file.periods import Period
from wpinq.core import Kind, Ledger, Reader, Schema, in_columns, polars_type
from wpinq.errors import BusyError, SourceError
from wpinq.sources import open_source
from wpinq.storage import opened, sealed, settle

TABLES = """
create table if not exists periods(name text primary key, stage text not null);
create table if not exists records(period text not null, id blob not null, sealed blob not null,
                                   primary key(period, id)) without rowid;
create table if not exists turn(one integer primary key, random blob not null);
"""
OPEN, CLOSED, DESTROYED = "open", "closed", "destroyed"


@dataclass(frozen=True)
class Sent:
    """A record that was sent.

    Attributes:
        values: Its columns, in the order of the schema.
        person: Within what its key is looked up: whose it says it is.
        key: What tells it from others of this person; None where each is another one.
    """

    values: tuple[Any, ...]
    person: Any = None
    key: str | None = None


class Keys:
    """The secrets of periods, each in a file of its own."""

    def __init__(self, place: Path) -> None:
        self._place, self._read = place, dict[str, Secret]()

    def _file(self, period: str) -> Path:
        return self._place / f"{period}.key"

    def make(self, period: str) -> Secret:
        """The secret of a period that opens, made durably where there is none."""
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Secret.load_or_create(self._file(period))

    def of(self, period: str) -> Secret | None:
        """The secret of a period; None where it was destroyed. It is read once in a transaction."""
        found = self._read.get(period)
        if found is None and self._file(period).exists():
            found = self._read[period] = Secret.load(self._file(period))
        return found

    def look(self) -> None:
        """See from now on what the files hold now."""
        self._read.clear()

    def destroy(self, period: str) -> None:
        """Write over the secret of a period and remove its file, durably."""
        path = self._file(period)
        self.look()
        if path.exists():
            with path.open("r+b") as file:
                file.write(os.urandom(path.stat().st_size))
                file.flush()
                os.fsync(file.fileno())
            path.unlink()
            settle(self._place)


class Intake:
    """See above. One process takes records and closes periods.

    Attributes:
        name: The release's name.
        tokens: The file of the tokens that senders may show; None where there are none.

    Args:
        file: The release file.
        name: The release's name.
        home: The directory of relative paths.
        schema: The columns of records.

    Attributes:
        begins: The first period of all, where `hold` opened it and the time alone chose it; else None.
    """

    def __init__(self, file: File, name: str, home: Path, schema: Schema) -> None:
        ledger = Ledger.path(file.data.ledger, home)
        self._place = ledger.with_name(f"{ledger.name}.intake") / name
        apart = file.intake.keys
        self._keys = Keys(self._place / "keys" if apart is None else home / apart)
        self.name, self.tokens = name, None if file.intake.tokens is None else home / file.intake.tokens
        self._schema, self._schedule = schema, file.period
        self._at = None if file.stream is None else file.stream.at
        self._lock: int | None = None
        self.begins: Period | None = None

    def hold(self, now: dt.datetime) -> None:
        """Be the one that takes records, and open the first period.

        Raises:
            BusyError: Another process takes them.
            SourceError: Its directory cannot be written.
        """
        try:
            self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self._place / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise BusyError(f"{self._place}: another process takes records; try again when it has ended.") from None
        except OSError as error:
            raise SourceError(f"{self._place}: cannot be written: {error.strerror}.") from None
        with self.connected() as store, transaction(store):
            if _first(store) is None:
                first = self._schedule.first
                begin = Period.parse(str(first), self._schedule.every) if first else self._period(now)
                store.execute("insert into periods values(?, ?)", (begin.name, OPEN))
                self.begins = None if first else begin

    def release(self) -> None:
        """Let another process take records."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """The database, each transaction of which is durable when it ends.

        Raises:
            SourceError: It cannot be read or written.
        """
        try:
            os.close(os.open(self._place / "records", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(self._place / "records", timeout=60, isolation_level=None)) as store:
                for word in ("journal_mode=wal", "synchronous=full", "secure_delete=on"):
                    store.execute(f"pragma {word}")
                store.executescript(TABLES)
                yield store
        except (sqlite3.Error, OSError) as error:
            raise SourceError(f"{self._place}: cannot be read or written: {type(error).__name__}.") from None

    def take(self, store: sqlite3.Connection, sent: Iterable[Sent], now: dt.datetime) -> None:
        """Keep records durably: when this returns, each is held once, or is of no period that is open.

        Args:
            store: A connection.
            sent: The records.
            now: The time.

        Raises:
            SourceError: Nothing of them is kept.
        """
        try:
            with transaction(store):
                self._keys.look()
                first = _first(store)
                if first is None:
                    raise SourceError(f"{self._place}: no period is open.")
                store.execute("insert or replace into turn values(1, randomblob(8))")  # each waits for the disk alike
                begin, latest = Period.parse(first, self._schedule.every), self._period(now)
                for one in sent:
                    period = self._of(one, begin, max(latest, begin))
                    if period is not None:
                        self._keep(store, one, period.name)
        except sqlite3.Error as error:
            raise SourceError(f"{self._place}: cannot be written: {type(error).__name__}.") from None

    def _keep(self, store: sqlite3.Connection, sent: Sent, period: str) -> None:
        secret = self._secret(store, period)
        known = os.urandom(16)
        if sent.key is not None:
            if self._at is None and self._held_before(store, sent, period):
                return
            known = _known(secret, sent)
        name = f"{period} {known.hex()}"
        content = sealed(secret.derive("intake records"), name, msgspec.json.encode(sent.values))
        store.execute("insert or ignore into records values(?, ?, ?)", (period, known, content))

    def _held_before(self, store: sqlite3.Connection, sent: Sent, period: str) -> bool:
        """Whether an earlier period that is not destroyed has the record, which came again when that was over."""
        for (name,) in store.execute("select name from periods where stage != ?", (DESTROYED,)).fetchall():
            secret = None if name == period else self._keys.of(name)
            if (
                secret is not None
                and store.execute(
                    "select 1 from records where period = ? and id = ?", (name, _known(secret, sent))
                ).fetchone()
            ):
                return True
        return False

    def _secret(self, store: sqlite3.Connection, period: str) -> Secret:
        """The secret of an open period, which is there before its first record.

        Raises:
            SourceError: It is lost, and records hang on it.
        """
        secret = self._keys.of(period)
        if secret is None:
            if store.execute("select 1 from records where period = ?", (period,)).fetchone():
                raise SourceError(f"{period}: the keys of its records are lost, and so they are; put the keys back, or"
                                  f" move {self._place} away to begin anew.")  # fmt: skip
            secret = self._keys.make(period)
            store.execute("insert or ignore into periods values(?, ?)", (period, OPEN))
        return secret

    def close(self, now: dt.datetime, lateness: dt.timedelta) -> None:
        """Close the periods that ended so long ago: what comes for them from then on is left out.

        Raises:
            SourceError: The database cannot be written.
        """
        with self.connected() as store:
            while True:
                with transaction(store):
                    name = str(_first(store))
                    period = Period.parse(name, self._schedule.every)
                    if not period.ended(now - lateness, self._schedule.zone):
                        return
                    self._keys.look()
                    self._secret(store, name)
                    store.execute("update periods set stage = ? where name = ?", (CLOSED, name))
                    store.execute("insert or ignore into periods values(?, ?)", (period.next.name, OPEN))

    def closed(self) -> list[Period]:
        """The periods that were closed, those whose records are destroyed too, the oldest first."""
        with self.connected() as store:
            names = [name for (name,) in store.execute("select name from periods where stage != ?", (OPEN,))]
        return sorted(Period.parse(name, self._schedule.every) for name in names)

    def undestroyed(self) -> list[Period]:
        """The closed periods whose records or keys are still here."""
        with self.connected() as store:
            names = [name for (name,) in store.execute("select name from periods where stage = ?", (CLOSED,))]
        return [Period.parse(name, self._schedule.every) for name in names]

    def open_reader(self, period: Period) -> Reader:
        """What reads the records of a closed period, under the period's own secret.

        Raises:
            SourceError: It is not closed, or its records were destroyed or their keys lost.
        """
        if not (self._place / "records").exists():
            raise SourceError(f"{period.name}: nothing was sent yet; publish follow takes records.")
        with self.connected() as store:
            stage = store.execute("select stage from periods where name = ?", (period.name,)).fetchone()
            if stage is None or stage[0] == OPEN:
                raise SourceError(f"{period.name}: is not closed; publish follow takes its records, and closes it.")
            self._keys.look()
            secret = self._keys.of(period.name)
            if secret is None or stage[0] == DESTROYED:
                raise SourceError(f"{period.name}: its records and keys were destroyed; what was published stays.")
            rows = store.execute("select id, sealed from records where period = ? order by id", (period.name,))
            key = secret.derive("intake records")
            records = [msgspec.json.decode(opened(key, f"{period.name} {known.hex()}", content))
                       for known, content in rows]  # fmt: skip
        return Sealed(self._frame(records), secret)

    def destroy(self, period: Period) -> None:
        """Destroy the keys of a period, then its records; what a killed process left of this is done.

        Raises:
            SourceError: It could not be done; it is done the next time.
        """
        try:
            self._keys.destroy(period.name)
        except OSError as error:
            raise SourceError(f"{period.name}: its keys could not be destroyed: {error.strerror}.") from None
        with self.connected() as store:
            stage = store.execute("select stage from periods where name = ?", (period.name,)).fetchone()
            if stage is None or stage[0] != CLOSED:
                return
            with transaction(store):
                store.execute("delete from records where period = ?", (period.name,))
                store.execute("update periods set stage = ? where name = ?", (DESTROYED, period.name))
            store.execute("vacuum")  # the size of the file tells nothing of how many there were
            store.execute("pragma wal_checkpoint(truncate)")

    def _period(self, now: dt.datetime) -> Period:
        here = now.astimezone(ZoneInfo(self._schedule.zone)).replace(tzinfo=None)
        return Period.of(here, self._schedule.every)

    def _of(self, sent: Sent, begin: Period, latest: Period) -> Period | None:
        """The period of a record; None where that is closed, or more than a period ahead."""
        if self._at is None:
            return latest
        time = sent.values[self._schema.names.index(self._at)]
        if time.tzinfo is not None:
            time = time.astimezone(ZoneInfo(self._schedule.zone)).replace(tzinfo=None)
        period = Period.of(time, self._schedule.every)
        return period if begin <= period <= latest.next else None

    def _frame(self, records: list[tuple[Any, ...]]) -> pl.DataFrame:
        columns = []
        for place, one in enumerate(self._schema):
            values = [_read(record[place], one.kind) for record in records]
            columns.append(pl.Series(one.name, values, polars_type(one.kind)))
        return in_columns(columns)


class Sealed:
    """The records of a closed period, and the secret that everything about them is derived from."""

    def __init__(self, frame: pl.DataFrame, secret: Secret) -> None:
        self._reader, self.secret = open_source(frame), secret

    def open_reader(self, columns: object) -> Sealed:
        """It itself."""
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


@contextmanager
def transaction(store: sqlite3.Connection) -> Iterator[None]:
    """All of what is done within, or nothing; no other writer is let in meanwhile."""
    store.execute("begin immediate")
    try:
        yield
    except BaseException:
        store.execute("rollback")
        raise
    store.execute("commit")


def _first(store: sqlite3.Connection) -> str | None:
    found: Mapping[int, str] | None = store.execute("select min(name) from periods where stage = ?", (OPEN,)).fetchone()
    return None if found is None else found[0]


def _known(secret: Secret, sent: Sent) -> bytes:
    """By what a record is known again: under the period's secret, of the person and the key together."""
    return secret.derive("intake key", str(sent.person), str(sent.key), size=16)


def _read(value: Any, kind: Kind) -> Any:
    """A value as a column takes it; times were written as text."""
    if kind in (Kind.TIME, Kind.INSTANT):
        time = dt.datetime.fromisoformat(value)
        return time.astimezone(dt.UTC) if kind is Kind.INSTANT else time
    return dt.date.fromisoformat(value) if kind is Kind.DATE else value
