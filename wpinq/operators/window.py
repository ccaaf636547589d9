"""Window: split a collection by time into windows, which are measured one by one."""

from __future__ import annotations

import datetime as dt
import os
import re
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from wpinq.arguments import NAME, described, require
from wpinq.errors import BinError, PlanError
from wpinq.functions.covering import SHOWN
from wpinq.plan.builder import Builder, C
from wpinq.plan.forms import Where
from wpinq.plan.node import Record, fingerprints
from wpinq.records.kinds import read, write
from wpinq.records.schema import Column, Kind

SECOND = 1_000_000
DAY = 86_400 * SECOND
UNITS = {"s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND, "d": DAY}
TIMES = (Kind.TIME, Kind.INSTANT, Kind.DATE)


def window(self: Builder[C], length: str | dt.timedelta | int, at: str) -> C:
    """Cut time into windows of one length, side by side, and measure each of them by itself.

    What follows is done to each window as if it were all there is: `observe(bin, window=...)`. Where a unit is in one
    window only, a measurement costs its epsilon once, however many windows are asked for: over a file, and over a live
    source where every step up to here is linear for each record and records are protected. Otherwise each window that
    is asked for is charged; `explain` tells which it is.

    Weights:    out[w][x] = in[x] where w = floor(time(x) / length), else 0; a record without a time is in no window
    Stability:  1 for each window, and 1 for all windows of one collection together, as for the parts of a partition.
                A user's records may lie in many windows. Over a file the bound on all of them holds for all windows
                together. Right over a live source it holds in each window by itself, so a user is protected in all of
                them by what is charged for each. A unit that is a user in one window, `users(..., window=("1h",
                "time"))`, lies in one window as long, or made of whole ones: these cost as one.
    Source:     McSherry, PINQ, SIGMOD 2009 ("Partition"). Windows are closed by the caller or the clock, never by
                records: that of one person would decide what is counted of others.

    Args:
        length: Such as "90s", "15m", "1h", "1d", or a timedelta; a whole number where the column holds whole numbers.
            Windows begin at 1970-01-01 (in UTC where there is a zone), or at 0.
        at: The column of the time: a timestamp, a date or a whole number.

    Raises:
        PlanError: There is no such column, it holds no times, or the length is not above zero.

    >>> from wpinq.testing import protected
    >>> hours = protected(page="text", minute="integer").window(60, at="minute")
    >>> hours
    <protected collection (page: text, minute: integer) by window(60, at=minute)>
    """
    require(at, NAME, "window(at=...)")
    column = self._node.schema[at]
    digest = fingerprints(self._node)[self._node]
    span = span_of(length, column, f"window(length={described(length)})")
    group = f"window {digest.hex() if digest else os.urandom(32).hex()} of {span} by {at!r}"
    return self._then(Window(self._node, at, span, str(length), group))


def span_of(length: object, column: Column, call: str) -> int:
    """A length in the units in which a column stores times: microseconds, or ones.

    Raises:
        PlanError: The column holds no times, or it is no length of them above zero.
    """
    result: object = None
    if column.kind is Kind.INT:
        result = length if isinstance(length, int) and not isinstance(length, bool) else None
    elif column.kind in TIMES:
        if isinstance(length, dt.timedelta):
            result = length // dt.timedelta(microseconds=1)
        elif isinstance(length, str) and (parts := re.fullmatch(r"([0-9]{1,9})([smhd])", length)):
            result = int(parts[1]) * UNITS[parts[2]]
    else:
        raise PlanError(
            f"{call}, at={column.name!r}: the column is of the type {column.kind.value}; declare it as a timestamp, "
            "a date or an integer, for example columns={'time': 'timestamp'}."
        )
    if not isinstance(result, int) or not 0 < result < 2**62:
        raise PlanError(
            f"{call}: not a length above zero of a column of the type {column.kind.value}; "
            "write '15m', '1h' or '1d' for times, and a whole number for whole numbers."
        )
    return result


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


def ticks(column: Column) -> pl.Expr:
    """The times of a column in the units of a length."""
    time = pl.col(column.name).to_physical().cast(pl.Int64)
    return time * DAY if column.kind is Kind.DATE else time


@dataclass(frozen=True, eq=False)
class Window(Where):
    """Plan node of `window`: of one window, or of all of them as long as it has no number."""

    at: str
    span: int
    length: str = field(metadata=SHOWN)
    group: str
    number: int | None = None

    shown = "window({0.length}, at={0.at})"

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.at,)

    @property
    def kind(self) -> Kind:
        """The kind of the times."""
        return self.source.schema[self.at].kind

    @property
    def part(self) -> tuple[str, str] | None:
        """The windows, and which of them; "every" is what was paid before any was asked for."""
        return (self.group, "every" if self.number is None else str(self.number))

    @property
    def start(self) -> int:
        """The first moment of the window, in the units of the column.

        Raises:
            PlanError: It is no single window.
        """
        if self.number is None:
            raise PlanError(f"{self.title}: a window is observed by itself; write observe(bin, window=...).")
        return self.number * self.span

    @property
    def end(self) -> int:
        """The first moment after the window, in the units of the column."""
        return self.start + self.span

    def holding(self, value: Any) -> int:
        """The number of the window that a time lies in."""
        return moment(value, self.kind) // self.span

    def time(self, number: int) -> Any:
        """When a window begins, as the column holds times."""
        start = number * self.span
        return read(start // DAY if self.kind is Kind.DATE else start, self.kind)

    def accepts(self, record: Record) -> bool:
        time = record[self.source.schema.names.index(self.at)]
        return time is not None and self.start <= moment(time, self.kind) < self.end

    @property
    def rows(self) -> pl.Expr:
        """Which rows lie in the window."""
        return ticks(self.source.schema[self.at]).is_between(self.start, self.end, closed="left")

    def mask(self, frame: pl.DataFrame) -> pl.Expr:
        return self.rows
