"""Names of rotated logs, and which files are copies of what was read: how each line of a rotated log is read once.

A log is rotated in two ways. It is renamed, and a new file gets its name: then the old file is known by its inode,
under whatever name. Or it is copied and cut (`copytruncate`): then the copy is a new file whose bytes before the place
up to which the log was read are those that were read, and what follows them was not. A file that is neither was a log
between two looks, and is read from its beginning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO

BEFORE = 1 << 12
"""Bytes by which a file is known again."""
NAME = re.compile(
    r"(?P<stem>.+?)(?:\.[0-9]{1,9}|[-.][0-9]{4}-?[0-9]{2}-?[0-9]{2}[0-9TZ_.:-]*)(?P<end>\.[A-Za-z]+)?$", re.DOTALL
)
"""What logrotate, Caddy and Python's handlers make of a name: access.log.1, access.log.2026-11-24, a-20261124.log."""
ZIPPED = (".gz", ".bz2", ".xz", ".zst", ".zip")


def base_of(name: str) -> str | None:
    """The name that a rotated log had; None where a name is not that of a rotated one.

    >>> [base_of(name) for name in ("a.log.1", "a.log-20261124", "a.log.2.gz", "a-2026-11-24T21-47-28.1.log", "a.log")]
    ['a.log', 'a.log', 'a.log', 'a.log', None]
    """
    known = NAME.match(name.removesuffix(".gz"))
    return None if known is None else known["stem"] + (known["end"] or "")


@dataclass(frozen=True)
class Seen:
    """A file at one look.

    Attributes:
        path: Where links end.
        given: The path as people know it.
        inode: Its inode.
        size: In bytes.
        modified: In nanoseconds.
        matched: Whether its own name is followed, and not only that which it had.
        family: The directory and the name of the log that it is or was.
        live: Whether it has that name.
    """

    path: Path
    given: str
    inode: int
    size: int
    modified: int
    matched: bool
    family: tuple[str, str]
    live: bool

    @property
    def zipped(self) -> bool:
        """Whether it is compressed."""
        return self.path.name.lower().endswith(ZIPPED)


@dataclass
class Tail:
    """How far one file was read.

    Attributes:
        position: The byte after the last whole line. Below zero: so many first bytes of a file that is not read.
        digest: Of the bytes right before it, or of these first ones, which tells the file from one with its inode.
        first: How many of its first bytes are known; 0 where no line was read.
        head: A digest of these.
    """

    position: int
    digest: str
    first: int = 0
    head: str = ""

    @property
    def kept(self) -> list[int | str]:
        """It as JSON can hold it."""
        return [self.position, self.digest, self.first, self.head]

    def fits(self, stream: IO[bytes]) -> bool:
        """Whether a file still is, or begins as, the one that was read."""
        return code(around(stream, self.position)) == self.digest

    def read(self, stream: IO[bytes], last: bytes, block: bytes) -> bytes:
        """Go on behind a block of whole lines; what stands before the new place.

        Args:
            stream: The file.
            last: What stood before the old place.
            block: The lines.
        """
        if block and not self.first:
            self.first = min(self.position + len(block), BEFORE)
            whole = around(stream, self.position) + block if self.position < BEFORE else block
            self.head = code(whole[: self.first])
        last = (last + block)[-BEFORE:]
        self.position += len(block)
        self.digest = code(last)
        return last


def ignored(stream: IO[bytes], size: int) -> Tail:
    """How a file that is not read is known again."""
    first = -min(size, BEFORE)
    return Tail(first, code(around(stream, first)))


def around(stream: IO[bytes], position: int) -> bytes:
    """The bytes before a place, or, where it is below zero, so many first ones."""
    start = max(0, position - BEFORE)
    return os.pread(stream.fileno(), abs(position) - start, start)


def code(content: bytes) -> str:
    """A digest of some bytes of a file."""
    return blake2b(content, digest_size=16).hexdigest()


def held(stream: IO[bytes], tail: Tail) -> Tail | None:
    """Where to read on in the copy of a file that was cut since; None where this is none."""
    size = os.fstat(stream.fileno()).st_size
    if not tail.first or size < tail.first:
        return None
    if tail.position <= size:
        return tail if tail.fits(stream) else None
    if code(os.pread(stream.fileno(), tail.first, 0)) == tail.head:  # it was read further before it was cut
        return ignored(stream, size)
    return None


def is_copy(copy: IO[bytes], other: IO[bytes]) -> bool:
    """Whether a file begins as another one does that is no shorter, by its first bytes and its last ones."""
    size = os.fstat(copy.fileno()).st_size
    if not 0 < size <= os.fstat(other.fileno()).st_size:
        return False
    places = {0, max(0, size - BEFORE)}
    return all(
        os.pread(copy.fileno(), min(size, BEFORE), offset) == os.pread(other.fileno(), min(size, BEFORE), offset)
        for offset in places
    )


def listed(matched: Iterable[tuple[Path, str]], pattern: Path) -> dict[int, Seen]:
    """The files that are followed and those that were, by inode; a name that is followed comes before one that was.

    Args:
        matched: The files whose names are followed, as they are and as people know them.
        pattern: The path that is followed, or a pattern of paths.
    """
    found = dict[int, Seen]()
    homes = {(str(pattern.parent), pattern.name)}
    for path, given in matched:
        home, name = os.path.split(given)
        base = base_of(name)
        family = (home or ".", base or name)
        homes.add(family)
        _add(found, path, given, family, matched=True, live=base is None)
    for directory in {home for home, _ in homes}:
        for path, base in _rotated(directory):
            if (directory, base) in homes:
                _add(found, path, str(path), (directory, base), matched=False, live=False)
    return found


def _rotated(directory: str) -> Iterator[tuple[Path, str]]:
    """The files of a directory whose names are those of rotated logs, with the names that they had."""
    try:
        for entry in os.scandir(directory):
            base = base_of(entry.name)
            if base is not None and entry.is_file():
                yield Path(entry.path), base
    except OSError:
        return


def _add(found: dict[int, Seen], path: Path, given: str, family: tuple[str, str], *, matched: bool, live: bool) -> None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if status.st_ino not in found:
        found[status.st_ino] = Seen(
            path, given, status.st_ino, status.st_size, status.st_mtime_ns, matched, family, live
        )
