"""Where a shared stream is kept: tables beside those of the ledger, in its PostgreSQL database.

Epochs, parts, positions and notes are sealed under a key of the stream, which the database never holds; a release that
several hosts follow has pieces of periods among the epochs. Who may change the database can remove or repeat what is in
it, and is noticed: epochs are chained, and the ledger's head covers the chain; parts are taken only where the one
before ended (`parts.py`). Who reads a partition, and whether windows wait for it, is not sealed: whoever changes that
makes records late, and counts none twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq.core.ledger import Ledger
from wpinq.core.ledger.rows.chain import RefusedError
from wpinq.core.ledger.stores import server
from wpinq.core.ledger.stores.address import Address, address_of
from wpinq.core.records.fields import Field
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import InternalError, SourceError
from wpinq.storage import DamagedError, opened, sealed

if TYPE_CHECKING:
    import psycopg

_MADE = (
    "CREATE TABLE IF NOT EXISTS {schema}.stream_epochs"
    " (stream text, number bigint, frame bytea NOT NULL, PRIMARY KEY (stream, number))",
    "CREATE TABLE IF NOT EXISTS {schema}.stream_parts"
    " (stream text, number bigint GENERATED ALWAYS AS IDENTITY, frame bytea NOT NULL, PRIMARY KEY (stream, number))",
    "CREATE TABLE IF NOT EXISTS {schema}.stream_leases"
    " (stream text, name text, holder text NOT NULL, fence bigint NOT NULL, ends timestamptz NOT NULL,"
    " awaited boolean NOT NULL, position bytea, PRIMARY KEY (stream, name))",
    "CREATE TABLE IF NOT EXISTS {schema}.stream_notes"
    " (stream text, name text, content bytea NOT NULL, PRIMARY KEY (stream, name))",
)

FROZEN = 15.0
"""Seconds after which the server ends a transaction in which nothing happens: who froze in it holds up all others."""
_ENDED = "(ends <= pg_catalog.clock_timestamp() OR ends > pg_catalog.clock_timestamp() + %s * interval '1 second')"
_MINE = "WITH mine AS (SELECT stream, name FROM {leases} WHERE stream = %s AND holder = %s ORDER BY name FOR UPDATE)"


@dataclass(frozen=True)
class Tables:
    """The tables of all streams of a ledger.

    Attributes:
        address: The ledger's database.
    """

    address: Address

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"the stream in {self.address.label}"

    def make(self) -> None:
        """Make the tables, where there are none.

        Raises:
            SourceError: The database cannot be used.
        """
        with self.connected() as connection, connection.transaction():
            last = connection.execute("SELECT pg_catalog.to_regclass(%s)", [f"{self.schema}.stream_notes"]).fetchone()
            if last != (None,):
                return  # a user who may not make tables can use them
            connection.execute(
                "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext(%s))", [f"{self.schema} streams"]
            )
            for statement in _MADE:
                connection.execute(statement.format(schema=self.schema))

    @property
    def schema(self) -> str:
        """The schema of the ledger."""
        return self.address.schema

    def sql(self, statement: str) -> str:
        """A statement in which {epochs}, {parts}, {leases} and {notes} are the tables.

        {ended} is whether a lease has ended, or ends more than so many seconds from now; {mine} locks those of a holder
        of a stream in the order of their names.
        """
        names = ("epochs", "parts", "leases", "notes")
        tables = {name: f"{self.schema}.stream_{name}" for name in names}
        return statement.format(**tables, ended=_ENDED, mine=_MINE.format(**tables))

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection to a database that keeps what it confirms.

        Raises:
            SourceError: It cannot be reached, was lost meanwhile, or may lose what it confirms.
        """
        with self.trouble(), closing(server.connect(self.address)) as connection:
            server.check_durable(connection, self.address.may_lose)
            impatient(connection)
            yield connection

    @contextmanager
    def trouble(self) -> Iterator[None]:
        """Turn the errors of a database into messages that say what to do, and quote nothing.

        Raises:
            SourceError: There was one.
        """
        try:
            yield
        except RefusedError as error:
            raise SourceError(f"{self.label}: {error}") from None
        except server.driver(self.label).Error as error:
            raise SourceError(f"{self.label}: {server.advice(error)}") from None


