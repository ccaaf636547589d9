"""Exact thresholds, held against decimal's correctly rounded exp, which we did not write."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from depth import often, thin
from hypothesis import given, settings
from hypothesis import strategies as st

from wpinq.core.noise.words import WORD, Threshold, thresholds
from wpinq.exact import exp_bounds

SCALES = [
    Fraction(1, 1000), Fraction(1, 45), Fraction(1, 44), Fraction(1, 3), Fraction(1), Fraction(10), Fraction(10**4),
    Fraction(10**12 + 39, 3 * 10**11 + 7), Fraction(10**9), Fraction(2**57), Fraction(2**60), Fraction(2**70 + 1, 3),
]  # fmt: skip


def truth(x: Fraction, odds: bool, digits: int) -> Fraction:
    """The probability to `digits` decimal places, by decimal's own exp."""
    context = Context(prec=digits + 30)
    power = context.exp(context.divide(Decimal(-x.numerator), Decimal(x.denominator)))
    return Fraction(context.divide(power, context.add(1, power)) if odds else power)


def word_of(p: Fraction, depth: int) -> int:
    return math.floor(p * 2 ** (WORD * (depth + 1))) % 2**WORD


@pytest.mark.parametrize("scale", SCALES)
def test_every_word_of_every_digit(scale: Fraction) -> None:
    for limit in thresholds(scale):
        size = 200 + int(limit.x / 2)  # decimal places that hold three words of what may be exp(-1000)
        p = truth(limit.x, limit.odds, size)
        assert [limit.word(depth) for depth in range(3)] == [word_of(p, depth) for depth in range(3)]


@settings(max_examples=often(60), deadline=None)
@given(st.fractions(min_value=Fraction(1, 1000), max_value=2**60), st.integers(0, 5))
def test_any_scale_and_depth(scale: Fraction, depth: int) -> None:
    limits = thresholds(scale)
    for limit in (limits[0], limits[len(limits) // 2], limits[-1]):
        assert limit.word(depth) == word_of(truth(limit.x, limit.odds, 200 + int(limit.x / 2)), depth)


@settings(deadline=None)
@given(st.fractions(min_value=0, max_value=2000), st.integers(1, 400))
def test_bounds_enclose_the_exponential_closely(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    exact = truth(x, odds=False, digits=200 + int(x / 2)) * 2**bits
    slack = Fraction(1, 10**60)
    assert low <= exact + slack
    assert exact - slack <= high
    assert 0 <= high - low <= 2**14 * (bits + 10)  # 12 squarings double the error of about `bits` terms


def test_bounds_enclose_every_small_case() -> None:
    """All x = n/23 to n/1 below 3, at 1 to 20 bits: without the bound on the remainder 16 of these are wrong."""
    for x in {Fraction(n, d) for d in range(1, 24) for n in range(3 * d)}:
        exact = truth(x, odds=False, digits=60)
        for bits in range(1, 21):
            low, high = exp_bounds(x, bits)
            assert low <= exact * 2**bits <= high


def test_guard_bits_are_widened_until_the_bounds_agree() -> None:
    """A probability whose places 65 to 200 are all ones: 64 guard bits cannot decide it, more must."""
    x = -_log(1 - Fraction(1, 2**200))
    limit = Threshold(x, odds=False)
    assert [limit.word(depth) for depth in range(4)] == [word_of(truth(x, False, 300), depth) for depth in range(4)]
    assert limit.word(0) == limit.word(1) == 2**64 - 1


def _log(p: Fraction) -> Fraction:
    context = Context(prec=200)
    return Fraction(context.ln(context.divide(Decimal(p.numerator), Decimal(p.denominator))))


@pytest.mark.parametrize("scale", SCALES)
def test_number_of_digits(scale: Fraction) -> None:
    """J is the least with 2^J >= 45 * scale, so the tail is below 2^-64 (rule 33)."""
    digits = len(thresholds(scale)) - 1
    assert 2**digits >= 45 * scale
    assert digits == 0 or 2 ** (digits - 1) < 45 * scale
    assert thresholds(scale)[-1].word(0) == 0


@thin(4)
@pytest.mark.parametrize("scale", SCALES)
def test_no_digit_and_no_tail_is_exactly_one_minus_r(scale: Fraction) -> None:
    """The product of (1 - p_j) and (1 - tail) is P(G = 0) = 1 - r: nothing is missing, nothing is double."""
    places = 40
    product = Fraction(1)
    for limit in thresholds(scale):
        product *= 1 - value(limit, places)
    assert abs(product - (1 - truth(1 / scale, False, 900))) < Fraction(1, 2 ** (64 * places - 10))


def value(limit: Threshold, words: int) -> Fraction:
    return Fraction(
        sum(limit.word(depth) << (WORD * (words - 1 - depth)) for depth in range(words)), 2 ** (WORD * words)
    )


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(10)])
def test_the_digits_give_every_value_its_exact_probability(scale: Fraction) -> None:
    """To 40 scales and beyond: the product over the digits of k is (1 - r) r^k, to a relative 1e-30."""
    context = Context(prec=80)
    with localcontext(context):
        *digits, tail = [decimal(value(limit, 8)) for limit in thresholds(scale)]
        r = decimal(truth(1 / scale, False, 100))
        for k in range(2 ** len(digits)):
            p = 1 - tail
            for j, digit in enumerate(digits):
                p *= digit if k >> j & 1 else 1 - digit
            assert abs(p / ((1 - r) * r**k) - 1) < Decimal("1e-30")
    assert 2 ** len(digits) > 40 * scale


def decimal(p: Fraction) -> Decimal:
    return Decimal(p.numerator) / Decimal(p.denominator)
