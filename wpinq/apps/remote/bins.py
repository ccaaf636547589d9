"""Bins in JSON: read by the public types of the columns, as strictly as in Python."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec

from wpinq.apps.remote.wire import Observe
from wpinq.core import Column, Kind, Schema
from wpinq.errors import BinError

TYPES: dict[Kind, Any] = {
    Kind.BYTES: bytes,
    Kind.DATE: dt.date,
    Kind.TIME: dt.datetime,
    Kind.INSTANT: dt.datetime,
    Kind.SPAN: dt.timedelta,
}
"""Kinds that JSON has no values of: they are text there."""


def bins_of(request: Observe, schema: Schema, most: int) -> Any:
    """The bins that a request names: a list, or a range of whole numbers.

    Args:
        request: The request.
        schema: The columns that are measured.
        most: How many bins one request may have.

    Raises:
        BinError: A bin is none of these columns, or there are none or too many.
    """
    if (request.bins is None) is (request.range is None):
        raise BinError('observe: give either {"bins": [...]} or {"range": {"first": 1, "last": 100}}.')
    if request.bins is not None:
        _insist(len(request.bins) <= most, most)
        return [value(bin_, schema) for bin_ in request.bins]
    assert request.range is not None  # noqa: S101  one of the two is there
    first, last = request.range.first, request.range.last
    _insist(0 <= last - first < most, most)
    _insist(first >= -(2**63) and last < 2**63, most)
    return range(first, last + 1)


def value(data: Any, schema: Schema) -> Any:
    """One bin, or one group, as Python has it.

    Raises:
        BinError: It is none of these columns.
    """
    if len(schema) == 1:
        return _read(data, schema.columns[0])
    if not isinstance(data, list) or len(data) != len(schema):
        raise BinError(f"observe: a bin of {schema} is a list of {len(schema)} values.")
    return tuple(_read(part, column) for part, column in zip(data, schema, strict=True))


def _read(data: Any, column: Column) -> Any:
    if data is None:
        return None
    wanted = TYPES.get(column.kind)
    if wanted is None:
        if isinstance(data, list):
            if column.kind is not Kind.ANY:
                raise BinError(f"observe: a list does not fit; bins of {column.name!r} are {column.kind.value}.")
            return tuple(data)
        return data
    try:
        return msgspec.convert(data, wanted)
    except msgspec.ValidationError:
        hint = f"bins of column {column.name!r} are of the type {column.kind.value}, as ISO 8601 text"
        raise BinError(f"observe: {type(data).__name__} does not fit; {hint}.") from None


def _insist(fits: bool, most: int) -> None:
    if not fits:
        raise BinError(f"observe: at most {most} bins, in order; ask for them in several requests.")
