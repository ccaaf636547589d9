"""The counts of a bipartite graph that its queries over buckets ask for, exactly and in columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.postprocess.graphs.counts import Floats, Ints

UNIT = 1 << 40
"""What two right nodes share is counted in whole numbers of 1/UNIT."""
LEAST = UNIT // 16
LARGEST, MOST = (1 << 24) - 1, (1 << 31) - 1
"""The largest degree on the right, of which all that is shared fits 64 bits in units; and pairs, counted in 32 bits."""
BLOCK = 1 << 21
"""Paths of two pairs that are held at once."""


@dataclass(frozen=True, eq=False)
class PairGraph:
    """A simple bipartite graph: both sides are numbered from 0, and each pair is there once.

    Attributes:
        pairs: A row for each pair, its left and its right node, in order.
        lefts: How many left nodes there are, those without a pair included.
        rights: How many right ones.
    """

    pairs: Ints
    lefts: int
    rights: int

    @classmethod
    def of(cls, pairs: npt.ArrayLike) -> PairGraph:
        """The graph of a list of pairs: repetitions do not count, and both sides are numbered anew."""
        listed = np.asarray(pairs).reshape(-1, 2)
        (left, lefts), (right, rights) = (np.unique(listed[:, side], return_inverse=True) for side in (0, 1))
        return cls(
            np.unique(np.stack([lefts, rights], 1).reshape(-1, 2), axis=0).astype(np.int64), len(left), len(right)
        )

    @property
    def rows(self) -> Ints:
        """The pairs: two nodes in a row."""
        return self.pairs

    @cached_property
    def degrees(self) -> tuple[Ints, Ints]:
        """The number of pairs of each left and of each right node."""
        sizes = (self.lefts, self.rights)
        left, right = (np.bincount(self.pairs[:, side], minlength=sizes[side]).astype(np.int64) for side in (0, 1))
        return left, right

    @property
    def share(self) -> Ints:
        """What a path through each left node weighs, in units."""
        return np.asarray(UNIT // (2 * np.maximum(self.degrees[0], 1)))

    def shared(self) -> tuple[Ints, Ints, Ints]:
        """What right nodes share, any two that have a left node in common.

        Returns:
            Both, the lower one first, as one number `low * rights + high`, in order; what they share, in units; and how
            many left nodes they have in common.
        """
        order = np.lexsort((self.pairs[:, 1], self.pairs[:, 0]))
        left, right = self.pairs[order].T
        after = np.searchsorted(left, left, side="right") - np.arange(len(left)) - 1
        ends, share, sums, begin = np.cumsum(after), self.share, pl.DataFrame(schema=SHARED), 0
        while begin < len(left):
            stop = max(int(np.searchsorted(ends, ends[begin] - after[begin] + BLOCK, side="right")), begin + 1)
            many = after[begin:stop]
            first = np.repeat(np.arange(begin, stop), many)
            second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(many) - many, many)
            keys, common = right[first] * self.rights + right[second], np.ones(len(first), np.int64)
            block = pl.DataFrame([keys, share[left[first]], common], schema=SHARED)
            sums = pl.concat([sums, block]).group_by("key").agg(pl.col("weight", "common").sum())
            begin = stop
        key, weight, common = (column.to_numpy().copy() for column in sums.sort("key"))
        return key, weight, common

    def butterflies(self) -> int:
        """The number of cycles of four pairs."""
        common = self.shared()[2]
        return int((common * (common - 1) // 2).sum())


SHARED = {"key": pl.Int64, "weight": pl.Int64, "common": pl.Int64}


def cuts(slices: int) -> Ints:
    """Where slices begin, in units, and where the last one ends."""
    return np.concatenate([[0], LEAST * 2 ** np.arange(slices - 1), [1 << 62]]).astype(np.int64)


def sliced(key: Ints, weight: Ints, rights: int, slices: int) -> Ints:
    """What each right node has in each slice, in units: a row for each."""
    at, weights = cuts(slices), np.zeros((rights, slices), np.int64)
    for k in range(slices):
        part = np.clip(weight - at[k], 0, at[k + 1] - at[k])
        reached = part > 0
        for end in (key[reached] // rights, key[reached] % rights):
            np.add.at(weights[:, k], end, part[reached])
    return weights


def joint(graph: PairGraph, left: Floats, right: Floats) -> Floats:
    """What `graphs.pair_buckets` weighs, of the nodes' shares in buckets."""
    return np.asarray(left[graph.pairs[:, 0]].T @ right[graph.pairs[:, 1]] / 4)


def butterfly(slices: Ints, total: Ints, degrees: Ints, right: Floats) -> Floats:
    """What `graphs.butterfly_buckets` weighs: of what each node has in each slice, and shares in all."""
    room = np.maximum(total + degrees * UNIT, 1)
    return np.asarray((right * degrees[:, None]).T @ (slices / room[:, None]))


def by_slice(graph: PairGraph, right: Floats, slices: int) -> Floats:
    """The same of a graph, of its right nodes' shares in buckets."""
    key, weight, _ = graph.shared()
    return butterfly(sliced(key, weight, graph.rights, slices), shared_in_all(graph), graph.degrees[1], right)


def shared_in_all(graph: PairGraph) -> Ints:
    """What each right node shares in all, in units: a left node with d pairs gives each of its own d - 1 shares."""
    each, total = (graph.degrees[0] - 1) * graph.share, np.zeros(graph.rights, np.int64)
    np.add.at(total, graph.pairs[:, 1], each[graph.pairs[:, 0]])
    return total
