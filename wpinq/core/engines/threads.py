"""A keyed step in several threads of this process, and in many parts: each holds the state of some keys.

Kernels and Polars let other threads run, so each thread has a core. The output for a key depends on the records of that
key alone, so that it is the same in any number of threads and parts, as it is in any number of shards. Which part a key
belongs to follows from its identity, never from the data that came before. A step whose state is large is cut into more
parts than there are threads: what does not fit in memory waits on disk, part by part (`core/state/spill.py`).

Records wait in memory until there are many of a part, so that its tables are in the cache while they are taken in.
Where all of them fit, a part is begun and ended at once, and few are there at a time. `Room` says how many may wait:
what is known of people takes twice the memory of their records.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import polars as pl

from wpinq.core.engines.reading import ahead
from wpinq.core.plan.shapes import Keyed
from wpinq.core.records.batch import Batch
from wpinq.core.state.memory import LIMIT
from wpinq.core.state.spill import Disk, Overflow, Sized
from wpinq.core.state.states import Ending, State
from wpinq.core.state.workers import FEW, Workers

PARTS, BYTES = 64, 1 << 21
"""Parts of a step whose state is large: at the most so many, and so many bytes of files in each, since every part takes
some memory of its own. More only where memory asks for it; see `fitting`."""
MOST_PARTS, WIDER = 1 << 10, 16
"""Parts of a step at the very most; and how many times as many bytes as in files records take in the state of a join: 7
bytes of Parquet are 125 there."""
WORTH = 1 << 14
"""Rows of a part that are worth a call; a share of them where there are more than `PARTS`."""
LOT, SHARE = 1 << 21, 8
"""Bytes of a part that wait before it is tried whether they take less in its state, at the most; and the share of
memory that may wait in all parts until then, an eighth."""
PIECES = 16
"""Pieces of a part that get memory of their own together."""
MOST_SHARE = 2
"""The share of memory that may wait in all parts where it takes more in their states, a half."""


def state_of(shape: Keyed, key: bytes, threads: int | None, size: int | None = None) -> State:
    """The state of a step: of one that answers once in so many threads, where it allows that.

    Args:
        shape: The step.
        key: The key of identities.
        threads: How many there may be; None if it answers again and again.
        size: Bytes of the files that are read; None if that is not known.
    """
    first = shape.state(key)
    if threads is None or shape.hashed or shape.alone or not all(shape.keys):
        return first
    if isinstance(first, Sized):
        disk = Disk(LIMIT)
        parts = PARTS if size is None else max(min(PARTS, max(threads, size // BYTES)), fitting(threads, size))
        return Threads(shape.keys, key, lambda: Overflow(cast("Sized", shape.state(key)), disk), threads, parts)
    return first if threads == 1 else Threads(shape.keys, key, lambda: shape.state(key), threads, threads)


def fitting(threads: int, size: int) -> int:
    """Into how many parts a step is cut so that those that are ended at once, one a thread, take half of the memory.

    Args:
        threads: How many there are.
        size: Bytes of the files that are read.
    """
    return min(-(-2 * WIDER * threads * size // max(LIMIT.most, 1)), MOST_PARTS)


class Threads:
    """A state for the keys of each part. What fails in a thread is raised where the next piece is handed to it.

    Args:
        keys: For each input the columns of its key.
        key: The key of identities.
        make: Makes a state with nothing in it: for all keys where there are few records, else for those of a part.
        threads: How many there are.
        parts: How many there are, which are shared out among the threads.
    """

    def __init__(
        self, keys: Sequence[tuple[str, ...]], key: bytes, make: Callable[[], State], threads: int, parts: int
    ) -> None:
        self._keys, self._key, self._make = keys, key, make
        self._threads, self._count = threads, parts
        self._parts: list[Part] = []
        self._few: list[tuple[int, Batch]] = []
        self._rows = self._turn = 0
        self._workers: Workers | None = None

    def absorb(self, port: int, batch: Batch) -> None:
        """Take in a change, or let a thread cut it into parts."""
        self._few.append((port, batch))
        self._rows += len(batch)
        if self._rows > FEW:
            self._workers = self._workers or self._started()
            few, self._few = self._few, []
            for change in few:
                self._turn = (self._turn + 1) % self._threads
                self._workers.hand(self._turn, self._cut, *change)

    def emit(self) -> Batch:
        """The change of the step's output; it is asked for once."""
        pieces = list(self.last())
        return Batch.concat(pieces, pieces[0].schema)

    def last(self) -> Iterator[Batch]:
        """The same in pieces; nothing is asked afterwards."""
        if self._workers is None:
            state = self._make()
            for port, batch in self._few:
                state.absorb(port, batch)
            yield from _pieces(state)
            return
        self._workers.finish()
        mine = [deque(self._parts[number :: self._threads]) for number in range(self._threads)]
        self._parts = []
        with ahead([_each(some) for some in mine]) as pieces:
            yield from pieces

    def _started(self) -> Workers:
        states = [self._make() for _ in range(self._count)]
        room = Room(self._count, tries=isinstance(states[0], Overflow))
        self._parts = [Part(state, room) for state in states]
        return Workers(self._threads)

    def _cut(self, port: int, batch: Batch) -> None:
        from wpinq.core.engines.shards import divided  # few steps have so many rows

        width = batch.frame.estimated_size() / max(len(batch), 1)
        for some in divided(batch, self._keys[port], self._key, self._count):
            for part, piece in zip(self._parts, some, strict=True):
                if len(piece):
                    part.add(port, piece, width * len(piece))


