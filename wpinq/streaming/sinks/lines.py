"""JSON lines in a file, which only grows."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from wpinq.errors import SourceError
from wpinq.streaming.sinks.sink import Release

TAIL = 1 << 24
"""Bytes at a file's end in which an epoch that is given again is looked for."""


class LinesFile:
    """Adds a line for each answer to a file. What a killed process wrote in part is cut, and no line is there twice.

    Args:
        path: The file; it is made where there is none.
    """

    def __init__(self, path: Path) -> None:
        self.name, self._path = str(path), path
        self._keys: set[str] | None = None

    def deliver(self, release: Release) -> None:
        """See `Sink.deliver`.

        Raises:
            SourceError: The file cannot be written.
        """
        try:
            with self._path.open("a+b", buffering=0) as file:
                keys = self._known(file.fileno()) if self._keys is None else self._keys
                fresh = [row for row in release.rows if row["key"] not in keys]
                self._keys = None  # should it be written in part, the next attempt looks what is there
                left = memoryview(Release(release.stream, release.epoch, fresh).lines())
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
                self._keys = keys
        except OSError as error:
            raise SourceError(f"{self.name}: cannot be written: {error.strerror}.") from None

    def close(self) -> None:
        """Nothing is held open."""

    def _known(self, file: int) -> set[str]:
        """The keys of the last lines, after a line that has no end is cut off."""
        size = os.fstat(file).st_size
        tail = os.pread(file, TAIL, max(0, size - TAIL))
        whole = tail.rfind(b"\n") + 1
        os.ftruncate(file, size - len(tail) + whole)
        found = set()
        for line in tail[:whole].splitlines():
            with suppress(ValueError, TypeError, KeyError):
                found.add(str(json.loads(line)["key"]))
        return found
