"""A release: one file that says what is published of each period, and what can be done with it."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from wpinq.apps.publish import alerts
from wpinq.apps.publish.budgets import Allowance, Funds, check, new_promise, said, standing, unchanged
from wpinq.apps.publish.file.declared import Every, File
from wpinq.apps.publish.file.periods import Period, span, through
from wpinq.apps.publish.file.reading import decode, definition, named, read
from wpinq.apps.publish.plan import Plan, Priced
from wpinq.apps.publish.price import Price
from wpinq.apps.publish.publisher import Outcome, Publisher
from wpinq.apps.publish.sinks import opened
from wpinq.apps.publish.streams.following import Follower, ticks
from wpinq.apps.publish.verifying import differences
from wpinq.arguments import FLAG, NAME, NOTHING, PATH, TEXT, WHOLE, Expected, takes
from wpinq.core import RHO, Composition, Ledger, Promise
from wpinq.errors import BudgetError, LedgerError, PlanError, SourceError, WpinqError
from wpinq.exact import decimal

CLOCK = Expected("a function that gives the time", callable)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def zoned(clock: Callable[[], dt.datetime]) -> Callable[[], dt.datetime]:
    """A clock whose times are refused if they are none, or have no zone."""

    def checked() -> dt.datetime:
        at: object = clock()
        if not isinstance(at, dt.datetime) or at.utcoffset() is None:
            raise PlanError("Release(clock=...): gives no time with a zone, as datetime.now(UTC) is.")
        return at

    return checked


def _periods(names: Iterable[str], every: Every) -> Iterator[Period]:
    """The periods of these names, but for those of another length, from before the release file was changed."""
    for name in names:
        with suppress(PlanError):
            yield Period.parse(name, every)


@dataclass(frozen=True)
class Standing:
    """Where one period stands.

    Attributes:
        period: Its name.
        stage: "published", "held", "computed", "begun", "refused" or "missing".
        why: Why it is held or refused.
    """

    period: str
    stage: str
    why: str = ""


class Release:
    """What is published of each period of a data set.

    Args:
        file: What a release file says, as `declared.File`, or as a mapping like the file's.
        name: The release's name; it names its files.
        home: The directory that relative paths start from.
        clock: Gives the time, with a zone.

    Raises:
        PlanError: The file says what cannot be.

    >>> given = {"data": {"source": "views/{date}.csv", "ledger": "ledger"}, "budget": {"epsilon": 30},
    ...          "question": [{"name": "views", "counts": ["page"], "keys": ["home"], "epsilon": 1}],
    ...          "sink": [{"directory": "out/{date}"}]}
    >>> Release(given, "views")
    <release 'views' of every day: views>
    """

    @takes("Release", name=NAME, home=PATH, clock=CLOCK)
    def __init__(
        self, file: File | dict[str, Any], name: str, home: str | os.PathLike[str] = ".",
        clock: Callable[[], dt.datetime] = _now,
    ) -> None:  # fmt: skip
        self.file = file if isinstance(file, File) else decode(file, "Release(...)")
        check(self.file.budget, self.file.period.every)
        self.name, self.home = named(self.file.name or name, "Release(name=...)"), Path(home)
        self._real, clock = clock is _now, zoned(clock)
        places = [opened(sink, self.home) for sink in self.file.sink]
        self._publisher = Publisher(
            self.file, self.name, self.home, definition=definition(self.file, self.home), places=places, clock=clock
        )
        self._clock = clock

    @classmethod
    @takes("Release.read", path=PATH, clock=CLOCK)
    def read(
        cls, path: str | os.PathLike[str], clock: Callable[[], dt.datetime] = _now, *, processes: int | None = None
    ) -> Release:
        """Read a release file (TOML); paths in it start from its directory.

        Args:
            path: The file.
            clock: Gives the time, with a zone.
            processes: In how many processes answers are computed; by default as the file says.

        Raises:
            SourceError: It cannot be read.
            PlanError: It says what cannot be.
        """
        place = Path(path)
        file = read(place)
        if processes is not None:
            file = structs.replace(file, data=structs.replace(file.data, processes=processes))
        return cls(file, named(file.name or place.stem, f"{place}, without a name of its own"), place.parent, clock)

    @takes(text=TEXT | NOTHING)
    def period(self, text: str | None = None) -> Period:
        """A period by its name; by default the last one that is over."""
        every = self.file.period.every
        if text is not None:
            return Period.parse(text, every)
        from zoneinfo import ZoneInfo

        here = self._clock().astimezone(ZoneInfo(self.file.period.zone)).replace(tzinfo=None)
        return Period.of(here, every).previous

    @takes(period=TEXT | NOTHING)
    def plan(self, period: str | None = None) -> Plan:
        """Price a period. No price depends on records: of its source, names and types of columns are read.

        Then records are looked at, until each column that the questions read has a value.

        Raises:
            SourceError, PlanError, BinError: It could not be published, or a column that is read is null in every
                record, as one is that was declared as another type.
        """
        wanted = self.period(period)
        promise, spent = self._books()
        unchanged(self.file.budget, promise)
        views = self._publisher.opening.imagined(wanted, curves=spent.curves)
        asked = self._publisher.asked(views, promise)
        opening = self._publisher.opening
        if not opening.followed and (nulls := self._publisher.nulls(wanted, asked, opening.reader(wanted))) is not None:
            raise SourceError(nulls)
        priced = [Priced(one.question.name, one.text, one.price, one.expected, one.threshold) for one in asked]
        return Plan(wanted.name, priced, said(self.file.budget), promise, spent, self.file.budget.per is not None)

    def _books(self) -> tuple[Promise, Composition]:
        """What the ledger promises and holds, or would."""
        if (ledger := Ledger.find(self._publisher.opening.ledger)) is not None:
            state = ledger.state()
            return state.promise, state.spent
        promise = new_promise(self.file.budget)
        return promise, promise.begun()

    @takes(period=TEXT | NOTHING, accept=FLAG, again=FLAG, check=FLAG)
    def run(
        self, period: str | None = None, *, accept: bool = False, again: bool = False, check: bool = False
    ) -> Outcome:
        """Publish one period: exactly once, however often it is run, and wherever it was killed.

        Args:
            period: Its name; by default the last one that is over.
            accept: Publish it although a check holds it back.
            again: Charge for it again, if its records are others than those that it was charged for.
            check: Refuse it before it is charged where a column that is read is null in every record. Without it that
                is a warning, for the curator: a run that stopped would tell of the records.

        Raises:
            HeldError: A check holds it back; nothing was published.
            ChangedError: Its records changed; nothing was charged.
            BusyError: Another process is publishing.
            BudgetError: It costs more than is left; nothing was charged.
            PlanError, SourceError, BinError, LedgerError: It cannot be published.
        """
        with self._publisher.register.locked():
            return self._publisher.run(self.period(period), accept=accept, again=again, check=check)

    @takes(periods=TEXT)
    def backfill(self, periods: str) -> Iterator[Outcome | WpinqError]:
        """Publish each of a range of periods, `A..B`, in order; one that is held or cannot be read stops no other.

        Raises:
            BudgetError: The budget ends.
            LedgerError, BusyError: The ledger cannot be used.
        """
        first, last = span(periods, self.file.period.every)
        with self._publisher.register.locked():
            for period in through(first, last):
                try:
                    yield self._publisher.run(period)
                except (BudgetError, LedgerError):
                    raise
                except WpinqError as error:
                    yield error

    @takes(period=TEXT | NOTHING)
    def deliver(self, period: str | None = None) -> Iterator[Outcome | WpinqError]:
        """Deliver what was published to each sink that lacks it: one that was lost, or that was added since.

        It charges nothing and reads no record: the files beside the ledger are delivered. Those that are gone are
        computed again first. What a sink has already is left as it is; the page is written where it is another. Killed
        anywhere, it is done again.

        Args:
            period: Its name; by default all that were published. One that cannot be delivered stops no other.

        Raises:
            BusyError: Another process is publishing.
            LedgerError: The register was changed or is damaged.
            SourceError: The page cannot be written.
        """
        with self._publisher.register.locked():
            records = self._publisher.register.records().values()
            names = [one.period for one in records if one.stage == "published" and one.every == self.file.period.every]
            for name in names if period is None else [period]:
                try:
                    yield self._publisher.deliver(self.period(name))
                except LedgerError:
                    raise
                except WpinqError as error:
                    yield error
            self._publisher.show()

    @takes(workers=WHOLE | NOTHING)
    def follow(self, workers: int | None = None) -> Follower:
        """Follow the stream of the release file: each `step()` of the result reads on, and publishes what has closed.

        Args:
            workers: How many processes of this host read, where the ledger is in PostgreSQL: then several hosts follow
                it, of which one at a time publishes; 0 where those of others read. By default this process alone reads.

        Raises:
            PlanError: The release file names no stream, or no column of times; or several processes cannot follow it,
                or do already, and no workers were named.
            BusyError: Another process follows it.
            SourceError: The stream is not there.
            LedgerError: The database of the ledger cannot be used.
        """
        return Follower(self._publisher, ticks if self._real else None, workers)

    def status(self) -> list[Standing]:
        """Where each period stands, from the first to the last one that is over; before it, what was refused."""
        register = self._publisher.register
        records, refusals = register.records(), register.refusals()
        every, last = self.file.period.every, self.period()
        first = [] if self.file.period.first is None else [str(self.file.period.first)]
        known = sorted(_periods([*first, *(name for name, record in records.items() if record.every == every)], every))
        refused = sorted(_periods(refusals, every))
        if not known and not refused:
            return []
        begin = (known or refused)[0]  # a period that was mistyped and refused begins nothing
        early = [period for period in refused if period < begin]
        result = []
        for period in [*early, *through(begin, max(last, *known, *refused))]:
            record = records.get(period.name)
            if period.name in refusals and (record is None or record.stage == "begun"):
                result.append(Standing(period.name, "refused", refusals[period.name][1]))
            else:
                stage = "missing" if record is None else record.stage
                result.append(Standing(period.name, stage, "; ".join(record.notes) if record else ""))
        return result

    def late(self) -> list[str]:
        """The published periods of which records came late or changed since; for the curator, and nothing is written.

        Records are read once for each of them.
        """
        records, every = self._publisher.register.records(), self.file.period.every
        return [
            name for name, record in records.items()
            if record.stage == "published" and record.every == every
            and self._publisher.changed(record, Period.parse(name, every))
        ]  # fmt: skip

    @takes(period=TEXT)
    def verify(self, period: str) -> list[str]:
        """Compute a published period anew, which costs nothing, and compare every file and every row of its sinks.

        What its evidence says of costs is compared with the rows of the ledger.

        Returns:
            What differs; nothing where all is the same.

        Raises:
            SourceError: It was never published, or its records are gone.
            ChangedError: Its records are others.
            LedgerError: The ledger or the register was changed.
        """
        wanted = self.period(period)
        with self._publisher.register.locked():
            return differences(self._publisher, wanted)

    def funds(self) -> Funds:
        """What is left of the budget, in all, or in the stretch of time of the last period that is over."""
        return Allowance(self.file.budget, self._publisher.register, self.period()).funds(self._books())

    def alert(self) -> str | None:
        """Tell the webhook of the release file, once, that the budget's end is near.

        Returns:
            Why it was not taken; None where it was, or nothing was due.
        """
        if self.file.alerts is None:
            return None
        at = self._clock().isoformat(timespec="seconds")
        return alerts.told(self.file.alerts, self.name, self.funds(), self._publisher.register, at)

    @property
    def protects(self) -> str:
        """Whom each answer protects, in words."""
        return self._publisher.opening.unit.protects

    def budget_line(self) -> str:
        """What is left of the budget, and until when that lasts."""
        ledger = self._publisher.opening.ledger
        if not Ledger.exists(ledger):
            return f"There is no ledger yet. {said(self.file.budget)}"
        promise, spent = self._books()
        costs = [Price.read(one.facts["cost"]) for one in self._publisher.register.records().values()
                 if "cost" in one.facts]  # fmt: skip
        more = "" if self.file.budget.per or not costs else costs[-1].lasting(promise, spent, " like the last")
        what, left = ("Rho", promise.rho_left) if promise.accounting == RHO else ("Epsilon", promise.left)
        told = f" {told}." if (told := promise.told(spent)) else ""
        means = standing(self.file.budget, promise)
        return f"{what} {decimal(left(spent))} of {decimal(promise.budget)} is left{more}.{told} {means}"

    def __repr__(self) -> str:
        names = ", ".join(question.name for question in self.file.question)
        return f"<release {self.name!r} of every {self.file.period.every}: {names}>"
