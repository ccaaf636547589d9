"""What programs keep of a stream beside its epochs, in the directory of `live(recover=...)`."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from wpinq.errors import SourceError
from wpinq.storage import appearing, write


class Notes(Protocol):
    """Small texts, by name, that are replaced: how far sinks are, and what is measured."""

    def read(self, name: str) -> bytes | None:
        """What was written last; None where nothing was.

        Raises:
            SourceError: It cannot be read.
        """

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """Replace it.

        Args:
            durable: Whether it must not be lost in a crash.

        Raises:
            SourceError: It cannot be written.
        """


class FolderNotes:
    """Notes as files of a directory.

    Args:
        folder: The directory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes | None:
        """See `Notes`."""
        path = self._folder / name
        try:
            return path.read_bytes() if path.exists() else None
        except OSError as error:
            raise SourceError(f"--recover {self._folder}: {error.strerror}; it must be readable.") from None

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """See `Notes`."""
        try:
            if durable:
                write(self._folder / name, content)
                return
            with appearing(self._folder / name) as file:
                file.write(content)
        except OSError as error:
            raise SourceError(f"--recover {self._folder}: {error.strerror}; it must be writable.") from None
