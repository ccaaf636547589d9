"""Weights by identity, added up as they come."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from wpinq.core.kernels import declare

if TYPE_CHECKING:
    from wpinq.core.kernels.partitions import Memory, Partitions, Weights, Words

_P, _N, _I = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
declare({
    "wpinq_tally": (_N, (_P, _I, _P, _N, _N, _P, _P)),
    "wpinq_items": (_N, (_P, _I, _P, _P, _P)),
})  # fmt: skip
SMALL, LARGE, LARGEST = 11, 17, 20
"""A table begins with 2^11 slots and grows fourfold when it is 7/10 full, up to 2^17, which stay in a cache, and up to
2^20 where identities repeat; a full one goes to partitions."""


class Sums:
    """Weights by identity: in an open table as long as it fits a cache, behind it in partitions."""

    def __init__(self, library: ctypes.CDLL, memory: Memory | None = None) -> None:
        self._library, self._memory, self._rows = library, memory, 0
        self._partitions: Partitions | None = None
        self._clear(SMALL)

    def another(self) -> Sums:
        """An empty one, of the same memory."""
        return Sums(self._library, self._memory)

    def add(self, ids: Words, weights: Weights) -> None:
        """Add weights; an identity may stand more than once."""
        ids, weights = np.ascontiguousarray(ids), np.ascontiguousarray(weights, np.int64)
        while (done := self._add(ids, weights)) < len(ids):
            self._rows += done
            ids, weights = ids[done:], weights[done:]
            self._widen()
        self._rows += done

    def add_sorted(self, ids: Words, weights: Weights) -> None:
        """Add weights of identities in order, which would crowd one end of a table that grows."""
        if self.size + len(ids) > 7 * 2**LARGE // 10:
            self._spread().append(ids, weights)
            return
        while int(self._used[0]) + len(ids) > 7 * 2**self._bits // 10:
            self._widen()
        self.add(ids, weights)

    def join(self, other: Sums) -> None:
        """Take in all that another one holds; it is empty afterwards."""
        theirs = other._scattered() if other._partitions is not None else None
        if theirs is None:
            self.add_sorted(*other.take())
        elif self._partitions is None:
            self._partitions = theirs
        else:
            self._partitions.join(theirs)
        other._clear(SMALL)

    @property
    def size(self) -> int:
        """How many identities there are, at the most."""
        return int(self._used[0]) + (self._partitions.rows if self._partitions is not None else 0)

    def take(self) -> tuple[Words, Weights]:
        """All identities, each once and in order, with their weights; the table is empty afterwards."""
        partitions = self._scattered()
        items = self._items() if partitions is None else partitions.all()
        self._clear(SMALL)
        return items

    def blocks(self) -> Iterator[tuple[Words, Weights]]:
        """The same piece by piece, so that little memory is needed beside the table."""
        partitions = self._scattered()
        if partitions is None:
            yield self.take()
        else:
            yield from partitions.blocks()
            self._clear(SMALL)

    def _spread(self) -> Partitions:
        """The partitions, made where there are none: few tables outgrow a cache."""
        if self._partitions is None:
            from wpinq.core.kernels.partitions import Partitions

            self._partitions = Partitions(self._library, self._memory)
        return self._partitions

    def _scattered(self) -> Partitions | None:
        if self._partitions is not None:
            self._partitions.scatter(self._slots, self._bits)
        partitions, self._partitions = self._partitions, None
        return partitions

    def _add(self, ids: Words, weights: Weights) -> int:
        limit = 7 * 2**self._bits // 10
        added: int = self._library.wpinq_tally(
            self._slots.ctypes.data, self._bits, self._used.ctypes.data, limit,
            len(ids), ids.ctypes.data, weights.ctypes.data,
        )  # fmt: skip
        return added

    def _widen(self) -> None:
        if self._bits >= (LARGE if self._rows < 2 * int(self._used[0]) else LARGEST):
            self._spread().scatter(self._slots, self._bits)
            self._used[0] = self._rows = 0
            return
        (ids, weights), rows = self._items(), self._rows
        self._clear(min(self._bits + 2, LARGEST))
        self._rows = rows
        self._add(np.ascontiguousarray(ids), weights)

    def _items(self) -> tuple[Words, Weights]:
        most = int(self._used[0]) + bool(self._slots[-1, 2])  # the identity zero is not among those in use
        words, weights = np.empty((2, most), np.uint64), np.empty(most, np.int64)
        pointers = (array.ctypes.data for array in (*words, weights))
        count = self._library.wpinq_items(self._slots.ctypes.data, self._bits, *pointers)
        return words.T[:count], weights[:count]

    def _clear(self, bits: int) -> None:
        self._bits, self._slots, self._used = bits, np.zeros((2**bits + 1, 3), np.uint64), np.zeros(1, np.int64)
        self._rows = 0  # that came to this table, which tells whether identities repeat
