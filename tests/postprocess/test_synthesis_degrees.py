"""Feasible pairs of degrees: Gale-Ryser against networkx and brute force, nearest pairs, and construction."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wpinq.errors import InternalError
from wpinq.postprocess.degrees.synthesis import gale_ryser


def down(values):
    return np.array(sorted((v for v in values if v > 0), reverse=True), dtype=np.int64)


degrees = st.lists(st.integers(1, 9), min_size=1, max_size=9).map(down)


def feasible(users, pages) -> bool:
    """networkx's verdict: Havel-Hakimi finds a simple bipartite graph, or it does not."""
    try:
        graph = nx.bipartite.havel_hakimi_graph(users.tolist(), pages.tolist(), create_using=nx.Graph)
    except nx.NetworkXException:
        return False
    # it silently drops what it cannot place, so look at what it built
    built = [degree for _, degree in graph.degree]
    return built == [*users.tolist(), *pages.tolist()]


def partitions(total: int, largest: int):
    """Decreasing sequences with this sum."""
    if total == 0:
        yield []
    for first in range(min(total, largest), 0, -1):
        for rest in partitions(total - first, first):
            yield [first, *rest]


@given(degrees)
def test_conjugate_is_an_involution_and_keeps_the_sum(one):
    other = gale_ryser.conjugate(one)
    assert other.tolist() == [sum(d >= k for d in one) for k in range(1, one.max() + 1)]
    assert np.array_equal(gale_ryser.conjugate(other), one)


@given(degrees, st.integers(0, 10**12))
def test_rescaling_moves_no_view_twice(one, total):
    new = gale_ryser.rescale(one, total)
    assert new.sum() == total
    assert (np.diff(new) <= 0).all()
    assert (new > 0).all()
    if total >= len(one):
        assert len(new) == len(one)
        if one.max() > 1:
            assert np.abs(new - one).sum() == abs(total - one.sum())


def test_rescaling_enormous_sums_does_not_overflow():
    new = gale_ryser.rescale(np.array([3 * 10**12, 10**12]), 4 * 10**9)
    assert new.sum() == 4 * 10**9
    assert abs(new[0] - 3 * 10**9) <= 1


@given(degrees, degrees)
def test_nearest_agrees_with_networkx_about_what_is_feasible(users, pages):
    users = gale_ryser.rescale(users, int(pages.sum()))
    new, moved = gale_ryser.nearest(users, pages)
    assert feasible(users, pages) == (moved == 0)
    assert feasible(new, pages)
    length = max(len(new), len(users))
    gap = np.abs(np.pad(new, (0, length - len(new))) - np.pad(users, (0, length - len(users)))).sum()
    assert gap == 2 * moved
    assert (np.diff(new) <= 0).all()


@pytest.mark.parametrize("total", [7, 13])
def test_no_feasible_pair_is_nearer(total):
    """Every pair of partitions of a small total, against every feasible one; at 13 the excess can have two humps."""
    every = [np.array(one) for one in partitions(total, total)]
    for pages in every:
        limit = np.cumsum(np.pad(gale_ryser.conjugate(pages), (0, total)))[:total]
        padded = np.array([np.pad(one, (0, total - len(one))) for one in every])
        good = padded[(np.cumsum(padded, axis=1) <= limit).all(axis=1)]
        for users in padded:
            least = np.abs(good - users).sum(axis=1).min()
            assert 2 * gale_ryser.nearest(users[users > 0], pages)[1] == least


@given(degrees, degrees)
def test_construction_has_the_degrees_and_repeats_nothing(users, pages):
    users, _ = gale_ryser.nearest(gale_ryser.rescale(users, int(pages.sum())), pages)
    user, page = gale_ryser.construct(users, pages)
    assert np.array_equal(np.bincount(user), users)
    assert np.array_equal(np.bincount(page), pages)
    assert len(set(zip(user.tolist(), page.tolist(), strict=True))) == len(user)


@pytest.mark.parametrize(("users", "pages"), [([4, 1, 1], [3, 3]), ([3, 3, 1, 1], [4, 4])])
def test_construction_refuses_what_cannot_be(users, pages):
    assert not feasible(down(users), down(pages))
    with pytest.raises(InternalError):
        gale_ryser.construct(down(users), down(pages))
