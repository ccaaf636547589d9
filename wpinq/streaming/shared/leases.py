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
import socket
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
        position: Up to where the partition was read, as JSON; None at the beginning. Of the keeper the name of its
            host.
    """

    fence: int
    position: Any = None


class Holder:
    """A process that holds leases, and renews them from a thread until it is closed.

    Args:
        home: The stream.
        seconds: For how long a lease holds without being renewed.

    Attributes:
        keeper: The name of the host on which another process keeps the stream, as `keep` has found; "" where none does.
    """

    def __init__(self, home: Home, seconds: float = SECONDS) -> None:
        self.code, self.seconds, self.keeper = os.urandom(8).hex(), seconds, ""
        self._home, self._stop = home, threading.Event()
        threading.Thread(target=self._renew, name="wpinq renews leases", daemon=True).start()

    def keep(self) -> Lease | None:
        """Become the keeper of the stream, if there is none.

        Raises:
            SourceError: The database cannot be used.
        """
        with self._home.connected() as connection, connection.transaction():
            self._add(connection, [KEEPER])
            if taken := self._take(connection, [KEEPER], awaited=False):
                self.advance(connection, {KEEPER: socket.gethostname()})
                return taken[0]
            self.keeper = str(self._held(connection, [KEEPER])[KEEPER].position or "")
            return None

    def balance(
        self, connection: psycopg.Connection[Any], partitions: Sequence[str], source: str = "", *, moving: bool
    ) -> dict[str, Lease]:
        """Lease a fair share of partitions: what nobody reads, and no more than there are for each worker.

        All rows are locked first, in the order of their names, as whoever renews or gives back does: two who wait for
        each other would both wait until the server ends one of them.

        Args:
            partitions: The names of those that this worker can read.
            source: What names the source that has them; all workers of one source share its partitions.
            moving: Whether others can read them too; else they are awaited only while somebody reads them.

        Returns:
            All that this worker holds now.
        """
        everything = self._home.sql(
            "SELECT name, holder, {ended} FROM {leases} WHERE stream = %s AND name <> %s ORDER BY name FOR UPDATE"
        )
        member, among = f"{_MEMBER}{self.code} {source}", set(partitions)
        with connection.transaction():
            self._add(connection, [*partitions, member], awaited=partitions if moving else [])
            rows = connection.execute(everything, [*self._ended, self._home.stream, KEEPER]).fetchall()
            others = sum(_is_member(name, source) and not ended and holder != self.code for name, holder, ended in rows)
            known = {name: (holder, ended) for name, holder, ended in rows if name in among}
            fair = -(-len(known) // (others + 1))
            mine = [name for name in partitions if known[name][0] == self.code]
            self._release(connection, mine[fair:])
            free = [name for name in partitions if known[name][0] != self.code and known[name][1]]
            taken = free[: max(fair - len(mine), 0)]
            self._take(connection, [member], awaited=False)
            self._take(connection, taken, awaited=True)
            self._forget_members(connection)
            return self._held(connection, [*mine[:fair], *taken])

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
        update = self._home.sql(
            "UPDATE {leases} AS t SET position = new.position"
            " FROM unnest(%s::text[], %s::bytea[]) AS new(name, position) WHERE t.stream = %s AND t.name = new.name"
        )
        contents = [
            self._home.sealed(f"position {name}", json.dumps(position).encode()) for name, position in positions.items()
        ]
        if positions:
            connection.execute(update, [list(positions), contents, self._home.stream])

    def close(self) -> None:
        """Give back what is held, so that others need not wait for its end. What fails ends by itself."""
        self._stop.set()
        update = self._home.sql(
            "{mine} UPDATE {leases} AS t"
            " SET holder = '', ends = '-infinity', awaited = t.awaited AND t.name NOT LIKE 'files %%'"
            " FROM mine WHERE t.stream = mine.stream AND t.name = mine.name"
        )
        with suppress(WpinqError), self._home.connected() as connection:
            connection.execute(update, [self._home.stream, self.code])

    @property
    def _ended(self) -> list[float]:
        """What {ended} is told: a lease that ends later than any can is of a time before the clock was put back."""
        return [2 * self.seconds]

    def _renew(self) -> None:
        update = self._home.sql(
            "{mine} UPDATE {leases} AS t SET ends = pg_catalog.clock_timestamp() + %s * interval '1 second' FROM mine"
            " WHERE t.stream = mine.stream AND t.name = mine.name"
        )
        while not self._stop.wait(self.seconds / 3):
            with suppress(WpinqError), self._home.connected() as connection:
                connection.execute(update, [self._home.stream, self.code, self.seconds])

    def _add(self, connection: psycopg.Connection[Any], names: Sequence[str], awaited: Sequence[str] = ()) -> None:
        """Add leases that are not there yet, in the order of their names."""
        insert = self._home.sql(
            "INSERT INTO {leases} SELECT %s, name, '', 0, '-infinity', name = ANY(%s), NULL FROM unnest(%s::text[])"
            " AS new(name) ON CONFLICT (stream, name) DO NOTHING"
        )
        connection.execute(insert, [self._home.stream, list(awaited), sorted(names)])

    def _take(self, connection: psycopg.Connection[Any], names: Sequence[str], *, awaited: bool) -> list[Lease]:
        """Take leases that nobody else holds; one that is held already is renewed, and keeps its number."""
        update = self._home.sql(
            "UPDATE {leases} SET fence = fence + (holder <> %s)::int, holder = %s, awaited = awaited OR %s,"
            " ends = pg_catalog.clock_timestamp() + %s * interval '1 second' WHERE stream = %s AND name = ANY(%s)"
            " AND (holder = %s OR {ended}) RETURNING fence"
        )
        values = [self.code, self.code, awaited, self.seconds, self._home.stream, list(names), self.code, *self._ended]
        return [Lease(fence) for (fence,) in connection.execute(update, values).fetchall()] if names else []

    def _release(self, connection: psycopg.Connection[Any], names: Sequence[str]) -> None:
        update = self._home.sql(
            "UPDATE {leases} SET holder = '', ends = '-infinity' WHERE stream = %s AND name = ANY(%s)"
        )
        if names:
            connection.execute(update, [self._home.stream, list(names)])

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


def _is_member(name: str, source: str) -> bool:
    """Whether a lease is that of a worker of a source."""
    return name.startswith(_MEMBER) and name.split(" ", 2)[2] == source
