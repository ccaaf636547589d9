"""Weights over ranges of integers: a step function, held by its steps.

It holds the weights of a ranged column: a hundred thousand pages that all have an index 1 are one step, so the state of
a degree distribution grows with the number of distinct degrees, not with the number of views.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.int64]


class Steps:
    """A function from integers to weights that is constant between its steps and zero far out.

    Args:
        dtype: Of the weights: int64, or object for Python integers.
    """

    def __init__(self, dtype: npt.DTypeLike = np.int64) -> None:
        self._at: Integers = np.empty(0, np.int64)
        self._rise: Integers = np.empty(0, dtype)
        self._heights = self._at, np.zeros(1, dtype)
        self._coming: list[tuple[Integers, Integers, Integers]] = []
        self._many = 0

    def add(self, start: Integers, end: Integers, weight: Integers) -> None:
        """Add `weight[i]` everywhere in `start[i] <= k < end[i]`.

        It is kept until as much came as is held, or somebody looks: so each step is sorted in a few times, and not with
        each batch.
        """
        self._coming.append((start, end, weight))
        self._many += 2 * len(start)
        if self._many >= len(self._at):
            self._settle()

    def _settle(self) -> None:
        """Take in what came."""
        if not self._coming:
            return
        starts, ends, weights = zip(*self._coming, strict=True)
        self._coming, self._many = [], 0
        at = np.concatenate([self._at, *starts, *ends])
        rise = np.concatenate([self._rise, *weights, *(-fall for fall in weights)], dtype=self._rise.dtype)
        order = np.argsort(at, kind="stable")
        at, rise = at[order], rise[order]
        if len(at):
            first = np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]]))
            at, rise = at[first], np.add.reduceat(rise, first)
        alive = rise != 0
        self._at, self._rise = at[alive], rise[alive]

    def copy(self) -> Steps:
        """The same weights, to be changed on their own; arrays are shared, because nothing ever writes to one."""
        self._settle()
        copy = Steps(self._rise.dtype)
        copy._at, copy._rise = self._at, self._rise
        return copy

    def lookup(self, numbers: Integers) -> Integers:
        """The weights at these integers. Present or absent take the same steps."""
        at, height = self._drawn()
        weights: Integers = height[np.searchsorted(at, numbers, side="right")]
        return weights

    def weight(self, number: int) -> Any:
        """The weight at one integer, as an item of an array."""
        at, height = self._drawn()
        return height[at.searchsorted(number, side="right")]

    def _drawn(self) -> tuple[Integers, Integers]:
        """The steps, and the height before the first and after each."""
        self._settle()
        at, rise = self._at, self._rise
        if self._heights[0] is not at:
            self._heights = at, np.concatenate([np.zeros(1, rise.dtype), np.cumsum(rise)])
        return self._heights

    def pieces(self) -> tuple[Integers, Integers, Integers]:
        """The longest pieces of constant non-zero weight: starts, ends (exclusive), weights."""
        self._settle()
        height = np.cumsum(self._rise)
        alive = np.flatnonzero(height[:-1]) if len(height) else np.empty(0, np.intp)
        return self._at[alive], self._at[alive + 1], height[alive]

    def update(self, change: Steps) -> tuple[Integers, Integers, Integers, Integers]:
        """Add a change, and tell where it moved: starts, ends (exclusive), weights before and after."""
        self._settle()
        change._settle()
        at = np.union1d(self._at, change._at)
        before = self.lookup(at[:-1])
        moved = change.lookup(at[:-1])
        rows = np.flatnonzero(moved)
        self.add(*change.pieces())
        return at[rows], at[rows + 1], before[rows], before[rows] + moved[rows]
