"""How far discrete Gaussian noise is from zero: bounds of its tails that hold, its half widths and its moments."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, lru_cache
from statistics import NormalDist

from wpinq.core.noise.blocks import cumulated
from wpinq.exact import exp_bounds

PI = Fraction(31415926535897932384626433832795028841, 10**37)
"""From below."""
_SMALL = 400
"""From this sigma^2 on the moments are those of the continuous law, to ten digits and more."""


@lru_cache(maxsize=1024)  # a search for a threshold asks for most of them several times
def tail_bounds(square: Fraction, k: int, bits: int) -> tuple[int, int]:
    """Bound 2^bits * P(N >= k) for discrete Gaussian noise; the lower bound is 0, or that of the other side.

    The curve f(x) = exp(-x^2 / (2 square)) falls, and from sigma on it is convex. So the sum over w numbers from a on
    is at most w f(a), and from sigma on at most f(a) (w + 1) / 2 + f(a + w) (w - 1) / 2; and w is 1 below sigma = 128.
    The sum over all integers is at least sigma sqrt(2 pi), by Poisson's formula, which adds positive terms to that.

    >>> tail_bounds(Fraction(1), 1, 20)[1] / 2**20  # (1 - 1 / 2.50663) / 2
    0.3005...
    """
    unit = 1 << bits
    if k < 1:
        return unit - min(unit, tail_bounds(square, 1 - k, bits)[1]), unit
    width = 1 << max(0, (int(square / 2**14).bit_length() - 1) // 2)
    high, factor = (exp_bounds(Fraction(x) / (2 * square), bits)[1] for x in (k * k, width * (2 * k + width)))
    less = exp_bounds(Fraction(width**2) / square, bits)[1]
    total: int = high * (width + 1 if k * k >= square else 2 * width) // 2 + 1
    while high > 1 or factor > unit - (unit >> 6):
        high, factor = -(-high * factor >> bits), -(-factor * less >> bits)
        total += width * high
    total += width * -(-high * factor // (unit - factor))
    return 0, min(unit, -(-total * unit // _whole(square, bits)))


def half_width(square: Fraction, level: Fraction) -> int:
    """Find the least t, of 20 binary digits and more, with P(|N| <= t) >= level by `tail_bounds`.

    Args:
        square: sigma^2.
        level: Strictly between 0 and 1.
    """
    return _half_width(square, level)


@lru_cache(maxsize=1024)
def _half_width(square: Fraction, level: Fraction) -> int:
    rest = (1 - level) / 2
    bits = 128 + rest.denominator.bit_length() - rest.numerator.bit_length()
    sigma = math.isqrt(int(square))
    step = 1 << max(0, sigma.bit_length() - 20)

    @cache
    def leaves(index: int) -> bool:
        return tail_bounds(square, index * step + 1, bits)[1] > rest * (1 << bits)

    far = 1  # for most levels the answer is a few steps from that of the normal law
    low = high = math.floor(sigma * -NormalDist().inv_cdf(max(float(rest), 1e-300)) / step)
    while leaves(high):
        low, high, far = high, high + far, 8 * far
    while low >= 0 and not leaves(low):
        low, high, far = low - far, low, 8 * far
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if leaves(middle) else (low, middle)
    return high * step


def second_moment(square: Fraction) -> float:
    """The variance; above a few units it is sigma^2."""
    return float(square) if square >= _SMALL else _mean(float(square), 2)


def mean_size(square: Fraction) -> float:
    """The mean of |N|; sigma sqrt(2 / pi) where sigma is large."""
    return math.sqrt(2 * float(square) / math.pi) if square >= _SMALL else _mean(float(square), 1)


def _mean(square: float, power: int) -> float:
    weights = [math.exp(-x * x / (2 * square)) for x in range(1, 800)]
    total = math.fsum(weight * x**power for x, weight in enumerate(weights, 1))
    return 2 * total / (1 + 2 * math.fsum(weights))


@lru_cache(maxsize=256)
def _whole(square: Fraction, bits: int) -> int:
    """2^bits times the sum of exp(-x^2 / (2 square)) over all integers, from below."""
    if square < 16:
        sums, _ = cumulated(1 / (2 * square), bits)
        return 2 * sums[-1] - (1 << bits)
    return math.isqrt(int(2 * PI * square * 4**bits))
