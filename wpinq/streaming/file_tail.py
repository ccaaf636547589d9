"""Growing files: read the whole lines that were added since the last look."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Unpack

from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import SourceError
from wpinq.sources.files import Files, form_of, reading
from wpinq.sources.form import Words, file_form
from wpinq.sources.text.grammar import BLOCK
from wpinq.streaming.rotated import Seen, Tail, around, code, held, ignored, is_copy, listed

if TYPE_CHECKING:
    import polars as pl

    from wpinq.sources.text.csv import TextReader

LATER = 60.0
"""Seconds for which a file is read on after it lost its name and nothing came: who writes it is told a while later."""
HELD = 64
"""Files that are held open at once, those that were looked at last."""
ROUNDS = 20
"""How often one look begins anew because files were rotated meanwhile; what is left is read at the next look."""
BEGAN = "0"
"""In what is kept of positions no inode, but that a path was looked at before."""


class _MovedError(Exception):
    """A file was rotated while it was looked at."""


class Growing:
    """Files that lines are added to, one or all that match a pattern, also such as are not there yet.

    No line of a rotated log is lost, and none is read twice, whether it is renamed or copied and cut, several times
    between two looks, also while no process follows it (`streaming/rotated.py`). What was rotated before the first look
    is not read, unless the pattern matches it; what is compressed is skipped. A file is held open, so what it gets
    after it was renamed or removed is read before its successor, until nothing came for a minute. Each line is read
    once, by however many names it is found. A copy that was compressed or removed before it was seen is lost, and so is
    what was written between copying and cutting, which the program that rotates drops.

    Args:
        pattern: A path or pattern of `.log`, `.csv`, `.tsv`, `.txt` or `.jsonl` files.
        schema: The columns that are wanted, each with a type.
        positions: How far files were read before, as `positions` told it, by this name or others.
        others: What else the same source follows, now or later.
        history: Whether the first look reads what was rotated before it too, also what is compressed by gzip.
        form: The form of the files, as `protect` explains it.

    Attributes:
        offered: How many lines were read; for the curator alone.
    """

    def __init__(
        self, pattern: str, schema: Schema, positions: Iterable[Mapping[str, list[Any]]] = (),
        others: Iterable[object] = (), *, history: bool = False, **form: Unpack[Words],
    ) -> None:  # fmt: skip
        if any(column.kind is Kind.ANY for column in schema):
            raise SourceError(f"{pattern}: columns of a file need types; write columns={{'user': 'text', ...}}.")
        self._pattern, self._schema, self._form, self._others = pattern, schema, form, others
        self._history = history
        self._tails: dict[int, Tail] = {}
        self._since: dict[int, float] = {}
        """When files that have no name any more that is followed were seen to have lost it, or to grow, last."""
        self._open: dict[int, IO[bytes]] = {}
        self._late = set[int]()
        """Logs of which no line was read when this call of `take` met them: nobody can tell that one was cut since."""
        self._stats: dict[int, tuple[int, int]] = {}
        """Size and time of files when they were read to their end."""
        self._readers: dict[int, TextReader] = {}
        self.offered = 0
        self._before: dict[int, list[Tail]] = defaultdict(list)
        for inode, kept in (item for known in positions for item in known.items()):
            self._before[int(inode)].append(Tail(*kept))
        self._began = any(tail.digest == self._own for tail in self._before.pop(int(BEGAN), []))

    @property
    def _own(self) -> str:
        """What tells this path from others in what is kept."""
        return code(str(Path(self._pattern).absolute()).encode("utf-8", "surrogateescape"))

    def positions(self) -> dict[str, list[Any]]:
        """How far each file was read, and what tells it from another one, as JSON can hold it."""
        before = {inode: max(tails, key=lambda tail: tail.position) for inode, tails in self._before.items()}
        began = {BEGAN: Tail(1, self._own).kept} if self._began else {}
        return began | {str(inode): tail.kept for inode, tail in (before | self._tails).items()}

    def take(self) -> Iterator[pl.DataFrame]:
        """Frames of the records that were added since the last call.

        Raises:
            SourceError: There is no such file, or one has other columns or cannot be read.
        """
        self._late.clear()
        begun = set[int]()
        for _ in range(ROUNDS):
            try:
                yield from self._look()
            except _MovedError:
                continue
            before, begun = begun, {inode for inode in self._late & self._tails.keys() if self._tails[inode].first}
            if begun <= before or all(file.zipped or inode in self._tails for inode, file in self._seen().items()):
                return  # else a file may be the copy of a log that was cut before its first lines were read

    def close(self) -> None:
        """Hold no file open any more."""
        while self._open:
            self._open.popitem()[1].close()

    def _look(self) -> Iterator[pl.DataFrame]:
        files = self._seen()
        if self._history and not self._began:
            yield from self._compressed(files)
        files = {inode: file for inode, file in files.items() if not file.zipped}
        self._meet(files)
        for inode in self._tails.keys() - files:
            self._since.setdefault(inode, monotonic())
        order = sorted((file for inode, file in files.items() if inode in self._tails), key=lambda file: file.modified)
        for file in (file for file in order if not file.live):
            yield from self._grown(file)
        yield from self._gone(files)
        for file in (file for file in order if file.live):
            yield from self._grown(file)
        self._began = True
        self._before.clear()

    def _seen(self) -> dict[int, Seen]:
        """The files of one moment, as far as their names tell it."""
        before: dict[int, Seen] | None = None
        while True:
            matched, lost = list[tuple[Path, str]](), None
            try:
                matches = Files.find(self._pattern, file_form(self._form.get("format")))
                matched = [(file.path, file.given) for file in matches.files]
            except SourceError as error:
                lost = error
            with reading(self._pattern):
                now = listed(matched, Path(self._pattern))
            if lost is not None and not (self._began and any(map(self._is_read, now))):
                raise lost  # else it was rotated, and its next file is about to be made
            if not self._began and not self._history and all(file.zipped for file in now.values() if file.matched):
                raise SourceError(f"{self._pattern}: is compressed, so it cannot grow; follow what is written to it.")
            if before is not None and {(i, file.path) for i, file in before.items()} == {
                (i, file.path) for i, file in now.items()
            }:
                return now
            before = now

    def _same(self, file: Seen) -> bool:
        """Whether nothing was written to a file since it was read to its end."""
        return (file.size, file.modified) == self._stats.get(file.inode)

    def _is_read(self, inode: int) -> bool:
        """Whether a file was read by its inode, here or before."""
        known = [self._tails[inode]] if inode in self._tails else self._before.get(inode, [])
        return any(tail.position >= 0 for tail in known)

    def _meet(self, files: Mapping[int, Seen]) -> None:
        """Find the files that are new or were cut, and where each is to be read on.

        Raises:
            _MovedError: One was rotated meanwhile; nothing was found.
        """
        new, cut, tails = list[Seen](), dict[int, Tail](), dict[int, Tail]()
        for inode, file in files.items():
            tail = self._known(file)
            if tail is None or (tail.position < 0 and (file.matched or not tail.fits(self._stream(file)))):
                new.append(file)
            elif (
                tail.position < 0
                or (file.size, file.modified) == self._stats.get(inode)
                or tail.fits(self._stream(file))
            ):
                tails[inode] = tail
            else:
                cut[inode] = tail
                new.append(file)
        # A log that was renamed has none of its lines left under its name.
        still = {
            file.family: inode for inode, file in files.items()
            if file.live and inode in tails and tails[inode].first and inode not in self._late
        }  # fmt: skip
        for file in sorted(new, key=lambda file: (file.live, file.modified)):
            begun = self._placed(file, files, cut, rotated=file.family not in still)
            log = still.get(file.family, file.inode)
            if not file.live and begun and log in tails and not tails[log].fits(self._stream(files[log])):
                raise _MovedError  # the log was cut after it was looked at, and this may be its copy
            tails |= begun
        self._late |= {
            inode for inode, file in files.items() if file.live and inode in tails and not tails[inode].first
        }
        self._tails = {inode: tail for inode, tail in self._tails.items() if inode not in files} | tails
        for inode in files:
            self._since.pop(inode, None)
            if inode in cut:
                self._readers.pop(inode, None)

    def _placed(self, file: Seen, files: Mapping[int, Seen], cut: dict[int, Tail], *, rotated: bool) -> dict[int, Tail]:
        """Where a file is to be read on that is new or was cut; nothing where that is not known yet.

        Args:
            file: The file.
            files: All files.
            cut: How far files were read that were cut since; one whose copy is found is taken out.
            rotated: Whether its log was rotated since the last look.
        """
        if file.live:
            return {file.inode: self._start(file)}
        if not self._began:
            if file.matched or self._history:
                return {file.inode: self._start(file)}
            return {file.inode: ignored(self._stream(file), file.size)} if file.size else {}
        for inode, tail in cut.items():
            if inode != file.inode and files[inode].family == file.family:
                copied = held(self._stream(file), tail)
                if copied is not None:
                    del cut[inode]
                    return {file.inode: copied}
        others = [other for other in files.values() if other.family == file.family and other is not file]
        if not file.size or any(is_copy(self._stream(file), self._stream(other)) for other in others):
            return {}  # a copy that is being made, or that was made by hand
        if file.matched or rotated:
            return {file.inode: self._start(file)}
        return {file.inode: ignored(self._stream(file), file.size)}

    def _start(self, file: Seen) -> Tail:
        self._readers.pop(file.inode, None)
        position = self._lines(file).origins[0]
        return Tail(position, code(around(self._stream(file), position)))

    def _known(self, file: Seen) -> Tail | None:
        """How far a file was read, by this name or another."""
        if file.inode in self._tails:
            return self._tails[file.inode]
        for other in self._others:
            tail = other._tails.get(file.inode) if isinstance(other, Growing) else None
            if tail is not None and (tail.position >= 0 or not file.matched):
                return tail
        known = sorted(self._before.get(file.inode, []), key=lambda tail: tail.position, reverse=True)
        return next((tail for tail in known if tail.fits(self._stream(file))), known[0] if known else None)

    def _stream(self, file: Seen) -> IO[bytes]:
        """A file, held open.

        Raises:
            _MovedError: Its name is another file's by now.
        """
        if file.inode not in self._open:
            with reading(file.given):
                try:
                    new = file.path.open("rb", buffering=0)
                except FileNotFoundError:
                    raise _MovedError from None
            if os.fstat(new.fileno()).st_ino != file.inode:
                new.close()
                raise _MovedError
            self._open[file.inode] = new
        self._open[file.inode] = stream = self._open.pop(file.inode)
        while len(self._open) > HELD:
            self._open.pop(next(iter(self._open))).close()
        return stream

    def _lines(self, file: Seen) -> TextReader:
        """The reader of one file, with the wanted columns in the wanted types."""
        from wpinq.sources import open_source
        from wpinq.sources.text.csv import TextReader

        if file.inode not in self._readers:
            words = self._form.copy()
            words["format"] = words.get("format") or form_of(Path(file.family[1])) or form_of(file.path)
            columns = {column.name: column.kind.value for column in self._schema}
            reader = open_source(file.given, columns=columns, **words)
            if not isinstance(reader, TextReader):
                raise SourceError(f"{file.given}: cannot grow line by line; follow .log, .csv, .tsv, .txt or .jsonl.")
            self._readers[file.inode] = reader
        return self._readers[file.inode]

    def _grown(self, file: Seen) -> Iterator[pl.DataFrame]:
        """What was added to a file that has a name."""
        tail = self._tails[file.inode]
        if tail.position < 0 or self._same(file):
            return
        with reading(file.given):
            yield from self._added(self._lines(file), tail, self._stream(file))
        self._stats[file.inode] = (file.size, file.modified)

    def _gone(self, files: Mapping[int, Seen]) -> Iterator[pl.DataFrame]:
        """What was added to files that have another name now, or none."""
        for inode in [inode for inode in self._tails if inode not in files]:
            tail, stream, reader = self._tails[inode], self._open.get(inode), self._readers.get(inode)
            if stream is None or reader is None or monotonic() - self._since[inode] > LATER:
                del self._tails[inode], self._since[inode]
                for kept in (self._stats, self._readers):
                    kept.pop(inode, None)
                if stream is not None:
                    self._open.pop(inode).close()
                continue
            before = tail.position
            yield from self._added(reader, tail, stream)
            if tail.position > before:
                self._since[inode] = monotonic()

    def _compressed(self, files: Mapping[int, Seen]) -> Iterator[pl.DataFrame]:
        """What was compressed before the first look, the oldest first."""
        for file in sorted(files.values(), key=lambda file: file.modified):
            if file.zipped and file.path.suffix.lower() == ".gz":
                reader = self._lines(file)
                del self._readers[file.inode]
                for block in reader.file_blocks(0):
                    self.offered += block.count(b"\n")
                    yield from reader.frames(block, self._schema)

    def _added(self, reader: TextReader, tail: Tail, stream: IO[bytes]) -> Iterator[pl.DataFrame]:
        rest, last = b"", around(stream, tail.position)
        stream.seek(tail.position)
        left = os.fstat(stream.fileno()).st_size - tail.position
        while left > 0 and code(last) == tail.digest and (data := stream.read(min(BLOCK, left))):
            if around(stream, tail.position) != last:
                return  # it was cut while it was read: the next look finds what it held
            left -= len(data)
            whole = (rest + data).rfind(b"\n") + 1
            block, rest = (rest + data)[:whole], (rest + data)[whole:]
            last = tail.read(stream, last, block)
            self.offered += block.count(b"\n")
            if block:
                yield from reader.frames(reader.text(block), self._schema)
