"""The exact path against networkx on small grids and a plain dynamic program on middle ones, compiled and not."""

from __future__ import annotations

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from depth import often, thin
from hypothesis import given, settings
from hypothesis import strategies as st

from wpinq.core import kernels
from wpinq.errors import PlanError
from wpinq.postprocess.degrees import path
from wpinq.postprocess.degrees.path import lower, upper

SCALES = [(1, 1), (10, 10), (1, 3), (3, 1), (2, 3), (10, 7), (1, 100), (100, 1)]


def fractions(scales):
    return Fraction(scales[0]), Fraction(scales[1])


def cost(v, h, heights, scales):
    """The objective, in fractions."""
    rows = [sum(1 for y in heights if y > j) for j in range(len(h))]
    left = sum(abs(Fraction(float(a)) - int(y)) for a, y in zip(v, heights, strict=True))
    right = sum(abs(Fraction(float(a)) - x) for a, x in zip(h, rows, strict=True))
    return left / scales[0] + right / scales[1]


def dijkstra(v, h, scales, power=1):
    """The least cost of a monotone path from (0, rows) to (columns, 0), by networkx."""
    graph = nx.DiGraph()
    for x in range(len(v) + 1):
        for y in range(len(h) + 1):
            if x < len(v):
                graph.add_edge((x, y), (x + 1, y), weight=abs(Fraction(float(v[x])) - y) ** power / scales[0] ** power)
            if y > 0:
                step = abs(Fraction(float(h[y - 1])) - x) ** power / scales[1] ** power
                graph.add_edge((x, y), (x, y - 1), weight=step)
    return nx.dijkstra_path_length(graph, (0, len(h)), (len(v), 0), weight="weight")


def plain(v, h, e1, e2):
    """The least cost by the O(columns x rows) dynamic program, whole values only."""
    rows = np.arange(len(h) + 1)
    least = np.zeros(len(h) + 1)
    for c, value in enumerate(v):
        inside = e2 * np.concatenate([[0], np.cumsum(np.abs(h - c - 1) - np.abs(h - c))])
        least = e1 * np.abs(value - rows) + inside + np.minimum.accumulate(least[::-1])[::-1]
    return least.min() + e2 * np.abs(h).sum()


def is_staircase(heights, rows):
    return np.all(np.diff(heights) <= 0) and heights.min() >= 0 and heights.max() <= rows


@pytest.fixture(params=["plain", "plain, narrowed", "compiled", "compiled, narrowed"])
def way(request, monkeypatch):
    if "plain" in request.param:
        monkeypatch.setattr(kernels, "LIB", None)
    elif kernels.LIB is None:
        pytest.skip("there are no compiled kernels")
    if "narrowed" in request.param:
        monkeypatch.setattr(path, "MANY_CELLS", -1)
    return request.param


def small(rng, kind):
    columns, rows = rng.integers(1, 8, 2)
    v, h = rng.integers(-3, rows + 4, columns), rng.integers(-3, columns + 4, rows)
    if kind == "sorted":
        v, h = np.sort(v)[::-1], np.sort(h)[::-1]
    if kind == "real":
        v, h = v + rng.integers(0, 16, columns) / 16, h + rng.integers(0, 16, rows) / 16
    return v, h


@thin(6)
@pytest.mark.parametrize("kind", ["wild", "sorted", "real"])
@pytest.mark.parametrize("scales", SCALES, ids=str)
def test_agrees_with_dijkstra_on_small_grids(scales, kind):
    rng = np.random.default_rng(7)
    scales = fractions(scales)
    for _ in range(60):
        v, h = small(rng, kind)
        heights = path.shortest_path(v, h, scales)
        assert is_staircase(heights, len(h))
        assert cost(v, h, heights, scales) == dijkstra(v, h, scales)


@pytest.mark.parametrize("scales", SCALES, ids=str)
def test_both_ways_agree_with_a_plain_program(scales, way):
    rng = np.random.default_rng(11)
    scales = fractions(scales)
    e1, e2 = path.weights(scales, 30)
    for _ in range(12):
        columns, rows = (int(n) for n in rng.integers(1, 120, 2))
        truth = np.sort(rng.geometric(0.03, columns))[::-1].clip(0, rows)
        v = truth + rng.integers(-9, 10, columns)
        h = path.conjugate(truth, rows) + rng.integers(-9, 10, rows)
        heights = path.shortest_path(v, h, scales)
        assert is_staircase(heights, rows)
        rest = h - path.conjugate(heights, rows)
        assert e1 * np.abs(v - heights).sum() + e2 * np.abs(rest).sum() == plain(v, h, e1, e2)


