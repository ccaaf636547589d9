"""Compiled kernels: 1,000 lines of C, compiled when the package is built, called through ctypes; or nothing.

Everything but the search for graphs works without them. Where there was no compiler, or the library is not that of the
sources beside it, the same results come from NumPy, Polars and plain Python, which is the only other path: `loops` has
what runs there.

    hashes.c        identities: SipHash
    repeats.c       adding up equal values that are near each other, or few
    partitions.c    adding up by identity, beyond the size of the cache
    sums.c          adding up by identity or by number
    lookups.c       looking up by identity, and joining what is looked up in
    noise.c         a digit of discrete Laplace noise, a round of discrete Gaussian noise
    reservoirs.c    numbers of identities; the sample of each person
    people.c        the first records of each person, where they lie together
    paths.c         the nearest staircase of two noisy curves
    posteriors.c    the posterior over staircases
    graphs.c        random graphs with given degrees
    swaps.c         a Markov chain over graphs that give released answers
    overlaps.c      one over bipartite graphs

They are in C because the library loads in a millisecond, and no compiler runs at run time. ctypes releases the
interpreter lock, and needs no header of Python, so one library serves every version.

`Views` are texts or bytes where they lie in memory: a column of Polars by Arrow's C interface, for which no library is
loaded.

Source: the Arrow C data and stream interfaces, https://arrow.apache.org/docs/format/CDataInterface.html and
CStreamInterface.html beside it. A text lies as a view of 16 bytes, and if it is longer than 12, in one of several
buffers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels.build import LIBRARY, digest

Words: TypeAlias = npt.NDArray[np.uint64]
Weights: TypeAlias = npt.NDArray[np.int64]

_P, _N, _I = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
_BLOCK, _BUFFER = ctypes.c_char * 16, ctypes.c_char_p * 1
Signature: TypeAlias = tuple[Any, tuple[Any, ...]]
"""What a function of the library gives, and what it takes."""
_signatures: dict[str, Signature] = {
    "wpinq_hash_words": (None, (ctypes.c_char_p, _N, _N, _P, _P, _P)),
    "wpinq_hash_views": (None, (ctypes.c_char_p, _N, _P, _P, _I, _P)),
    "wpinq_count": (None, (_N, _P, _N, _P)),
    "wpinq_find": (None, (_N, _P, _P, _P, _N, _N, _P, _P)),
    "wpinq_merge": (_N, (*(_N, _P, _P, _P) * 2, _P, _P, _P, _P)),
    "wpinq_number": (_N, (_P, _N, _P, _P, _P)),
    "wpinq_code": (_N, (_P, _N, _P, _P)),
    "wpinq_add": (None, (_N, _P, _P, _N, _P, _P)),
    "wpinq_identities": (None, (_P, _P)),
    "wpinq_spread": (None, (_P, _P, _N, _N, _P)),
    "wpinq_put": (_N, (_P, _N, _P, _P, _P, _P)),
    "wpinq_give": (_N, (_P, _P)),
    "wpinq_rows": (None, (_P, _N, _P, _P)),
    "wpinq_digit": (_N, (_N, _P, ctypes.c_uint64, _I, _P)),
}
_libraries: list[ctypes.CDLL] = []


def declare(signatures: Mapping[str, Signature]) -> None:
    """Tell the library what some of its functions take; each module of this room does so for those that it calls."""
    _signatures.update(signatures)
    for library in _libraries:
        _tell(library, signatures)


def _tell(library: ctypes.CDLL, signatures: Mapping[str, Signature]) -> None:
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


def load() -> ctypes.CDLL | None:
    """The library, if it was compiled from the sources beside it."""
    try:
        library = ctypes.CDLL(str(LIBRARY))
        source = ctypes.c_char * (len(digest()) + 1)
        if source.in_dll(library, "wpinq_source").value != digest():
            return None
    except (OSError, ValueError):
        return None
    _tell(library, _signatures)
    _libraries.append(library)
    return library


INLINE = 12
"""Bytes that an Arrow view holds itself."""
LIB = load()
"""The compiled kernels, or None."""


def hash_words(library: ctypes.CDLL, key: bytes, words: Sequence[Words]) -> Words:
    """See `records/identity.py`."""
    size = len(words[0])
    out = np.empty((size, 2), np.uint64)
    pointers = (_P * len(words))(*(word.ctypes.data for word in words))
    steps = (_N * len(words))(*(word.strides[0] // 8 for word in words))
    library.wpinq_hash_words(key, size, len(words), pointers, steps, out.ctypes.data)
    return out


def hash_views(library: ctypes.CDLL, key: bytes, views: Views, family: int) -> Words:
    """Hash each item of a column of views, followed by a family byte unless that is negative."""
    out = np.empty((views.size, 2), np.uint64)
    library.wpinq_hash_views(key, views.size, views.start, views.buffers, family, out.ctypes.data)
    return out


def hash_bytes(library: ctypes.CDLL, key: bytes, message: bytes) -> bytes:
    """Hash one message, as an Arrow array of one view that is laid out by hand."""
    size, out = len(message), _BLOCK()
    view = size.to_bytes(4, "little") + (message if size <= INLINE else bytes(INLINE))
    library.wpinq_hash_views(key, 1, view, _BUFFER(message), -1, out)
    return out.raw


def count(numbers: Weights, low: int, counts: Weights) -> None:
    """Add to counts how often each number occurs; the first stands for `low`, and all numbers have their place."""
    if LIB is None:
        counts += np.bincount(numbers - low, minlength=len(counts))
    else:
        LIB.wpinq_count(len(numbers), numbers.ctypes.data, low, counts.ctypes.data)


def find(library: ctypes.CDLL, ids: Words, weights: Weights, tie: int, wanted: Words) -> Weights:
    """The weights of identities among others, which are in order, first words side by side; 0 where absent."""
    wanted, weights = np.ascontiguousarray(wanted), np.ascontiguousarray(weights)
    result = np.empty(len(wanted), np.int64)
    firsts, of_weights = ids.ctypes.data, weights.ctypes.data
    seconds = firsts + ids.strides[1]
    library.wpinq_find(len(ids), firsts, seconds, of_weights, tie, len(wanted), wanted.ctypes.data, result.ctypes.data)
    return result


def merge(library: ctypes.CDLL, runs: Sequence[tuple[Words, Weights]]) -> tuple[Words, Weights, int]:
    """The sum of two lists of distinct identities in order, first words together, with weights; and its longest tie.

    What cancels is left out.
    """
    size, arguments, tie = sum(len(ids) for ids, _ in runs), [], ctypes.c_int64()
    for ids, weights in runs:
        arguments += [len(ids), *(array.ctypes.data for array in (ids[:, 0], ids[:, 1], weights))]
    words, sums = np.empty((2, size), np.uint64), np.empty(size, np.int64)
    count = library.wpinq_merge(*arguments, *(array.ctypes.data for array in (*words, sums)), ctypes.byref(tie))
    return words.T[:count], sums[:count], tie.value


def digit(library: ctypes.CDLL, words: Words, limit: int, shift: int, noise: Weights) -> int:
    """Add one digit of both variables of each bin to its noise, by its two words; how many words are the limit."""
    words = np.ascontiguousarray(words)
    ties: int = library.wpinq_digit(len(noise), words.ctypes.data, limit, shift, noise.ctypes.data)
    return ties


VIEW = 16
"""Bytes of a view."""


class _Array(ctypes.Structure):
    """`struct ArrowArray`."""

    _fields_ = (
        *((name, _N) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        ("buffers", ctypes.POINTER(_P)),
        ("children", _P),
        ("dictionary", _P),
        ("release", ctypes.CFUNCTYPE(None, _P)),
        ("private_data", _P),
    )


class _Stream(ctypes.Structure):
    """`struct ArrowArrayStream`."""

    _fields_ = (
        ("get_schema", _P),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, _P, _P)),
        ("get_last_error", _P),
        ("release", _P),
        ("private_data", _P),
    )


_pointer = ctypes.PYFUNCTYPE(_P, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


class Views:
    """The views of a column in one piece, which is kept for as long as this is.

    Args:
        column: A Polars column of texts or bytes in one chunk.

    Attributes:
        size: How many there are.
        start: The address of the first.
        buffers: The address of the addresses of the buffers.
    """

    def __init__(self, column: Any) -> None:
        capsule = column.__arrow_c_stream__()  # lets go of the stream
        stream, self._array = _Stream.from_address(_pointer(capsule, b"arrow_array_stream")), _Array()
        if stream.get_next(ctypes.addressof(stream), ctypes.addressof(self._array)):
            raise MemoryError
        self.size: int = self._array.length
        self.start: int = 0
        self.buffers: int = 0
        if self.size:  # else there may be no array
            self.start = self._array.buffers[1] + VIEW * self._array.offset
            self.buffers = ctypes.addressof(self._array.buffers.contents) + 2 * ctypes.sizeof(_P)

    def __del__(self) -> None:
        if self._array.release:
            self._array.release(ctypes.addressof(self._array))
