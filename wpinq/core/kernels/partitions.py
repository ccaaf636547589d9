"""Weights by identity where there are more than a cache holds: pages of rows, by the first bits of the identity.

A row is 24 bytes, and memory grows by an arena at a time; nothing is copied for it. When the first arena is full, and
whenever pages double, some partitions are added up to see how much repeats; where it is half, all are, so that there
are about two rows for an identity at the most. Where memory may not grow, full pages go to a file, and come back when
their partition is added up.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels import declare

Words: TypeAlias = npt.NDArray[np.uint64]
Weights: TypeAlias = npt.NDArray[np.int64]
Integers: TypeAlias = npt.NDArray[np.int64]

_P, _N, _I = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
declare({
    "wpinq_scatter": (None, (_P, _P, _I)),
    "wpinq_append": (None, (_P, _N, _P, _P, _N, _P)),
    "wpinq_fold": (_N, (_P, _N, _P, _P, _P, _P, _P, _P)),
})  # fmt: skip
BITS = 10
"""There are 2^10 partitions."""
PAGE, ROWS = 512, 170
"""Words of a page, and its rows: those of `partitions.c`."""
ARENA = 1 << 12
"""Pages that are allocated at a time, 16 megabytes."""
BLOCK = 1 << 18
"""Rows that are added up at a time, but of one partition all."""
SAMPLE = 16
"""Partitions that are looked at to see how much repeats."""


class Scratch(Protocol):
    """A place on disk."""

    def write(self, pages: Sequence[memoryview], offset: int) -> None:
        """Write all pages from a place on."""

    def read(self, pages: Sequence[memoryview], offset: int) -> None:
        """Read all pages from a place on."""

    def mapped(self, size: int) -> Any:
        """So many bytes of it as memory."""


class Memory(Protocol):
    """How much memory there is, and where else rows may wait."""

    def take(self, size: int) -> bool:
        """Take so many bytes, if they are left."""

    def give(self, size: int) -> None:
        """Give them back."""

    def scratch(self) -> Scratch:
        """A new place on disk, that nobody else can read and that is gone with this process."""


class _Pages(ctypes.Structure):
    """`Pages` of `partitions.c`."""

    _fields_ = (
        ("at", _P), ("free", _P), ("left", _N), ("partition", _P), ("filled", _P), ("current", _P), ("bits", _I),
    )  # fmt: skip


class Partitions:
    """Rows of identity and weight that wait in pages.

    Args:
        library: The compiled kernels.
        memory: What bounds the pages in memory; nothing, if there is none.
    """

    def __init__(self, library: ctypes.CDLL, memory: Memory | None = None) -> None:
        self._library, self._memory = library, memory
        self._arenas: list[Words] = []
        self._at, self._free = np.empty(0, np.uint64), np.empty(0, np.int64)
        self._partition, self._filled = np.empty(0, np.int32), np.empty(0, np.int32)
        self._current = np.full(2**BITS, -1, np.int64)
        self._left, self._look = 0, ARENA
        self._scratches: list[Scratch] = []  # of each spill, where it is
        self._spilled = np.zeros((0, 2**BITS + 1), np.int64)  # of each spill, where pages of a partition begin

    def scatter(self, slots: Words, bits: int) -> None:
        """Append all that a table of `Sums` holds, and empty it."""
        self._room(2**BITS + 2**bits // ROWS + 1)
        self._call("wpinq_scatter", slots.ctypes.data, bits)

    def append(self, ids: Words, weights: Weights) -> None:
        """Append rows."""
        for start in range(0, len(ids), BLOCK):
            part = slice(start, start + BLOCK)
            self._room(2**BITS + len(ids[part]) // ROWS + 1)
            self._append(ids[part], weights[part])

    def join(self, other: Partitions) -> None:
        """Take in all pages of another one, which must not be used afterwards."""
        pages, free = len(self._at), (self._free[: self._left], other._free[: other._left] + len(self._at))
        self._arenas += other._arenas
        self._at = np.concatenate([self._at, other._at])
        self._free = np.concatenate([*free, np.zeros(pages + len(other._at) - sum(map(len, free)), np.int64)])
        self._partition = np.concatenate([self._partition, other._partition])
        self._filled = np.concatenate([self._filled, other._filled])
        self._left += other._left
        self._spilled = np.concatenate([self._spilled, other._spilled])
        self._scratches += other._scratches

    @property
    def rows(self) -> int:
        """How many rows wait; an identity may have several."""
        return int(self._filled[self._partition >= 0].sum()) + ROWS * int(np.diff(self._spilled[:, [0, -1]]).sum())

    def blocks(self) -> Iterator[tuple[Words, Weights]]:
        """Distinct identities in order with their weights, piece by piece; of what is appended meanwhile, none."""
        for rows, fold in self._folds():
            words, weights = np.empty((2, rows), np.uint64), np.empty(rows, np.int64)
            count = fold(words, weights)
            yield words.T[:count], weights[:count]

    def all(self) -> tuple[Words, Weights]:
        """The same at once; on disk, mapped to memory, if there is no room for it."""
        rows, count = self.rows, 0
        if rows == 0 or self._memory is None or self._memory.take(24 * rows):
            whole = np.empty(3 * rows, np.uint64)
            if self._memory is not None:
                weakref.finalize(whole, self._memory.give, 24 * rows)
        else:
            whole = np.frombuffer(self._memory.scratch().mapped(24 * rows), np.uint64)
        words, weights = whole[: 2 * rows].reshape(2, rows), whole[2 * rows :].view(np.int64)
        for _, fold in self._folds():
            count += fold(words[:, count:], weights[count:])
        return words.T[:count], weights[:count]

    def _folds(self) -> Iterator[tuple[int, Callable[[Words, Weights], int]]]:
        """For some partitions at a time how many rows they have, and what adds them up, once, and frees their pages."""
        layout, first = self._sorted(), 0
        rows = self._rows_before(*layout)
        while first < 2**BITS:
            last = max(int(np.searchsorted(rows, rows[first] + BLOCK, side="right")) - 1, first + 1)
            if rows[last] > rows[first]:
                yield int(rows[last] - rows[first]), partial(self._folded, layout, first, last)
            first = last

    def _call(self, name: str, *arguments: Any) -> Any:
        pages = _Pages(
            self._at.ctypes.data, self._free.ctypes.data, self._left, self._partition.ctypes.data,
            self._filled.ctypes.data, self._current.ctypes.data, BITS,
        )  # fmt: skip
        result = getattr(self._library, name)(ctypes.byref(pages), *arguments)
        self._left = pages.left
        return result

    def _append(self, ids: Words, weights: Weights) -> None:
        weights = np.ascontiguousarray(weights, np.int64)
        ids = ids if ids.strides[0] in (8, 16) else np.ascontiguousarray(ids)
        words = (ids[:, word].ctypes.data for word in (0, 1))
        self._call("wpinq_append", len(ids), *words, ids.strides[0] // 8, weights.ctypes.data)

    def _room(self, wanted: int) -> None:
        """Have so many free pages."""
        if self._left < wanted and len(self._at) - self._left >= self._look:
            self._thin()
        while self._left < wanted:
            if not self._grow() and not (self._thin() and self._left >= wanted) and not self._spill():
                self._grow(anyway=True)

    def _grow(self, *, anyway: bool = False) -> bool:
        """Have an arena more, if there is memory for it."""
        taken = self._memory is None or self._memory.take(8 * ARENA * PAGE)
        if not taken and not anyway:
            return False
        arena, pages = np.empty(ARENA * PAGE, np.uint64), len(self._at)
        if self._memory is not None and taken:
            weakref.finalize(arena, self._memory.give, arena.nbytes)
        self._arenas.append(arena)
        self._at = np.append(self._at, arena.ctypes.data + np.arange(ARENA, dtype=np.uint64) * np.uint64(8 * PAGE))
        fresh = np.arange(pages + ARENA - 1, pages - 1, -1)
        self._free = np.concatenate([self._free[: self._left], fresh, np.zeros(pages - self._left, np.int64)])
        self._partition = np.append(self._partition, np.full(ARENA, -1, np.int32))
        self._filled = np.append(self._filled, np.zeros(ARENA, np.int32))
        self._left += ARENA
        return True

    def _sorted(self) -> tuple[Integers, Integers]:
        """Pages in the order of their partitions, and where each partition begins among them."""
        order = np.argsort(self._partition, kind="stable")
        order = order[np.searchsorted(self._partition[order], 0) :]
        return order, np.searchsorted(self._partition[order], np.arange(2**BITS + 1))

    def _rows_before(self, order: Integers, ends: Integers) -> Integers:
        """The rows before each partition, and all."""
        held = np.concatenate([[0], np.cumsum(self._filled[order], dtype=np.int64)])[ends]
        rows: Integers = held + ROWS * (self._spilled - self._spilled[:, :1]).sum(axis=0)
        return rows

    def _fold(self, layout: tuple[Integers, Integers], first: int, last: int, words: Words, weights: Weights) -> int:
        """Add up some partitions; how many identities there are."""
        (order, ends), read = layout, self._read(first, last)
        order = np.concatenate([order[ends[first] : ends[last]], read])
        order = order[np.argsort(self._partition[order], kind="stable")]
        ends = np.searchsorted(self._partition[order], np.arange(first, last + 1))
        rows = np.concatenate([[0], np.cumsum(self._filled[order], dtype=np.int64)])[ends]
        table = np.empty(3 * (2 ** _bits(int(np.diff(rows).max())) + 1), np.uint64)
        count: int = self._call(
            "wpinq_fold", last - first, ends.ctypes.data, order.ctypes.data, table.ctypes.data,
            words[0].ctypes.data, words[1].ctypes.data, weights.ctypes.data,
        )  # fmt: skip
        self._release(read)
        return count

    def _folded(self, layout: tuple[Integers, Integers], first: int, last: int, words: Words, weights: Weights) -> int:
        """The same, and free their pages."""
        (order, ends), count = layout, self._fold(layout, first, last, words, weights)
        self._release(order[ends[first] : ends[last]])
        return count

    def _thin(self) -> bool:
        """Make equal identities in memory one, if a look at some partitions tells that it halves them; whether so."""
        spilled, self._spilled = self._spilled, self._spilled[:0]
        layout = self._sorted()
        rows = int(self._rows_before(*layout)[SAMPLE])
        thinned = 2 * self._fold(layout, 0, SAMPLE, np.empty((2, rows), np.uint64), np.empty(rows, np.int64)) < rows
        if thinned:
            self._current[:] = -1
            for block in self.blocks():
                self._append(*block)
        self._spilled = spilled
        self._look = max(2 * (len(self._at) - self._left), ARENA)
        return thinned

    def _release(self, pages: Integers) -> None:
        self._free[self._left : self._left + len(pages)] = pages
        self._left += len(pages)
        self._partition[pages] = -1

    def _views(self, pages: Integers) -> list[memoryview]:
        return [self._arenas[page // ARENA].data[(page % ARENA) * PAGE :][:PAGE].cast("B") for page in pages.tolist()]

    def _spill(self) -> bool:
        """Write full pages to the disk; whether there were any worth it."""
        order, _ = self._sorted()
        full = order[self._filled[order] == ROWS]
        if self._memory is None or 4 * len(full) < ARENA:
            return False
        scratch = self._scratches[-1] if self._scratches else self._memory.scratch()
        start = int(self._spilled[-1, -1]) if len(self._spilled) else 0
        scratch.write(self._views(full), 8 * PAGE * start)
        self._scratches.append(scratch)
        ends = start + np.searchsorted(self._partition[full], np.arange(2**BITS + 1))
        self._spilled = np.concatenate([self._spilled, ends[None]])
        self._current[np.isin(self._current, full)] = -1
        self._release(full)
        return True

    def _read(self, first: int, last: int) -> Integers:
        """Bring back what was spilled of some partitions, in free pages."""
        count = int((self._spilled[:, last] - self._spilled[:, first]).sum())
        while self._left < count:
            self._grow(anyway=True)
        self._left -= count
        pages = self._free[self._left : self._left + count].copy()
        self._filled[pages], start = ROWS, 0
        for ends, scratch in zip(self._spilled, self._scratches, strict=False):  # none of the first while thinning
            some = pages[start : start + int(ends[last] - ends[first])]
            self._partition[some] = np.repeat(np.arange(first, last), np.diff(ends[first : last + 1]))
            scratch.read(self._views(some), 8 * PAGE * int(ends[first]))
            start += len(some)
        return pages


def _bits(rows: int) -> int:
    """Of a table for so many rows, as `wpinq_fold` has it."""
    bits = 4
    while 7 * 2**bits // 10 <= rows:
        bits += 1
    return bits
