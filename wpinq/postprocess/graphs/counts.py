"""The counts of a graph that the queries over buckets of degrees ask for, exactly and in columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
BLOCK = 1 << 22
"""Paths of two edges that are held at once."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A simple graph: its nodes are 0, 1, 2, ..., and each edge is there once, the lower end first.

    Attributes:
        edges: A row for each edge, its two ends.
        nodes: How many nodes there are, those without an edge included.
    """

    edges: Ints
    nodes: int

    @classmethod
    def of(cls, edges: npt.ArrayLike) -> Graph:
        """The graph of a list of edges: directions, repetitions and loops do not count, and nodes are numbered anew."""
        pairs = np.asarray(edges).reshape(-1, 2)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        names, ends = np.unique(pairs, return_inverse=True)
        return cls(np.unique(np.sort(ends.reshape(-1, 2), axis=1), axis=0).astype(np.int64), len(names))

    @property
    def degrees(self) -> Ints:
        """The number of edges of each node."""
        return np.bincount(self.edges.ravel(), minlength=self.nodes).astype(np.int64)

    def triangles(self) -> Iterator[tuple[Ints, Ints]]:
        """Each triangle once, in blocks: its three corners, and its edges, each beside the corner that it is not at."""
        degrees = self.degrees
        rank = np.empty(self.nodes, np.int64)
        rank[np.argsort(degrees, kind="stable")] = np.arange(self.nodes)
        name = np.argsort(rank)
        ranked = np.sort(rank[self.edges], axis=1)
        order = np.lexsort((ranked[:, 1], ranked[:, 0]))
        low, high = ranked[order].T
        keys = low * self.nodes + high
        after = np.searchsorted(low, low, side="right") - np.arange(len(low)) - 1
        ends = np.cumsum(after)
        begin = 0
        while begin < len(low):
            end = max(int(np.searchsorted(ends, ends[begin] - after[begin] + BLOCK, side="right")), begin + 1)
            first = np.repeat(np.arange(begin, end), after[begin:end])
            second = (
                first
                + 1
                + np.arange(len(first))
                - np.repeat(np.cumsum(after[begin:end]) - after[begin:end], after[begin:end])
            )
            third = np.searchsorted(keys, high[first] * self.nodes + high[second])
            third[third == len(keys)] = 0
            closed = keys[third] == high[first] * self.nodes + high[second] if len(first) else np.zeros(0, bool)
            first, second, third = first[closed], second[closed], third[closed]
            yield name[np.stack([low[first], high[first], high[second]])], order[np.stack([third, second, first])]
            begin = end

    def at_nodes(self) -> Ints:
        """The number of triangles at each node."""
        triangles_at = np.zeros(self.nodes, np.int64)
        for corners, _ in self.triangles():
            triangles_at += np.bincount(corners.ravel(), minlength=self.nodes)
        return triangles_at

    def closing(self, share: Ints) -> Ints:
        """For each edge the sum, over the common neighbours of its ends, of what a path through them weighs."""
        sums = np.zeros(len(self.edges), np.int64)
        for corners, beside in self.triangles():
            np.add.at(sums, beside.ravel(), share[corners.ravel()])
        return sums


def shares(degrees: Ints, buckets: int) -> Floats:
    """The share that each node has in each bucket: of 1, ..., d those with 1, 2, 3, ... binary digits.

    >>> shares(np.array([1, 6]), 3).round(2).tolist()
    [[1.0, 0.0, 0.0], [0.17, 0.33, 0.5]]
    """
    thick = 2 ** np.arange(buckets)
    return np.asarray(np.clip(degrees[:, None] - thick + 1, 0, thick) / np.maximum(degrees, 1)[:, None])


def joint(edges: Ints, mix: Floats) -> Floats:
    """What `graphs.joint_buckets` weighs: a square, of which only the upper half is in use."""
    halves = mix[edges[:, 0]].T @ mix[edges[:, 1]] / 2
    return np.asarray(np.triu(halves) + np.tril(halves, -1).T)


def middle(triangles: Ints, degrees: Ints, mix: Floats) -> Floats:
    """What `graphs.triangle_buckets` weighs."""
    square = np.maximum(degrees * degrees + triangles, 1)
    return np.asarray((triangles * degrees / square) @ mix)


def intersected(triangles: Ints, degrees: Ints) -> float:
    """What `graphs.triangles_by_intersect` weighs."""
    return float((triangles / np.maximum(degrees, 1)).sum())
