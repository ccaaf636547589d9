"""The loop of swaps of the bipartite graphs' chain in plain Python: what `overlaps.c` is compared with, bit for bit.

`postprocess/graphs/bipartite.py` says what the chain tends to. `wander` takes what the compiled function takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from edge_swaps import off

from wpinq.core.kernels.loops import compiled_items

Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Rows = tuple[Ints, Ints, Indices, Indices, Indices, Indices]
SPREAD = 0x9E3779B97F4A7C15


@compiled_items
def wander(
    graph: tuple[Rows, tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints], tuple[Floats, Floats, Indices]],
    answers: tuple[Floats, Floats, Floats, Floats],
    room: tuple[Floats, Indices],
    limits: tuple[int, int, float, float, int],
    rng: np.random.Generator,
) -> int:
    """Take steps, and return how many were; fewer than wanted where any next one could fill more than half the table.

    Args:
        graph: Its rows: where the pairs of each left node begin, and those of each right one; of each pair its nodes;
            the pairs by right node; and where each pair is among these. What is kept: the table, of pairs of right
            nodes, 0 where none is, and of what they share; how many it holds, and how many swaps were made; of each
            left node what a path through it weighs; of each right one what it shares in all, and in each slice, in a
            row; and where slices begin. And the shares of the buckets, of left nodes and of right ones, and the highest
            bucket of right ones.
        answers: Counts minus answers, of joint degrees and then of slices; their weights; what is near enough to an
            answer (see `off`); room.
        room: Room for a count of each slice, and for two numbers of each right node, all zero.
        limits: The numbers of buckets on the left and on the right; what one unit is; the share of proposals that
            follow what is shared; and how many proposals there are.
        rng: Where chance comes from.
    """
    height, width, unit, wedges, steps = limits
    chain = Swaps(*graph[0], *graph[1], *graph[2], height, width, unit)
    gap, weight, slack, moved = answers
    any_two = 2 * (1 - wedges) / len(chain.other)
    largest = max(map(chain.degree, range(len(chain.starts) - 1)))
    for step in range(steps):
        if chain.used[0] + 4 * largest > len(chain.keys) // 2:
            return step
        positions = chain.propose(rng, wedges)
        if positions is None:
            continue
        s, r = positions
        u, p, v, q = chain.owner[s], chain.other[s], chain.owner[r], chain.other[r]
        near, far = set(chain.row(u)), set(chain.row(v))
        if q in near or p in far:
            continue
        swap = Swap(u, p, v, q, near, far, [0] * chain.slices, [0] * chain.slices)
        chain.movement(swap, moved)
        odds = (any_two + wedges * swap.back) / (any_two + wedges * swap.forth)
        worse = 0.0
        for i in range(len(gap)):
            if moved[i] and weight[i]:
                worse += weight[i] * (off(gap[i] + moved[i], slack[i]) - off(gap[i], slack[i]))
        if rng.random() < odds * math.exp(-max(worse, -700.0)):
            chain.make(s, r, swap)
            for i in range(len(gap)):
                gap[i] += moved[i]
            chain.used[1] += 1
    return steps


@dataclass
class Swap:
    """Pairs u-p and v-q, the right nodes of u and of v, how the slices of p and q move, and the proposals' chances."""

    u: int
    p: int
    v: int
    q: int
    near: set[int]
    far: set[int]
    mine: list[int]
    theirs: list[int]
    forth: float = 0.0
    back: float = 0.0


