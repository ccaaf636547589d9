"""A release that several hosts follow: each reads, and one at a time sorts, closes and publishes.

What they share is the database of the ledger. A period closes a lateness after its end by the clock of whoever keeps
the stream, and not before all partitions were read up to then, by the clock of the database: a host or a worker that is
away makes no record late.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from wpinq.apps.publish.budgets import Allowance, new_promise
from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.stream import spool_of, topic_of
from wpinq.apps.publish.streams.spool import Spool
from wpinq.apps.publish.streams.spool_database import Database, Taken
from wpinq.core import Ledger, Schema
from wpinq.errors import PlanError
from wpinq.streaming.shared.crew import LONGEST, MOST, Workers, employed
from wpinq.streaming.shared.home import Home
from wpinq.streaming.shared.keeper import TABLE, HeldError
from wpinq.streaming.shared.sources import check
from wpinq.streaming.source import in_database

if TYPE_CHECKING:
    from wpinq.apps.publish.publisher import Publisher


def home_of(publisher: Publisher, schema: Schema, ledger: Ledger) -> Home:
    """Where several hosts keep the stream of a release, whose ledger is in a database."""
    return Home.in_ledger(publisher.opening.ledger, ledger, schema, "release", publisher.name, repr(schema))


def refuse_shared(publisher: Publisher, schema: Schema) -> None:
    """Refuse to follow alone what several hosts follow: records would be in two spools.

    Raises:
        PlanError: They do.
    """
    path = publisher.opening.ledger
    if not in_database(path) or (ledger := Ledger.find(path)) is None:
        return
    if home_of(publisher, schema, ledger).stream in ledger.side(TABLE).entries:
        raise PlanError("follow: this release is followed by several processes, and its records are in the database of"
                        " its ledger; give --workers.")  # fmt: skip


class Host:
    """What this host does for a release that several hosts follow: its workers read, until it is closed.

    Args:
        publisher: Publishes the periods.
        schema: The columns of records.
        number: How many processes of this host read.

    Attributes:
        home: The stream.
        waits: That another process keeps the stream; None where this one does.

    Raises:
        PlanError: The ledger is in no database, or records are sent to the release, or a question cannot be asked.
        SourceError, LedgerError: The stream or the database cannot be used.
    """

    def __init__(self, publisher: Publisher, schema: Schema, number: int) -> None:
        self._publisher, data, stream = publisher, publisher.file.data, publisher.file.stream
        if stream is None or publisher.opening.intake is not None:
            raise PlanError("--workers: leave it out; records that are sent are taken by one process.")
        if not 0 <= number <= MOST:
            raise PlanError(f"follow(workers={number}): takes a number of processes, from 0 to {MOST}.")
        if not in_database(publisher.opening.ledger):
            raise PlanError("--workers: give data.ledger the URL of a PostgreSQL database; the stream is kept in it.")
        source, form = topic_of(data) or str(publisher.home / data.source), data.form("table", "tz")
        check(source, schema, form)  # mistakes show before a ledger is made
        self._ledger = self._opened()
        self.home = home_of(publisher, schema, self._ledger)
        self._store: Database | None = None
        self.waits: HeldError | None = None
        self.home.make()
        every = min(stream.every / 2, LONGEST)
        self._employed = partial(employed, self.home, source, form, number, every, history=True) if number else None
        self._workers: Workers | None = None

    def keep(self, at: str | None, now: dt.datetime, *, late: bool) -> tuple[Spool, Taken]:
        """The spool, of which this process is the keeper from now on, and what reads for it.

        The workers of this host begin once it is known that the stream is of this version of wpinq, whoever keeps it.

        Raises:
            HeldError: Another process keeps it.
            PlanError, SourceError, LedgerError: See `Database` and `Spool`.
        """
        file, publisher = self._publisher.file, self._publisher
        try:
            store = Database(self.home, self._ledger, spool_of(file.data, publisher.name, publisher.home))
        except HeldError as held:
            self.waits = held
            self._begin()
            raise
        spool = Spool(store, self.home.columns, at, file.period, now, late=late)
        self._begin()
        self._store, self.waits, publisher.register.write = store, None, store.change
        return spool, Taken(store.parts)

    def _begin(self) -> None:
        if self._workers is None and self._employed is not None:
            self._workers = self._employed()

    def left(self) -> None:
        """Know that this process keeps the spool no more."""
        self._store = self._publisher.register.write = None

    def until(self, now: dt.datetime) -> dt.datetime | None:
        """The time up to which all partitions were read; None where one was not yet since this process keeps them."""
        looked = None if self._store is None else self._store.parts.looked
        return None if looked is None else min(now, dt.datetime.fromtimestamp(looked / 10**6, dt.UTC))

    @property
    def keeper(self) -> str | None:
        """The host that keeps the stream, "" where it is not known; None where this process does."""
        if self._store is not None:
            return None
        return "" if self.waits is None else self.waits.keeper

    @property
    def read_at(self) -> Mapping[str, int | None]:
        """For each partition the time by which it was read, in microseconds; nothing where another process keeps it."""
        store = self._store  # a scraper asks in a thread of its own
        return {} if store is None else store.parts.read_at

    def close(self) -> None:
        """Let the workers end."""
        if self._workers is not None:
            self._workers.close()

    def _opened(self) -> Ledger:
        """The ledger, which is made where there is none, once it is known that its questions can be asked."""
        publisher, file = self._publisher, self._publisher.file
        if (ledger := Ledger.find(publisher.opening.ledger)) is not None:
            return ledger
        period, promise = Period.of(publisher.clock().replace(tzinfo=None), file.period.every), new_promise(file.budget)
        publisher.asked(publisher.opening.imagined(period, curves=promise.begun().curves), promise)
        return publisher.opening.opened(Allowance(file.budget, publisher.register, period).terms)
