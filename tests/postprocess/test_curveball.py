"""The loops of the sampler: degrees, repeats, hubs against another way to trade, giving up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wpinq.errors import InternalError
from wpinq.postprocess.degrees.synthesis import gale_ryser, sampler


def down(values):
    return np.array(sorted((v for v in values if v > 0), reverse=True), dtype=np.int64)


def check(user, page, users, pages):
    """Exact degrees, no pair twice, grouped by user."""
    assert np.array_equal(np.bincount(user, minlength=len(users)), users)
    assert np.array_equal(np.bincount(page, minlength=len(pages)), pages)
    keys = user.astype(np.int64) * len(pages) + page
    assert np.all(np.diff(keys) > 0)


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.floats(0.03, 1), st.integers(0, 2**31))
def test_feasible_degrees_are_exact_and_no_pair_is_repeated(tall, wide, density, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.random((tall, wide)) < density * rng.random(wide)
    matrix[0, 0] = True
    users, pages = down(matrix.sum(axis=1)), down(matrix.sum(axis=0))
    check(*sampler.sample(users, pages, rng), users, pages)


def trade(owner, item, owners, items, rng):
    """A round of trades by sorting: owners in random pairs, and in each pair the items of one only by random lots."""
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
    lots = (pair[alone] << 40 | rng.integers(1 << 40, size=int(alone.sum()))) << 1 | side[alone]
    lots.sort()
    side[alone] = lots & 1
    owner_at = np.empty(owners, dtype=np.int32)
    owner_at[seat] = np.arange(owners, dtype=np.int32)
    return owner_at[2 * pair + side], (thing & ((1 << width) - 1)).astype(np.int32)


@pytest.mark.parametrize("turned", [False, True])
def test_hubs_end_where_another_way_to_trade_ends(turned):
    """One item in half of all baskets: the mean size of the baskets that hold it, against 60 trades from elsewhere.

    Swapping alone is off by 0.57 (see `test_synthesis_sampling`); within 0.3 is four standard deviations of the
    difference between two draws: false-alarm rate 10^-4, seed fixed.
    """
    rng = np.random.default_rng(21)
    baskets = down(rng.geometric(1 / 6, 6000))
    items = np.append([3000], gale_ryser.equal(int(baskets.sum()) - 3000, 2000))
    basket, item = gale_ryser.construct(baskets, items)
    for _ in range(60):
        basket, item = trade(basket, item, len(baskets), len(items), rng)
    sides = (items, baskets) if turned else (baskets, items)
    drawn = sampler.sample(*sides, rng)
    check(*drawn, *sides)
    mine, its = drawn[::-1] if turned else drawn
    assert abs(baskets[mine[its == 0]].mean() - baskets[basket[item == 0]].mean()) < 0.3


@pytest.mark.parametrize("turned", [False, True])
def test_where_swapping_cannot_end_it_gives_up_and_builds(turned):
    """A page that everybody views, and a nearly full matrix: bounded work, exact degrees."""
    matrix = np.random.default_rng(1).random((300, 200)) < 0.97
    full = down(matrix.sum(axis=1)), down(matrix.sum(axis=0))
    for sides in ((np.full(4000, 2), np.append([4000], np.ones(4000, np.int64))), full):
        users, pages = sides[::-1] if turned else sides
        rng = np.random.default_rng(3)
        check(*sampler.sample(users, pages, rng), users, pages)


def test_lists_of_any_length_are_sorted_and_repeats_counted():
    rng = np.random.default_rng(6)
    sizes = np.array([1, 5, 1_000, 40, 2])
    starts, items = np.append(0, np.cumsum(sizes)), rng.integers(0, 50, sizes.sum()).astype(np.int32)
    wanted = [np.sort(part) for part in np.split(items, starts[1:-1])]
    assert sampler.arrange(starts, items) == sum(len(part) - len(set(part.tolist())) for part in wanted)
    assert np.array_equal(items, np.concatenate(wanted))


def test_two_hubs_that_would_meet_often_are_swapped_apart():
    """A quarter of the hub's views repeat one pair; there is room elsewhere, so nothing is given up."""
    degrees = np.append([3_000], np.ones(9_000, np.int64))
    starts, items = np.append(0, np.cumsum(degrees)), np.repeat(np.arange(9_001, dtype=np.int32), degrees)
    rng = np.random.default_rng(8)
    rng.shuffle(items)
    assert sampler.arrange(starts, items) > 500
    assert sampler.untangle(starts, items, rng, sampler.STEPS * len(items), sampler.MOVES)
    check(np.repeat(np.arange(9_001), degrees), items, degrees, degrees)
    assert not sampler.untangle(np.array([0, 2]), np.zeros(2, np.int32), rng, 50, sampler.MOVES)


def test_degrees_that_no_graph_has_are_not_built():
    with pytest.raises(InternalError):
        gale_ryser.construct(np.array([4, 1, 1]), np.array([3, 3]))
