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
    elif types.is_string_view(type_) or types.is_binary_view(type_):
        as_bytes = pa.Array.from_buffers(pa.binary_view(), len(array), array.buffers(), offset=array.offset)
        as_bytes.validate(full=True)
    elif isinstance(array, pa.ExtensionArray):
        _check_offsets(array.storage)
    elif types.is_run_end_encoded(type_) or types.is_fixed_size_list(type_):
        _check_offsets(array.values)
    elif types.is_map(type_):
        _check_offsets(array.keys)
        _check_offsets(array.items)
        _check_places(array, pa.list_(pa.null()), len(array.keys))
    elif types.is_nested(type_) and not types.is_struct(type_):
        _check_offsets(array.values)
        _check_places(array, _of_nulls(type_), len(array.values))
    elif types.is_struct(type_):
        for index in range(type_.num_fields):
            _check_offsets(array.field(index))


def _of_nulls(type_: Any) -> Any:
    """The same type of lists, of nulls."""
    import pyarrow as pa
    from pyarrow import types

    made = ((types.is_list, pa.list_), (types.is_large_list, pa.large_list), (types.is_list_view, pa.list_view))
    return next((of for holds, of in made if holds(type_)), pa.large_list_view)(pa.null())


def _check_places(array: Any, of_nulls: Any, inside: int) -> None:
    """Make sure that lists lie within what they hold, which is looked at by itself."""
    import pyarrow as pa

    own = array.buffers()[: of_nulls.num_buffers]
    nulls = [pa.nulls(inside)]
    pa.Array.from_buffers(of_nulls, len(array), own, offset=array.offset, children=nulls).validate(full=True)


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
