"""The exact shortest path: the staircase that is nearest to both noisy curves in scaled absolute distance.

That is the maximum likelihood estimate under Laplace noise, discrete or continuous. The path is found by
dynamic programming over the columns of the certified corridor (see `corridor`); every cell outside it is
settled by a proof. All sums are integers, so no rounding can spoil a tie or an optimum:

- The two weights 1 / scale enter by their ratio, as two coprime integers. A ratio that needs more than 30
  bits (14 for real values) is rounded to the nearest that does not.
- Whole values are taken as they are. Real values are read to the nearest 2**-16.
- Of several cheapest staircases the answer is always the same one, in the middle: the lowest and the highest that the
  corridor admits err to either side (MiCo: 210 records too few, 95 too many), so it is near to halfway between them.

The loops are compiled where there was a compiler (see `kernels.loops`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels.loops import compiled_items
from wpinq.errors import PlanError
from wpinq.postprocess.degrees.paths.corridor import BLOCK, Ints, envelope, lower, narrow, upper

Flags = npt.NDArray[np.uint8]

MANY_CELLS = 200_000
"""Cells of a corridor from which it is narrowed before it is searched."""
MOST_CELLS = 1 << 31
"""Cells of a corridor, a byte each, that are still computed: only curves that contradict each other have more."""


@compiled_items
def sweep(
    curves: tuple[Ints, Ints], weighing: tuple[int, int, int], bounds: tuple[Ints, Ints], work: tuple[Ints, Ints, Flags]
) -> None:
    """Decide for each cell of the corridor whether the cheapest staircase of at least its height stops there.

    It does where `stop` is 1, and may where it is 2: going on upward is as cheap.
    `best[y - lo]` is the least cost of the columns so far when all of them are at least y high; `best` and `here`
    have room for the heights of the widest column, `stop` for those of all columns that are not settled.
    """
    (v, h), (unit, e1, e2), (lo, hi), (best, here, stop) = curves, weighing, bounds, work
    at, before = 0, hi[0]
    best[0] = 0
    for c in range(len(v)):
        low, width = lo[c], hi[c] - lo[c]
        if width == 0:
            best[0] = best[max(low - before, 0)]
            before = low
            continue
        cost, value, edge = 0, v[c], c * unit
        for y in range(width + 1):
            here[y] = cost + best[max(low + y - before, 0)]
            if y < width:
                level = (low + y) * unit
                left = 2 * (level - min(max(value, -unit), level + 2 * unit)) + unit
                right = 2 * (edge - min(max(h[low + y], -unit), edge + 2 * unit)) + unit
                cost += e1 * min(max(left, -unit), unit) + e2 * min(max(right, -unit), unit)
        stop[at + width] = 1
        best[width] = here[width]
        for y in range(width - 1, -1, -1):
            stays = here[y] <= best[y + 1]
            stop[at + y] = 0 if not stays else 1 if here[y] < best[y + 1] else 2
            best[y] = here[y] if stays else best[y + 1]
        at += width + 1
        before = low


@compiled_items
def trace(bounds: tuple[Ints, Ints], stop: Flags, at: int, heights: Ints) -> None:
    """Write the heights that `sweep` decided on, from the last column back; `at` is the end of `stop`.

    The lowest and the highest of the cheapest staircases are told along with it. Where it may stop or go on to the
    next stop, it does what is nearer to halfway between them, rounded down.
    """
    lo, hi = bounds
    lowest, highest, height = 0, 0, 0
    for c in range(len(heights) - 1, -1, -1):
        low, width = lo[c], hi[c] - lo[c]
        height = max(height, low)
        if width > 0:
            lowest, highest = max(lowest, low), max(highest, low)
            at -= width + 1
            while stop[at + lowest - low] == 0:
                lowest += 1
            while stop[at + highest - low] != 1:
                highest += 1
            while stop[at + height - low] == 0:
                height += 1
            while stop[at + height - low] == 2:
                top = height + 1
                while stop[at + top - low] == 0:
                    top += 1
                if top + height > (lowest + highest) // 2 * 2:
                    break
                height = top
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
    weighing = unit, *weights(scales, 30 if unit == 1 else 14)
    lo, hi, cells = corridor(v, h, weighing)
    if cells > MOST_CELLS:
        raise PlanError(
            "reconcile(method='path'): the two curves contradict each other, so the exact path needs too much memory; "
            "check that both measure the same collection, or use method='squares'."
        )
    widest, slots = int((hi - lo).max()), cells + int(np.count_nonzero(hi > lo))
    heights, stop = np.zeros(len(v), np.int64), np.zeros(slots, np.uint8)
    best, here = np.zeros((2, widest + 1), np.int64)
    sweep((v, h), weighing, (lo, hi), (best, here, stop))
    trace((lo, hi), stop, slots, heights)
    return heights


def corridor(v: Ints, h: Ints, weighing: tuple[int, int, int]) -> tuple[Ints, Ints, int]:
    """Return `lo`, `hi` and the number of cells between them."""
    unit, e1, e2 = weighing
    if e1 == e2:
        lo, hi = np.zeros((2, len(v)), np.int64)
        lower((v, h), unit, lo)
        upper((v, h), unit, hi)
    else:
        lo, hi = envelope(v, len(h), unit)
        if int((hi - lo).sum()) > MANY_CELLS:
            narrowed(v, h, weighing, lo, hi)
    np.minimum(lo, hi, out=lo)
    return lo, hi, int((hi - lo).sum())


def narrowed(v: Ints, h: Ints, weighing: tuple[int, int, int], lo: Ints, hi: Ints) -> None:
    """Narrow an envelope in place, in the rows that reach further than the staircase's diagonal is high."""
    unit = weighing[0]
    beyond = np.flatnonzero(v <= np.arange(len(v)) * unit)
    count = int(hi[beyond[0]]) if len(beyond) else 0
    ends = conjugate(np.minimum(lo, count + 1), count + 1), conjugate(np.minimum(hi, count + 1), count + 1)
    starts = np.arange(0, len(v), BLOCK)
    narrow((v, h), weighing, ends, np.maximum.reduceat(v, starts), BLOCK)
    np.maximum(lo, conjugate(ends[0][:count], len(v)), out=lo)
    hi[hi <= count] = conjugate(ends[1][:count], len(v))[hi <= count]


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
        return np.ascontiguousarray(v), np.ascontiguousarray(h), 1
    top = float(max(len(v), len(h)) + 2)
    clipped = [np.clip(values, -2, top).astype(np.float64) for values in (v, h)]
    unit = 1 if all(np.array_equal(values, np.floor(values)) for values in clipped) else 1 << 16
    columns, rows = (np.rint(values * unit).astype(np.int64) for values in clipped)
    return columns, rows, unit


def conjugate(heights: Ints, rows: int | None = None) -> Ints:
    """Return the row lengths of a staircase: how many columns are higher than 0, 1, ..., rows - 1; all, without `rows`.

    >>> conjugate(np.array([3, 1, 1, 0]), 4).tolist(), conjugate(np.array([3, 1, 1])).tolist()
    ([3, 1, 1, 0], [3, 1, 1])
    """
    rows = int(heights.max(initial=0)) if rows is None else rows
    drops = np.bincount(heights, minlength=rows + 1)
    longer = len(heights) - np.cumsum(drops)
    return longer[:rows].astype(np.int64)
