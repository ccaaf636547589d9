"""The journal of a shared stream: its closed epochs, in the database of the ledger.

An epoch, the removal of the parts that it holds, and the head in the ledger's side tables are one act of the keeper
(`keeper.py`). So there is one sequence of epochs, whoever closes them, and a record is in one of them or in a part that
waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from wpinq.core.ledger import Ledger
from wpinq.core.records.log import Epoch, Merged
from wpinq.errors import SourceError
from wpinq.storage import opened, sealed
from wpinq.streaming.frames import MERGED, Positions, chained, merged_of, numbered, rewritten, sealed_epoch
from wpinq.streaming.journal import due
from wpinq.streaming.shared.home import Home, SharedNotes
from wpinq.streaming.shared.keeper import HeldError, Keeper
from wpinq.streaming.shared.leases import SECONDS
from wpinq.streaming.shared.parts import Parts

if TYPE_CHECKING:
    import psycopg

FORMAT = 2
"""The format of epochs, parts and positions; no other is read."""
PAGE = 16
"""Epochs that are read from the database at a time."""
PIECE = 1 << 26
"""Bytes of an epoch in one value; a database holds none of a gigabyte."""


class SharedJournal:
    """The closed epochs of a stream, of which this process is the keeper.

    Args:
        home: The stream.
        ledger: Its ledger.
        seconds: For how long the keeper's lease holds without being renewed.

    Attributes:
        version: Names the data.
        merged: What is known of the epochs that are merged; None where none are.
        notes: What programs keep of it.
        parts: What workers have read of it.

    Raises:
        HeldError: Another process keeps the stream.
        SourceError: It was put back from a copy, or edited; or the database cannot be used.
    """

    def __init__(self, home: Home, ledger: Ledger, seconds: float = SECONDS) -> None:
        self._home = home
        self.notes = SharedNotes(home)
        self.merged: Merged | None = None
        self.parts = Parts(home)
        self._number, self._chain = -1, b""
        try:
            self._keeper = Keeper(home, ledger, seconds)
        except HeldError:
            self._version(next(self._frames(), None))
            raise
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @property
    def closed(self) -> int:
        """How many epochs are kept."""
        return self._number

    def read(self) -> Iterator[tuple[Epoch, Positions]]:
        """The closed epochs, in order."""
        with self._home.damage():
            yield from (epoch for _, epoch in numbered(self._home.key, self._frames(), self.merged))

    def append(self, epoch: Epoch, positions: Positions) -> None:
        """Write down an epoch, durably, before it is closed, and remove the parts that it holds.

        Raises:
            LedgerError: The database cannot be used; a restart sees whether it was closed.
            EngineError: Another process keeps the stream now; nothing was written.
        """
        number = self._number + 1
        frame = sealed_epoch(self._home.key, number, self._chain, epoch, positions)
        chain = chained(self._chain, frame)
        with self._keeper.act(_head(number, chain)) as database:
            self._write(database, self._home.stream, number, frame)
            delete = self._home.sql("DELETE FROM {parts} WHERE stream = %s AND number = ANY(%s)")
            database.execute(delete, [self._home.stream, self.parts.taken])
        self.parts.closed()
        self._number, self._chain = number, chain

    def long(self, last: int) -> bool:
        """Whether it is time to merge the epochs up to one; see `Journal.long`."""
        done = 1 if self.merged is None else self.merged.last
        return due(self._number, done, last, self._sizes)

    def merge(self, last: int, make: Callable[[Iterator[Epoch]], Epoch]) -> None:
        """Replace the epochs from the second on up to one by a single one.

        They are written beside first, and take the place of the others in one transaction.

        Raises:
            LedgerError: The database cannot be used; a restart sees whether they were replaced.
            EngineError: Another process keeps the stream now.
        """
        draft, chain, merged = f"{self._home.stream} next {self._keeper.holder.code}", b"", self.merged
        delete = self._home.sql("DELETE FROM {epochs} WHERE stream LIKE %s OR stream LIKE %s")
        with self._home.connected() as connection, self._home.damage():
            connection.execute(
                delete, [draft, f"{draft} epoch %"]
            )  # no transaction: the server would end one that waits for what is made
            made = rewritten(self._home.key, self._frames, self.merged, last, make)
            for index, (frame, number) in enumerate(made):
                self._write(connection, draft, number, frame)
                merged = merged_of(self._home.key, chain, frame) if index == MERGED else merged
                chain = chained(chain, frame)
        with self._keeper.act(_head(self._number, chain)) as database:
            database.execute(delete, [self._home.stream, f"{self._home.stream} epoch %"])
            update = self._home.sql("UPDATE {epochs} SET stream = %s || substr(stream, %s) WHERE stream LIKE %s")
            database.execute(update, [self._home.stream, len(draft) + 1, f"{draft}%"])
            database.execute(delete, [f"{self._home.stream} next %", ""])  # what other keepers had begun
        self._chain, self.merged = chain, merged

    def close(self) -> None:
        """Let another process keep the stream."""
        self._keeper.close()

    def _version(self, frame: bytes | None) -> str:
        """Names the data, as the first frame says; nothing before the stream has begun.

        Raises:
            SourceError: Another version of wpinq wrote it, whose workers write other parts.
        """
        if frame is None:
            return ""
        with self._home.damage():
            form, _, version = opened(self._home.key, "version", frame).decode().partition(" ")
        if form != str(FORMAT):
            raise SourceError(
                f"{self._home.label}: was written by another version of wpinq, of format {form}, and this one has"
                f" {FORMAT}: start that one again, and the stream goes on. To begin anew with this one, give another"
                " --name (name=), which is charged. Nothing was changed."
            )
        return version

    def _open(self) -> None:
        """Read the version and find the end; begin the stream where there is none."""
        if self._keeper.head is None:
            frame = sealed(self._home.key, "version", f"{FORMAT} {self._keeper.holder.code * 2}".encode())
            with self._keeper.act(_head(0, chained(b"", frame))) as database:
                delete = self._home.sql("DELETE FROM {epochs} WHERE stream LIKE %s")
                database.execute(delete, [f"{self._home.stream}%"])
                self._write(database, self._home.stream, 0, frame)
        first = None
        for index, (number, frame) in enumerate(self._rows()):
            first = frame if index == 0 else first
            self.merged = merged_of(self._home.key, self._chain, frame) if index == MERGED else self.merged
            self._number, self._chain = number, chained(self._chain, frame)
        if self._keeper.head != _head(self._number, self._chain):
            raise SourceError(
                f"{self._home.label}: its epochs are not those that its ledger knows of; the database was edited, or"
                " put back. Put back its newest state."
            )
        self.version = self._version(first)

    def _frames(self) -> Iterator[bytes]:
        return (frame for _, frame in self._rows())

    def _rows(self) -> Iterator[tuple[int, bytes]]:
        """All epochs with their numbers, some at a time."""
        query = self._home.sql(
            "SELECT number, frame FROM {epochs} WHERE stream = %s AND number > %s ORDER BY number LIMIT %s"
        )
        last = -1
        with self._home.connected() as connection:
            while rows := connection.execute(query, [self._home.stream, last, PAGE]).fetchall():
                for number, frame in rows:
                    yield number, bytes(frame) if len(frame) < PIECE else bytes(frame) + self._rest(connection, number)
                last = rows[-1][0]

    def _write(self, database: psycopg.Connection[Any], stream: str, number: int, frame: bytes) -> None:
        """Write an epoch; what is larger than a database holds in one value follows, in pieces."""
        insert = self._home.sql("INSERT INTO {epochs} VALUES (%s, %s, %s)")
        database.execute(insert, [stream, number, frame[:PIECE]])
        for piece in range(1, len(frame) // PIECE + 1):
            database.execute(insert, [f"{stream} epoch {number}", piece, frame[piece * PIECE : (piece + 1) * PIECE]])

    def _rest(self, connection: psycopg.Connection[Any], number: int) -> bytes:
        """All pieces of an epoch but the first."""
        query = self._home.sql("SELECT frame FROM {epochs} WHERE stream = %s ORDER BY number")
        return b"".join(frame for (frame,) in connection.execute(query, [f"{self._home.stream} epoch {number}"]))

    def _sizes(self) -> list[int]:
        query = self._home.sql(
            "SELECT octet_length(frame) + (SELECT coalesce(sum(octet_length(frame)), 0)::bigint FROM {epochs} AS rest"
            " WHERE rest.stream = epoch.stream || ' epoch ' || epoch.number)"
            " FROM {epochs} AS epoch WHERE stream = %s ORDER BY number"
        )
        with self._home.connected() as connection:
            return [size for (size,) in connection.execute(query, [self._home.stream]).fetchall()]


def _head(number: int, chain: bytes) -> str:
    return f"{number} {chain.hex()}"
