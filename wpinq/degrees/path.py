"""The exact shortest path: the staircase that is nearest to both noisy curves in scaled absolute distance.

That is the maximum likelihood estimate under Laplace noise, discrete or continuous. The path is found by
dynamic programming over the columns of the certified corridor (see `corridor`); every cell outside it is
settled by a proof. All sums are integers, so no rounding can spoil a tie or an optimum:

- The two weights 1 / scale enter by their ratio, as two coprime integers. A ratio that needs more than 30
  bits (15 for real values) is rounded to the nearest that does not.
- Whole values are taken as they are. Real values are read to the nearest 2**-16.
- Of several cheapest staircases the answer is always the same one: the lowest that the corridor admits.

The same source runs interpreted on lists while the work is small, and compiled by numba when it is large or
when the compiled kernels are loaded already.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from wpinq.degrees.corridor import Ints, certify, envelope
from wpinq.errors import PlanError

INTERPRETED = 400_000
"""Steps that plain Python may take (about 0.2 s) before the compiler is worth its start."""
MOST_CELLS = 1 << 31
"""Cells of a corridor, a byte each, that are still computed: only curves that contradict each other have more."""

_kernels: dict[str, Any] = {}


def compiled(function: Callable[..., Any]) -> Any:
    """Return `function` compiled by numba, from its cache on disk where that is possible."""
    if function.__name__ not in _kernels:
        from numba import njit

        _kernels[function.__name__] = njit(cache=True, nogil=True)(function)
    return _kernels[function.__name__]


def sweep(
    v: Sequence[Any],
    h: Sequence[Any],
    unit: int,
    e1: int,
    e2: int,
    lo: Sequence[Any],
    hi: Sequence[Any],
    best: MutableSequence[Any],
    here: MutableSequence[Any],
    stop: MutableSequence[Any],
    heights: MutableSequence[Any],
) -> None:
    """Write the column heights of the cheapest staircase between `lo` and `hi` to `heights`.

    `best[y - lo]` is the least cost of the columns so far when all of them are at least y high; `best` and `here`
    hold one more than the widest column, `stop` one more than the corridor has cells for each column that is not
    settled. The kernel may read `best` while it writes `here`.
    """
    columns, at = len(v), 0
    before = hi[0] if columns else 0
    best[0] = 0
    for c in range(columns):
        low, width = lo[c], hi[c] - lo[c]
        if width == 0:
            best[0] = best[max(low - before, 0)]
            before = low
            continue
        cost, value, edge = 0, v[c], c * unit
        for y in range(width + 1):
            here[y] = cost + best[max(low + y - before, 0)]
            j = low + y
            if y < width:
                left = 2 * (j * unit - min(max(value, -unit), (j + 2) * unit)) + unit
                right = 2 * (edge - min(max(h[j], -unit), edge + 2 * unit)) + unit
                cost += e1 * min(max(left, -unit), unit) + e2 * min(max(right, -unit), unit)
        stop[at + width] = 1
        best[width] = here[width]
        for y in range(width - 1, -1, -1):
            stays = here[y] <= best[y + 1]
            stop[at + y] = 1 if stays else 0
            best[y] = here[y] if stays else best[y + 1]
        at += width + 1
        before = low
    height = 0
    for c in range(columns - 1, -1, -1):
        low, width = lo[c], hi[c] - lo[c]
        height = max(height, low)
        if width > 0:
            at -= width + 1
            while stop[at + height - low] == 0:
                height += 1
        heights[c] = height


def shortest_path(cdf: npt.ArrayLike, sequence: npt.ArrayLike, scales: tuple[Fraction, Fraction]) -> Ints:
    """Return the column heights of the exact shortest path.

    Args:
        cdf: Noisy values of the columns, multiplicities 1, 2, ...
        sequence: Noisy values of the rows, ranks 1, 2, ...; the staircase lives in this box.
        scales: Scales of their noise, positive.

    Raises:
        PlanError: The curves contradict each other so widely that the corridor does not fit in memory.

    >>> shortest_path([3, 1, 1, 0], [4, 0, 1], (Fraction(1), Fraction(1))).tolist()
    [3, 1, 1, 0]
    """
    v, h, unit = as_units(np.asarray(cdf), np.asarray(sequence))
    if scales[0] > scales[1]:
        return conjugate(solve(h, v, unit, scales[::-1]), len(v))
    return solve(v, h, unit, scales)


def solve(v: Ints, h: Ints, unit: int, scales: tuple[Fraction, Fraction]) -> Ints:
    """Return the column heights where the columns' scale is the smaller one, or both are equal."""
    e1, e2 = weights(scales, 30 if unit == 1 else 15)
    plain = len(v) + len(h) // 16 <= INTERPRETED // 16 and compiled_yet() is False
    lo, hi, cells = corridor(v, h, unit, e1 == e2, plain)
    if cells > MOST_CELLS:
        raise PlanError(
            "reconcile(method='path'): the two curves contradict each other, so the exact path needs too much memory; "
            "check that both measure the same collection, or use method='squares'."
        )
    widest = int((hi - lo).max(initial=0))
    plain = plain and cells <= INTERPRETED // 8
    slots = cells + int(np.count_nonzero(hi > lo))
    heights = np.zeros(len(v), np.int64)
    if plain:
        answer = [0] * len(v)
        work = [0] * (widest + 1), [0] * (widest + 1), bytearray(slots + 1)
        sweep(v.tolist(), h.tolist(), unit, e1, e2, lo.tolist(), hi.tolist(), *work, answer)
        heights[:] = answer
    else:
        buffers = np.zeros((2, widest + 1), np.int64)
        compiled(sweep)(v, h, unit, e1, e2, lo, hi, buffers[0], buffers[1], np.zeros(slots + 1, np.uint8), heights)
    return heights


