"""Tables of a SQLite file: one for each question, the period in its first column; a period is one transaction."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl

from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.sinks.place import Edition
from wpinq.apps.publish.sinks.rows import DONE, column_of, dated, digest_of, named
from wpinq.errors import SourceError
from wpinq.html.written import in_text
from wpinq.sources.databases.postgres import quoted

KINDS = {pl.Int64: "INTEGER", pl.Float64: "REAL", pl.Boolean: "INTEGER", pl.Binary: "BLOB"}

DAMAGED = "is damaged; put back a whole copy, or move it away and say publish run --deliver"


class SqliteTables:
    """See `Place`.

    Args:
        path: The file; it is made where there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.name = path, f"sqlite {path.name}"

    def check(self, period: Period, *, fresh: bool) -> None:
        """See `Place.check`."""
        place = self._path if self._path.exists() else self._path.parent
        if not place.exists() or not os.access(place, os.W_OK):
            raise SourceError(f"{self.name}: {place} is not there or cannot be written to.")
        if place is self._path:
            self._read("SELECT 1 FROM sqlite_master", ())  # it may be another kind of file

    def deliver(self, edition: Edition) -> None:
        """See `Place.deliver`."""
        try:
            with closing(sqlite3.connect(self._path, timeout=60)) as connection, connection:
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE")
                self._put(connection, edition)
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            raise SourceError(f"{self.name}: {_reason(error)}.") from None

    def differs(self, edition: Edition) -> str | None:
        """See `Place.differs`."""
        for name, table in edition.tables.items():
            query = f"SELECT * FROM {quoted(named(edition, name))} WHERE {column_of(table)} = ? ORDER BY rowid"  # noqa: S608  quoted
            try:
                there = self._read(query, (edition.period.name,))
            except SourceError as error:
                return str(error)
            if there != _cells(dated(table, edition.period)).rows():
                return f"{self.name}: other rows in {named(edition, name)}"
        return None

    def _read(self, query: str, values: tuple[str, ...]) -> list[tuple[object, ...]]:
        """Rows of the file, which is not written to."""
        try:
            with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
                return connection.execute(query, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise SourceError(f"{self.name}: {_reason(error)}.") from None

    @staticmethod
    def _put(connection: sqlite3.Connection, edition: Edition) -> None:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {DONE[0]} ({DONE[1]})")
        key = edition.release, edition.period.name
        found = connection.execute(f"SELECT digest FROM {DONE[0]} WHERE release = ? AND period = ?", key).fetchone()  # noqa: S608
        if found is not None and found[0] != digest_of(edition):
            raise SourceError(f"{edition.release}: the database holds other answers for {edition.period.name}.")
        for name, table in edition.tables.items():
            if found is not None and _there(connection, named(edition, name), column_of(table), edition.period.name):
                continue
            cells, place = _cells(dated(table, edition.period)), quoted(named(edition, name))
            kinds = ", ".join(f"{quoted(one)} {KINDS.get(type(kind), 'TEXT')}" for one, kind in cells.schema.items())
            connection.execute(f"CREATE TABLE IF NOT EXISTS {place} ({kinds})")
            slots = ", ".join("?" * cells.width)
            columns = ", ".join(map(quoted, cells.columns))
            connection.executemany(f"INSERT INTO {place} ({columns}) VALUES ({slots})", cells.iter_rows())  # noqa: S608
        connection.execute(f"INSERT OR IGNORE INTO {DONE[0]} VALUES (?, ?, ?)", (*key, digest_of(edition)))  # noqa: S608


def _there(connection: sqlite3.Connection, table: str, column: str, period: str) -> bool:
    """Whether a table has any row of a period."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone() is None:
        return False
    query = f"SELECT 1 FROM {quoted(table)} WHERE {column} = ? LIMIT 1"  # noqa: S608  quoted
    return connection.execute(query, (period,)).fetchone() is not None


def _reason(error: Exception) -> str:
    """What to say of an error of SQLite, which may be one of reading its message where that quotes damage."""
    return DAMAGED if isinstance(error, UnicodeDecodeError) else str(error)


def _cells(table: pl.DataFrame) -> pl.DataFrame:
    """Times and the like as text: SQLite has none."""
    table = in_text(table, pl.Duration)
    odd = [name for name, kind in table.schema.items() if kind.is_temporal() or kind == pl.Decimal]
    return table.with_columns(pl.col(odd).cast(pl.String)) if odd else table
