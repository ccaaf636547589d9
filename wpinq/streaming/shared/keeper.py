"""The keeper of a shared stream: whoever holds its lease, and writes what the ledger's head of the stream covers.

What a keeper writes is one transaction with that head, in the ledger's side tables, and its lease is locked and found
to be its own in it. So there is one sequence of what is written, whoever writes it; and a database that was put back to
a time before what a client has seen is refused, as one that lacks charges is (`core/ledger/stores/anchor.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wpinq.core.ledger import Change, Ledger
from wpinq.errors import EngineError, SourceError
from wpinq.streaming.shared.home import Home, impatient
from wpinq.streaming.shared.leases import KEEPER, LOST, SECONDS, Holder, Lease, LostError

if TYPE_CHECKING:
    import psycopg

    from wpinq.core.ledger.transaction import Transaction

TABLE = "streams"
"""The side table of the ledger that holds the head of each stream."""


class HeldError(SourceError):
    """Another process keeps the stream.

    Attributes:
        home: The stream, of which this process may read partitions meanwhile.
        keeper: The name of the host of that process; "" where it is not known.
    """

    def __init__(self, home: Home, keeper: str = "") -> None:
        where = f", on {keeper}" if keeper else ""
        super().__init__(f"{home.label}: another process keeps it{where}; it passes on when that one ends.")
        self.home, self.keeper = home, keeper

    @property
    def waits(self) -> str:
        """What a process says that waits for its turn."""
        where = f", on {self.keeper}" if self.keeper else ""
        return f"Another process keeps this stream{where}; this one reads for it, and takes over when it ends."


class Keeper:
    """The lease of the keeper, and the head of the stream as this process knows it.

    Args:
        home: The stream, whose tables are made where there are none.
        ledger: Its ledger.
        seconds: For how long the lease holds without being renewed.

    Attributes:
        holder: Holds the lease.
        head: The head; None where the stream has not begun.

    Raises:
        HeldError: Another process keeps the stream.
        SourceError, LedgerError: The database cannot be used.
    """

    def __init__(self, home: Home, ledger: Ledger, seconds: float = SECONDS) -> None:
        self._home, self._ledger = home, ledger
        home.make()
        self.holder = Holder(home, seconds)
        try:
            self._leases = {KEEPER: self._kept()}
            self.head = ledger.side(TABLE).entries.get(home.stream)
        except BaseException:
            self.close()
            raise

    def _kept(self) -> Lease:
        lease = self.holder.keep()
        if lease is None:
            raise HeldError(self._home, self.holder.keeper)
        return lease

    @contextmanager
    def act(self, head: str) -> Iterator[psycopg.Connection[Any]]:
        """A transaction of the ledger, in which this is the keeper, and after which the head is another one.

        Raises:
            EngineError: Another process keeps the stream now; nothing was written.
            LedgerError: The database cannot be used; a restart sees whether it was written.
        """
        with self._fenced() as act:
            if act.side(TABLE).entries.get(self._home.stream) != self.head:
                raise EngineError(f"{self._home.label}: {LOST}. Nothing was written; start again.")
            yield act.database
            act.change(Change(TABLE, self._home.stream, head))
        self.head = head

    def change(self, *changes: Change) -> None:
        """Change entries of other side tables, all or none, if this is the keeper still.

        Raises:
            EngineError: It is not; nothing was written.
        """
        with self._fenced() as act:
            for change in changes:
                act.change(change)

    @contextmanager
    def _fenced(self) -> Iterator[Transaction]:
        """A transaction of the ledger in which the lease is locked and found to be that of this process."""
        with self._ledger.transaction() as act:
            try:
                self.holder.check(act.database, self._leases)
            except LostError as error:
                raise EngineError(f"{error} Nothing was written; start again.") from None
            impatient(act.database)
            yield act

    def close(self) -> None:
        """Let another process keep the stream."""
        self.holder.close()
