"""Graphs fitted to released answers: how near they come, that they repeat, what they are written to, and bad input."""

import json

import networkx as nx
import numpy as np
import polars as pl
import pytest
from depth import deep, thin

import wpinq
from wpinq import graphs
from wpinq.core import kernels
from wpinq.errors import BudgetError, ExactnessError, ExtraError, PlanError, SourceError
from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.graphs import fit as fitting
from wpinq.postprocess.graphs.counts import Graph, joint, middle, shares
from wpinq.postprocess.graphs.fit import split_r_hat
from wpinq.postprocess.graphs.measured import Noisy, by_chance, common_share, degrees_of, shrunken, smoothed
from wpinq.postprocess.graphs.simple import SimpleChain
from wpinq.postprocess.graphs.synthetic import Summary, with_degrees
from wpinq.postprocess.graphs.target import Target

pytestmark = pytest.mark.skipif(kernels.LIB is None, reason="there are no compiled kernels")
CLUSTERED = nx.powerlaw_cluster_graph(400, 6, 0.9, seed=1)
STEPS = 200_000


def protected(edges, budget=10, **how):
    return wpinq.protect(list(edges), budget=budget, columns={"a": int, "b": int}, version="1", **how)


@pytest.fixture(scope="module")
def measured():
    """Nearly without noise: what is left is what the answers do not tell, and what the search does not find."""
    return graphs.measure(protected(CLUSTERED.edges, 10**4), epsilon=1000)


@pytest.fixture(scope="module")
def fitted(measured):
    return graphs.fit(measured, seed=1, steps=STEPS, chains=2)


def true():
    made = Graph.of(np.array(CLUSTERED.edges))
    return Summary.of(made.edges, made.at_nodes(), made.degrees)


def test_summary_is_that_of_networkx():
    found = true()
    assert found.edges == CLUSTERED.number_of_edges()
    assert found.triangles == sum(nx.triangles(CLUSTERED).values()) // 3
    assert found.clustering == pytest.approx(nx.transitivity(CLUSTERED))
    assert found.average_clustering == pytest.approx(nx.average_clustering(CLUSTERED))
    assert found.assortativity == pytest.approx(nx.degree_assortativity_coefficient(CLUSTERED))


def test_triangles_are_kept_where_degrees_alone_lose_them(fitted):
    found, seed, wanted = fitted.graph.summary(), fitted.seed_graph.summary(), true()
    assert abs(found.triangles / wanted.triangles - 1) < 0.05 < 0.3 < 1 - seed.triangles / wanted.triangles
    assert abs(found.clustering / wanted.clustering - 1) < 0.05
    assert abs(found.average_clustering / wanted.average_clustering - 1) < 0.1
    assert abs(found.assortativity - wanted.assortativity) < 0.05
    assert found.edges == pytest.approx(wanted.edges, rel=0.01)
    assert set(fitted.r_hat) == {"triangles", "clustering", "average_clustering", "assortativity"}


def test_what_it_believes_is_what_a_recount_of_the_graph_gives(fitted):
    plan = graphs.undirected(protected(fitted.graph.edges.tolist(), 10**12))
    n = fitted._chains[0].buckets
    triangles = graphs.triangle_buckets(plan).measure(epsilon=10**9)
    pairs = graphs.joint_buckets(plan).measure(epsilon=10**9)
    middle = fitted.counts[n * n : n * n + n]
    assert triangles.observe_many(range(1, n + 1)) == pytest.approx(middle, abs=1e-4)
    for i in range(n):
        for j in range(i, n):
            assert pairs.observe((i + 1, j + 1)) == pytest.approx(fitted.counts[i * n + j], abs=1e-4)


def test_the_same_seed_gives_the_same_graphs(measured, fitted):
    again = graphs.fit(measured, seed=1, steps=STEPS, chains=2)
    assert again.graph.edges.tolist() == fitted.graph.edges.tolist()
    assert again.draw(3).edges.tolist() == fitted.draw(3).edges.tolist() != fitted.draw(4).edges.tolist()
    assert fitted.draw(3).degrees.tolist() == fitted.graph.degrees.tolist()


