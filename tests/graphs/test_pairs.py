"""Bipartite graphs: the queries by their definition, what is charged, and how near a fitted graph comes."""

from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import thin
from strategies import expected, protected, run_flow, same

import wpinq
from wpinq import graphs
from wpinq.core.plan.stability import paths
from wpinq.errors import BudgetError, ExactnessError, PlanError, SourceError
from wpinq.graphs.bipartite import SLICES
from wpinq.postprocess.graphs.synthetic import pairs_with_degrees
from wpinq.testing import check_stability, evaluate

RNG = np.random.default_rng(1)
TASTES = sorted({
    (user, 10 * (user % 5) + int(item)) for user in range(600) for item in RNG.choice(10, RNG.integers(1, 6))
})  # fmt: skip
"""Five tastes of ten items each: people of one have many in common, and by chance they would have few."""
STEPS = 300_000


def shares(degree):
    """Of the numbers 1 to d, how many have i binary digits, by i."""
    return Counter(number.bit_length() for number in range(1, degree + 1))


def close(found, wanted):
    assert set(found) == set(wanted)
    assert all(abs(found[bin_] - weight) < weight / 10**6 for bin_, weight in wanted.items())


def plan(records=()):
    return graphs.pairs(protected(records, left="integer", right="integer"))


@pytest.fixture(params=[1, 2])
def pairs(request):
    rng = np.random.default_rng(request.param)
    return sorted({(int(a), int(b)) for a, b in zip(rng.integers(9, size=40), rng.integers(6, size=40), strict=True)})


def degrees(pairs):
    return [
        {node: sum(pair[side] == node for pair in pairs) for node in {pair[side] for pair in pairs}} for side in (0, 1)
    ]


def test_pair_buckets(pairs):
    left, right = degrees(pairs)
    wanted = defaultdict(Fraction)
    for u, q in pairs:
        for i, one in shares(left[u]).items():
            for j, two in shares(right[q]).items():
                wanted[i, j] += Fraction(one * two, 4 * left[u] * right[q])
    close(expected(graphs.pair_buckets(plan()), dict.fromkeys(pairs, Fraction(1))), wanted)


def test_butterfly_buckets(pairs):
    left, right = degrees(pairs)
    fans = {q: {u for u, p in pairs if p == q} for q in right}
    shared = {(p, q): sum(Fraction(1, 2 * left[u]) for u in fans[p] & fans[q]) for p in right for q in right if p != q}
    whole = {q: sum(shared[p, q] for p in right if p != q) for q in right}
    wanted = defaultdict(Fraction)
    for (q, _), weight in shared.items():
        begin = Fraction(0)
        for k, thick in enumerate(SLICES, 1):
            part = min(max(weight - begin, Fraction(0)), thick)
            begin += thick
            for i, one in shares(right[q]).items() if part else ():
                wanted[i, k] += part * one / (whole[q] + right[q])
    assert any(k > 2 for _, k in wanted)
    close(expected(graphs.butterfly_buckets(plan()), dict.fromkeys(pairs, Fraction(1))), wanted)


@pytest.mark.parametrize(("query", "uses"), [("pair_buckets", 4), ("butterfly_buckets", 3)])
def test_uses_engine_and_neighbours(query, uses, pairs):
    made = getattr(graphs, query)(plan(pairs))
    (found,) = paths(made._node).values()
    assert uses <= found < uses * (1 + Fraction(1, 2**12))
    assert same(run_flow(made, shards=2), made._node, expected(made, dict.fromkeys(pairs, Fraction(1))))
    check_stability(getattr(graphs, query)(plan()), examples=10)


def test_a_pair_counts_once_and_sides_may_have_other_types():
    mixed = graphs.pairs(protected(user="text", page="integer"))
    assert evaluate(mixed, [("ann", 1), ("ann", 1), ("bob", 1)]) == {("ann", 1): 1, ("bob", 1): 1}
    with pytest.raises(PlanError, match="two columns, left and right; found src"):
        graphs.pairs(protected(src="text"))


def listed(records, budget=10, **how):
    return wpinq.protect(list(records), budget=budget, columns={"user": int, "item": int}, version="1", **how)


@pytest.fixture(scope="module")
def measured():
    """Nearly without noise: what is left is what the answers do not tell, and what the search does not find."""
    return graphs.measure_pairs(listed(TASTES, 10**4), epsilon=1000)


@pytest.fixture(scope="module")
def fitted(measured):
    return graphs.fit(measured, seed=1, steps=STEPS, chains=2)


def test_butterflies_are_kept_where_degrees_alone_lose_them(fitted):
    found, chance = fitted.graph.summary(), fitted.random_graph.summary()
    wanted = graphs.PairSummary.of(graphs.PairGraph.of(TASTES))
    assert abs(found.butterflies / wanted.butterflies - 1) < 0.1 < 0.5 < 1 - chance.butterflies / wanted.butterflies
    assert abs(found.clustering / wanted.clustering - 1) < 0.1
    assert found.pairs == pytest.approx(wanted.pairs, rel=0.01)
    assert set(fitted.r_hat) == {"butterflies", "clustering", "assortativity"}
    assert set(fitted.summary()) == {"fitted", "seed", "random"}


