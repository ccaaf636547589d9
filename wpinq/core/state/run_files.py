"""What tasks of several processes send each other, in files of a private directory, encrypted under a key of one run.

The directory lies where rows wait that do not fit in memory (`core/state/memory.py`), and its owner alone may read it.
The key is told to the processes through a pipe and kept nowhere. So once they have ended nobody can read what was
written, and it is removed: by the process that made it, or, if that was killed, by those that it started. A piece is
bound to its file and its place there, so that none can be changed, or given for another.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wpinq.errors import EngineError
from wpinq.storage import NONCE


class Kept(NamedTuple):
    """Where a piece lies: its file, where it begins there, and how many bytes it takes."""

    file: str
    start: int
    size: int


@dataclass(frozen=True)
class Spill:
    """The directory of one run.

    Attributes:
        place: The directory.
        key: The key of the run.
    """

    folder: Path
    key: bytes

    @classmethod
    def made(cls, beside: str | None) -> Spill:
        """A new directory.

        Args:
            beside: In which directory it is made; in that of the system for temporary files, if none is named.

        Raises:
            EngineError: It cannot be made there.
        """
        import tempfile

        try:
            return cls(Path(tempfile.mkdtemp(prefix=".wpinq-run-", dir=beside)), os.urandom(32))
        except OSError as error:
            raise full(beside or tempfile.gettempdir(), error) from None

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
            view, name = memoryview(content), f"{piece.file} {piece.start}"
            return AESGCM(self.key).decrypt(view[:NONCE], view[NONCE:], name.encode())
        except (OSError, ValueError, InvalidTag):
            raise EngineError(f"{self.folder}: what waited there cannot be read; nothing was answered.") from None

    def forget(self, file: str) -> None:
        """Remove a file that was read."""
        (self.folder / file).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the directory and all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)


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
        nonce, name, start = os.urandom(NONCE), f"{self.name} {self._end}", self._end
        pieces = [memoryview(nonce), memoryview(AESGCM(self._spill.key).encrypt(nonce, content, name.encode()))]
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


def full(folder: Path | str, error: OSError) -> EngineError:
    """What is said where nothing can be written."""
    why = os.strerror(error.errno) if error.errno else "it failed"
    return EngineError(
        f"{folder}: what the processes of a run send each other cannot be written there ({why.lower()}); make room, or "
        "name another directory (--spill, limit_memory)."
    )
