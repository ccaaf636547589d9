"""The weights on a grid in order, and what lies before each place of it.

Each point of the grid is cut into `PARTS` parts, and its weight is spread over them evenly. Then a cut goes through a
heap of equal numbers as it goes between different ones: some of the weight lies before it, and the rest does not. Each
record is spread by itself, so how much of a unit's movement lies on either side of a cut adds up to that movement.

What lies before a place, all weights and losses are whole numbers: of 1/PARTS of a unit of 1/resolution. A weight below
zero counts as none, which moves no weight by more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTS = 1 << 32
"""Of a point of the grid."""


class Heap:
    """Weights on a grid.

    Args:
        size: How many points the grid has.
        points: Those that have a weight, in order.
        weights: Their weights, whole numbers of 1/resolution.
        parts: Of each point.
    """

    def __init__(self, size: int, points: NDArray[np.int64], weights: NDArray[Any], parts: int = PARTS) -> None:
        held = np.flatnonzero(weights > 0)
        self.size, self.parts = size, parts
        self._points: list[int] = points[held].tolist()
        self._weights: list[int] = weights[held].tolist()
        self._before: list[int] = [0, *accumulate(self._weights)]

    @property
    def end(self) -> int:
        """The last cut, behind all parts."""
        return self.size * self.parts

    @property
    def total(self) -> int:
        """All weight, in 1/parts."""
        return self._before[-1] * self.parts

    def before(self, cut: int) -> int:
        """What lies before a cut: before part `cut % parts` of point `cut // parts`."""
        point, part = divmod(cut, self.parts)
        index = bisect_left(self._points, point)
        held = index < len(self._points) and self._points[index] == point
        return self._before[index] * self.parts + (self._weights[index] * part if held else 0)

    def reach(self, weight: int) -> int:
        """The first cut that has so much before it; one beyond the end where there is not so much."""
        if weight <= 0:
            return 0
        if weight > self.total:
            return self.end + 1
        index = bisect_left(self._before, -(-weight // self.parts)) - 1
        more = weight - self._before[index] * self.parts
        return self._points[index] * self.parts - (-more // self._weights[index])

    @property
    def weight(self) -> int:
        """All weight, in units of 1/resolution."""
        return self._before[-1]

    def under(self, point: int) -> int:
        """The weight at lower points, in units of 1/resolution."""
        return self._before[bisect_left(self._points, point)]

    def upto(self, point: int) -> int:
        """The weight at lower points and at this one."""
        return self._before[bisect_right(self._points, point)]
