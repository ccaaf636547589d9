"""The plans behind aggregates: their definitions against the engine, their stability, their rounding."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from depth import often, thin
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Driver, distance, expected, run_flow, same

import wpinq
from wpinq.aggregates.lengths import Lengths
from wpinq.aggregates.moments import Moments
from wpinq.aggregates.scale import Cells, FineCells, Scale
from wpinq.collection import Collection
from wpinq.core.engines import reference
from wpinq.core.plan.node import Source, steps

numbers = st.one_of(st.none(), st.floats(-30, 30), st.sampled_from([math.inf, -math.inf, math.nan, 0.0, -0.0, 1e300]))
records = st.lists(st.tuples(st.sampled_from(["a", "b", None]), numbers), max_size=12)
SCALES = [
    Scale("x", Fraction(0), Fraction(1), -10, 10),
    Scale("x", Fraction(5), Fraction(1, 2), -20, 20),
    Scale("x", Fraction(-3), Fraction(7, 3), 0, 9),
]


def people(rows=()):
    return wpinq.protect(list(rows), budget=10**6, columns={"zip": str, "x": float})


def plans(scale, source):
    yield Moments(source, ("zip",), scale, (0, 1, 2), "variance(x)")
    yield Moments(source, (), scale, (0, 1), "mean(x)")
    yield Moments(source, (), scale, (1,), "sum(x)")
    yield Moments(source, ("zip",), None, (0,), "count()")
    yield Cells(source, ("zip",), scale, "median(x)")
    yield Cells(source, (), scale, "median(x)")
    yield FineCells(source, (), scale, "median(x)")


@thin(2)
@pytest.mark.parametrize("scale", SCALES, ids=str)
@given(records, st.integers(1, 2))
@settings(max_examples=often(25))
def test_engine_computes_the_definition(scale, rows, shards):
    source = people(rows)
    for plan in plans(scale, source._node):
        collection = Collection(plan)
        wanted = expected(collection, reference.weigh(rows))
        assert same(run_flow(collection, shards), plan, wanted)
        assert all((weight * plan.resolution).denominator == 1 for weight in wanted.values())


@pytest.mark.parametrize("scale", SCALES, ids=str)
@given(records, st.tuples(st.sampled_from("ab"), numbers))
@settings(max_examples=often(50))
def test_one_record_moves_a_plan_by_its_stability(scale, rows, one):
    for plan in plans(scale, people()._node):
        collection = Collection(plan)
        before, after = (expected(collection, reference.weigh(given)) for given in (rows, [*rows, one]))
        assert distance(before, after) <= plan.stability[0]


@given(numbers)
def test_odd_values_have_one_policy(value):
    """A null or a NaN is left out, an infinity is clamped."""
    for scale in SCALES:
        found = scale.steps_of(value)
        if value is None or math.isnan(value):
            assert found is None
            continue
        assert scale.low <= found <= scale.high
        if math.isinf(value):
            assert found == (scale.high if value > 0 else scale.low)
        nearest = min(max(Fraction(value) if math.isfinite(value) else Fraction(0), -1000), 1000)
        if scale.low < found < scale.high and math.isfinite(value):
            assert abs(scale.number(found) - nearest) <= float(scale.spacing) * (Fraction(1, 2) + Fraction(1, 10**9))


def test_integers_are_exact():
    rows = [("a", float(age)) for age in range(0, 121)]
    plan = Moments(people()._node, (), Scale("x", Fraction(60), Fraction(1, 2), -120, 120), (0, 1, 2), "variance(x)")
    found = expected(Collection(plan), reference.weigh(rows))
    assert found == {(0,): 121, (2,): found[2,]}, "the sum is 0 and not there"
    true = sum(2 * (Fraction(int(age) - 60, 60)) ** 2 - 1 for _, age in rows)
    assert abs(found[2,] - true) <= 121 * Fraction(1, 2**20)


users = st.lists(st.tuples(st.sampled_from(["ann", "bob", "cid", None]), st.sampled_from("xyz")), max_size=30)


@given(users, users, st.integers(1, 2))
@settings(max_examples=often(50))
def test_lengths_count_each_person_once(first, more, shards):
    grid = (1, 2, 4, 7)
    unit = wpinq.users("user", at_most=2)
    views = wpinq.protect(first, budget=1, columns={"user": str, "page": str}, unit=unit)
    source = next(node for node in steps(views._node) if isinstance(node, Source))
    plan = Lengths(source, grid)
    assert plan.stability == (Fraction(1, 2),)

    def truth(rows):
        lengths = Counter(user for user, _ in rows).values()
        return Counter(min(int(np.searchsorted(grid, n)), 3) for n in lengths)

    wanted = {(cell,): count for cell, count in truth(first).items()}
    assert expected(Collection(plan), reference.weigh(first)) == wanted
    assert same(run_flow(Collection(plan), shards), plan, wanted)
    driver = Driver(Collection(plan), shards)
    driver.feed(reference.weigh(first))
    driver.feed(reference.weigh(more))
    assert same(driver.histogram, plan, {(cell,): count for cell, count in truth(first + more).items()})
    without = [row for row in first if row[0] != "ann"]
    assert distance(dict(truth(first)), dict(truth(without))) <= 1
