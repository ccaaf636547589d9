"""Questions about people of whom records lie together: buffers of `people.c`."""

from __future__ import annotations

import ctypes
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_P, _N = ctypes.c_void_p, ctypes.c_int64
SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "wpinq_first": (_N, (_N, _P, _P, _N, _N, _P, _P, _P)),
    "wpinq_marked": (None, (_N, _P, _P, _P)),
    "wpinq_each": (None, (_N, _P, _P, _P)),
}
Numbered: TypeAlias = npt.NDArray[np.int32]
Stays: TypeAlias = npt.NDArray[np.bool_]
"""For each row whether it stays."""


def first(
    library: ctypes.CDLL, people: Numbered, most: int, stays: Stays, *, values: Numbered | None = None, per: int = 0
) -> None:
    """Let each person keep the first of the rows that stay: of one value so many, and of these so many in all."""
    size = 0 if values is None or not len(values) else int(values.max()) + 1
    last, alike = np.full(size, -1, np.int32), np.empty(size, np.int64)
    given = None if values is None else values.ctypes.data
    library.wpinq_first(
        len(people), people.ctypes.data, given, per, most, last.ctypes.data, alike.ctypes.data, stays.ctypes.data
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
