"""Tables that number identities, and pools of what is kept of each person: buffers of `reservoirs.c`.

Arrays grow in place where the system can move their pages, so that growing takes little more memory than there is.
"""

from __future__ import annotations

import ctypes
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels import Weights, Words

Codes: TypeAlias = npt.NDArray[np.int32]
Rows: TypeAlias = npt.NDArray[np.uint32]

SLOT, PARTS, CLASSES = 20, 1 << 4, 40
"""Bytes of a slot, tables beside each other, and sizes of blocks: as the C source has them."""
FULL = 0.75
"""A table grows when so much of it is in use: fourfold, one of the middle twofold, and a large one by half."""
LEAST, SMALL, LARGE = 1 << 4, 1 << 12, 1 << 16
ITEMS, MANY = 1 << 6, 1 << 17
"""Items that a pool grows by at the least; it grows twofold up to so many, and from there on by a quarter."""
MOST = 2**31 - 2**20
"""Identities that can be numbered, and rows that can be held, about."""


class _Part(ctypes.Structure):
    _fields_ = (("slots", ctypes.c_void_p), *((name, ctypes.c_int64) for name in ("size", "used", "limit")))


class _Numbers(ctypes.Structure):
    _fields_ = (("parts", _Part * PARTS), ("used", ctypes.c_int64), ("full", ctypes.c_int64))


class _Pool(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("items", "people", "moved", "left")),
        *((name, ctypes.c_int64) for name in ("capacity", "end", "touched", "gone", "rows", "live")),
        *((name, ctypes.c_int64) for name in ("most", "per", "words", "largest", "wanted")),
        ("spare", ctypes.c_int64 * CLASSES),
    )


