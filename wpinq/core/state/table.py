"""A persistent table from identity to weight.

It consists of sorted runs, merged like the levels of a log-structured merge tree: a batch of n identities costs
O(n log n) when it comes and O(log) merges later, without Python loops over records. Identities are pseudorandom, so the
first word alone almost always orders them; where two agree in it, both words are compared.

Runs are immutable, and a table replaces its list of runs at once, so that other threads, and an interrupt, always find
a table with all of its weights.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels import LIB, find, merge

Ids: TypeAlias = npt.NDArray[np.uint64]
Weights: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.intp]


def combine(ids: Ids, weights: Weights) -> tuple[Rows, Ids, Weights]:
    """Add up the weights of equal identities.

    Returns:
        For each distinct identity, in order: one row where it stood, the identity, the sum of its weights.
    """
    if not len(ids):
        return np.empty(0, np.intp), ids, weights
    order, starts = grouped(ids)
    firsts = order[starts]
    return firsts, ids[firsts], np.add.reduceat(weights[order], starts)


def grouped(ids: Ids) -> tuple[Rows, Rows]:
    """The rows of identities in order, equal ones side by side, and where there each distinct one begins."""
    order = np.argsort(ids[:, 0])
    first, second = _changes(ids[order])
    if (second & ~first).any():
        order = np.lexsort((ids[:, 1], ids[:, 0]))
        first, second = _changes(ids[order])
    return order, np.flatnonzero(np.concatenate([np.ones(min(len(ids), 1), bool), first | second]))


def _changes(ids: Ids) -> npt.NDArray[np.bool_]:
    """For each word where it is another than that of the identity before."""
    words: npt.NDArray[np.bool_] = (ids[1:] != ids[:-1]).T
    return words


class Run(NamedTuple):
    """Distinct identities in order, their weights, and how many share one first word at the most (almost always 1)."""

    ids: Ids
    weights: Weights
    tie: int


class Table:
    """Weights by identity; what cancels is forgotten.

    Args:
        dtype: Of the weights: int64, or object for Python integers.
    """

    def __init__(self, dtype: npt.DTypeLike = np.int64) -> None:
        self._dtype = np.dtype(dtype)
        self._runs: tuple[Run, ...] = ()

    def add(self, ids: Ids, weights: Weights) -> None:
        """Add weights of distinct identities, sorted as `combine` returns them."""
        if self._runs and not len(ids):
            return
        *runs, added = *self._runs, _run(ids, weights.astype(self._dtype, copy=False))
        while runs and len(runs[-1].ids) <= 2 * len(added.ids):
            added = _merged(runs.pop(), added)
        self._runs = (*runs, added)

    def __len__(self) -> int:
        """How many identities there are at the most: one that stands in several runs counts in each."""
        return sum(len(run.ids) for run in self._runs)

    def copy(self) -> Table:
        """The same weights, to be changed on their own; runs are shared, because nothing ever writes to one."""
        copy = Table(self._dtype)
        copy._runs = self._runs
        return copy

    def lookup(self, ids: Ids) -> Weights:
        """The weights of these identities, 0 for what is not there.

        Present and absent identities take the same steps, and so does an empty table: it searches a run of one identity
        of weight zero, because its time would otherwise reveal that it is empty.
        """
        result: Weights = np.zeros(len(ids), self._dtype)
        for run in [run for run in self._runs if len(run.ids)] or [self._nothing()]:
            result = result + _find(run, ids)
        return result

    def weight(self, first: int, second: int) -> Any:
        """The weight of one identity, as an item of an array: Python's small integers are quicker than others.

        It takes the same steps for all, as `lookup`.
        """
        return sum(_weight(run, first, second) for run in [run for run in self._runs if len(run.ids)] or [_NOTHING])

    def _nothing(self) -> Run:
        return _run(np.zeros((1, 2), np.uint64), np.zeros(1, self._dtype))

    def items(self) -> tuple[Ids, Weights]:
        """All identities of non-zero weight, in order, and their weights."""
        if not self._runs:
            return np.empty((0, 2), np.uint64), np.empty(0, self._dtype)
        *runs, last = self._runs
        while runs:
            last = _merged(runs.pop(), last)
        self._runs = (last,)
        return _alive(last.ids, last.weights)


def _run(ids: Ids, weights: Weights) -> Run:
    ids = ids if ids.strides[0] == ids.itemsize else np.asfortranarray(ids)  # for binary search: first words together
    return Run(ids, np.ascontiguousarray(weights), _longest_tie(ids))


def _merged(run: Run, few: Run) -> Run:
    if LIB is not None and run.weights.dtype == np.int64:
        return Run(*merge(LIB, [run[:2], few[:2]]))
    ids, weights = np.concatenate([run.ids, few.ids]), np.concatenate([run.weights, few.weights])
    return _run(*_alive(*combine(ids, weights)[1:]))


def _alive(ids: Ids, weights: Weights) -> tuple[Ids, Weights]:
    alive = weights != 0
    return (ids, weights) if alive.all() else (ids[alive], weights[alive])


def _find(run: Run, wanted: Ids) -> Weights:
    """Search by the first word, then step over those that agree in it alone."""
    if LIB is not None and run.weights.dtype == np.int64:
        return find(LIB, run.ids, run.weights, run.tie, wanted)
    result = np.zeros(len(wanted), run.weights.dtype)
    position = np.searchsorted(run.ids[:, 0], np.ascontiguousarray(wanted[:, 0]))
    for _ in range(run.tie):
        inside = np.minimum(position, len(run.ids) - 1)
        hit = (position < len(run.ids)) & (run.ids[inside] == wanted).all(axis=1)
        result = np.where(hit, run.weights[inside], result)
        position = position + 1
    return result


def _weight(run: Run, first: int, second: int) -> Any:
    firsts, seconds = run.ids[:, 0].data, run.ids[:, 1].data
    lowest, last, total = bisect_left(firsts, first), len(firsts) - 1, 0
    for row in range(lowest, lowest + run.tie):
        inside = min(row, last)
        hit = (row <= last) & (firsts[inside] == first) & (seconds[inside] == second)
        total += hit * run.weights[inside]
    return total


def _longest_tie(ids: Ids) -> int:
    if not len(ids):
        return 0
    longest, tied = 1, ids[:-1, 0] == ids[1:, 0]
    while tied.any():
        longest += 1
        tied = tied[:-1] & tied[1:]
    return longest


_NOTHING = _run(np.zeros((1, 2), np.uint64), np.zeros(1, np.int64))
