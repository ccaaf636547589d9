"""Bins as people write them: `home`, `1..1000`, `ann:3`, `["a,b", "c"]`, read by the public types of the columns.

And the bounds of numbers: `income=0..400000`.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from wpinq.core import Column, Kind, Schema
from wpinq.errors import BinError, PlanError
from wpinq.exact import exact

MAX_BINS = 10_000_000
"""Bins of one question on a command line; each costs some forty bytes of memory, and no epsilon."""

RANGED = Kind.INT, Kind.ANY, Kind.TEXT
"""What has ranges of whole numbers: text too, since columns of a text file are text unless they were given a type."""

GRAMMAR = (
    "Bins are separated by commas, the values of a bin of several columns by colons; whole numbers can be a range: "
    'NAME=1..1000, NAME=home,news, NAME=ann:1..3. Or write JSON: NAME=\'["a,b", "c"]\', for several columns a list '
    "of lists. Text needs no quotes, but in JSON; dates and times are written as 2026-07-31 and 2026-07-31T12:00, "
    "durations in seconds, bytes in hexadecimal digits."
)


def ask(texts: Sequence[str], schema: Schema) -> list[Any]:
    """Read the bins of a question and check that a measurement with these columns could hold them.

    Raises:
        BinError: They do not fit the columns.
    """
    from wpinq.core import bin_frame

    result = [parse_bin for text in texts for parse_bin in parse_bins(text, schema)]
    bin_frame(result, schema)
    return result


def reading_note(bins: Sequence[Any], schema: Schema) -> str:
    """How bins of columns of any type were read, where that is not as they stand; nothing where it is.

    >>> reading_note(["a", "b"], Schema.of(page=Kind.ANY)), reading_note([1], Schema.of(page=Kind.INT))
    ('', '')
    >>> print(reading_note([1, "b"], Schema.of(page=Kind.ANY)))
    Bins of page may be of any type; some are read as whole numbers. As text they are written '["1"]'.
    """
    anything = [index for index, column in enumerate(schema) if column.kind is Kind.ANY]
    some = itertools.islice(bins, 0, 1000)
    values = [bin_[index] if len(schema) > 1 else bin_ for bin_ in some for index in anything]
    kinds = list(dict.fromkeys(WORDS[type(value)] for value in values if type(value) in WORDS))
    if not kinds:
        return ""
    quoted = ", ".join(['"1"'] * len(schema))
    example = f"[{quoted}]" if len(schema) == 1 else f"[[{quoted}]]"
    names = ", ".join(schema.columns[index].name for index in anything)
    return (
        f"Bins of {names} may be of any type; some are read as {' and '.join(kinds)}. As text they are written"
        f" '{example}'."
    )


WORDS: dict[type, str] = {int: "whole numbers", float: "numbers", bool: "true and false", type(None): "null"}
"""What a bin without quotes may be read as, beside text."""


def parse_bins(text: str, schema: Schema) -> Sequence[Any]:
    """Read bins of a measurement with these columns.

    Returns:
        Bins as `observe_many` takes them; a single range stays a range.

    Raises:
        BinError: They do not fit the columns.

    >>> parse_bins("1..3", Schema.of(index=Kind.INT))
    range(1, 4)
    >>> parse_bins("ann:1..2,bob:7", Schema.of(user=Kind.TEXT, page=Kind.INT))
    [('ann', 1), ('ann', 2), ('bob', 7)]
    """
    if text.startswith("["):
        return _from_json(text, schema)
    single = _values(text, schema.columns[0]) if len(schema) == 1 and "," not in text else None
    if isinstance(single, range):
        return single
    result: list[Any] = []
    for part in text.split(","):
        result += _bins(part, schema)
        if len(result) > MAX_BINS:
            raise _too_many()
    return result


def _bins(text: str, schema: Schema) -> list[Any]:
    """One bin, or as many as its ranges give."""
    if len(schema) == 1:
        return list(_values(text, schema.columns[0]))
    parts = text.split(":")
    if len(parts) != len(schema):
        raise BinError(f"bin {text!r}: a bin of {schema} is written as {':'.join(schema.names)}, or as a JSON list.")
    columns = [_values(part, column) for part, column in zip(parts, schema, strict=True)]
    if math.prod(map(len, columns)) > MAX_BINS:
        raise _too_many()
    return list(itertools.product(*columns))


def _values(text: str, column: Column) -> Sequence[Any]:
    if column.kind in RANGED and (ends := re.fullmatch(r"(-?\d{1,18})\.\.(-?\d{1,18})", text)):
        values = range(int(ends[1]), int(ends[2]) + 1)
        if not values:
            raise BinError(f"bins {text!r}: the range ends before it begins.")
        if len(values) > MAX_BINS:
            raise _too_many()
        width = len(ends[1]) if ends[1].startswith("0") else 0  # 08, 09, 10
        return [str(value).zfill(width) for value in values] if column.kind is Kind.TEXT else values
    return [parse_value(text, column)]


def parse_value(text: str, column: Column) -> Any:
    """Read one value of a column.

    Raises:
        BinError: It does not fit.
    """
    try:
        return _READ[column.kind](text)
    except (ValueError, OverflowError):
        hint = f"bins of column {column.name!r} are of the type {column.kind.value}"
        raise BinError(f"bin {text!r} does not fit; {hint}. See `wpinq run --help`.") from None


def _from_json(text: str, schema: Schema) -> list[Any]:
    try:
        items = json.loads(text)
    except ValueError:
        raise BinError(f"bins {text!r}: not a JSON list.") from None
    if len(schema) == 1:
        return [_item(item, schema.columns[0]) for item in items]
    if not all(isinstance(item, list) and len(item) == len(schema) for item in items):
        raise BinError(f"bins {text!r}: give a list of lists of {len(schema)} values, for {schema}.")
    return [tuple(_item(entry, column) for entry, column in zip(item, schema, strict=True)) for item in items]


def _item(item: Any, column: Column) -> Any:
    """A JSON value: text stands for the types that JSON does not have; the measurement checks the rest."""
    if isinstance(item, str) and column.kind not in (Kind.TEXT, Kind.ANY, Kind.INT, Kind.FLOAT, Kind.BOOL):
        return parse_value(item, column)
    return item


def _any(text: str) -> Any:
    """Numbers, null, true, false and quoted text as JSON has them; all else is text."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        return text
    return text if isinstance(value, dict) else value