class Room:
    """How many records of each part wait before they are taken in.

    Where records repeat they take less memory in a state, else more. Keys are cut into parts by chance, so parts are
    alike: the first that is full takes its records in, which shows what they take there. Where it is more, those of all
    others wait for up to twice as much before it is tried again, and from half of memory on they wait on disk.

    Args:
        count: How many parts there are.
        tries: Whether states tell what they take.

    Attributes:
        rows: Rows that wait at least; none is taken in before there are so many, and as many bytes as may wait.
        disk: Whether a part that has taken in none lets its records wait on disk.
    """

    def __init__(self, count: int, *, tries: bool) -> None:
        self._count, self.rows = count, WORTH * PARTS // max(PARTS, count)
        self._lock, self._trying, self._settled = threading.Lock(), False, not tries
        self._most, self.disk = 0, False
        self._widen(min(LOT, LIMIT.most // (SHARE * count)))
        self._least = self._most

    def full(self, size: float, *, begun: bool) -> bool:
        """Whether a part takes in what waits there.

        Args:
            size: Bytes that wait.
            begun: Whether its state has taken in some before.
        """
        with self._lock:
            if size < (self._least if begun else self._most) or (self._trying and not begun):
                return False
            self._trying = self._trying or not (begun or self._settled)
            return True

    def tried(self, size: float, taken: int) -> None:
        """Learn that so many bytes were taken in first by a state, and what they take there."""
        with self._lock:
            if self._trying:
                self._trying, more = False, min(self._most, LIMIT.most // (MOST_SHARE * self._count) - self._most)
                shrinks = taken <= size
                self.disk = not shrinks and not self._widen(more)
                self._settled = shrinks or self.disk

    def _widen(self, more: int) -> bool:
        """Let so many bytes more wait in each part, if memory allows that."""
        if more <= 0 or not LIMIT.take(more * self._count):
            return False
        weakref.finalize(self, LIMIT.give, more * self._count)
        self._most += more
        return True


class Part:
    """The state of some keys, and records of theirs that wait until there are enough for a call.

    Args:
        state: The state.
        room: How many wait.
    """

    def __init__(self, state: State, room: Room) -> None:
        self._state, self._room, self._begun = state, room, False
        self._adding, self._taking = threading.Lock(), threading.Lock()
        self._waiting: dict[int, Pile] = {}
        self._rows, self._size = 0, 0.0

    def add(self, port: int, batch: Batch, size: float) -> None:
        """Let records wait, or take them in with all that wait; in any thread."""
        with self._adding:
            self._waiting.setdefault(port, Pile()).add(batch)
            self._rows += len(batch)
            self._size += size
            if self._rows < self._room.rows or not self._room.full(self._size, begun=self._begun):
                return
            waiting, self._waiting = self._waiting, {}
            whole, self._rows, self._size = self._size, 0, 0.0
            first, self._begun = not self._begun, True
        with self._taking:
            if first and isinstance(self._state, Overflow):
                self._begin(self._state, waiting, whole)
            else:
                self._take(waiting)

    def _begin(self, state: Overflow, waiting: dict[int, Pile], size: float) -> None:
        if self._room.disk:
            state.wait()
        self._take(waiting)
        self._room.tried(size, state.size)

    def last(self) -> Iterator[Batch]:
        """The change of the output, with all that waited taken in."""
        self._take(self._waiting)
        del self._waiting
        return _pieces(self._state)

    def _take(self, waiting: dict[int, Pile]) -> None:
        while waiting:
            port, pile = waiting.popitem()
            self._state.absorb(port, pile.take())


class Pile:
    """Batches of a part that wait. Pieces of one cut share its memory, so some at a time get memory of their own."""

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._pieces: list[Batch] = []

    def add(self, piece: Batch) -> None:
        """Let a piece of a cut wait."""
        self._pieces.append(piece)
        if len(self._pieces) == PIECES:
            self._batches.append(_together(self._pieces))
            self._pieces.clear()

    def take(self) -> Batch:
        """All rows; none waits afterwards."""
        whole = _together([*self._batches, *self._pieces])
        self._batches.clear()  # the rows are there once
        self._pieces.clear()
        return whole


def _together(batches: list[Batch]) -> Batch:
    frames = [batch.frame for batch in batches]
    return Batch(pl.concat(frames, how="vertical_relaxed", rechunk=True), batches[0].schema)


def _each(parts: deque[Part]) -> Iterator[Batch]:
    """What parts have to say, of which each is then let go of."""
    while parts:
        yield from parts.popleft().last()


def _pieces(state: State) -> Iterator[Batch]:
    if isinstance(state, Ending):
        yield from state.last()
    else:
        yield state.emit()
