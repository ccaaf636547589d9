"""Thresholds: exact tails, the worst way to spread a unit over bins, and the least threshold (attacks 32 and 33)."""

from decimal import Decimal
from fractions import Fraction

import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st

from wpinq.core.noise import DiscreteLaplace, GridLaplace
from wpinq.core.noise.threshold import any_bounds, least_threshold, seen_bounds, tail_bounds

pytestmark = pytest.mark.usefixtures("many_digits")
scales = st.fractions(Fraction(1, 20), 30, max_denominator=30)


def number(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def tail(scale, k):
    """P(N >= k) by summing the probabilities on the short side, in 80 digits."""
    r = (-1 / number(scale)).exp()
    if k < 1:
        return 1 - tail(scale, 1 - k)
    return r**k / (1 + r)


def partitions(total, most=None):
    most = total if most is None else most
    yield ()
    for first in range(1, min(total, most) + 1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


def seen(scale, grid, weights, tau):
    """That at least one of these bins reaches tau."""
    hidden = Decimal(1)
    for weight in weights:
        hidden *= 1 - tail(scale, tau - weight * grid)
    return 1 - hidden


@given(scales, st.integers(-60, 200), st.sampled_from([64, 100, 256]))
def test_tails_lie_within_their_bounds(scale, k, bits):
    low, high = tail_bounds(scale, k, bits)
    true = tail(scale, k) * 2**bits
    assert low - Decimal("1e-40") <= true <= high + Decimal("1e-40")
    assert high - low <= 2**12, "they are near to each other"


def test_tails_are_those_of_the_noise_that_is_drawn():
    """Summed from the probabilities of the noise, point by point."""
    scale = Fraction(3)
    r = (-1 / number(scale)).exp()
    for k in (-4, 0, 1, 2, 9):
        points = sum((1 - r) / (1 + r) * r ** abs(x) for x in range(k, 600))
        low, high = tail_bounds(scale, k, 128)
        assert abs(Decimal(low + high) / 2 / 2**128 - points) < Decimal("1e-30")


@given(st.lists(st.tuples(st.integers(0, 2**100), st.sampled_from([0, 1, 2, 3, 17, 1000, 10**12])), max_size=3))
def test_any_of_many_lies_within_its_bounds(trials):
    low, high = any_bounds((((chance, chance), many) for chance, many in trials), 100)
    none = Decimal(1)
    for chance, many in trials:
        none *= (1 - Decimal(chance) / 2**100) ** many if many else 1  # Decimal has no 0 ** 0
    slack = Decimal("1e-20")
    assert low - slack <= (1 - none) * 2**100 <= high + slack


@given(scales, st.integers(1, 8), st.integers(1, 60))
@settings(max_examples=often(60))
def test_no_way_to_spread_a_unit_is_worse_than_the_two_that_are_looked_at(scale, moves, tau):
    worst = max(seen(scale, 1, weights, tau) for weights in partitions(moves))
    low, high = seen_bounds(scale, 1, moves, tau, 200)
    assert abs(worst * 2**200 - Decimal(low + high) / 2) < Decimal(2) ** 60


@given(scales, st.integers(1, 9), st.integers(1, 9), st.integers(1, 60))
@settings(max_examples=often(150))
def test_no_way_within_a_bound_on_each_bin_is_worse_than_the_three_that_are_looked_at(scale, moves, most, tau):
    """All ways to spread so much or less over bins of at most so much, each summed exactly; and one of them is met."""
    ways = [one for total in range(1, moves + 1) for one in partitions(total, min(most, moves))]
    worst = max(seen(scale, 1, weights, tau) for weights in ways)
    low, high = seen_bounds(scale, 1, moves, tau, 200, linf=most)
    assert abs(worst * 2**200 - Decimal(low + high) / 2) < Decimal(2) ** 60


@pytest.mark.parametrize("most", [1, 2, 4, 5])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2)])
@pytest.mark.parametrize("delta", [Fraction(1, 20), Fraction(1, 10**6)])
def test_the_threshold_within_a_bound_on_each_bin_is_the_least_that_keeps_delta(most, scale, delta):
    tau = least_threshold(scale, 1, 7, delta, most)

    def worst(at):
        return max(seen(scale, 1, weights, at) for weights in partitions(7, most) if weights)

    assert worst(tau) <= number(delta)
    assert tau == 1 or worst(tau - 1) > number(delta)
    assert tau <= least_threshold(scale, 1, 7, delta)


@pytest.mark.parametrize("moves", [1, 2, 3, 6])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(17)])
@pytest.mark.parametrize("delta", [Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**6), Fraction(1, 10**30)])
@pytest.mark.parametrize("grid", [1, 4])
def test_the_threshold_is_the_least_that_keeps_delta(moves, scale, delta, grid):
    """By brute force over all spreads; the mass at the threshold counts as published."""
    tau = least_threshold(scale * grid, grid, moves, delta)

    def worst(at):
        return max(seen(scale * grid, grid, weights, at) for weights in partitions(moves))

    assert worst(tau) <= number(delta)
    assert tau == 1 or worst(tau - 1) > number(delta)


def test_a_known_case():
    """One record: P(1 + N >= tau) = r^(tau - 1) / (1 + r)."""
    r = (-Decimal(1)).exp()
    tau = least_threshold(Fraction(1), 1, 1, Fraction(1, 10**6))
    assert r ** (tau - 1) / (1 + r) <= Decimal("1e-6") < r ** (tau - 2) / (1 + r)


def test_thresholds_are_found_for_large_resolutions():
    fine = GridLaplace(Fraction(20)).grid
    for scale, grid, moves in [(Fraction(20 * 2**40), 1, 20 * 2**40), (Fraction(20), fine, 20)]:
        tau = least_threshold(scale * grid, grid, moves, Fraction(1, 10**9))
        low, high = seen_bounds(scale * grid, grid, moves, tau, 256)
        assert low <= Fraction(2**256, 10**9) and high <= Fraction(2**256, 10**9)
        assert seen_bounds(scale * grid, grid, moves, tau - 1, 256)[1] > Fraction(2**256, 10**9)
    assert DiscreteLaplace(Fraction(20)).grid == 1
