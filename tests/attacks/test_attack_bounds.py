"""Bounds that cannot be computed with are refused with the plan, and never fail by whether a record is there."""

import math
from fractions import Fraction

import numpy as np
import pytest
from depth import often, thin
from hypothesis import example, given, settings
from hypothesis import strategies as st

import wpinq

EXTREME = [math.nan, math.inf, -math.inf, 0.0, 1e15, 1e15 + 0.5, -1e308, 1e308, 5e-324, 2.0**63]
edges = st.one_of(
    st.integers(-(10**40), 10**40),
    st.integers(1, 400).flatmap(lambda bits: st.sampled_from([1, -1]).map(lambda sign: sign * 2**bits)),
    st.integers(-99, 99).map(lambda power: Fraction(10) ** power),
)
widths = st.one_of(st.integers(1, 2**21), st.integers(-99, 99).map(lambda power: Fraction(10) ** power))
steps = st.one_of(st.none(), st.integers(-60, 60).map(lambda power: Fraction(2) ** power))
ASKED = {
    "sum": lambda c, **more: c.sum("x", epsilon=1, **more).value,
    "mean": lambda c, **more: c.mean("x", epsilon=1, **more).value,
    "variance": lambda c, **more: c.variance("x", epsilon=1, **more).interval(),
    "median": lambda c, **more: c.median("x", epsilon=1, **more).value,
}


def answered(name, rows, kind, **more):
    records = wpinq.protect(rows, budget=10, columns={"x": kind})
    try:
        found = ASKED[name](records, **more)
    except (wpinq.PlanError, wpinq.ExactnessError) as error:
        assert records._node.data.ledger.spent()[0] == 0
        return str(error)
    return bool(np.isfinite(found).all())


@thin(3)
@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("kind", [float, int])
@given(edges, widths, steps)
@example(10**15, 1, None)
@example(10**15, 50, None)
@example(10**30, 5, None)
@example(2**62, 1, 1)
@example(-(2**63) - 1, 2, 1)
@settings(max_examples=often(10))
def test_bounds_are_refused_or_answered_whatever_the_records(name, kind, low, width, step):
    more = {"bounds": (low, low + width)} | ({"step": step} if step and name != "median" else {})
    rows = [(value,) for value in EXTREME] if kind is float else [(0,), (2**63 - 1,), (-(2**63),), (10**15,)]
    assert answered(name, rows, kind, **more) == answered(name, [], kind, **more)


def test_the_furthest_bounds_that_are_summed():
    records = wpinq.protect([(2**63 - 1,), (-(2**63),)] * 3, budget=10**6, columns={"x": int})
    near = records.sum("x", bounds=(2**52 - 1, 2**52), epsilon=10**5)
    assert abs(near.value - 3 * (2**53 - 1)) < 2**52 * 1e-3
    with pytest.raises(wpinq.PlanError, match=r"more than 2\^52 steps of 1 from 0; give a wider step="):
        records.sum("x", bounds=(2**52, 2**52 + 1), epsilon=1)
    assert records._node.data.ledger.spent()[0] == 10**5
