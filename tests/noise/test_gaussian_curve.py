"""Gaussian noise of an epsilon and a delta: by the exact law on neighbours, where noise too narrow is found."""

import math
from fractions import Fraction

import numpy as np
import pytest
from depth import thin
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from wpinq.core.noise import gaussian_curve
from wpinq.core.noise.gaussian_curve import below, holds, root_of_two_pi, shift_of, square_of
from wpinq.errors import PlanError

CASES = [("1", "1e-6"), ("0.2", "1e-6"), ("4", "1e-3"), ("0.05", "1e-4"), ("8", "1e-9"), ("0.5", "0.3")]


def law(square):
    most = math.ceil(12 * math.sqrt(square)) + 8
    x = np.arange(-most, most + 1)
    weights = np.exp(-(x.astype(float) ** 2) / (2 * float(square)))
    return weights / weights.sum()


def lost(square, moves, epsilon):
    """delta of discrete noise on a vector that moves by these one or two numbers, by its exact law."""
    chance = law(square)
    most = len(chance) // 2
    x = np.arange(-most, most + 1)
    each = [(move**2 + 2 * move * x) / (2 * float(square)) for move in moves]
    losses, chances = (each[0], chance) if len(moves) == 1 else (np.add.outer(*each), np.multiply.outer(chance, chance))
    return float(np.sum(chances * np.maximum(0, -np.expm1(float(epsilon) - losses))))


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
@pytest.mark.parametrize("moves", [(1,), (3,), (1, 1), (2, 1)], ids=str)
def test_discrete_noise_holds_epsilon_and_delta_on_neighbours(epsilon, delta, moves):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    square = square_of(Fraction(sum(move**2 for move in moves)), len(moves), epsilon, delta)
    assert lost(square, moves, epsilon) <= float(delta) * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.2", "1e-6"), ("0.05", "1e-4")])
def test_noise_that_is_three_percent_narrower_is_found(epsilon, delta):
    """Where a unit moves a bin by 40, so that rounding is little."""
    epsilon, delta, move = Fraction(epsilon), Fraction(delta), 40
    square = square_of(Fraction(move**2), 1, epsilon, delta)
    assert lost(square, (move,), epsilon) <= float(delta) < lost(square * Fraction(97, 100) ** 2, (move,), epsilon)


@given(st.integers(1, 600), st.integers(1, 12))
def test_the_shift_is_the_largest(hundredths, digits):
    epsilon, delta = Fraction(hundredths, 100), Fraction(1, 10**digits)
    shift = float(shift_of(epsilon, delta))
    found = norm.cdf(shift / 2 - float(epsilon) / shift) - math.exp(epsilon) * norm.cdf(
        -shift / 2 - float(epsilon) / shift
    )
    assert found == pytest.approx(float(delta), rel=1e-4)
    assert not holds(shift_of(epsilon, delta) * Fraction(10001, 10000), epsilon, delta)


@given(st.fractions(-30, 30, max_denominator=1000), st.sampled_from([40, 128, 300]))
def test_the_normal_law_is_bounded(x, bits):
    low, high = below(x, bits)
    assert 0 <= low <= high <= 1 << bits and high - low <= 2
    assert low / 2**bits <= norm.cdf(float(x)) * (1 + 1e-9) + 2.0**-bits
    assert norm.cdf(float(x)) * (1 - 1e-9) <= high / 2**bits + 1e-12
    mirrored = below(-x, bits)
    assert low + mirrored[1] == 1 << bits or x == 0


def test_the_root_is_bounded():
    low, high = root_of_two_pi(100)
    assert low / 2**100 == pytest.approx(math.sqrt(2 * math.pi), rel=1e-15) and high - low < 200
    assert low**2 < 2 * 31415926535897932384626433832795028842 * 2**200 // 10**37 < high**2


@pytest.mark.parametrize(("square", "rest"), [(1, 4), (2, 9)])
def test_discrete_noise_is_rounded_continuous_noise(square, rest):
    """The lemma of the module: both laws agree to (1 + h) / (1 - h), here with the integral done by quadrature."""
    h = 2.1 * math.exp(-2 * math.pi**2 * square)
    whole = sum(math.exp(-(x**2) / (2 * (square + rest))) for x in range(-60, 61))

    def rounded(y):
        def inside(w):
            near = sum(math.exp(-((k - w) ** 2) / (2 * square)) for k in range(math.floor(w) - 15, math.ceil(w) + 16))
            return math.exp(-(w**2) / (2 * rest)) * math.exp(-((y - w) ** 2) / (2 * square)) / near

        return quad(inside, y - 30, y + 30, limit=400, epsabs=0, epsrel=1e-12)[0] / math.sqrt(2 * math.pi * rest)

    for y in range(6):
        ratio = rounded(y) / (math.exp(-(y**2) / (2 * (square + rest))) / whole)
        assert (1 - h) / (1 + h) - 1e-9 <= ratio <= (1 + h) / (1 - h) + 1e-9


def test_more_bins_and_smaller_epsilons_are_rounded_wider():
    """a^2 covers 12 d 2^(-28 a^2) <= epsilon 2^-40, by the argument of the module."""
    for bins in (1, 100, 10**6, 2**57):
        for epsilon in (Fraction(3), Fraction(1), Fraction(1, 1000), Fraction(1, 10**9)):
            extra = (
                square_of(Fraction(1), bins, epsilon, Fraction(1, 1000)) - 1 / shift_of(epsilon, Fraction(1, 1000)) ** 2
            )
            assert 12 * bins <= min(epsilon, Fraction(1)) * 2 ** (28 * int(extra) - gaussian_curve.SLACK)


def test_what_could_not_be_drawn_is_refused():
    with pytest.raises(PlanError, match="take more of either"):
        square_of(Fraction(1), 1, Fraction(1, 10**15), Fraction(1, 10**60))


@thin(3)
@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 3), Fraction(1, 10**40)])
def test_of_a_large_epsilon_noise_is_a_bit_wider_and_takes_no_long_numbers(delta, monkeypatch):
    epsilon = Fraction(1100)
    short = shift_of(epsilon, delta)
    assert holds(short, epsilon, delta)
    monkeypatch.setattr(gaussian_curve, "LARGE", epsilon + 1)
    assert 0.93 < short / shift_of.__wrapped__(epsilon, delta) < 1
    assert shift_of(Fraction(10**9), delta) > 44_000
