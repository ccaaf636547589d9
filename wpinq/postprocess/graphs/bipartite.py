"""A Markov chain over the simple bipartite graphs with given degrees, that looks for those that give released answers.

A step takes two pairs u-p and v-q and would make u-q and v-p of them. Half of the proposals take two random pairs; the
others let u have what others have who share something with u: from u to another of its right nodes, to a left node of
that one, to a right node q of this, and to any pair of q. A step is taken with the probability of Metropolis and
Hastings, the chances of both proposals there and back included. So what the chain tends to is `exp(-sum of weight *
off(count - answer))` over the simple graphs with these degrees, as in `simple.py`.

What two right nodes share is kept in a table, in whole numbers that do not drift; a swap changes it for the right nodes
of u and of v alone, once with p and once with q. The chance of a proposal follows from the same numbers.

Source: Hastings, Biometrika 57(1), 1970; Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 (sec. 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from wpinq.core.kernels.loops import kernel
from wpinq.postprocess.graphs.chain import Chain
from wpinq.postprocess.graphs.counts import Floats, Ints, buckets_of, shares
from wpinq.postprocess.graphs.measured import BEYOND, PairMeasurements, degrees_of
from wpinq.postprocess.graphs.pair_counts import UNIT, PairGraph, butterfly, cuts, joint, shared_in_all, sliced
from wpinq.postprocess.graphs.synthetic import PairSummary, pairs_with_degrees
from wpinq.postprocess.graphs.target import Target

ROOM = 4
"""So many places of the table for each pair of right nodes in it, to begin with, and for each that a step can add."""
wander = kernel("wander")
"""The loop of the chain; its arguments are those of `wander` in `tests/pair_swaps.py`, which defines it."""


@dataclass(eq=False)
class BipartiteChain(Chain[PairGraph]):
    """A simple bipartite graph that the chain moves, with what is known of it.

    Attributes:
        sides: The numbers of buckets on the left and on the right.
    """

    sides: tuple[int, int]
    made: int = field(init=False, default=0)
    title, steps, least, mixing = "a bipartite graph", 200, 10_000_000, 0
    traced = ("butterflies", "clustering", "assortativity")

    @classmethod
    def begin(cls, measurements: PairMeasurements, rng: np.random.Generator) -> tuple[Self, Target]:
        """A chain that starts at a random graph of the fitted degrees, and what it looks for."""
        first = pairs_with_degrees(degrees_of(measurements.left), degrees_of(measurements.right), rng)
        left, right = map(buckets_of, first.degrees)
        chain = cls(first, rng, (left, right))
        return chain, measurements.target(chain.counts(), chain.sides)

    def __post_init__(self) -> None:
        graph = self.graph
        order = np.lexsort((graph.pairs[:, 1], graph.pairs[:, 0]))
        self._owner, self._other = (np.ascontiguousarray(graph.pairs[order, side], np.int32) for side in (0, 1))
        self.degrees = graph.degrees
        begins = [np.append(0, np.cumsum(degrees)).astype(np.int64) for degrees in self.degrees]
        self._ends = (begins[0], begins[1])
        self._at = np.argsort(self._other, kind="stable").astype(np.int32)
        self._back = np.empty(len(order), np.int32)
        self._back[self._at] = np.arange(len(order), dtype=np.int32)
        self._mixes = tuple(shares(some, many) for some, many in zip(self.degrees, self.sides, strict=True))
        key, weight, _ = graph.shared()
        self._sliced = np.ravel(sliced(key, weight, graph.rights, self.slices))
        self._total = shared_in_all(graph)
        self._fill(key + 1, weight)
        highest = (np.frexp(np.maximum(self.degrees[1], 1).astype(float))[1] - 1).astype(np.int32)
        self._nodes = (np.ravel(self._mixes[0]), np.ravel(self._mixes[1]), highest)
        self._room = (np.zeros(self.sides[1] * self.slices), np.zeros(2 * graph.rights, np.int32))

    @property
    def slices(self) -> int:
        """How many slices of what right nodes share are counted."""
        return self.sides[1] + BEYOND

    @property
    def now(self) -> PairGraph:
        """The graph, now."""
        pairs = np.stack([self._owner, self._other], axis=1).astype(np.int64)
        return PairGraph(pairs, self.graph.lefts, self.graph.rights)

    def summary(self) -> PairSummary:
        """The graph in a few numbers, now."""
        return PairSummary.of(self.now)

    def counts(self) -> Floats:
        """What the queries weigh on the graph as it is now, in one row."""
        sliced = self._sliced.reshape(self.graph.rights, self.slices)
        slices = butterfly(sliced, self._total, self.degrees[1], self._mixes[1])
        return np.concatenate([joint(self.now, *self._mixes).ravel(), slices.ravel()])

    def walk(self, target: Target, steps: int, wedges: float = 0.5) -> int:
        """Propose so many swaps, that share of them along paths; how many were made."""
        if len(self._owner) < 2:
            return 0
        gap, before = self.counts() - target.wanted, self.made
        answers = (gap, target.weight, target.slack, np.zeros_like(gap))
        starts, begin = self._ends
        rows = (starts, begin, self._owner, self._other, self._at, self._back)
        while steps > 0:
            state = (*self._table, self.graph.share, self._total, self._sliced, cuts(self.slices))
            limits = (*self.sides, float(UNIT), wedges, steps)
            steps -= int(wander((rows, state, self._nodes), answers, self._room, limits, self.rng))
            self.made = int(self._table[2][1])
            if steps > 0:
                self._fill(*self._pairs())
        return self.made - before

    def _pairs(self) -> tuple[Ints, Ints]:
        keys, shared, _ = self._table
        held = shared != 0
        return keys[held], shared[held]

    def _fill(self, keys: Ints, shared: Ints) -> None:
        """A new table, in which pairs of right nodes that share nothing any more have no place."""
        least = ROOM * (len(keys) + 4 * int(self.degrees[0].max(initial=0)))
        size = 1 << max(int(least).bit_length(), 8)
        table = (np.zeros(size, np.int64), np.zeros(size, np.int64), np.array([len(keys), self.made], np.int64))
        left, at = np.arange(len(keys)), slot(keys, size)
        while len(left):  # the first to come takes a place, and the others try the next one
            free = table[0][at] == 0
            _, first = np.unique(at[free], return_index=True)
            taken = np.flatnonzero(free)[first]
            table[0][at[taken]], table[1][at[taken]] = keys[left[taken]], shared[left[taken]]
            rest = np.ones(len(left), bool)
            rest[taken] = False
            left, at = left[rest], (at[rest] + 1) & (size - 1)
        self._table = table


def slot(keys: Ints, size: int) -> Ints:
    """Where the table of the chain looks for keys first."""
    mixed = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(20)) & np.uint64(size - 1)).astype(np.int64)
