"""Weights by identity where there are more than a cache holds: pages of rows, by the first bits of the identity.

A row is 24 bytes, and memory grows by an arena at a time; nothing is copied for it. When pages double, some partitions
are added up to see how much repeats; where it is half, all are, so that there are about two rows for an identity at the
most. What a partition's table needs besides is a thousandth of that.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Words: TypeAlias = npt.NDArray[np.uint64]
Weights: TypeAlias = npt.NDArray[np.int64]

_P, _N, _I = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "wpinq_scatter": (None, (_P, _P, _I)),
    "wpinq_append": (None, (_P, _N, _P, _P)),
    "wpinq_fold": (_N, (_P, _N, _P, _P, _P, _P, _P)),
}
BITS = 10
"""There are 2^10 partitions."""
PAGE, ROWS = 512, 170
"""Words of a page, and its rows: those of `partitions.c`."""
ARENA = 1 << 12
"""Pages that are allocated at a time, 16 megabytes."""
BLOCK = 1 << 20
"""Rows that are added up at a time, but of one partition all."""
SAMPLE = 16
"""Partitions that are looked at to see how much repeats."""


class _Pages(ctypes.Structure):
    """`Pages` of `partitions.c`."""

    _fields_ = (
        ("at", _P), ("free", _P), ("left", _N), ("partition", _P), ("filled", _P), ("current", _P), ("bits", _I),
    )  # fmt: skip


class Partitions:
    """Rows of identity and weight that wait in pages."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._arenas: list[Words] = []
        self._at, self._free = np.empty(0, np.uint64), np.empty(0, np.int64)
        self._partition, self._filled = np.empty(0, np.int32), np.empty(0, np.int32)
        self._current = np.full(2**BITS, -1, np.int64)
        self._left, self._look = 0, 4 * ARENA

    def scatter(self, slots: Words, bits: int) -> None:
        """Append all that a table of `Sums` holds, and empty it."""
        self._room(2**bits)
        self._call("wpinq_scatter", slots.ctypes.data, bits)

    def append(self, ids: Words, weights: Weights) -> None:
        """Append rows."""
        for start in range(0, len(ids), BLOCK):
            some, their = ids[start : start + BLOCK], weights[start : start + BLOCK]
            some, their = np.ascontiguousarray(some), np.ascontiguousarray(their, np.int64)
            self._room(len(some))
            self._call("wpinq_append", len(some), some.ctypes.data, their.ctypes.data)

    @property
    def rows(self) -> int:
        """How many rows wait; an identity may have several."""
        return int(self._filled[self._partition >= 0].sum())

    def blocks(self) -> Iterator[tuple[Words, Weights]]:
        """Distinct identities in order with their weights, piece by piece; nothing may be appended meanwhile."""
        order, ends, rows = self._sorted()
        first = 0
        while first < 2**BITS:
            last = max(int(np.searchsorted(rows, rows[first] + BLOCK, side="right")) - 1, first + 1)
            if rows[last] > rows[first]:
                yield self._folded(order, ends[first : last + 1], rows[last] - rows[first])
            first = last

    def all(self) -> tuple[Words, Weights]:
        """The same at once."""
        order, ends, rows = self._sorted()
        return self._folded(order, ends, rows[-1])

    def _call(self, name: str, *arguments: Any) -> Any:
        pages = _Pages(
            self._at.ctypes.data, self._free.ctypes.data, self._left, self._partition.ctypes.data,
            self._filled.ctypes.data, self._current.ctypes.data, BITS,
        )  # fmt: skip
        found = getattr(self._library, name)(ctypes.byref(pages), *arguments)
        self._left = pages.left
        return found

    def _room(self, rows: int) -> None:
        """Have pages enough for so many rows more."""
        wanted = 2**BITS + rows // ROWS + 1
        if self._left < wanted and len(self._at) - self._left >= self._look:
            self._thin()
        while self._left < wanted:
            self._grow()

    def _grow(self) -> None:
        arena, pages = np.empty(ARENA * PAGE, np.uint64), len(self._at)
        self._arenas.append(arena)
        self._at = np.append(self._at, arena.ctypes.data + np.arange(ARENA, dtype=np.uint64) * np.uint64(8 * PAGE))
        fresh = np.arange(pages + ARENA - 1, pages - 1, -1)
        self._free = np.concatenate([self._free[: self._left], fresh, np.zeros(pages - self._left, np.int64)])
        self._partition = np.append(self._partition, np.full(ARENA, -1, np.int32))
        self._filled = np.append(self._filled, np.zeros(ARENA, np.int32))
        self._left += ARENA

    def _sorted(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Pages in the order of their partitions; where each partition begins among them; the rows before it."""
        order = np.argsort(self._partition, kind="stable")
        order = order[np.searchsorted(self._partition[order], 0) :]
        ends = np.searchsorted(self._partition[order], np.arange(2**BITS + 1))
        return order, ends, np.concatenate([[0], np.cumsum(self._filled[order], dtype=np.int64)])[ends]

    def _folded(self, order: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], rows: int) -> tuple[Words, Weights]:
        """The identities and weights of some partitions, whose rows are so many together."""
        held = [int(self._filled[order[a:b]].sum()) for a, b in pairwise(ends)]
        table = np.empty(3 * (2 ** _bits(max(held)) + 1), np.uint64)
        ids, weights = np.empty((rows, 2), np.uint64), np.empty(rows, np.int64)
        ends = np.ascontiguousarray(ends)
        found = self._call(
            "wpinq_fold", len(ends) - 1, ends.ctypes.data, order.ctypes.data, table.ctypes.data, ids.ctypes.data,
            weights.ctypes.data,
        )  # fmt: skip
        return ids[:found], weights[:found]

    def _thin(self) -> None:
        """Make equal identities one, if a look at some partitions tells that this is worth it."""
        order, ends, rows = self._sorted()
        if 2 * len(self._folded(order, ends[: SAMPLE + 1], rows[SAMPLE])[0]) < rows[SAMPLE]:
            for partition in range(2**BITS):
                some = order[ends[partition] : ends[partition + 1]]
                ids, weights = self._folded(
                    order, ends[partition : partition + 2], rows[partition + 1] - rows[partition]
                )
                self._free[self._left : self._left + len(some)] = some
                self._left += len(some)
                self._partition[some], self._current[partition] = -1, -1
                self._call("wpinq_append", len(ids), ids.ctypes.data, weights.ctypes.data)
        self._look = max(2 * (len(self._at) - self._left), 4 * ARENA)


def _bits(rows: int) -> int:
    """Of a table for so many rows, as `wpinq_fold` has it."""
    bits = 4
    while 7 * 2**bits // 10 <= rows:
        bits += 1
    return bits
