"""Whole numbers that add up exactly both ways: controlled rounding of a table with its totals.

Each cell and each total goes up or down to a whole number next to it, and the total of all to the nearest. Written with
totals less in a further row and column, all rows and columns sum to zero, so that totals are cells like others. A
rounding is a flow of units from rows to columns, and since the table itself is one in fractions, there is one in whole
numbers. Rows are rounded first, the largest fractions up; then units are moved along paths from columns that have too
many to those that have too few.

Source: Bacharach, "Matrix rounding problems", Management Science 12(9), 1966; Cox, "A constructive procedure for
unbiased controlled rounding", JASA 82, 1987; paths as in Ford, Fulkerson, 1956.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

NEAR = 1e-6
"""What is nearer to a whole number is that number: sums of doubles are not exact."""


def controlled(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Round a table both of whose last places are the sums of the others; see the head of this file.

    >>> controlled(np.array([[0.5, 0.5, 1.0], [0.5, 0.5, 1.0], [1.0, 1.0, 2.0]]))[-1].tolist()
    [1, 1, 2]
    """
    signs = np.ones(values.shape)
    signs[-1], signs[:, -1] = -1, -signs[:, -1]
    signs[-1, -1] = 1
    nearest = np.round(values)
    table = signs * np.where(np.abs(values - nearest) < NEAR, nearest, values)
    table[-1, -1] = nearest[-1, -1]
    low = np.floor(table)
    part = table - low
    free = part > 0
    wanted = -low.sum(axis=1)
    rank = np.argsort(np.argsort(-part, axis=1, kind="stable"), axis=1)
    up, free, part = map(np.asfortranarray, (free & (rank < wanted[:, None]), free, part))  # columns are read
    _balance(up, free, part, (low + up).sum(axis=0).astype(np.int64))
    result: npt.NDArray[np.int64] = (signs * (low + up)).astype(np.int64)
    return result


def _balance(
    up: npt.NDArray[np.bool_], free: npt.NDArray[np.bool_], part: npt.NDArray[np.float64], excess: npt.NDArray[np.int64]
) -> None:
    """Move units along rows until no column has an excess; `up` and `excess` are changed.

    Raises:
        RuntimeError: The table did not add up.
    """
    for source in np.flatnonzero(excess > 0).tolist():
        for sink in np.flatnonzero(excess < 0).tolist():
            if not excess[source]:
                break
            rows = np.flatnonzero(up[:, source] & free[:, sink] & ~up[:, sink])
            many = min(len(rows), int(excess[source]), -int(excess[sink]))
            rows = rows[np.argsort(part[rows, source] - part[rows, sink], kind="stable")[:many]]
            up[rows, source], up[rows, sink] = False, True
            excess[source] -= many
            excess[sink] += many
    while (excess > 0).any():
        path = _path(up, free, excess)
        for row, source, sink in path:
            up[row, source], up[row, sink] = False, True
        excess[path[0][1]] -= 1
        excess[path[-1][2]] += 1


def _path(
    up: npt.NDArray[np.bool_], free: npt.NDArray[np.bool_], excess: npt.NDArray[np.int64]
) -> list[tuple[int, int, int]]:
    """The shortest way of a unit from a column of too many to one of too few: rows, from which column to which."""
    start = int(np.flatnonzero(excess > 0)[0])
    came: dict[int, tuple[int, int, int]] = {}
    queue, known = [start], {start}
    for column in queue:
        rows = np.flatnonzero(up[:, column] & free[:, column])
        ways = free[rows] & ~up[rows]
        for sink in np.flatnonzero(ways.any(axis=0)).tolist():
            if sink in known:
                continue
            known.add(sink)
            queue.append(sink)
            came[sink] = (int(rows[int(np.argmax(ways[:, sink]))]), column, sink)
            if excess[sink] < 0:
                result = [came[sink]]
                while result[0][1] != start:
                    result.insert(0, came[result[0][1]])
                return result
    raise RuntimeError("controlled: a table that adds up has a rounding, and none was there")
