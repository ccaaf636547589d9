"""Stores of ledgers: what a store must do, and one in the memory of a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from wpinq.errors import LedgerError
from wpinq.ledger.chain import Head, Row


class Pages(Protocol):
    """A locked ledger: no other thread or process reads or writes it meanwhile."""

    def rows(self) -> list[Row]:
        """Read all rows, in order."""

    def head(self) -> Head:
        """Read the head."""

    def commit(self, row: Row, head: Head) -> None:
        """Make a row durable, then the head, in this order."""

    def adopt(self, head: Head) -> None:
        """Make a head durable whose row already is."""


class Store(Protocol):
    """A place for one ledger."""

    @property
    def key(self) -> tuple[int, int]:
        """Equal for two stores of one place."""

    def locked(self) -> AbstractContextManager[Pages]:
        """Lock the ledger against every other thread and process."""


class MemoryStore:
    """A ledger in the memory of one process, lost with it; another process is refused."""

    def __init__(self, head: Head) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._rows: list[Row] = []
        self._head = head

    @property
    def key(self) -> tuple[int, int]:
        """The object itself."""
        return -1, id(self)

    @contextmanager
    def locked(self) -> Iterator[Pages]:
        """Lock against other threads, and refuse a fork, which would have a budget of its own."""
        if os.getpid() != self._process:
            raise LedgerError("ledger in memory: it belongs to the process that made it; give ledger=PATH to share it.")
        with self._lock:
            yield self

    def rows(self) -> list[Row]:
        """Return all rows."""
        return list(self._rows)

    def head(self) -> Head:
        """Return the head."""
        return self._head

    def commit(self, row: Row, head: Head) -> None:
        """Add a row and move the head."""
        self._rows.append(row)
        self._head = head

    def adopt(self, head: Head) -> None:
        """Move the head."""
        self._head = head
