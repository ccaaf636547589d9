"""Whole numbers of which every total is next to what it was, where several columns have totals: a search.

Of three columns, or of two hierarchies, whole numbers that are all next to what they were need not exist (Causey, Cox,
Ernst 1985), and whether they do is hard to tell. So one total after another that is further away than it need be is
drawn, and one of its cells goes up or down: that which lets the squares of all these distances grow least, and it rests
for some steps. The search ends when no total is too far, or after so many steps; then the best that was seen is told.
What comes out follows from the numbers alone.

Source: Kelly, Golden, Assad, "Using simulated annealing to solve controlled rounding problems", ORSA Journal on
Computing 2(2), 1990, for a search; steps as in Selman, Kautz, Cohen, "Noise strategies for improving local search",
AAAI 1994.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wpinq.postprocess.rounding import NEAR

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STEPS, EACH, MOST = 4_000, 100, 30_000
"""Steps, steps more for each total that is too far where it begins, and all of them at the most."""
LOOKED = 256
"""Cells of a total that are looked at in a step; of more, some."""
REST = 10
"""Steps for which a cell stays as it is after it was moved, about."""
KEPT = 1e9
"""How much a public number counts: more than all others, so that none is given up."""


def snapped(values: Floats) -> Floats:
    """Numbers of which those that are nearly whole are whole."""
    nearest = np.round(values)
    return np.where(np.abs(values - nearest) < NEAR, nearest, values)


def too_far(totals: npt.NDArray[Any], values: Floats) -> Floats:
    """By how much each whole number is beyond those next to its value.

    >>> too_far(np.array([1, 1, 3]), np.array([1.5, 0.0, 1.5])).tolist()
    [0.0, 1.0, 1.0]
    """
    near = snapped(values)
    return np.asarray(np.maximum(np.maximum(np.floor(near) - totals, totals - np.ceil(near)), 0), np.float64)


def searched(
    totals: Ints, values: Floats, nodes: Sequence[Sequence[Sequence[int]]], kept: Iterable[tuple[int, ...]] = ()
) -> Ints:
    """Whole numbers, next to their values or as many of them as a search finds.

    Args:
        totals: Where it begins: cells next to their values, and their totals.
        values: Of all cells and totals.
        nodes: For each axis and each of its places the places of the cells below it; of a cell itself.
        kept: Where numbers are whole and stay as they are; where it begins they are.

    Returns:
        The cells and their totals.
    """
    search = _Search(totals, values, nodes, kept)
    for step in range(min(STEPS + EACH * search.far, MOST)):
        if not search.step(step):
            break
    return search.best()


class _Search:
    """The numbers with one more place along each axis, where what is not there stands."""

    def __init__(
        self, totals: Ints, values: Floats, nodes: Sequence[Sequence[Sequence[int]]], kept: Iterable[tuple[int, ...]]
    ) -> None:
        self._nodes, self._rng = nodes, np.random.default_rng(0)
        self._shape, self._larger = values.shape, tuple(size + 1 for size in values.shape)
        near, worth = snapped(values), np.ones(values.shape)
        for place in kept:
            worth[place] = KEPT
        self._low, self._high = self._padded(np.floor(near), -np.inf), self._padded(np.ceil(near), np.inf)
        self._worth = self._padded(worth, 1.0)
        self._now = self._padded(totals.astype(np.float64), 0)
        strides = np.cumprod([1, *self._larger[:0:-1]])[::-1]
        self._strides = [int(stride) for stride in strides]
        self._above = [_above(below, size) * stride for below, size, stride in
                       zip(nodes, self._shape, self._strides, strict=True)]  # fmt: skip
        error = self._beyond(slice(None), 0)
        self._far, self._error = np.flatnonzero(error).tolist(), float(error.sum())
        self._rests: dict[int, int] = {}
        self._moves: list[tuple[Ints, int]] = []
        self._least, self._kept = self._error, 0

    @property
    def far(self) -> int:
        """How many totals are too far, or were."""
        return len(self._far)

    def _padded(self, values: Floats, more: float) -> Floats:
        return np.pad(values, [(0, 1)] * values.ndim, constant_values=more).reshape(-1)

    def _beyond(self, places: Any, way: int) -> Floats:
        now = self._now[places] + way
        far = np.maximum(np.maximum(self._low[places] - now, now - self._high[places]), 0)
        return np.asarray(self._worth[places] * far**2)

    def step(self, number: int) -> bool:
        """Move one cell, if there is a total that is too far; whether there was."""
        place = self._drawn()
        if place is None:
            return False
        way = 1 if self._now[place] < self._low[place] else -1
        at = np.unravel_index(place, self._larger)
        cells = self._cells([self._nodes[axis][int(node)] for axis, node in enumerate(at)])
        own = np.sum([cells[axis] * stride for axis, stride in enumerate(self._strides)], axis=0)
        room = self._now[own] < self._high[own] if way > 0 else self._now[own] > self._low[own]
        awake = [self._rests.get(cell, 0) <= number for cell in own.tolist()]
        chosen = np.flatnonzero(room & np.array(awake))
        if not len(chosen):
            return True
        reached = self._above[0][cells[0][chosen]]
        for axis in range(1, len(cells)):
            reached = (reached[:, :, None] + self._above[axis][cells[axis][chosen]][:, None, :]).reshape(
                len(chosen), -1
            )
        gains = (self._beyond(reached, way) - self._beyond(reached, 0)).sum(axis=1)
        index = int((gains + self._rng.random(len(gains)) / 2).argmin())
        self._rests[int(own[chosen[index]])] = number + REST + int(self._rng.integers(REST))
        self._moved(reached[index], way, float(gains[index]))
        return True

    def _moved(self, places: Ints, way: int, gain: float) -> None:
        self._now[places] += way
        self._error += gain
        self._moves.append((places, way))
        self._far += places[self._beyond(places, 0) > 0].tolist()
        if self._error < self._least - 0.5:
            self._least, self._kept = self._error, len(self._moves)

    def _drawn(self) -> int | None:
        """A total that is too far; None where there is none."""
        while self._far:
            index = int(self._rng.integers(len(self._far)))
            place = self._far[index]
            if self._low[place] <= self._now[place] <= self._high[place]:
                self._far[index] = self._far[-1]
                self._far.pop()
            else:
                return place
        return None

    def _cells(self, below: Sequence[Sequence[int]]) -> list[Ints]:
        """The cells of a total, or some of them: their places along each axis."""
        sizes = [len(leaves) for leaves in below]
        many = int(np.prod(sizes))
        numbers = np.arange(many) if many <= LOOKED else self._rng.integers(many, size=LOOKED)
        parts = np.unravel_index(numbers, sizes)
        return [np.asarray(leaves, np.int64)[part] for leaves, part in zip(below, parts, strict=True)]

    def best(self) -> Ints:
        """The best that was seen."""
        for places, way in self._moves[self._kept :]:
            self._now[places] -= way
        inner = tuple(slice(size) for size in self._shape)
        result: Ints = np.round(self._now.reshape(self._larger)[inner]).astype(np.int64)
        return result


def _above(below: Sequence[Sequence[int]], size: int) -> Ints:
    """For each place of a cell its own and those above it, filled up with the place that is not there."""
    above: dict[int, list[int]] = {}
    for node, leaves in enumerate(below):
        for leaf in leaves:
            above.setdefault(leaf, []).append(node)
    result = np.full((size, max(map(len, above.values()))), size, np.int64)
    for leaf, path in above.items():
        result[leaf, : len(path)] = path
    return result
