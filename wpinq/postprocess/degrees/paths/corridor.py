"""The certified corridor: bounds on the heights of some cheapest staircase, proved without searching for it.

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

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels.loops import compiled_items

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
