"""Whole numbers that add up exactly along a hierarchy and across it: controlled rounding of a tree of rows by columns.

Each number belongs to two sums: that of its column with those of its siblings, and down the tree with those below it;
totals of rows likewise. So a table is a circulation: numbers are what flows along arcs, sums are nodes. Since the table
in fractions is one, there is one in whole numbers, in which each goes up or down by less than one. It is found by
cycles of arcs that are no whole numbers yet: what is moved along a cycle keeps all sums, and goes on until one of its
numbers is whole. The total of all goes to the nearest whole number, for each cycle can be gone along either way.

Of two trees side by side a number would belong to three sums and more, and nothing says that whole numbers are there.

Source: flows of whole numbers, Ford, Fulkerson, 1956; controlled rounding, Causey, Cox, Ernst, "Applications of
transportation theory to statistical problems", JASA 80, 1985; two laminar families of sums, Edmonds, 1970.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from wpinq.postprocess.rounding import NEAR

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def rounded_tree(values: Floats, parents: Sequence[int]) -> Ints:
    """Round a table that adds up along a tree of rows and across its columns; see the head of this file.

    Args:
        values: A row for each node of the tree, the root last; the last column is the sum of the others.
        parents: The row of the node above each, but of the last.

    >>> table = np.array([[0.5, 0.5, 1], [0.5, 0.5, 1], [1, 1, 2], [0.5, 0, 0.5], [1.5, 1, 2.5]])
    >>> rounded_tree(table, [2, 2, 4, 4])[2:, -1].tolist()
    [2, 0, 2]
    """
    nearest = np.round(values)
    flow = np.ascontiguousarray(np.where(np.abs(values - nearest) < NEAR, nearest, values))
    _Circulation(flow, parents, int(nearest[-1, -1])).settle()
    leaves = np.setdiff1d(np.arange(len(values)), parents)
    result = np.zeros(values.shape, np.int64)
    result[leaves, :-1] = np.round(flow[leaves, :-1])
    for node in _upwards(parents):
        result[parents[node], :-1] += result[node, :-1]
    result[:, -1] = result[:, :-1].sum(axis=1)
    return result


def _upwards(parents: Sequence[int]) -> list[int]:
    """All nodes but the root, each before the one above it."""
    depth = [0] * (len(parents) + 1)
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    order = [len(parents)]
    for node in order:
        for child in children.get(node, []):
            depth[child] = depth[node] + 1
            order.append(child)
    return order[:0:-1]


class _Circulation:
    """Numbers as arcs between sums. An arc is the place of its number in the table, read row by row."""

    def __init__(self, flow: Floats, parents: Sequence[int], total: int) -> None:
        rows, width = flow.shape
        self._flow, self._total = flow.reshape(-1), total
        above = np.append(np.asarray(parents, np.int64), rows)  # the root's sum is that of its columns
        inner = np.zeros(rows, bool)
        inner[list(parents)] = True
        row, column = np.divmod(np.arange(rows * width), width)
        last = column == width - 1
        # node r * width + j is the sum below row r in column j; of a leaf, of its columns: in its last place
        upper = above[row] * width + np.where(row == rows - 1, 0, column)
        lower = row * width + np.where(inner[row], column, width - 1)
        down = np.where(inner[row] | last, 1, -1)
        self._ends = np.stack([upper, lower], axis=1).tolist()
        self._signs = np.stack([np.where((row == rows - 1) & last, 1, -1), down], axis=1).tolist()
        free = np.flatnonzero(self._flow != np.round(self._flow)).tolist()
        self._free = set(free)
        self._at: dict[int, list[int]] = {}
        for arc in free:
            for node in self._ends[arc]:
                self._at.setdefault(node, []).append(arc)

    def settle(self) -> None:
        """Move all to whole numbers."""
        for start in sorted(self._free):
            if start in self._free:
                self._walk(start)

    def _walk(self, start: int) -> None:
        """Go along arcs that are no whole numbers until a sum comes again, and move along that cycle; then go on."""
        path: list[tuple[int, int]] = []  # arcs, each with the side by which it was left
        seen: dict[int, int] = {}  # sums, with the length of the path when they came
        arc, side = start, 1
        seen[self._ends[start][0]] = 0
        while True:
            path.append((arc, side))
            node = self._ends[arc][side]
            if node in seen:
                length = seen[node]
                self._move(path[length:])
                for left, way in path[length:]:
                    seen.pop(self._ends[left][way], None)
                del path[length:]
            seen[node] = len(path)
            if not path:
                return
            node = self._ends[path[-1][0]][path[-1][1]]
            following = self._other(node, path[-1][0])
            if following is None:  # what is left of sums of doubles
                self._fix(path[-1][0])
                return
            arc = following
            side = 1 if self._ends[arc][0] == node else 0

    def _other(self, node: int, arc: int) -> int | None:
        """Another arc of a sum that is no whole number."""
        arcs = self._at[node]
        for place in range(len(arcs) - 1, -1, -1):
            if arcs[place] not in self._free:
                arcs[place] = arcs[-1]
                arcs.pop()
            elif arcs[place] != arc:
                return arcs[place]
        return None

    def _move(self, cycle: Sequence[tuple[int, int]]) -> None:
        """Move along a cycle by as much as makes a number whole, the way that moves the less."""
        ways, way = [], 1
        for index, (arc, side) in enumerate(cycle):
            ways.append(way)
            following, next_side = cycle[(index + 1) % len(cycle)]
            way = -way * self._signs[arc][side] * self._signs[following][1 - next_side]
        flow = self._flow
        up = min((math.ceil(flow[arc]) - flow[arc]) if way > 0 else (flow[arc] - math.floor(flow[arc]))
                 for (arc, _), way in zip(cycle, ways, strict=True))  # fmt: skip
        down = min((flow[arc] - math.floor(flow[arc])) if way > 0 else (math.ceil(flow[arc]) - flow[arc])
                   for (arc, _), way in zip(cycle, ways, strict=True))  # fmt: skip
        by = up if up <= down else -down
        for (arc, _), way in zip(cycle, ways, strict=True):
            if arc == len(flow) - 1:  # the total of all goes to the nearest
                by = up if (self._total - flow[arc]) * way > 0 else -down
        for (arc, _), way in zip(cycle, ways, strict=True):
            flow[arc] += way * by
            if abs(flow[arc] - round(flow[arc])) < NEAR:
                self._fix(arc)

    def _fix(self, arc: int) -> None:
        self._flow[arc] = round(self._flow[arc])
        self._free.discard(arc)
