"""Leases: who reads a partition, and who keeps the stream, until when, by the database's clock alone.

A lease has a *fencing number*, which grows each time that it passes to somebody. What its holder writes is written in
a transaction that locks the lease and finds its own number there. So whoever was frozen while its lease ended, and goes
on as if nothing had happened, is refused, whatever its clock says.

Source: C. Gray and D. Cheriton, "Leases", SOSP 1989; fencing as in M. Burrows, "The Chubby lock service", OSDI 2006,
2.4 (sequencers).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wpinq.errors import SourceError, WpinqError
from wpinq.streaming.shared.home import Home

if TYPE_CHECKING:
    import psycopg

SECONDS = 15.0
"""For which a lease holds without being renewed."""
KEEPER = "keeper"
_MEMBER = "worker "
LOST = "its lease has ended, and another process has taken over"


class LostError(SourceError):
    """A lease has passed to somebody else."""


@dataclass(frozen=True)
class Lease:
    """A lease that is held.

    Attributes:
        fence: Its fencing number.
        position: Up to where the partition was read, as JSON; None at the beginning.
    """

    fence: int
    position: Any = None


class Holder:
    """A process that holds leases, and renews them from a thread until it is closed.

    Args:
        home: The stream.
        seconds: For how long a lease holds without being renewed.
    """

    def __init__(self, home: Home, seconds: float = SECONDS) -> None:
        self.code, self.seconds = os.urandom(8).hex(), seconds
        self._home, self._stop = home, threading.Event()
        threading.Thread(target=self._renew, name="wpinq renews leases", daemon=True).start()

    def keep(self) -> Lease | None:
        """Become the keeper of the stream, if there is none.

        Raises:
            SourceError: The database cannot be used.
        """
        with self._home.connected() as connection, connection.transaction():
            return self._taken(connection, KEEPER, awaited=False)

    def balance(
        self, connection: psycopg.Connection[Any], partitions: Sequence[str], *, moving: bool
    ) -> dict[str, Lease]:
        """Lease a fair share of partitions: what nobody reads, and no more than there are for each worker.

        Args:
            partitions: The names of those that this worker can read.
            moving: Whether others can read them too; else they are awaited only while somebody reads them.

        Returns:
            All that this worker holds now.
        """
        member = _MEMBER + self.code
        everything = self._home.sql(
            "SELECT name, holder, ends <= pg_catalog.clock_timestamp() FROM {leases}"
            " WHERE stream = %s AND name <> %s ORDER BY name FOR UPDATE"
        )
        with connection.transaction():
            self._taken(connection, member, awaited=False)
            for name in partitions:
                self._add(connection, name, awaited=moving)
            rows = connection.execute(everything, [self._home.stream, KEEPER]).fetchall()
            members = sum(name.startswith(_MEMBER) and not ended for name, _, ended in rows)
            known = {name: (holder, ended) for name, holder, ended in rows if not name.startswith(_MEMBER)}
            fair = -(-len(known) // max(members, 1))
            mine = [name for name in partitions if known[name][0] == self.code]
            for name in mine[fair:]:
                self._release(connection, name)
            mine = mine[:fair]
            free = [name for name in partitions if known[name][0] != self.code and known[name][1]]
            mine += [name for name in free[: fair - len(mine)] if self._taken(connection, name, awaited=True)]
            self._forget_members(connection)
            return self._held(connection, mine)

    def check(self, connection: psycopg.Connection[Any], leases: Mapping[str, Lease]) -> None:
        """Lock leases, in a transaction that writes what they allow.

        Raises:
            LostError: One has passed to somebody else; the transaction must not be committed.
        """
        query = self._home.sql(
            "SELECT name, fence FROM {leases} WHERE stream = %s AND name = ANY(%s) AND holder = %s"
            " ORDER BY name FOR UPDATE"
        )
        rows = connection.execute(query, [self._home.stream, list(leases), self.code]).fetchall()
        if dict(rows) != {name: lease.fence for name, lease in leases.items()}:
            raise LostError(f"{self._home.label}: {LOST}.")

    def advance(self, connection: psycopg.Connection[Any], positions: Mapping[str, Any]) -> None:
        """Write up to where partitions are read, in a transaction that has checked their leases."""
        update = self._home.sql("UPDATE {leases} SET position = %s WHERE stream = %s AND name = %s")
        for name, position in positions.items():
            content = self._home.sealed(f"position {name}", json.dumps(position).encode())
            connection.execute(update, [content, self._home.stream, name])

    def close(self) -> None:
        """Give back what is held, so that others need not wait for its end. What fails ends by itself."""
        self._stop.set()
        update = self._home.sql(
            "UPDATE {leases} SET holder = '', ends = '-infinity', awaited = awaited AND name NOT LIKE 'files %%'"
            " WHERE stream = %s AND holder = %s"
        )
        with suppress(WpinqError), self._home.connected() as connection:
            connection.execute(update, [self._home.stream, self.code])

    def _renew(self) -> None:
        update = self._home.sql(
            "WITH mine AS (SELECT stream, name FROM {leases} WHERE stream = %s AND holder = %s"
            " ORDER BY name FOR UPDATE) UPDATE {leases} AS t"
            " SET ends = pg_catalog.clock_timestamp() + %s * interval '1 second' FROM mine"
            " WHERE t.stream = mine.stream AND t.name = mine.name"
        )
        while not self._stop.wait(self.seconds / 3):
            with suppress(WpinqError), self._home.connected() as connection:
                connection.execute(update, [self._home.stream, self.code, self.seconds])

    def _add(self, connection: psycopg.Connection[Any], name: str, *, awaited: bool) -> None:
        insert = self._home.sql(
            "INSERT INTO {leases} VALUES (%s, %s, '', 0, '-infinity', %s, NULL) ON CONFLICT (stream, name) DO NOTHING"
        )
        connection.execute(insert, [self._home.stream, name, awaited])

    def _taken(self, connection: psycopg.Connection[Any], name: str, *, awaited: bool) -> Lease | None:
        """Take a lease that nobody else holds; one that is held already is renewed, and keeps its number."""
        self._add(connection, name, awaited=awaited)
        update = self._home.sql(
            "UPDATE {leases} SET fence = fence + (holder <> %s)::int, holder = %s, awaited = awaited OR %s,"
            " ends = pg_catalog.clock_timestamp() + %s * interval '1 second' WHERE stream = %s AND name = %s"
            " AND (holder = %s OR ends <= pg_catalog.clock_timestamp()) RETURNING fence"
        )
        row = connection.execute(
            update, [self.code, self.code, awaited, self.seconds, self._home.stream, name, self.code]
        ).fetchone()
        return None if row is None else Lease(row[0])

    def _release(self, connection: psycopg.Connection[Any], name: str) -> None:
        update = self._home.sql("UPDATE {leases} SET holder = '', ends = '-infinity' WHERE stream = %s AND name = %s")
        connection.execute(update, [self._home.stream, name])

    def _forget_members(self, connection: psycopg.Connection[Any]) -> None:
        """Remove workers that have ended for long."""
        delete = self._home.sql(
            "DELETE FROM {leases} WHERE stream = %s AND name LIKE 'worker %%'"
            " AND ends < pg_catalog.clock_timestamp() - interval '1 hour'"
        )
        connection.execute(delete, [self._home.stream])

    def _held(self, connection: psycopg.Connection[Any], names: Sequence[str]) -> dict[str, Lease]:
        query = self._home.sql(
            "SELECT name, fence, position FROM {leases} WHERE stream = %s AND name = ANY(%s) ORDER BY name"
        )
        rows = connection.execute(query, [self._home.stream, list(names)]).fetchall()
        return {
            name: Lease(fence, None if sealed is None else json.loads(self._home.opened(f"position {name}", sealed)))
            for name, fence, sealed in rows
        }