def test_what_it_is_written_to(fitted, tmp_path):
    fitted.save(tmp_path / "g.parquet", columns=("from", "to"))
    table = pl.read_parquet(tmp_path / "g.parquet")
    assert table.columns == ["from", "to"]
    assert Graph.of(table.to_numpy()).degrees.sum() == 2 * len(fitted.graph.edges)
    assert fitted.to_networkx().number_of_edges() == len(table)
    fitted.plot(tmp_path / "g.png", truth=np.array(CLUSTERED.edges))
    assert (tmp_path / "g.png").stat().st_size > 20_000
    with pytest.raises(SourceError, match="must end in"):
        fitted.save(tmp_path / "g.xlsx")


def test_it_is_charged_as_a_whole_or_not_at_all():
    edges = protected(CLUSTERED.edges, 1)
    with pytest.raises(BudgetError):
        graphs.measure(edges, epsilon="1.1")
    for wrong in ({"joint": 1}, {"degrees": 1, "squares": 1}):
        with pytest.raises(PlanError, match="shares="):
            graphs.measure(edges, epsilon=1, shares=wrong)
    with pytest.raises(ExactnessError):
        graphs.measure(edges, epsilon=1, shares={"degrees": 0})
    with pytest.raises(PlanError, match="too wide"):
        graphs.measure(edges, epsilon="0.001")
    found = graphs.measure(edges, epsilon=1, shares={"degrees": 1, "intersect": 1})
    assert found.about["cost"] == {"epsilon": 1.0, "delta": 0.0}
    assert found.joint is None and found.intersect.scale == pytest.approx(12, abs=0.01)
    again = graphs.measure(edges, epsilon=1, shares={"degrees": 1, "intersect": 1})
    assert again.intersect.values == found.intersect.values  # the same question, and free


def test_noise_grows_with_the_edges_that_are_kept_of_a_node():
    both = [arc for a, b in CLUSTERED.edges for arc in ((a, b), (b, a))]
    nodes = protected(both, 1000, unit=wpinq.users("a", at_most=5))
    found = graphs.measure(nodes, epsilon=100, mutual=True)
    assert found.triangles.scale == pytest.approx(5 * 12 / 30, abs=0.01)
    assert found.degrees.largest <= 6
    assert found.about["protects"] != "one record"


STAR = [(0, k) for k in range(1, 30)]
BAD = {
    "nothing": [],
    "a loop": [(1, 1)],
    "two nodes": [(1, 2)],
    "two nodes, often": [(1, 2), (2, 1), (1, 2), (2, 2)],
    "a star": STAR,
    "a clique": list(nx.complete_graph(12).edges),
    "a list of arcs": [(a, b) if a % 2 else (b, a) for a, b in nx.karate_club_graph().edges],
}


