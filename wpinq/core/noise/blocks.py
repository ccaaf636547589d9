"""Blocks under a Gaussian curve: the exact probabilities by which one is chosen, and by which a place in it stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from wpinq.core.noise.words import WORD, binary_places
from wpinq.exact import exp_bounds

FIRST = 32
"""Bits that choose a block, and bits that accept a place, before further words are asked."""
DEEPEST = 16
"""Words in a row that agree with a probability: more of them have a probability below 2^-1000."""
_GUARD = 64


@dataclass(frozen=True)
class Blocks:
    """The numbers 0, 1, 2, ... in blocks of 2^shift, and a choice among these.

    Block k has a probability proportional to exp(-(k 2^shift)^2 / (2 square)); block 0 has half of that where blocks
    are single numbers. A block is found by an endless pseudorandom number below 1: it is the first whose cumulated
    probability is above that.
    """

    square: Fraction

    @cached_property
    def shift(self) -> int:
        """The largest with 2^shift <= sigma / 16, or 0."""
        return max(0, (int(self.square / 256).bit_length() - 1) // 2)

    @cached_property
    def limits(self) -> NDArray[np.uint32]:
        """The first 32 binary places of the cumulated probabilities, and all ones for all further blocks."""
        limits_: list[int] = []
        while not limits_ or limits_[-1] < (1 << FIRST) - 1:
            limits_.append(self._places(len(limits_), FIRST))
        return np.array(limits_, np.uint32)

    @cached_property
    def exponent(self) -> Fraction:
        """Of the first number after block 0: 4^shift / (2 square)."""
        return Fraction(4**self.shift) / (2 * self.square)

    def find(self, first: int, further: Callable[[int], int]) -> int:
        """Find the block.

        Args:
            first: The first 32 bits.
            further: Gives the word of a depth, from 1 on.
        """
        block, drawn, depth = int(np.searchsorted(self.limits, np.uint32(first))), first, 0
        while depth < DEEPEST:
            limit = self._places(block, FIRST + WORD * depth)
            if drawn < limit:
                return block
            if drawn > limit:
                block += 1
            else:
                depth += 1
                drawn = drawn << WORD | further(depth)
        return block

    def stays(self, block: int, offset: int, first: int, further: Callable[[int], int]) -> bool:
        """Whether a place in a block is accepted: with probability exp(-place (2 block 2^shift + place) / (2 square)).

        Args:
            block: Its number.
            place: From 0 to 2^shift - 1.
            first: The first 32 bits of another endless number below 1, which is compared with the probability.
            further: Gives its word of a depth, from 1 on.
        """
        rate = Fraction(offset * ((block << self.shift + 1) + offset)) / (2 * self.square)
        if not rate:
            return True
        drawn, depth = first, 0
        while drawn == (limit := binary_places(rate, False, FIRST + WORD * depth)) and depth < DEEPEST:
            depth += 1
            drawn = drawn << WORD | further(depth)
        return drawn < limit

    def _places(self, block: int, places: int) -> int:
        """floor(2^places * the cumulated probability), which is below 1 and irrational."""
        guard = _GUARD
        while True:
            bits = places + guard
            low, high = cumulated(self.exponent, bits, half=not self.shift)
            at = min(block, len(low) - 1)
            least = (low[at] << bits) // high[-1]
            most = (1 << bits) - 1 if block > at else min(-(-(high[at] << bits) // low[-1]), (1 << bits) - 1)
            if least >> guard == most >> guard:
                return least >> guard
            guard *= 2


@lru_cache(maxsize=64)
def cumulated(exponent: Fraction, bits: int, *, half: bool = False) -> tuple[list[int], list[int]]:
    """Bounds of 2^bits times the sums of exp(-exponent j^2) over j from 0 to k, for each k, and last over all j.

    A term is the one before it times a factor, and the factor is the one before it times exp(-2 exponent). The sum
    ends where the rest, a geometric series at most, is no more than a few units.

    Args:
        exponent: Above zero.
        bits: Precision.
        half: Count the first term half.
    """
    unit = 1 << bits
    (low, high), (factor, factor_high) = (unit, unit), exp_bounds(exponent, bits)
    less, less_high = exp_bounds(2 * exponent, bits)
    lows, highs = [unit >> half], [unit >> half]
    while high > 1 or factor_high > unit - (unit >> 6):
        low, high = low * factor >> bits, -(-high * factor_high >> bits)
        factor, factor_high = factor * less >> bits, -(-factor_high * less_high >> bits)
        lows.append(low)
        highs.append(high)
    rest = -(-high * factor_high // (unit - factor_high))
    return list(accumulate([*lows, 0])), list(accumulate([*highs, rest]))
