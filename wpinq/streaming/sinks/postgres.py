"""A table of PostgreSQL."""

from __future__ import annotations

from typing import Any

from wpinq.errors import SourceError, needs
from wpinq.sources.databases.postgres import from_url, quoted, reason
from wpinq.streaming.sinks.sink import Release


class PostgresTable:
    """Inserts a row for each answer, an epoch in one transaction, and leaves out rows whose key is there.

    The table is made where there is none; one that was made before needs `Release.columns`, with a unique key.

    Args:
        url: `postgresql://user@host/database?table=answers`.
    """

    def __init__(self, url: str) -> None:
        place = from_url(url)
        if place.table is None:
            raise SourceError("--to postgresql://...: name the table, postgresql://user@host/database?table=answers.")
        needs("postgres", "--to postgresql://...")
        import adbc_driver_postgresql.dbapi as driver

        self._driver: Any = driver
        self._url, self._table, self.name = place.url, place.rows, place.where

    def deliver(self, release: Release) -> None:
        """See `Sink.deliver`.

        Raises:
            SourceError: The server is not reached, or refuses.
        """
        if not release.rows:
            return
        columns = release.columns
        names = ", ".join(map(quoted, columns))
        slots = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
        made = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        insert = f"INSERT INTO {self._table} ({names}) VALUES ({slots}) ON CONFLICT (key) DO NOTHING"  # noqa: S608  quoted
        try:
            with self._driver.connect(self._url) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT to_regclass($1)::text", (self._table,))
                if cursor.fetchone()[0] is None:
                    cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({made}, PRIMARY KEY (key))")
                cursor.executemany(insert, release.frame().select(list(columns)).to_arrow())
                connection.commit()
        except Exception as error:  # noqa: BLE001  a driver may raise anything, and quote passwords
            raise SourceError(f"{self.name}: {reason(error)}.") from None

    def close(self) -> None:
        """Nothing is held open."""
