"""A bipartite graph on its way: the arrays that the chain works on, and the answers that it looks for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from wpinq.postprocess.bipartite.chain import wander
from wpinq.postprocess.bipartite.counts import (
    UNIT,
    Floats,
    Ints,
    PairGraph,
    butterfly,
    cuts,
    joint,
    shared_in_all,
    sliced,
)
from wpinq.postprocess.graphs.counts import shares

BEYOND = 3
"""So many more slices than buckets of right nodes there are: two share a quarter of a degree at the most."""
ROOM = 4
"""So many places of the table for each pair of right nodes in it, to begin with, and for each that a step can add."""


@dataclass(frozen=True, eq=False)
class PairTarget:
    """What counts should be: of joint degrees and then of slices, and what each unit is worth; see `graphs.walker`.

    Attributes:
        wanted: As many numbers as there are counts, in one row.
        weight: What a difference of one costs; 0 where nothing was asked.
        slack: Within so much of the answer a difference costs less than that, its square.
        shape: The numbers of buckets on the left and on the right, and of slices.
    """

    wanted: Floats
    weight: Floats
    slack: Floats
    shape: tuple[int, int, int]

    def times(self, factor: float, butterflies: bool = True) -> PairTarget:
        """The same answers, told more or less loudly; or those about joint degrees alone."""
        weight = self.weight * factor
        if not butterflies:
            weight[self.shape[0] * self.shape[1] :] = 0
        return PairTarget(self.wanted, weight, self.slack, self.shape)


@dataclass(eq=False)
class PairWalker:
    """A simple bipartite graph that the chain moves, with what is known of it.

    Attributes:
        graph: Where it starts.
        shape: The numbers of buckets on the left and on the right, and of slices.
        rng: Where chance comes from.
    """

    graph: PairGraph
    shape: tuple[int, int, int]
    rng: np.random.Generator
    made: int = field(init=False, default=0)

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
        self._mixes = tuple(shares(some, many) for some, many in zip(self.degrees, self.shape[:2], strict=True))
        key, weight, _ = graph.shared()
        self._sliced = np.ravel(sliced(key, weight, graph.rights, self.shape[2]))
        self._total = shared_in_all(graph)
        self._fill(key + 1, weight)
        highest = (np.frexp(np.maximum(self.degrees[1], 1).astype(float))[1] - 1).astype(np.int32)
        self._nodes = (np.ravel(self._mixes[0]), np.ravel(self._mixes[1]), highest)
        self._room = (np.zeros(self.shape[1] * self.shape[2]), np.zeros(2 * graph.rights, np.int32))

    @property
    def now(self) -> PairGraph:
        """The graph, now."""
        pairs = np.stack([self._owner, self._other], axis=1).astype(np.int64)
        return PairGraph(pairs, self.graph.lefts, self.graph.rights)

    def counts(self) -> Floats:
        """What the queries weigh on the graph as it is now, in one row."""
        sliced = self._sliced.reshape(self.graph.rights, self.shape[2])
        slices = butterfly(sliced, self._total, self.degrees[1], self._mixes[1])
        return np.concatenate([joint(self.now, *self._mixes).ravel(), slices.ravel()])

    def walk(self, target: PairTarget, steps: int, wedges: float = 0.5) -> int:
        """Propose so many swaps; how many were made."""
        if len(self._owner) < 2:
            return 0
        gap, before = self.counts() - target.wanted, self.made
        answers = (gap, target.weight, target.slack, np.zeros_like(gap))
        starts, begin = self._ends
        rows = (starts, begin, self._owner, self._other, self._at, self._back)
        while steps > 0:
            state = (*self._table, self.graph.share, self._total, self._sliced, cuts(self.shape[2]))
            limits = (*self.shape[:2], float(UNIT), wedges, steps)
            steps -= wander((rows, state, self._nodes), answers, self._room, limits, self.rng)
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
