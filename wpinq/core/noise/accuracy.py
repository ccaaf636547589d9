"""The least epsilon for a wanted accuracy, and intervals that hold for many bins at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from wpinq.core.noise.geometric import LARGEST, SMALLEST
from wpinq.errors import PlanError
from wpinq.exact import decimal, power

if TYPE_CHECKING:
    from wpinq.core.noise import Mechanism

_BITS = 96
_LEAST = Fraction(1, 10**30)
_DIGITS = 9000
"""Numbers of four significant digits in a decade."""


def level_of_each(level: Fraction, bins: int) -> Fraction:
    """Find the level at which single intervals must hold, so that those of so many bins hold together.

    The noises are independent, so it is the root of that degree, rounded up to a multiple of 2^-96.

    Raises:
        PlanError: The level is not strictly between 0 and 1, or there is no bin.
    """
    if not 0 < level < 1:
        raise PlanError(f"interval(level=...): {decimal(level)} is not strictly between 0 and 1; write 0.95, say.")
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise PlanError("interval(bins=...): how many bins are to hold together is a whole number above zero.")
    if bins == 1:
        return level
    low, high = 0, 1 << _BITS
    while high - low > 1:
        middle = (low + high) // 2
        enough = power(middle, bins, _BITS, up=False) >= level * (1 << _BITS)
        low, high = (low, middle) if enough else (middle, high)
    return Fraction(min(high, (1 << _BITS) - 1), 1 << _BITS)


def epsilon_within(noise: Callable[[Fraction], Mechanism], l1: Fraction, within: Fraction, level: Fraction) -> Fraction:
    """Find the least epsilon, in four significant digits, for which a bin is within a distance of the truth.

    Args:
        noise: Makes the mechanism of a scale.
        l1: The L1 sensitivity, in units of 1/resolution.
        within: The wanted half width of the interval, in units of 1/resolution, above zero.
        level: The probability with which the interval holds the truth.

    Raises:
        PlanError: The level is not strictly between 0 and 1, or nearer to one of them than 10^-30, or the distance is
            less than 10^-30 of the movement or more than 10^30 times it.
    """
    if not 0 < level < 1:
        raise PlanError(f"measure(confidence=...): {decimal(level)} is not strictly between 0 and 1; write 0.95, say.")
    rest = 1 - level
    if min(level, rest) < _LEAST or not _LEAST < l1 / within < 1 / _LEAST:
        raise PlanError("measure(within=..., confidence=...): no noise is as narrow, as wide or as sure as that.")

    def enough(epsilon: Fraction) -> bool:
        scale = l1 / epsilon
        if not SMALLEST <= scale <= LARGEST:
            return scale < SMALLEST
        mechanism = noise(scale)
        return mechanism.half_width(level) <= within * mechanism.grid

    spread = -math.log1p(-float(level)) if 2 * level < 1 else -math.log(float(rest))
    return least(enough, l1 / within * Fraction(spread))


def least(enough: Callable[[Fraction], bool], start: Fraction) -> Fraction:
    """The least number of four significant digits that is enough, as all larger ones are; `near` it, or not."""
    guess = math.floor(math.log10(start))
    low, high = _DIGITS * (guess - 1), _DIGITS * (guess + 1)
    while enough(_number(low)):
        low -= _DIGITS
    while not enough(_number(high)):
        high += _DIGITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(_number(middle)) else (middle, high)
    return _number(high)


def _number(index: int) -> Fraction:
    """Number the decimals of four significant digits, in order: 1.000 is 0."""
    return Fraction(1000 + index % _DIGITS, 1000) * Fraction(10) ** (index // _DIGITS)
