"""A worker of a shared stream: it reads the partitions that it leases, and writes what came as parts.

It ends when its standard input does, which is when the process that started it is gone. It gives its leases back then;
where it is killed, they end by themselves. What fails is tried again from what the database says.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from wpinq.core.records import canonical
from wpinq.core.records.batch import Batch
from wpinq.errors import EngineError, SourceError, redacted
from wpinq.streaming.ingest_stats import Received
from wpinq.streaming.shared import parts, sources
from wpinq.streaming.shared.home import Home
from wpinq.streaming.shared.leases import Holder, Lease
from wpinq.streaming.shared.parts import Part

if TYPE_CHECKING:
    import psycopg

MANY, LARGE = 1 << 20, 1 << 28
"""Records, and bytes of them, after which a worker writes what it has, though more has come."""
PAUSE = 1.0
"""Seconds after which what failed is tried again."""


class Worker:
    """Reads partitions of one source for one stream.

    Args:
        home: The stream.
        source: What is read.
        holder: Its leases.
        connection: To the stream's database.
    """

    def __init__(
        self, home: Home, source: sources.Source, holder: Holder, connection: psycopg.Connection[Any]
    ) -> None:  # fmt: skip
        self._home, self._source, self._schema, self._holder = home, source, home.columns, holder
        self._connection = connection
        self._leases: dict[str, Lease] = {}
        self._before: dict[str, Any] = {}
        self._balanced = float("-inf")

    def look(self) -> None:
        """Read once what has come to the partitions that it leases, and write it.

        Raises:
            SourceError: The source or the database cannot be used, or a lease was lost; what was read is read again, by
                this worker or another.
        """
        if time.monotonic() - self._balanced > self._holder.seconds / 3:
            self._balance()
        if self._leases:
            self._read()

    def _balance(self) -> None:
        leases = self._holder.balance(
            self._connection, self._source.names(), self._source.name, moving=self._source.moving
        )
        if {name: lease.fence for name, lease in leases.items()} != {
            name: lease.fence for name, lease in self._leases.items()
        }:
            self._source.assign({name: lease.position for name, lease in leases.items()})
            self._before = {name: lease.position for name, lease in leases.items()}
        self._leases, self._balanced = leases, time.monotonic()

    def _read(self) -> None:
        batches, received, began = list[Batch](), Received(offered=-self._source.offered), self._time()
        for frame in self._source.look():
            if self._source.moving and _large(batches):
                self._write(batches, received, None)
                batches, received = [], Received(offered=-self._source.offered)
            received.take(frame)
            records = canonical.frame(frame[list(self._schema.names)], self._schema)
            batches.append(Batch.of(records, self._schema).consolidate())
        received.offered += self._source.offered
        self._write(batches, received, began)

    def _write(self, batches: list[Batch], received: Received, looked: int | None) -> None:
        after, records = self._source.positions(), Batch.concat(batches, self._schema).consolidate()
        part = Part(self._before, after, looked, records.frame, received)
        pieces = [piece.sealed(self._home) for piece in parts.divided(part)]
        moved = {name: place for name, place in after.items() if place != self._before.get(name)}
        with self._connection.transaction():
            self._holder.check(self._connection, self._leases)
            self._holder.advance(self._connection, moved)
            for piece in pieces:
                parts.write(self._connection, self._home, piece)
        self._before = after

    def _time(self) -> int:
        query = "SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint"
        row = self._connection.execute(query).fetchone()
        assert row is not None  # noqa: S101  a clock has a time
        return int(row[0])


def _large(batches: list[Batch]) -> bool:
    return sum(map(len, batches)) >= MANY or sum(batch.frame.estimated_size() for batch in batches) >= LARGE


def work(told: dict[str, Any], stop: threading.Event) -> None:
    """Read until it is time to stop; what fails is said once, and tried again."""
    home, failure = Home.of(told["home"]), ""
    with closing(Holder(home, told["seconds"])) as holder:
        while not stop.is_set():
            try:
                with home.connected() as connection, closing(sources.opened(told["source"], home.columns)) as source:
                    worker = Worker(home, source, holder, connection)
                    while not stop.is_set():
                        redacted("a worker", partial(_look, home, worker))
                        failure = ""
                        stop.wait(told["every"])
            except (SourceError, EngineError) as error:
                if str(error) != failure:
                    failure = str(error)
                    sys.stderr.write(f"wpinq worker: {failure}\n")
                stop.wait(PAUSE)


def _look(home: Home, worker: Worker) -> None:
    with home.trouble():
        worker.look()


def _wait(stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()


def main() -> int:
    """Work as standard input says, until it ends."""
    for number in (signal.SIGTERM, signal.SIGINT):  # a service manager tells all; this one ends with its parent
        signal.signal(number, signal.SIG_IGN)
    told, stop = json.loads(sys.stdin.readline() or "null"), threading.Event()
    if told is None:
        return 1
    threading.Thread(target=_wait, args=(stop,), daemon=True).start()
    work(told, stop)
    return 0
