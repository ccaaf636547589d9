"""Convert between the stored values of a column and Python values: of users' functions, and of records and bins.

Stored values are Polars' physical values: days and microseconds for times, canonical bytes for `Kind.ANY`, null for
None. `read` and `write` are inverse on the values of a kind; a value that does not fit raises, and its record is
dropped.

`column` makes a column of Python values: of their declared kind, or of any kind in their canonical encoding.
"""

from __future__ import annotations

import datetime as dt
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import polars as pl

from wpinq.core.records.schema import WORDS, Column, Kind, Schema, check_name, polars_type
from wpinq.core.records.values import EPOCH, EPOCH_UTC, FIRST, LAST, MICROSECOND, NULL, decode, encode
from wpinq.errors import PlanError

TYPES: dict[object, Kind] = {
    int: Kind.INT, float: Kind.FLOAT, str: Kind.TEXT, bool: Kind.BOOL, bytes: Kind.BYTES, dt.date: Kind.DATE,
    dt.datetime: Kind.TIME, dt.timedelta: Kind.SPAN, object: Kind.ANY,
}  # fmt: skip
PHYSICAL = (Kind.DATE, Kind.TIME, Kind.INSTANT, Kind.SPAN)


class Misfit(Exception):  # noqa: N818
    """A result does not have the declared kind. It carries no message: the value is a record's."""


def declared_kinds(columns: Sequence[str] | Mapping[str, object], call: str) -> tuple[tuple[str, Kind | None], ...]:
    """Read a `columns=` argument: names, or names with types (a Python type or a word).

    Raises:
        PlanError: It is something else.
    """
    if isinstance(columns, str) or not isinstance(columns, (Mapping, Sequence)):
        raise PlanError(f"{call}: columns= takes a list of names or a mapping of names to types.")
    if not columns:
        raise PlanError(f"{call}: columns= needs at least one name.")
    for name in columns:
        check_name(name, f"{call}, columns=")
    if not isinstance(columns, Mapping):
        return tuple((name, None) for name in columns)
    return tuple((name, _kind(kind, call)) for name, kind in columns.items())


def _kind(type_: object, call: str) -> Kind:
    if isinstance(type_, Kind):
        return type_
    if isinstance(type_, type) and type_ in TYPES:
        return TYPES[type_]
    if isinstance(type_, str) and type_.lower() in WORDS:
        return WORDS[type_.lower()]
    raise PlanError(f"{call}: columns= has a type that no column can have; use int, float, str, bool, bytes, date, "
                    "datetime, timedelta or object; or a word, such as 'instant' for a time with a zone.")  # fmt: skip


def read(stored: Any, kind: Kind) -> Any:
    """The Python value of what a column stores."""
    return None if stored is None else _READ[kind](stored)


def write(value: Any, kind: Kind) -> Any:
    """What a column of this kind stores for a Python value; NaN is null.

    Raises:
        Exception: The value does not fit (any exception: its text is of no use and is never shown).
    """
    return None if value is None else _WRITE[kind](value)


def reads(kinds: Sequence[Kind]) -> Callable[[tuple[Any, ...]], list[Any]] | None:
    """What reads a record's values of these kinds, or None where they are Python's as they are stored."""
    readers = [_READ[kind] for kind in kinds]
    if all(reader is _same for reader in readers):
        return None
    return lambda record: [
        None if value is None else reader(value) for reader, value in zip(readers, record, strict=False)
    ]


def writer(kind: Kind) -> Callable[[Any], Any]:
    """What `write` does to a value of a kind that is not None."""
    return _WRITE[kind]


def code(stored: Any, kind: Kind) -> bytes:
    """The canonical encoding of what a column stores."""
    return (NULL if stored is None else stored) if kind is Kind.ANY else encode(read(stored, kind))


def codes(column: pl.Series, kind: Kind) -> pl.Series:
    """The canonical encodings of the values in a column, as bytes."""
    if kind is Kind.TEXT:
        encoded = column.cast(pl.Binary) + _byte(b"s")
    elif kind in (Kind.INT, Kind.BOOL):
        numbers = _fixed(column.cast(pl.Int64).fill_null(0).to_numpy(), 8) + _byte(b"i")
        encoded = numbers.zip_with(column.is_not_null(), _byte(None))
    elif kind is Kind.ANY:
        encoded = column
    else:
        encoded = pl.Series([code(value, kind) for value in column.to_physical()], dtype=pl.Binary)
    return encoded.fill_null(NULL)


def joined_codes(columns: Sequence[pl.Series]) -> pl.Series:
    """The canonical encodings of records, from those of the values in their columns: see `values.joined`."""
    parts = [_fixed(column.bin.size().cast(pl.Int64).to_numpy(), 4) + column for column in columns]
    return reduce(operator.add, parts) + _byte(b"c")


