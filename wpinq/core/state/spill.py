"""Records that wait on disk for a step whose state is as large as memory allows, encrypted under a key of this run.

The output for a key of such a step depends on that key's records alone, and the engine has cut the keys into many
parts, each with a state of its own. When a part may not grow any more its further records wait here; at the end one
part after another takes in the rest of its records and is let go of. So no answer depends on what waited.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import polars as pl

from wpinq.core.records.batch import Batch
from wpinq.core.records.schema import Schema
from wpinq.core.state.memory import Memory, Scratch
from wpinq.core.state.states import Ending
from wpinq.storage import opened, sealed


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
        content = sealed(self._key, "records", plain.getvalue())
        with self._lock:
            self._scratch = self._scratch or self.memory.scratch()
            start, self._end = self._end, self._end + len(content)
        self._scratch.write([memoryview(content)], start)
        return start, len(content)

    def read(self, start: int, size: int) -> pl.DataFrame:
        """Records that were kept.

        Raises:
            EngineError: They cannot be read.
        """
        content = bytearray(size)
        if self._scratch is not None:
            self._scratch.read([memoryview(content)], start)
        return pl.read_ipc_stream(io.BytesIO(opened(self._key, "records", bytes(content))))


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
