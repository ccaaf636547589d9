"""Parts: what a worker has read of its partitions, sealed, until an epoch has taken it in.

A part says for each partition from where and up to where it was read, and at which time of the database's clock the
look began that read it to its end. The keeper takes it only where the part before ended: one that is repeated, left out
or put back from a copy is noticed, and ends the stream.

Windows close a lateness before the earliest time by which every partition was read, whoever reads it. So a worker that
is away holds windows back, and makes no record late.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from wpinq.core.records.batch import WEIGHT
from wpinq.errors import SourceError
from wpinq.streaming.frames import SIZE, framed
from wpinq.streaming.ingest_stats import Received
from wpinq.streaming.shared.home import Home

if TYPE_CHECKING:
    import psycopg

MANY = 64
"""Parts that are read from the database at a time."""
LARGE = 1 << 24
"""Bytes of records in a part, about; a database holds no value of a gigabyte, and a server may end at one."""


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """What was read of some partitions.

    Attributes:
        before: Up to where each had been read, as JSON; None at its beginning.
        after: Up to where each has been read now.
        looked: When the look began by which all that had come was read, in microseconds of the database's clock; None
            where more had come.
        frame: The records, with weights: equal ones are added up.
        received: How much came; for the curator alone.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    looked: int | None
    frame: pl.DataFrame
    received: Received = field(default_factory=Received)

    @property
    def records(self) -> pl.DataFrame:
        """The records, each as often as it came."""
        return self.frame.drop(WEIGHT)[np.repeat(np.arange(self.frame.height), self.frame[WEIGHT].to_numpy())]

    def sealed(self, home: Home) -> bytes:
        """As the database holds it."""
        about = {"before": self.before, "after": self.after, "looked": self.looked, "received": self.received.facts}
        buffer = io.BytesIO()
        buffer.write(framed(json.dumps(about).encode()))
        self.frame.write_ipc_stream(buffer, compression="zstd")
        return home.sealed("part", buffer.getvalue())

    @classmethod
    def opened(cls, home: Home, content: bytes) -> Part:
        """What the database holds.

        Raises:
            SourceError: It was changed.
        """
        clear = home.opened("part", content)
        size = SIZE + int.from_bytes(clear[:SIZE], "little")
        about = json.loads(clear[SIZE:size])
        received = Received()
        received.add(**about["received"])
        return cls(about["before"], about["after"], about["looked"], pl.read_ipc_stream(io.BytesIO(clear[size:])),
                   received)  # fmt: skip


def divided(part: Part) -> Iterator[Part]:
    """A part as several that a database can hold, to be written in one transaction.

    Each goes on where the one before ended, as any part does: at a place that these alone know of.
    """
    *first, last = _pieces(part.frame)
    place, before = os.urandom(16).hex(), part.before
    for number, frame in enumerate(first):
        after = {name: [place, number] for name in part.after}
        yield Part(before, after, None, frame)
        before = after
    yield Part(before, part.after, part.looked, last, part.received)


def _pieces(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The rows of a frame in pieces that are not large, or of one row."""
    half = frame.height // 2
    if half and frame.estimated_size() > LARGE:
        yield from _pieces(frame[:half])
        yield from _pieces(frame[half:])
    else:
        yield frame


def write(connection: psycopg.Connection[Any], home: Home, sealed: bytes) -> None:
    """Write a sealed part, in a transaction that has checked the leases of its partitions."""
    insert = home.sql("INSERT INTO {parts} (stream, frame) VALUES (%s, %s)")
    connection.execute(insert, [home.stream, sealed])


class Parts:
    """What the keeper takes of a stream: the parts that workers have written, each once.

    Args:
        home: The stream.

    Attributes:
        home: The stream.
        taken: The numbers of the parts that are in the open epoch.
    """

    def __init__(self, home: Home) -> None:
        self.home, self._positions = home, dict[str, Any]()
        self._looked: dict[str, int] = {}
        self._awaited: set[str] = set()
        self.taken: list[int] = []

    def positions(self) -> dict[str, Any]:
        """Up to where each partition is in closed epochs and in the open one."""
        return dict(self._positions)

    @property
    def looked(self) -> int | None:
        """The time by which every partition was read, in microseconds; None where one was not since this began."""
        times = [self._looked.get(name) for name in self._awaited or self._looked]
        return min((time for time in times if time is not None), default=None) if None not in times else None

    @property
    def read_at(self) -> dict[str, int | None]:
        """For each partition that is awaited, the time by which it was read, as `looked` has it."""
        return {name: self._looked.get(name) for name in sorted(self._awaited or self._looked)}

    def take(self) -> Iterator[Part]:
        """The parts that were written since.

        Raises:
            SourceError: The database cannot be used, or one does not begin where the one before ended.
        """
        some = self.home.sql(
            "SELECT number, frame FROM {parts} WHERE stream = %s AND NOT number = ANY(%s) ORDER BY number LIMIT %s"
        )
        with self.home.connected() as connection:
            before = self._named(connection)  # whose last part may come, and which are not awaited any more, meanwhile
            while rows := connection.execute(some, [self.home.stream, self.taken, MANY]).fetchall():
                for number, frame in rows:
                    yield self._next(number, Part.opened(self.home, frame))
            self._awaited = before | self._named(connection)

    def resume(self, positions: Mapping[str, Any]) -> None:
        """Begin after the last closed epoch, up to which partitions were read as `positions` told it."""
        self._positions = dict(positions)

    def closed(self) -> None:
        """Go on after the open epoch was closed with all that was taken."""
        self.taken = []

    def close(self) -> None:
        """Nothing is held open."""

    def _named(self, connection: psycopg.Connection[Any]) -> set[str]:
        """The partitions that windows wait for."""
        query = self.home.sql("SELECT name FROM {leases} WHERE stream = %s AND awaited")
        return {name for (name,) in connection.execute(query, [self.home.stream]).fetchall()}

    def _next(self, number: int, part: Part) -> Part:
        if any(self._positions.get(name) != before for name, before in part.before.items()):
            raise SourceError(
                f"{self.home.label}: what was read of a partition does not go on where it had ended; the database was"
                " edited, or put back. Put back its newest state."
            )
        self._positions |= part.after
        if part.looked is not None:
            self._looked |= dict.fromkeys(part.after, part.looked)
        self.taken.append(number)
        return part
