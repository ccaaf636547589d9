"""Python values as columns: of their declared kind, or of any kind in their canonical encoding."""

from __future__ import annotations

import datetime as dt
import numbers
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import polars as pl

from wpinq.errors import BinError
from wpinq.records.schema import Column, Kind, polars_type
from wpinq.records.values import NULL, decode, encode

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
        code = encode(value)
        if kind is Kind.ANY:
            return None if code == NULL else code
        return _of_kind(decode(code), kind)
    except (BinError, ValueError, OverflowError, TypeError, ArithmeticError, RecursionError):
        return None


def _of_kind(value: Any, kind: Kind) -> Any:
    if kind is Kind.INT:
        return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None
    if kind is Kind.FLOAT:
        return float(value) if isinstance(value, (float, Decimal, numbers.Rational)) else None
    if kind is Kind.BOOL:
        return bool(value) if isinstance(value, int) and value in (0, 1) else None
    if kind is Kind.DATE:
        return value if type(value) is dt.date else None
    if kind in (Kind.TIME, Kind.INSTANT):
        return value if isinstance(value, dt.datetime) and (value.tzinfo is None) is (kind is Kind.TIME) else None
    types: dict[Kind, type] = {Kind.TEXT: str, Kind.BYTES: bytes, Kind.SPAN: dt.timedelta}
    return value if isinstance(value, types[kind]) else None
