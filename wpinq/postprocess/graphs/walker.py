"""A graph on its way: the arrays that the chain works on, and the answers that it looks for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from wpinq.postprocess.graphs.chain import walk
from wpinq.postprocess.graphs.counts import Fine, Floats, Graph, Ints, intersected, joint, middle, shares

ONE = 1 << 40
"""Of what paths weigh, in the chain."""


@dataclass(frozen=True, eq=False)
class Target:
    """What counts should be: of joint degrees, triangles by bucket and the intersection, and what each unit is worth.

    Attributes:
        wanted: As many numbers as there are counts, in one row.
        weight: What a difference of one costs; 0 where nothing was asked.
        slack: Within so much of the answer a difference costs less than that, its square (Huber's loss).
        buckets: How many there are.
        fine: Of which degrees joint degrees and triangles were asked by degree: the last of the numbers.
    """

    wanted: Floats
    weight: Floats
    slack: Floats
    buckets: int
    fine: Fine = field(default_factory=Fine)

    def times(self, factor: float, triangles: bool = True) -> Target:
        """The same answers, told more or less loudly; or those about joint degrees alone."""
        weight = self.weight * factor
        if not triangles:
            weight[self.buckets**2 :] = 0
        return Target(self.wanted, weight, self.slack, self.buckets, self.fine)


@dataclass(eq=False)
class Walker:
    """A simple graph that the chain moves, with what is known of it.

    Attributes:
        graph: Where it starts.
        buckets: How many buckets of degrees are counted.
        rng: Where chance comes from.
        triangles: The number at each node, now.
        gap: Counts minus answers, as the last walk left them.
    """

    graph: Graph
    buckets: int
    rng: np.random.Generator
    triangles: Ints = field(init=False)
    gap: Floats = field(init=False)

    def __post_init__(self) -> None:
        edges, nodes = self.graph.edges, self.graph.nodes
        self.degrees = self.graph.degrees
        ends = np.concatenate([edges, edges[:, ::-1]])
        order = np.argsort(ends[:, 0], kind="stable")
        inverse = np.empty(len(order), np.int32)
        inverse[order] = np.arange(len(order))
        starts = np.concatenate([[0], np.cumsum(self.degrees)]).astype(np.int64)
        self._owner, self._other = (np.ascontiguousarray(ends[order, side], np.int32) for side in (0, 1))
        mate = np.concatenate([inverse[len(edges) :], inverse[: len(edges)]])[order]
        self._rows = (starts, self._owner, self._other, mate)
        self.triangles = self.graph.at_nodes()
        self._mix = shares(self.degrees, self.buckets)
        share = -(-ONE // (2 * np.maximum(self.degrees, 1)))
        self._crowd = np.tile(self.graph.closing(share), 2)[order]
        closing = np.where(self.degrees > 1, 1 / np.maximum(self.degrees - 1, 1), 0.0)
        highest = (np.frexp(np.maximum(self.degrees, 1).astype(float))[1] - 1).astype(np.int32)
        self._nodes = (share, closing, np.ravel(self._mix), highest)
        self._room = np.zeros(10 * nodes + 10, np.int32)

    @property
    def edges(self) -> Ints:
        """The edges, now, the lower end first."""
        lower = self._owner < self._other
        return np.stack([self._owner[lower], self._other[lower]], axis=1).astype(np.int64)

    @property
    def crowded(self) -> int:
        """Edges at which paths weigh more than one: there the query keeps a part of them, and counts less."""
        slots = np.arange(len(self._owner))
        return int(np.count_nonzero(self._crowd[slots < self._rows[3]] > ONE))

    def counts(self, fine: Fine | None = None) -> Floats:
        """What the queries weigh on the graph as it is now, in one row."""
        whole = intersected(self.triangles, self.degrees)
        by_bucket = middle(self.triangles, self.degrees, self._mix)
        cells = np.zeros(0) if fine is None or not fine.cells else fine.counts(Graph(self.edges, self.graph.nodes))
        return np.concatenate([joint(self.edges, self._mix).ravel(), by_bucket, [whole], cells])

    def walk(self, target: Target, steps: int, wedges: float = 0.5) -> int:
        """Propose so many swaps; how many were made."""
        if len(self._owner) < 4:
            return 0
        self.gap = self.counts(target.fine) - target.wanted
        answers = (self.gap, target.weight, target.slack, np.zeros(len(self.gap) + 9 * self.graph.nodes + 9))
        ranks = target.fine.ranks(self.degrees).astype(np.int32)
        state = (self.triangles, self._crowd)
        limits = (self.buckets, ONE, len(target.fine.pairs), len(target.fine.triples), wedges, steps)
        return walk((self._rows, state, (*self._nodes, ranks)), answers, self._room, limits, self.rng)


def buckets_of(degrees: npt.ArrayLike) -> int:
    """How many buckets hold these degrees.

    >>> buckets_of([1, 7]), buckets_of([8]), buckets_of([])
    (3, 4, 1)
    """
    return max(int(np.max(np.asarray(degrees, np.int64), initial=1)).bit_length(), 1)
