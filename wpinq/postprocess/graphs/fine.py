"""Answers by degree, not by buckets: joint degrees (JDD) and triangles by degree (TbD), as the chain takes them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from wpinq.postprocess.graphs.counts import Floats, Graph, Ints

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
