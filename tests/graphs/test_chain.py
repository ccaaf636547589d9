"""The chain of swaps against its plain Python, the queries that it looks to answer, and its own law."""

from collections import Counter
from fractions import Fraction
from itertools import combinations

import edge_swaps
import networkx as nx
import numpy as np
import pytest
from depth import deep, thin
from edge_swaps import off
from strategies import expected, protected

from wpinq import graphs
from wpinq.core import kernels
from wpinq.postprocess.graphs import simple
from wpinq.postprocess.graphs.counts import Fine, Graph, buckets_of, triple_cells
from wpinq.postprocess.graphs.simple import ONE, SimpleChain
from wpinq.postprocess.graphs.target import Target

pytestmark = pytest.mark.skipif(kernels.LIB is None, reason="there are no compiled kernels")


def walker(graph, seed=0, fine=lambda degrees: Fine()):
    made = Graph.of(np.array(graph.edges))
    return SimpleChain(made, np.random.default_rng(seed), buckets_of(made.degrees), fine(made.degrees))


@pytest.fixture
def plain(monkeypatch):
    """The loop in Python, as a function that makes chains run it."""

    def use():
        monkeypatch.setattr(kernels, "LIB", None)
        monkeypatch.setattr(simple, "walk", edge_swaps.walk)

    return use


def fine(degrees):
    """All degrees but two, in pairs; and all but the largest, in triples."""
    told = np.unique(degrees)
    return Fine(np.delete(told, 1)[:-1], told[:-1])


def target(one, scale=0.5, seed=0, slack=0.0):
    counts = one.counts()
    wanted = np.abs(counts * np.random.default_rng(seed).uniform(0.5, 3, len(counts)))
    return Target(wanted, np.full(len(counts), scale), np.full(len(counts), slack), one.buckets**2)


