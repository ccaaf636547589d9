"""PostgreSQL tables and queries, streamed as Arrow batches (ADBC, which reads the server's binary COPY).

The schema comes from the catalogue and is public; no record is read for it. Only columns that are asked for are
selected, in a transaction that is read-only and sees one snapshot. Types that Arrow shares with PostgreSQL are read as
they are; numeric is read as a number; all others (uuid, json, arrays, intervals, enumerations, ...) as the text that
PostgreSQL writes. Infinite dates and timestamps are null. A view or query that raises on some value fails as a whole,
which tells that there is such a value: so it is run once when it is protected, before anything is charged, and each
pass asks for the same columns, all. Rows that are written later may still make it fail: use expressions that cannot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import polars as pl

from wpinq.arguments import NAME, NOTHING, takes
from wpinq.core.records.reader import ObjectReader, wanted
from wpinq.core.records.schema import Kind, Schema, in_columns
from wpinq.errors import SourceError, needs
from wpinq.sources.files import ran
from wpinq.sources.form import Columns, declared
from wpinq.sources.tables import arrays
from wpinq.sources.tables.schemas import schema_of

SCHEMES = ("postgresql", "postgres")
TIMES = frozenset(["date", "timestamp", "timestamptz"])
NATIVE = TIMES | {
    "bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "bpchar", "name", "bytea", "time",
}  # fmt: skip
CHUNK = 1 << 24  # bytes of a batch
BATCH = "adbc.postgresql.batch_size_hint_bytes"
STORED = """
SELECT 1 FROM pg_class AS a WHERE a.oid = to_regclass($1) AND a.relkind IN ('r', 'p', 'm') AND NOT a.relrowsecurity
AND NOT EXISTS (SELECT 1 FROM pg_attribute AS b WHERE b.attrelid = a.oid AND b.attnum > 0 AND NOT b.attisdropped
                AND (b.atttypid >= 16384 OR to_jsonb(b) ->> 'attgenerated' = 'v'))
AND NOT EXISTS (SELECT 1 FROM pg_inherits AS b JOIN pg_class AS c ON c.oid = b.inhrelid AND c.relkind = 'f')
"""
"""Whether a name is a table whose rows are stored: no view, foreign table, policy of rows, type of a user or computed
column stands in between, any of which may run what fails on a value."""
REFUSALS = {
    "42P01": "there is no such table or view",
    "42501": "this user may not read it",
    "42703": "there is no such column",
    "3D000": "there is no such database",
    "28": "the server refuses this user or password",
    "42": "the server does not understand it; check the table or query",
}


@dataclass(frozen=True, slots=True)
class Postgres:
    """A table or query of a PostgreSQL server, for `protect`. The URL, which may hold a password, is never shown."""

    url: str = field(repr=False)
    table: str | None = None
    query: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            raise SourceError("postgres(...): give either table='views' or query='SELECT ...'.")
        if urlsplit(self.url).scheme not in SCHEMES:
            raise SourceError(
                "postgres(url): write postgresql://user@host/database; a password may also stand in PGPASSWORD."
            )

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"PostgreSQL table {self.table!r}" if self.table is not None else "PostgreSQL query"

    @property
    def rows(self) -> str:
        """What stands after FROM."""
        if self.table is None:
            return f"({self.query}\n) AS wpinq_rows"
        return ".".join(quoted(part) for part in self.table.split("."))

    def open_reader(self, columns: Columns) -> PostgresReader:
        """Look at its columns.

        Raises:
            SourceError: The server cannot be reached, refuses, or has no such columns.
        """
        with _connection(self) as cursor:
            result = cursor.adbc_execute_schema(f"SELECT * FROM {self.rows}")  # noqa: S608  as below
            if self.table is not None:
                cursor.execute(STORED, (self.rows,))
            stored = self.table is not None and bool(cursor.fetchall())
        native = {item.name: (item.metadata or {}).get(b"POSTGRESQL:type", b"").decode() for item in result}
        import pyarrow as pa

        types = {item.name: item.type if native[item.name] in NATIVE else pa.string() for item in result}
        schema = schema_of(types, result.names, columns, self.where)
        declared_kinds = {} if columns is None else declared(columns)
        numbers = {name for name, type_ in native.items() if type_ == "numeric" and declared_kinds.get(name) is None}
        kinds = (
            replace(column, kind=Kind.FLOAT, rounded=True) if column.name in numbers else column for column in schema
        )
        return PostgresReader(replace(schema, columns=tuple(kinds)), self, native, stored)


@takes(url=NAME, table=NAME | NOTHING, query=NAME | NOTHING)
def postgres(url: str, *, table: str | None = None, query: str | None = None) -> Postgres:
    """Name a table or a query of a PostgreSQL server, for `protect`.

    Its version is called as the table is, or "query", unless `protect(version=...)` names it, and is the same in every
    session that finds the same rows, in whatever order. Other rows are refused, so of a table that is written to,
    protect a query of rows that stay, or name versions. Rows are read before a charge, to compare them, and for the
    answers; each time in one snapshot, with all columns: `columns=(...)` or a query leave out what is never needed.
    Should rows change between the two, the charge stands, and the answer is refused until they are back. A ledger is
    needed, `protect(ledger=PATH)`, since there is no file to keep it by.

    A query or a view is run once by `protect`, before anything is charged: where it fails on a value, a division by
    zero, say, it is refused then. So is a table with policies for rows, foreign parts or types of your own.

    Args:
        url: `postgresql://user@host:port/database`, as libpq reads it; the password may be in it, in PGPASSWORD or in
            a password file.
        table: A table or view, with or without its schema: `shop.views`. Spelled exactly.
        query: One SELECT instead.

    Raises:
        SourceError: Neither or both are given.

    >>> from wpinq import postgres
    >>> postgres("postgresql://ann:secret@localhost/shop", table="views")
    Postgres(table='views')
    """
    return Postgres(url, table, query)


def from_url(url: str) -> Postgres:
    """Read `postgresql://user@host/database?table=views` (or `?query=...`).

    Raises:
        SourceError: It names no table.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    table, query = options.pop("table", None), options.pop("query", None)
    if (table is None) == (query is None):
        raise SourceError("postgresql://...: name the table at its end, postgresql://user@host/database?table=views.")
    return Postgres(parts._replace(query=urlencode(options, quote_via=quote)).geturl(), table, query)


