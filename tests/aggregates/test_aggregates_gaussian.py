"""Aggregates with Gaussian noise: what is charged covers every move, intervals are of its law, errors name the call."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import deep
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from strategies import evaluate

import wpinq
from wpinq import aggregates
from wpinq.aggregates.keywords import Options
from wpinq.aggregates.moments import Moments
from wpinq.aggregates.sums import ask_count, ask_mean, ask_sum, ask_variance
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.plan.node import sources

ONE = Secret(bytes(range(32)))
COLUMNS = {"user": str, "zip": str, "x": float}


def people(records=(), unit=None, **promise):
    promise = promise or {"rho": 10**6}
    return wpinq.protect(records, secret=ONE, version="1", unit=unit, columns=COLUMNS, name="people", **promise)


UNITS = [wpinq.users("user", at_most=5), wpinq.users("user", at_most=5, per=("zip", 2)), None]
ASKED = {
    "count": lambda v, o: ask_count(v, Moments(v._node, (), None, (0,), "count()"), None, o),
    "sum": lambda v, o: ask_sum(v, "x", (0, 10), None, o),
    "mean": lambda v, o: ask_mean(v, "x", (0, 10), None, o),
    "variance": lambda v, o: ask_variance(v, "x", (0, 10), None, o),
}


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0.0, 3.3, 10.0])), max_size=9),
    st.sampled_from(UNITS), st.sampled_from(sorted(ASKED)), st.booleans(),
)  # fmt: skip
def test_what_is_charged_covers_the_squares_of_all_moves(own, unit, which, grouped):
    """By the definitions, with and without the records of one unit."""
    own = own if unit is not None else own[:1]
    options = Options(*(("zip", ["a", "b"]) if grouped else (None, None)), step=1, mechanism="gaussian", rho="1/7")
    quote = ASKED[which](people(unit=unit), options).quote
    node, others = quote.node, [("bob", "a", 4.0)] * 2
    found = [evaluate(wpinq.Collection(node), [*others, *(("ann", *one) for one in some)]) for some in (own, [])]
    moved = [(found[0].get(key, 0) - found[1].get(key, 0)) * node.resolution for key in {*found[0], *found[1]}]
    charged = sum(cost.rho for _, charge in quote.charges for cost in charge.costs)
    assert sum(move**2 for move in moved) / (2 * quote.mechanism.square) <= charged == quote.rho == Fraction(1, 7)


def test_moments_share_rho_and_bounds_by_group_narrow_noise():
    """Two moments of five records each: all move by 10 together, each by 5; in a group by 2 where a bound says so."""
    rho, free = Fraction(1, 2), Options(mechanism="gaussian", rho="1/2")
    for unit, by, square in ((UNITS[0], None, 5 * 10), (UNITS[0], "zip", 5 * 10), (UNITS[1], "zip", 2 * 10)):
        options = Options(by, ["a"] if by else None, mechanism="gaussian", rho=rho, step=1)
        quote = ask_mean(people(unit=unit), "x", (0, 10), None, options).quote
        assert quote.scale**2 == pytest.approx(square, rel=1e-9)
    three = ask_variance(people(unit=UNITS[0]), "x", (0, 10), None, free).quote
    assert three.scale**2 == pytest.approx(5 * 15, rel=1e-9)
    edges = people(unit=UNITS[1]).histogram("x", [0, 5, 11], rho=rho, mechanism="gaussian", by="zip", keys=["a"])
    assert edges.measurements[0].scale ** 2 == pytest.approx(2 * 5, rel=1e-9)


@pytest.mark.parametrize("which", ["count", "sum", "mean", "variance", "stdev", "histogram"])
def test_intervals_hold_the_truth_and_are_of_the_law(which):
    """2,000 groups of 40 numbers; 95% of intervals hold, and no more than 98%. Binomial tails, false alarm 1e-6."""
    values, size = np.random.default_rng(12).integers(0, 101, 40), 2000
    frame = pl.DataFrame({"user": ["ann"] * size * 40, "zip": np.repeat(np.arange(size), 40).astype(str),
                          "x": np.tile(values, size).astype(float)})  # fmt: skip
    asked = {"rho": "1/2", "mechanism": "gaussian", "by": "zip", "keys": [str(i) for i in range(size)]}
    truth = {"count": 40, "sum": values.sum(), "mean": values.mean(), "variance": values.var(), "stdev": values.std(),
             "histogram": int((values < 50).sum())}[which]  # fmt: skip
    if which == "histogram":
        answer = people(frame).histogram("x", [0, 50], **asked)
    elif which == "count":
        answer = people(frame).count(**asked)
    else:
        answer = getattr(aggregates, which)(people(frame), "x", (0, 100), step=1, **asked)
    assert answer.cost["rho"] == 0.5
    assert "epsilon" not in answer.cost
    table = answer.table()
    name = "count" if which == "histogram" else "value"
    held = int(((table["low"] <= truth + 1e-9) & (table["high"] >= truth - 1e-9)).sum())
    assert binom.cdf(held, size, 0.95) > 1e-6
    exact = which in ("mean", "variance", "stdev") or answer.measurements[0].node.resolution > 1
    assert binom.sf(held, size, 0.98 if exact else 0.99) > 1e-6  # the steps of counts are a good part of one sigma
    if which in ("count", "sum", "histogram"):
        wide = float(answer.measurements[0].scale) * (100 if which == "sum" else 1)
        assert table[name].to_numpy().std() == pytest.approx(wide, rel=0.1)


@deep
def test_accuracy_buys_the_rho_that_it_takes():
    v = people([("ann", "a", 4.0)] * 3000)
    for answer, truth in ((v.count(within=30, mechanism="gaussian"), 3000),
                          (v.sum("x", (0, 10), within=100, mechanism="gaussian"), 12_000)):  # fmt: skip
        half = (answer.interval()[1] - answer.interval()[0]) / 2
        assert 0.97 * (30 if truth == 3000 else 100) < half <= 30 * (truth / 3000) ** 2
        assert abs(answer.value - truth) < 5 * half
    mean = v.mean("x", (0, 10), within="0.05", records=2000, mechanism="gaussian")
    low, high = mean.interval()
    assert high - low <= 0.1
    assert mean.cost["rho"] < 0.1


def test_best_is_the_noise_that_is_nearer_in_aggregates_too():
    renyi = {"budget": 1, "delta": "1e-6", "accounting": "renyi"}
    wide = people(unit=wpinq.users("user", at_most=200, per=("zip", 1)), **renyi)
    asked = {"epsilon": 1, "delta": "1e-6", "mechanism": "best"}
    assert wide.count(by="zip", keys=["a"], **asked).measurements[0].rho > 0
    assert people(**renyi).count(**asked).measurements[0].rho == 0


def test_errors_name_the_call_and_charge_nothing():
    pure, curved = people(budget=1), people()
    for call, error, says in (
        (lambda: pure.count(rho=1, mechanism="gaussian"), wpinq.PlanError, r"^count\(mechanism='gaussian'\)"),
        (lambda: curved.sum("x", (0, 1), 1, mechanism="gaussian"), wpinq.PlanError, r"^sum\(mechanism.*add delta="),
        (lambda: curved.mean("x", (0, 1), rho=1), wpinq.PlanError, r"^mean\(rho=\.\.\.\): is of Gaussian noise"),
        (lambda: curved.variance("x", (0, 1)), wpinq.ExactnessError, r"^variance\(\): give either epsilon="),
        (lambda: curved.stdev("x", (0, 1), 1, rho=1, mechanism="gaussian"), wpinq.PlanError, r"^stdev\(epsilon=, rho="),
        (lambda: curved.histogram("x", [0, 1], rho=0, mechanism="gaussian"), wpinq.ExactnessError, r"^histogram\(rho="),
        (lambda: curved.count(1, mechanism="normal"), wpinq.PlanError, "'gaussian' or 'best'"),
        (lambda: curved.count_distinct("zip", 1, mechanism=7), wpinq.PlanError, r"^count_distinct\(mechanism="),
    ):  # fmt: skip
        with pytest.raises(error, match=says):
            call()
    for one in (pure, curved):
        assert sources(one._node)[0].ledger.spent() == (0, 0)
        assert sources(one._node)[0].ledger.divergence == 0
