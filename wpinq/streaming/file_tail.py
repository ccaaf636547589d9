"""Growing files: read the whole lines that were added since the last look."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Unpack

from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import SourceError
from wpinq.sources.files import Files, reading
from wpinq.sources.form import Words, file_form
from wpinq.sources.text.lines import BLOCK

if TYPE_CHECKING:
    import polars as pl

    from wpinq.sources.text.csv import TextReader

BEFORE = 1 << 12
"""Bytes by which a file is known again."""
LATER = 60.0
"""Seconds for which a file is read on after it lost its name: who writes it is told of the new one a while later."""
HELD = 64
"""Files that are held open at once, those that were looked at last."""


@dataclass
class _Tail:
    """How far one file was read.

    Attributes:
        reader: Splits its lines.
        position: The byte after the last whole line.
        last: What stands right before, up to `BEFORE` bytes of it.
    """

    reader: TextReader
    position: int
    last: bytes = b""

    @property
    def digest(self) -> str:
        """A digest that distinguishes the file from another one with the same inode."""
        return blake2b(self.last, digest_size=16).hexdigest()


class Growing:
    """Files that lines are added to, one or all that match a pattern, also such as are not there yet.

    A file that was replaced or cut, as logs are rotated, is read from its beginning, also where it has grown beyond
    what was read before: it is known by the bytes before that place, at every look. It is held open, so what it gets
    for a minute after it was rotated is read too; after a restart, only if the pattern matches its new name, or another
    one that the same source follows. Each line is read once, by however many names it is found.

    Args:
        pattern: A path or pattern of `.log`, `.csv`, `.tsv`, `.txt` or `.jsonl` files, none of them compressed.
        schema: The columns that are wanted, each with a type.
        positions: How far files were read before, as `positions` told it, by this name or others.
        others: What else the same source follows, now or later.
        form: The form of the files, as `protect` explains it.

    Attributes:
        offered: How many lines were read; for the curator alone.
    """

    def __init__(
        self, pattern: str, schema: Schema, positions: Iterable[Mapping[str, list[Any]]] = (),
        others: Iterable[object] = (), **form: Unpack[Words],
    ) -> None:  # fmt: skip
        if any(column.kind is Kind.ANY for column in schema):
            raise SourceError(f"{pattern}: columns of a file need types; write columns={{'user': 'text', ...}}.")
        self._pattern, self._schema, self._form, self._others = pattern, schema, form, others
        self._tails: dict[int, _Tail] = {}
        self._gone: dict[int, _Tail] = {}
        """Those that have another name now, which may be one that is followed."""
        self._since: dict[int, float] = {}
        """When that was seen."""
        self._open: dict[int, IO[bytes]] = {}
        self.offered = 0
        self._before: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for inode, (position, digest) in (told for one in positions for told in one.items()):
            self._before[int(inode)].append((position, digest))

    def positions(self) -> dict[str, list[Any]]:
        """How far each file was read, and what tells it from another one, as JSON can hold it."""
        before = {inode: max(told) for inode, told in self._before.items()}
        now = {inode: (tail.position, tail.digest) for inode, tail in (self._gone | self._tails).items()}
        return {str(inode): list(told) for inode, told in (before | now).items()}

    def take(self) -> Iterator[pl.DataFrame]:
        """Frames of the records that were added since the last call.

        Raises:
            SourceError: There is no such file, or one has other columns or cannot be read.
        """
        seen = set()
        for file in Files.find(self._pattern, file_form(self._form.get("format"))).files:
            with reading(file.given):
                stream = self._stream(file.path)
                status = os.fstat(stream.fileno())
                seen.add(status.st_ino)
                tail = self._known(status.st_ino)
                if tail is None or _before(stream, tail.position) != tail.last:
                    tail = self._tail(file.given, stream, status.st_ino)
                self._tails[status.st_ino] = tail
                yield from self._added(tail, stream, status.st_size)
        yield from self._rest(seen)
        for inode in self._before.keys() - seen:
            del self._before[inode]

    def close(self) -> None:
        """Hold no file open any more."""
        while self._open:
            self._open.popitem()[1].close()

    def _stream(self, path: Path) -> IO[bytes]:
        """The file that has a name now, held open."""
        new = path.open("rb", buffering=0)
        inode = os.fstat(new.fileno()).st_ino
        if held := self._open.pop(inode, None):
            new.close()
        self._open[inode] = held or new
        while len(self._open) > HELD:
            self._open.pop(next(iter(self._open))).close()
        return self._open[inode]

    def _rest(self, seen: set[int]) -> Iterator[pl.DataFrame]:
        """What was added to files that have another name now, or none."""
        for inode in self._tails.keys() - seen:
            self._gone[inode], self._since[inode] = self._tails.pop(inode), monotonic()
        for inode, tail in list(self._gone.items()):
            stream = self._open.get(inode)
            if inode in seen or monotonic() - self._since[inode] > LATER:
                del self._gone[inode], self._since[inode]
                if stream is not None and inode not in seen:
                    self._open.pop(inode).close()
            elif stream is not None and _before(stream, tail.position) == tail.last:
                yield from self._added(tail, stream, os.fstat(stream.fileno()).st_size)

    def _known(self, inode: int) -> _Tail | None:
        """How far a file was read, by this name or another."""
        known = (one._tails.get(inode) or one._gone.get(inode) for one in self._others if isinstance(one, Growing))
        return self._tails.get(inode) or self._gone.get(inode) or next((tail for tail in known if tail), None)

    def _tail(self, given: str, stream: IO[bytes], inode: int) -> _Tail:
        """Where to read on in a file that is new, or new to this process."""
        reader = _opened(given, self._schema, self._form)
        for position, digest in sorted(self._before.pop(inode, []), reverse=True):
            known = _Tail(reader, position, _before(stream, position))
            if position and known.digest == digest:
                return known
        return _Tail(reader, reader.origins[0], _before(stream, reader.origins[0]))

    def _added(self, tail: _Tail, stream: IO[bytes], size: int) -> Iterator[pl.DataFrame]:
        rest = b""
        stream.seek(tail.position)
        left = size - tail.position
        while left > 0 and (data := stream.read(min(BLOCK, left))):
            left -= len(data)
            whole = (rest + data).rfind(b"\n") + 1
            block, rest = (rest + data)[:whole], (rest + data)[whole:]
            tail.position += whole
            tail.last = (tail.last + block[-BEFORE:])[-BEFORE:]
            self.offered += block.count(b"\n")
            if block:
                yield from tail.reader.frames(tail.reader.text(block), self._schema)


def _before(stream: IO[bytes], position: int) -> bytes:
    start = max(0, position - BEFORE)
    return os.pread(stream.fileno(), position - start, start)


def _opened(given: str, schema: Schema, form: Words) -> TextReader:
    """The reader of one file, with the wanted columns in the wanted types."""
    from wpinq.sources import open_source
    from wpinq.sources.text.csv import TextReader

    reader = open_source(given, columns={column.name: column.kind.value for column in schema}, **form)
    if not isinstance(reader, TextReader) or reader.found.files[0].zipped:
        raise SourceError(f"{given}: cannot grow line by line; follow .log, .csv, .tsv, .txt or .jsonl.")
    return reader
