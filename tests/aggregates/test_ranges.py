"""Ranges: the estimate is least squares, intervals cover, and all levels together cost epsilon."""

import math
import pickle
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from depth import deeper, often
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from strategies import evaluate

import wpinq
from wpinq.aggregates import range_tree
from wpinq.aggregates.range_tree import Tree
from wpinq.core.noise.tails import half_width_of_sum
from wpinq.core.plan.node import sources
from wpinq.errors import BudgetError, ExactnessError, PlanError

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from bench_ranges import usual


def protected(values, budget=10**6, **given):
    frame = pl.DataFrame({"x": list(values)}, schema={"x": pl.Int64})
    return wpinq.protect(frame, budget=budget, version="1", **given)


def dense(tree):
    """Which buckets each node of each level counts."""
    rows = []
    for level, size in enumerate(tree.sizes):
        node = np.arange(tree.sizes[0]) // tree.base**level
        rows.append((np.arange(size)[:, None] == node).astype(float))
    return np.concatenate(rows)


@given(st.integers(1, 900), st.integers(0, 2**32 - 1))
def test_the_estimate_is_weighted_least_squares(size, seed):
    tree, rng = Tree.of(size), np.random.default_rng(seed)
    variances = (rng.random(len(tree.sizes)) + 0.1).tolist()
    counts = [rng.normal(size=one) for one in tree.sizes]
    if size > 300:
        size, tree = size % 50 + 250, Tree((size % 50 + 250, -(-(size % 50 + 250) // 7)), 7, (Fraction(1, 2),) * 2)
        variances, counts = variances[:1] * 2, [rng.normal(size=one) for one in tree.sizes]
    matrix, wide = dense(tree), np.repeat(variances, tree.sizes)
    normal = matrix.T @ (matrix / wide[:, None])
    best = np.linalg.solve(normal, matrix.T @ (np.concatenate(counts) / wide))
    assert np.allclose(tree.fitted(counts, variances), best)
    first, last = sorted(rng.choice(size + 1, 2, replace=False).tolist())
    asked = np.zeros(size)
    asked[first:last] = 1
    weights = np.concatenate(tree.weights(first, last, variances))
    assert np.allclose(weights, (matrix / wide[:, None]) @ np.linalg.solve(normal, asked))
    assert weights @ np.concatenate(counts) == pytest.approx(best[first:last].sum())


@given(st.integers(1, 1 << 20))
def test_levels_share_epsilon_and_hold_all_buckets(size):
    tree = Tree.of(size)
    assert sum(tree.shares) == 1 and min(tree.shares) > 0
    assert all(a <= b * tree.base < a + tree.base for a, b in zip(tree.sizes, tree.sizes[1:], strict=False))
    edges = tuple(map(Fraction, range(size + 1)))
    for level, count in enumerate(tree.sizes):
        found = tree.edges(edges, level)
        assert len(found) == count + 1 and found[0] == 0 and found[-1] == size


def test_over_a_thousand_buckets_a_range_is_off_by_13_at_most():
    assert usual(Tree.of(1024)) < 12.5
    assert usual(Tree((1024,), 1024, (Fraction(1),))) > 25


# ------------------------------------------------------------------ cost


def lost(found, epsilon):
    """What the levels lose of a record that is in them once, by the definitions, at the scale of each."""
    total = Fraction(0)
    for one in found.measured:
        root = wpinq.Collection(one.node)
        moved = [evaluate(root, [(3,), (9,), *more]) for more in ([], [(5,)])]
        both = {*moved[0], *moved[1]}
        total += sum(abs(Fraction(moved[1].get(key, 0)) - moved[0].get(key, 0)) for key in both) / one.scale
    return total / epsilon


@pytest.mark.parametrize("epsilon", ["0.5", 2])
def test_all_levels_together_lose_epsilon_and_are_charged_it(epsilon):
    data = protected([3, 9], budget=5)
    found = data.ranges("x", range(101), epsilon)
    assert lost(found, Fraction(epsilon)) == 1
    ledger = sources(data._node)[0].ledger
    assert ledger.spent()[0] == Fraction(epsilon)
    again = data.ranges("x", range(101), epsilon)
    assert ledger.spent()[0] == Fraction(epsilon), "free, and the same"
    assert again.between([(3, 40)]).rows == found.between([(3, 40)]).rows
    with pytest.raises(BudgetError):
        data.ranges("x", range(201), 6)
    assert ledger.spent()[0] == Fraction(epsilon), "all levels or none"


def test_shares_that_sum_to_more_than_one_are_found(monkeypatch):
    true = Tree.of

    def wrong(size):
        tree = true(size)
        return Tree(tree.sizes, tree.base, tuple(share * Fraction(11, 10) for share in tree.shares))

    monkeypatch.setattr(range_tree.Tree, "of", wrong)
    assert lost(protected([3, 9]).ranges("x", range(101), 1), 1) > 1


# ------------------------------------------------------------------ quotes


def test_a_quote_tells_price_and_noise_and_spends_nothing():
    data = protected(range(100), budget=3)
    ledger = sources(data._node)[0].ledger
    quote = data.quote_ranges("x", range(0, 101, 2), 2, name="ages")
    asked = [(0, 100), (2, 4), (20, 90)]
    before = [(quote.stddev(*pair), quote.half_width(*pair), quote.half_width(*pair, "0.5")) for pair in asked]
    assert "epsilon 2 to pay" in str(quote) and "3 left, and 1 afterwards" in repr(quote)
    assert [price.epsilon for price in quote.prices] == [2] and quote.prices[0].fits
    assert ledger.spent() == (0, 0) and not [entry for entry in ledger.entries() if entry.kind == "charge"]
    found = quote.charge()
    assert ledger.spent()[0] == 2
    assert [(found.stddev(*pair), found.half_width(*pair), found.half_width(*pair, "0.5")) for pair in asked] == before
    table = found.between(asked).frame
    assert np.allclose(table["high"] - table["count"], [half for _, half, _ in before])
    assert "nothing more to pay" in str(quote)
    again = data.ranges("x", range(0, 101, 2), 2, name="ages")
    assert quote.charge().between(asked).rows == found.between(asked).rows == again.between(asked).rows
    assert ledger.spent()[0] == 2
    assert {entry.label for entry in ledger.entries() if entry.kind == "charge"} == {"ages: 0", "ages: 1"}


def test_a_quote_beyond_the_budget_says_so_and_charges_nothing():
    data = protected([1], budget=1)
    quote = data.quote_ranges("x", range(101), 2)
    assert "too little" in str(quote) and not quote.prices[0].fits
    with pytest.raises(BudgetError):
        quote.charge()
    assert sources(data._node)[0].ledger.spent() == (0, 0)
    with pytest.raises(PlanError, match="none of the edges"):
        quote.stddev(0, "0.5")
    with pytest.raises(TypeError):
        pickle.dumps(quote)


def test_a_quote_chooses_no_bound():
    people = wpinq.protect([("ann", 1)], 3, columns={"u": str, "x": int}, unit=wpinq.users("u", at_most=9), version="1")
    with pytest.raises(PlanError, match="chosen when a question is charged"):
        people.at_most("auto").quote_ranges("x", range(101), 1)
    assert sources(people._node)[0].ledger.spent() == (0, 0)


# ------------------------------------------------------------------ answers


def test_ranges_are_near_agree_and_say_their_ends():
    values = np.random.default_rng(1).integers(-5, 130, 5000)
    found = protected(values).ranges("x", [-math.inf, *range(0, 101), math.inf], 10**4)
    asked = [(0, 50), (50, 100), (0, 100), (-math.inf, 0), (100, math.inf), (7, 8)]
    table = found.between(asked).frame
    true = [np.sum((values >= low) & (values < high)) for low, high in asked]
    assert np.allclose(table["count"], true, atol=0.05)
    assert table["from"].to_list() == [low for low, _ in asked]
    assert table["count"][0] + table["count"][1] == pytest.approx(table["count"][2])
    assert (table["low"] <= table["count"]).all() and (table["count"] <= table["high"]).all()
    assert found.between([(0, 50)]).cost["epsilon"] == 10**4
    assert repr(found) == "<ranges of x from -inf to inf, 102 buckets, epsilon 10000>"
    last = protected([100, 101]).ranges("x", [0, 50, 100], 10**4).between([(50, 100)])
    assert last.frame["count"][0] == pytest.approx(1, abs=0.01)


@deeper
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(95, 100)])
def test_intervals_cover(level):
    """200 runs of three ranges; a right interval fails for one set of keys in a million. None is twice too wide."""
    values, runs = list(range(200)), often(200, 10)
    inside, off = np.zeros(3), []
    data = protected(values)
    for turn in range(runs):
        found = data.ranges("x", range(0, 201, 2), 1, name=str(turn))
        table = found.between([(0, 200), (2, 4), (20, 90)]).table(level)
        true = np.array([200, 2, 70])
        inside += (table["low"].to_numpy() <= true) & (true <= table["high"].to_numpy())
        off.append(
            (table["count"].to_numpy() - true) / [found.stddev(0, 200), found.stddev(2, 4), found.stddev(20, 90)]
        )
    assert (inside >= binom.ppf(1e-6, runs, float(level))).all()
    assert np.abs(np.log(np.std(off, axis=0))).max() < (0.3 if runs > 100 else 1)
    half = table["high"][2] - table["count"][2]
    assert level < 0.9 or half < 3.2 * found.stddev(20, 90)


def test_the_bound_holds_a_weighted_sum_of_noises():
    """Against the law of the sum by convolution, for whole weights."""
    x = np.arange(-400, 401)
    law = np.exp(-np.abs(x) / 5.0)
    law /= law.sum()
    double = np.zeros(1601)
    double[::2] = law
    whole = np.convolve(law, double)
    at = np.arange(len(whole)) - len(whole) // 2
    for rest in (0.05, 1e-6):
        half = half_width_of_sum([(np.array([1.0, -2.0, 0.0]), 5.0)], rest)
        assert whole[np.abs(at) > half].sum() <= rest < whole[np.abs(at) > half / 3].sum()


@pytest.mark.parametrize(
    ("asked", "error"),
    [([(0, 33)], PlanError), ([(50, 0)], PlanError), ([(0,)], PlanError), ([(0, 0)], PlanError), (["ab"], PlanError),
     ([(0, "x")], ExactnessError), ([(-math.inf, 50)], ExactnessError)],
)  # fmt: skip
def test_what_is_no_range_is_refused(asked, error):
    with pytest.raises(error):
        protected([1]).ranges("x", [0, 50, 100], 1).between(asked)


def test_windows_and_texts_are_refused_before_any_charge():
    data = wpinq.protect([("a", 1)], budget=1, columns={"t": str, "x": int}, version="1")
    with pytest.raises(PlanError):
        data.ranges("t", [0, 1], 1)
    with pytest.raises(PlanError, match="windows"):
        data.window(5, at="x").ranges("x", [0, 1], 1)
    assert sources(data._node)[0].ledger.spent() == (0, 0)
