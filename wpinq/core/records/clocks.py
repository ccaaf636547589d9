"""When the clocks of a zone show a time: once, twice where they are put back, and never where they are put forward."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo


def instant_of(clock: dt.datetime, zone: str, *, last: bool) -> dt.datetime:
    """The first moment, in UTC, at which the clocks of a zone show a time, or the last one.

    Where they jump over it, it is the moment of the jump: before it they show earlier times, and from then on later.

    Args:
        clock: What they show, without a zone.
        zone: Whose they are.
        last: Whether the last moment is wanted, where there are two.

    Raises:
        OverflowError: It is outside of the calendar.

    >>> instant_of(dt.datetime(2026, 10, 25, 2, 30), "Europe/Berlin", last=True).isoformat()
    '2026-10-25T01:30:00+00:00'
    >>> instant_of(dt.datetime(2017, 10, 15), "America/Sao_Paulo", last=True).isoformat()  # midnight was left out
    '2017-10-15T03:00:00+00:00'
    """
    here = ZoneInfo(zone)
    first, second = (clock.replace(tzinfo=here, fold=fold).astimezone(dt.UTC) for fold in (0, 1))
    if first <= second:
        return second if last else first
    tick = dt.timedelta(microseconds=1)
    low, high = 0, (first - second) // tick  # the jump is after the one and not after the other
    while low + 1 < high:
        middle = (low + high) // 2
        before = (second + middle * tick).astimezone(here).replace(tzinfo=None) < clock
        low, high = (middle, high) if before else (low, middle)
    return second + high * tick
