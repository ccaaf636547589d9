"""Values and records as the oracle compares and counts them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

import polars as pl
from attacks.fuzz import pools

Record = tuple[object, ...]
Weights = dict[object, tuple[Record, Fraction]]
"""By canonical record: the record, and its weight."""
Columns = tuple[tuple[str, str], ...]


class UnknownError(Exception):
    """The oracle has no opinion."""


def canon(value: object) -> object:
    """Equal values, and only those, as `values.py` documents equality."""
    if value is None or isinstance(value, (str, bytes)):
        return (type(value).__name__, value)
    if isinstance(value, (bool, int, float, Decimal, Fraction)):
        if value != value:
            return canon(None)
        return ("number", value if isinstance(value, float) and math.isinf(value) else Fraction(value))
    if isinstance(value, (tuple, list)):
        return ("tuple", *map(canon, value))
    if isinstance(value, (dt.datetime, dt.date, dt.timedelta)):
        return (type(value).__name__, value)
    raise UnknownError


def fits(value: object, kind: str) -> bool:
    """Whether a function's result can be in a column of a kind."""
    if value is None or kind == "value":
        return True
    number = isinstance(value, (bool, int, float, Decimal, Fraction))
    if kind == "integer":
        return number and math.isfinite(value) and value == int(value) and -(2**63) <= value < 2**63  # type: ignore[arg-type, call-overload, operator]
    if kind == "number":
        return number
    if kind == "boolean":
        return number and value in (0, 1)
    types = {"text": str, "bytes": bytes, "date": dt.date, "timestamp": dt.datetime, "duration": dt.timedelta}
    return isinstance(value, types[kind]) and (kind != "date" or not isinstance(value, dt.datetime))


def held(value: object, kind: str) -> object:
    """A value as a column of a kind holds it."""
    if value is None or value != value:
        return None
    if kind == "number":
        return float(value) + 0.0  # type: ignore[arg-type]
    if kind == "boolean":
        return bool(value)
    if kind == "integer":
        return int(value)  # type: ignore[call-overload]
    if kind == "value" and isinstance(value, (bool, float)) and math.isfinite(value) and value == int(value):
        return int(value)
    if kind == "value" and isinstance(value, (list, tuple)):
        return tuple(held(one, kind) for one in value)
    return value


def gathered(pairs: Iterator[tuple[Record, Fraction]] | list[tuple[Record, Fraction]]) -> Weights:
    out: Weights = {}
    for record, weight in pairs:
        key = canon(record)
        out[key] = (record, out.get(key, (record, Fraction(0)))[1] + weight)
    return {key: pair for key, pair in out.items() if pair[1] != 0}


def levels(members: list[tuple[Record, Fraction]], whole: bool) -> list[tuple[int, Fraction]]:
    """How many records each group of a key has, and its weight: prefixes of falling weight, half each."""
    if whole:
        count = sum(int(weight) for _, weight in members if weight > 0)
        return [(count, Fraction(1))] if count else []
    found = []
    for sign in (1, -1):
        sizes = sorted((sign * weight for _, weight in members if sign * weight > 0), reverse=True)
        for number, size in enumerate(sizes, start=1):
            below = sizes[number] if number < len(sizes) else Fraction(0)
            found.append((number, sign * (size - below) / 2))
    return found


def shrunk(total: Fraction, at_most: int | None) -> Fraction:
    """R(D) of the rule of joins, over K^2."""
    square = 2**80
    less = 2**40 if at_most is None else -(-square // at_most)
    return Fraction(max(0, square // int(total) - less), square)


def out_record(call: Callable[[Record], object], record: Record, columns: Columns) -> list[Record]:
    try:
        found = wrapped(call(record), columns)
    except Exception:
        return []
    return [] if found is None else [found]


def wrapped(value: object, columns: Columns) -> Record | None:
    """A function's result as a record of columns; None where it is none."""
    row = value if isinstance(value, tuple) and len(columns) > 1 else (value,)
    if len(row) != len(columns) or not all(fits(v, kind) for v, (_, kind) in zip(row, columns, strict=True)):
        return None
    return tuple(held(v, kind) for v, (_, kind) in zip(row, columns, strict=True))


def by_expression(expression: pl.Expr, record: Record, columns: Columns) -> bool:
    """One record at a time: what a Polars expression means of one row cannot depend on others."""
    from attacks.fuzz.sources import TYPES

    if any(kind == "value" for _, kind in columns):
        raise UnknownError
    given = [pl.Series(n, [v], dtype=TYPES[kind]) for v, (n, kind) in zip(record, columns, strict=True)]
    return pl.DataFrame(given).select(expression.alias("kept"))["kept"][0] is True


def moment(value: object) -> int:
    if isinstance(value, dt.datetime):
        return (value - pools.EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - pools.EPOCH.date()).days * pools.DAY
    return int(value)  # type: ignore[call-overload]
