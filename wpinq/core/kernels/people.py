"""Questions about people of whom records lie together: buffers of `people.c`."""

from __future__ import annotations

import ctypes
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels import declare

_P, _N = ctypes.c_void_p, ctypes.c_int64
declare({
    "wpinq_first": (None, (_N, _P, _P, _N, _N, _P, _P, _P)),
    "wpinq_together": (None, (_N, _P, _P, _P, _P)),
    "wpinq_ranked": (_N, (_N, _P, _P, _P, _P, _P, _P)),
    "wpinq_marked": (None, (_N, _P, _P, _P)),
    "wpinq_each": (None, (_N, _P, _P, _P)),
})  # fmt: skip
Numbered: TypeAlias = npt.NDArray[np.int32]
Stays: TypeAlias = npt.NDArray[np.bool_]
"""For each row whether it stays."""
ITEM = np.dtype([("rank", np.uint64), ("row", np.uint32), ("spare", np.uint32)])


class Order:
    """The order of rows by person, and of one person by rank.

    Args:
        library: The compiled kernels.
        people: For each row the number of its person.
        ranks: For each row two words; they may be changed until the order is asked for.

    Attributes:
        ends: For each person where its rows end in the order.
    """

    def __init__(self, library: ctypes.CDLL, people: Numbered, ranks: npt.NDArray[np.uint64]) -> None:
        self._library, self._ranks = library, ranks
        self._counts = np.bincount(people)
        self.ends = np.cumsum(self._counts) - self._counts
        self._items = np.empty(len(people), ITEM)
        library.wpinq_together(
            len(people), people.ctypes.data, ranks.ctypes.data, self.ends.ctypes.data, self._items.ctypes.data
        )

    def sort(self, some: Stays | None = None) -> npt.NDArray[np.int64]:
        """Sort the rows of all people, or of some; the places of those that have the rank of the row before."""
        same = np.zeros(len(self._items), np.uint8)
        room = np.empty(int(self._counts.max()) // 2 + 1, ITEM)
        self._library.wpinq_ranked(
            len(self.ends), self.ends.ctypes.data, self._ranks.ctypes.data, None if some is None else some.ctypes.data,
            self._items.ctypes.data, room.ctypes.data, same.ctypes.data,
        )  # fmt: skip
        return np.flatnonzero(same)

    def change(self, places: npt.NDArray[np.int64], ranks: npt.NDArray[np.uint64]) -> None:
        """Give the rows at some places other ranks, and sort their people's rows again."""
        self._ranks[self._items["row"][places]] = ranks
        self._items["rank"][places] = ranks[:, 0]
        some = np.zeros(len(self.ends), np.bool_)
        some[np.searchsorted(self.ends, places, "right")] = True
        self.sort(some)

    @property
    def rows(self) -> npt.NDArray[np.uint32]:
        """The rows in order."""
        return np.ascontiguousarray(self._items["row"])

    @property
    def people(self) -> Numbered:
        """The person of each row in order."""
        return np.repeat(np.arange(len(self.ends), dtype=np.int32), self._counts)


def first(
    library: ctypes.CDLL, people: Numbered, most: int, stays: Stays, *, values: Numbered | None = None, per: int = 0
) -> None:
    """Let each person keep the first of the rows that stay: of one value so many, and of these so many in all."""
    size = 0 if values is None or not len(values) else int(values.max()) + 1
    last, alike = np.full(size, -1, np.int32), np.empty(size, np.int64)
    pointer = None if values is None else values.ctypes.data
    library.wpinq_first(
        len(people), people.ctypes.data, pointer, per, most, last.ctypes.data, alike.ctypes.data, stays.ctypes.data
    )


def marked(library: ctypes.CDLL, numbers: Numbered, marks: Stays, stays: Stays) -> None:
    """Of the rows that stay let those stay whose number is marked."""
    marks = np.ascontiguousarray(marks)
    library.wpinq_marked(len(numbers), numbers.ctypes.data, marks.ctypes.data, stays.ctypes.data)


def each(library: ctypes.CDLL, numbers: Numbered, stays: Stays, size: int) -> npt.NDArray[np.int64]:
    """How many of the rows that stay have each number below a size."""
    counts = np.zeros(size, np.int64)
    library.wpinq_each(len(numbers), numbers.ctypes.data, stays.ctypes.data, counts.ctypes.data)
    return counts
