"""Weights from a column: bounded, rounded once, and paid for."""

import math
from fractions import Fraction

import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import evaluate, expected, protected, run_flow, same

import wpinq
from wpinq.collection import Collection
from wpinq.core.operators.contribution.weight import weigh
from wpinq.core.plan.stability import sensitivities
from wpinq.errors import ExactnessError, PlanError

odd = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1e308, -1e308, 0.0005, 0.00049999, 2.0**53, None]
numbers = st.one_of(st.floats(), st.none(), st.sampled_from(odd))
ROWS = settings(deadline=None, max_examples=often(40))


def weighed(records, kind="number", **bounds):
    return Collection(weigh(protected(records, page="text", w=kind)._node, "w", **bounds))


@ROWS
@given(st.lists(st.tuples(st.sampled_from("ab"), numbers), max_size=8), st.sampled_from([1, 3, "7/2"]),
       st.sampled_from([1, "1/1000", "1/7"]))  # fmt: skip
def test_no_record_weighs_more_than_its_bound(records, most, step):
    plan = weighed(records, max_weight=most, step=step)
    for record in records:
        (weight,) = expected(plan, {record: Fraction(1)}).values() or [0]
        assert abs(weight) <= Fraction(most)
    counted = {}
    for record in records:
        counted[record] = counted.get(record, Fraction(0)) + 1
    counted = {r: n for r, n in counted.items() if not (isinstance(r[1], float) and math.isnan(r[1]))}
    kept = [r for r in records if not (isinstance(r[1], float) and math.isnan(r[1]))]
    plan = weighed(kept, max_weight=most, step=step)
    assert same(run_flow(plan), plan._node, expected(plan, merged(counted)))


def merged(counted):
    from wpinq.core.engines.reference import canonical

    out = {}
    for record, weight in counted.items():
        out[canonical(record)] = out.get(canonical(record), Fraction(0)) + weight
    return out


@ROWS
@given(st.lists(st.tuples(st.sampled_from("ab"), st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))), max_size=8))
def test_integers_of_any_size(records):
    plan = weighed(records, "integer", max_weight=5)
    counted = {}
    for record in records:
        counted[record] = counted.get(record, Fraction(0)) + 1
    assert same(run_flow(plan), plan._node, expected(plan, counted))


def test_rounding_is_once_for_each_record_and_halves_go_up():
    plan = weighed([("a", 0.25), ("b", -0.25), ("c", 0.75), ("d", 0.24), ("e", 9.0)], step="1/2")
    assert same(run_flow(plan), plan._node, {("a",): Fraction(1, 2), ("c",): Fraction(1), ("e",): Fraction(1)})


def test_nan_and_null_weigh_nothing():
    plan = weighed([("a", math.nan), ("b", None), ("c", 1.0)])
    assert same(run_flow(plan), plan._node, {("c",): Fraction(1)})


def test_the_bound_is_paid():
    plan = weighed([], max_weight=5)
    assert set(sensitivities(plan._node).values()) == {5}
    assert plan.columns == ("page",)


def test_only_the_weight_is_read():
    plan = weighed([("a", 0.5), ("b", 0.25)]).map(lambda page: 1)
    assert same(run_flow(plan), plan._node, {(1,): Fraction(3, 4)})


def test_refusals():
    with pytest.raises(PlanError, match="declare it"):
        weigh(protected(page="text", w="text")._node, "w")
    with pytest.raises(PlanError, match="besides"):
        weigh(protected(w="integer")._node, "w")
    with pytest.raises(PlanError, match="below 1"):
        weighed([], max_weight="1/2")
    with pytest.raises(PlanError, match="1/n"):
        weighed([], step="2/3")
    with pytest.raises(PlanError, match=r"max_weight=.*2\^53"):
        weighed([], max_weight=2**60)
    with pytest.raises(ExactnessError):
        weighed([], max_weight=0)
    with pytest.raises(PlanError, match=r"^protect\(weight=...\): no column 'x'; there are page, w\.$"):
        weigh(protected(page="text", w="integer")._node, "x")


@pytest.mark.parametrize("weight", [2**53 - 1, -(2**53 - 1), 2**52 + 1, -(2**52) - 1, 2**52 - 1, 3])
def test_the_largest_whole_weights_are_counted_as_they_are(weight):
    rows = [("a", weight)]
    records = wpinq.protect(rows, budget=10**40, columns={"x": str, "w": int}, weight="w", max_weight=2**53 - 1)
    answer = records.map("x").measure(10**36)
    assert int(answer.observe("a")) == int(float(weight))
    assert evaluate(records.map("x"), [("a", weight)]) == {("a",): weight}
