"""The squared-cost path against networkx, and pooling against scipy's isotonic regression."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from wpinq.postprocess.degrees import reconcile
from wpinq.postprocess.degrees.path import conjugate


def cost(v, h, heights, scales):
    rows = conjugate(heights, len(h))
    return ((v - heights) ** 2).sum() / scales[0] ** 2 + ((h - rows) ** 2).sum() / scales[1] ** 2


def dijkstra(v, h, scales):
    graph = nx.DiGraph()
    for x in range(len(v) + 1):
        for y in range(len(h) + 1):
            if x < len(v):
                graph.add_edge((x, y), (x + 1, y), weight=(v[x] - y) ** 2 / scales[0] ** 2)
            if y > 0:
                graph.add_edge((x, y), (x, y - 1), weight=(h[y - 1] - x) ** 2 / scales[1] ** 2)
    return nx.dijkstra_path_length(graph, (0, len(h)), (len(v), 0), weight="weight")


@pytest.mark.parametrize("scales", [(1, 1), (1, 3), (3, 1), (7, 10)], ids=str)
@pytest.mark.parametrize("real", [False, True])
def test_agrees_with_dijkstra_on_small_grids(scales, real):
    rng = np.random.default_rng(5)
    for _ in range(80):
        columns, rows = rng.integers(1, 9, 2)
        v = rng.integers(-3, rows + 4, columns) + (rng.random(columns) if real else 0)
        h = rng.integers(-3, columns + 4, rows) + (rng.random(rows) if real else 0)
        heights = reconcile.squares_path(v, h, (Fraction(scales[0]), Fraction(scales[1])))
        assert np.all(np.diff(heights) <= 0) and heights[0] <= rows and heights[-1] >= 0
        assert cost(v, h, heights, scales) == pytest.approx(dijkstra(v, h, scales), rel=1e-9)


def test_pooling_agrees_with_scipy():
    rng = np.random.default_rng(6)
    for size in (1, 2, 3, 50, 3_000):
        values = rng.normal(size=size).cumsum() + 5 * rng.normal(size=size)
        assert np.allclose(reconcile.nondecreasing(values), isotonic_regression(values).x)
