"""The register of periods: what was begun, computed, held back, delivered and published; durable before it counts.

It lies beside the ledger and holds released numbers, public names and codes only. Each entry has a code under the
ledger's secret, and so has the list of them: an entry that was changed, moved or removed is refused. A period moves
through its stages in one order. What each stage needs from the one before is durable by then, so that a process that
was killed at any moment is followed by one that goes on where it stopped:

    begun      the version of its records is fixed, and what it costs; its questions are charged from here on, once
    computed   its answers and evidence lie as files beside the register; the records are not needed any more
    held       the same, and a check wants the curator to look first
    published  every sink has it

Killed between a charge and the next stage, the questions are charged already and asked again, which is free, and gives
the same answers. A sink is handed the same files again, and takes them once.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hmac import compare_digest
from pathlib import Path
from typing import Any

from wpinq import Secret
from wpinq.core import encode
from wpinq.errors import LedgerError, WpinqError

TABLES = """
CREATE TABLE IF NOT EXISTS periods (
  release TEXT, period TEXT, every TEXT, stage TEXT, version TEXT, definition TEXT, facts TEXT, notes TEXT, code BLOB,
  PRIMARY KEY (release, period));
CREATE TABLE IF NOT EXISTS lists (release TEXT PRIMARY KEY, code BLOB);
CREATE TABLE IF NOT EXISTS refusals (release TEXT, period TEXT, at TEXT, why TEXT, PRIMARY KEY (release, period));
CREATE TABLE IF NOT EXISTS alerts (release TEXT, what TEXT, at TEXT, PRIMARY KEY (release, what));
"""


CHANGED = (
    "does not fit the ledger's secret: it was changed or is damaged. Put back the newest copy of LEDGER.periods,"
    " together with its ledger."
)
OLDER = "an older wpinq wrote it, whose entries have no codes; publish under another ledger."
DAMAGED = "cannot be read or written, or is damaged; put back its newest copy, if it is damaged"
COLUMNS = "release, period, every, stage, version, definition, facts, notes"


class BusyError(WpinqError):
    """Another process is publishing over the same ledger; nothing was done."""


@dataclass(frozen=True)
class Record:
    """What the register holds of a period.

    Attributes:
        period: Its name.
        every: What kind of period it is.
        stage: See above.
        version: Which version of its records it is of: the first one, or one that was charged for again.
        definition: A digest of the questions that were asked.
        facts: What its evidence was written from: times, costs, digests of files; nothing that was not released. Of
            what is begun, what it costs, and what was charged for it before, of other records or questions.
        notes: Why it is held back, for the curator.
    """

    period: str
    every: str
    stage: str
    version: str
    definition: str
    facts: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Register:
    """The register of one release, beside its ledger.

    Args:
        ledger: The ledger.
        release: The release's name; several releases may share a ledger.
    """

    def __init__(self, ledger: Path, release: str) -> None:
        self._file, self.release = ledger.with_name(f"{ledger.name}.periods"), release
        self._ledger = ledger
        self.files = ledger.with_name(f"{ledger.name}.published") / release
        """Where the files of each period are kept."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other publishing processes out, for as long as this one lives.

        Raises:
            BusyError: There is one.
            LedgerError: The directory cannot be written.
        """
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(f"{self._file}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LedgerError(f"{self._file}: cannot be written: {error.strerror}.") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise BusyError(f"{self._file}: another process is publishing; try again when it is done.") from None
        finally:
            os.close(descriptor)

    def records(self) -> dict[str, Record]:
        """All periods, by name, in order of their names."""
        return {one.period: one for release, one in self.everybody() if release == self.release}

    def everybody(self) -> list[tuple[str, Record]]:
        """The periods of all releases over this ledger, each with its release, in order of their names.

        Raises:
            LedgerError: One of them was changed or removed, or the register is damaged.
        """
        if not self._file.exists():
            return []
        with self._opened() as connection:
            rows = connection.execute(f"SELECT {COLUMNS}, code FROM periods ORDER BY period").fetchall()  # noqa: S608
            lists = dict(connection.execute("SELECT release, code FROM lists").fetchall())
        for row in rows:
            if not self._coded("period of a release", row[:-1], row[-1]):
                raise LedgerError(f"{self._file}: the entry of a period {CHANGED}")
        for release in {row[0] for row in rows} | lists.keys():
            codes = [row[-1] for row in rows if row[0] == release]
            if not self._coded("periods of a release", [release, *codes], lists.get(release)):
                raise LedgerError(f"{self._file}: the list of periods {CHANGED}")
        return [(row[0], Record(row[1], row[2], row[3], row[4], row[5], json.loads(row[6]), tuple(json.loads(row[7]))))
                for row in rows]  # fmt: skip

    def enter(self, record: Record) -> None:
        """Write what is known of a period, durably."""
        row = (
            self.release, record.period, record.every, record.stage, record.version, record.definition,
            json.dumps(record.facts), json.dumps(record.notes),
        )  # fmt: skip
        self.everybody()  # a code is made for what has one
        with self._opened() as connection:
            code = self._code("period of a release", row)
            slots = ", ".join("?" * (len(row) + 1))
            connection.execute(f"INSERT OR REPLACE INTO periods ({COLUMNS}, code) VALUES ({slots})", (*row, code))  # noqa: S608
            codes = connection.execute("SELECT code FROM periods WHERE release = ? ORDER BY period", (self.release,))
            whole = self._code("periods of a release", [self.release, *(one for (one,) in codes)])
            connection.execute("INSERT OR REPLACE INTO lists VALUES (?, ?)", (self.release, whole))
            connection.execute("DELETE FROM refusals WHERE release = ? AND period = ?", row[:2])

    def _code(self, purpose: str, fields: Sequence[Any]) -> bytes:
        """A code over fields, which only whoever holds the ledger's secret can make."""
        return self._secret.mac(purpose, encode(*fields))

    def _coded(self, purpose: str, fields: Sequence[Any], code: object) -> bool:
        """Whether a code is that of fields."""
        if not isinstance(code, bytes) or not all(isinstance(one, (str, bytes)) for one in fields):
            return False
        return compare_digest(self._code(purpose, fields), code)

    @cached_property
    def _secret(self) -> Secret:
        return Secret.from_environment() or Secret.load(self._ledger.with_name(f"{self._ledger.name}.secret"))

    def refuse(self, period: str, at: str, why: str) -> None:
        """Note that a period was refused, and why."""
        with self._opened() as connection:
            connection.execute("INSERT OR REPLACE INTO refusals VALUES (?, ?, ?, ?)", (self.release, period, at, why))

    def refusals(self) -> dict[str, tuple[str, str]]:
        """When and why periods were refused last, that have not gone on since."""
        if not self._file.exists():
            return {}
        with self._opened() as connection:
            rows = connection.execute(
                "SELECT period, at, why FROM refusals WHERE release = ? ORDER BY period", (self.release,)
            ).fetchall()
        return {period: (at, why) for period, at, why in rows}

    def alerted(self, what: str) -> bool:
        """Whether the curator was told this."""
        with self._opened() as connection:
            query = "SELECT at FROM alerts WHERE release = ? AND what = ?"
            return connection.execute(query, (self.release, what)).fetchone() is not None

    def alert(self, what: str, at: str) -> None:
        """Note that the curator was told."""
        with self._opened() as connection:
            connection.execute("INSERT OR REPLACE INTO alerts VALUES (?, ?, ?)", (self.release, what, at))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """One transaction; what it wrote is on disk when it ends."""
        try:
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.close(descriptor)
            with closing(sqlite3.connect(self._file, timeout=60)) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")
                with connection:
                    connection.executescript(TABLES)
                    if all(row[1] != "code" for row in connection.execute("PRAGMA table_info(periods)")):
                        raise LedgerError(f"{self._file}: {OLDER}")
                with connection:
                    yield connection
        except WpinqError:
            raise
        except OSError as error:
            raise LedgerError(f"{self._file}: cannot be read or written: {error.strerror}.") from None
        except (
            sqlite3.Error,
            sqlite3.Warning,
            ValueError,
            TypeError,
        ) as error:  # its message may quote what is damaged
            code = getattr(error, "sqlite_errorcode", None)
            why = (
                f"cannot be read or written: {error}"
                if isinstance(error, sqlite3.OperationalError) and code
                else DAMAGED
            )
            raise LedgerError(f"{self._file}: {why}.") from None