@dataclass(frozen=True, slots=True)
class PostgresReader(ObjectReader):
    """Rows of a PostgreSQL table or query.

    Attributes:
        schema: All columns with their kinds.
        rows_of: Where they are.
        native: The server's types.
        stored: Whether it is a table of stored rows, of the server's own types, which nothing in between computes.
        lasting: It outlives this process, so its ledger must too.
    """

    schema: Schema
    rows_of: Postgres
    native: dict[str, str] = field(repr=False)
    stored: bool
    lasting: bool = True

    @property
    def name(self) -> str:
        """The table's name."""
        return self.rows_of.table or "query"

    @property
    def title(self) -> str:
        """The same."""
        return self.name

    @property
    def way(self) -> tuple[object, ...]:
        """The table or the query."""
        return (type(self).__name__, self.rows_of.table, self.rows_of.query)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`. The first share reads everything: rows have no fixed order."""
        schema = wanted(self.schema, columns, self.rows_of.where)
        if share[0]:
            return
        chosen = ", ".join(self._selected(name) for name in schema.names)
        with _connection(self.rows_of) as cursor:
            cursor.adbc_statement.set_options(**{BATCH: str(CHUNK)})
            cursor.execute(f"SELECT {chosen} FROM {self.rows_of.rows}")  # noqa: S608  names are quoted, the query is the curator's
            for batch in cursor.fetch_record_batch():
                cells = zip(batch.columns, schema, strict=True)
                yield in_columns([arrays.column(array, column) for array, column in cells])

    def run_once(self) -> None:
        """Run what may fail on a value, whole, before anything is charged.

        Raises:
            SourceError: It fails.
        """
        if not self.stored:
            ran(self)

    def _selected(self, name: str) -> str:
        column, native = quoted(name), self.native[name]
        if native in TIMES:
            return f"CASE WHEN isfinite({column}) THEN {column} END AS {column}"
        return column if native in NATIVE else f"{column}::text AS {column}"


def quoted(name: str) -> str:
    """A name as SQL quotes it.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _connection(table: Postgres) -> Iterator[Any]:
    """A cursor in a read-only transaction that sees one snapshot.

    Raises:
        SourceError: Instead of any other error: what a driver says may quote records and passwords.
    """
    needs("postgres", "PostgreSQL")
    from adbc_driver_postgresql import dbapi

    try:
        with dbapi.connect(table.url) as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield cursor
    except SourceError:
        raise
    except Exception as error:  # noqa: BLE001  a driver may raise anything
        raise SourceError(f"{table.where}: {reason(error)}.") from None


def reason(error: Exception) -> str:
    """What went wrong, by the server's code alone."""
    state = getattr(error, "sqlstate", None) or ""
    known = next((text for code, text in REFUSALS.items() if state.startswith(code)), None)
    if known:
        return known
    if re.search("could not|failed to connect", str(error), re.IGNORECASE):
        return "the server cannot be reached, or refuses this user or password"
    return f"the server or its driver refused ({type(error).__name__}); check its table and columns, and try again"
