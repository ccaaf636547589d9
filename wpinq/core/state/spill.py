"""What waits on disk during a run, encrypted under a key of the run: records for large states, and what tasks send.

`Overflow` keeps records for a step whose state is as large as memory allows.

The output for a key of such a step depends on that key's records alone, and the engine has cut the keys into many
parts, each with a state of its own. When a part may not grow any more its further records wait here; at the end one
part after another takes in the rest of its records and is let go of. So no answer depends on what waited.

`Spill` keeps what the tasks of several processes send each other, in files of a private directory. The directory lies
where rows wait that do not fit in memory (`core/state/memory.py`), and its owner alone may read it. The key is told to
the processes through a pipe and kept nowhere. So once they have ended nobody can read what was written, and it is
removed: by the process that made it, or, if that was killed, by those that it started, or if all were, by the next
that makes one there.

A piece of either is bound to its file and where it lies there, so that none can be changed, or given for another.
"""

from __future__ import annotations

import io
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import polars as pl
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wpinq.core.records.batch import Batch
from wpinq.core.records.schema import Schema
from wpinq.core.state.memory import Memory, Scratch
from wpinq.core.state.states import Ending
from wpinq.errors import EngineError
from wpinq.storage import NONCE, HeldDirectory

TAG = 16
"""Bytes by which a change of what was encrypted is noticed."""


@runtime_checkable
class Sized(Ending, Protocol):
    """A state that knows how much memory it holds."""

    @property
    def size(self) -> int:
        """Bytes, about."""


class Disk:
    """A file without a name that the parts of a step share. Nobody can read it once this process has ended.

    Args:
        memory: What the parts may hold, and where the file lies.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory, self._lock, self._key = memory, threading.Lock(), os.urandom(32)
        self._scratch: Scratch | None = None
        self._end = 0

    def write(self, batch: Batch) -> tuple[int, int]:
        """Keep records.

        Returns:
            Where they are.

        Raises:
            EngineError: There is no room.
        """
        plain = io.BytesIO()
        batch.frame.write_ipc_stream(plain, compat_level=pl.CompatLevel.oldest())  # no text of other rows goes along
        content = plain.getbuffer()
        size = NONCE + len(content) + TAG
        with self._lock:
            self._scratch = self._scratch or self.memory.scratch()
            start, self._end = self._end, self._end + size
        self._scratch.write(_encrypted(self._key, f"records {start}", content), start)
        return start, size

    def read(self, start: int, size: int) -> pl.DataFrame:
        """Records that were kept.

        Raises:
            EngineError: They are not there as they were written.
        """
        content = bytearray(size)
        if self._scratch is not None:
            self._scratch.read([memoryview(content)], start)
        where = self.memory.folder or "the directory for temporary files"
        return pl.read_ipc_stream(io.BytesIO(_decrypted(self._key, f"records {start}", content, where)))


class Overflow:
    """A state that grows as far as memory allows, and takes in at the end what came afterwards.

    Args:
        state: The state of some keys of a step that answers once.
        disk: Where the rest of their records wait, and how much memory there is.
    """

    def __init__(self, state: Sized, disk: Disk) -> None:
        self._state, self._disk, self._memory = state, disk, disk.memory
        self._taken = 0
        self._waiting: list[tuple[int, Schema, tuple[int, int]]] = []
        self._full = False

    def absorb(self, port: int, batch: Batch) -> None:
        """Take in a change, or let it wait."""
        if self._full:
            self._waiting.append((port, batch.schema, self._disk.write(batch)))
            return
        self._state.absorb(port, batch)
        more = self._state.size - self._taken
        self._full = not self._memory.take(more)
        self._taken += 0 if self._full else more

    @property
    def size(self) -> int:
        """Bytes that are held, about."""
        return self._state.size

    def wait(self) -> None:
        """Take in no more until the end."""
        self._full = True

    def _gone(self) -> None:
        taken, self._taken = self._taken, 0
        self._memory.give(taken)

    __del__ = _gone

    def emit(self) -> Batch:
        """The change of the step's output; it is asked for once."""
        pieces = list(self.last())
        return Batch.concat(pieces, pieces[0].schema)

    def last(self) -> Iterator[Batch]:
        """The same in pieces; nothing is asked afterwards."""
        for port, schema, extent in self._waiting:
            self._state.absorb(port, Batch(self._disk.read(*extent), schema))
        try:
            yield from self._state.last()
        finally:
            del self._state
            self._gone()


