"""Lists that swap and trade items by chance: the loops of `sampler`, compiled where there was a compiler.

One side's nodes are the owners, each with a list of its items, all lists in one array: memory is four bytes an edge,
and in a sorted list a repeated pair is two equal neighbours.

Trades: global curveball (Carstens, Hamann, Meyer, Penschuck, Tran, Wagner, ESA 2018).
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from wpinq.core.kernels.loops import compiled, compiled_items
from wpinq.postprocess.degrees.paths.corridor import Ints
from wpinq.postprocess.degrees.synthesis.gale_ryser import Indices


@compiled
def arrange(starts: Ints, items: Indices) -> int:
    """Sort each owner's items, and count those that equal the one before."""
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    items[:] = items[np.lexsort((items, owner))]
    return int(np.count_nonzero((items[1:] == items[:-1]) & (owner[1:] == owner[:-1])))


@compiled_items
def untangle(starts: Ints, items: Indices, rng: np.random.Generator, budget: int, moves: int) -> bool:
    """Swap repeated items with those of random other edges, where that gives two new pairs; false where it gives up."""
    for owner in range(len(starts) - 1):
        low, high = starts[owner], starts[owner + 1]
        k = low + 1
        while k < high:
            item = items[k]
            if item != items[k - 1]:
                k += 1
                continue
            if budget < 0:
                return False
            budget -= 1
            other = int(rng.random() * len(items))
            wanted, partner = items[other], bisect_left(starts, other + 1) - 1
            begin, end = starts[partner], starts[partner + 1]
            near, far = bisect_left(items, wanted, low, high), bisect_left(items, item, begin, end)
            if (near == high or items[near] != wanted) and (far == end or items[far] != item):
                moved = _move(items, low, high, k, wanted) + _move(items, begin, end, other, item)
                budget -= moved // moves
    return True


def _move(items: Indices, low: int, high: int, at: int, item: int) -> int:
    """Replace one item of an ascending list, keep it so, and return how many others had to move."""
    begin = at
    while at > low and items[at - 1] > item:
        items[at] = items[at - 1]
        at -= 1
    while at + 1 < high and items[at + 1] < item:
        items[at] = items[at + 1]
        at += 1
    items[at] = item
    return abs(at - begin)


@compiled_items
def trade_lists(starts: Ints, items: Indices, order: Indices, held: Indices, rng: np.random.Generator) -> None:
    """Let each two neighbours in `order` trade: deal out anew, at random, the items that only one of them has.

    `held` has room for the lists of any two.
    """
    for k in range(0, len(order) - 1, 2):
        i, j = starts[order[k]], starts[order[k + 1]]
        middle, more = starts[order[k] + 1] - i, starts[order[k + 1] + 1] - j
        held[:middle], held[middle : middle + more] = items[i : i + middle], items[j : j + more]
        _deal(held, (middle, middle + more), items, (i, j), rng)


def _deal(held: Indices, ends: tuple[int, int], items: Indices, to: tuple[int, int], rng: np.random.Generator) -> None:
    """Merge two lists that stand in `held` and write them to two places of `items`, single items by chance."""
    (middle, end), (i, j) = ends, to
    both = len(set(held[:middle]).intersection(held[middle:end]))
    single, mine, x, y = end - 2 * both, middle - both, 0, middle
    while x < middle or y < end:
        if x < middle and y < end and held[x] == held[y]:
            items[i] = items[j] = held[x]
            i, j, x, y = i + 1, j + 1, x + 1, y + 1
            continue
        if y == end or (x < middle and held[x] < held[y]):
            item, x = held[x], x + 1
        else:
            item, y = held[y], y + 1
        if rng.random() * single < mine:
            items[i], i, mine = item, i + 1, mine - 1
        else:
            items[j], j = item, j + 1
        single -= 1
