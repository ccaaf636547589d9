"""A ledger in a SQLite file, with its lock and its head beside it.

Order of a write, under one lock: commit the rows of an act (WAL, synchronous=FULL); write the new head beside the old
and fsync; rename it and fsync the directory; only then return. Every use opens its own connection, so threads and
forked processes share nothing, and a closed ledger is one file.

**Whether somebody wrote to it.** The lock file holds a code of how the file system described the ledger (inode, size,
times) when its rows had been verified, before the lock was released. The code is written only where the clock of the
file system had gone on since the ledger's last change: so who writes to it later gives it another time, and all rows
are verified at the next use. Where the clock had not gone on, or a log of SQLite is there, they are verified too: that
costs a microsecond a row. What is not seen so is a change that leaves no trace in the file's times: by a clock that was
set back to the noted nanosecond, by writing to the disk below the file system, by a page that was mapped and written to
before, in the milliseconds in which SQLite moves its log to the file, or by a disk that rots. It changes no charge and
no answer (`replay.py`), and is refused by whatever reads all rows: `Ledger.entries`, `wpinq ledger show`, `export` and
`verify`, and the first use of a copy, or without the lock file.

Source: privacy rules 37 (not for network file systems) and 38.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from hmac import compare_digest
from pathlib import Path

from wpinq.core.ledger.rows import chain
from wpinq.core.ledger.rows.chain import Change, Head, RefusedError, Row, of_rows
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.stores.store import LOCK_TIMEOUT, Pages, in_note, noted, trouble
from wpinq.core.records.fields import encode

TABLE = "CREATE TABLE entries (number INTEGER PRIMARY KEY, body TEXT NOT NULL, mac BLOB NOT NULL)"
SIDE = (
    "CREATE TABLE side (name TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (name, key))"
    " WITHOUT ROWID"
)
VERSION = 4
"""The format of a ledger; no other is read."""
_DOTTED = ("secret", "head", "head.new", "lock", "states", "live", "live.lock")
ENDS = ("", *(f".{end}" for end in _DOTTED), "-wal", "-shm", "-journal")
"""Suffixes of the files that belong to a ledger, and of the ledger itself."""
PEOPLE = ".people-"
"""Stands behind its name in that of a file with the records of a version by person (`core/runs/people_file.py`)."""
CODE = 32
"""Bytes of the code in a lock file."""

_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_READONLY: "it cannot be written; make it, its -wal, -shm and directory writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened or written beside; make room, and the directory writable",
    sqlite3.SQLITE_IOERR: "the disk refused to read or write; free some space or repair the disk",
    sqlite3.SQLITE_BUSY: "another program holds it; close that program",
}
_PRAGMAS = (
    "trusted_schema=OFF",
    "cell_size_check=ON",
    "journal_mode=WAL",
    "synchronous=FULL",
    "wal_autocheckpoint=0",  # only when it is closed
    "wal_checkpoint(FULL)",  # what a crash has left is made durable before the head may speak of it
)
_SCHEMA = [("table", "entries", TABLE), ("table", "side", SIDE)]
_LOGS = ("-wal", "-shm", "-journal")
_JOINED = """
    SELECT min(number), count(*), CAST(group_concat(quote(mac) || body, char(10)) AS BLOB) FROM entries
    WHERE number >= ? AND number < ? AND typeof(body) = 'text'
