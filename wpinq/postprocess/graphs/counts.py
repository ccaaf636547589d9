"""The counts of a graph that the queries over buckets of degrees ask for, exactly and in columns.

`Fine` has answers by degree, not by buckets: joint degrees (JDD) and triangles by degree (TbD).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

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
    def rows(self) -> Ints:
        """The edges: two nodes in a row."""
        return self.edges

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


def buckets_of(degrees: npt.ArrayLike) -> int:
    """How many buckets hold these degrees.

    >>> buckets_of([1, 7]), buckets_of([8]), buckets_of([])
    (3, 4, 1)
    """
    return max(int(np.max(np.asarray(degrees, np.int64), initial=1)).bit_length(), 1)


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


NONE: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Fine:
    """The cells of both queries: those of the degrees that were asked for, which ascend.

    Cell (i, j) of the joint degrees is at i n + j, for n degrees; that of triangles i <= j <= k is at the number of all
    such triples below k, and of all pairs below j, and i.
    """

    pairs: Ints = field(default_factory=lambda: NONE)
    triples: Ints = field(default_factory=lambda: NONE)

    def expected(self, degrees: Ints) -> tuple[Floats, Floats]:
        """What both queries weigh by chance in graphs with these degrees: the triangles up to a factor."""
        ends, around = (np.bincount(degrees, degrees * more, int(degrees.max(initial=0)) + 1).astype(float)
                        for more in (np.ones(len(degrees)), degrees - 1.0))  # fmt: skip
        rows, columns = (pad(ends, self.pairs)[at] for at in np.indices((len(self.pairs),) * 2))
        cells = triple_cells(len(self.triples))
        alike = (np.diff(cells, axis=1) == 0).sum(axis=1)
        ways = np.array([1.0, 1 / 2, 1 / 6])[alike]
        joint, triangle = self.units()
        most = max(float(ends.sum()), 1)
        return rows * columns / most * joint, pad(around, self.triples)[cells].prod(axis=1) * ways * triangle / most**3

    def units(self) -> tuple[Floats, Floats]:
        """What an edge weighs in each cell of the one, and a triangle in each of the other."""
        square = (self.triples[triple_cells(len(self.triples))] ** 2).sum(axis=1)
        return 1 / (2.0 + 2 * (self.pairs[:, None] + self.pairs)), 3 / np.maximum(square, 1)

    @property
    def cells(self) -> int:
        """How many there are."""
        return len(self.pairs) ** 2 + len(triple_cells(len(self.triples)))

    def ranks(self, degrees: Ints) -> Ints:
        """The places of each node's degree in both lists, -1 where it was not asked for."""
        return np.concatenate([ranks_in(degrees, degrees_asked) for degrees_asked in (self.pairs, self.triples)])

    def counts(self, graph: Graph) -> Floats:
        """What `graphs.joint_degrees` and `graphs.triangles_by_degree` weigh in each cell."""
        degrees = graph.degrees
        size, weights = len(self.pairs), np.zeros(self.cells)
        first, second = ranks_in(degrees, self.pairs)[graph.edges].T
        known = (first >= 0) & (second >= 0)
        weight = 1 / (2 + 2 * degrees[graph.edges[known]].sum(axis=1))
        for row, column in ((first, second), (second, first)):
            np.add.at(weights, row[known] * size + column[known], weight)
        if len(self.triples):
            rank = ranks_in(degrees, self.triples)
            for corners, _ in graph.triangles():
                low, middle, high = np.sort(rank[corners], axis=0)
                counted = low >= 0
                weight = 3 / (degrees[corners[:, counted]] ** 2).sum(axis=0)
                np.add.at(weights, size**2 + at(low, middle, high)[counted], weight)
        return weights


def pad(of_degree: Floats, wanted: Ints) -> Floats:
    """The numbers of these degrees; 0 beyond the largest."""
    return np.asarray(np.where(wanted < len(of_degree), of_degree[np.minimum(wanted, len(of_degree) - 1)], 0.0))


def ranks_in(degrees: Ints, wanted: Ints) -> Ints:
    """Where each degree is in an ascending list, -1 where it is not."""
    if not len(wanted):
        return np.full(len(degrees), -1)
    index = np.minimum(np.searchsorted(wanted, degrees), len(wanted) - 1)
    return np.where(wanted[index] == degrees, index, -1)


def at(low: Ints, middle: Ints, high: Ints) -> Ints:
    """The place of an ascending triple among all."""
    return high * (high + 1) * (high + 2) // 6 + middle * (middle + 1) // 2 + low


def triple_cells(size: int) -> Ints:
    """All ascending triples of 0, ..., size - 1, in the order of their places.

    >>> triple_cells(2).tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]]
    """
    low, middle, high = (axis.ravel() for axis in np.indices((size, size, size)))
    ascending = np.stack([low, middle, high], axis=1)[(low <= middle) & (middle <= high)]
    return np.asarray(ascending[np.argsort(at(*ascending.T), kind="stable")], np.int64)
