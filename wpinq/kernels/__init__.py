"""Compiled kernels: 900 lines of C, compiled when the package is built, called through ctypes; or nothing.

Everything works without them. Where there was no compiler, or the library is not that of the sources beside it, the
same results come from NumPy, Polars and plain Python, which is the only other path: `loops` has what runs there.

    hashes.c        identities: SipHash
    repeats.c       equal values near by, made one
    sums.c          adding up by identity or by number; a digit of noise
    reservoirs.c    what is kept of each person
    paths.c         the nearest staircase of two noisy curves
    posteriors.c    the posterior over staircases
    graphs.c        random graphs with given degrees

Why C: it loads in a millisecond, and nobody waits for a compiler as with one that works at run time. ctypes frees the
interpreter lock, and needs no header of Python, so one library serves every version.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.kernels.build import LIBRARY, digest
from wpinq.kernels.loops import SIGNATURES
from wpinq.kernels.repeats import SIGNATURES as REPEATS

Words: TypeAlias = npt.NDArray[np.uint64]
Weights: TypeAlias = npt.NDArray[np.int64]

_P, _N, _I = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "wpinq_hash_words": (None, (ctypes.c_char_p, _N, _N, _P, _P, _P)),
    "wpinq_hash_views": (None, (ctypes.c_char_p, _N, _P, _P, _I, _P)),
    "wpinq_tally": (_N, (_P, _I, _P, _N, _N, _P, _P)),
    "wpinq_items": (_N, (_P, _I, _P, _P)),
    "wpinq_count": (None, (_N, _P, _N, _P)),
    "wpinq_number": (_N, (_P, _N, _P, _P, _P)),
    "wpinq_code": (_N, (_P, _N, _P, _P)),
    "wpinq_spread": (None, (_P, _P, _N, _N, _P)),
    "wpinq_put": (_N, (_P, _N, _P, _P, _P, _P)),
    "wpinq_give": (_N, (_P, _P)),
    "wpinq_rows": (None, (_P, _N, _P, _P)),
    "wpinq_digit": (_N, (_N, _P, ctypes.c_uint64, _I, _P)),
}


def load() -> ctypes.CDLL | None:
    """The library, if it was compiled from the sources beside it."""
    try:
        library = ctypes.CDLL(str(LIBRARY))
        found = ctypes.c_char * (len(digest()) + 1)
        if found.in_dll(library, "wpinq_source").value != digest():
            return None
    except (OSError, ValueError):
        return None
    for name, (result, arguments) in (_SIGNATURES | SIGNATURES | REPEATS).items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


LIB = load()
"""The compiled kernels, or None."""


def hash_words(library: ctypes.CDLL, key: bytes, words: Sequence[Words]) -> Words:
    """See `siphash.siphash`."""
    size = len(words[0])
    out = np.empty((size, 2), np.uint64)
    pointers = (_P * len(words))(*(word.ctypes.data for word in words))
    steps = (_N * len(words))(*(word.strides[0] // 8 for word in words))
    library.wpinq_hash_words(key, size, len(words), pointers, steps, out.ctypes.data)
    return out


def hash_views(library: ctypes.CDLL, key: bytes, array: Any, family: int) -> Words:
    """Hash each item of an Arrow array of views, followed by a family byte unless that is negative."""
    _, views, *buffers = array.buffers()
    out = np.empty((len(array), 2), np.uint64)
    pointers = (_P * max(len(buffers), 1))(*(buffer.address for buffer in buffers))
    library.wpinq_hash_views(key, len(array), views.address + 16 * array.offset, pointers, family, out.ctypes.data)
    return out


def count(numbers: Weights, low: int, counts: Weights) -> None:
    """Add to counts how often each number occurs; the first stands for `low`, and all numbers have their place."""
    if LIB is None:
        counts += np.bincount(numbers - low, minlength=len(counts))
    else:
        LIB.wpinq_count(len(numbers), numbers.ctypes.data, low, counts.ctypes.data)


def digit(library: ctypes.CDLL, words: Words, limit: int, place: int, noise: Weights) -> int:
    """Add one digit of both variables of each bin to its noise, by its two words; how many words are the limit."""
    words = np.ascontiguousarray(words)
    ties: int = library.wpinq_digit(len(noise), words.ctypes.data, limit, place, noise.ctypes.data)
    return ties


SMALL = 12
"""A table begins with 2^12 slots and grows fourfold when it is 7/10 full."""


class Sums:
    """Weights by identity, added up in an open table as they come."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._clear(SMALL)

    def add(self, ids: Words, weights: Weights) -> None:
        """Add weights; an identity may stand more than once."""
        ids, weights = np.ascontiguousarray(ids), np.ascontiguousarray(weights, np.int64)
        while (done := self._add(ids, weights)) < len(ids):
            ids, weights = ids[done:], weights[done:]
            self._grow()

    @property
    def size(self) -> int:
        """How many identities there are."""
        return int(self._used[0])

    def reserve(self, more: int) -> None:
        """Make room for so many more: identities that come in order would crowd one end of a table that grows."""
        while self.size + more > 7 * 2**self._bits // 10:
            self._grow()

    def take(self) -> tuple[Words, Weights]:
        """All identities, each once and in order, with their weights; the table is empty afterwards."""
        kept = self._items()
        self._clear(SMALL)
        return kept

    def _add(self, ids: Words, weights: Weights) -> int:
        limit = 7 * 2**self._bits // 10
        added: int = self._library.wpinq_tally(
            self._slots.ctypes.data, self._bits, self._used.ctypes.data, limit,
            len(ids), ids.ctypes.data, weights.ctypes.data,
        )  # fmt: skip
        return added

    def _grow(self) -> None:
        kept = self._items()
        self._clear(self._bits + 2)
        self._add(*kept)

    def _items(self) -> tuple[Words, Weights]:
        most = int(self._used[0]) + 1
        ids, weights = np.empty((most, 2), np.uint64), np.empty(most, np.int64)
        result = self._library.wpinq_items(self._slots.ctypes.data, self._bits, ids.ctypes.data, weights.ctypes.data)
        return ids[:result], weights[:result]

    def _clear(self, bits: int) -> None:
        self._bits, self._slots, self._used = bits, np.zeros((2**bits + 1, 3), np.uint64), np.zeros(1, np.int64)
