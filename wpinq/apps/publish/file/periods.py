"""Periods: stretches of the calendar side by side, each with a name that sorts as they follow each other."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from wpinq.apps.publish.file.declared import Every
from wpinq.core import instant_of
from wpinq.errors import PlanError

FORMS = {"hour": "2026-11-21T13", "day": "2026-11-21", "week": "2026-W47", "month": "2026-11", "year": "2026"}
"""How each kind of period is written."""

PATTERNS = {
    "hour": r"(\d{4})-(\d\d)-(\d\d)T(\d\d)",
    "day": r"(\d{4})-(\d\d)-(\d\d)",
    "week": r"(\d{4})-W(\d\d)",
    "month": r"(\d{4})-(\d\d)",
    "year": r"(\d{4})",
}


@dataclass(frozen=True, order=True)
class Period:
    """One period.

    Attributes:
        start: Its first instant on the clocks of its zone, without a zone.
        every: What kind of period it is.
    """

    start: dt.datetime
    every: Every

    @classmethod
    def parse(cls, text: str, every: Every) -> Period:
        """Read a period's name.

        Raises:
            PlanError: It is no name of such a period.

        >>> Period.parse("2026-W47", "week").start.date().isoformat()
        '2026-11-16'
        """
        found = re.fullmatch(PATTERNS[every], text)
        known = found is not None and found[1] != str(dt.MAXYEAR)  # which nothing follows
        numbers = [int(one) for one in found.groups()] if found and known else [0]  # no year is 0
        try:
            if every == "week":
                return cls(dt.datetime.fromisocalendar(numbers[0], numbers[-1], 1), every)
            year, month, day, hour = [*numbers, *(1, 1, 0)[len(numbers) - 1 :]]
            return cls(dt.datetime(year, month, day, hour), every)
        except (ValueError, TypeError):
            raise PlanError(f"period {text[:40]!r}: is no {every}; write it as {cls._form(text, every)}.") from None

    @classmethod
    def _form(cls, text: str, every: Every) -> str:
        """How a period of this kind is written: the one that a date or week is in, or begins, where the text is one."""
        with suppress(ValueError, OverflowError):
            moment = dt.datetime.fromisoformat(text)
            return cls.of(moment, every).name if moment.year < dt.MAXYEAR else FORMS[every]
        return FORMS[every]

    @classmethod
    def of(cls, moment: dt.datetime, every: Every) -> Period:
        """The period that a moment, on the clocks of the zone and without a zone, is in."""
        hour = moment.replace(minute=0, second=0, microsecond=0)
        day = hour.replace(hour=0)
        start = {
            "hour": hour,
            "day": day,
            "week": day - dt.timedelta(days=day.weekday()),
            "month": day.replace(day=1),
            "year": day.replace(day=1, month=1),
        }[every]
        return cls(start, every)

    @property
    def name(self) -> str:
        """As `parse` reads it.

        >>> [Period.of(dt.datetime(2026, 11, 21, 13, 5), every).name for every in FORMS] == list(FORMS.values())
        True
        """
        if self.every == "week":
            year, week, _ = self.start.isocalendar()
            return f"{year}-W{week:02}"
        return self.start.isoformat()[: len(FORMS[self.every])]

    @property
    def end(self) -> dt.datetime:
        """The first instant after it."""
        steps = {"hour": dt.timedelta(hours=1), "day": dt.timedelta(days=1), "week": dt.timedelta(days=7)}
        if self.every in steps:
            return self.start + steps[self.every]
        months = 1 if self.every == "month" else 12
        return Period.of(self.start + dt.timedelta(days=31 * months), self.every).start

    @property
    def next(self) -> Period:
        """The one after it."""
        return Period(self.end, self.every)

    @property
    def previous(self) -> Period:
        """The one before it."""
        return Period.of(self.start - dt.timedelta(minutes=1), self.every)

    def ended(self, now: dt.datetime, zone: str) -> bool:
        """Whether it is over at a moment."""
        return instant_of(self.end, zone, last=True) <= now

    def filled(self, text: str) -> str:
        """A text of the release file with its placeholders filled in.

        Raises:
            PlanError: It has another one.

        >>> Period.parse("2026-11", "month").filled("time >= '{start}' and time < '{end}'")
        "time >= '2026-11-01 00:00:00' and time < '2026-12-01 00:00:00'"
        """
        known = {"date": self.name, "start": str(self.start), "end": str(self.end)}
        for name in re.findall(r"\{([^{}]*)\}", text):
            if name not in known:
                raise PlanError(f"{text[:80]!r}: {{{name[:40]}}} is not known; there are {{date}}, {{start}}, {{end}}.")
        return re.sub(r"\{([^{}]*)\}", lambda found: known[found[1]], text)


def through(first: Period, last: Period) -> Iterator[Period]:
    """All periods from one to another, both included."""
    while first <= last:
        yield first
        first = first.next


def span(text: str, every: Every) -> tuple[Period, Period]:
    """Read a range of periods, `A..B`, or one of them.

    Raises:
        PlanError: It is neither, or ends before it begins.

    >>> [one.name for one in through(*span("2026-02-27..2026-03-01", "day"))]
    ['2026-02-27', '2026-02-28', '2026-03-01']
    """
    begin, dots, end = text.partition("..")
    try:
        first = Period.parse(begin, every)
    except PlanError as error:
        raise error if dots else PlanError(f"{error} A range is FIRST..LAST, with two dots.") from None
    last = Period.parse(end, every) if dots else first
    if last < first:
        raise PlanError(f"period {text[:80]!r}: ends before it begins.")
    return first, last
