"""Random simple bipartite graphs with given degrees.

Sparse degrees: join the views of users and pages at random, then swap away the few repeated pairs. Without repeats
the result is exactly uniform over all simple graphs with these degrees; when few were swapped away it is close to that.
Hubs and dense degrees, where swapping distorts or stalls: go on from there, or from
any simple graph, with random pairs of nodes that trade what only one of them has (global curveball: Carstens, Hamann,
Meyer, Penschuck, Tran, Wagner, ESA 2018), whose limit is uniform. All work is bounded: nothing here can hang.

Measured on a store's baskets (0.9 million edges, one item in 57% of them, 3.9% repeats): the mean degree of that
item's buyers is 13.29 after swapping, and 12.56 to 12.61 from the eighth trade on; from `construct` (15.02) it takes
16 to 24 trades to get there. Each costs about two sorts. Trading along the items, where a hub meets only small ones,
does not get there in sixty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wpinq.degrees.corridor import Ints
from wpinq.degrees.gale_ryser import LARGE, Indices, construct

FEW = 0.01  # repeated pairs beyond this share: swapping distorts, so trade afterwards
MANY = 0.25  # beyond this share: do not try to swap
PASSES = 4
ROUNDS = 12
TRADES = 8  # after swapping; thrice as many from a constructed graph


def sample(user_degrees: Ints, page_degrees: Ints, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Draw a simple bipartite graph with exactly these degrees.

    Args:
        user_degrees: Views of each user, positive.
        page_degrees: Views of each page, positive; a feasible pair, see `gale_ryser.nearest`.
        rng: Ordinary randomness; this is post-processing, not noise.

    Returns:
        User and page of each edge, counted from 0, grouped by user; no pair is repeated.
    """
    if int(user_degrees.sum()) >= LARGE:
        from wpinq.degrees.curveball import sample_large

        return sample_large(user_degrees, page_degrees, rng)
    users = np.repeat(np.arange(len(user_degrees), dtype=np.int32), user_degrees)
    pages = np.repeat(np.arange(len(page_degrees), dtype=np.int32), page_degrees)
    rng.shuffle(pages)
    share, done = repair(users, pages, user_degrees, len(page_degrees), rng)
    if done and share <= FEW:
        return users, pages
    if not done:
        users, pages = construct(user_degrees, page_degrees)
    return mix(users, pages, user_degrees, page_degrees, rng, trades=TRADES if done else 3 * TRADES)


def repair(
    users: Indices, pages: Indices, user_degrees: Ints, n_pages: int, rng: np.random.Generator
) -> tuple[float, bool]:
    """Swap pages between edges, in place, until no pair is repeated.

    Returns:
        The share of edges that repeated another at first, and whether none is left.
    """
    share = 0.0
    for attempt in range(PASSES):
        keys = _keys(users, pages, n_pages)
        keys.sort()
        bad = _repeats(keys, pages, user_degrees, n_pages)
        if attempt == 0:
            share = len(bad) / max(len(users), 1)
        if share > MANY:
            return share, False
        if not len(_swap(bad, users, pages, keys, n_pages=n_pages, rng=rng)):
            return share, True
    return share, False


def _keys(users: NDArray[np.integer], pages: NDArray[np.integer], n_pages: int) -> Ints:
    """One integer for each pair."""
    keys = users.astype(np.int64)
    keys *= n_pages
    keys += pages
    return keys


def _repeats(keys: Ints, pages: Indices, user_degrees: Ints, n_pages: int) -> Ints:
    """Positions of all but one of each set of equal edges, ascending; reads only the users who have some."""
    twice = np.unique(keys[1:][keys[1:] == keys[:-1]])
    owners = np.unique(twice // n_pages)
    sizes = user_degrees[owners]
    starts = np.cumsum(user_degrees)[owners] - sizes
    where = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
    found = _keys(np.repeat(owners, sizes), pages[where], n_pages)
    hit = _contains(twice, found)
    where, found = where[hit], found[hit]
    order = np.argsort(found, kind="stable")
    again = found[order][1:] == found[order][:-1]
    return np.sort(where[order][1:][again])


def _swap(bad: Ints, users: Indices, pages: Indices, keys: Ints, *, n_pages: int, rng: np.random.Generator) -> Ints:
    """Swap the pages of bad edges with those of random good ones, in rounds; returns the edges still bad.

    A swap is taken only when both new pairs are absent from `keys`, from earlier swaps and from this round's other
    proposals. Pairs that went away still count as present, which refuses a little too much and needs no second sort.
    """
    added = np.empty(0, dtype=np.int64)
    for _ in range(ROUNDS):
        if not len(bad):
            break
        partner = rng.integers(len(users), size=len(bad))
        mine, theirs = _keys(users[bad], pages[partner], n_pages), _keys(users[partner], pages[bad], n_pages)
        both = np.concatenate([mine, theirs])
        free = _once(both) & ~_contains(keys, both) & ~_contains(added, both)
        taken = free[: len(bad)] & free[len(bad) :] & _once(partner) & ~_contains(bad, partner)
        one, other = bad[taken], partner[taken]
        pages[one], pages[other] = pages[other], pages[one]
        added = np.sort(np.concatenate([added, mine[taken], theirs[taken]]))
        bad = bad[~taken]
    return bad


def _contains(ascending: Ints, values: Ints) -> NDArray[np.bool_]:
    if not len(ascending):
        return np.zeros(len(values), dtype=np.bool_)
    near = np.searchsorted(ascending, values)
    np.minimum(near, len(ascending) - 1, out=near)
    return np.equal(ascending[near], values)


def _once(values: Ints) -> NDArray[np.bool_]:
    """Which values occur once."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.equal(counts[inverse], 1)


def mix(
    users: Indices, pages: Indices, user_degrees: Ints, page_degrees: Ints, rng: np.random.Generator, *, trades: int
) -> tuple[Indices, Indices]:
    """Randomise a simple graph by rounds of trades along the side without hubs, and group it by user."""
    n_users, n_pages = len(user_degrees), len(page_degrees)
    if user_degrees.max(initial=0) <= page_degrees.max(initial=0):
        for _ in range(trades):
            users, pages = trade(users, pages, n_users, n_pages, rng)
    else:
        for _ in range(trades):
            pages, users = trade(pages, users, n_pages, n_users, rng)
    keys = _keys(users, pages, n_pages)
    keys.sort()
    user, page = np.divmod(keys, n_pages)
    return user.astype(np.int32), page.astype(np.int32)


def trade(owner: Indices, item: Indices, owners: int, items: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Pair all owners at random; within each pair deal out anew, at random, the items that only one of them has."""
    seat = rng.permutation(owners)
    seats = seat[owner]
    width = items.bit_length()
    held = (seats >> 1 << width | item) << 1 | (seats & 1)
    held.sort()
    thing, side = held >> 1, held & 1
    same = thing[1:] == thing[:-1]
    alone = np.ones(len(thing), dtype=np.bool_)
    alone[1:] &= ~same
    alone[:-1] &= ~same
    pair = thing >> width
    bits = 62 - owners.bit_length()  # at least 30, so ties between lots do not matter
    lots = (pair[alone] << bits | rng.integers(1 << bits, size=int(alone.sum()))) << 1 | side[alone]
    lots.sort()
    side[alone] = lots & 1
    owner_at = np.empty(owners, dtype=np.int32)
    owner_at[seat] = np.arange(owners, dtype=np.int32)
    return owner_at[2 * pair + side], (thing & ((1 << width) - 1)).astype(np.int32)
