"""A Markov chain over the simple graphs with given degrees, that looks for those that give the released answers.

A step takes two edges a-x and c-y and would make a-c and x-y of them. Half of the proposals take two random edges, and
half two that close a random path of two edges from a to c; a step is taken with the probability of Metropolis and
Hastings, the chances of both proposals there and back included. So what the chain tends to is
`exp(-sum of weight * off(count - answer))` over the simple graphs with these degrees: the likelihood of the answers
under Laplace noise, to a power; but within an answer's own noise its square counts (Huber's loss). Counts that had to
be exactly the answers would hold the chain fast: hardly any swap leaves all of them as they are.

Counts follow a swap from what it changes alone: the common neighbours of its four pairs. The number of triangles at
each node is a whole number and never drifts; the counts over buckets are computed from it.

A graph is not entered where paths of two edges weigh more than one at an edge that they close: there
`graphs.triangle_buckets` would keep a part of them, and the chain's counts are then exactly the query's.

Source: Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 (sec. 4); Hastings, Biometrika 57(1), 1970; Huber, Annals of
Mathematical Statistics 35(1), 1964.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from wpinq.core.kernels.loops import kernel
from wpinq.postprocess.graphs.chain import Chain
from wpinq.postprocess.graphs.counts import Fine, Floats, Graph, Ints, buckets_of, intersected, joint, middle, shares
from wpinq.postprocess.graphs.measured import Measurements, degrees_of
from wpinq.postprocess.graphs.synthetic import Summary, with_degrees
from wpinq.postprocess.graphs.target import Target

ONE = 1 << 40
"""Of what paths weigh, in the chain."""
walk = kernel("walk")
"""The loop of the chain; its arguments are those of `walk` in `tests/edge_swaps.py`, which defines it."""


@dataclass(eq=False)
class SimpleChain(Chain[Graph]):
    """A simple graph that the chain moves, with what is known of it.

    Attributes:
        buckets: How many buckets of degrees are counted.
        fine: Which cells by degree are counted.
        triangles: The number at each node, now.
        gap: Counts minus answers, as the last walk left them.
    """

    buckets: int
    fine: Fine = field(default_factory=Fine)
    triangles: Ints = field(init=False)
    gap: Floats = field(init=False)
    title, steps, least, mixing = "a graph", 600, 30_000_000, 10
    traced = ("triangles", "clustering", "average_clustering", "assortativity")

    @classmethod
    def begin(cls, measurements: Measurements, rng: np.random.Generator) -> tuple[Self, Target]:
        """A chain that starts at a graph of the fitted degrees, and what it looks for."""
        first = with_degrees(degrees_of(measurements.degrees))
        chain = cls(first, rng, buckets_of(first.degrees), measurements.fine)
        return chain, measurements.target(first.degrees)

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
        ranks = self.fine.ranks(self.degrees).astype(np.int32)
        self._nodes = (share, closing, np.ravel(self._mix), highest, ranks)
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

    @property
    def now(self) -> Graph:
        """The graph, now."""
        return Graph(self.edges, self.graph.nodes)

    def summary(self) -> Summary:
        """The graph in a few numbers, now."""
        return Summary.of(self.edges, self.triangles, self.degrees)

    def counts(self) -> Floats:
        """What the queries weigh on the graph as it is now, in one row."""
        whole = intersected(self.triangles, self.degrees)
        by_bucket = middle(self.triangles, self.degrees, self._mix)
        cells = self.fine.counts(self.now) if self.fine.cells else np.zeros(0)
        return np.concatenate([joint(self.edges, self._mix).ravel(), by_bucket, [whole], cells])

    def walk(self, target: Target, steps: int, wedges: float = 0.5) -> int:
        """Propose so many swaps, that share of them along paths; how many were made."""
        if len(self._owner) < 4:
            return 0
        self.gap = self.counts() - target.wanted
        answers = (self.gap, target.weight, target.slack, np.zeros(len(self.gap) + 9 * self.graph.nodes + 9))
        graph = (self._rows, (self.triangles, self._crowd), self._nodes)
        limits = (self.buckets, ONE, len(self.fine.pairs), len(self.fine.triples), wedges, steps)
        return int(walk(graph, answers, self._room, limits, self.rng))
