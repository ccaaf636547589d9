"""Discrete Gaussian noise: exact, vectorised, and a function of the bin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wpinq.core.kernels import LIB
from wpinq.core.kernels.bell import ACCEPTED, MARGIN, OPEN, REJECTED, Tables, bell
from wpinq.core.noise.blocks import Blocks
from wpinq.core.noise.gaussian_tails import half_width, mean_size, second_moment
from wpinq.core.noise.geometric import LARGEST, SMALLEST, number
from wpinq.core.noise.words import Words, WordSource, binary_places, checked, pieces
from wpinq.errors import PlanError

ROUNDS = 64
"""A round rejects with probability below 1/30, so that more of them have a probability below 2^-300."""


@dataclass(frozen=True)
class DiscreteGaussian:
    """Noise N on the integers with P(N = k) proportional to exp(-k^2 / (2 square)).

    True weights are whole numbers of 1/resolution, so this is their own grid, and a finer one would not help: a unit
    that moves bins by s_1, s_2, ... such steps loses rho = (s_1^2 + s_2^2 + ...) / (2 square) on every grid, and the
    variance is never above `square`, and the smaller the coarser the grid is.

    Magnitudes are cut into blocks of w = 2^b, w <= sigma / 16 (of 1 where sigma < 32). A round takes the two words of
    the bin under one number: 32 bits choose a block k with probability proportional to exp(-(k w)^2 / (2 square)), b
    bits a place r in it, one the sign, 32 accept it with probability exp(-r (2 k w + r) / (2 square)), and 0 with the
    negative sign is rejected, or it would count twice. (Blocks of 1 have r = 0: all of them are accepted, and 0 has
    half the probability instead.) What is accepted has exactly the law; a bin that is rejected, one in 30 or less,
    takes the next number. The number of rounds and the value are independent, as rounds are; neither depends on data.

    Bits are compared with integer bounds of the probabilities. Where these leave it open, for one bin in ten million,
    further words of the bin settle it, by exact comparison with as many binary places as it takes: nothing is rounded.

    Attributes:
        square: sigma^2, in squared units of 1/resolution, up to 2^114. Below 10^-6 it is raised to that, which is more
            noise than needed, and still 0 except with probability 2 exp(-500000).

    Raises:
        PlanError: It is not above 0, or above 2^114.

    Source: Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020 (arXiv
    2004.00010), theorem 4 for the privacy of it; privacy rules 33 and 34. They draw by rejection from discrete Laplace
    noise; blocks need fewer words.
    """

    square: Fraction
    name: ClassVar[str] = "gaussian"
    law: ClassVar[str] = "discrete Gaussian"
    grid: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.square <= 0:
            raise PlanError("noise: the variance is not above 0; take a finite rho or epsilon.")
        if self.square > LARGEST**2:
            raise PlanError(
                "noise: the standard deviation is above 2^57 units of 1/resolution; take a larger rho or epsilon."
            )
        object.__setattr__(self, "square", max(self.square, SMALLEST**2))

    @property
    def scale(self) -> Fraction:
        """Sigma, rounded up to a multiple of 2^-64, in units of 1/resolution."""
        return Fraction(math.isqrt(math.ceil(self.square * 4**64) - 1) + 1, 2**64)

    def rho(self, moved: Fraction) -> Fraction:
        """The loss of zero-concentrated privacy of a unit whose moves, squared, add up to this."""
        return moved / (2 * self.square)

    def draw(self, words: WordSource, identities: NDArray[Any]) -> NDArray[np.int64]:
        """Draw the noise of each identity; it depends on key and identity only, not on batch or order.

        Args:
            words: The measurement's pseudorandom words.
            identities: Shape (n, 2), uint64.

        Returns:
            Shape (n,), in units of 1/resolution. Above 2^63 (64 sigma, at the largest) it wraps.
        """
        rows = checked(identities)
        noise = np.zeros(len(rows), dtype=np.int64)
        first = [self._round(words, rows[some], noise[some], 0) + some.start for some in pieces(len(rows))]
        left = np.concatenate([np.empty(0, np.int64), *first])
        for turn in range(1, ROUNDS):
            if not len(left):
                break
            drawn = np.zeros(len(left), dtype=np.int64)
            again = self._round(words, rows[left], drawn, turn)
            noise[left] = drawn
            left = left[again]
        return noise

    def draw_one(self, words: Words, identity: bytes) -> int:
        """Draw the noise of one identity, given as its block: the same as `draw`."""
        return int(self.draw(words, np.frombuffer(identity, "<u8").reshape(1, 2))[0])

    def half_width(self, level: Fraction) -> int:
        """Find the least t for which P(|N| <= t) is known to be at least the level; see `gaussian_tails.half_width`.

        Raises:
            PlanError: The level is not strictly between 0 and 1.
        """
        if not 0 < level < 1:
            raise PlanError(f"noise.half_width: level {level} is not strictly between 0 and 1; write 0.95, say.")
        return half_width(self.square, level)

    def variance(self) -> float:
        """Give the variance, in squared units of 1/resolution."""
        return second_moment(self.square)

    def mean(self) -> float:
        """Give the mean of |N|, in units of 1/resolution."""
        return mean_size(self.square)

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self.square)

    def _round(
        self, words: WordSource, rows: NDArray[np.uint64], noise: NDArray[np.int64], turn: int
    ) -> NDArray[np.int64]:
        """Write what a round draws, and give the rows that it rejects."""
        tables = tables_of(self._blocks)
        drawn, state = words.pair(rows, number(turn)), np.empty(len(rows), np.uint8)
        open_ones = plain(tables, drawn, noise, state) if LIB is None else bell(LIB, tables, drawn, noise, state)
        for row in np.flatnonzero(state == OPEN).tolist() if open_ones else ():
            value = self._settled(words, rows[row : row + 1], turn)
            state[row] = REJECTED if value is None else ACCEPTED
            noise[row] = ((value or 0) + 2**63) % 2**64 - 2**63
        return np.flatnonzero(state == REJECTED)

    def _settled(self, words: WordSource, identity: NDArray[np.uint64], turn: int) -> int | None:
        """One round for one bin, exactly: None where it is rejected."""
        first, second = (int(word) for word in words.pair(identity, number(turn))[0])

        def further(depth: int, side: int) -> int:
            return int(words.pair(identity, number(turn, depth))[0, side])

        shift = self._blocks.shift
        block, offset = self._blocks.find(first >> 32, partial(further, side=0)), second & ((1 << shift) - 1)
        size, negative = (block << shift) + offset, bool(second >> 63)
        if not self._blocks.stays(block, offset, first & 0xFFFFFFFF, partial(further, side=1)):
            return None
        return None if shift and negative and not size else -size if negative else size


@lru_cache(maxsize=256)
def tables_of(blocks: Blocks) -> Tables:
    """The tables by which almost all bins are decided.

    `exps` holds exp(-i / 1024). With v = place / 2^shift the acceptance is exp(-q), q = e v (2 block + v), e the
    exponent of `blocks`: 1/512 at most, and q below 1/2 for all blocks that the limits list. It is computed from v in
    26 binary places, v (2 block + v) in 24, e in 40, q in 32, all rounded down, so q is too small by less than
    2^-27 + 2^-33 + 2^-30 + 2^-32; and exp(-q) is the table's entry in 31 places times 1 - d + d^2 / 2, d below 1/1024,
    wrong by less than 2^-30 in all. Together that is less than 2^-26, and what is nearer than `bell.MARGIN`, 2^-25, is
    left open.
    """
    limits = blocks.limits
    start = np.searchsorted(limits, np.arange(256, dtype=np.uint32) << np.uint32(24)).astype(np.uint32)
    exps = np.array([binary_places(Fraction(i, 1024), False, 31) for i in range(512)], np.uint32)
    return Tables(blocks.shift, math.floor(blocks.exponent * 2**40) if blocks.shift else 0, start, limits, exps)


def plain(tables: Tables, words: NDArray[np.uint64], noise: NDArray[np.int64], state: NDArray[np.uint8]) -> int:
    """What the kernel does, in NumPy; see `kernels.bell`."""
    first, second, low = words[:, 0], words[:, 1], np.uint64(0xFFFFFFFF)
    chosen = (first >> np.uint64(32)).astype(np.uint32)
    block = np.searchsorted(tables.limits, chosen)
    undecided = tables.limits[block] == chosen
    offset, negative = second & np.uint64((1 << tables.shift) - 1), (second >> np.uint64(63)).astype(np.bool_)
    up = tables.shift - 26
    part = offset >> np.uint64(up) if up >= 0 else offset << np.uint64(-up)
    area = (part * ((block.astype(np.uint64) << np.uint64(27)) + part)) >> np.uint64(28)
    exponent = (area * np.uint64(tables.rate)) >> np.uint64(32)
    rest = exponent & np.uint64((1 << 22) - 1)
    factor = np.uint64(1 << 32) - rest + ((rest * rest) >> np.uint64(33))
    chance = ((tables.exps[exponent >> np.uint64(22)].astype(np.uint64) * factor) >> np.uint64(31)).astype(np.int64)
    over = (first & low).astype(np.int64) - chance
    undecided |= np.abs(over) <= MARGIN
    size = (block.astype(np.int64) << np.int64(tables.shift)) + offset.astype(np.int64)
    refused = (over >= 0) | ((size == 0) & negative & bool(tables.shift))
    noise[:] = np.where(refused | undecided, 0, np.where(negative, -size, size))
    state[:] = np.where(undecided, OPEN, np.where(refused, REJECTED, ACCEPTED))
    return int(np.count_nonzero(undecided))
