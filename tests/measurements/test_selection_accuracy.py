"""Accuracy first: intervals that cover what they say, for one bin and for many, and the epsilon that they take."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.noise import mechanism
from wpinq.core.noise.accuracy import level_of_each

pytestmark = pytest.mark.usefixtures("many_digits")
RECORDS = pl.DataFrame([(f"u{i}", f"p{i % 20000}") for i in range(30_000)], schema=["user", "page"], orient="row")


def pages(unit=None):
    views = wpinq.protect(
        RECORDS, budget=10**6, unit=unit, secret=Secret(bytes(range(32))), version="1"
    )  # fmt: skip
    return views.map(lambda page: page)


def covered(scale, t):
    """P(|N| <= t), summed exactly: 1 - 2 r^(t + 1) / (1 + r)."""
    r = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
    return 1 - 2 * r ** (t + 1) / (1 + r)


@pytest.mark.parametrize("bins", [1, 2, 10, 1000, 10**9])
@pytest.mark.parametrize("level", ["0.5", "0.95", "0.999999"])
@pytest.mark.parametrize("epsilon", ["0.05", 1, 3])
def test_intervals_are_the_least_that_cover(epsilon, level, bins):
    m = pages().measure(epsilon)
    t = m.interval(level, bins)
    assert t == int(t)
    assert covered(m.scale, int(t)) ** bins >= Decimal(level)
    assert t == 0 or covered(m.scale, int(t) - 1) ** bins < Decimal(level)


@given(st.fractions(Fraction(1, 1000), Fraction(999, 1000)), st.integers(1, 10**7))
def test_level_of_each_is_the_root_rounded_up(level, bins):
    each = level_of_each(level, bins)
    one = Decimal(each.numerator) / Decimal(each.denominator)
    assert one**bins >= Decimal(level.numerator) / Decimal(level.denominator) * (1 - Decimal("1e-50"))
    assert (one - Decimal(2) ** -85) ** bins < Decimal(level.numerator) / Decimal(level.denominator)


@given(
    st.sampled_from(["geometric", "laplace"]), st.sampled_from([None, wpinq.users("user", at_most=20)]),
    st.fractions(Fraction(1, 3), 10**5, max_denominator=100), st.fractions(Fraction(1, 10), Fraction(999, 1000)),
)  # fmt: skip
@settings(max_examples=often(25))
def test_within_takes_the_least_epsilon_of_four_digits(name, unit, within, confidence):
    m = pages(unit).measure(within=within, confidence=confidence, mechanism=name)
    move = unit.bound if unit else 1
    if m.scale > Fraction(1, 900):
        assert m.interval(confidence) <= float(within)
    digits = m.epsilon
    while digits >= 10_000:
        digits /= 10
    while digits < 1000:
        digits *= 10
    assert digits.denominator == 1
    smaller = mechanism(name, move / (m.epsilon * (digits - 1) / digits))
    assert smaller.half_width(confidence) > within * smaller.grid
    assert m.key_owner.ledger.spent()[0] == m.epsilon
    said = re.search(r"epsilon ([^,]+),", repr(m))
    assert said is not None and Fraction(said[1]) == m.epsilon


def test_within_says_what_it_charges(capsys):
    m = pages().measure(within=50, confidence="0.95")
    assert m.epsilon == Fraction(5932, 100_000)
    assert "epsilon 0.05932" in repr(m)
    m.explain()
    assert "measure(epsilon=0.05932)" in capsys.readouterr().out
    assert m.interval("0.95") == 50


def test_within_more_than_is_left_is_refused():
    views = wpinq.protect(RECORDS, budget="0.05")
    with pytest.raises(wpinq.BudgetError):
        views.measure(within=50)
    assert views.measure(within=100).interval() <= 100


@pytest.mark.parametrize("wrong", [0, -1, float("inf"), "x", True])
def test_wrong_distances_levels_and_numbers_of_bins(wrong):
    with pytest.raises(wpinq.ExactnessError):
        pages().measure(within=wrong)
    with pytest.raises((wpinq.ExactnessError, wpinq.PlanError)):
        pages().measure(within=5, confidence=2 if wrong in (0, True) else wrong)
    with pytest.raises((wpinq.ExactnessError, wpinq.PlanError)):
        pages().measure(1).interval(bins=wrong)
    with pytest.raises(wpinq.PlanError, match="either"):
        pages().measure(1, within=5)


@pytest.mark.parametrize("name", ["geometric", "laplace"])
def test_attack_48_intervals_cover_as_often_as_is_computed(name):
    """20,000 bins, single and in groups of 10, against the coverage computed exactly (for the grid of Laplace, nearly).

    Two-sided binomial tails at 1e-7 each: four looks, false alarm below 1e-6, had the secret been drawn.
    """
    m = pages().measure("0.2", mechanism=name)
    truth = np.array([2] * 10_000 + [1] * 10_000)
    error = np.abs(m.observe_many([f"p{i}" for i in range(20_000)]) - truth)
    for bins in (1, 10):
        width = m.interval(bins=bins)
        own = covered(m.scale, int(width)) if name == "geometric" else 1 - (-Decimal(width) / 5).exp()
        share = float(own**bins)
        assert share >= 0.95 - 1e-9
        hits = int((error.reshape(-1, bins).max(axis=1) <= width).sum())
        assert binom.cdf(hits, 20_000 // bins, share) > 1e-7
        assert binom.sf(hits - 1, 20_000 // bins, share) > 1e-7