def _whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,19}", text):
        raise ValueError
    return int(text)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _refuse(_: str) -> None:
    raise ValueError


def _too_many() -> BinError:
    return BinError(f"more than {MAX_BINS:,} bins are asked for at once; ask for fewer.")


_READ: dict[Kind, Callable[[str], Any]] = {
    Kind.INT: _whole,
    Kind.FLOAT: float,
    Kind.TEXT: str,
    Kind.BOOL: _truth,
    Kind.BYTES: bytes.fromhex,
    Kind.DATE: dt.date.fromisoformat,
    Kind.TIME: dt.datetime.fromisoformat,
    Kind.INSTANT: dt.datetime.fromisoformat,
    Kind.SPAN: lambda text: dt.timedelta(seconds=float(text)),
    Kind.ANY: _any,
}


def parse_bounds(text: str) -> tuple[str, tuple[Fraction, Fraction] | tuple[str, str]]:
    """Read the bounds of a column or expression: numbers, or times as 2026-01-31.

    Raises:
        PlanError: It is not WHAT=LOW..HIGH.
        ExactnessError: A bound is no number.

    >>> parse_bounds("income=0..400000")
    ('income', (Fraction(0, 1), Fraction(400000, 1)))
    """
    name, equals, ends = text.rpartition("=")
    low, dots, high = ends.partition("..")
    if not name or not equals or not dots:
        raise PlanError("--bounds: write WHAT=LOW..HIGH, for example income=0..400000.")
    if all(re.match(r"\s*\d{4}-\d\d-\d\d", end) for end in (low, high)):
        return name, (low.strip(), high.strip())
    return name, (exact(low, "--bounds"), exact(high, "--bounds"))
