"""The ways in which a unit may be spread over bins that are told, where it is in a few of them at the most."""

import math
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

import wpinq
from wpinq.core.noise.threshold import least_threshold, ways


def loss(weight, tau, scale):
    """-log P(weight + N < tau) of discrete Laplace noise."""
    ratio, k = math.exp(-1 / scale), tau - weight
    above = ratio**k / (1 + ratio) if k >= 1 else 1 - ratio ** (1 - k) / (1 + ratio)
    return -math.log1p(-above)


@cache
def spreads(whole, most, bins):
    """All ways to spread a movement: of each the weights of its bins, the largest first."""
    if bins == 0:
        return [()]
    found = [()]
    for first in range(1, min(whole, most) + 1):
        found += [(first, *rest) for rest in spreads(whole - first, first, bins - 1)]
    return found


@pytest.mark.parametrize("scale", [0.7, 2, 9])
def test_the_worst_spread_is_one_of_the_ways(scale):
    for whole, most, bins in product(range(1, 13), range(1, 7), range(1, 13)):
        if most > whole:
            continue
        told = ways(whole, most, bins)
        for way in told:
            assert sum(number for _, number in way) <= bins
            assert sum(weight * number for weight, number in way) <= whole
            assert all(0 <= weight <= most and number >= 0 for weight, number in way)
        for tau in (1, 3, 8, 30):
            worst = max(sum(loss(one, tau, scale) for one in spread) for spread in spreads(whole, most, bins))
            known = max(sum(loss(weight, tau, scale) * number for weight, number in way) for way in told)
            assert known >= worst - 1e-9 * worst, (whole, most, bins, tau)
            assert known <= worst + 1e-9 * worst, "no more than is needed"


def test_without_the_way_that_ends_at_the_last_bin_the_worst_is_missed():
    """What the three ways of before say of fewer bins: too little."""
    spread = [(3, 5), (2, 1), (1, 3)]
    assert spread in ways(20, 3, 9)
    left = [way for way in ways(20, 3, 9) if way != spread]
    missed = [
        (scale, tau) for scale, tau in product((0.7, 2, 9, 40), range(1, 60))
        if max(sum(loss(weight, tau, scale) * number for weight, number in way) for way in left)
        < sum(loss(weight, tau, scale) * number for weight, number in spread)
    ]  # fmt: skip
    assert missed


def test_where_bins_are_not_fewer_it_is_as_before():
    for whole, most in product(range(1, 30), range(1, 10)):
        if most <= whole:
            assert ways(whole, most) == ways(whole, most, whole) == ways(whole, most, whole + 5)
    assert least_threshold(Fraction(4), 1, 20, Fraction(1, 10**6), 3) == least_threshold(
        Fraction(4), 1, 20, Fraction(1, 10**6), 3, bins=20
    )


def test_a_weighted_record_is_in_one_bin():
    """Of weight 50 it shows in one bin; it was taken for one in fifty."""
    rows = [("a", 50.0)] * 9 + [("b", 1.0)]
    views = wpinq.protect(rows, 10**6, columns={"page": str, "size": float}, delta="0.1", weight="size", max_weight=50)
    (told,) = wpinq.core.pricing.sensitivity.moved_bins(views.map("page")._node).values()
    assert told == 1
    found = views.map("page").measure(1).release(delta="1e-6")
    assert least_threshold(Fraction(50), 1, 50, Fraction(1, 10**6), 50) == 854
    assert math.ceil(found.threshold) == least_threshold(Fraction(50), 1, 50, Fraction(1, 10**6), 50, bins=1) == 707
