"""A ledger in a PostgreSQL database: its rows and its head in tables of one schema, under one lock of a row.

Order of a write: lock the row of the head; write the rows of an act and the head, and commit both as one transaction;
make the head durable in this client's anchor (`anchor.py`); only then return. Every use has a connection of its own, so
threads and forked processes share nothing. What a use reads it makes durable, too: the lock of a row is written to the
server's log, and its commit waits for the log, and for synchronous standbys. So nobody answers from a row that a crash
or a failover may still take.

**A commit of which nothing is heard** is looked up: the next use waits for the lock that it may hold, and reads what
landed. A question that landed is free, as if it had been asked before, and one that did not is charged.

**What is verified, and when.** All rows, when a process first uses a ledger; then those that are new, and that the code
of the last one that this process knows is there still. Rows that were read before are not read again for each use:
whoever changes them in the database meanwhile changes no charge and no answer (`replay.py`), and is noticed by the next
process, and by `entries`, `wpinq ledger show`, `export` and `verify`.

Source: privacy rules 37, 38 and 39.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq.core.ledger.rows import chain
from wpinq.core.ledger.rows.chain import Change, Head, RefusedError, Row, of_rows, packed
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.stores import server
from wpinq.core.ledger.stores.address import Address
from wpinq.core.ledger.stores.anchor import Anchor
from wpinq.core.ledger.stores.store import LOCK_TIMEOUT, Pages, in_note, noted, trouble

if TYPE_CHECKING:
    import psycopg

FORMAT = 2
"""The format of the tables; no other is read."""
_PAGE = 1000
_LEAST = -(2**63)
_GONE = (
    "the database holds no ledger of this name any more, and this client has seen one: put back the newest state of the"
    " database. To forget what was spent and begin anew, remove {path} too."
)
_UNSECURED = (
    "a ledger in a database is given its secret, which is never kept beside it. Make text with `openssl rand -hex 32`"
    " for WPINQ_SECRET, or for a command WPINQ_SECRET_COMMAND that prints it; or a file that only this user can read"
    " with `openssl rand -out FILE 32`, for WPINQ_SECRET_FILE; or give secret=."
)
_BETWEEN = "another client wrote to it between two steps of one act; ask again."
_BEHIND = "its head is behind its rows, which are written together: it was edited. " + server.PUT_BACK
_UNSURE = (
    "the server did not confirm a commit, so nothing was answered. Ask again: where it was charged, the same question"
    " is free, and where it was not, nothing is lost."
)


class PostgresStore:
    """A ledger in a schema of a PostgreSQL database, and its anchor among this client's files."""

    def __init__(self, address: Address) -> None:
        self._address, self.label = address, address.label
        self._anchor = Anchor(address.anchor, address.label)
        self._verified, self._turns = False, dict[int, threading.Lock]()

    @property
    def path(self) -> Path:
        """The anchor, beside which this client keeps what belongs to the ledger."""
        return self._address.anchor

    @property
    def fresh(self) -> bool:
        """Whether the database holds no ledger of this name, and this client has seen none."""
        with self._trouble(), self._connected() as connection:
            return self._anchor.seen() is None and not server.tables(connection, self._address.schema)

    @property
    def begun(self) -> bool:
        """Whether it has a row, by its head: one whose making was killed has none, and is made again."""
        with self._trouble(), self._connected() as connection:
            seen = self._anchor.seen()
            if seen is not None and seen.number:
                return True
            if not server.tables(connection, self._address.schema):
                return seen is not None
            last = f"SELECT max(number) FROM {self._address.schema}.head"  # noqa: S608  a name of ours
            return connection.execute(last).fetchone() != (0,)

    @property
    def foreign(self) -> bool:
        """Never: what is in its schema and is no ledger is refused."""
        return False

    @property
    def key(self) -> tuple[int, int]:
        """Of the anchor: two URLs of one ledger would wait for each other's lock, and nothing is charged."""
        return -2, int.from_bytes(blake2b(bytes(self.path), digest_size=8).digest())

    def opened(self, secret_given: Secret | None) -> Secret:
        """The secret; where there is no ledger, make an empty one.

        Raises:
            LedgerError: There is no secret, the database may lose what it confirms, or a ledger was lost.
        """
        with self._trouble():
            if secret_given is None:
                raise RefusedError(_UNSECURED)
            with self._connected() as connection:
                connection.execute("BEGIN")
                schema = self._address.schema
                connection.execute("SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext(%s))", [schema])
                if not server.tables(connection, schema):
                    if self._anchor.seen() is not None:
                        raise RefusedError(_GONE.format(path=self._anchor.path))
                    head = chain.head(secret_given, None)
                    for statement in server.MADE:
                        connection.execute(statement.format(schema=schema))
                    first = f"INSERT INTO {schema}.head VALUES (%s, %s, %s, %s, %s)"  # noqa: S608  a name of ours
                    connection.execute(first, [FORMAT, *_values(head)])
                    _commit(connection)
                    self._anchor.keep(head, begun=True)
            return secret_given

    @contextmanager
    def locked(self, secret: Secret) -> Iterator[Pages]:
        """Lock against all others, and refuse a ledger without rows that this client has seen."""
        with self._trouble(), self._turn():
            seen = self._anchor.seen()
            with self._connected() as connection:
                pages = PostgresPages(connection, self._address, self._anchor, untouched=self._verified)
                self._anchor.check(pages, secret, seen)
                yield pages
                head = pages.finished()
            self._anchor.keep(head)
            self._verified = True

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Keep other threads out to the end, when what was committed, and unlocked by that, is known to this process.

        A forked process has a lock of its own: that of its parent may be held by a thread that it does not have.
        """
        lock = self._turns.setdefault(os.getpid(), threading.Lock())
        if not lock.acquire(timeout=LOCK_TIMEOUT):
            raise RefusedError(server.HELD)
        try:
            yield
        finally:
            lock.release()

    def remember(self, code: str) -> None:
        """Add a line to this client's note of states; what cannot be written is looked up anew."""
        noted(self.path, code)

    def recalls(self, code: str) -> bool:
        """Whether this client's note of states has the line."""
        return in_note(self.path, code)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        with closing(server.connect(self._address)) as connection:
            server.check_durable(connection, self._address.may_lose)
            yield connection

    def _trouble(self) -> AbstractContextManager[None]:
        failures = server.driver(self.label).Error
        missing = f"its anchor {self.path} needs a directory that is writable and has room"
        return trouble(self.label, failures, server.advice, missing)


