"""The head of a journal: how many epochs are closed, and their code, in a file beside the ledger.

It is written in place, into two slots in turn, each in a block of the disk of its own: one wait for the disk, where a
new file in its place takes two. An epoch is durable in the journal before the head says so, and the head is durable
before anything is answered from the epoch; so there are two waits an epoch, one after the other. A slot that was
written in part does not open. Then the other slot counts, which speaks of the epoch before: the journal has one more
epoch, from which nothing was answered, as if the process had been killed before. The slot that counts is never written.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from wpinq.errors import SourceError
from wpinq.storage import NONCE, opened, sealed, write

SLOT = 4096
"""Bytes of a slot, which no write of the other one touches."""
SAID = 256
"""Bytes of what is said, with spaces after it."""
SEALED = NONCE + SAID + 16

durable = getattr(os, "fdatasync", os.fsync)
"""Waits until what was written to a file is on the disk, and its size."""


class Head:
    """What a journal says of itself, beside the ledger.

    Args:
        path: The file; there may be none.
        key: 32 secret bytes.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self._path, self._key = path, key
        self._file: int | None = None
        self._turn = 0

    def read(self) -> bytes:
        """What was said last; nothing where there is no file.

        Raises:
            SourceError: It was written with another key, or is damaged.
            OSError: It cannot be read.
        """
        if not self._path.exists():
            return b""
        content = self._path.read_bytes()
        found = []
        for slot in range(2):
            with suppress(SourceError):
                sealed_one = content[slot * SLOT :][:SEALED]
                turn, _, said = opened(self._key, _name(slot), sealed_one).rstrip().partition(b" ")
                found.append((int(turn), said))
        if not found:
            return opened(self._key, "head", content)  # says what is wrong
        self._turn, said = max(found)
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        return said

    def write(self, said: bytes) -> None:
        """Say something, durably; in a new file where none was read, whatever there is.

        Raises:
            OSError: It may have been said or not.
        """
        turn = self._turn + 1
        content = sealed(self._key, _name(turn % 2), (b"%d %s" % (turn, said)).ljust(SAID))
        if self._file is None:
            write(self._path, (bytes(turn % 2 * SLOT) + content).ljust(2 * SLOT, b"\0"))
            self.read()
            return
        if os.pwrite(self._file, content, turn % 2 * SLOT) != len(content):
            raise OSError(5, "it was written in part")
        durable(self._file)
        self._turn = turn

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _name(slot: int) -> str:
    return f"head {slot}"
