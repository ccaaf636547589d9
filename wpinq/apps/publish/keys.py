"""Declared keys: the groups that a release shows, present or not, from a file or a list. They are public."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from wpinq.core import Kind, Schema, bin_blocks, bin_frame, in_columns, parse_column
from wpinq.errors import BinError, SourceError
from wpinq.query.select.grouping import NAME
from wpinq.sources.tables import arrays, arrow_schema

DESCRIBED = '# {"query": '
"""How the line begins that describes an answer that was saved."""


def declared(keys: str | list[Any], schema: Schema, home: Path, call: str, *names: tuple[str, ...]) -> pl.LazyFrame:
    """Read keys.

    A file is Parquet, of which a block at a time is held, or text with one key a line, its values separated by commas
    as CSV has them, and nothing is NULL. A first line that names the columns, in any order, is passed over. So the
    groups of an answer that was saved are keys: what describes it, and columns beside them, are passed over too.

    Args:
        keys: A file, or the keys themselves.
        schema: The columns of a key.
        home: The directory that a relative path starts from.
        call: What messages call it.
        names: What a question and its answer call the columns, where that is not as the schema does.

    Returns:
        The keys as columns of the schema, in their order.

    Raises:
        SourceError: The file cannot be read.
        BinError: A key does not fit the columns, or there is none.
    """
    if isinstance(keys, list):
        frame, what = _listed(keys, schema, call), "it"
    else:
        frame, what = _from_file(home / keys, schema, call, (schema.names, *names)), keys
    if not bin_blocks(frame, schema, f"{call}: {what}").rows:
        raise BinError(f"{call}: {what} names no group; write one a line.")
    return frame


def _listed(keys: list[Any], schema: Schema, call: str) -> pl.LazyFrame:
    return bin_frame([tuple(key) if isinstance(key, list) else key for key in keys], schema, call).lazy()


def _from_file(path: Path, schema: Schema, call: str, names: tuple[tuple[str, ...], ...]) -> pl.LazyFrame:
    """The keys of a file, as columns of the schema."""
    texts, parquet = _read(path, call), path.suffix.lower() == ".parquet"
    there = texts.collect_schema().names()
    if not there:  # an empty file of text
        return bin_frame([], schema).lazy()
    first = tuple(there) if parquet else texts.head(1).collect().row(0)
    header = next((each for each in names if set(each) <= set(first)), None)
    if header is not None:
        texts = texts.slice(0 if parquet else 1).select(there[first.index(name)] for name in header)
    elif len(there) != len(schema):
        sets = "; the last says which columns are summed over, as GROUPING of them does" * (schema.names[-1] == NAME)
        raise BinError(f"{call}: {path} has {_columns(len(there))}; a group of {schema} has {len(schema)}{sets}.")
    read = texts.collect_schema().names()
    texts = texts.rename(dict(zip(read, schema.names, strict=True)))
    return _with_uuids(texts, path, schema, read) if parquet else _parsed(texts.collect(), schema, f"{call}: {path}")


def _parsed(texts: pl.DataFrame, schema: Schema, where: str) -> pl.LazyFrame:
    columns = []
    for text, column in zip(texts.get_columns(), schema, strict=True):
        values = text if column.kind in (Kind.TEXT, Kind.ANY) else parse_column(text, column.kind)
        if values.null_count() > text.null_count():
            at = (values.is_null() & text.is_not_null()).arg_true()[0]
            raise BinError(f"{where}: {text[at]!r} does not read as the type {column.kind.value}.")
        columns.append(values.alias(column.name))
    return in_columns(columns).lazy()


def _with_uuids(keys: pl.LazyFrame, path: Path, schema: Schema, there: list[str]) -> pl.LazyFrame:
    """The keys of a Parquet file, with UUIDs as the texts that they are in records; Polars reads them as bytes."""
    types = keys.collect_schema()
    if not any(column.kind is Kind.TEXT and types[column.name] == pl.Binary for column in schema):
        return keys
    from pyarrow import parquet

    written = parquet.read_schema(path)
    uuids = [new for new, old in zip(schema.names, there, strict=True) if arrays.is_uuid(written.field(old).type)]
    return keys.with_columns(map(arrays.uuid_text, uuids))


def _columns(number: int) -> str:
    return f"{number} column{'s' * (number != 1)}"


def missing(keys: pl.LazyFrame, wanted: list[Any], column: str, call: str) -> list[Any]:
    """Which of some values no key has in a column.

    Raises:
        BinError: There is no such column.
    """
    names = keys.collect_schema().names()
    if column not in names:
        raise BinError(f"{call}: expect_column: no column {column!r}; there are {', '.join(names)}.")
    there = set(keys.select(pl.col(column).unique()).collect(engine="streaming").to_series().to_list())
    return [value for value in wanted if value not in there]


def wanted(values: str | list[Any], home: Path, call: str) -> list[Any]:
    """The values that keys must have: a list, or the lines of a file.

    Raises:
        SourceError: The file cannot be read.
    """
    return values if isinstance(values, list) else _read(home / values, call).collect().to_series(0).to_list()


def _read(path: Path, call: str) -> pl.LazyFrame:
    if not path.is_file():
        raise SourceError(f"{call}: {path}: no such file.")
    try:
        if path.suffix.lower() == ".parquet":
            _check_types(path, call)
            pl.read_parquet_schema(path)
            return pl.scan_parquet(path)
        return pl.read_csv(
            path, has_header=False, infer_schema=False, raise_if_empty=False, comment_prefix=DESCRIBED
        ).lazy()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SourceError(f"{call}: {path} cannot be read: {getattr(error, 'strerror', None) or 'no CSV'}.") from None


def _check_types(path: Path, call: str) -> None:
    """Refuse a Parquet file with a column of a type that Polars would panic of."""
    kept = arrow_schema.kept(path)
    if kept is None or arrow_schema.all_plain(kept):
        return
    if names := arrow_schema.unknown(kept):
        column = f"the column {names[0]!r} is of a type that cannot be read; write it as text"
        raise SourceError(f"{call}: {path}: {column}.")