def _byte(value: bytes | None) -> pl.Series:
    return pl.Series([value], dtype=pl.Binary)


def _fixed(numbers: np.ndarray, size: int) -> pl.Series:
    """The first bytes of integers, the least significant first."""
    import pyarrow as pa

    data = np.ascontiguousarray(numbers.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :size])
    array = pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), len(data), [None, pa.py_buffer(data)])
    return pl.Series(array.cast(pa.large_binary()), dtype=pl.Binary)


def stored(column: Column) -> pl.Expr:
    """The stored values of a column."""
    expression = pl.col(column.name)
    return expression.to_physical() if column.kind in PHYSICAL else expression


def series(name: str, values: Iterable[Any], kind: Kind) -> pl.Series:
    """A column from its stored values."""
    if kind in PHYSICAL:
        return pl.Series(name, values, dtype=pl.Int64).cast(polars_type(kind))
    return pl.Series(name, values, dtype=polars_type(kind))


def plain_record(record: tuple[Any, ...], schema: Schema, names: Sequence[str]) -> tuple[Any, ...]:
    """Some values of a record, as columns would store them."""
    values = dict(zip(schema.names, record, strict=True))
    return tuple(write(values[name], schema[name].kind) for name in names)


def _number(value: Any) -> Any:
    if hasattr(value, "dtype") and hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, (bool, int, float, Decimal, Fraction)):
        raise Misfit
    return value


def _integer(value: Any) -> int:
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    number = _number(value)
    whole = int(number)
    if whole != number or not -(2**63) <= whole < 2**63:
        raise Misfit
    return whole


def _float(value: Any) -> float | None:
    number = float(_number(value)) + 0.0  # -0.0 + 0.0 is 0.0
    return number if number == number else None  # noqa: PLR0124


def _bool(value: Any) -> bool:
    number = _number(value)
    if number not in (0, 1):
        raise Misfit
    return bool(number)


def _text(value: Any) -> str:
    if type(value) is str and value.isascii():
        return value
    if not isinstance(value, str):
        raise Misfit
    return str.encode(value).decode()  # lone surrogates are no text


def _bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray)):
        raise Misfit
    return bytes(value)


def _date(value: Any) -> int:
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise Misfit
    return value.toordinal() - EPOCH.toordinal()


def _time(value: Any) -> int:
    if not isinstance(value, dt.datetime) or value.tzinfo is not None:
        raise Misfit
    return (value - EPOCH) // MICROSECOND


def _instant(value: Any) -> int:
    if not isinstance(value, dt.datetime) or value.tzinfo is None:
        raise Misfit
    count = (value - EPOCH_UTC) // MICROSECOND
    if not FIRST <= count <= LAST:  # where its zone is, the year is still one that Python has
        raise Misfit
    return count


def _span(value: Any) -> int:
    if not isinstance(value, dt.timedelta):
        raise Misfit
    return _integer(value // MICROSECOND)


def _any(value: Any) -> bytes | None:
    code = encode(value)
    return None if code == NULL else code


def _same(value: Any) -> Any:
    return value


_READ: dict[Kind, Callable[[Any], Any]] = dict.fromkeys(Kind, _same) | {
    Kind.ANY: decode,
    Kind.DATE: lambda days: dt.date.fromordinal(days + EPOCH.toordinal()),
    Kind.TIME: lambda count: EPOCH + count * MICROSECOND,
    Kind.INSTANT: lambda count: EPOCH_UTC + count * MICROSECOND,
    Kind.SPAN: lambda count: count * MICROSECOND,
}
_WRITE: dict[Kind, Callable[[Any], Any]] = {
    Kind.INT: _integer, Kind.FLOAT: _float, Kind.TEXT: _text, Kind.BOOL: _bool, Kind.BYTES: _bytes, Kind.DATE: _date,
    Kind.TIME: _time, Kind.INSTANT: _instant, Kind.SPAN: _span, Kind.ANY: _any,
}  # fmt: skip


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
    except Exception:  # noqa: BLE001  methods of a class of one's own may raise anything, and it concerns this value alone
        return None


def fitted(value: Any, kind: Kind) -> Any:
    """What stands for a value in a column of this kind: None for NaN among numbers, and UTC for a time with its zone.

    Raises:
        BinError, ValueError, TypeError, ArithmeticError, RecursionError: It is no value of this kind; or whatever a
            method of it raises.
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
    if type(result) is PYTHON.get(kind) and aware is (kind is Kind.INSTANT):
        return result
    raise TypeError


PYTHON = {
    Kind.TEXT: str, Kind.BYTES: bytes, Kind.DATE: dt.date, Kind.TIME: dt.datetime, Kind.INSTANT: dt.datetime,
    Kind.SPAN: dt.timedelta,
}  # fmt: skip
