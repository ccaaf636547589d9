"""Files of lines that may grow, be renamed or be compressed while they are read: each stays as it was opened.

A descriptor is kept, which names the file whatever becomes of its name, and no byte is read beyond the size it had.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wpinq.errors import ChangedError, SourceError
from wpinq.sources.files import CHANGED, File, Files, reading
from wpinq.sources.text.csv import TextReader
from wpinq.sources.zoned import Zoned

if TYPE_CHECKING:
    from wpinq.core.records.reader import Reader

MOST = 256
"""Descriptors that one source keeps; files beyond that are known by their size and time."""
TRIES = 10


class Descriptor:
    """A file that was opened, until nothing refers to it any more."""

    __slots__ = ("_number",)

    def __init__(self, file: File) -> None:
        self._number = -1
        with reading(file.given):
            self._number = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if self._number >= 0:
            os.close(self._number)

    @property
    def status(self) -> os.stat_result:
        """What the system says of it now."""
        return os.fstat(self._number)

    def read(self, size: int, offset: int) -> bytes:
        """Some of its bytes."""
        return os.pread(self._number, size, offset)

    def check(self, file: File) -> None:
        """Refuse it where what was there is not any more: it was cut.

        Raises:
            ChangedError: It is shorter than it was.
        """
        if self.status.st_size < file.size:
            raise ChangedError(CHANGED.format(file.given))

    def opened(self, size: int) -> io.RawIOBase:
        """Its first bytes as a file of their own."""
        return _First(self, size)


class _First(io.RawIOBase):
    """The first bytes of a file."""

    def __init__(self, file: Descriptor, size: int) -> None:
        self._file, self._size, self._position = file, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, into: Any) -> int:
        content = self._file.read(max(min(len(into), self._size - self._position), 0), self._position)
        into[: len(content)] = content
        self._position += len(content)
        return len(content)


def kept(opened: Callable[[], Reader]) -> Reader:
    """A reader of files as they are at one moment, whatever becomes of them, if it is one of lines.

    A log that was compressed and is still there, as `gzip -k` leaves it and `gzip` for a moment, is read once.

    Args:
        opened: Opens the source.

    Raises:
        SourceError: It cannot be read, or its files have other names all the time.
    """
    for _ in range(TRIES):
        reader = opened()
        inner = reader.reader if isinstance(reader, Zoned) else reader
        if not isinstance(inner, TextReader):
            return reader
        if (held := _held(inner)) is not None:
            return replace(reader, reader=held) if isinstance(reader, Zoned) else held
    raise SourceError(f"{reader.name}: its files were renamed again and again while they were opened; try again.")


def _held(reader: TextReader) -> TextReader | None:
    """The same reader over descriptors; None where a file got another name meanwhile."""
    pairs = list(zip(reader.source.files, reader.origins, strict=True))
    names = {str(file.path) for file, _ in pairs}
    pairs = [(file, origin) for file, origin in pairs if not (file.zipped and str(file.path)[: -len(".gz")] in names)]
    files = []
    for index, (file, _) in enumerate(pairs):
        if index >= MOST:
            files.append(file)
            continue
        try:
            held = Descriptor(file)
            now = file.path.stat()
        except (SourceError, FileNotFoundError):
            return None
        status = held.status
        if (status.st_dev, status.st_ino) != (now.st_dev, now.st_ino) or status.st_size < file.size:
            return None
        files.append(replace(file, kept=held))
    again = Files.find(reader.source.given, reader.source.form)
    if {str(file.path) for file in again.files} != names:
        return None
    files_held = replace(reader.source, files=tuple(files))
    return replace(reader, source=files_held, origins=tuple(origin for _, origin in pairs))