def test_corridor_holds_the_lowest_and_the_highest_bound_of_the_definition():
    rng = np.random.default_rng(3)
    for _ in range(2_000):
        v, h = small(rng, "wild")
        lo, hi = np.zeros((2, len(v)), np.int64)
        lower((v, h), 1, lo)
        upper((v, h), 1, hi)
        positive = [(c, j) for c in range(len(v)) for j in range(len(h)) if j + 1 > v[c] and c + 1 > h[j]]
        negative = [(c, j) for c in range(len(v)) for j in range(len(h)) if j < v[c] and c < h[j]]
        top = [max((j + 1 for k, j in negative if k >= c), default=0) for c in range(len(v))]
        bottom = [min((j for k, j in positive if k <= c), default=len(h)) for c in range(len(v))]
        assert hi.tolist() == top
        assert lo.tolist() == bottom


def test_of_equally_near_staircases_one_between_the_lowest_and_the_highest_is_taken():
    rng = np.random.default_rng(17)
    ones = (Fraction(1), Fraction(1))
    ties, errors = 0, []
    for _ in range(300):
        v, h = rng.integers(-1, 5, 4), rng.integers(-1, 5, 4)
        lo, hi, _ = path.corridor(v, h, (1, 1, 1))
        every = list(itertools.product(*(range(a, b + 1) for a, b in zip(lo, hi, strict=True))))
        every = [y for y in every if is_staircase(np.array(y), 4)]
        costs = [cost(v, h, y, ones) for y in every]
        best = np.array([y for y, price in zip(every, costs, strict=True) if price == min(costs)])
        ties += len(best) > 1
        answer = path.shortest_path(v, h, ones)
        assert answer.tolist() in best.tolist()
        middle = (best.min(axis=0) + best.max(axis=0)) // 2
        errors.append([np.abs(one - middle).sum() for one in (answer, best.min(axis=0), best.max(axis=0))])
    assert ties > 20
    mean = np.mean(errors, axis=0)
    assert mean[0] < min(mean[1:]), mean


EDGES = [
    ([0], [0]), ([5], [5]), ([-5], [-5]), ([10**18], [-(10**18)]), ([2**63 - 1], [-(2**63)]),
    ([0] * 9, [0] * 5), ([-4] * 9, [-4] * 5), ([9] * 9, [9] * 9), ([3] * 6, [3] * 6),
    (list(range(9)), list(range(9))), ([1e300, -1e300, 0.5], [1e300, 0.5]), ([1, 1, 1], [3, 0, 0, 0, 0]),
]  # fmt: skip


@pytest.mark.parametrize("scales", [(1, 1), (1, 3), (3, 1)], ids=str)
@pytest.mark.parametrize("number", range(len(EDGES)))
def test_edges(number, scales, way):
    v, h = (np.array(values) for values in EDGES[number])
    scales = fractions(scales)
    heights = path.shortest_path(v, h, scales)
    assert is_staircase(heights, len(h))
    assert cost(v, h, heights, scales) == dijkstra(v, h, scales)


@given(st.lists(st.integers(-5, 40), min_size=1, max_size=40), st.lists(st.integers(-5, 40), min_size=1, max_size=40))
@settings(max_examples=often(200), deadline=None)
def test_swapping_the_curves_swaps_the_answer_up_to_ties(v, h):
    ones = (Fraction(1), Fraction(1))
    heights, turned = path.shortest_path(v, h, ones), path.shortest_path(h, v, ones)
    assert cost(v, h, heights, ones) == cost(h, v, turned, ones)
    assert np.array_equal(path.conjugate(path.conjugate(heights, len(h)), len(v)), heights)


def test_curves_that_contradict_each_other_are_refused_when_they_do_not_fit(monkeypatch):
    monkeypatch.setattr(path, "MOST_CELLS", 100)
    with pytest.raises(PlanError, match="contradict"):
        path.shortest_path(np.arange(50), np.arange(50), (Fraction(1), Fraction(2)))


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("scales", [(1, 3), (3, 1), (2, 3), (1, 30)], ids=str)
def test_narrowing_settles_cells_and_costs_nothing(scales, real, monkeypatch):
    """With blocks so short that many are skipped."""
    monkeypatch.setattr(path, "BLOCK", 3)
    rng = np.random.default_rng(13)
    scales, saved = fractions(scales), 0
    kept = path.narrowed
    for _ in range(25):
        truth = np.sort(rng.geometric(0.2, rng.integers(40, 90)))[::-1]
        v, h = truth + rng.integers(-9, 10, len(truth)), path.conjugate(truth, 30) + rng.integers(-9, 10, 30)
        if real:
            v, h = v + rng.integers(0, 8, len(v)) / 8, h + rng.integers(0, 8, len(h)) / 8
        costs = []
        for skip in (False, True):
            cells = []
            monkeypatch.setattr(path, "MANY_CELLS", -1)
            monkeypatch.setattr(path, "narrowed", (lambda *_: None) if skip else kept)
            found = path.corridor
            monkeypatch.setattr(path, "corridor", lambda *a, f=found, n=cells: n.append(f(*a)[2]) or f(*a))
            costs.append(cost(v, h, path.shortest_path(v, h, scales), scales))
            monkeypatch.setattr(path, "corridor", found)
            saved += cells[0] if skip else -cells[0]
        assert costs[0] == costs[1]
    assert saved > 1_000