def test_counts_are_those_of_networkx():
    g = nx.powerlaw_cluster_graph(300, 5, 0.7, seed=1)
    one = walker(g)
    assert one.triangles.tolist() == list(nx.triangles(g).values())
    around = {(a, b): sum(-(-ONE // (2 * g.degree[c])) for c in nx.common_neighbors(g, a, b)) for a, b in g.edges}
    assert one.graph.closing(one._nodes[0]).tolist() == [around[tuple(edge)] for edge in one.edges.tolist()]


@pytest.mark.parametrize("seed", range(4))
def test_compiled_as_in_python(seed, plain):
    found = []
    cells = (lambda _: Fine(), fine, lambda degrees: Fine(np.unique(degrees)),
             lambda degrees: Fine(triples=np.unique(degrees)[:6]))[seed]  # fmt: skip
    for choose in (lambda: None, plain):
        choose()
        one = walker(nx.powerlaw_cluster_graph(60, 4, 0.5, seed=seed), seed, cells)
        taken = one.walk(target(one, 20.0 * (seed or 0.1), slack=0.5 * (seed % 2)), 1500)
        found.append((taken, one.edges.tobytes(), one.triangles.tobytes(), one._crowd.tobytes(), one.rng.random()))
    assert found[0] == found[1]
    assert taken > 20


@deep
def test_what_the_chain_believes_is_what_the_queries_count():
    """The definitions of the queries, with fractions, on the graph after a run: all counts within their rounding."""
    one = walker(nx.powerlaw_cluster_graph(40, 3, 0.3, seed=2))
    before = one.edges.tolist()
    one.walk(target(one), 20_000)
    assert one.edges.tolist() != before
    assert not one.crowded
    edges = one.edges.tolist()
    arcs = {arc: Fraction(1) for a, b in edges for arc in ((a, b), (b, a))}
    plan = graphs.simple(protected((), src="integer", dst="integer"))
    counts, n = one.counts(), one.buckets
    by_ends = {(i + 1, j + 1): counts[i * n + j] for i in range(n) for j in range(i, n)}
    by_middle = {(i + 1,): counts[n * n + i] for i in range(n)}
    for query, believed in (
        (graphs.joint_buckets, by_ends),
        (graphs.triangle_buckets, by_middle),
        (graphs.triangles_by_intersect, {("triangles",): counts[-1]}),
    ):
        found = expected(query(plan), arcs)
        assert all(abs(float(found.get(bin_, 0)) - value) < 1e-6 for bin_, value in believed.items())
        assert set(found) <= set(believed)
    assert one.triangles.tolist() == [nx.triangles(nx.Graph(edges))[node] for node in range(one.graph.nodes)]


@deep
def test_what_the_chain_believes_of_degrees_is_what_the_queries_count():
    """JDD and TbD as their queries define them, and the chain's own differences after its swaps."""
    one = walker(nx.powerlaw_cluster_graph(40, 3, 0.6, seed=2), fine=fine)
    asked, weigh, arcs = one.fine, target(one, 20.0), {}
    one.walk(weigh, 4_000)
    for a, b in one.edges.tolist():
        arcs[a, b] = arcs[b, a] = Fraction(1)
    plan = graphs.simple(protected((), src="integer", dst="integer"))
    cells = one.counts()[one.buckets**2 + one.buckets + 1 :]
    pairs = {(int(a), int(b)): cells[i * len(asked.pairs) + j]
             for i, a in enumerate(asked.pairs) for j, b in enumerate(asked.pairs)}  # fmt: skip
    triples = dict(zip(map(tuple, asked.triples[triple_cells(len(asked.triples))].tolist()),
                       cells[len(asked.pairs) ** 2 :], strict=True))  # fmt: skip
    for query, believed in ((graphs.joint_degrees, pairs), (graphs.triangles_by_degree, triples)):
        found = expected(query(plan), arcs)
        assert sum(value > 0 for value in believed.values()) > 3
        assert all(abs(float(found.get(bin_, 0)) - value) < 1e-6 for bin_, value in believed.items())


@pytest.mark.parametrize("compiled", [True, False])
def test_differences_by_degree_follow_each_swap(compiled, plain):
    """What the chain has at the end, step by step, is the count of the graph that it ends with."""
    if not compiled:
        plain()
    one = walker(nx.powerlaw_cluster_graph(60, 4, 0.6, seed=3), 3, fine)
    weigh = target(one, 0.1)
    assert one.walk(weigh, 1500) > 100
    assert one.gap == pytest.approx(one.counts() - weigh.wanted, abs=1e-9)


def test_degrees_stay_and_so_does_the_room_at_each_edge():
    one = walker(nx.powerlaw_cluster_graph(200, 6, 0.5, seed=3))
    degrees = one.degrees.copy()
    one.walk(target(one), 30_000)
    after = Graph(one.edges, one.graph.nodes)
    assert after.degrees.tolist() == degrees.tolist()
    assert len({tuple(edge) for edge in one.edges.tolist()}) == len(one.edges)
    assert after.at_nodes().tolist() == one.triangles.tolist()
    assert after.closing(one._nodes[0]).max() <= ONE


def all_graphs(degrees):
    """All simple graphs with these degrees, as sets of edges."""
    pairs = list(combinations(range(len(degrees)), 2))
    for chosen in combinations(pairs, sum(degrees) // 2):
        if Counter(node for pair in chosen for node in pair) == Counter(dict(enumerate(degrees))):
            yield frozenset(chosen)


@thin(3)
@pytest.mark.parametrize(("wedges", "slack"), [(0.0, 0.0), (0.5, 0.0), (0.5, 1.5)])
def test_the_chain_tends_to_the_likelihood(wedges, slack):
    """How often it is at each graph with these degrees, by chi square; red by chance less than once in 10^6."""
    degrees = [3, 2, 2, 2, 2, 1]
    every = list(all_graphs(degrees))
    one = walker(nx.havel_hakimi_graph(degrees))
    order = np.argsort(-one.degrees, kind="stable")
    name = np.empty(6, int)
    name[order] = range(6)
    weigh = Target(
        one.counts() * 0,
        np.where(np.arange(len(one.counts())) == len(one.counts()) - 1, 1.0, 0.0),
        np.full(len(one.counts()), slack),
        one.buckets**2,
    )

    def whole(edges):
        graph = nx.Graph(list(edges))
        return sum(found / degrees[node] for node, found in nx.triangles(graph).items())

    law = np.exp([-off(whole(edges), slack) for edges in every])
    law /= law.sum()
    seen = Counter()
    for _ in range(8_000):
        one.walk(weigh, 12, wedges)
        seen[frozenset(tuple(sorted((int(name[a]), int(name[b])))) for a, b in one.edges)] += 1
    assert set(seen) <= set(every)
    found = np.array([seen[edges] for edges in every])
    chi = ((found - 8_000 * law) ** 2 / (8_000 * law)).sum()
    assert chi < len(every) + 8 * np.sqrt(2 * len(every)) + 40
