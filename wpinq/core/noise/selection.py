"""Optimal partition selection: names existing bins, each with the largest probability that (epsilon, delta) allows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.core.noise.words import WORD, WordSource, checked
from wpinq.exact import exp_bounds

_GUARD = 64


@dataclass(frozen=True)
class PartitionSelection:
    """Keep a bin of weight n with probability pi(n), the largest function that is private for steps of 1.

    pi(n) = min(e^eps pi(n-1) + delta, 1 - e^-eps (1 - pi(n-1) - delta), 1), and 0 for n <= 0. In closed form, with
    q = e^-eps: delta (q^-n - 1) / (q^-1 - 1) up to n1, the first n with pi(n) > (1 - delta) / (e^eps + 1); then
    1 - pi(n1 + m) = q^m (1 - pi(n1)) - (1 - q^m) delta / (q^-1 - 1), until it is 1. It is the distribution of a
    truncated geometric variable. For a bin the endless word of its identity is compared with pi(n), exactly.

    Attributes:
        epsilon: For one step of 1.
        delta: For one step of 1, below 1.

    Source: Desfontaines, Voss, Gipson and Mandayam, "Differentially private partition selection", PoPETs 2022(1),
    theorems 1 and 2.
    """

    epsilon: Fraction
    delta: Fraction

    def keep(self, words: WordSource, identities: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.bool_]:
        """Decide for each bin, by its identity and weight.

        Args:
            words: The query's pseudorandom words.
            identities: Shape (n, 2), uint64.
            weights: Shape (n,): in units of 1/resolution.
        """
        rows = checked(identities)
        levels, index = np.unique(weights, return_inverse=True)
        limits = [self.places(int(level), WORD) for level in levels.tolist()]
        always = np.array([limit >> WORD > 0 for limit in limits], np.bool_)[index]
        first = np.array([limit % (1 << WORD) for limit in limits], np.uint64)[index]
        drawn = words.pair(rows, 0)[:, 0]
        kept: NDArray[np.bool_] = always | (drawn < first)
        for row in np.flatnonzero((drawn == first) & ~always).tolist():
            kept[row] = self._tie(words, rows[row : row + 1], int(weights[row]))
        return kept

    def places(self, n: int, places: int) -> int:
        """Give floor(2^places * pi(n)) exactly."""
        if n <= 0:
            return 0
        if n == 1:
            return (self.delta.numerator << places) // self.delta.denominator
        guard = _GUARD
        while True:
            low, high = self.bounds(n, places + guard)
            if low >> guard == high >> guard:
                return low >> guard
            guard *= 2

    def bounds(self, n: int, bits: int) -> tuple[int, int]:
        """Bound 2^bits * pi(n) from below and above, for n >= 1."""
        turn, unit = _turn(self), 1 << bits
        if n <= turn:
            low, high = self._rise(n, bits)
        else:
            left_low, left_high = self._fall(n - turn, turn, bits)
            low, high = unit - left_high, unit - left_low
        return max(0, min(low, unit)), max(0, min(high, unit))

    def _rise(self, n: int, bits: int) -> tuple[int, int]:
        """Bound delta q (1 - q^n) / (q^n (1 - q))."""
        work = bits + 64 + _bits_of(n * self.epsilon)
        unit = 1 << work
        (q_low, q_high), (p_low, p_high) = exp_bounds(self.epsilon, work), exp_bounds(n * self.epsilon, work)
        top, bottom = self.delta.numerator << bits, self.delta.denominator
        low = top * q_low * (unit - p_high) // (bottom * p_high * (unit - q_low))
        high = -(-top * q_high * (unit - p_low) // (bottom * max(1, p_low) * max(1, unit - q_high)))
        return low, high

    def _fall(self, m: int, turn: int, bits: int) -> tuple[int, int]:
        """Bound 1 - pi(n1 + m) = q^m (1 - pi(n1)) - (1 - q^m) delta q / (1 - q)."""
        work = bits + 64
        unit = 1 << work
        (q_low, q_high), (p_low, p_high) = exp_bounds(self.epsilon, work), exp_bounds(m * self.epsilon, work)
        reached_low, reached_high = self._rise(turn, work)
        top, bottom = self.delta.numerator, self.delta.denominator
        gain_low = top * q_low * (unit - p_high) // (bottom * (unit - q_low))
        gain_high = -(-top * q_high * (unit - p_low) // (bottom * max(1, unit - q_high)))
        low = (p_low * (unit - reached_high) >> work) - gain_high
        high = -(-p_high * (unit - reached_low) >> work) - gain_low
        return low >> 64, -(-high >> 64)

    def _tie(self, words: WordSource, identity: NDArray[np.uint64], weight: int) -> bool:
        """Compare the endless word with pi, where the first 64 bits are equal."""
        depth = 1
        while True:
            word = int(words.pair(identity, depth)[0, 0])
            limit = self.places(weight, WORD * (depth + 1)) % (1 << WORD)
            if word != limit:
                return word < limit
            depth += 1


def selection(epsilon: Fraction, delta: Fraction, l1: int) -> PartitionSelection:
    """The selection that costs epsilon and delta for a unit with L1 sensitivity `l1`, however it spreads its weight.

    w steps of 1 in one bin cost w eps' and delta' (e^(w eps') - 1) / (e^eps' - 1). That is convex in w, so all steps in
    one bin are the worst case: eps' = epsilon / l1, delta' = delta (e^eps' - 1) / (e^epsilon - 1), rounded down.
    """
    if l1 == 1:
        return PartitionSelection(epsilon, delta)
    bits = 128 + _bits_of(epsilon) + l1.bit_length() + max(0, (l1 / epsilon).__ceil__().bit_length())
    (p_low, _), (_, q_high) = exp_bounds(epsilon, bits), exp_bounds(epsilon / l1, bits)
    unit = 1 << bits  # (1/q - 1) / (1/p - 1) = p (1 - q) / (q (1 - p))
    return PartitionSelection(epsilon / l1, delta * Fraction(p_low * (unit - q_high), q_high * (unit - p_low)))


@lru_cache(maxsize=256)
def _turn(selection: PartitionSelection) -> int:
    """The last n for which the first branch holds: pi(n - 1) <= (1 - delta) / (e^eps + 1); 1 at the least."""
    high = 2
    while not _past(selection, high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _past(selection, middle) else (middle, high)
    return low


def _past(selection: PartitionSelection, n: int) -> bool:
    """Whether the first branch at n - 1 >= 1 is above (1 - delta) q / (1 + q). They are never equal."""
    bits = 128
    while True:
        low, high = selection._rise(n - 1, bits)
        q_low, q_high = exp_bounds(selection.epsilon, bits)
        unit, left = 1 << bits, 1 - selection.delta
        if low * (unit + q_low) > left * q_high * unit:
            return True
        if high * (unit + q_high) < left * q_low * unit:
            return False
        bits *= 2


def _bits_of(x: Fraction) -> int:
    """More bits than the integer part of e^x has."""
    return int(x * 3 / 2) + 2
