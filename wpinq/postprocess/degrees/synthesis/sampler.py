"""Random simple bipartite graphs with given degrees.

Sparse degrees: join the views of users and pages at random, then swap away the few repeated pairs. Without repeats the
result is exactly uniform over all simple graphs with these degrees; when few were swapped away it is close to that.
Hubs and dense degrees, where swapping distorts or stalls: go on from there, or from any simple graph, with random pairs
of nodes that trade what only one of them has, whose limit is uniform (see *Trades*). All work is bounded: nothing
here can hang.

The side with the smaller largest degree owns the lists that trade: they stay short, and trades along it forget fastest.
Measured on a store's baskets (0.9 million edges, one item in 57% of them, 3.9% repeats): the mean degree of that item's
buyers is 13.29 after swapping, and 12.56 to 12.61 from the eighth trade on; from `construct` (15.02) it takes 16 to 24
trades to get there. Trading along the items, where a hub meets only small ones, does not get there in sixty.

The loops are compiled where there was a compiler. One side's nodes are the owners, each with a list of its items, all
lists in one array: memory is four bytes an edge, and in a sorted list a repeated pair is two equal neighbours.

*Trades* are global curveball (Carstens, Hamann, Meyer, Penschuck, Tran, Wagner, ESA 2018).
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from wpinq.core.kernels.loops import compiled, compiled_items
from wpinq.postprocess.degrees.path import Ints
from wpinq.postprocess.degrees.synthesis.gale_ryser import Indices, construct

FEW = 0.01  # repeated pairs beyond this share: swapping distorts, so trade afterwards
MANY = 0.25  # beyond this share: do not try to swap
TRADES = 8  # after swapping; thrice as many from a constructed graph
STEPS = 5  # partners looked at for each edge, on average, until swapping gives up
MOVES = 512  # items of a long list that move in the time of one such look


def sample(user_degrees: Ints, page_degrees: Ints, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Draw a simple bipartite graph with exactly these degrees.

    Args:
        user_degrees: Views of each user, positive.
        page_degrees: Views of each page, positive; a feasible pair, see `gale_ryser.nearest`.
        rng: Ordinary randomness; this is post-processing, not noise.

    Returns:
        User and page of each edge, counted from 0, grouped by user, pages ascending; no pair is repeated.
    """
    turned = int(user_degrees.max(initial=0)) > int(page_degrees.max(initial=0))
    owners, things = (page_degrees, user_degrees) if turned else (user_degrees, page_degrees)
    items = draw(owners, things, rng)
    owner: Indices = np.repeat(np.arange(len(owners), dtype=np.int32), owners)
    if not turned:
        return owner, items
    by_user = np.argsort(items, kind="stable")
    return items[by_user], owner[by_user]


def draw(owners: Ints, things: Ints, rng: np.random.Generator) -> Indices:
    """Draw the ascending items of each owner, of which `things` says how many owners each has."""
    starts = np.append(0, np.cumsum(owners))
    items: Indices = np.repeat(np.arange(len(things), dtype=np.int32), things)
    rng.shuffle(items)
    repeats = arrange(starts, items)
    done = repeats <= MANY * len(items) and untangle(starts, items, rng, STEPS * len(items), MOVES)
    if not done:
        nodes, built = construct(owners, things)
        items = built[np.lexsort((built, nodes))]
    if not done or repeats > FEW * len(items):
        trade(starts, items, rng, TRADES if done else 3 * TRADES)
    return items


def trade(starts: Ints, items: Indices, rng: np.random.Generator, rounds: int) -> None:
    """Let all owners trade, in random pairs, so many rounds; their items ascend before and after."""
    order = np.arange(len(starts) - 1, dtype=np.int32)
    held = np.empty(2 * int(np.diff(starts).max(initial=0)), np.int32)
    for _ in range(rounds):
        rng.shuffle(order)
        trade_lists(starts, items, order, held, rng)


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