class PostgresPages:
    """The rows and the head, in a transaction that holds the lock."""

    def __init__(
        self, connection: psycopg.Connection[Any], address: Address, anchor: Anchor, *, untouched: bool
    ) -> None:
        self._connection, self._schema, self._anchor, self._untouched = connection, address.schema, anchor, untouched
        self._open = False
        self._head = self._begun()

    def _begun(self) -> Head:
        """Begin a transaction, lock the row of the head and read it."""
        self._connection.execute("BEGIN")
        server.check_tables(self._connection, self._schema)
        query = f"SELECT format, number, turn, code, mac FROM {self._schema}.head FOR UPDATE"  # noqa: S608  a name of ours
        found = self._connection.execute(query).fetchall()
        if len(found) != 1:
            raise RefusedError(f"it has not one head. {server.PUT_BACK}")
        form, *values = found[0]
        if form != FORMAT:
            raise RefusedError("it was written by another version of wpinq; use that version.")
        self._open = True
        return Head(*values)

    @property
    def database(self) -> psycopg.Connection[Any]:
        """For what is to be committed with an act: in the transaction that holds the lock."""
        self._again()
        return self._connection

    def _again(self) -> None:
        """Go on after a commit: nobody may have written meanwhile."""
        if not self._open and self._begun() != self._head:
            raise RefusedError(_BETWEEN)

    @property
    def untouched(self) -> bool:
        """Whether this process has verified all rows before; it verifies new ones, and the last that it knows."""
        return self._untouched

    @property
    def last(self) -> int:
        """The number of the last row."""
        self._again()
        query = f"SELECT max(number) FROM {self._schema}.entries"  # noqa: S608  a name of ours
        return max(self._fetched(query, [])[0][0] or 0, 0)

    def rows(self, first: int | None) -> Iterator[Row]:
        """Read rows, some at a time; whatever is not of the right type is damage."""
        self._again()
        query = f"SELECT number, body, mac FROM {self._schema}.entries WHERE number >= %s ORDER BY number LIMIT %s"  # noqa: S608  a name of ours
        lowest, many = _LEAST if first is None else first, 4
        while True:
            found = self._fetched(query, [lowest, many])
            for number, body, mac in found:
                yield Row(number, body, mac)
            if len(found) < many or found[-1][0] == 2**63 - 1:
                return
            lowest, many = found[-1][0] + 1, _PAGE

    def digest(self, first: int, end: int) -> str:
        """Of rows, as they are read."""
        self._again()
        where = "WHERE number >= %s AND number < %s ORDER BY number"
        query = f"SELECT number, body, mac FROM {self._schema}.entries {where}"  # noqa: S608  a name of ours
        found = [Row(*each) for each in self._fetched(query, [first or _LEAST, end])]
        if [row.number for row in found] != [*range(max(first, 1), end)]:
            return ""
        return of_rows(b"\n".join(map(packed, found)))

    def _fetched(self, query: str, values: list[Any]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._connection.execute(query, values).fetchall()
        return rows

    def head(self) -> Head:
        """The head, as it was read under the lock."""
        self._again()
        return self._head

    def side(self, table: str) -> dict[str, str]:
        """Read a side table."""
        self._again()
        return dict(self._fetched(f"SELECT key, text FROM {self._schema}.side WHERE name = %s", [table]))  # noqa: S608  a name of ours

    def insist_writable(self) -> None:
        """It is: the lock is a write of its own."""

    def commit(self, rows: Sequence[Row], changes: Sequence[Change], head: Head) -> None:
        """Commit rows, changes and head together, and make the head durable in the anchor."""
        self._again()
        columns = [[row[index] for row in rows] for index in range(3)]
        self._connection.execute(
            f"INSERT INTO {self._schema}.entries SELECT * FROM "  # noqa: S608  a name of ours
            "unnest(%s::bigint[], %s::text[], %s::bytea[])", columns)  # fmt: skip
        for table, key, text, _ in changes:
            self._connection.execute(f"DELETE FROM {self._schema}.side WHERE name = %s AND key = %s", [table, key])  # noqa: S608  a name of ours
            if text is not None:
                self._connection.execute(f"INSERT INTO {self._schema}.side VALUES (%s, %s, %s)", [table, key, text])  # noqa: S608  a name of ours
        done = self._connection.execute(
            f"UPDATE {self._schema}.head SET number = %s, turn = %s, code = %s, mac = %s"  # noqa: S608  a name of ours
            " WHERE number = %s AND turn = %s AND code = %s AND mac = %s", [*_values(head), *_values(self._head)],
        )  # fmt: skip
        if done.rowcount != 1:
            raise RefusedError(f"its head could not be replaced. {server.PUT_BACK}")
        self._head, self._open = head, False
        _commit(self._connection)
        self._anchor.keep(head)

    def adopt(self, head: Head) -> None:
        """Refuse it: rows and head are one transaction, so no crash can leave a head that is behind."""
        raise RefusedError(_BEHIND)

    def finished(self) -> Head:
        """Commit what was only read, so that it is durable before it is answered from; the head."""
        if self._open:
            self._open = False
            _commit(self._connection)
        return self._head


def _values(head: Head) -> tuple[int, int, bytes, bytes]:
    return head.number, head.turn, head.code, head.mac


def _commit(connection: psycopg.Connection[Any]) -> None:
    """Commit, and refuse whatever is not a plain confirmation.

    Raises:
        RefusedError: It may have been committed or not, or is not yet where it has to be durable.
    """
    import psycopg

    doubts: list[object] = []
    connection.add_notice_handler(doubts.append)  # "committed locally, but might not have been replicated"
    try:
        done = connection.execute("COMMIT")
    except psycopg.Error as error:
        if server.lost(error, connection):
            raise RefusedError(_UNSURE) from None
        raise
    finally:
        connection.remove_notice_handler(doubts.append)
    if done.statusmessage != "COMMIT" or doubts:
        raise RefusedError(_UNSURE)