@dataclass(frozen=True)
class Home(Tables):
    """The tables of one stream.

    Attributes:
        stream: A code of the stream: another unit, other columns or another name are another stream.
        columns: The columns of its records.
        key: 32 secret bytes of the stream.
    """

    stream: str
    columns: Schema
    key: bytes = field(repr=False)

    @classmethod
    def in_ledger(cls, path: Path, ledger: Ledger, columns: Schema, *words: Field) -> Home:
        """Where a stream is kept beside its ledger.

        Args:
            path: The ledger's, as `Ledger.path` gives it.
            ledger: The ledger.
            columns: The columns of its records.
            words: What tells the stream from others of this ledger.

        Raises:
            InternalError: The ledger is in no database.
        """
        address = address_of(path)
        if address is None:
            raise InternalError("Home: this ledger is in no database.")
        code = ledger.secret.derive("stream", ledger.identity, *words, size=16).hex()
        return cls(address, code, columns, ledger.secret.derive("journal", *words))

    def sealed(self, name: str, content: bytes) -> bytes:
        """Content under a name of this stream; see `storage.sealed`."""
        return sealed(self.key, f"{self.stream} {name}", content)

    def opened(self, name: str, content: bytes) -> bytes:
        """What was sealed under a name.

        Raises:
            SourceError: It was changed, or is that of another name.
        """
        with self.damage():
            return opened(self.key, f"{self.stream} {name}", bytes(content))

    @contextmanager
    def damage(self) -> Iterator[None]:
        """Say of what cannot be opened that it is in a database.

        Raises:
            SourceError: It cannot be opened.
        """
        try:
            yield
        except DamagedError:
            raise SourceError(
                f"{self.label}: what it holds is damaged, or of another secret; the database was edited, or"
                " put back. Put back its newest state, or the right secret."
            ) from None

    def told(self) -> dict[str, Any]:
        """What a process of this stream is told, as JSON can hold it; it has the key, and not the ledger's secret."""
        address = self.address
        columns = [(column.name, column.kind.value) for column in self.columns]
        return {"conninfo": address.conninfo, "ledger": address.name, "may_lose": sorted(address.may_lose),
                "anchor": str(address.anchor), "label": address.label, "stream": self.stream,
                "columns": columns, "key": self.key.hex()}  # fmt: skip

    @classmethod
    def of(cls, told: dict[str, Any]) -> Home:
        """What `told` says."""
        address = Address(told["conninfo"], told["ledger"], frozenset(told["may_lose"]), Path(told["anchor"]),
                          told["label"])  # fmt: skip
        columns = Schema(tuple(Column(name, Kind(kind)) for name, kind in told["columns"]))
        return cls(address, told["stream"], columns, bytes.fromhex(told["key"]))


def impatient(connection: psycopg.Connection[Any]) -> None:
    """Let the server end a transaction of this connection, or the one that it is in, whose process froze."""
    setting = "SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', %s, false)"
    connection.execute(setting, [f"{FROZEN * 1000:.0f}ms"])


class SharedNotes:
    """Small texts of a stream that its programs keep: how far sinks are, and what is measured.

    Args:
        home: Where.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    def read(self, name: str) -> bytes | None:
        """What was written last; None where nothing was.

        Raises:
            SourceError: It cannot be read.
        """
        query = self._home.sql("SELECT content FROM {notes} WHERE stream = %s AND name = %s")
        with self._home.connected() as connection:
            row = connection.execute(query, [self._home.stream, name]).fetchone()
        return None if row is None else self._home.opened(f"note {name}", row[0])

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """Replace it.

        Raises:
            SourceError: It cannot be written.
        """
        query = self._home.sql(
            "INSERT INTO {notes} VALUES (%s, %s, %s)"
            " ON CONFLICT (stream, name) DO UPDATE SET content = excluded.content"
        )
        with self._home.connected() as connection:
            connection.execute(query, [self._home.stream, name, self._home.sealed(f"note {name}", content)])
