"""A round of Gaussian noise for many bins; see `core/noise/gaussian.py`, which has the same in NumPy."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

ACCEPTED, REJECTED, OPEN = 0, 1, 2
MARGIN = 1 << 7
"""What is nearer to its acceptance, in units of 2^-32, is left open."""

_P, _N, _I = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "wpinq_bell": (_N, (_N, _P, _I, ctypes.c_uint64, _P, _P, _P, _P, _P)),
}


class Tables(NamedTuple):
    """What decides a round.

    Attributes:
        shift: Blocks have 2^shift numbers.
        rate: Of the acceptance, in units of 2^-40.
        start: For each first byte the first block that it may mean.
        limits: For each block the first 32 places of its cumulated probability; the last one is all ones.
        exps: exp(-i / 1024) for i below 512, in units of 2^-31.
    """

    shift: int
    rate: int
    start: npt.NDArray[np.uint32]
    limits: npt.NDArray[np.uint32]
    exps: npt.NDArray[np.uint32]


def bell(
    library: ctypes.CDLL, tables: Tables, words: npt.NDArray[np.uint64], noise: npt.NDArray[np.int64],
    state: npt.NDArray[np.uint8],
) -> int:  # fmt: skip
    """Write the noise of each bin, by its two words, and whether that is accepted, rejected or open; count the open."""
    words = np.ascontiguousarray(words)
    open_ones: int = library.wpinq_bell(
        len(noise), words.ctypes.data, tables.shift, tables.rate, tables.start.ctypes.data, tables.limits.ctypes.data,
        tables.exps.ctypes.data, noise.ctypes.data, state.ctypes.data,
    )  # fmt: skip
    return open_ones
