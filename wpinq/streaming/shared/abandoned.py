"""Partitions that nobody will read any more: those of a host that died for good, or of a topic that was left.

Windows wait for every partition, whoever is away (`parts.py`), so that a host that is started again finds no record of
its own late. Only a person knows that one never will be.

*Why nothing is counted twice.* What is done here changes whether windows wait, and no position. It takes the leases
too, under a new fencing number: a process that was frozen, and not dead, is refused what it writes, and has to lease
its partitions again, from where they were read to; then windows wait for it again. So a record is in one part, as ever,
and late where its window has closed meanwhile. What the host had written before it died is taken in first
(`Parts.take`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wpinq.core.ledger.stores.address import address_of
from wpinq.errors import SourceError
from wpinq.streaming.shared.home import Tables
from wpinq.streaming.shared.leases import KEEPER, SECONDS

SHOWN = 10
"""Names that a message lists."""


@dataclass(frozen=True)
class Abandoned:
    """What became of partitions.

    Attributes:
        left: Those that windows wait for no more.
        read: Those that somebody reads, for which they still wait.
    """

    left: tuple[str, ...]
    read: tuple[str, ...]


def abandon(ledger: Path, name: str) -> Abandoned:
    """Let the windows of all streams of a ledger wait no more for some partitions, until somebody reads them again.

    Args:
        ledger: The path that stands for it.
        name: A partition, or the words that the names of some begin with: `files HOST`, `kafka TOPIC`.

    Raises:
        SourceError: It is a file, there is no such partition, or the database cannot be used.
    """
    address = address_of(ledger)
    if address is None:
        raise SourceError("a ledger in a file keeps no partitions; give the URL of the one in PostgreSQL.")
    tables = Tables(address)
    found = tables.sql(
        "SELECT stream, name, {ended} FROM {leases} WHERE (name = %s OR starts_with(name, %s))"
        " AND name <> %s AND name NOT LIKE 'worker %%' ORDER BY name, stream FOR UPDATE"
    )
    take = tables.sql(
        "UPDATE {leases} SET holder = '', fence = fence + 1, ends = '-infinity', awaited = false"
        " WHERE stream = %s AND name = %s"
    )
    every = tables.sql(
        "SELECT DISTINCT name FROM {leases} WHERE name <> %s AND name NOT LIKE 'worker %%' ORDER BY name LIMIT %s"
    )
    with tables.connected() as connection, connection.transaction():
        made = connection.execute("SELECT pg_catalog.to_regclass(%s)", [f"{tables.schema}.stream_leases"]).fetchone()
        if made == (None,):
            raise SourceError(f"{tables.label}: no stream is kept in this ledger; give the URL of the one that has it.")
        rows = connection.execute(found, [2 * SECONDS, name, f"{name} ", KEEPER]).fetchall()
        ended = [(stream, partition) for stream, partition, over in rows if over]
        for row in ended:
            connection.execute(take, row)
        others = () if rows else connection.execute(every, [KEEPER, SHOWN]).fetchall()
    if not rows:
        there = "; ".join(partition for (partition,) in others) or "none"
        raise SourceError(f"{tables.label}: no partition is called {name!r}, or begins with that. There are: {there}.")
    return Abandoned(
        tuple(dict.fromkeys(partition for _, partition in ended)),
        tuple(dict.fromkeys(partition for _, partition, over in rows if not over)),
    )
