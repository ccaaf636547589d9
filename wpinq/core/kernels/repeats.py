"""What repeats: near by in a column, as far as a small table finds it, or exactly, among a few identities."""

from __future__ import annotations

import ctypes
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels import Views, declare

Words: TypeAlias = npt.NDArray[np.uint64]
Rows: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = npt.NDArray[np.int64]

_P, _N, _I = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
declare({
    "wpinq_repeats_of_views": (_N, (_N, _P, _P, _I, _P, _P, _P)),
    "wpinq_repeats_of_words": (_N, (_N, _P, _I, _P, _P, _P)),
    "wpinq_equal": (_N, (_N, _P, _P, _I, _P, _P, _P)),
})  # fmt: skip
BITS = 15
"""The table has 2^15 places, of 786 kilobytes, and stays in the cache."""


def of_ids(library: ctypes.CDLL, ids: Words, weights: Counts) -> tuple[Rows, Counts]:
    """Of identities, or other pairs of words: a row of each, in the order of rows, and the sum of its weights."""
    size, ids, weights = len(ids), np.ascontiguousarray(ids), np.ascontiguousarray(weights)
    rows, sums, bits = np.empty(size, np.int64), np.empty(size, np.int64), size.bit_length() + 1
    table = np.zeros(1 << bits, np.int32)
    count = library.wpinq_equal(size, *(array.ctypes.data for array in (ids, weights)), bits,
                                *(array.ctypes.data for array in (table, rows, sums)))  # fmt: skip
    return rows[:count], sums[:count]


def of_views(library: ctypes.CDLL, views: Views) -> tuple[Rows, Counts]:
    """Of a column of views without nulls; all counts sum to its length."""
    return _repeats(views.size, library.wpinq_repeats_of_views, views.start, views.buffers)


def of_words(library: ctypes.CDLL, words: Words) -> tuple[Rows, Counts]:
    """Of words; all counts sum to their number."""
    words = np.ascontiguousarray(words)
    return _repeats(len(words), library.wpinq_repeats_of_words, words.ctypes.data)


def _repeats(size: int, kernel: Any, *values: Any) -> tuple[Rows, Counts]:
    rows, counts = np.empty(size, np.int64), np.empty(size, np.int64)
    table = np.zeros((2**BITS, 3), np.uint64)
    count = kernel(size, *values, BITS, table.ctypes.data, rows.ctypes.data, counts.ctypes.data)
    return rows[:count], counts[:count]
