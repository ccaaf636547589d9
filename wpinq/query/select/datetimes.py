"""Extremes and ranks of dates and times: as whole days or seconds, which are numbers, and back."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl

from wpinq.aggregates.scale import Bounds
from wpinq.core.functions.sql.terms import Term
from wpinq.core.functions.tree import Node, lit
from wpinq.core.records.schema import Kind, polars_type
from wpinq.errors import PlanError
from wpinq.query.select.derived import CALL

TIMES = (Kind.DATE, Kind.TIME, Kind.INSTANT)
"""Types of times; dates are counted in days, others in seconds, from 1970 on."""
FIRST = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def as_number(term: Term, bounds: Bounds, written: str) -> tuple[Node, Bounds]:
    """A time of a record and its bounds as numbers.

    Raises:
        PlanError: The bounds are no times.
    """
    assert term.kind is not None  # noqa: S101  it is one of `TIMES`
    low, high = (_count(bound, term.kind, written) for bound in bounds)
    if term.kind is Kind.DATE:
        return term.value.cast(pl.Int32, strict=False).cast(pl.Int64, strict=False), (low, high)
    return term.value.dt.timestamp(time_unit="ms") // lit(1000, pl.Int64), (low, high)


def as_time(numbers: pl.Series, kind: Kind) -> pl.Series:
    """Numbers as times."""
    whole = numbers.round(0).cast(pl.Int64)
    stored = whole.cast(pl.Int32) if kind is Kind.DATE else whole * 10**6
    return stored.cast(polars_type(kind))


def spelled(number: int, kind: Kind) -> str:
    """A bound as people write it."""
    return str(as_time(pl.Series([float(number)]), kind).item())


def is_time(bound: Any) -> bool:
    """Whether a bound is a date or a time."""
    return isinstance(bound, dt.date) or (isinstance(bound, str) and "-" in bound[1:] and "/" not in bound)


def _count(bound: Any, kind: Kind, written: str) -> int:
    try:
        time = bound if isinstance(bound, dt.date) else dt.datetime.fromisoformat(bound)
        at = time if isinstance(time, dt.datetime) else dt.datetime.combine(time, dt.time())
    except (TypeError, ValueError):
        raise PlanError(
            f"{CALL}: {written}: the bounds of a time are times, such as ('2026-01-01', '2026-12-31')."
        ) from None
    at = at if at.tzinfo is not None else at.replace(tzinfo=dt.UTC)
    seconds = (at - FIRST) // dt.timedelta(seconds=1)
    return seconds // 86400 if kind is Kind.DATE else seconds
