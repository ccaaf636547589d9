"""Parquet files, one or many, read by row groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import polars as pl

from wpinq.core.records.reader import wanted
from wpinq.core.records.schema import Schema
from wpinq.core.state.workers import cores
from wpinq.sources.files import File, FileReader, Files
from wpinq.sources.form import Columns, check_names, chosen
from wpinq.sources.tables import arrays, decode
from wpinq.sources.tables.arrow_schema import KEPT
from wpinq.sources.tables.schemas import columns_alike, decoding

ROWS_PER_FRAME = 1 << 19  # rows of a frame
THREADED = 1 << 24  # bytes of files from which on threads decode what is to be proved
WHOLE = 1 << 20
"""Bytes of a file from which on it is shared by row groups. A smaller one belongs to one share as a whole."""


class Footer:
    """What a file says of itself. Arrow reads it when it has to: to load Arrow takes longer than to read a small file.

    Args:
        file: The file.
    """

    def __init__(self, file: File) -> None:
        self.file, self._all = file, decode.all_plain(file)

    @property
    def alone(self) -> Mapping[str, pl.DataType] | None:
        """The types of all columns, if they are plain; None if Arrow has to be asked."""
        return self._all

    @cached_property
    def plain(self) -> Mapping[str, pl.DataType]:
        """The types of the columns that Polars decodes as Arrow does."""
        if self._all is not None:
            return self._all
        return decode.plain(self.schema, (self.metadata.metadata or {}).get(KEPT.encode()))

    @property
    def metadata(self) -> Any:
        """Its row groups."""
        return self._read[0]

    @property
    def schema(self) -> Any:
        """Its columns, with Arrow's types."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[Any, Any]:
        from pyarrow import parquet

        self.file.check()
        with decoding(self.file.given), parquet.ParquetFile(self.file.path) as opened:
            return opened.metadata, opened.schema_arrow


