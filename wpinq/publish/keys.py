"""Declared keys: the groups that a release shows, present or not, from a file or a list. They are public."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from wpinq.errors import BinError, SourceError
from wpinq.records.bins import bin_frame
from wpinq.records.schema import Kind, Schema, in_columns
from wpinq.records.text import parse


def declared(given: str | list[Any], schema: Schema, home: Path, call: str) -> pl.DataFrame:
    """Read keys.

    A file is Parquet, or text with one key a line, its values separated by commas as CSV has them. A first line that
    names the columns is passed over.

    Args:
        given: A file, or the keys themselves.
        schema: The columns of a key.
        home: The directory that a relative path starts from.
        call: What messages call it.

    Returns:
        The keys as columns of the schema, in their order.

    Raises:
        SourceError: The file cannot be read.
        BinError: A key does not fit the columns, or there is none.
    """
    if isinstance(given, list):
        return _some(bin_frame([tuple(one) if isinstance(one, list) else one for one in given], schema), call)
    path = home / given
    texts = _read(path, call)
    if texts.width != len(schema):
        raise BinError(f"{call}: {path} has {texts.width} columns; a key of {schema} has {len(schema)}.")
    if path.suffix.lower() == ".parquet":
        return _some(bin_frame(texts if texts.width > 1 else texts.to_series(), schema), call)
    if texts.height and texts.row(0) == schema.names:
        texts = texts.slice(1)
    columns = []
    for text, column in zip(texts.get_columns(), schema, strict=True):
        values = text if column.kind in (Kind.TEXT, Kind.ANY) else parse(text, column.kind)
        if values.null_count() > text.null_count():
            raise BinError(f"{call}: {path} holds what is no {column.kind.value}, as {column.name!r} is.")
        columns.append(values.alias(column.name))
    frame = in_columns(columns)
    any_kind = any(column.kind is Kind.ANY for column in schema)
    return _some(bin_frame(frame if frame.width > 1 else frame.to_series(), schema) if any_kind else frame, call)


def missing(keys: pl.DataFrame, wanted: list[Any], column: str, call: str) -> list[Any]:
    """Which of some values no key has in a column.

    Raises:
        BinError: There is no such column.
    """
    if column not in keys.columns:
        raise BinError(f"{call}: expect_column: no column {column!r}; there are {', '.join(keys.columns)}.")
    there = set(keys[column].unique().to_list())
    return [one for one in wanted if one not in there]


def wanted(given: str | list[Any], home: Path, call: str) -> list[Any]:
    """The values that keys must have: a list, or the lines of a file.

    Raises:
        SourceError: The file cannot be read.
    """
    return given if isinstance(given, list) else _read(home / given, call).to_series(0).to_list()


def _read(path: Path, call: str) -> pl.DataFrame:
    try:
        if path.suffix.lower() == ".parquet":
            return pl.read_parquet(path)
        return pl.read_csv(path, has_header=False, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SourceError(f"{call}: {path} cannot be read: {getattr(error, 'strerror', None) or 'no CSV'}.") from None


def _some(frame: pl.DataFrame, call: str) -> pl.DataFrame:
    if not frame.height:
        raise BinError(f"{call}: there is no key; name the groups to show.")
    return frame
