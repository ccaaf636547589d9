"""Random simple bipartite graphs with a million edges and more: what `sampler` does, in compiled loops.

One side's nodes are the owners, each with a sorted list of its items, all lists in one array: memory is four bytes an
edge, and a repeated pair is two equal neighbours. The side with the smaller largest degree owns: lists stay short, and
trades along it forget fastest (see `sampler`).

Measured, CPU seconds, and before: a store's baskets (0.9 million edges, 3.9% repeats) 0.3 and 1.6, page views by user
(1.7 million, 17 pages, 6.5% repeats) 1.9 and 8.1, 1.1 million edges without hubs 0.06 and 0.16.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from wpinq.degrees.corridor import Ints
from wpinq.degrees.gale_ryser import Indices, construct
from wpinq.degrees.sampler import FEW, MANY, TRADES
from wpinq.kernels.loops import compiled, compiled_items

STEPS = 5  # partners looked at for each edge, on average, until swapping gives up
MOVES = 512  # items of a long list that move in the time of one such look


def sample_large(user_degrees: Ints, page_degrees: Ints, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Draw as `sampler.sample` does; the pages of a user ascend."""
    turned = int(user_degrees.max()) > int(page_degrees.max())
    owners, things = (page_degrees, user_degrees) if turned else (user_degrees, page_degrees)
    starts = np.append(0, np.cumsum(owners))
    items: Indices = np.repeat(np.arange(len(things), dtype=np.int32), things)
    rng.shuffle(items)
    repeats = arrange(starts, items)
    done = repeats <= MANY * len(items) and untangle(starts, items, rng, STEPS * len(items), MOVES)
    if not done:
        nodes, built = construct(owners, things)
        items = built[np.lexsort((built, nodes))]
    if not done or repeats > FEW * len(items):
        order, held = np.arange(len(owners), dtype=np.int32), np.empty(2 * int(owners.max()), np.int32)
        for _ in range(TRADES if done else 3 * TRADES):
            rng.shuffle(order)
            trade_lists(starts, items, order, held, rng)
    owner: Indices = np.repeat(np.arange(len(owners), dtype=np.int32), owners)
    if not turned:
        return owner, items
    by_user = np.argsort(items, kind="stable")
    return items[by_user], owner[by_user]


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
