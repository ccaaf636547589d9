"""Exact probabilities of binary digits: the thresholds that a sampler compares pseudorandom words with.

A geometric variable with ratio r = exp(-1/scale) has independent binary digits; digit j is 1 with
probability r^(2^j) / (1 + r^(2^j)), and some digit from J on is 1 with probability r^(2^J). These are
irrational, so integer bounds from below and above, computed with more and more guard bits, in the end
agree on any number of binary places: nothing is ever rounded. Source: privacy rules 33 and 34.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from wpinq.exact import exp_bounds

WORD = 64
_GUARD = 64


@dataclass(frozen=True)
class Threshold:
    """The binary expansion of exp(-x), or with `odds` of exp(-x) / (1 + exp(-x)), as an endless sequence of words."""

    x: Fraction
    odds: bool

    def word(self, depth: int) -> int:
        """Give 64 binary places of the probability: places 64 * depth + 1 and after."""
        return binary_places(self.x, self.odds, WORD * (depth + 1)) & ((1 << WORD) - 1)

    @cached_property
    def first(self) -> int:
        """The first word, which decides almost always."""
        return self.word(0)


@lru_cache(maxsize=4096)
def binary_places(x: Fraction, odds: bool, places: int) -> int:
    """Give floor(2^places * p): the two bounds agree on it, so it is right."""
    guard = _GUARD
    while True:
        bits = places + guard
        low, high = exp_bounds(x, bits)
        if odds:  # e / (1 + e) grows with e
            low, high = (low << bits) // ((1 << bits) + low), -(-(high << bits) // ((1 << bits) + high))
        if low >> guard == high >> guard:
            return low >> guard
        guard *= 2


@lru_cache(maxsize=256)
def thresholds(scale: Fraction) -> tuple[Threshold, ...]:
    """Give the thresholds of a geometric variable: digits 0 to J - 1, and last the tail r^(2^J).

    J is the least with 2^J >= 45 * scale, so the tail is below 2^-64.
    """
    digits = max(0, (-(-45 * scale.numerator // scale.denominator) - 1).bit_length())
    low = tuple(Threshold((1 << j) / scale, odds=True) for j in range(digits))
    return (*low, Threshold((1 << digits) / scale, odds=False))
