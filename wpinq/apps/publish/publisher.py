"""One period of a release: priced, charged, computed, checked, delivered; killed anywhere, it goes on from there."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from wpinq.apps.publish.answers import LOSS
from wpinq.apps.publish.budgets import BEFORE, COST, Allowance, paid
from wpinq.apps.publish.checks import PAST, Column, columns, doubts
from wpinq.apps.publish.evidence.edition import FACTS, Known, compose, naming_of, restored, tabled
from wpinq.apps.publish.evidence.index import pages, published
from wpinq.apps.publish.evidence.index import put as put_page
from wpinq.apps.publish.file.declared import File
from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.files import digest, found, put
from wpinq.apps.publish.input import FIRST, Opening
from wpinq.apps.publish.intake import Intake
from wpinq.apps.publish.nulls import empty, told
from wpinq.apps.publish.price import Price
from wpinq.apps.publish.questions import Asked, ask, insist_on_room
from wpinq.apps.publish.sinks import Edition, Place
from wpinq.apps.publish.sinks.directory import Directory
from wpinq.apps.publish.state import Record, Register
from wpinq.apps.publish.stream import schema_of, spooled
from wpinq.core import columns_read, commit, sources
from wpinq.errors import BudgetError, ChangedError, PlanError, SourceError, WpinqError

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.core import DataSet, Ledger, Promise, Reader


class HeldError(WpinqError):
    """A check wants the curator to look at a period before it is published; nothing was published."""


@dataclass(frozen=True)
class Outcome:
    """What became of a period.

    Attributes:
        period: Its name.
        done: "published", "was published before", or of what was delivered again where to.
        price: What it costs.
    """

    period: str
    done: str
    price: Price

    @property
    def epsilon(self) -> Fraction:
        """Of it, what an epsilon bounds."""
        return self.price.epsilon


class Publisher:
    """Publishes the periods of a release file; see `wpinq.apps.publish.Release`.

    Args:
        file: What it says.
        name: The release's name.
        home: The directory of relative paths.
        definition: A digest of what is asked.
        places: Where answers go.
        clock: The time.
    """

    def __init__(
        self, file: File, name: str, home: Path, *, definition: str, places: list[Place],
        clock: Callable[[], dt.datetime],
    ) -> None:  # fmt: skip
        self.file, self.name, self.home, self.definition = file, name, home, definition
        sent = file.data.listen is not None
        columns = None if file.stream is None and not sent else partial(schema_of, file.data, home)
        intake = Intake(file, name, home, schema_of(file.data, home)) if sent else None
        self.opening = Opening(spooled(file, name, home), home, file.period, columns, intake)
        self.register = Register(self.opening.ledger, name)
        self.places, self.clock = places, clock

    def asked(self, views: Collection, promise: Promise) -> list[Asked]:
        """The questions, priced for a ledger that promises this."""
        return [ask(declared, views, self.file.data, self.home, promise) for declared in self.file.question]

    def run(self, period: Period, *, accept: bool = False, again: bool = False, check: bool = False) -> Outcome:
        """Publish a period, from wherever it stands.

        Args:
            period: The period.
            accept: Publish it although a check holds it back.
            again: Charge for it again, if its records are others than those that it was charged for.
            check: Refuse it before it is charged where a column that is read is null in every record.

        Raises:
            PlanError, SourceError, BudgetError, LedgerError, HeldError, ChangedError: It is not published.
        """
        self.register.refresh()
        self._refuse(period)
        record = self.register.records().get(period.name)
        fresh = record is None or record.stage == "begun"
        for sink in self.places:
            sink.check(period, fresh=fresh)
        if record is None or fresh:
            record = self._compute(period, again=again, check=check)
        self._destroy(period)
        if record.stage == "published":
            self._unchanged(record, period)
            self.show()
            return Outcome(period.name, "was published before", self._cost(record))
        if record.notes and not accept:
            what = "; ".join(record.notes)
            raise HeldError(f"{period.name}: held back: {what}. Look at {self.register.files / period.name}; to publish"
                            f" it, say --accept. It is charged already.")  # fmt: skip
        edition = self._whole(period)
        for sink in self.places:
            sink.deliver(edition)
        self.register.enter(replace(record, stage="published"))
        self.show()
        return Outcome(period.name, "published", self._cost(record))

    def _destroy(self, period: Period) -> None:
        """Destroy the records that were sent for a period, and their keys: its charge and its answers are durable."""
        if self.opening.intake is not None:
            self.opening.intake.destroy(period)

    def deliver(self, period: Period) -> Outcome:
        """Deliver a published period again, for nothing, to each sink that lacks it, from the files that are kept.

        Raises:
            PlanError: It was not published.
            SourceError: Its files are lost, or a sink refuses it or holds something else; the other sinks have it.
        """
        record = self.register.records().get(period.name)
        if record is None or record.stage != "published":
            raise PlanError(f"{period.name}: was not published, so it cannot be delivered again; run it.")
        edition, delivered, refused = self._whole(period), list[str](), list[str]()
        for sink in self.places:
            if sink.differs(edition) is None:
                continue
            try:
                sink.deliver(edition)
            except SourceError as error:
                refused.append(str(error))
                continue
            why = sink.differs(edition)
            if why is None:
                delivered.append(sink.name)
            else:
                refused.append(f"{why}; remove what it holds of {period.name}, and deliver it again.")
        if refused:
            raise SourceError(f"{period.name}: {' '.join(refused)}")
        return Outcome(
            period.name, f"delivered again to {', '.join(delivered)}" if delivered else "is in every sink", Price()
        )

    def show(self) -> None:
        """Write the page of all periods and its feeds beside the directories of periods, where the file says so.

        Raises:
            SourceError: It cannot be written.
        """
        for root, files in self.shown():
            put_page(root, files)

    def shown(self) -> list[tuple[Path, dict[str, bytes]]]:
        """The page and its feeds, for each directory that they stand in; nothing where nothing was published."""
        if self.file.page is None:
            return []
        every, result = self.file.period.every, list[tuple[Path, dict[str, bytes]]]()
        names = [record.period for record in self.register.records().values() if record.stage == "published"
                 and record.every == every and (self.register.files / record.period).is_dir()]  # fmt: skip
        for sink in self.places:
            if names and isinstance(sink, Directory) and sink.root is not None:
                periods = [published(name, self.register.files / name, sink.link(Period.parse(name, every)))
                           for name in names]  # fmt: skip
                title = self.file.about.title or self.name
                result.append((sink.root, pages(title, self.file.page, periods, sink.formats, every)))
        return result

    def edition(self, period: Period) -> Edition:
        """What was computed for a period, from its files.

        Raises:
            SourceError: They are not there, or not what was computed.
        """
        files = found(self.register.files / period.name)
        record = self.register.records().get(period.name)
        if files is None or record is None or digest(files) != record.facts.get("digest"):
            raise SourceError(f"{period.name}: its files in {self.register.files} are missing or were changed.")
        return Edition(self.name, period, restored(files), files)

    def _whole(self, period: Period) -> Edition:
        """What was computed for a period; where its files are not on this machine, it is computed again, for nothing.

        Raises:
            SourceError: They were changed, or the records, or what computes them, are not those of then.
            ChangedError: The records are others.
        """
        record, folder = self.register.records().get(period.name), self.register.files / period.name
        same = record is not None and record.definition == self.definition and self.opening.intake is None
        if record is None or not same or folder.exists():
            return self.edition(period)
        ledger, questions = self.asked_again(period, record)
        quotes = [quote for question in questions for quote in question.quotes]
        if not all(ledger.holds(charge) for quote in quotes for _, charge in quote.charges):
            raise SourceError(f"{period.name}: its files are not in {self.register.files}, and its questions are others"
                              " than were charged; nothing was.")  # fmt: skip
        commit(quotes)
        (data,) = {data: None for quote in quotes for data in quote.sources}
        facts, files = self._composed(period, data, questions, record)
        if facts["digest"] != record.facts["digest"]:
            raise SourceError(f"{period.name}: its files are not in {self.register.files}, and what is computed now is"
                              " not what was: another wpinq, Python or library computed it. Run it there.")  # fmt: skip
        put(folder, files, "publish", 0o700)
        return self.edition(period)

    def _composed(
        self, period: Period, data: DataSet, questions: list[Asked], began: Record
    ) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The facts and files of a period whose questions are charged."""
        answers = {each.question.name: each.answer() for each in questions}
        known = Known(self.name, self.file, self.definition, period, data, began.facts)
        return compose(known, questions, answers)

    def _refuse(self, period: Period) -> None:
        """Refuse a period that cannot be: not over yet, before the first, or across others that are published."""
        now, zone = self.clock(), self.file.period.zone
        if not period.ended(now, zone):
            raise PlanError(f"{period.name}: is not over ({zone}); its records are not all there yet.")
        first = self.file.period.first
        if first is not None and period < Period.parse(str(first), period.every):
            raise PlanError(f"{period.name}: is before the first period, {first}.")
        for record in self.register.records().values():
            last = record.facts.get("at")
            if last is not None and dt.datetime.fromisoformat(last) > now + dt.timedelta(hours=1):
                raise PlanError(f"the clock says {now:%Y-%m-%d %H:%M}, before {record.period} was published ({last});"
                                " set the clock.")  # fmt: skip
            if record.every != period.every:
                other = Period.parse(record.period, record.every)  # type: ignore[arg-type]
                if other.start < period.end and period.start < other.end:
                    raise PlanError(f"{period.name}: overlaps {record.period}, which is {record.stage}; the same"
                                    " records would be charged twice.")  # fmt: skip

    def _compute(self, period: Period, *, again: bool, check: bool) -> Record:
        """Charge for a period and compute it; what was charged before is free."""
        allowance = Allowance(self.file.budget, self.register, period)
        old = self.register.records().get(period.name)
        version = (self._day() or FIRST) if old is None else old.version
        views = self.opening.versioned(period, version, allowance.terms, again=again)
        data = sources(views._node)[0]
        promise = data.ledger.known.promise
        priced = self.asked(views, promise)
        if not again:
            self._same(period, priced)
        if self.opening.intake is None and (nulls := self.nulls(period, priced, data.reader)) is not None:
            if check:
                raise SourceError(nulls)
            warnings.warn(nulls, RuntimeWarning, stacklevel=2)
        price = sum((each.price for each in priced), Price())
        began = self._began(period, data, price)
        try:
            allowance.insist(price, Price.read(began.facts[BEFORE]), promise)
            insist_on_room(priced)
            entry = [(data.ledger, change) for change in self.register.entry(began, decided=True)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of what is charged again, which was asked for
                commit([quote for each in priced for quote in each.quotes], entry)
            self.register.refresh()
        except BudgetError as error:
            self.register.refuse(period.name, self._now(), str(error))
            raise
        facts, files = self._composed(period, data, priced, began)
        folder = self.register.files / period.name
        shutil.rmtree(
            folder, ignore_errors=True
        )  # of a process that was killed before it entered them; nobody has them
        put(folder, files, "publish", 0o700)
        tables = {name: table for name, table in restored(files, ends=True).items() if not name.endswith(LOSS)}
        notes = tuple(doubts(list(columns(tables, naming_of(facts))), self._past(period), self.file.checks))
        facts = {**facts, BEFORE: began.facts[BEFORE]}
        record = replace(began, stage="held" if notes else "computed", facts=facts, notes=notes)
        self.register.enter(record)
        return record

    def _day(self) -> str | None:
        """Today, where the release file declares that records are taken as they are on this day."""
        day = str(self.clock().astimezone(ZoneInfo(self.file.period.zone)).date())
        return day if day in self.file.period.again else None

    def nulls(self, period: Period, questions: list[Asked], reader: Reader) -> str | None:
        """Which columns that the questions read are null in every record of a period, as a sentence for the curator.

        Raises:
            SourceError: The records cannot be read.
        """
        columns = empty(reader, columns_read([quote.node for question in questions for quote in question.quotes]))
        return told(period.name, self.opening.shown(period), columns, reader.schema) if columns else None

    def asked_again(self, period: Period, record: Record) -> tuple[Ledger, list[Asked]]:
        """The questions of a published period over its records, and the ledger that they were charged to.

        Raises:
            SourceError: Its records are not there.
            ChangedError: They are others.
        """
        try:
            views = self.opening.protect(period, record.version, index=False)
        except ChangedError:
            what = self.opening.shown(period)
            raise ChangedError(f"{period.name}: {what} holds other records than were published.") from None
        (data,) = sources(views._node)
        questions = self.asked(views, data.ledger.promise)
        self._same(period, questions)
        return data.ledger, questions

    def recompute(self, questions: list[Asked]) -> dict[str, bytes]:
        """The tables of questions that were charged, computed anew, for nothing."""
        commit([quote for question in questions for quote in question.quotes])
        answers = [question.answer() for question in questions]
        tables = [(name, *table, answer.abouts[name]) for answer in answers for name, table in answer.tables.items()]
        return {file: content for table in tables for file, content in tabled(*table).items()}

    def _began(self, period: Period, data: DataSet, price: Price) -> Record:
        """When a period was begun, once, so that its evidence says the same however often it is computed."""
        same, version = self.register.records().get(period.name), data.version
        if same is None or (same.version, same.definition) != (version, self.definition):
            earlier, known = Price() if same is None else paid(same), data.ledger.known
            same = Record(period.name, period.every, "begun", version, self.definition, {
                "at": self._now(), "spent before": str(known.spent.epsilon), BEFORE: earlier.facts,
                **({"sums before": known.told} if known.spent.curves else {}),
            })  # fmt: skip
        return replace(same, facts={BEFORE: Price().facts, **same.facts, COST: price.facts})

    def _same(self, period: Period, questions: list[Asked]) -> None:
        """Refuse questions that were charged for the period by another Python or wpinq, which may compute others."""
        charges = [
            (ledger, charge) for question in questions for quote in question.quotes for ledger, charge in quote.charges
        ]
        if any(charge.asked and ledger.repeated(charge) is not None for ledger, charge in charges):
            raise ChangedError(f"{period.name}: was charged by another version of Python, wpinq or of a library, which"
                               " may compute something else; nothing was charged. Take that one, or say --again to"
                               " charge once more.")  # fmt: skip

    def _unchanged(self, record: Record, period: Period) -> None:
        """Tell the curator that the records of a published period changed, if they are there at all.

        It is said on standard error and nowhere else, and the run ends as one that repeats: that records changed was
        not charged, and who starts the run may see how it ended.
        """
        if record.definition != self.definition:
            warnings.warn(f"{period.name}: the questions or keys changed since it was published; it stays as it is.",
                          RuntimeWarning, stacklevel=2)  # fmt: skip
        if self.opening.intake is None and self.changed(record, period):
            what = "records of this period came late or changed" if self.opening.by_rows else (
                f"{self.opening.shown(period)} changed"
            )  # fmt: skip
            warnings.warn(f"{period.name}: {what} since it was published; what is published stays, and nothing was"
                          " charged. A correction is a release file of its own, with another sink, and run --again.",
                          RuntimeWarning, stacklevel=2)  # fmt: skip

    def changed(self, record: Record, period: Period) -> bool:
        """Whether a published period has other records now, as far as they are there; nothing is written."""
        try:
            self.opening.protect(period, record.version)
        except ChangedError:
            return True
        except SourceError:
            return False
        return False

    def _past(self, period: Period) -> list[list[Column]]:
        """The columns of the periods that were published before this one."""
        published = [
            record.period
            for record in self.register.records().values()
            if record.stage == "published" and record.period < period.name
        ]
        kept = [found(self.register.files / name) or {} for name in published[-PAST:]]
        return [
            list(columns(restored(files, ends=True), naming_of(json.loads(files[FACTS])))) for files in kept if files
        ]

    @staticmethod
    def _cost(record: Record) -> Price:
        return Price.read(record.facts["cost"])

    def _now(self) -> str:
        return self.clock().isoformat(timespec="seconds")
