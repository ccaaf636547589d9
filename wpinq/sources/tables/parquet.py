"""Parquet files, one or many, read by row groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from wpinq.errors import SourceError
from wpinq.progress import loading
from wpinq.records.schema import Schema
from wpinq.sources.columns import Columns, listed, wanted
from wpinq.sources.files import File, Files, reading
from wpinq.sources.readers import FileReader
from wpinq.sources.tables import arrays

ROWS = 1 << 19  # rows of a frame
COUNTED = 1 << 24  # rows that one dictionary is counted over, if they are in one row group


@dataclass(frozen=True, slots=True)
class ParquetReader(FileReader):
    """Rows of Parquet files that have the same columns.

    Attributes:
        metadata: Each file's footer.
    """

    metadata: tuple[Any, ...] = field(repr=False)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`. The shares are made of row groups.

        One column that the file holds as a dictionary is counted by its dictionary, and no value is written out.
        """
        schema = wanted(self.schema, columns, self.found.given)
        for batch in self.raw(schema, share, progress, counted=len(schema) == 1):
            with decoding(self.found.given):
                frame = arrays.frame(batch, schema)
            yield frame

    def raw(
        self,
        schema: Schema,
        share: tuple[int, int] = (0, 1),
        progress: Callable[[int], None] | None = None,
        *,
        counted: bool = False,
    ) -> Iterator[Any]:
        """The record batches of a share, as the files hold them; if it is to be counted, with their dictionaries."""
        low, high = (self.total_bytes * edge // share[1] for edge in (share[0], share[0] + 1))
        base = 0
        for file, metadata in zip(self.found.files, self.metadata, strict=True):
            starts = [base + start for start in _starts(file, metadata)]
            groups = [group for group, start in enumerate(starts[:-1]) if low <= start < high]
            if groups:
                names = _dictionaries(metadata, groups, schema) if counted else []
                yield from _batches(file, metadata, groups, starts, schema, dictionaries=names, progress=progress)
            base += file.size


def open_parquet(found: Files, columns: Columns) -> ParquetReader:
    """Open Parquet files.

    Raises:
        SourceError: One is not a Parquet file, they differ in their columns, or columns are not declared well.
    """
    with loading("pyarrow.parquet"):
        from pyarrow import parquet

    metadata, schemas = [], []
    for file in found.files:
        with decoding(file.given), parquet.ParquetFile(file.path) as opened:
            metadata.append(opened.metadata)
            schemas.append(opened.schema_arrow)
    first = _columns(schemas[0])
    for file, schema in zip(found.files, schemas, strict=True):
        if _columns(schema) != first:
            what = listed(f"{name}: {kind}" for name, kind in _columns(schema))
            raise SourceError(f"{file.given}: its columns ({what}) are not those of the first file.")
    types = {field.name: field.type for field in schemas[0]}
    schema = arrays.schema_of(types, schemas[0].names, columns, found.given)
    for file, other in zip(found.files, schemas, strict=True):
        arrays.schema_of({field.name: field.type for field in other}, other.names, columns, file.given)
    return ParquetReader(found, schema, tuple(metadata))


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """Turn what Arrow says into one line that holds nothing of a file.

    Raises:
        SourceError: Instead of any error of reading or decoding.
    """
    import pyarrow as pa

    try:
        with reading(path):
            yield
    except pa.ArrowException:
        raise SourceError(f"{path}: is not a Parquet file, or is damaged.") from None


def _columns(schema: Any) -> list[tuple[str, str]]:
    kinds = [(field.name, arrays.public_kind(field.type)) for field in schema]
    return [(name, "unknown" if kind is None else kind.value) for name, kind in kinds]


def _starts(file: File, metadata: Any) -> list[int]:
    """Where each row group begins, about, and the end, in bytes of the file."""
    sizes = [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]
    total, starts, done = max(sum(sizes), 1), [0], 0
    for size in sizes:
        done += size
        starts.append(file.size * done // total)
    return starts


def _dictionaries(metadata: Any, groups: list[int], schema: Schema) -> list[str]:
    """The columns of bytes that the first of these row groups holds as dictionaries."""
    chunks = [metadata.row_group(groups[0]).column(index) for index in range(metadata.num_columns)]
    encoded = {one.path_in_schema for one in chunks if one.physical_type == "BYTE_ARRAY" and one.has_dictionary_page}
    return [name for name in schema.names if name in encoded]


def _batches(
    file: File,
    metadata: Any,
    groups: list[int],
    starts: list[int],
    schema: Schema,
    *,
    dictionaries: list[str],
    progress: Callable[[int], None] | None,
) -> Iterator[Any]:
    from pyarrow import parquet

    file.check()
    rows = COUNTED if dictionaries else ROWS
    with (
        decoding(file.given),
        parquet.ParquetFile(
            file.path, metadata=metadata, coerce_int96_timestamp_unit="us", read_dictionary=dictionaries
        ) as opened,
    ):
        for group in groups:
            batches = opened.iter_batches(rows, row_groups=[group], columns=list(schema.names), use_threads=False)
            yield from (batch for batch in batches if batch.num_rows)
            if progress is not None:
                progress(starts[group + 1] - starts[group])
    file.check()
