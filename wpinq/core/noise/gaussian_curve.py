"""What Gaussian noise that is asked for at once costs in (epsilon, delta), exactly.

**Continuous noise.** Where one unit moves the answers, as a vector, by at most m standard deviations, the loss is
(epsilon, delta) for exactly those with

    delta >= P(m / 2 - epsilon / m) - exp(epsilon) P(-m / 2 - epsilon / m),    P the normal distribution function

(Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, arXiv 1805.06530, theorem 8).
A vector of any length counts by its length alone, since Gaussian noise is the same in all directions. No conversion
from Renyi divergences is as tight: at epsilon 1 and delta 10^-6 these need noise 7% wider.

**Discrete noise is rounded continuous noise.** Let w be continuous noise of variance b^2 around a whole number s, and
round it to y by discrete Gaussian noise of variance a^2 around w. With f_v(x) = exp(-x^2 / (2 v)) and
Z(w) = sum of f_aa(k - w) over all integers k, y has the probability

    integral of f_bb(w - s) f_aa(y - w) / Z(w) dw / (b sqrt(2 pi)).

By Poisson's formula Z(w) is a sqrt(2 pi) times 1 + 2 sum_m exp(-2 pi^2 a^2 m^2) cos(2 pi m w), so within 1 +- h of it,
h = 2.1 exp(-2 pi^2 a^2) < 2.1 * 2^(-28 a^2). Without Z, the integral is f_vv(y - s) times a constant, where
v^2 = a^2 + b^2: the law of discrete noise of variance parameter v^2 around s. So the two laws differ by a factor within
(1 + h) / (1 - h), at every whole number, and rounding does not know s: it is post-processing. Of a vector only the d
entries that a unit moves count; others have one law for both neighbours. So where continuous noise of variance b^2 is
(e, t), discrete noise of a^2 + b^2 is (e + 2 k, (1 + k) t), k = 6 d 2^(-28 a^2) at most. `square_of` takes
e = epsilon (1 - 2^-40), t = delta (1 - 2^-40), and a^2 large enough for that: 3, where a unit moves a hundred bins.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from wpinq.errors import PlanError
from wpinq.exact import decimal, exp_bounds

SLACK = 40
"""Epsilon and delta are less by 2^-SLACK of them for continuous noise; and binary places of `shift_of`."""
LARGE = 1_000
"""Beyond such an epsilon, where exact numbers have thousands of digits, noise is wider than it must be, by 1%."""
FARTHEST = 40
"""Shifts below 2^-FARTHEST standard deviations buy nothing that could be drawn."""


def square_of(moved: Fraction, bins: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The variance parameter of discrete Gaussian noise that is (epsilon, delta) where all answers are asked at once.

    Args:
        moved: The largest sum of the squares of what one unit moves, in squared units of 1/resolution.
        bins: In how many bins, at most.
        epsilon: Above zero.
        delta: Strictly between 0 and 1.

    Raises:
        PlanError: They are too small.

    >>> float(square_of(Fraction(100), 100, Fraction(1), Fraction(1, 10**6))) ** 0.5
    42.27...
    """
    places = SLACK + 4 + bins.bit_length() + (int(1 / epsilon) + 1).bit_length()
    return moved / shift_of(epsilon, delta) ** 2 + -(-places // 28)


@lru_cache(256)
def shift_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest shift, in standard deviations, of SLACK binary places, that is (epsilon, delta) with some to spare.

    Raises:
        PlanError: They are too small.
    """
    less = 1 - Fraction(1, 2**SLACK)
    epsilon, delta = epsilon * less, delta * less
    if epsilon > LARGE:
        return concentrated(epsilon, delta)
    high = Fraction(1)
    while holds(high, epsilon, delta):
        high *= 2
    while not holds(high / 2, epsilon, delta):
        high /= 2
        if high < Fraction(1, 2**FARTHEST):
            raise PlanError(
                f"measure(epsilon={decimal(epsilon)}, delta={decimal(delta)}): no Gaussian noise that could be drawn "
                "holds it; take more of either, or Laplace noise."
            )
    low = high / 2
    for _ in range(SLACK):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle, epsilon, delta) else (low, middle)
    return low


def concentrated(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A shift that is (epsilon, delta) since its loss is rho = shift^2 / 2, of SLACK binary places.

    A loss of rho is (rho + 2 sqrt(rho L), delta), L = ln(1 / delta), so it is (epsilon, delta) for the shift
    sqrt(2 (epsilon + L)) - sqrt(2 L), which falls with L. Here L is ln(2) times the binary places of 1 / delta.

    Source: Bun and Steinke, "Concentrated differential privacy", TCC 2016, arXiv 1605.02065, proposition 1.3.

    >>> float(concentrated(Fraction(10**4), Fraction(1, 10**6)))
    136.253617...
    """
    logarithm = (int(1 / delta) + 1).bit_length() * Fraction(6932, 10_000)
    larger, smaller = (int(2 * part * 4**SLACK) for part in (epsilon + logarithm, logarithm))
    return Fraction(isqrt(larger) - isqrt(smaller) - 1, 2**SLACK)


def holds(shift: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether continuous noise is known to be (epsilon, delta) for a shift of so many standard deviations."""
    bits = 96 + (int(1 / delta) + 1).bit_length() + int(epsilon * 3 / 2)
    unit, distance = 1 << bits, epsilon / shift
    above = below(shift / 2 - distance, bits)[1]
    less = below(-shift / 2 - distance, bits)[0]
    return above - less * unit // (exp_bounds(epsilon, bits)[1] or 1) <= delta * unit


def below(x: Fraction, bits: int) -> tuple[int, int]:
    """Bound 2^bits times the normal distribution function at x.

    Below zero it is 1/2 - f (y + y^3 / 3 + y^5 / (3 * 5) + ...), y = -x, f the density: all terms have one sign, and
    once a term is at most half of the one before, all that follow come to less than twice the first of them.

    >>> low, high = below(Fraction(-2), 60)
    >>> low / 2**60, high - low < 4
    (0.02275..., True)
    """
    unit = 1 << bits
    if x > 0:
        low, high = below(-x, bits)
        return unit - high, unit - low
    square = x * x
    if square > 3 * bits:
        return 0, 1
    work = bits + int(square) + 32
    term_low = -x.numerator * (1 << work) // x.denominator
    term_high, low, high, odd = term_low + 1, 0, 0, 1
    while term_high > 1 or 2 * square > odd:
        low, high, odd = low + term_low, high + term_high, odd + 2
        term_low = term_low * square.numerator // (square.denominator * odd)
        term_high = -(-term_high * square.numerator // (square.denominator * odd))
    high += 2 * term_high
    curve_low, curve_high = exp_bounds(square / 2, work)
    root_low, root_high = root_of_two_pi(work)
    out = 2 * work - bits
    half_low = low * curve_low * (1 << work) // root_high
    half_high = -(-high * curve_high * (1 << work) // root_low)
    return max(0, (unit >> 1) - (half_high >> out) - 1), max(0, (unit >> 1) - (half_low >> out))


@lru_cache(64)
def root_of_two_pi(bits: int) -> tuple[int, int]:
    """Bound 2^bits sqrt(2 pi), with pi = 16 arctan(1/5) - 4 arctan(1/239) (Machin)."""
    (five_low, five_high), (far_low, far_high) = _arctan(5, 2 * bits), _arctan(239, 2 * bits)
    return isqrt(2 * (16 * five_low - 4 * far_high)), isqrt(2 * (16 * five_high - 4 * far_low)) + 1


def _arctan(over: int, bits: int) -> tuple[int, int]:
    """Bound 2^bits arctan(1 / over), whose series alternates and falls; each term is wrong by less than 2."""
    power, total, odd = (1 << bits) // over, 0, 1
    while power:
        total += power // odd if odd % 4 == 1 else -(power // odd)
        power, odd = power // over**2, odd + 2
    return total - odd, total + odd