@thin(4)
@pytest.mark.parametrize(("name", "epsilon"), [*((name, 10_000) for name in BAD), ("nothing", 1), ("a star", 1)])
def test_odd_graphs_are_answered(name, epsilon, tmp_path):
    found = graphs.fit(graphs.measure(protected(BAD[name], 10**5), epsilon=epsilon), seed=2, steps=3000)
    graph = found.graph
    assert len({tuple(sorted(edge)) for edge in graph.edges.tolist()}) == len(graph.edges)
    assert all(a != b for a, b in graph.edges.tolist())
    if epsilon > 1:
        wanted = Graph.of(np.array(BAD[name]).reshape(-1, 2))
        assert sorted(graph.degrees.tolist()) == sorted(wanted.degrees.tolist())
        assert graph.summary().triangles == pytest.approx(int(wanted.at_nodes().sum()) // 3, rel=0.15)
    if name == "nothing":
        found.plot(tmp_path / "odd.png", truth=np.zeros((0, 2), int))
    found.save(tmp_path / "odd.csv")
    assert found.draw(1).nodes == graph.nodes


def test_columns_that_are_no_edges_are_refused():
    three = wpinq.protect([(1, 2, 3)], budget=1, columns={"a": int, "b": int, "c": int})
    mixed = wpinq.protect([(1, "x")], budget=1, columns={"a": int, "b": str})
    for wrong, words in ((three, "two columns"), (mixed, "of one type")):
        with pytest.raises(PlanError, match=words):
            graphs.measure(wrong, epsilon=1)
        assert wrong.measure(epsilon=1) is not None  # nothing was charged before
    with pytest.raises(PlanError, match=r"graphs\.fit"):
        graphs.fit("measured")


def test_degrees_that_no_graph_has_are_lowered():
    for wanted in ([5, 1], [3], [9, 9, 9, 1], [4, 4, 4, 1, 1], [2, 2, 1], [], [7] * 8):
        made = with_degrees(wanted)
        assert made.degrees.sum() % 2 == 0
        assert np.all(np.sort(made.degrees)[::-1] <= np.array(sorted(wanted)[::-1])[: made.nodes])
    assert sorted(with_degrees([7] * 8).degrees) == [7] * 8


def test_degrees_follow_the_posterior_means():
    fit = graphs.measure(protected(CLUSTERED.edges, 10**4), epsilon=3, shares={"degrees": 1}).degrees
    assert isinstance(fit, Fit)
    found = degrees_of(fit)
    assert list(found) == sorted(found, reverse=True)
    assert found.sum() == pytest.approx(fit.records, rel=0.02)


def test_r_hat_of_chains_that_stand_apart():
    rng = np.random.default_rng(1)
    same = rng.normal(size=(4, 400))
    assert split_r_hat(same) < 1.05
    assert split_r_hat(same + np.arange(4)[:, None]) > 1.4
    assert split_r_hat(same + np.linspace(0, 5, 400)) > 1.4
    assert split_r_hat(np.ones((2, 10))) == 1


def test_answers_that_noise_swamps_are_moved_to_what_degrees_let_one_expect():
    """Few triangles at much noise: on average over draws the total is nearer than that of the answers, or of none."""
    sparse = Graph.of(np.array(nx.gnm_random_graph(600, 1500, seed=1).edges))
    degrees, rng = sparse.degrees, np.random.default_rng(1)
    mix = shares(degrees, 4)
    true, pairs = middle(sparse.at_nodes(), degrees, mix), np.maximum(degrees - 1, 0) @ mix / 2
    off = np.zeros((200, 3))
    for row in off:
        noisy = Noisy(true + rng.laplace(0, 4, 4), 4.0)
        best, unsure = shrunken(noisy, common_share(noisy, pairs) * pairs, 1.0)
        assert np.all(unsure > 0) and np.all(unsure <= noisy.scale)
        row[:] = [abs(values - true).sum() for values in (best, np.maximum(noisy.values, 0), 0 * true)]
    ours, raw, none = off.mean(axis=0)
    assert ours < 0.7 * raw and ours < none
    sure = Noisy(1000 * true, 1.0)
    assert shrunken(sure, common_share(sure, pairs) * pairs, 1.0)[0] == pytest.approx(sure.values, rel=0.001)


def test_a_total_tells_how_many_there_are_where_noise_swamps_the_buckets():
    pairs, rng = np.array([100.0, 200.0, 100.0]), np.random.default_rng(1)
    off = np.zeros((200, 2))
    for row in off:
        noisy, total = (Noisy(0.1 * true + rng.laplace(0, scale, len(true)), scale)
                        for true, scale in ((pairs, 40.0), (pairs.sum(keepdims=True), 4.0)))  # fmt: skip
        row[:] = [abs(common_share(noisy, pairs, one) - 0.1) for one in (total, None)]
    assert off[:, 0].mean() < 0.02 < off[:, 1].mean() / 2


def test_chance_is_what_random_simple_graphs_have():
    """Where degrees are wide, as d e / 2m is not: two hubs are not joined twice."""
    first = with_degrees([150] * 15 + [9] * 60 + [4] * 525)
    one = SimpleChain(first, np.random.default_rng(1), 8)
    mix, seen = shares(first.degrees, 8), []
    for _ in range(60):
        one.walk(Target(*np.zeros((3, 73)), 64), 20_000, 0.0)
        seen.append(np.triu(joint(one.edges, mix)))
    found, ends = by_chance(first.degrees, 8), first.degrees @ mix / 2
    assert (found + found.T).sum(axis=1) == pytest.approx(ends, rel=0.005)
    crude = np.triu(np.outer(ends, ends)) / ends.sum()
    crude -= np.diag(np.diag(crude)) / 2
    ours, theirs = (np.abs(guess - np.mean(seen, axis=0)).sum() for guess in (found, crude))
    assert ours < 0.03 * ends.sum() < theirs / 4, (ours, theirs)


@deep
def test_joint_degrees_that_noise_swamps_follow_those_beside_them():
    """Hubs that seek each other: nearer than the answers, than an average with chance; without noise the answers."""
    rng = np.random.default_rng(1)
    sizes = ((40, 50), (20, 70), (10, 100), (5, 200), (2, 600))
    apart = nx.disjoint_union_all([nx.random_regular_graph(degree, nodes, seed=1) for degree, nodes in sizes])
    made = SimpleChain(Graph.of(np.array(apart.edges)), rng, 6)
    made.walk(Target(*np.zeros((3, 43)), 36), 1_200, 0.0)
    mix = shares(made.degrees, 6)
    true, expected = np.triu(joint(made.edges, mix)), by_chance(made.degrees, 6)
    off = np.zeros((10, 3))
    for row in off:
        noisy = Noisy(true + np.triu(rng.laplace(0, 40, true.shape)), 40.0)
        guess, unsure = smoothed(noisy.values, 40.0, made.degrees)
        assert np.all(guess >= 0) and np.all(unsure < 60)
        row[:] = [np.abs(one - true).sum() for one in (guess, shrunken(noisy, expected, 1)[0], noisy.values)]
    ours, by_average, raw = off.mean(axis=0)
    assert ours < 0.9 * by_average and ours < 0.6 * raw
    assert smoothed(true, 0.01, made.degrees)[0] == pytest.approx(true, abs=0.5)
    louder = [true + np.triu(rng.laplace(0, 20, true.shape)) for _ in range(10)]
    left = np.mean([np.abs(smoothed(noisy, 20.0, made.degrees)[0] - true).sum() for noisy in louder])
    assert left < 0.75 * np.abs(expected - true).sum()  # 0.9 with the likeliest guess alone, which was often chance


def test_chains_go_on_until_they_agree_or_the_limit(measured, monkeypatch):
    """Chains of few steps go on to the limit where they are never near enough, and not at all where they are."""
    lengths = []
    monkeypatch.setattr(SimpleChain, "steps", 20)
    monkeypatch.setattr(SimpleChain, "least", 0)
    monkeypatch.setattr(fitting, "_agreement", lambda runs: lengths.append(len(runs[0][2])) or {"triangles": worst})
    for worst, seen in ((0.0, [16]), (9.9, [16, 32, 64, 128, 136])):
        lengths.clear()
        found = graphs.fit(measured, seed=1)
        assert lengths == seen
        assert ("not settled" in repr(found)) == (worst > 1.1)
    assert found.crowded == 0


def test_without_compiled_kernels_there_is_no_search(measured, monkeypatch):
    monkeypatch.setattr(kernels, "LIB", None)
    with pytest.raises(ExtraError, match=r"graphs\.fit\(\.\.\.\): there are no compiled kernels; install"):
        graphs.fit(measured, seed=1, steps=0)


@deep
def test_answers_by_degree_are_fitted_too():
    """JDD and TbD of the wPINQ paper: nearly without noise the graph has their weights, which degrees alone miss."""
    parts = {"degrees": 1, "joint_degrees": 1, "triangles_by_degree": 1}
    found = graphs.fit(
        graphs.measure(protected(CLUSTERED.edges, 10**6), epsilon=10**5, shares=parts), seed=1, steps=3 * STEPS
    )
    fine = found.measurements.fine
    cut, wanted = len(fine.pairs) ** 2, found._target.wanted[-fine.cells :]
    begun, ended = fine.counts(found.seed_graph), found.counts[-fine.cells :]
    for part in (slice(None, cut), slice(cut, None)):
        assert np.abs(ended - wanted)[part].sum() < 0.6 * np.abs(begun - wanted)[part].sum()
    content = json.loads(json.dumps(found.content()))
    assert set(content["noisy"]) == {"joint_degrees", "triangles_by_degree"}
    assert content["noisy"]["joint_degrees"]["degrees"] == found.measurements.joint_degrees.degrees.tolist()
    panels = found.plot().axes
    assert [panel.get_xlabel().split(",")[0] for panel in panels[3:]] == ["degrees of pairs", "degrees of triangles"]
    measured, fitted = panels[3].containers[0][0].get_ydata(), panels[3].lines[-1].get_ydata()
    assert len(fitted) > 10 and np.corrcoef(measured, fitted)[0, 1] > 0.9
