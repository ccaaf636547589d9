"""Python values as columns: of their declared kind, or of any kind in their canonical encoding."""

from __future__ import annotations

import datetime as dt
import numbers
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import polars as pl

from wpinq.core.records.schema import Column, Kind, polars_type
from wpinq.core.records.values import NULL, decode, encode
from wpinq.errors import BinError

PLAIN = frozenset({str, int, float, bool, bytes})  # equal values of these types have one encoding
MEMO = 1 << 20


def column(values: Iterable[Any], column: Column, memo: dict[Any, Any] | None = None) -> pl.Series:
    """A column of Python values; what is not a value, or not of the column's kind, is null.

    Args:
        values: The values.
        column: The name, and the kind that all values must have; `Kind.ANY` takes all.
        memo: What is known of earlier values of the same column.
    """
    known: dict[Any, Any] = {} if memo is None else memo
    cells = []
    for value in values:
        plain = type(value) in PLAIN
        if plain and value in known:
            cells.append(known[value])
            continue
        cells.append(cell(value, column.kind))
        if plain and len(known) < MEMO:
            known[value] = cells[-1]
    return pl.Series(column.name, cells, polars_type(column.kind))


def cell(value: Any, kind: Kind) -> Any:
    """What stands for a value in a column of this kind; None if it cannot."""
    try:
        return fitted(value, kind)
    except (BinError, ValueError, TypeError, ArithmeticError, RecursionError):
        return None


def fitted(value: Any, kind: Kind) -> Any:
    """What stands for a value in a column of this kind: None for NaN among numbers, and UTC for a time with its zone.

    Raises:
        BinError, ValueError, TypeError, ArithmeticError, RecursionError: It is no value of this kind.
    """
    code = encode(value)
    if kind is Kind.ANY:
        return None if code == NULL else code
    result = decode(code)
    if kind is Kind.FLOAT and isinstance(result, (float, Decimal, numbers.Rational, type(None))):
        return None if result is None else float(result)
    if kind is Kind.BOOL and isinstance(result, int) and result in (0, 1):
        return bool(result)
    if kind is Kind.INT and isinstance(result, int) and -(2**63) <= result < 2**63:
        return result
    if kind is Kind.TIME and isinstance(result, dt.datetime) and result.tzinfo is not None:
        return result.astimezone(dt.UTC).replace(tzinfo=None)
    aware = isinstance(result, dt.datetime) and result.tzinfo is not None
    if type(result) is TYPES.get(kind) and aware is (kind is Kind.INSTANT):
        return result
    raise TypeError


TYPES = {
    Kind.TEXT: str, Kind.BYTES: bytes, Kind.DATE: dt.date, Kind.TIME: dt.datetime, Kind.INSTANT: dt.datetime,
    Kind.SPAN: dt.timedelta,
}  # fmt: skip
