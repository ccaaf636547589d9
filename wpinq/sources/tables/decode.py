"""Columns of plain types in Parquet files, decoded by Polars: the values are Arrow's, and come in half of its time.

Which columns these are follows from the types that the file declares. What Polars refuses (a text that is no UTF-8
makes it refuse a file of texts) is left to Arrow, from the first row on that was not given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import polars.selectors as cs

from wpinq.core.records.schema import Kind, Schema, in_columns, polars_type
from wpinq.sources.files import File
from wpinq.sources.tables import arrow_schema
from wpinq.sources.tables.arrays import declared

ROWS_PER_FRAME = 1 << 17
"""Rows of a frame."""
ROWS_PER_SCAN, SCANS = 1 << 20, 64
"""Rows of a scan at the least, and scans of a share at the most."""
TYPES: Mapping[str, Any] = {
    "string": pl.String,
    "large_string": pl.String,
    "bool": pl.Boolean,
    "float": pl.Float32,
    "double": pl.Float64,
    **{f"int{bits}": getattr(pl, f"Int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": getattr(pl, f"UInt{bits}") for bits in (8, 16, 32)},
}
"""Types of Arrow that mean the same in Polars, value by value."""
KINDS: Mapping[pl.DataType, Kind] = {
    pl.String(): Kind.TEXT,
    pl.Boolean(): Kind.BOOL,
    pl.Float32(): Kind.FLOAT,
    pl.Float64(): Kind.FLOAT,
}
"""Their kinds, but of integers."""
PLAIN = frozenset(type_() for type_ in TYPES.values())


def plain(schema: Any, kept: bytes | None) -> dict[str, pl.DataType]:
    """The names of an Arrow schema's columns of plain types, and what these are in Polars.

    Args:
        schema: The schema.
        kept: What the file keeps of it. Where Polars would panic of a type in it, none is plain.
    """
    if kept is not None and arrow_schema.unknown(kept):
        return {}
    return {field.name: TYPES[str(field.type)]() for field in schema if str(field.type) in TYPES}


def all_plain(file: File) -> dict[str, pl.DataType] | None:
    """The columns of a file with their types, where all are plain, without Arrow; None where it has to be asked.

    Where the file holds no schema of Arrow, the two may differ: a column that is always null is one of integers here.
    """
    try:
        kept = arrow_schema.kept(file.path)
        if kept is None or not arrow_schema.all_plain(kept):
            return None
        types = dict(_scan(file).collect_schema())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    return types if types and set(types.values()) <= PLAIN else None


def kind(type_: pl.DataType) -> Kind:
    """The kind of a plain type."""
    return KINDS.get(type_, Kind.INT)


class RefusedError(Exception):
    """Polars does not read the file, or not to its end; the message of Polars is not shown."""


def frames(
    file: File, types: Mapping[str, pl.DataType], start: int, heights: Sequence[int] | None
) -> Iterator[pl.DataFrame]:
    """Row groups of these heights, the first of which begins at a row, in order, in frames of columns of these types.

    Without heights it is the whole file.

    Raises:
        RefusedError: Polars refuses the file, or reads a column as another type.
    """
    try:
        scan = _scan(file).select(cs.by_name(*types))
        if dict(scan.collect_schema()) != types:
            raise RefusedError
        for rows in [None] if heights is None else _units(heights):
            batches = scan.slice(start, rows).collect_batches(chunk_size=ROWS_PER_FRAME, maintain_order=True)
            while (frame := next(batches, None)) is not None:
                yield frame
            start += rows or 0
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        raise RefusedError from None


def _scan(file: File) -> pl.LazyFrame:
    return pl.scan_parquet(file.path, glob=False, hive_partitioning=False, use_statistics=False, cache=False)


def _units(heights: Sequence[int]) -> Iterator[int]:
    """Row groups that are scanned at once: Polars holds several at a time, and reads the footer for each scan."""
    rows, least = 0, max(ROWS_PER_SCAN, sum(heights) // SCANS)
    for height in heights:
        rows += height
        if rows >= least:
            yield rows
            rows = 0
    if rows:
        yield rows


def canonical(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Such a frame with the columns of a schema, as `arrays.frame` makes them of Arrow's."""
    return in_columns([_column(frame[column.name], column.kind) for column in schema])


def _column(series: pl.Series, wanted: Kind) -> pl.Series:
    native = kind(series.dtype)
    return declared(series.cast(polars_type(native)), native, wanted)
