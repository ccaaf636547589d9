"""The compiled sampler on graphs small enough to know: degrees, repeats, equal chances, hubs, giving up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wpinq.degrees import curveball, gale_ryser, sampler
from wpinq.errors import InternalError


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
    check(*curveball.sample_large(users, pages, rng), users, pages)


def draws(times, draw):
    """How often each graph was drawn."""
    seen: dict[bytes, int] = {}
    for _ in range(times):
        user, page = draw()
        name = np.sort(4 * user + page).tobytes()
        seen[name] = seen.get(name, 0) + 1
    return list(seen.values())


@pytest.mark.parametrize("trading", [False, True])
def test_all_graphs_are_equally_likely(trading):
    """Chi-squared over all simple graphs of (3, 2, 2, 1), counted by brute force; false-alarm rate 10^-4."""
    degrees = np.array([3, 2, 2, 1])
    every = np.array(np.meshgrid(*[range(16)] * 4)).reshape(4, -1).T
    bits = every[:, :, None] >> np.arange(4) & 1
    count = int((np.all(bits.sum(axis=2) == degrees, axis=1) & np.all(bits.sum(axis=1) == degrees, axis=1)).sum())
    rng = np.random.default_rng(5)

    def draw():
        if not trading:
            return curveball.sample_large(degrees, degrees, rng)
        user, page = gale_ryser.construct(degrees, degrees)
        page, starts = page[np.lexsort((page, user))], np.append(0, np.cumsum(degrees))
        for _ in range(3 * sampler.TRADES):
            order = rng.permutation(4).astype(np.int32)
            curveball.trade_lists(starts, page, order, np.zeros(6, np.int32), rng)
        return np.repeat(np.arange(4), degrees), page

    seen = draws(2_000, draw)
    assert len(seen) == count > 10
    assert stats.chisquare(seen).pvalue > 1e-4


@pytest.mark.parametrize("turned", [False, True])
def test_hubs_end_where_the_other_sampler_ends(turned):
    """One item in half of all baskets: the mean size of the baskets that hold it, against 60 trades from elsewhere.

    Swapping alone is off by 0.57 (see `test_synthesis_sampling`); within 0.3 is four standard deviations of the
    difference between two draws: false-alarm rate 10^-4, seed fixed.
    """
    rng = np.random.default_rng(21)
    baskets = down(rng.geometric(1 / 6, 6000))
    items = np.append([3000], gale_ryser.equal(int(baskets.sum()) - 3000, 2000))
    basket, item = sampler.mix(*sampler.construct(baskets, items), baskets, items, rng, trades=60)
    sides = (items, baskets) if turned else (baskets, items)
    drawn = curveball.sample_large(*sides, rng)
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
        check(*curveball.sample_large(users, pages, rng), users, pages)


def test_lists_of_any_length_are_sorted_and_repeats_counted():
    rng = np.random.default_rng(6)
    sizes = np.array([1, 5, 1_000, 40, 2])
    starts, items = np.append(0, np.cumsum(sizes)), rng.integers(0, 50, sizes.sum()).astype(np.int32)
    wanted = [np.sort(part) for part in np.split(items, starts[1:-1])]
    assert curveball.arrange(starts, items) == sum(len(part) - len(set(part.tolist())) for part in wanted)
    assert np.array_equal(items, np.concatenate(wanted))


def test_many_edges_take_this_way_and_a_seed_repeats(monkeypatch):
    degrees = gale_ryser.equal(2_000, 300)
    monkeypatch.setattr(sampler, "LARGE", 2_000)
    calls = []
    real = curveball.sample_large
    monkeypatch.setattr(curveball, "sample_large", lambda *three: (calls.append(1), real(*three))[1])
    one, two = (sampler.sample(degrees, degrees, np.random.default_rng(7)) for _ in range(2))
    assert len(calls) == 2 and np.array_equal(one[1], two[1])


def test_two_hubs_that_would_meet_often_are_swapped_apart():
    """A quarter of the hub's views repeat one pair; there is room elsewhere, so nothing is given up."""
    degrees = np.append([3_000], np.ones(9_000, np.int64))
    starts, items = np.append(0, np.cumsum(degrees)), np.repeat(np.arange(9_001, dtype=np.int32), degrees)
    rng = np.random.default_rng(8)
    rng.shuffle(items)
    assert curveball.arrange(starts, items) > 500
    assert curveball.untangle(starts, items, rng, curveball.STEPS * len(items), curveball.MOVES)
    check(np.repeat(np.arange(9_001), degrees), items, degrees, degrees)
    assert not curveball.untangle(np.array([0, 2]), np.zeros(2, np.int32), rng, 50, curveball.MOVES)


def test_degrees_that_no_graph_has_are_not_built():
    with pytest.raises(InternalError):
        gale_ryser.construct(np.array([4, 1, 1]), np.array([3, 3]))
