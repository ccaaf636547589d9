"""The exact shortest path: the staircase that is nearest to both noisy curves in scaled absolute distance.

That is the maximum likelihood estimate under Laplace noise, discrete or continuous. The path is found by
dynamic programming over the columns of the certified corridor; every cell outside it is
settled by a proof. All sums are integers, so no rounding can spoil a tie or an optimum:

- The two weights 1 / scale enter by their ratio, as two coprime integers. A ratio that needs more than 30
  bits (14 for real values) is rounded to the nearest that does not.
- Whole values are taken as they are. Real values are read to the nearest 2**-16.
- Of several cheapest staircases the answer is always the same one, in the middle: the lowest and the highest that the
  corridor admits err to either side (MiCo: 210 records too few, 95 too many), so it is near to halfway between them.

**The corridor** is bounds on the heights of some cheapest staircase, proved without searching for it.

Column c of the grid is multiplicity c + 1 and row j is rank j + 1. A staircase is a down-set of cells;
its column heights are the cumulative distribution and its row lengths the sequence. With values `v` of
the columns and `h` of the rows, both in units of 1 / `unit`, taking in cell (c, j) costs

    w(c, j) = e1 * clip(2 (j - v[c]) + 1, -1, 1) + e2 * clip(2 (c - h[j]) + 1, -1, 1).

A down-set of cells of weight <= 0 can be added to any staircase, and an up-set of cells of weight >= 0
removed from it, without making it dearer. So some cheapest staircase has lo <= height <= hi, where `lo`
is the height of the largest such down-set and `hi` that of the grid less the largest such up-set.

- e1 = e2: w > 0 needs both signs above -1, and w < 0 needs both below 1: `lower` and `upper`.
- e1 > e2: the sign of w is that of the columns' term alone wherever that is a whole one, so `lo` is the
  least value so far rounded down, and `hi` the largest value from here on rounded up: `envelope`.
  That is wide on a long flat tail. It is enough that every up-set of the first set weighs <= 0, and every down-set of
  the second >= 0. Cut into rows, such a part is a suffix of the set's rows, or a prefix: so a row may end, or begin,
  wherever all sums that reach to there are right. Unions of such sets are such sets: `narrow` finds long ones.

`lower` and `upper` walk columns while they are few and tall, and rows from there on, so they read `h` only near `v`
and cost little more than reading `v`. Cells that are in both sets have weight 0: leaving them out is free, and `lo`
must then be lowered to `hi`. The loops are compiled where there was a compiler (see `kernels.loops`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels.loops import compiled_items
from wpinq.errors import PlanError

Ints = npt.NDArray[np.int64]

BLOCK = 32
"""Columns that are skipped together where none of them is tall."""


@compiled_items
def lower(curves: tuple[Ints, Ints], unit: int, lo: Ints) -> None:
    """Write the certified least heights of equal scales to `lo`."""
    v, h = curves
    columns, rows, split = len(v), len(h), 0
    while split < columns and v[split] > split * unit:
        split += 1
    # Left of the split, column by column: `current` is the lowest row that a column so far may want to leave out.
    current = rows
    for c in range(split):
        j = min(max(v[c], 0), rows * unit) // unit
        while j < current:
            if h[j] < (c + 1) * unit:
                current = j
                break
            j += 1
        lo[c] = current
    # Right of it, row by row: `edge` is the first column that a lower row has settled.
    edge = columns
    for j in range(current):
        if edge <= split:
            break
        c = max(split, min(max(h[j], 0), columns * unit) // unit)
        while c < edge and v[c] >= (j + 1) * unit:
            c += 1
        for settled in range(c, edge):
            lo[settled] = j
        edge = min(edge, c)
    for c in range(split, edge):
        lo[c] = current


@compiled_items
def upper(curves: tuple[Ints, Ints], unit: int, hi: Ints) -> None:
    """Write the certified greatest heights of equal scales to `hi`; see `lower`."""
    v, h = curves
    columns, rows, split = len(v), len(h), 0
    while split < min(columns, rows) and v[split] > split * unit:
        split += 1
    # Rows from the split upward, columns from the right; blocks of columns that nowhere reach so high are skipped.
    current, edge, c = split, 0, columns
    while c > 0:
        if current == split and c >= BLOCK:
            tallest = v[c - 1]
            for k in range(c - BLOCK, c - 1):
                tallest = max(tallest, v[k])
            if tallest <= split * unit:
                c -= BLOCK
                continue
        c -= 1
        j = -(-min(max(v[c], 0), rows * unit) // unit)
        while j > current:
            if h[j - 1] > c * unit:
                current = j
                break
            j -= 1
        if current > split:
            edge = max(edge, c + 1)
            hi[c] = current
    # The rows below: each settles the columns between the edge and its own last one.
    for j in range(split - 1, -1, -1):
        c = -(-min(max(h[j], 0), columns * unit) // unit)
        while c > edge and v[c - 1] <= j * unit:
            c -= 1
        for settled in range(edge, c):
            hi[settled] = j + 1
        edge = max(edge, c)
    for c in range(edge, columns):
        hi[c] = 0


def envelope(v: Ints, rows: int, unit: int) -> tuple[Ints, Ints]:
    """Return the corridor of a column scale below the row scale: `lo` and `hi` from the columns alone."""
    bounded = np.clip(v, 0, rows * unit)
    lo = np.minimum.accumulate(bounded // unit)
    hi = np.maximum.accumulate(-(-bounded // unit)[::-1])[::-1]
    return lo, np.ascontiguousarray(hi)


@compiled_items
def narrow(
    curves: tuple[Ints, Ints], weighing: tuple[int, int, int], ends: tuple[Ints, Ints], tops: Ints, block: int
) -> None:
    """Move the ends of the lowest rows of an envelope together, by sums along each row.

    Args:
        curves: Values of columns and rows.
        weighing: The unit and the weights, e1 >= e2.
        ends: Of each row, and of one more above: where what is surely had ends, and where what is surely lacked
            begins. The ends of all rows but the last are moved.
        tops: The largest value of each block of columns.
        block: How many columns a block has.
    """
    (v, h), (unit, e1, e2), (had, lacked) = curves, weighing, ends
    limit = len(v)
    for j in range(len(had) - 1):
        best, total, level, row = had[j], 0, j * unit, min(max(h[j], -unit), (len(v) + 1) * unit)
        for c in range(had[j], min(limit, lacked[j])):
            value = v[c]
            column = unit if value <= level else -unit if value >= level + unit else 2 * (level - value) + unit
            total = max(total, 0) + e1 * column + e2 * min(max(2 * (c * unit - row) + unit, -unit), unit)
            if total <= 0:
                best = c + 1
        had[j] = limit = best
    limit = lacked[len(lacked) - 1]
    for j in range(len(had) - 2, -1, -1):
        best, total, level, row = lacked[j], 0, j * unit, min(max(h[j], -unit), (len(v) + 1) * unit)
        c, limit = lacked[j], max(limit, had[j])
        while c > limit:
            if total >= 0 and c % block == 0 and c - block >= limit and tops[c // block - 1] <= level:
                c -= block
                best = c
                continue
            c -= 1
            value = v[c]
            column = unit if value <= level else -unit if value >= level + unit else 2 * (level - value) + unit
            total = min(total, 0) + e1 * column + e2 * min(max(2 * (c * unit - row) + unit, -unit), unit)
            if total >= 0:
                best = c
        lacked[j] = limit = best


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
