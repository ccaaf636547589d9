"""The records of a period: found, protected under the release's ledger, each period a table of the same people."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from wpinq.apps.publish.file.declared import Data, Records, Schedule
from wpinq.apps.publish.file.owners import led, unit_of
from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.intake import Intake
from wpinq.apps.publish.places import URL, reader_of, source_of, told_of
from wpinq.apps.publish.rows import PeriodSource, condition
from wpinq.core import Asked, ChosenRows, Kind, Ledger, Reader, Schema, instant_of
from wpinq.distributed import engine_of
from wpinq.errors import ChangedError, PlanError
from wpinq.protection import LIMITLESS, protect
from wpinq.sources.kept import kept
from wpinq.sources.tables.tuples import NoRecords

if TYPE_CHECKING:
    from wpinq import Unit
    from wpinq.collection import Collection

TIMES = (Kind.TIME, Kind.INSTANT, Kind.DATE)
Terms: TypeAlias = Callable[[Path], tuple[Asked, Fraction | None]]
"""What a ledger is asked for, and the least that it allows if it is there already; see `Allowance.terms`."""
FIRST = "1"
"""The version of a period's records that is charged for first."""


class Opening:
    """Opens the records of a period.

    Args:
        data: What the release file says of them.
        home: The directory that relative paths start from.
        schedule: Which periods there are, and which column says in which one a record is.
        columns: Gives the columns of a stream's records, whose periods are not there yet.
        intake: Where records that are sent are held, until they are destroyed.
    """

    def __init__(
        self, data: Data, home: Path, schedule: Schedule | None = None, columns: Callable[[], Schema] | None = None,
        intake: Intake | None = None,
    ) -> None:  # fmt: skip
        self._data, self._home, self._schema, self.intake = data, home, columns, intake
        self._schedule = schedule or Schedule()
        self.unit = unit_of(data.unit, data.owners)
        if self.unit.choice is not None:
            raise PlanError("data.unit.at_most: 'auto' belongs to a question, [[question]] at_most = 'auto', whose"
                            " epsilon pays for the choice of each period.")  # fmt: skip
        self.ledger = Ledger.path(data.ledger, home)

    def shown(self, period: Period) -> str:
        """The source of a period, without passwords, which a URL holds before its host or among its parameters."""
        text = period.filled(self._data.source) or "what was sent"
        scheme, _, rest = text.partition("://")
        return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}" if URL.match(text) else text

    def protect(
        self, period: Period, version: str, terms: Terms | None = None, *, index: bool | None = None
    ) -> Collection:
        """Protect the records of a period as a table of its own, `NAME PERIOD`, so that its questions are its own.

        Args:
            period: The period.
            version: Which version of its records it is: the first one, or one that the curator has charged for again.
            terms: What the ledger is opened with; None for one that exists.
            index: False to bound people anew for each question, as a check does.

        Raises:
            ChangedError: It holds other records than those that were charged for under this version.
            SourceError, PlanError, LedgerError: They cannot be read or protected; nothing was charged.
        """
        self.reader(period)  # what is missing shows before a ledger is made
        book: os.PathLike[str] = self.ledger
        name, number = f"{self._data.name} {period.name}", numbered(version)
        if terms is not None:
            book = self.opened(terms, name)
        source, where, told = self._found(period), self._where(period), told_of(self._data)
        if self.by_rows or self.intake is not None:
            told = {}

        def owner(table: str, records: Records, unit: Unit) -> Collection:
            return protect(
                source_of(records, self._home, period), ledger=self.ledger, name=table,
                version=f"{period.name} {number}", unit=unit, **told_of(records),
            )  # fmt: skip

        unit = led(self._data.unit, self._data.owners, owner)
        return protect(
            source, ledger=book, name=name, version=number, unit=unit, where=where,
            derive=self._data.derive or None, engine=engine_of(self._data.processes), index=index, **told,
        )  # fmt: skip

    def _found(self, period: Period) -> Any:
        """The records of a period, as `protect` takes them."""
        if self.intake is not None:
            return self.intake.open_reader(period)
        return self._rows(period) if self.by_rows else self._source(period)

    def opened(self, terms: Terms, *tables: str) -> Ledger:
        """The ledger, with a table of a period, and with the budget that there is by now: one transaction."""
        self.ledger.parent.mkdir(parents=True, exist_ok=True)
        asked, least = terms(self.ledger)
        return Ledger.open(
            self.ledger, name=self._data.name, unit=self.unit.whom, terms=asked, shared=True, tables=tables,
            least=least,
        )  # fmt: skip

    def versioned(self, period: Period, version: str, terms: Terms, *, again: bool) -> Collection:
        """Protect the records of a period as this version, or with `again` as the next that is not charged for.

        Raises:
            ChangedError: It was charged for other records, and nobody said to charge for these too.
        """
        while True:
            try:
                return self.protect(period, version, terms)
            except ChangedError:
                if not again:
                    raise ChangedError(f"{period.name}: was charged for other records than {self.shown(period)} holds;"
                                       " nothing was charged. Put the old ones back, or say --again to charge for these"
                                       " too: who is in both loses both.") from None  # fmt: skip
            version = following(numbered(version))

    def imagined(self, period: Period, *, curves: bool) -> Collection:
        """The same without records, in memory: mistakes and prices show in it.

        Args:
            period: The period.
            curves: Whether the release's ledger adds up more than epsilons.

        Raises:
            SourceError, PlanError: They could not be read or protected.
        """
        empty: dict[str, Any] = {
            "delta": "0.5", "budget": None if curves else LIMITLESS, "rho": LIMITLESS if curves else None,
        }  # fmt: skip

        def owner(table: str, records: Records, unit: Unit) -> Collection:
            schema = reader_of(records, self._home, period).schema
            return protect(NoRecords(schema), name=table, unit=unit, **empty)

        schema = self._schema() if self._schema is not None else self.reader(period).schema
        return protect(
            NoRecords(schema), name=self._data.name, unit=led(self._data.unit, self._data.owners, owner),
            where=self._where(period), derive=self._data.derive or None, **empty,
        )  # fmt: skip

    @property
    def followed(self) -> bool:
        """Whether the records of a period come from a stream, and may not be there yet."""
        return self._schema is not None

    def reader(self, period: Period) -> Reader:
        """What reads the records of a period.

        Raises:
            SourceError: They are not there.
        """
        if self.intake is not None:
            return self.intake.open_reader(period)
        return reader_of(self._data, self._home, period)

    def rows(self, period: Period) -> ChosenRows:
        """What reads the records of a period alone, where a condition says which they are.

        Raises:
            SourceError, PlanError: They cannot be read so.
        """
        return self._rows(period).open_reader(None)

    def _rows(self, period: Period) -> PeriodSource:
        return PeriodSource(lambda: kept(lambda: self.reader(period)), self._where(period) or "true", self._data.derive)

    def _source(self, period: Period) -> Any:
        return source_of(self._data, self._home, period)

    @property
    def by_rows(self) -> bool:
        """Whether a condition says which records are those of a period, so that they alone are compared."""
        return self._schedule.at is not None or "{" in (self._data.where or "")

    def _where(self, period: Period) -> str | None:
        own = None if self._data.where is None else period.filled(self._data.where)
        if self._schedule.at is None:
            return own
        timed = self._timed(self._schedule.at, period)
        return timed if own is None else f"({own}\n) and {timed}"

    def _timed(self, at: str, period: Period) -> str:
        """The condition that a record's time is in a period, by the clocks of its zone.

        Raises:
            PlanError: There is no such column of times, or it shows the clocks of another zone.
        """
        schema = ChosenRows.derived(self.reader(period).schema, self._data.derive)
        kind = schema[at].kind if at in schema else None
        if kind not in TIMES:
            raise PlanError(f"period.at: {at!r} is no column of times; there are {schema}.")
        zone = self._schedule.zone
        if self._data.tz not in (None, zone) and kind is Kind.TIME:
            raise PlanError(f"period.at: data.tz is {self._data.tz} and period.zone {zone}; write the same.")
        first, last = period.start, period.end
        if kind is Kind.INSTANT:
            first, last = (instant_of(one, zone, last=True).replace(tzinfo=None) for one in (first, last))
        return condition(at, kind, str(first), str(last))


def numbered(version: str) -> str:
    """Which version of a period's records it is, of a name that says those of its owners, too."""
    return version.partition(",")[0]


def following(version: str) -> str:
    """The next version: of a number the next one, of a day with a number behind it.

    >>> following("1"), following("2026-12-05"), following("2026-12-05.2")
    ('2', '2026-12-05.2', '2026-12-05.3')
    """
    day, point, number = version.partition(".")
    if version.isdigit():
        return str(int(version) + 1)
    return f"{day}.{int(number) + 1 if point else 2}"