class Kept(NamedTuple):
    """Where a piece lies: its file, where it begins there, and how many bytes it takes."""

    file: str
    start: int
    size: int


@dataclass(frozen=True)
class Spill:
    """The directory of one run.

    Attributes:
        folder: The directory.
        key: The key of the run.
        held: The same, held by the process that made it; None in others.
    """

    folder: Path
    key: bytes
    held: HeldDirectory | None = None

    @classmethod
    def made(cls, beside: str | None) -> Spill:
        """A new directory.

        Args:
            beside: In which directory it is made; in that of the system for temporary files, if none is named.

        Raises:
            EngineError: It cannot be made there.
        """
        try:
            held = HeldDirectory(None if beside is None else Path(beside), ".wpinq-run-")
        except OSError as error:
            raise full(beside or "the directory for temporary files", error) from None
        return cls(held.path, os.urandom(32), held)

    def writer(self, name: str) -> Writer:
        """A new file, which holds one piece after another."""
        return Writer(self, name)

    def read(self, piece: Kept) -> bytes:
        """A piece.

        Raises:
            EngineError: It is not there as it was written.
        """
        try:
            with (self.folder / piece.file).open("rb") as file:
                content = os.pread(file.fileno(), piece.size, piece.start)
        except OSError:
            content = b""
        return _decrypted(self.key, f"{piece.file} {piece.start}", content, self.folder)

    def forget(self, file: str) -> None:
        """Remove a file that was read."""
        (self.folder / file).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the directory and all that is in it."""
        if self.held is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            self.held.close()


class Writer:
    """Writes pieces to a new file of a run; it is made with the first one."""

    def __init__(self, spill: Spill, name: str) -> None:
        self._spill, self.name = spill, name
        self._end = 0
        self._file: int | None = None

    def write(self, content: memoryview) -> Kept:
        """Keep a piece.

        Raises:
            EngineError: There is no room.
        """
        start = self._end
        pieces = _encrypted(self._spill.key, f"{self.name} {start}", content)
        try:
            if self._file is None:
                path = self._spill.folder / self.name
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            for piece in pieces:
                self._end += len(piece)
                done = 0
                while done < len(piece):
                    done += os.write(self._file, piece[done:])
        except OSError as error:
            raise full(self._spill.folder, error) from None
        return Kept(self.name, start, self._end - start)

    def close(self) -> None:
        """End the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _encrypted(key: bytes, name: str, content: memoryview) -> list[memoryview]:
    """Content under a name, which says where it lies."""
    nonce = os.urandom(NONCE)
    return [memoryview(nonce), memoryview(AESGCM(key).encrypt(nonce, content, name.encode()))]


def _decrypted(key: bytes, name: str, content: bytes | bytearray, folder: Path | str) -> bytes:
    """The content again.

    Raises:
        EngineError: It is not what was encrypted under this name.
    """
    view = memoryview(content)
    try:
        return AESGCM(key).decrypt(view[:NONCE], view[NONCE:], name.encode())
    except (ValueError, InvalidTag):
        raise EngineError(f"{folder}: what waited there cannot be read; nothing was answered.") from None


def full(folder: Path | str, error: OSError) -> EngineError:
    """What is said where nothing can be written."""
    why = os.strerror(error.errno) if error.errno else "it failed"
    return EngineError(
        f"{folder}: what the processes of a run send each other cannot be written there ({why.lower()}); make room, or "
        "name another directory (--spill, limit_memory)."
    )
