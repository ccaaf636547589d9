"""Tables of PostgreSQL: one for each question, the period in its first column; a period is one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl

from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.sinks.place import Edition
from wpinq.apps.publish.sinks.rows import DONE, column_of, dated, digest_of, named
from wpinq.errors import SourceError, needs
from wpinq.html.written import in_text
from wpinq.sources.databases.postgres import quoted, reason


class PostgresTables:
    """See `Place`.

    Args:
        url: `postgresql://user@host/database`.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = f"postgres {url.rpartition('@')[2].partition('?')[0].removeprefix('postgresql://')}"

    def check(self, period: Period, *, fresh: bool) -> None:
        """See `Place.check`."""
        with self._cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchall()

    def deliver(self, edition: Edition) -> None:
        """See `Place.deliver`."""
        import adbc_driver_postgresql.dbapi as driver

        with self._cursor() as cursor:
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {DONE[0]} ({DONE[1]})")
            cursor.execute(f"LOCK TABLE {DONE[0]} IN EXCLUSIVE MODE")
            key = edition.release, edition.period.name
            cursor.execute(f"SELECT digest FROM {DONE[0]} WHERE release = $1 AND period = $2", key)  # noqa: S608
            found = cursor.fetchall()
            if found and found[0][0] != digest_of(edition):
                raise SourceError(f"{self.name}: holds other answers for {edition.period.name}.")
            for name, table in edition.tables.items():
                if found and _there(cursor, named(edition, name), column_of(table), edition.period.name):
                    continue
                rows = _held(dated(table, edition.period)).to_arrow()
                try:
                    cursor.adbc_ingest(named(edition, name), rows, mode="create_append")
                except driver.ProgrammingError:
                    columns = ", ".join(rows.column_names)
                    raise SourceError(f"{self.name}: table {named(edition, name)} has other columns than the answers, "
                                      f"{columns}; rename or drop it.") from None  # fmt: skip
            if not found:
                cursor.execute(f"INSERT INTO {DONE[0]} VALUES ($1, $2, $3)", (*key, digest_of(edition)))  # noqa: S608
            cursor.connection.commit()

    def differs(self, edition: Edition) -> str | None:
        """See `Place.differs`."""
        for name, table in edition.tables.items():
            wanted = _held(dated(table, edition.period))
            columns = ", ".join(map(quoted, wanted.columns))
            query = f"SELECT {columns} FROM {quoted(named(edition, name))} WHERE {column_of(table)} = $1"  # noqa: S608  quoted
            try:
                with self._cursor() as cursor:
                    cursor.execute(query, (edition.period.name,))
                    there = pl.DataFrame(pl.from_arrow(cursor.fetch_arrow_table()))
            except SourceError as error:
                return str(error)
            if not there.cast(dict(wanted.schema)).sort(pl.all()).equals(wanted.sort(pl.all())):  # type: ignore[arg-type]
                return f"{self.name}: other rows in {named(edition, name)}"
        return None

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """A cursor in a transaction, which is undone unless it was committed."""
        needs("postgres", self.name)
        import adbc_driver_postgresql.dbapi as driver

        try:
            with driver.connect(self._url) as connection, connection.cursor() as cursor:
                yield cursor
        except SourceError:
            raise
        except Exception as error:  # noqa: BLE001  a driver may raise anything, and quote passwords
            raise SourceError(f"{self.name}: {reason(error)}.") from None


def _held(table: pl.DataFrame) -> pl.DataFrame:
    """A table as PostgreSQL holds it: it has no zero byte in text, and gives no duration back as it was."""
    table = in_text(table, pl.Duration)
    return table.with_columns(pl.col(pl.String).str.replace_all("\0", "\N{REPLACEMENT CHARACTER}", literal=True))


def _there(cursor: Any, table: str, column: str, period: str) -> bool:
    """Whether a table has any row of a period."""
    cursor.execute("SELECT to_regclass($1) IS NOT NULL", (quoted(table),))
    if not cursor.fetchall()[0][0]:
        return False
    cursor.execute(f"SELECT 1 FROM {quoted(table)} WHERE {column} = $1 LIMIT 1", (period,))  # noqa: S608  quoted
    return bool(cursor.fetchall())
