"""Columns of plain types in Parquet files, decoded by Polars: the values are Arrow's, and come in half of its time.

Which columns these are follows from the types that the file declares. What Polars refuses (a text that is no UTF-8
makes it refuse a file of texts) is left to Arrow, from the first row on that was not given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import polars.selectors as cs

from wpinq.records.schema import Kind, Schema, in_columns, polars_type
from wpinq.sources.files import File
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


def plain(schema: Any) -> dict[str, str]:
    """The names of an Arrow schema's columns of plain types, and these."""
    return {field.name: str(field.type) for field in schema if str(field.type) in TYPES}


class RefusedError(Exception):
    """Polars does not read the file, or not to its end; the message of Polars is not shown."""


def frames(file: File, types: Mapping[str, str], start: int, heights: Sequence[int]) -> Iterator[pl.DataFrame]:
    """Row groups of these heights, the first of which begins at a row, in order, in frames of columns of these types.

    Raises:
        RefusedError: Polars refuses the file, or reads a column as another type.
    """
    try:
        scan = pl.scan_parquet(file.path, glob=False, hive_partitioning=False, use_statistics=False, cache=False)
        scan = scan.select(cs.by_name(*types))
        if dict(scan.collect_schema()) != {name: TYPES[one] for name, one in types.items()}:
            raise RefusedError
        for rows in _units(heights):
            found = scan.slice(start, rows).collect_batches(chunk_size=ROWS_PER_FRAME, maintain_order=True)
            while (frame := next(found, None)) is not None:
                yield frame
            start += rows
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        raise RefusedError from None


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


def _column(series: pl.Series, kind: Kind) -> pl.Series:
    own = KINDS.get(series.dtype, Kind.INT)
    return declared(series.cast(polars_type(own)), own, kind)
