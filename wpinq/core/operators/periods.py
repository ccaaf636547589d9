"""Periods: stretches of time of one length, side by side, of which each time is in one; for windows and for units.

Hours, days and weeks begin at the epoch, weeks on a Monday; months are those of the calendar. In a time zone they begin
by its local clocks: a day there has 23 to 25 hours. Which period a time is in follows from that time alone.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from wpinq.core.records.clocks import instant_of
from wpinq.core.records.kinds import read, write
from wpinq.core.records.schema import Column, Kind, polars_type
from wpinq.core.records.values import EPOCH, EPOCH_UTC, FIRST, LAST, MICROSECOND
from wpinq.errors import BinError, PlanError

SECOND = 1_000_000
DAY = 86_400 * SECOND
UNITS = {"s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND, "d": DAY, "w": 7 * DAY}
MONDAY = 4 * DAY
"""The first Monday after the epoch."""
TIMES = (Kind.TIME, Kind.INSTANT, Kind.DATE)
MONTHS = "mo"


@dataclass(frozen=True)
class Periods:
    """Stretches of time, numbered.

    Attributes:
        kind: The kind of the times.
        span: The length in microseconds, or in ones where times are whole numbers; of months their number.
        months: Whether they are calendar months.
        first: When number 0 begins, in microseconds of the epoch.
        zone: Whose clocks they follow; None for UTC, or for times that have no zone.
    """

    kind: Kind
    span: int
    months: bool = False
    first: int = 0
    zone: str | None = None

    @property
    def plain(self) -> bool:
        """Whether a period is nothing but a quotient."""
        return not (self.months or self.first or self.zone)

    @property
    def covered(self) -> object:
        """What a fingerprint covers of it: with a zone the version of its rules too, which come with Polars."""
        rules = pl.__version__ if self.zone else None
        return self.span if self.plain else (self.span, self.months, self.first, self.zone, rules)

    def __str__(self) -> str:
        return str(self.covered)

    @property
    def longest(self) -> int:
        """A length that none exceeds, in the units of the column."""
        return (31 * DAY * self.span if self.months else self.span) + (DAY if self.zone else 0)

    def numbers(self, name: str) -> pl.Expr:
        """The number of the period of each time in a column of the kind."""
        time = pl.col(name)
        if self.zone:
            time = time.dt.convert_time_zone(self.zone).dt.replace_time_zone(None)
        if self.months:
            return ((time.dt.year().cast(pl.Int64) - 1970) * 12 + time.dt.month() - 1) // self.span
        return (_ticks(time, self.kind) - self.first) // self.span

    def number(self, time: Any) -> int:
        """The number of the period that a time is in.

        Raises:
            BinError: It is no value of the kind.
        """
        return self.number_at(moment(time, self.kind))

    def number_at(self, ticks: int) -> int:
        """The number of the period of a time in microseconds, or ones."""
        if self.plain:
            return ticks // self.span
        stored = pl.Series("time", [ticks // DAY if self.kind is Kind.DATE else ticks], pl.Int64)
        days = stored.cast(pl.Int32) if self.kind is Kind.DATE else stored
        return int(days.cast(polars_type(self.kind)).to_frame().select(self.numbers("time")).item())

    def start(self, number: int) -> int:
        """The first moment of a period, in microseconds or ones."""
        return self._instant(self._local(number), last=False)

    def end(self, number: int) -> int:
        """A moment from which on no time is in the period; where clocks are set back to it, the later one."""
        return self._instant(self._local(number + 1), last=True)

    def time(self, number: int) -> Any:
        """When a period begins, as the column holds times."""
        start = self.start(number)
        return read(start // DAY if self.kind is Kind.DATE else start, self.kind)

    def made_of(self, finer: Periods) -> bool:
        """Whether each of these is made of whole ones of others."""
        if (self.kind, self.zone) != (finer.kind, finer.zone):
            return False
        if finer.months:
            return self.months and self.span % finer.span == 0
        if self.months:
            return DAY % finer.span == 0
        return self.span % finer.span == 0 and (self.first - finer.first) % finer.span == 0

    def _local(self, number: int) -> int:
        """When a period begins by the clocks of the zone."""
        if not self.months:
            return number * self.span + self.first
        year, month = divmod(number * self.span, 12)
        if not dt.MINYEAR <= year + 1970 <= dt.MAXYEAR:
            return FIRST - DAY if year < 0 else LAST + 1
        return (dt.datetime(year + 1970, month + 1, 1) - EPOCH) // dt.timedelta(microseconds=1)

    def _instant(self, local: int, *, last: bool) -> int:
        if self.zone is None:
            return max(local, FIRST) if self.months else local
        try:
            return (instant_of(EPOCH + local * MICROSECOND, self.zone, last=last) - EPOCH_UTC) // MICROSECOND
        except OverflowError:  # at the ends of the calendar: no clock is further from UTC than a day
            return min(max(local + (DAY if last else -DAY), FIRST), LAST + 1)


def periods(length: object, column: Column, call: str, zone: str | None = None) -> Periods:
    """Periods of a length, for the times of a column.

    Args:
        length: "90s", "15m", "1h", "1d", "1w", "1mo", a timedelta, or a whole number for whole numbers.
        column: The column of the times.
        call: Name of the call with its argument, for messages.
        zone: A time zone, such as "Europe/Berlin", for times that have one.

    Raises:
        PlanError: The column holds no times, it is no length of them above zero, or there is no such zone.
    """
    kind = column.kind
    if kind is not Kind.INT and kind not in TIMES:
        raise PlanError(
            f"{call}, at={column.name!r}: the column is of the type {kind.value}; declare it as a timestamp, "
            "a date or an integer, for example columns={'time': 'timestamp'}."
        )
    span, months, first = _length(length, kind)
    if not 0 < span < (12_000 if months else 2**62):
        raise PlanError(
            f"{call}: not a length above zero of a column of the type {kind.value}; "
            "write '15m', '1h', '1d', '1w' or '1mo' for times, and a whole number for whole numbers."
        )
    return Periods(kind, span, months, first, _zone(zone, column))


def moment(value: Any, kind: Kind) -> int:
    """A given time, in the units in which a column of this kind stores times.

    Raises:
        BinError: It is not a value of this kind.
    """
    try:
        result = write(value, kind)
    except Exception:  # noqa: BLE001  the text of a failed conversion is of no use
        result = None
    if not isinstance(result, int):
        raise BinError(f"window: {type(value).__name__} is not a time in a column of the type {kind.value}.")
    return result * DAY if kind is Kind.DATE else result


def _length(length: object, kind: Kind) -> tuple[int, bool, int]:
    """A length, whether it is one of months, and when the first period begins; 0 for what is no length."""
    if kind is Kind.INT:
        return (length if isinstance(length, int) and not isinstance(length, bool) else 0), False, 0
    if isinstance(length, dt.timedelta):
        return length // dt.timedelta(microseconds=1), False, 0
    parts = re.fullmatch(r"([0-9]{1,9})(s|m|h|d|w|mo)", length) if isinstance(length, str) else None
    if parts is None:
        return 0, False, 0
    if parts[2] == MONTHS:
        return int(parts[1]), True, 0
    return int(parts[1]) * UNITS[parts[2]], False, MONDAY if parts[2] == "w" else 0


def _zone(zone: str | None, column: Column) -> str | None:
    """A zone that Python and Polars know; UTC is none.

    Raises:
        PlanError: They do not, or the times have none.
    """
    if zone is None or zone == "UTC":
        return None
    if column.kind is not Kind.INSTANT:
        raise PlanError(
            f"zone={zone!r}: column {column.name!r} is of the type {column.kind.value}, which has no time zone; leave "
            "it out, times are taken as they are written."
        )
    try:
        ZoneInfo(zone)
        pl.Series([0], dtype=pl.Int64).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    except Exception:  # noqa: BLE001  several errors of several libraries
        raise PlanError(f"zone={zone!r}: there is no such time zone; write one such as 'Europe/Berlin'.") from None
    return zone


def _ticks(time: pl.Expr, kind: Kind) -> pl.Expr:
    """Times in the units of a length."""
    stored = time.to_physical().cast(pl.Int64)
    return stored * DAY if kind is Kind.DATE else stored
