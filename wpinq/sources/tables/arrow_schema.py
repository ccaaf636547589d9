"""The types of Arrow that a Parquet file keeps beside its own, looked at before Polars is asked.

Of a type that it does not know, such as a time in the zone `+05:30`, Polars prints a panic before it raises anything,
also where the column is not read. Arrow reads all of them. It is asked for what is not plain alone: to load it takes
longer than to read a small file.
"""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from pathlib import Path

KEPT = "ARROW:schema"
"""Where Polars, pyarrow and pandas keep the types of Arrow in a file."""
PLAIN = {2, 3, 5, 6, 20, 24}
"""Integers, floats, texts, booleans, large texts and views of texts, as `Type` of Arrow's Schema.fbs numbers them."""
HEAD, HEADER, FIELDS, TYPE = 8, 2, 1, 2
"""Bytes before a message, and where its tables have the schema, the columns, and the type of a column."""


def kept(path: Path) -> str | None:
    """The types that a Parquet file keeps, as it holds them; None where there are none.

    Raises:
        PolarsError, PanicException, OSError: It is not a Parquet file, or damaged.
    """
    return pl.read_parquet_metadata(path).get(KEPT)


def all_plain(text: str) -> bool:
    """Whether all columns are of types that need no Arrow."""
    try:
        content = base64.b64decode(text)
        schema = _at(content, _slot(content, _at(content, HEAD), HEADER))
        fields = _at(content, _slot(content, schema, FIELDS))
        count = _number(content, "<I", fields)
        columns = (_at(content, fields + 4 + 4 * index) for index in range(min(count, len(content))))
        return all(content[_slot(content, column, TYPE)] in PLAIN for column in columns)
    except (ValueError, LookupError, struct.error):
        return False


def unknown(text: str | bytes) -> list[str]:
    """The columns of types that Polars does not know, also inside of others.

    Raises:
        ArrowException: Arrow cannot read the types.
    """
    import pyarrow as pa

    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
    return [field.name for field in schema if not _known(field.type)]


def _number(content: bytes, form: str, place: int) -> int:
    if place < 0:
        raise LookupError
    return int(struct.unpack_from(form, content, place)[0])


def _at(content: bytes, place: int) -> int:
    """Where an offset points to, which counts from its own place."""
    return place + _number(content, "<I", place)


def _slot(content: bytes, table: int, field: int) -> int:
    """Where a table has a field (https://flatbuffers.dev/internals)."""
    places = table - _number(content, "<i", table)
    place = 4 + 2 * field
    inside = _number(content, "<H", places + place) if place < _number(content, "<H", places) else 0
    if not inside:
        raise LookupError
    return table + inside


def _known(type_: Any) -> bool:
    import pyarrow as pa
    from pyarrow import types

    if isinstance(type_, pa.BaseExtensionType):
        return _known(type_.storage_type)
    if types.is_dictionary(type_):
        return _known(type_.value_type)
    if types.is_timestamp(type_):
        return type_.tz is None or _zone(type_.tz)
    if types.is_list_view(type_) or types.is_large_list_view(type_):
        return False
    if types.is_union(type_) or types.is_run_end_encoded(type_) or types.is_interval(type_):
        return False
    return all(_known(type_.field(index).type) for index in range(type_.num_fields))


def _zone(name: str) -> bool:
    try:
        pl.Series(dtype=pl.Int64).cast(pl.Datetime("us", name))
    except pl.exceptions.PolarsError:
        return False
    return True
