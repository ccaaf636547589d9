"""Discrete Laplace noise, also called two-sided geometric: exact, vectorised, and a function of the bin.

`GridLaplace` is Laplace noise on a dyadic grid that does not depend on data: discrete Laplace noise at a finer
resolution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import eq
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wpinq.core.kernels import LIB, digit
from wpinq.core.noise.words import Threshold, Words, WordSource, checked, pieces, thresholds
from wpinq.errors import PlanError
from wpinq.exact import exp_bounds

SMALLEST, LARGEST = Fraction(1, 1000), Fraction(2**57)
_MOST_HITS = 64


@dataclass(frozen=True)
class DiscreteLaplace:
    """Noise N on the integers with P(N = k) = (1 - r) / (1 + r) * r^|k|, r = exp(-1/scale).

    N is the difference of two geometric variables, whose binary digits are independent: digit j is 1
    when a 64-bit word lies below its threshold; equal first words are decided by further words. Digits
    from J on come from one word compared with r^(2^J) < 2^-64: each consecutive hit adds 2^J. Every bin
    takes J + 1 words and compares them all; rare further work depends on the words alone, never on data.

    Attributes:
        scale: In units of 1/resolution, up to 2^57; epsilon is sensitivity divided by scale. A scale below 1/1000 is
            raised to 1/1000: that is more noise than needed, and still 0 except with probability 2 exp(-1000).

    Raises:
        PlanError: The scale is not above 0, or above 2^57.

    Source: privacy rules 32 to 35. Canonne, Kamath and Steinke, "The discrete Gaussian
    for differential privacy" (2020), section 5, for the distribution.
    """

    scale: Fraction
    name: ClassVar[str] = "geometric"
    law: ClassVar[str] = "discrete Laplace"
    grid: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise PlanError("noise: the scale is not above 0; take a finite epsilon.")
        if self.scale > LARGEST:
            raise PlanError(
                "noise: the scale is above 2^57 units of 1/resolution; take a larger epsilon or a coarser resolution."
            )
        object.__setattr__(self, "scale", max(self.scale, SMALLEST))

    def draw(self, words: WordSource, identities: NDArray[Any]) -> NDArray[np.int64]:
        """Draw the noise of each identity; it depends on key and identity only, not on batch or order.

        Args:
            words: The measurement's pseudorandom words.
            identities: Shape (n, 2), uint64.

        Returns:
            Shape (n,), in units of 1/resolution. Above 2^63 (below e^-64 at the largest scale) it wraps.
        """
        rows = checked(identities)
        noise = np.zeros(len(rows), dtype=np.int64)
        for piece in pieces(len(rows)):
            _draw(words, rows[piece], self._thresholds, noise[piece])
        return noise

    def draw_one(self, words: Words, identity: bytes) -> int:
        """Draw the noise of one identity, given as its block: the same as `draw`, which settles what is rare."""
        *limits, tail = self._limits
        drawn = words.first(identity, len(limits) + 1)
        left, right = drawn[:-2:2], drawn[1:-2:2]
        if min(drawn[-2:]) <= tail or any(map(eq, left, limits)) or any(map(eq, right, limits)):
            return int(self.draw(words, np.frombuffer(identity, "<u8").reshape(1, 2))[0])
        noise = 0
        for a, b, limit in zip(reversed(left), reversed(right), reversed(limits), strict=True):
            noise = 2 * noise + (a < limit) - (b < limit)
        return noise

    @cached_property
    def _limits(self) -> tuple[int, ...]:
        return tuple(limit.first for limit in self._thresholds)

    @cached_property
    def _thresholds(self) -> tuple[Threshold, ...]:
        return thresholds(self.scale)

    def half_width(self, level: Fraction) -> int:
        """Find the least t with P(|N| <= t) >= level, exactly.

        P(|N| > t) = 2 r^(t+1) / (1 + r). As r is transcendental this never equals 1 - level, so every
        comparison is decided by integer bounds of enough precision.

        Raises:
            PlanError: The level is not strictly between 0 and 1.
        """
        if not 0 < level < 1:
            raise PlanError(f"noise.half_width: level {level} is not strictly between 0 and 1; write 0.95, say.")
        return _half_width(self, level)

    def variance(self) -> float:
        """Give 2 r / (1 - r)^2, in squared units of 1/resolution."""
        x = float(1 / self.scale)
        return 2 * math.exp(-x) / math.expm1(-x) ** 2

    def _leaves(self, t: int, share: Fraction) -> bool:
        """Whether P(|N| > t) > share, that is 2 r^(t+1) > share * (1 + r)."""
        bits = 64
        while True:
            tail_low, tail_high = exp_bounds((t + 1) / self.scale, bits)
            low, high = exp_bounds(1 / self.scale, bits)
            if 2 * tail_low > share * ((1 << bits) + high):
                return True
            if 2 * tail_high < share * ((1 << bits) + low):
                return False
            bits *= 2


@lru_cache(maxsize=1024)
def _half_width(noise: DiscreteLaplace, level: Fraction) -> int:
    high = 1
    while noise._leaves(high, 1 - level):
        high *= 2
    low = -1  # _leaves(low) and not _leaves(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if noise._leaves(middle, 1 - level) else (low, middle)
    return high


def _draw(
    words: WordSource, identities: NDArray[np.uint64], limits: tuple[Threshold, ...], noise: NDArray[np.int64]
) -> None:
    """Add noise to zeros, in place."""
    *digits, tail = limits
    if LIB is None:
        _plain_digits(words, identities, digits, noise)
    else:
        for j, limit in enumerate(digits):
            drawn = words.pair(identities, j)
            if digit(LIB, drawn, limit.first, j, noise):
                for row, side in np.argwhere(drawn == np.uint64(limit.first)).tolist():
                    if _bernoulli(words, identities[row : row + 1], side, limit, j):
                        _move(noise, row, (1 - 2 * side) << j)
    for row, side in np.argwhere(_below(words, identities, tail, len(digits))).tolist():
        hits = _hits(words, identities[row : row + 1], side, tail, len(digits))
        _move(noise, row, (hits << len(digits)) * (1 - 2 * side))


def _move(noise: NDArray[np.int64], row: int, step: int) -> None:
    noise[row] = (int(noise[row]) + step + 2**63) % 2**64 - 2**63


def _plain_digits(
    words: WordSource, identities: NDArray[np.uint64], digits: list[Threshold], noise: NDArray[np.int64]
) -> None:
    """The digits without the C kernel: eight digits of both variables are packed into bytes, then subtracted."""
    for first in range(0, len(digits), 8):
        packed = np.zeros((len(identities), 2), dtype=np.uint8)
        for j in range(first, min(first + 8, len(digits))):
            packed |= _below(words, identities, digits[j], j).view(np.uint8) << np.uint8(j - first)
        noise += np.subtract(packed[:, 0], packed[:, 1], dtype=np.int64) << first


def _below(words: WordSource, identities: NDArray[np.uint64], limit: Threshold, index: int) -> NDArray[np.bool_]:
    """Compare the words of one digit with its threshold: True with exactly its probability."""
    drawn, first = words.pair(identities, index), np.uint64(limit.first)
    below, ties = drawn < first, drawn == first
    if ties.any():
        for row, side in np.argwhere(ties).tolist():
            below[row, side] = _bernoulli(words, identities[row : row + 1], side, limit, index)
    return below


def _bernoulli(words: WordSource, identity: NDArray[np.uint64], side: int, limit: Threshold, index: int) -> bool:
    """Compare an endless pseudorandom word with an endless threshold: the first 64-bit words that differ decide."""
    depth = 0
    while (word := int(words.pair(identity, number(index, depth))[0, side])) == limit.word(depth):
        depth += 1
    return word < limit.word(depth)


def _hits(words: WordSource, identity: NDArray[np.uint64], side: int, tail: Threshold, index: int) -> int:
    """Count consecutive hits of the tail, after the first; 64 of them have a probability below 2^-4096."""
    hits = 1
    while hits < _MOST_HITS and _bernoulli(words, identity, side, tail, index + hits):
        hits += 1
    return hits


def number(index: int, depth: int = 0) -> int:
    """Number the word of a digit at a depth (0, then 1 and on after ties), injectively.

    Digits are 0 to J - 1, the tail is J, its further trials J + 1 and on: all below 2^32.
    """
    return depth << 32 | index


FINEST = 20


@dataclass(frozen=True)
class GridLaplace:
    """Laplace noise on a grid of 2^-20 of a unit of 1/resolution, exactly.

    A measurement adds in grid steps and divides last: `(true * grid + draw) / grid`. True weights are
    whole numbers of grid steps too, so this is the discrete Laplace mechanism of `scale * grid` steps, with
    the same epsilon and no float before the division. (Floats leak: Mironov, "On significance of
    the least significant bits for differential privacy", 2012.)

    Attributes:
        scale: In units of 1/resolution.

    Raises:
        PlanError: The scale is out of the range of `DiscreteLaplace`.

    Source: privacy rule 34.
    """

    scale: Fraction
    name: ClassVar[str] = "laplace"
    law: ClassVar[str] = "discrete Laplace"

    def __post_init__(self) -> None:
        DiscreteLaplace(self.scale)

    @property
    def grid(self) -> int:
        """Steps in a unit of 1/resolution: 2^20, or less at scales so large that 64 bits would not hold the noise.

        It depends on the scale alone, which is public.
        """
        return 1 << min(FINEST, math.floor(LARGEST / self.scale).bit_length() - 1)

    @cached_property
    def steps(self) -> DiscreteLaplace:
        """The same noise in grid steps."""
        return DiscreteLaplace(self.scale * self.grid)

    def draw(self, words: WordSource, identities: NDArray[Any]) -> NDArray[np.int64]:
        """Draw the noise of each identity, in grid steps; see `DiscreteLaplace.draw`."""
        return self.steps.draw(words, identities)

    def draw_one(self, words: Words, identity: bytes) -> int:
        """Draw the noise of one identity, in grid steps; see `DiscreteLaplace.one`."""
        return self.steps.draw_one(words, identity)

    def half_width(self, level: Fraction) -> int:
        """Find the least number t of grid steps with P(|N| <= t) >= level, exactly."""
        return self.steps.half_width(level)

    def variance(self) -> float:
        """Give the variance in squared grid steps."""
        return self.steps.variance()
