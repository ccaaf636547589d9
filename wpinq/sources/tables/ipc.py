"""Arrow files (Feather 2), and files of an Arrow stream, one or many, read by record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from wpinq.core.records.reader import wanted
from wpinq.core.records.schema import Schema
from wpinq.sources.files import File, FileReader, Files, reading
from wpinq.sources.form import Columns
from wpinq.sources.tables import arrays
from wpinq.sources.tables.schemas import columns_alike, decoding


@dataclass(frozen=True, slots=True)
class ArrowReader(FileReader):
    """Rows of Arrow files that have the same columns.

    Attributes:
        streams: Which of the files hold a stream, which cannot be read from its middle.
    """

    streams: tuple[bool, ...] = field(repr=False)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`. The shares are made of record batches."""
        schema = wanted(self.schema, columns, self.source.given)
        for batch in self._parts(schema, share, progress):
            with decoding(self.source.given, "an Arrow file"):
                frame = arrays.frame(batch, schema)
            yield frame

    def prove(self, share: tuple[int, int] = (0, 1)) -> None:
        """Decompress every buffer, and see that each text ends behind its beginning."""
        for batch in self._parts(self.schema, share, None):
            with decoding(self.source.given, "an Arrow file"):
                for array in batch.columns:
                    _check_offsets(array)

    def raw(self, schema: Schema) -> Iterator[Any]:
        """All record batches, as the files hold them."""
        return self._parts(schema, (0, 1), None)

    def _parts(self, schema: Schema, share: tuple[int, int], progress: Callable[[int], None] | None) -> Iterator[Any]:
        number = 0
        for file, stream in zip(self.source.files, self.streams, strict=True):
            file.check()
            with decoding(file.given, "an Arrow file"), _opened(file, stream) as (_, batches):
                for batch in batches():
                    if number % share[1] == share[0]:
                        batch.validate()
                        yield batch.select(list(schema.names))
                    number += 1
            file.check()
            if progress is not None and not share[0]:
                progress(file.size)


def open_arrow(source: Files, columns: Columns) -> ArrowReader:
    """Open Arrow files.

    Raises:
        SourceError: One is no Arrow file, they differ in their columns, or columns are not declared well.
    """
    schemas, streams = [], []
    for file in source.files:
        with reading(file.given), file.path.open("rb") as opened:
            streams.append(opened.read(6) != b"ARROW1")
        with decoding(file.given, "an Arrow file"), _opened(file, streams[-1]) as (schema, _):
            schemas.append(schema)
    return ArrowReader(source, columns_alike(source, schemas, columns), tuple(streams))


def _check_offsets(array: Any) -> None:
    """Make sure that the places of texts, bytes and lists lie in order within their buffers.

    What a text holds is not looked at: one that is no UTF-8 is null.

    Raises:
        ArrowInvalid: They do not.
    """
    import pyarrow as pa
    from pyarrow import compute, types

    type_ = array.type
    if types.is_string(type_) or types.is_binary(type_):
        array.view(pa.binary()).validate(full=True)
    elif types.is_large_string(type_) or types.is_large_binary(type_):
        array.view(pa.large_binary()).validate(full=True)
    elif types.is_dictionary(type_):
        _check_offsets(array.dictionary)
        ends = compute.min_max(array.indices)
        if (ends["max"].as_py() or 0) >= max(len(array.dictionary), 1) or (ends["min"].as_py() or 0) < 0:
            raise pa.ArrowInvalid("a place outside of the dictionary")
    elif types.is_list(type_) or types.is_large_list(type_):
        _check_offsets(array.values)
        empty = pa.list_(pa.null()) if types.is_list(type_) else pa.large_list(pa.null())
        inside = [pa.nulls(len(array.values))]
        pa.Array.from_buffers(empty, len(array), array.buffers()[:2], offset=array.offset, children=inside).validate(
            full=True
        )
    elif types.is_struct(type_):
        for index in range(type_.num_fields):
            _check_offsets(array.field(index))


@contextmanager
def _opened(file: File, stream: bool) -> Iterator[tuple[Any, Callable[[], Iterator[Any]]]]:
    """The schema of a file, and its record batches."""
    import pyarrow as pa

    with pa.OSFile(str(file.path), "rb") as raw:
        if stream:
            read = pa.ipc.open_stream(raw)
            yield read.schema, lambda: iter(read)
        else:
            whole = pa.ipc.open_file(raw)
            yield whole.schema, lambda: map(whole.get_batch, range(whole.num_record_batches))
