"""Parquet files, one or many, read by row groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import polars as pl

from wpinq.errors import SourceError
from wpinq.progress import loading
from wpinq.records.schema import Schema
from wpinq.sources.columns import Columns, listed, wanted
from wpinq.sources.files import File, Files, reading
from wpinq.sources.readers import FileReader
from wpinq.sources.tables import arrays, decode

ROWS_PER_FRAME = 1 << 19  # rows of a frame


@dataclass(frozen=True, slots=True)
class ParquetReader(FileReader):
    """Rows of Parquet files that have the same columns.

    Attributes:
        metadata: Each file's footer.
        plain: The types of the columns that Polars decodes as Arrow does, in each file.
    """

    metadata: tuple[Any, ...] = field(repr=False)
    plain: tuple[Mapping[str, str], ...] = field(repr=False)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`. The shares are made of row groups.

        Polars decodes columns of plain types, Arrow all others, and what Polars refuses.
        """
        schema = wanted(self.schema, columns, self.found.given)
        for part, types in self._parts(share):
            told = _Told(part, progress)
            for frame in _decoded(part, schema, types):
                yield frame
                told.rows(frame.height)
            for batch in part.batches(schema.names, skip=told.done):
                with decoding(self.found.given):
                    frame = arrays.frame(batch, schema)
                yield frame
                told.rows(batch.num_rows)
            told.rows(0)

    def raw(self, schema: Schema) -> Iterator[Any]:
        """All record batches, as the files hold them."""
        for part, _ in self._parts((0, 1)):
            yield from part.batches(schema.names)

    def _parts(self, share: tuple[int, int]) -> Iterator[tuple[_Part, Mapping[str, str]]]:
        """What a share reads of each file, with the types of its plain columns."""
        low, high = (self.total_bytes * edge // share[1] for edge in (share[0], share[0] + 1))
        base = 0
        for file, metadata, types in zip(self.found.files, self.metadata, self.plain, strict=True):
            starts = _starts(file, metadata)
            groups = [group for group, start in enumerate(starts[:-1]) if low <= base + start < high]
            if groups:
                yield _Part(file, metadata, groups, starts), types
            base += file.size


@dataclass(frozen=True, slots=True)
class _Part:
    """Row groups of a file, one after another.

    Attributes:
        file: The file.
        metadata: Its footer.
        groups: Their numbers.
        starts: Where each group of the file begins, about, and the end, in bytes.
    """

    file: File
    metadata: Any
    groups: list[int]
    starts: list[int]

    def height(self, groups: Iterable[int]) -> int:
        """How many rows some groups have."""
        return sum(self.metadata.row_group(group).num_rows for group in groups)

    def batches(self, names: Sequence[str], skip: int = 0) -> Iterator[Any]:
        """Record batches of these columns behind the first rows, decoded by Arrow."""
        from pyarrow import parquet

        if skip and skip == self.height(self.groups):
            return
        self.file.check()
        with (
            decoding(self.file.given),
            parquet.ParquetFile(self.file.path, metadata=self.metadata, coerce_int96_timestamp_unit="us") as opened,
        ):
            for group in self.groups:
                rows = self.height([group])
                if skip >= rows:
                    skip -= rows
                    continue
                for batch in opened.iter_batches(
                    ROWS_PER_FRAME, row_groups=[group], columns=list(names), use_threads=False
                ):
                    if batch.num_rows > skip:
                        yield batch.slice(skip)
                    skip = max(skip - batch.num_rows, 0)
        self.file.check()


class _Told:
    """Tells how many bytes were read, a whole row group at a time.

    Attributes:
        done: How many rows were read.
    """

    def __init__(self, part: _Part, progress: Callable[[int], None] | None) -> None:
        self.done, self._progress = 0, progress
        edges = accumulate(part.height([group]) for group in part.groups)
        sizes = (part.starts[group + 1] - part.starts[group] for group in part.groups)
        self._ends = deque(zip(edges, sizes, strict=True))

    def rows(self, more: int) -> None:
        """So many rows more were read."""
        self.done += more
        while self._ends and self._ends[0][0] <= self.done:
            _, size = self._ends.popleft()
            if self._progress is not None:
                self._progress(size)


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
    schema = columns_alike(found, schemas, columns)
    return ParquetReader(found, schema, tuple(metadata), tuple(map(decode.plain, schemas)))


def columns_alike(found: Files, schemas: Sequence[Any], columns: Columns) -> Schema:
    """The columns of files of these Arrow schemas.

    Raises:
        SourceError: They differ, or columns are not declared well.
    """
    first = _columns(schemas[0])
    for file, schema in zip(found.files, schemas, strict=True):
        if _columns(schema) != first:
            what = listed(f"{name}: {kind}" for name, kind in _columns(schema))
            raise SourceError(f"{file.given}: its columns ({what}) are not those of the first file.")
    types = {field.name: field.type for field in schemas[0]}
    schema = arrays.schema_of(types, schemas[0].names, columns, found.given)
    for file, other in zip(found.files, schemas, strict=True):
        arrays.schema_of({field.name: field.type for field in other}, other.names, columns, file.given)
    return schema


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """Turn errors of Arrow into one line that quotes nothing of a file.

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


def _decoded(part: _Part, schema: Schema, types: Mapping[str, str]) -> Iterator[pl.DataFrame]:
    """The rows of a part from the first on, as far as Polars decodes them."""
    if not all(name in types for name in schema.names):
        return
    part.file.check()
    start, heights = part.height(range(part.groups[0])), [part.height([group]) for group in part.groups]
    try:
        for frame in decode.frames(part.file, {name: types[name] for name in schema.names}, start, heights):
            yield decode.canonical(frame, schema)
    except decode.RefusedError:
        return
    part.file.check()