def corridor(v: Ints, h: Ints, unit: int, equal: bool, plain: bool) -> tuple[Ints, Ints, int]:
    """Return `lo`, `hi` and the number of cells between them, interpreted where `plain` and short enough."""
    if not equal:
        lo, hi = envelope(v, len(h), unit)
        return lo, hi, int((hi - lo).sum())
    if plain:
        low, high = [0] * len(v), [0] * len(v)
        cells = certify(v.tolist(), h.tolist(), unit, low, high, INTERPRETED)
        if cells >= 0:
            return np.array(low, np.int64), np.array(high, np.int64), cells
    lo, hi = np.zeros(len(v), np.int64), np.zeros(len(v), np.int64)
    return lo, hi, int(compiled(certify)(v, h, unit, lo, hi, 1 << 62))


def compiled_yet() -> bool:
    """Whether the compiled kernels are loaded, so that using them costs no waiting."""
    return "sweep" in _kernels and "certify" in _kernels


@cache
def weights(scales: tuple[Fraction, Fraction], bits: int) -> tuple[int, int]:
    """Return 1 / scale of columns and rows as integers in the same ratio, the larger below 2**`bits`.

    >>> weights((Fraction(10), Fraction(30)), 30), weights((Fraction(10), Fraction(10)), 30)
    ((3, 1), (1, 1))
    """
    ratio = (scales[0] / scales[1]).limit_denominator(1 << bits)
    return ratio.denominator, ratio.numerator


def as_units(v: npt.NDArray[Any], h: npt.NDArray[Any]) -> tuple[Ints, Ints, int]:
    """Return both as integers in units of 1 / unit: unit is 1 for whole values, else 2**16."""
    if v.dtype == np.int64 and h.dtype == np.int64:
        return v, h, 1
    top = float(max(len(v), len(h)) + 2)
    kept = [np.clip(values, -2, top).astype(np.float64) for values in (v, h)]
    unit = 1 if all(np.array_equal(values, np.floor(values)) for values in kept) else 1 << 16
    columns, rows = (np.rint(values * unit).astype(np.int64) for values in kept)
    return columns, rows, unit


def conjugate(heights: Ints, rows: int) -> Ints:
    """Return the row lengths of a staircase: how many columns are higher than 0, 1, ..., rows - 1.

    >>> conjugate(np.array([3, 1, 1, 0]), 4).tolist()
    [3, 1, 1, 0]
    """
    drops = np.bincount(heights, minlength=rows + 1)
    longer = len(heights) - np.cumsum(drops)
    return longer[:rows].astype(np.int64)
