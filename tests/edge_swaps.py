"""The loop of swaps of the simple graphs' chain in plain Python: what `swaps.c` is compared with, bit for bit.

`postprocess/graphs/simple.py` says what the chain tends to. `walk` takes what the compiled function takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels.loops import compiled_items

Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Rows = tuple[Ints, Indices, Indices, Indices]


@compiled_items
def walk(
    graph: tuple[Rows, tuple[Ints, Ints], tuple[Ints, Floats, Floats, Indices, Indices]],
    answers: tuple[Floats, Floats, Floats, Floats],
    room: Indices,
    limits: tuple[int, int, int, int, float, int],
    rng: np.random.Generator,
) -> int:
    """Take steps, and return how many swaps were made.

    Args:
        graph: Its rows: where each begins; of each place the node whose row it is in, the neighbour, and the place of
            the same edge in the neighbour's row. What is kept: the triangles at each node; at the lower place of each
            edge, what paths weigh that it closes. And of each node: what a path through it weighs, in the same units;
            1/(d - 1); its shares of the buckets, in a row; its highest bucket; the ranks of its degree (`Fine`).
        answers: Counts minus answers, all joint degrees, triangles, the intersection, and then the cells of `Fine`;
            their weights; what is near enough to an answer (see `off`); room, for as many and nine of each node.
        room: Room for ten numbers of each node and ten more, the first five of each zero.
        limits: The number of buckets; what paths may weigh at an edge; the degrees of both kinds in `Fine`; the share
            of proposals that close a path; and how many proposals there are.
        rng: Where chance comes from.
    """
    buckets, most, pairs, triples, wedges, steps = limits
    gap, weight, slack, moved = answers
    chain, dense = _Chain(*graph, buckets, pairs, triples), buckets * buckets + buckets + 1
    any_two, taken = (1 - wedges) / (len(chain.other) / 2), 0
    for _ in range(steps):
        swap = chain.propose(rng, wedges)
        if swap is None:
            continue
        a, x, c, y = (chain.owner[swap[0]], chain.other[swap[0]], chain.owner[swap[1]], chain.other[swap[1]])
        near, far = chain.marked(a), chain.marked(y)
        if c in near or x in far:
            continue
        first, second = _Row(x, a, y, c, near, far), _Row(c, y, a, x, far, near)
        forth, back = chain.compare(first, second, y in near)
        chain.movement((a, y, c, x), moved)
        changed = chain.changed_cells(a, x, c, y)
        odds = (any_two + wedges * back) / (any_two + wedges * forth)
        worse = 0.0
        for i, by in [*((i, moved[i]) for i in range(dense)), *changed]:
            if by:
                worse += weight[i] * (off(gap[i] + by, slack[i]) - off(gap[i], slack[i]))
        if rng.random() < odds * math.exp(-max(worse, -700.0)) and chain.make(swap, first, second, most):
            taken += 1
            for i, by in [*((i, moved[i]) for i in range(dense)), *changed]:
                gap[i] += by
    return taken


def off(gap: float, slack: float) -> float:
    """How far a count is off its answer, beyond the slack as a distance and within it as a square (Huber)."""
    gap = abs(gap)
    return gap * gap / (2 * slack) if gap < slack else gap - slack / 2


@dataclass
class _Row:
    """Row x, or c: the neighbour that it loses, whose own row is `lost`, and the one that it gets, with `won`."""

    node: int
    loses: int
    gets: int
    skip: int
    lost: dict[int, int]
    won: dict[int, int]
    fewer: int = 0
    more: int = 0
    fresh: int = 0
    less: float = 0.0
    plus: float = 0.0

    def new(self, z: int) -> bool:
        return z in self.won and z not in (self.loses, self.skip)


@dataclass
class _Chain:
    """What `walk` works on, and what its steps are made of."""

    rows: tuple[Any, ...]
    state: tuple[Any, ...]
    nodes: tuple[Any, ...]
    buckets: int
    pairs: int
    triples: int
    change: dict[int, int] = field(default_factory=dict)
    cells: list[tuple[int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts, self.owner, self.other, self.mate = self.rows
        self.triangles, self.crowd = self.state
        self.share, self.closing, self.mix, self.highest, self.ranks = self.nodes

    def degree(self, node: int) -> float:
        return float(self.starts[node + 1] - self.starts[node])

    def row_of(self, node: int) -> range:
        return range(self.starts[node], self.starts[node + 1])

    def marked(self, node: int) -> dict[int, int]:
        return {self.other[k]: k for k in self.row_of(node)}

    def propose(self, rng: np.random.Generator, wedges: float) -> tuple[int, int] | None:
        """The places of two edges: random ones, or such that close a random path of two edges."""
        wedge = rng.random() < wedges
        s = int(rng.random() * float(len(self.other)))
        if wedge:
            b, a = self.owner[s], self.other[s]
            if self.degree(b) < 2:
                return None
            to = self.starts[b] + int(rng.random() * (self.degree(b) - 1))
            c = self.other[to + (to >= s)]
            s = self.starts[a] + int(rng.random() * self.degree(a))
            r = self.starts[c] + int(rng.random() * self.degree(c))
        else:
            r = int(rng.random() * float(len(self.other)))
        a, x, c, y = self.owner[s], self.other[s], self.owner[r], self.other[r]
        return (s, r) if a != c and y not in (x, a) and c != x else None

    def compare(self, x: _Row, c: _Row, a_y: bool) -> tuple[float, float]:
        """The common neighbours of the rows, and the chances that proposals of paths have of the swap, and back."""
        self.change, self.cells, x_c = {}, [], False
        for row in (x, c):
            for k in self.row_of(row.node):
                z = self.other[k]
                x_c = x_c or (row is x and z == c.node)
                if z in row.lost:
                    row.fewer, row.less = row.fewer + 1, row.less + self.closing[z]
                    self.touch(z, -1)
                    self.triple(row.node, row.loses, z, -1)
                if row.new(z):
                    row.more, row.plus, row.fresh = row.more + 1, row.plus + self.closing[z], row.fresh + self.share[z]
                    self.touch(z, 1)
                    self.triple(row.node, row.gets, z, 1)
        a, y = c.gets, x.gets
        for node, by in ((a, c.more - x.fewer), (c.node, c.more - c.fewer), (x.node, x.more - x.fewer)):
            self.touch(node, by)
        self.touch(y, x.more - c.fewer)
        by_y, by_a = (self.closing[y], self.closing[a]) if a_y else (0.0, 0.0)
        by_x, by_c = (self.closing[x.node], self.closing[c.node]) if x_c else (0.0, 0.0)
        da, dx, dc, dy = (self.degree(node) for node in (a, x.node, c.node, y))
        forth = (c.plus + by_x + by_y) / (da * dc) + (x.plus + by_a + by_c) / (dx * dy)
        return forth, (x.less + by_c + by_y) / (da * dx) + (c.less + by_a + by_x) / (dc * dy)

    def touch(self, node: int, by: int) -> None:
        self.change[node] = self.change.get(node, 0) + by

    def triple(self, a: int, b: int, c: int, sign: int) -> None:
        """A triangle more, or less, in the cell of the degrees of its corners."""
        nodes = len(self.starts) - 1
        low, middle, high = sorted(self.ranks[nodes + node] for node in (a, b, c)) if self.triples else (-1, -1, -1)
        if low >= 0:
            da, db, dc = self.degree(a), self.degree(b), self.degree(c)
            index = high * (high + 1) * (high + 2) // 6 + middle * (middle + 1) // 2 + low
            self.cells.append((self.pairs**2 + index, sign * 3 / (da * da + db * db + dc * dc)))

    def changed_cells(self, a: int, x: int, c: int, y: int) -> list[tuple[int, float]]:
        """The cells of `Fine` that a swap changes, each once, and by how much; those of triangles are known before."""
        for node, partner, sign in ((a, x, -1), (c, y, -1), (a, c, 1), (x, y, 1)):
            i, j = self.ranks[node], self.ranks[partner]
            if self.pairs and i >= 0 and j >= 0:
                by = sign / (2 + 2 * self.degree(node) + 2 * self.degree(partner))
                self.cells += [(i * self.pairs + j, by), (j * self.pairs + i, by)]
        changes: dict[int, float] = {}
        for at, by in self.cells:
            changes[at] = changes.get(at, 0.0) + by
        dense = self.buckets * self.buckets + self.buckets + 1
        return [(dense + at, by) for at, by in changes.items() if by]

    def movement(self, ends: tuple[int, int, int, int], moved: Any) -> None:
        """How the counts would move, into `moved`."""
        n = self.buckets
        a, y, c, x = (self.mix[node * n : node * n + n] for node in ends)
        for i in range(n):
            u, v = a[i] - y[i], c[i] - x[i]
            moved[i * n + i] = u * v / 2
            for j in range(i + 1, n):
                moved[i * n + j] = (u * (c[j] - x[j]) + (a[j] - y[j]) * v) / 2
        middle, whole, above, total = [0.0] * n, [0.0] * n, 0.0, 0.0
        for z, by in self.change.items():
            if not by:
                continue
            d, old, bucket = self.degree(z), float(self.triangles[z]), self.highest[z]
            new, square = old + by, d * d
            step = new * d / (square + new) - old * d / (square + old)
            whole[bucket] += step * self.mix[z * n]
            middle[bucket] += step * self.mix[z * n + bucket]
            total += by * self.mix[z * n]
        for i in reversed(range(n)):
            middle[i] += above * float(1 << i)
            above += whole[i]
            moved[n * n + i] = middle[i]
        moved[n * n + n] = total

    def edge(self, slot: int) -> int:
        return int(min(slot, self.mate[slot]))

    def make(self, swap: tuple[int, int], x: _Row, c: _Row, most: int) -> bool:
        """Make the swap, unless paths would weigh more than `most` at an edge."""
        (s, r), (p, q) = swap, (self.mate[swap[0]], self.mate[swap[1]])
        self.crowded(x, 1)
        self.crowded(c, 1)
        if self.fullest(x) > most or self.fullest(c) > most:
            self.crowded(x, -1)
            self.crowded(c, -1)
            return False
        for slot, mate_slot, fresh in ((s, r, c.fresh), (p, q, x.fresh)):
            self.other[slot], self.other[mate_slot] = self.owner[mate_slot], self.owner[slot]
            self.mate[slot], self.mate[mate_slot] = mate_slot, slot
            self.crowd[min(slot, mate_slot)] = fresh
        for z, by in self.change.items():
            self.triangles[z] += by
        return True

    def crowded(self, row: _Row, by: int) -> None:
        """Bring up to date what paths weigh at the edges that close them, or take it back."""
        for k in self.row_of(row.node):
            z = self.other[k]
            if z in row.lost:
                self.crowd[self.edge(k)] -= by * self.share[row.loses]
                self.crowd[self.edge(row.lost[z])] -= by * self.share[row.node]
            if row.new(z):
                self.crowd[self.edge(k)] += by * self.share[row.gets]
                self.crowd[self.edge(row.won[z])] += by * self.share[row.node]

    def fullest(self, row: _Row) -> int:
        """The most that paths weigh at an edge that more of them close than before."""
        fuller = [slot for k in self.row_of(row.node) if row.new(z := self.other[k]) for slot in (k, row.won[z])]
        return int(max([row.fresh, *(self.crowd[self.edge(slot)] for slot in fuller)]))