"""
_SQLITE = b"SQLite format 3\0"
_LOST = (
    "the ledger and its head are missing, and its secret {secret} is there: put back the newest copy of both. To forget"
    " what was spent and begin anew, remove the secret too."
)
_DAMAGED = "it is damaged or no ledger; put back the newest copy of the ledger and its head"


class FileStore:
    """A ledger in a SQLite file, with `PATH.head`, `PATH.lock` and `PATH.states` beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path.parent.resolve() / path.name
        self.label = f"ledger {path}"
        self._beside = {end: self._path.with_name(self._path.name + end) for end in ENDS}
        self._secret, self._head, self._lock = (self._beside[end] for end in (".secret", ".head", ".lock"))
        self._key: tuple[int, int] | None = None
        with self._trouble():
            self._refuse_links()

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def fresh(self) -> bool:
        """Neither a ledger nor a head is here."""
        return not self.path.exists() and not self._head.exists()

    @property
    def begun(self) -> bool:
        """Whether it has a row, by its head: one whose making was killed has none, and is made again."""
        with self._trouble():
            number = self._number()
            return self.path.exists() if number is None else number > 0

    @property
    def foreign(self) -> bool:
        """Whether the file is of another kind, and never was a ledger."""
        if self._head.exists():
            return False
        with self._trouble(), self.path.open("rb") as file:
            return file.read(len(_SQLITE)) != _SQLITE

    @property
    def key(self) -> tuple[int, int]:
        """The ledger's device and inode at the first use; a file that is replaced later does not change the key."""
        if self._key is None:
            with self._trouble():
                state = self.path.stat()
            self._key = state.st_dev, state.st_ino
        return self._key

    def opened(self, secret_given: Secret | None) -> Secret:
        """The secret. Where there is no ledger, begin one: write the head of an empty chain, then the secret.

        `locked` makes the empty ledger from the head. An empty chain's head without ledger and secret was left by a
        process that was killed in between; a secret without both is left of a ledger that was lost.

        Args:
            given: The secret from the caller or the environment; by default one is kept beside the ledger.

        Raises:
            LedgerError: The ledger or its secret is missing.
        """
        with self._trouble(), self._held():
            stored = self._secret.exists()
            if secret_given is None and not stored and not self.path.exists() and self._number() == 0:
                self._head.unlink()
            if self.fresh:
                if secret_given is None and stored:
                    raise RefusedError(_LOST.format(secret=self._secret.name))
                secret = secret_given or Secret.fresh()
                chain.write_head(self._head, chain.head(secret, None))
                if secret_given is None:
                    secret.keep(self._secret)
                return secret
            if self.path.exists() and self.foreign:
                raise RefusedError("the file is no ledger; name the ledger itself, or a new file for a new one.")
            if secret_given is None and not stored:
                raise RefusedError(
                    f"its secret {self._secret.name} is missing; put it back, or give it as WPINQ_SECRET."
                    " Without it neither the charges nor the answers can be trusted."
                )
            return secret_given or Secret.load(self._secret)

    def _number(self) -> int | None:
        """The number of the last row, by the head; None where there is no head."""
        with suppress(FileNotFoundError):
            return chain.read_head(self._head).number
        return None

    @contextmanager
    def locked(self, secret: Secret) -> Iterator[Pages]:
        """Lock against all others, refuse what is missing or misplaced, and open a transaction."""
        with self._trouble(), self._held() as lock:
            self._refuse_links()
            self._complete()
            untouched = compare_digest(os.pread(lock, CODE, 0), self._code(secret, self._state()))
            uri = f"{self.path.as_uri()}?mode=rw"
            with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_TIMEOUT, isolation_level=None)) as connection:
                for pragma in _PRAGMAS:
                    connection.execute(f"PRAGMA {pragma}").close()
                if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                    raise RefusedError("it cannot keep a write-ahead log here; keep it on a local disk.")
                connection.execute("BEGIN IMMEDIATE")
                begun = self._times()
                with closing(connection.cursor()) as reading:  # one that is not closed would keep the file locked
                    yield FilePages(connection, reading, self._head, self._trouble, untouched=untouched)
                calm = self._times() == begun  # until now new rows went to the log alone
            if calm:
                self._note(lock, secret)

    def _note(self, lock: int, secret: Secret) -> None:
        """Note in the lock file how the ledger is left, where each later change will give it another time.

        Nothing depends on it, so that a disk that is full refuses no charge that is durable.
        """
        state = self._state()
        code = self._code(secret, state)
        if compare_digest(os.pread(lock, CODE, 0), code):
            return
        with suppress(OSError):
            for _ in range(2 if state else 0):  # what was looked at gets a finer time by newer systems
                os.pwrite(lock, code, 0)
                if os.fstat(lock).st_ctime_ns > state[-1]:
                    return
            os.pwrite(lock, bytes(CODE), 0)

    def _code(self, secret: Secret, state: tuple[int, ...]) -> bytes:
        return secret.mac("ledger state", encode(state)) if state else bytes(CODE - 1)

    def _state(self) -> tuple[int, ...]:
        """How the file system describes the ledger; nothing where a log beside it may hold more."""
        return () if any(self._beside[end].exists() for end in _LOGS) else self._times()

    def _times(self) -> tuple[int, ...]:
        status = self.path.stat()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def remember(self, code: str) -> None:
        """Add a line to the note of states; what cannot be written is looked up anew."""
        noted(self.path, code)

    def recalls(self, code: str) -> bool:
        """Whether the note of states has the line."""
        return in_note(self.path, code)

    def _refuse_links(self) -> None:
        for path in self._beside.values():
            with suppress(FileNotFoundError):
                if not stat.S_ISREG(path.lstat().st_mode):
                    raise RefusedError(f"{path.name} is not a regular file; name the file itself.")

    def _complete(self) -> None:
        """Make the empty ledger of an empty chain; refuse a ledger or head without the other."""
        if not self._head.exists():
            raise RefusedError(f"its head {self._head.name} is missing; put it back, or the newest copy of both.")
        if self.path.exists():
            return
        if chain.read_head(self._head).number:
            raise RefusedError("the file is missing, and its head is there; put back the newest copy of both.")
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))

    @contextmanager
    def _held(self) -> Iterator[int]:
        """Hold the lock file, by a descriptor of its own, so that it excludes threads as well as processes."""
        while True:
            descriptor = os.open(self._lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not _same(descriptor, self._lock):
                    continue
                try:
                    yield descriptor
                finally:
                    fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child forked meanwhile holds a copy of the descriptor
                return
            finally:
                os.close(descriptor)

    def _trouble(self) -> AbstractContextManager[None]:
        return trouble(self.label, sqlite3.Error, _advice, "it needs a directory that is writable and has room")


class FilePages:
    """The rows and side tables of an open SQLite transaction, and the head file."""

    database = None

    def __init__(
        self, connection: sqlite3.Connection, reading: sqlite3.Cursor, head: Path,
        trouble: Callable[[], AbstractContextManager[None]], *, untouched: bool,
    ) -> None:  # fmt: skip
        self._connection, self._reading, self._head, self._untouched = connection, reading, head, untouched
        self._trouble = trouble
        schema = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        version = connection.execute("PRAGMA user_version").fetchone()
        if schema and version != (VERSION,):
            raise RefusedError("it was written by another version of wpinq; use that version.")
        if schema and schema != _SCHEMA:
            raise RefusedError(_DAMAGED + ".")
        self._empty = not schema

    @property
    def untouched(self) -> bool:
        """Whether the file's times show that it was not written to since its rows were verified."""
        return self._untouched

    @property
    def last(self) -> int:
        """The number of the last row."""
        if self._empty:
            return 0
        (number,) = self._reading.execute("SELECT max(number) FROM entries").fetchone()
        return max(number or 0, 0)

    def digest(self, first: int, end: int) -> str:
        """Of rows, which SQLite joins."""
        lowest = first or -(2**63)
        number, count, joined = self._reading.execute(_JOINED, (lowest, end)).fetchone()
        return of_rows(joined) if number == max(first, 1) and count == end - number else ""

    def rows(self, first: int | None) -> Iterator[Row]:
        """Read rows; whatever is not of the right type is damage."""
        if self._empty:
            return
        where = ("WHERE number >= ?", (first,)) if first is not None else ("", ())
        query = f"SELECT number, body, mac FROM entries {where[0]} ORDER BY number"  # noqa: S608  a constant
        for number, body, mac in self._reading.execute(query, where[1]):
            if not (isinstance(number, int) and isinstance(body, str) and isinstance(mac, bytes)):
                raise RefusedError(_DAMAGED + ".")
            yield Row(number, body, mac)

    def head(self) -> Head:
        """Read the head file."""
        return chain.read_head(self._head)

    def side(self, table: str) -> dict[str, str]:
        """Read a side table; whatever is not of the right type is damage."""
        if self._empty:
            return {}
        rows = self._reading.execute("SELECT key, text FROM side WHERE name = ?", (table,)).fetchall()
        if not all(isinstance(key, str) and isinstance(text, str) for key, text in rows):
            raise RefusedError(_DAMAGED + ".")
        return dict(rows)

    def insist_writable(self) -> None:
        """See `Pages`: SQLite begins to write to a file that is read-only, and refuses the first row."""
        if not self._empty:
            with self._trouble():
                self._connection.execute("DELETE FROM entries WHERE false")

    def commit(self, rows: Sequence[Row], changes: Sequence[Change], head: Head) -> None:
        """Commit rows and changes, then replace the head, then go on with another transaction of SQLite.

        What fails is told of this ledger, whichever were locked after it.
        """
        with self._trouble():
            self._write(rows, changes, head)

    def _write(self, rows: Sequence[Row], changes: Sequence[Change], head: Head) -> None:
        if self._empty:
            self._connection.execute(f"PRAGMA user_version={VERSION}")
            self._connection.execute(TABLE)
            self._connection.execute(SIDE)
            self._empty = False
        self._connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", rows)
        for change in changes:
            if change.text is None:
                self._connection.execute("DELETE FROM side WHERE name = ? AND key = ?", change[:2])
            else:
                self._connection.execute("INSERT OR REPLACE INTO side VALUES (?, ?, ?)", change[:3])
        self._connection.execute("COMMIT")
        self.adopt(head)
        self._connection.execute("BEGIN IMMEDIATE")

    def adopt(self, head: Head) -> None:
        """Replace the head file."""
        chain.write_head(self._head, head)


def _advice(error: Exception) -> str:
    return f"{_ADVICE.get(getattr(error, 'sqlite_errorcode', 0) & 0xFF, _DAMAGED)}."


def _same(descriptor: int, path: Path) -> bool:
    """Whether the locked file is still the one at `path`, and not one that was deleted meanwhile."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
