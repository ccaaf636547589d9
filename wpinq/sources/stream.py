"""Files that grow: whole lines that were added since somebody looked last."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wpinq.errors import SourceError
from wpinq.schema import Kind, Schema
from wpinq.sources.files import Files, reading
from wpinq.sources.lines import BLOCK

if TYPE_CHECKING:
    import polars as pl

    from wpinq.sources.csv import TextReader


@dataclass
class _Tail:
    """How far one file was read.

    Attributes:
        reader: Splits its lines.
        inode: Which file it was; another one under the same name is read from its beginning.
        position: The byte after the last whole line.
    """

    reader: TextReader
    inode: int
    position: int


class Growing:
    """Files that lines are added to, one or all that match a pattern, also such as are not there yet.

    A file that was replaced or cut, as logs are rotated, is read from its beginning. What a rotated file got after the
    last look is read if the pattern matches its new name.

    Args:
        pattern: A path or pattern of `.log`, `.csv`, `.tsv` or `.txt` files, none of them compressed.
        schema: The columns that are wanted, each with a type.
    """

    def __init__(self, pattern: str, schema: Schema) -> None:
        if any(column.kind is Kind.ANY for column in schema):
            raise SourceError(f"{pattern}: columns of a file need types; write columns={{'user': 'text', ...}}.")
        self._pattern, self._schema = pattern, schema
        self._tails: dict[int, _Tail] = {}

    def take(self) -> Iterator[pl.DataFrame]:
        """Frames of the records that were added since the last call.

        Raises:
            SourceError: There is no such file, or one has other columns or cannot be read.
        """
        for file in Files.find(self._pattern).files:
            with reading(file.given):
                status = file.path.stat()
            tail = self._tails.get(status.st_ino)
            if tail is None or status.st_size < tail.position:
                reader = _opened(file.given, self._schema)
                tail = self._tails[status.st_ino] = _Tail(reader, status.st_ino, reader.origins[0])
            yield from self._added(tail, file.given, status.st_size)

    def _added(self, tail: _Tail, given: str, size: int) -> Iterator[pl.DataFrame]:
        rest = b""
        with reading(given), tail.reader.found.files[0].path.open("rb", buffering=0) as stream:
            if os.fstat(stream.fileno()).st_ino != tail.inode:
                return  # replaced between two looks; the next call finds it
            stream.seek(tail.position)
            left = size - tail.position
            while left > 0 and (data := stream.read(min(BLOCK, left))):
                left -= len(data)
                whole = (rest + data).rfind(b"\n") + 1
                block, rest = (rest + data)[:whole], (rest + data)[whole:]
                tail.position += whole
                if block:
                    yield from tail.reader.frames(block, self._schema)


def _opened(given: str, schema: Schema) -> TextReader:
    """The reader of one file, with the wanted columns in the wanted types."""
    from wpinq.sources import open_source
    from wpinq.sources.csv import TextReader

    reader = open_source(given, columns={column.name: column.kind.value for column in schema})
    if not isinstance(reader, TextReader) or reader.found.files[0].zipped:
        raise SourceError(f"{given}: cannot grow line by line; follow a .log, .csv, .tsv or .txt file.")
    return reader
