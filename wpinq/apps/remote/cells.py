"""Values in JSON, and back: times and durations as ISO 8601 text, bytes in Base64, infinities as words.

A column says of which type it is, and so what a text stands for. In one that holds values of any type a text is a text:
there only what JSON has itself can be asked for.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import polars as pl

from wpinq.core import Kind, Schema, bin_frame, polars_type
from wpinq.errors import BinError, PlanError
from wpinq.html.written import finite

TYPES: dict[Kind, Any] = {
    Kind.BYTES: bytes,
    Kind.DATE: dt.date,
    Kind.TIME: dt.datetime,
    Kind.INSTANT: dt.datetime,
    Kind.SPAN: dt.timedelta,
}
"""Kinds that JSON has no values of: they are text there."""
WORDS = {finite(number): number for number in (math.inf, -math.inf)}
"""Numbers that JSON has none of."""
NARROW = (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32)
"""Types of whole numbers that a column of integers holds."""


def as_json(value: Any) -> Any:
    """A value as JSON has it; a decimal is the double that prints as it does.

    Raises:
        BinError: It is no value that JSON can stand for.

    >>> as_json(("a", dt.date(2026, 1, 2), math.inf))
    ['a', '2026-01-02', 'Infinity']
    """
    if isinstance(value, (tuple, list)):
        return [as_json(item) for item in value]
    if hasattr(value, "item"):
        return as_json(value.item())
    try:
        return finite(msgspec.to_builtins(_plain(value)))
    except (TypeError, OverflowError, ValueError):
        raise BinError(f"{type(value).__name__}: such a value cannot be sent.") from None


def _plain(value: Any) -> Any:
    """A value of Python's own types, in UTC where it has a zone.

    Raises:
        ValueError: It is a number that no double is.
        OverflowError: In UTC its year is none that Python has.
    """
    if isinstance(value, dt.datetime):
        known = value if value.tzinfo is None else value.astimezone(dt.UTC)
        return dt.datetime.combine(known.date(), known.time(), None if value.tzinfo is None else dt.UTC)
    if isinstance(value, dt.timedelta):
        return dt.timedelta(value.days, value.seconds, value.microseconds)
    if isinstance(value, (Decimal, Fraction)):
        number = float(value)
        if math.isfinite(number) and number != value and Decimal(repr(number)) != value:
            raise ValueError
        return number
    return value


def bins_sent(bins: Iterable[Any], schema: Schema) -> list[Any]:
    """Bins as they are sent, which Python reads first: it refuses what it would refuse of a measurement here.

    Raises:
        BinError: The columns could never hold such a bin.
        PlanError: One would be another bin on its way.
    """
    if all(column.kind is not Kind.ANY for column in schema):
        rows = bin_frame(bins, schema).rows()
        return [as_json(row if len(schema) > 1 else row[0]) for row in rows]
    listed = list(bins)
    bin_frame(listed, schema)
    for bin_ in listed:
        for value, column in zip(bin_ if len(schema) > 1 else [bin_], schema, strict=True):
            if column.kind is Kind.ANY and not _is_json(value):
                raise PlanError(f"observe: {type(value).__name__} in a column of any type cannot be sent.")
    return [as_json(bin_) for bin_ in listed]


def _is_json(value: Any) -> bool:
    """Whether JSON has this very value."""
    if isinstance(value, (tuple, list)):
        return all(map(_is_json, value))
    if isinstance(value, float):
        return not math.isinf(value)
    return value is None or isinstance(value, (str, int))


def received(data: Any, kind: Kind) -> Any:
    """A value of a column that was sent.

    Raises:
        msgspec.ValidationError: It is none of this kind.
    """
    if isinstance(data, list) and kind is Kind.ANY:
        return tuple(received(item, kind) for item in data)
    if kind is Kind.FLOAT and isinstance(data, str):
        return WORDS.get(data, data)
    return data if data is None or kind not in TYPES else msgspec.convert(data, TYPES[kind])


def table_sent(cells: pl.DataFrame) -> tuple[list[str], list[list[Any]]]:
    """The types of a table's columns and its rows, as they are sent."""
    types = [_kind(dtype).value for dtype in cells.dtypes]
    return types, [list(row) for row in zip(*map(_sent, cells.get_columns()), strict=True)]


def table_received(names: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]]) -> pl.DataFrame:
    """The table, with the values and types that it had."""
    columns = []
    for at, (name, kind) in enumerate(zip(names, map(Kind, types), strict=True)):
        values = [received(row[at], kind) for row in rows]
        columns.append(pl.Series(name, values, pl.Object() if kind is Kind.ANY else polars_type(kind)))
    return pl.DataFrame(columns)


def _sent(column: pl.Series) -> list[Any]:
    values = column.to_list()
    if column.dtype == pl.Object:
        return [value if _is_json(value) else _text(value) for value in values]
    return [finite(value) for value in values] if column.dtype.is_float() else values


def _text(value: Any) -> Any:
    """A value of any type as JSON has it, or as Python prints it: nothing is refused that was charged."""
    try:
        return as_json(value)
    except BinError:
        return str(value)


def _kind(dtype: pl.DataType) -> Kind:
    if dtype in NARROW:
        return Kind.INT
    return next((kind for kind in Kind if kind is not Kind.ANY and polars_type(kind) == dtype), Kind.ANY)