@dataclass(frozen=True, slots=True)
class ParquetReader(FileReader):
    """Rows of Parquet files that have the same columns.

    Attributes:
        footers: What each file says of itself.
    """

    footers: tuple[Footer, ...] = field(repr=False)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`. The shares are made of row groups, and of small files.

        Polars decodes columns of plain types, Arrow all others, and what Polars refuses.
        """
        schema = wanted(self.schema, columns, self.source.given)
        for part in self._parts(share):
            count = _Progress(part, progress)
            if not (yield from _decoded(part, schema, count)):
                for batch in part.batches(schema.names, skip=count.done):
                    with decoding(self.source.given):
                        frame = arrays.frame(batch, schema)
                    yield frame
                    count.rows(batch.num_rows)
            count.rows(0)

    def prove(self, share: tuple[int, int] = (0, 1)) -> None:
        """Decode every page: only that tells whether one is damaged. Threads do so at once where there is much."""
        threads = cores() if self.total_bytes // share[1] >= THREADED else 1

        def decoded(thread: int) -> None:
            for _ in self.batches(self.schema.names, share=(share[0] * threads + thread, share[1] * threads)):
                pass

        with ThreadPoolExecutor(threads, "wpinq reads") as pool:
            list(pool.map(decoded, range(threads)))  # what one raised is raised here

    def raw(self, schema: Schema) -> Iterator[Any]:
        """All record batches, as the files hold them."""
        for part in self._parts((0, 1)):
            yield from part.batches(schema.names)

    def _parts(self, share: tuple[int, int]) -> Iterator[_Part]:
        """What a share reads of each file."""
        low, high = (self.total_bytes * edge // share[1] for edge in (share[0], share[0] + 1))
        base = 0
        for footer in self.footers:
            size = footer.file.size
            starts = [0, size] if size < WHOLE else _starts(footer)
            groups = [group for group, start in enumerate(starts[:-1]) if low <= base + start < high]
            if groups:
                yield _Part(footer, None if size < WHOLE else groups, starts)
            base += size


@dataclass(frozen=True, slots=True)
class _Part:
    """Row groups of a file, one after another.

    Attributes:
        footer: The file.
        groups: Their numbers; None for all of a small file.
        starts: Where each group of the file begins, about, and the end, in bytes; of a small file, its own.
    """

    footer: Footer
    groups: list[int] | None
    starts: list[int]

    def height(self, groups: Iterable[int]) -> int:
        """How many rows some groups have."""
        return sum(self.footer.metadata.row_group(group).num_rows for group in groups)

    def batches(self, names: Sequence[str], skip: int = 0) -> Iterator[Any]:
        """Record batches of these columns behind the first rows, decoded by Arrow."""
        metadata, file = self.footer.metadata, self.footer.file
        from pyarrow import parquet

        file.check()
        with (
            decoding(file.given),
            parquet.ParquetFile(file.path, metadata=metadata, coerce_int96_timestamp_unit="us") as opened,
        ):
            for group in range(metadata.num_row_groups) if self.groups is None else self.groups:
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
        file.check()


class _Progress:
    """Tells how many bytes were read, a whole row group at a time.

    Attributes:
        done: How many rows were read.
    """

    def __init__(self, part: _Part, progress: Callable[[int], None] | None) -> None:
        self.done, self._progress = 0, progress
        groups = part.groups or []
        edges = accumulate(part.height([group]) for group in groups)
        sizes = (part.starts[group + 1] - part.starts[group] for group in groups)
        self._ends = deque(zip(edges, sizes, strict=True) if groups else [(0, part.starts[-1])])

    def rows(self, more: int) -> None:
        """So many rows more were read."""
        self.done += more
        while self._ends and self._ends[0][0] <= self.done:
            _, size = self._ends.popleft()
            if self._progress is not None:
                self._progress(size)


def open_parquet(source: Files, columns: Columns) -> ParquetReader:
    """Open Parquet files.

    Raises:
        SourceError: One is not a Parquet file, they differ in their columns, or columns are not declared well.
    """
    footers = tuple(map(Footer, source.files))
    schema = _plain_alike(source, footers, columns)
    return ParquetReader(
        source, schema or columns_alike(source, [footer.schema for footer in footers], columns), footers
    )


def _plain_alike(source: Files, footers: Sequence[Footer], columns: Columns) -> Schema | None:
    """The columns of files that have the same of plain types; None where Arrow has to say what they are."""
    all_kinds = []
    for footer in footers:
        if footer.alone is None:
            return None
        all_kinds.append({name: decode.kind(type_) for name, type_ in footer.alone.items()})
    kinds = all_kinds[0]
    if any(list(other.items()) != list(kinds.items()) for other in all_kinds):
        return None
    check_names(list(kinds), source.given)
    schema = chosen(kinds, columns, source.given)
    return schema if all(arrays.fits(kinds[column.name], column.kind) for column in schema) else None


def _starts(footer: Footer) -> list[int]:
    """Where each row group begins, about, and the end, in bytes of the file."""
    metadata, file = footer.metadata, footer.file
    sizes = [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]
    total, starts, done = max(sum(sizes), 1), [0], 0
    for size in sizes:
        done += size
        starts.append(file.size * done // total)
    return starts


def _decoded(part: _Part, schema: Schema, count: _Progress) -> Generator[pl.DataFrame, None, bool]:
    """The rows of a part from the first on, as far as Polars decodes them, and whether these were all."""
    types, file, groups = part.footer.plain, part.footer.file, part.groups
    if not all(name in types for name in schema.names):
        return False
    file.check()
    start = part.height(range(groups[0])) if groups else 0
    heights = [part.height([group]) for group in groups] if groups else None
    try:
        for frame in decode.frames(file, {name: types[name] for name in schema.names}, start, heights):
            yield decode.canonical(frame, schema)
            count.rows(frame.height)
    except decode.RefusedError:
        return False
    file.check()
    return groups is None or count.done == part.height(groups)