class Numbers:
    """A number of each identity: how often it was counted, or when it was first seen.

    Raises:
        OverflowError: There are more than 2^31 identities, about.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library, self._table = library, _Numbers()
        self._slots = [np.empty(0, np.uint8) for _ in range(PARTS)]
        self._copy = np.empty(0, np.uint8)

    def __len__(self) -> int:
        return int(self._table.used)

    @property
    def size(self) -> int:
        """Bytes of the tables."""
        return self._copy.nbytes + sum(slots.nbytes for slots in self._slots)

    def count(self, ids: Words, weights: Weights | None = None) -> Weights:
        """Count records, each by its weight or by 1, and say how often each was counted before."""
        before = np.empty(len(ids), np.int64)
        weighed = None if weights is None else np.ascontiguousarray(weights, np.int64)
        self._all(self._library.wpinq_number, ids, weighed, before)
        return before

    def codes(self, ids: Words) -> Codes:
        """Number identities from 0 in the order in which they are first seen."""
        codes = np.empty(len(ids), np.int32)
        self._all(self._library.wpinq_code, ids, codes)
        return codes

    def add(self, codes: Codes, weights: Weights, known: int, sums: Weights) -> npt.NDArray[np.bool_]:
        """Add weights to the sums of codes, and say which rows are the first of theirs; so many were known before."""
        fresh = np.empty(len(codes), np.uint8)
        weights = np.ascontiguousarray(weights, np.int64)
        self._library.wpinq_add(
            len(codes), codes.ctypes.data, weights.ctypes.data, known, sums.ctypes.data, fresh.ctypes.data
        )
        return fresh.view(np.bool_)

    def ids(self) -> Words:
        """All identities, in the order of their codes."""
        ids = np.empty((len(self), 2), np.uint64)
        self._library.wpinq_identities(ctypes.byref(self._table), ids.ctypes.data)
        return ids

    def _all(self, kernel: Any, ids: Words, *arrays: npt.NDArray[Any] | None) -> None:
        """Let a kernel go through all rows of some arrays, and make room where it stops."""
        done, ids = 0, np.ascontiguousarray(ids)
        while done < len(ids):
            places = [None if array is None else array[done:].ctypes.data for array in arrays]
            done += kernel(ctypes.byref(self._table), len(ids) - done, ids[done:].ctypes.data, *places)
            if done < len(ids):
                self._grow()

    def _grow(self) -> None:
        full = self._table.full
        before, slots = self._table.parts[full].size, self._slots[full]
        if self._table.used >= MOST:
            raise OverflowError("there are more identities than a table can number.")
        size = max(before * 3 // 2 if before >= LARGE else 4 * before if before < SMALL else 2 * before, LEAST)
        if before >= LARGE:
            if len(self._copy) < before * SLOT:
                self._copy = np.empty(size * SLOT, np.uint8)
            self._copy[: before * SLOT] = slots
            slots[:] = 0
            slots.resize(size * SLOT, refcheck=False)
            held = self._copy
        else:
            held, slots = slots, np.zeros(size * SLOT, np.uint8)
            self._slots[full] = slots
        room = int(size * FULL)
        self._library.wpinq_spread(ctypes.byref(self._table), slots.ctypes.data, size, room, held.ctypes.data)


class Pool:
    """The records of the least ranks of each person, by their rows.

    Args:
        library: The compiled kernels.
        most: How many stay of a person.
        per: How many of these may share a value, if that is bounded.

    Raises:
        OverflowError: There are more than 2^31 rows, about.
    """

    def __init__(self, library: ctypes.CDLL, most: int, per: int | None) -> None:
        self._library, self._words = library, 3 if per is None else 5
        self._items = np.empty(0, np.uint64)
        self._people, self._moved = np.empty((0, 4), np.uint64), np.empty(0, np.int32)
        self._left: Rows = np.empty(0, np.uint32)
        self._pool = _Pool(most=most, per=per or 0, words=self._words, largest=most + -(-most // 2))
        self._pool.spare[:] = [-1] * CLASSES

    @property
    def live(self) -> int:
        """How many items are held: those that stay, and some that will be found not to."""
        return int(self._pool.live)

    @property
    def size(self) -> int:
        """Bytes of all that is held."""
        return self._items.nbytes + self._people.nbytes + self._moved.nbytes + self._left.nbytes

    def reserve(self, people: int) -> None:
        """Make room for so many people."""
        known = len(self._people)
        if people > known:
            size = people + known // 4 + PARTS
            self._people.resize((size, 4), refcheck=False)
            self._people[known:, 0] = np.iinfo(np.uint64).max
            self._moved.resize(size, refcheck=False)

    def put(self, codes: Codes, ranks: Words, values: Words | None) -> npt.NDArray[np.bool_]:
        """Let records compete, and say which entered: they have the next rows, in order."""
        if self._pool.rows + len(codes) > MOST:
            raise OverflowError("there are more rows than can be numbered.")
        done, entered = 0, np.empty(len(codes), np.uint8)
        ranks = np.ascontiguousarray(ranks)
        arrays = (codes, ranks, None if values is None else np.ascontiguousarray(values), entered)
        while done < len(codes):
            places = [None if array is None else array[done:].ctypes.data for array in arrays]
            done += self._library.wpinq_put(self._current(), len(codes) - done, *places)
            if done < len(codes):
                held = len(self._items) // self._words
                more = max(self._pool.wanted, ITEMS, held // 4 if held >= MANY else held)
                self._items.resize(len(self._items) + more * self._words, refcheck=False)
        return entered.view(np.bool_)

    def give(self) -> tuple[Rows, Rows]:
        """The rows that came to stay since this was last asked, and those that stay no longer."""
        rows = np.empty(self.live, np.uint32)
        count = self._library.wpinq_give(self._current(), rows.ctypes.data)
        left, self._left = self._left[: self._pool.gone], np.empty(self.live, np.uint32)
        self._pool.gone = 0
        return rows[:count], left

    def held(self) -> npt.NDArray[np.bool_]:
        """For each row whether it may still be needed."""
        marks = np.zeros(self._pool.rows, np.bool_)
        self._library.wpinq_rows(self._current(), len(self._people), marks.ctypes.data, None)
        return marks

    def renumber(self, places: Rows, rows: int) -> None:
        """Give each row the number at its place; there are so many rows then."""
        self._library.wpinq_rows(self._current(), len(self._people), None, places.ctypes.data)
        self._pool.rows = rows

    def _current(self) -> Any:
        """The pool, with its arrays where they are now."""
        pool: Any = self._pool
        pool.items, pool.people = self._items.ctypes.data, self._people.ctypes.data
        pool.moved, pool.left = self._moved.ctypes.data, self._left.ctypes.data
        pool.capacity = len(self._items) // self._words
        return ctypes.byref(pool)
