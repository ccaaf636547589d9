"""The journal (checkpoint log) of a live source: each closed epoch is written before any answer from it.

One file holds the closed epochs, in order, each encrypted together with the positions up to which followed files and
topics were read. An incomplete epoch was not closed, and nothing was answered from it. So answers after a restart are
those of before, and records of files and topics are counted once.

The number of epochs is also written beside the ledger, and compared: a directory that was restored from a copy could
close an epoch again, with other records under the same noise, and is refused.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from wpinq.errors import EngineError, SourceError
from wpinq.sources.log import Epoch
from wpinq.storage import opened, private, sealed, write

Positions: TypeAlias = dict[str, Any]
"""How far each source was read, by its name."""

SIZE = 8
NAME = "epochs"


@dataclass(frozen=True)
class DataflowDirectory(os.PathLike[str]):
    """The directory of a journal of a dataflow script, of which older versions made the key of the journal.

    Attributes:
        place: The directory.
        script: A digest of the dataflow.
    """

    place: str | os.PathLike[str]
    script: bytes

    def __fspath__(self) -> str:
        return os.fspath(self.place)


class Journal:
    """The closed epochs of a live source, in a directory.

    Args:
        place: The directory; it is made where there is none.
        head: The file beside the ledger.
        key: 32 secret bytes, of this data set and dataflow alone.

    Attributes:
        version: Names the data; it is the same as long as the directory is.

    Raises:
        SourceError: It belongs to something else, was put back from a copy, is in use, or cannot be used.
    """

    def __init__(self, place: Path, head: Path, key: bytes) -> None:
        self._place, self._head, self._key = place, head, key
        with _said(place), ExitStack() as opening:
            private(place)
            path = place / NAME
            self._alone = opening.enter_context(ExitStack())
            for lock in (place, head.with_name(head.name + ".lock")):
                self._alone.callback(os.close, self._locked(lock))
            opening.callback(self.close)
            if not path.exists() or not (self._open(path) and self._resumes()):
                self._begin(path)
            self.version = opened(key, "version", next(self._frames())).decode()
            opening.pop_all()

    @property
    def closed(self) -> int:
        """How many epochs are kept."""
        return self._number

    def read(self) -> Iterator[tuple[Epoch, Positions]]:
        """The closed epochs, in order."""
        chain = b""
        for number, frame in enumerate(self._frames()):
            if number:
                yield self._epoch(number, chain, frame)
            chain = _next(chain, frame)

    def append(self, epoch: Epoch, positions: Positions) -> None:
        """Write down an epoch, durably, before it is closed.

        Raises:
            SourceError: It cannot be written; nothing was.
            EngineError: It may have been written or not.
        """
        number = self._number + 1
        buffer = io.BytesIO()
        about = json.dumps([epoch.watermark, positions]).encode()
        buffer.write(len(about).to_bytes(SIZE, "little") + about)
        epoch.frame.write_ipc_stream(buffer, compression="zstd")  # a file with its footer takes ten times as long
        frame = sealed(self._key, _name(number, self._chain), buffer.getvalue())
        with _said(self._place):
            end = self._file.seek(0, os.SEEK_END)
            try:
                left = memoryview(len(frame).to_bytes(SIZE, "little") + frame)
                while left:
                    left = left[self._file.write(left) :]
                os.fsync(self._file.fileno())
                self._told(number, _next(self._chain, frame))
            except OSError:
                self._undo(end)
                raise

    def close(self) -> None:
        """Release the directory, so that another process can use it."""
        if hasattr(self, "_file"):
            self._file.close()
        self._alone.close()

    def _locked(self, path: Path) -> int:
        """Lock the directory, or the head, for this process."""
        how = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        descriptor = os.open(path, how | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise SourceError(f"--recover {self._place}: another process is using it, or its ledger.") from None
        return descriptor

    def _undo(self, end: int) -> None:
        """Remove an epoch that could not be written, unless the head counts it already.

        Raises:
            EngineError: It cannot be taken back; a restart sees whether it was closed.
        """
        try:
            if opened(self._key, "head", self._head.read_bytes()) == _head(self._number, self._chain):
                self._file.truncate(end)
                return
        except (OSError, SourceError):
            pass
        raise EngineError(f"--recover {self._place}: an epoch could not be written; make another source.") from None

    def _open(self, path: Path) -> bool:
        """Open the file, and find its end; whether it holds more than its name."""
        self._file = path.open("r+b", buffering=0)
        self._number, self._chain, self._before, whole = -1, b"", b"", 0
        for frame in self._frames():
            self._number, self._before, self._chain = self._number + 1, self._chain, _next(self._chain, frame)
            self._last = whole
            whole += SIZE + len(frame)
        self._file.truncate(whole)
        return self._number >= 0

    def _resumes(self) -> bool:
        """Whether the file can be continued: it has as many epochs as the head says, or one more."""
        next(self.read(), None)  # with another key it fails here
        told = opened(self._key, "head", self._head.read_bytes()) if self._head.exists() else b""
        if told == _head(self._number, self._chain):
            return True
        if not self._number:
            return False
        if told != _head(self._number - 1, self._before):
            raise SourceError(
                f"--recover {self._place}: was put back from a copy, or is not the last one of this ledger; give a new "
                "directory, which is charged anew."
            )
        self._finish()
        return True

    def _finish(self) -> None:
        """Adopt the last epoch, which the head does not count yet, if it was written completely."""
        try:
            *_, frame = self._frames()
            self._epoch(self._number, self._before, frame)
        except SourceError:
            self._file.truncate(self._last)
            self._number, self._chain = self._number - 1, self._before
        self._told(self._number, self._chain)

    def _begin(self, path: Path) -> None:
        frame = sealed(self._key, "version", os.urandom(16).hex().encode())
        write(path, len(frame).to_bytes(SIZE, "little") + frame)
        if hasattr(self, "_file"):
            self._file.close()
        self._open(path)
        self._told(0, self._chain)

    def _told(self, number: int, chain: bytes) -> None:
        write(self._head, sealed(self._key, "head", _head(number, chain)))
        self._number, self._chain = number, chain

    def _frames(self) -> Iterator[bytes]:
        """The complete frames of the file."""
        place, end = 0, os.fstat(self._file.fileno()).st_size
        while place + SIZE <= end:
            size = int.from_bytes(self._bytes(place, SIZE), "little")
            if place + SIZE + size > end:
                return
            yield self._bytes(place + SIZE, size)
            place += SIZE + size

    def _bytes(self, place: int, size: int) -> bytes:
        result = bytearray()
        while len(result) < size and (some := os.pread(self._file.fileno(), size - len(result), place + len(result))):
            result += some
        return bytes(result)

    def _epoch(self, number: int, chain: bytes, frame: bytes) -> tuple[Epoch, Positions]:
        content = opened(self._key, _name(number, chain), frame)
        size = SIZE + int.from_bytes(content[:SIZE], "little")
        watermark, positions = json.loads(content[SIZE:size])
        read = pl.read_ipc if content.startswith(b"ARROW1", size) else pl.read_ipc_stream  # as older versions wrote it
        return Epoch(read(io.BytesIO(content[size:])), watermark), positions


def open_journal(recover: str | os.PathLike[str], head: Path, key: Callable[[bytes], bytes]) -> Journal:
    """The journal of a directory; `key` makes its key, with the digest of a script where an older version made it.

    Raises:
        SourceError: See `Journal`.
    """
    try:
        return Journal(Path(recover), head, key(b""))
    except SourceError:
        if not isinstance(recover, DataflowDirectory):
            raise
        return Journal(Path(recover), head, key(recover.script))


def _next(chain: bytes, frame: bytes) -> bytes:
    return blake2b(chain + frame, digest_size=32).digest()


def _name(number: int, chain: bytes) -> str:
    return f"epoch {number} {chain.hex()}"


def _head(number: int, chain: bytes) -> bytes:
    return f"{number} {chain.hex()}".encode()


@contextmanager
def _said(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SourceError(f"--recover {place}: {error.strerror}; give a directory that can be written.") from None
