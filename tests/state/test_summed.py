"""A first change that compiled kernels add up gives what the plain way and the definition give, and so do the next."""

import math
from fractions import Fraction

import numpy as np
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Driver, expected, protected, same

from wpinq.core import kernels
from wpinq.core.operators.group_by import GroupSizes
from wpinq.core.plan.node import sources
from wpinq.core.state import pointwise, summed

pytestmark = pytest.mark.skipif(kernels.LIB is None, reason="there are no compiled kernels")
COLUMNS = {"a": "text", "x": "number"}
PLANS = {
    "distinct": lambda one, two: one.distinct(),
    "distinct, fewer columns": lambda one, two: one.distinct().map("a"),
    "distinct integers": lambda one, two: one.map("a").distinct(),
    "union": lambda one, two: one.map("a").union(two.map("a")),
    "intersect": lambda one, two: one.map("a").intersect(two.map("a")),
    "sizes": lambda one, two: one.group_by("a", len),
    "sizes of numbers": lambda one, two: one.group_by("x", len).map("x"),
    "sizes alone": lambda one, two: one.group_by(["x", "a"], len).map("value"),
    "whole sizes": lambda one, two: one.distinct().group_by("a", len, whole=True),
}
WHOLE = ("whole sizes",)
records = st.tuples(st.sampled_from(["p", "q", "", None]), st.sampled_from([0.0, -0.0, 1.0, math.nan, None]))
weights = st.integers(-6, 6).map(lambda number: Fraction(number, 4))
changes = st.lists(st.tuples(*[st.dictionaries(records, weights, max_size=7)] * 2), min_size=1, max_size=4)


@pytest.mark.parametrize("name", PLANS)
@given(changes, st.sampled_from([1, 3, 1 << 15]), st.integers(1, 2))
@settings(max_examples=often(20))
def test_each_change_gives_what_the_plain_way_gives(name, changes, piece, shards):
    plan = PLANS[name](*(protected(fine=name not in WHOLE, **COLUMNS) for _ in range(2)))
    ports = len(sources(plan._node))
    quick, slow = Driver(plan, shards), Driver(plan, shards)
    totals = [{} for _ in range(ports)]
    for change in changes:
        given = [whole(side) if name in WHOLE else side for side in change[:ports]]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(summed, "PIECE", piece)
            quick.feed(*given)
            patch.setattr(kernels, "LIB", None)
            slow.feed(*given)
        for total, side in zip(totals, given, strict=True):
            for record, weight in side.items():
                total[record] = total.get(record, 0) + weight
        assert same(quick.histogram, plan._node, expected(plan, *totals))
        for found, wanted in zip(quick.histogram.content(), slow.histogram.content(), strict=True):
            assert np.array_equal(found, wanted)


def whole(weights):
    """The same records with whole weights above zero."""
    return {record: Fraction(abs(weight.numerator)) for record, weight in weights.items()}


def test_a_finite_source_is_taken_in_by_number():
    """Of the columns only those are held that are needed later, and no table is made before a second change."""
    one = protected(a="text", b="text")
    kinds = set()
    for plan in (one.distinct().map("a"), one.group_by("a", len).map("value")):
        driver = Driver(plan)
        driver.feed({("p", "q"): Fraction(1), ("p", "r"): Fraction(1)})
        (state,) = (state for states in driver.states.values() for state in states.values())
        kinds.add(type(state))
        if isinstance(state, GroupSizes):
            assert state._later is None
            assert [frame.columns for frame in state._kept] == [[]]
        else:
            assert state._tables is None
            assert [frame.columns for frame in state._first._kept] == [["a"]]
    assert kinds == {GroupSizes, pointwise.Pointwise}
