"""Random simple bipartite graphs with given degrees.

Sparse degrees: join the views of users and pages at random, then swap away the few repeated pairs. Without repeats the
result is exactly uniform over all simple graphs with these degrees; when few were swapped away it is close to that.
Hubs and dense degrees, where swapping distorts or stalls: go on from there, or from any simple graph, with random pairs
of nodes that trade what only one of them has, whose limit is uniform (see `curveball`). All work is bounded: nothing
here can hang.

The side with the smaller largest degree owns the lists that trade: they stay short, and trades along it forget fastest.
Measured on a store's baskets (0.9 million edges, one item in 57% of them, 3.9% repeats): the mean degree of that item's
buyers is 13.29 after swapping, and 12.56 to 12.61 from the eighth trade on; from `construct` (15.02) it takes 16 to 24
trades to get there. Trading along the items, where a hub meets only small ones, does not get there in sixty.
"""

from __future__ import annotations

import numpy as np

from wpinq.postprocess.degrees.paths.corridor import Ints
from wpinq.postprocess.degrees.synthesis.curveball import arrange, trade_lists, untangle
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
