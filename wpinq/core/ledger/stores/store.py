"""Stores of ledgers: what a store must do, and one in the memory of a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from wpinq.core.ledger.rows.chain import Change, Head, RefusedError, Row, of_rows, packed
from wpinq.core.ledger.rows.secret import Secret
from wpinq.errors import LedgerError, WpinqError

if TYPE_CHECKING:
    import psycopg

LOCK_TIMEOUT = 60.0
"""Seconds until a lock that somebody holds is given up."""
APPEND = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def trouble(label: str, failures: type[Exception], advice: Callable[[Exception], str], missing: str) -> Iterator[None]:
    """Turn errors into messages that name the ledger and the remedy, never with a store's text on the contents.

    Args:
        label: What the ledger is called.
        failures: What the store raises.
        advice: What to do about one of them, or about text that is none.
        missing: What to do where files cannot be read or written.
    """
    try:
        yield
    except RefusedError as refused:
        raise LedgerError(f"{label}: {refused}") from None
    except WpinqError:
        raise
    except (failures, UnicodeDecodeError) as error:  # whose message quotes what is damaged
        raise LedgerError(f"{label}: {advice(error)}") from None
    except OSError as error:
        raise LedgerError(f"{label}: {error.strerror}; {missing}.") from None


def noted(ledger: Path, code: str) -> None:
    """Add a line to the note beside a ledger: in which states files were compared with pins; nothing depends on it.

    What cannot be written is looked up anew.
    """
    with suppress(OSError), open(os.open(_note(ledger), APPEND, 0o600), "ab", buffering=0) as file:  # noqa: PTH123
        file.write(f"{code}\n".encode())


def in_note(ledger: Path, code: str) -> bool:
    """Whether the note has the line."""
    with suppress(OSError):
        return code.encode() in _note(ledger).read_bytes().splitlines()
    return False


def _note(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.states")


class Pages(Protocol):
    """A locked ledger: no other thread or process reads or writes it meanwhile."""

    @property
    def untouched(self) -> bool:
        """Whether no row was changed since all rows were verified last, so that only new rows have to be."""

    @property
    def last(self) -> int:
        """The number of the last row; 0 where there is none."""

    def rows(self, first: int | None) -> Iterator[Row]:
        """Read the rows from a number on, or all rows, in order."""

    def digest(self, first: int, end: int) -> str:
        """Of the rows from `first` to before `end`, and of all before them where `first` is 0; "" where one lacks."""

    def head(self) -> Head:
        """Read the head."""

    def side(self, table: str) -> dict[str, str]:
        """The entries of a side table (`side.py`) by their keys, as they are there."""

    def insist_writable(self) -> None:
        """Refuse a ledger that cannot be written, before anything is written to another one."""

    def commit(self, rows: Sequence[Row], changes: Sequence[Change], head: Head) -> None:
        """Make rows and changes of side tables durable, all or none, then the head, in this order."""

    def adopt(self, head: Head) -> None:
        """Make a head durable whose row already is."""

    @property
    def database(self) -> psycopg.Connection[Any] | None:
        """Of a ledger in a database the connection, for what is to be committed with an act; None of others."""


class Store(Protocol):
    """A place for one ledger."""

    @property
    def path(self) -> Path:
        """Its file.

        Raises:
            LedgerError: It has none.
        """

    @property
    def key(self) -> tuple[int, int]:
        """Equal for two stores of one place."""

    def locked(self, secret: Secret) -> AbstractContextManager[Pages]:
        """Lock the ledger against every other thread and process."""

    def remember(self, code: str) -> None:
        """Remember a code where that can be done; nothing depends on it."""

    def recalls(self, code: str) -> bool:
        """Whether a code was remembered."""


class MemoryStore:
    """A ledger in the memory of one process, lost with it; another process is refused."""

    database = None

    def __init__(self, head: Head) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._rows: list[Row] = []
        self._side: dict[str, dict[str, str]] = {}
        self._codes: set[str] = set()
        self._head = head

    @property
    def path(self) -> Path:
        """None: it is in memory."""
        raise LedgerError("ledger in memory: it has no file; give ledger=PATH.")

    @property
    def key(self) -> tuple[int, int]:
        """The object itself."""
        return -1, id(self)

    @contextmanager
    def locked(self, secret: Secret) -> Iterator[Pages]:
        """Lock against other threads, and refuse a fork, which would have a budget of its own."""
        if os.getpid() != self._process:
            raise LedgerError("ledger in memory: it belongs to the process that made it; give ledger=PATH to share it.")
        with self._lock:
            yield self

    def remember(self, code: str) -> None:
        """Remember a code for as long as the process lives."""
        self._codes.add(code)

    def recalls(self, code: str) -> bool:
        """Whether it was remembered."""
        return code in self._codes

    @property
    def untouched(self) -> bool:
        """True: no other process can write to it."""
        return True

    def rows(self, first: int | None) -> Iterator[Row]:
        """Give the rows from a number on."""
        return islice(self._rows, max(first or 1, 1) - 1, None)

    @property
    def last(self) -> int:
        """How many there are."""
        return len(self._rows)

    def digest(self, first: int, end: int) -> str:
        """Of these rows, which nobody else can write to."""
        return of_rows(b"\n".join(map(packed, self._rows[max(first, 1) - 1 : end - 1])))

    def head(self) -> Head:
        """Return the head."""
        return self._head

    def side(self, table: str) -> dict[str, str]:
        """A copy of a side table."""
        return dict(self._side.get(table, {}))

    def insist_writable(self) -> None:
        """Memory always is."""

    def commit(self, rows: Sequence[Row], changes: Sequence[Change], head: Head) -> None:
        """Add rows, change side tables and move the head."""
        self._rows += rows
        for change in changes:
            change.apply(self._side.setdefault(change.table, {}))
        self._head = head

    def adopt(self, head: Head) -> None:
        """Move the head."""
        self._head = head