def test_what_it_believes_is_what_a_recount_of_the_graph_gives(fitted):
    plan = graphs.pairs(listed(fitted.graph.pairs.tolist(), 10**12))
    left, right = fitted._chains[0].sides
    slices = fitted._chains[0].slices
    for query, size, counts in (
        (graphs.pair_buckets, (left, right), fitted.counts[: left * right]),
        (graphs.butterfly_buckets, (right, slices), fitted.counts[left * right :]),
    ):
        bins = [(i + 1, j + 1) for i in range(size[0]) for j in range(size[1])]
        assert query(plan).measure(epsilon=10**9).observe_many(bins) == pytest.approx(counts, abs=1e-4)


def test_the_same_seed_gives_the_same_graphs_which_are_written(measured, fitted, tmp_path):
    once, again = (graphs.fit(measured, seed=1, steps=5_000).graph.pairs.tolist() for _ in range(2))
    assert once == again != graphs.fit(measured, seed=2, steps=5_000).graph.pairs.tolist()
    assert fitted.draw(3).pairs.tolist() == fitted.draw(3).pairs.tolist() != fitted.draw(4).pairs.tolist()
    fitted.save(tmp_path / "g.parquet", columns=("user", "item"))
    table = pl.read_parquet(tmp_path / "g.parquet")
    assert table.columns == ["user", "item"] and table.is_unique().all()
    made = fitted.to_networkx()
    assert made.number_of_edges() == len(table) == len(fitted.graph.pairs)
    assert {side for _, side in made.nodes(data="bipartite")} == {0, 1}
    fitted.plot(tmp_path / "g.png", truth=np.array(TASTES))
    assert (tmp_path / "g.png").stat().st_size > 20_000
    with pytest.raises(SourceError, match="must end in"):
        fitted.save(tmp_path / "g.xlsx")


def test_it_is_charged_as_a_whole_or_not_at_all():
    pairs, some = listed(TASTES, 1), {"left degrees": 1, "right degrees": 1}
    with pytest.raises(BudgetError):
        graphs.measure_pairs(pairs, epsilon="1.1")
    for wrong in ({"left degrees": 1}, {**some, "triangles": 1}):
        with pytest.raises(PlanError, match="shares="):
            graphs.measure_pairs(pairs, epsilon=1, shares=wrong)
    with pytest.raises(ExactnessError):
        graphs.measure_pairs(pairs, epsilon=1, shares={**some, "joint": 0})
    with pytest.raises(PlanError, match="too wide"):
        graphs.measure_pairs(pairs, epsilon="0.001")
    found = graphs.measure_pairs(pairs, epsilon=1, shares={**some, "butterflies": 2})
    assert found.about["cost"] == {"epsilon": 1.0, "delta": 0.0}
    assert found.joint is None and found.butterflies.scale == pytest.approx(6, abs=0.01)


def test_noise_grows_with_the_pairs_that_are_kept_of_a_person():
    people = listed(TASTES, 1000, unit=wpinq.users("user", at_most=3))
    found = graphs.measure_pairs(people, epsilon=100)
    assert found.butterflies.scale == pytest.approx(3 * 3 / 50, abs=0.01)
    assert found.left.largest <= 3 and found.about["protects"] != "one record"


BAD = {
    "nothing": [],
    "one pair": [(1, 1)],
    "a star": [(k, 0) for k in range(30)],
    "all": [(a, b) for a in range(6) for b in range(5)],
}


@thin(4)
@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("epsilon", [1, 10_000])
def test_odd_graphs_are_answered(name, epsilon, tmp_path):
    found = graphs.fit(graphs.measure_pairs(listed(BAD[name], 10**5), epsilon=epsilon), seed=2, steps=2000)
    pairs = found.graph.pairs.tolist()
    assert len(set(map(tuple, pairs))) == len(pairs)
    if epsilon > 1:
        wanted = graphs.PairGraph.of(np.array(BAD[name]).reshape(-1, 2))
        assert [sorted(some) for some in found.graph.degrees] == [sorted(some) for some in wanted.degrees]
        assert found.graph.butterflies() == wanted.butterflies()
    if name == "nothing":
        found.plot(tmp_path / "odd.png", truth=np.zeros((0, 2), int))
    found.save(tmp_path / "odd.csv")
    assert len(found.draw(1).pairs) == len(pairs)


def test_degrees_that_do_not_agree_are_brought_together():
    for left, right in (([3, 2], [9]), ([5, 5, 5], [1]), ([], []), ([4], [1, 1, 1, 1]), ([7, 1], [2, 2, 2])):
        one, other = pairs_with_degrees(np.array(left, int), np.array(right, int), np.random.default_rng(1)).degrees
        assert one.sum() == other.sum() == (sum(left) + sum(right)) // 2
