"""`wpinq.live`: a protected source that a caller sends to while its dataflow stays up in this process."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq.collection import Collection
from wpinq.dataset import DataSet
from wpinq.errors import EngineError, PlanError
from wpinq.exact import Amount, positive
from wpinq.ledger import Ledger
from wpinq.operators.bound import bound
from wpinq.operators.share import share
from wpinq.operators.window import moment
from wpinq.plan import Node, Source
from wpinq.runs import refuse_inside
from wpinq.schema import Kind
from wpinq.sources import Columns
from wpinq.sources.columns import named
from wpinq.sources.epochs import Log
from wpinq.sources.given import frames
from wpinq.sources.stream import Growing
from wpinq.streaming.running import Running
from wpinq.unit import Unit

if TYPE_CHECKING:
    from wpinq.secret import Secret


def live(
    columns: Columns,
    budget: Amount,
    *,
    ledger: str | os.PathLike[str] | None = None,
    unit: Unit | None = None,
    name: str = "live",
    lateness: dt.timedelta | None = None,
    secret: Secret | None = None,
) -> Live:
    """Protect records that are still to come.

    Args:
        columns: Names of the columns, whose values may be of any kind, or a mapping from names to types.
        budget: Epsilon that may be spent in all, exact.
        ledger: Where the ledger is kept; in memory by default.
        unit: Whom the guarantee protects: by default one record. With `users(...)` a measurement of an epoch protects
            each person in it, and one of windows protects each person in each window by itself.
        name: Names the data set in its ledger.
        lateness: Windows are closed by the clock, this long after they end, at every `advance()`; columns without a
            zone hold UTC then. By default they are closed by `advance(until=...)` alone.
        secret: The secret of the data set; by default the one beside the ledger, or the environment's.

    Returns:
        The source, which is also the protected collection of all that was sent.

    Raises:
        SourceError: The columns are not declared well.
        ExactnessError: The budget is not a finite number above zero.
        LedgerError: The ledger cannot be trusted or written, or holds another unit or budget.

    >>> views = live({"user": "text", "page": "text"}, budget=1)
    >>> cdf = views.map(lambda page: page).shave().map(lambda page, index: index).measure(epsilon=1)
    >>> views.send([("ann", "home"), ("bob", "home")])
    >>> views.advance()
    1
    >>> type(cdf.observe(1))
    <class 'int'>
    >>> views.close()
    """
    refuse_inside("live")
    log = Log(named(columns, Kind.ANY, None, "live"), name)
    unit = unit or Unit()
    place = None if ledger is None else Path(ledger)
    amount = positive(budget, "live(budget=...)")
    book = Ledger.open(place, name=name, unit=unit.text, budget=amount, secret=secret)
    data = DataSet(log, book, name, f"live {os.urandom(16).hex()}", unit, declared=False)
    return Live(data, log, lateness)


class Live(Collection):
    """A live source: a protected collection that can be sent to.

    Safe under threads. Epochs are closed by the caller alone, never by the number or the contents of records.
    """

    __slots__ = ("__weakref__", "_data", "_end", "_growing", "_lateness", "_lock", "_log", "_running")

    def __init__(self, data: DataSet, log: Log, lateness: dt.timedelta | None) -> None:
        super().__init__(_bounded(Source(data)))
        self._data, self._log, self._lateness = data, log, lateness
        self._growing: dict[str, Growing] = {}
        self._lock, self._running = threading.RLock(), Running(data, log)
        self._end = weakref.finalize(self, self._running.close)

    @property
    def epoch(self) -> int:
        """The number of the last closed epoch; 0 before the first."""
        return self._log.closed

    def send(self, records: Any) -> None:
        """Add records to the epoch that is open.

        Args:
            records: Tuples, or anything with the Arrow C stream protocol that has the columns by name. A value that is
                not of its column's type is null; what is no record is dropped, uncounted.

        Raises:
            SourceError: It holds no such records; none was taken.
            EngineError: The dataflow has failed or was closed.
        """
        refuse_inside("send")
        read = frames(records, self._log.schema)
        with self._lock:
            self._check()
            for frame in read:
                self._log.send(frame)

    def follow(self, files: str | os.PathLike[str]) -> None:
        """Add what was appended to files since they were last followed, whole lines only.

        Args:
            files: A path or pattern of `.log` (of web servers), `.csv`, `.tsv` or `.txt` files. Those that match may
                change from call to call; one that was cut or replaced is read from its beginning.

        Raises:
            SourceError: There is no such file, or its columns are not those of the source.
            EngineError: The dataflow has failed or was closed.
        """
        refuse_inside("follow")
        with self._lock:
            self._check()
            given = os.fspath(files)
            growing = self._growing.setdefault(given, Growing(given, self._log.schema))
            for frame in growing.take():
                self._log.send(frame)

    def advance(self, until: Any = None) -> int:
        """Close the open epoch, and return when every measurement has taken it in.

        Args:
            until: A time, as a window's column holds times: all windows that end by then are closed. What is sent
                later for them belongs to no window any more, and is counted nowhere among windows.

        Returns:
            The number of the epoch, from 1.

        Raises:
            PlanError: `until` is not a time.
            EngineError: A step of the dataflow failed; no epoch can be closed any more.
            LedgerError: The histogram of a measurement could not be sealed.
        """
        refuse_inside("advance")
        with self._lock:
            self._check()
            time_ = self._clock() if until is None else _moment(until)
            self._running.take(self._log.close(time_))
            return self._log.closed

    def close(self) -> None:
        """End the dataflow. What was measured can still be observed; nothing more can be sent."""
        self._end()

    def _check(self) -> None:
        if not self._end.alive:
            raise EngineError("the live source was closed; make another one with wpinq.live(...).")
        self._running.check()

    def _clock(self) -> int | None:
        if self._lateness is None:
            return None
        return time.time_ns() // 1000 - self._lateness // dt.timedelta(microseconds=1)

    def _then(self, node: Node) -> Collection:
        return Collection(node)


def _bounded(source: Source) -> Node:
    """The records as the unit lets them in."""
    if source.data.unit.column is None:
        return source
    return share(source) if source.data.unit.at_most is None else bound(source)


def _moment(until: object) -> int:
    """A time as columns store it: microseconds, or ones where it is a whole number."""
    if isinstance(until, dt.datetime):
        return moment(until, Kind.TIME if until.tzinfo is None else Kind.INSTANT)
    if isinstance(until, dt.date):
        return moment(until, Kind.DATE)
    if isinstance(until, int) and not isinstance(until, bool):
        return until
    raise PlanError(f"advance(until=...): {type(until).__name__} is not a time; give a datetime, a date or an integer.")