@dataclass
class Swaps:
    """What `wander` works on, and what its steps are made of."""

    starts: Any
    begin: Any
    owner: Any
    other: Any
    at: Any
    back: Any
    keys: Any
    shared: Any
    used: Any
    share: Any
    total: Any
    sliced: Any
    cuts: Any
    left: Any
    right: Any
    highest: Any
    height: int
    width: int
    unit: float

    @property
    def slices(self) -> int:
        return len(self.cuts) - 1

    def degree(self, left: int) -> int:
        return int(self.starts[left + 1] - self.starts[left])

    def fans(self, right: int) -> int:
        return int(self.begin[right + 1] - self.begin[right])

    def row(self, left: int) -> list[int]:
        return [self.other[k] for k in range(self.starts[left], self.starts[left + 1])]

    def propose(self, rng: np.random.Generator, wedges: float) -> tuple[int, int] | None:
        """Two pairs: random ones, or such that u gets what another has who has something that u has."""

        def drawn(many: int) -> int:
            return int(rng.random() * float(many))

        wedge = rng.random() < wedges
        s = drawn(len(self.other))
        if wedge:
            u = self.owner[s]
            if self.degree(u) < 2:
                return None
            k = self.starts[u] + drawn(self.degree(u) - 1)
            z = self.other[k + (k >= s)]
            other = self.owner[self.at[self.begin[z] + drawn(self.fans(z))]]
            q = self.other[self.starts[other] + drawn(self.degree(other))]
            if q == z:
                return None
            r = self.at[self.begin[q] + drawn(self.fans(q))]
        else:
            r = drawn(len(self.other))
        return (s, r) if self.owner[s] != self.owner[r] and self.other[s] != self.other[r] else None

    def find(self, a: int, b: int) -> int:
        """The place of two right nodes in the table, or an empty one."""
        key, mask = self.key(a, b), len(self.keys) - 1
        at = ((key * SPREAD % 2**64) >> 20) & mask
        while self.keys[at] and self.keys[at] != key:
            at = (at + 1) & mask
        return at

    def key(self, a: int, b: int) -> int:
        return int(min(a, b) * (len(self.begin) - 1) + max(a, b) + 1)

    def in_slice(self, weight: int, k: int) -> int:
        return int(min(max(weight - self.cuts[k], 0), self.cuts[k + 1] - self.cuts[k]))

    def moves(self, old: int, new: int) -> list[tuple[int, int]]:
        """The slices of one weight that move, and by how much."""
        moved = [(k, self.in_slice(new, k) - self.in_slice(old, k)) for k in range(self.slices)]
        return [(k, by) for k, by in moved if by]

    def gained(self, swap: Swap, z: int) -> int:
        """How much more z shares with p after the swap."""
        return int((self.share[swap.v] if z in swap.far else 0) - (self.share[swap.u] if z in swap.near else 0))

    def touched(self, swap: Swap) -> list[tuple[int, int, int]]:
        """The right nodes that u and v keep, on which side, and how much more they share with p."""
        sides = ((0, swap.u, swap.p), (1, swap.v, swap.q))
        return [(side, z, self.gained(swap, z)) for side, u, p in sides for z in self.row(u) if z != p]

    def movement(self, swap: Swap, moved: Any) -> None:
        """How the counts would move, into `moved`."""
        size, n = self.height * self.width, self.slices
        middle, whole = [0.0] * (self.width * n), [0.0] * (self.width * n)
        forth, back = [0.0, 0.0], [0.0, 0.0]

        def spread(z: int, k: int, weight: float) -> None:
            at = self.highest[z] * n + k
            whole[at] += weight
            middle[at] += weight * float(self.fans(z) - (1 << self.highest[z]) + 1)

        for side, z, by in self.touched(swap):
            with_p, with_q = (self.shared[self.find(z, whom)] for whom in (swap.p, swap.q))
            forth[side] += (with_p if side else with_q) / self.fans(z)
            back[side] += (with_q - by if side else with_p + by) / self.fans(z)
            if by and not (side and z in swap.near):
                room = float(self.total[z]) + float(self.fans(z)) * self.unit
                for old, new, other in ((with_p, with_p + by, swap.mine), (with_q, with_q - by, swap.theirs)):
                    for k, moves in self.moves(old, new):
                        other[k] += moves
                        spread(z, k, moves / room)
        p, q = float(self.fans(swap.p)), float(self.fans(swap.q))
        du, dv = (float(max(self.degree(u) - 1, 1)) for u in (swap.u, swap.v))
        swap.forth = 2 / self.unit * (forth[0] / (du * q) + forth[1] / (dv * p))
        swap.back = 2 / self.unit * (back[0] / (du * p) + back[1] / (dv * q))
        more = self.more(swap)
        for z, by, slices in ((swap.p, more, swap.mine), (swap.q, -more, swap.theirs)):
            old = float(self.total[z]) + float(self.fans(z)) * self.unit
            for k in range(n):
                if (held := self.sliced[z * n + k]) or slices[k]:
                    spread(z, k, (held + slices[k]) / (old + float(by)) - held / old)
        for k in range(n):
            above = 0.0
            for i in reversed(range(self.width)):
                moved[size + i * n + k] = middle[i * n + k] + above * float(1 << i)
                above += whole[i * n + k]
        self.joined(swap, moved)

    def joined(self, swap: Swap, moved: Any) -> None:
        """How the joint degrees would move."""
        u, v = (self.left[node * self.height : (node + 1) * self.height] for node in (swap.u, swap.v))
        p, q = (self.right[node * self.width : (node + 1) * self.width] for node in (swap.p, swap.q))
        for i in range(self.height):
            for j in range(self.width):
                moved[i * self.width + j] = (u[i] - v[i]) * (q[j] - p[j]) / 4

    def more(self, swap: Swap) -> int:
        """How much more p shares in all."""
        u, v = ((self.degree(node) - 1) * self.share[node] for node in (swap.u, swap.v))
        return int(v - u)

    def make(self, s: int, r: int, swap: Swap) -> None:
        """Make the swap."""
        n = self.slices
        for side, z, by in self.touched(swap):
            if by and not (side and z in swap.near):
                for whom, change in ((swap.p, by), (swap.q, -by)):
                    at = self.find(z, whom)
                    self.used[0] += not self.keys[at]
                    self.keys[at] = self.key(z, whom)
                    for k, moves in self.moves(self.shared[at], self.shared[at] + change):
                        self.sliced[z * n + k] += moves
                    self.shared[at] += change
        for k in range(n):
            self.sliced[swap.p * n + k] += swap.mine[k]
            self.sliced[swap.q * n + k] += swap.theirs[k]
        self.total[swap.p] += self.more(swap)
        self.total[swap.q] -= self.more(swap)
        a, b = self.back[s], self.back[r]
        self.other[s], self.other[r] = swap.q, swap.p
        self.at[a], self.at[b], self.back[s], self.back[r] = r, s, b, a
