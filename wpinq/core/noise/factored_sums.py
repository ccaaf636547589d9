"""Gaussian noise of a running count whose last epoch is known beforehand: the square root of the matrix of sums.

The count at epoch t is (A x)_t, where x are the changes of a bin and A sums them up. With A = L R for a lower
triangular L the answers A x + L w are what L makes of R x + w, so they are as private as that is: a Gaussian
mechanism, w of independent normal variables. A unit that changes a bin at epochs e by c(e) moves R x by no more than
s times the sum of |c(e)|, s the length of the longest column of R. Both are Toeplitz matrices here: L has l_k = sum_i
o_i p_i^k at a distance of k epochs, and R the power series 1 / ((1 - z) l(z)).

With l_k = binomial(2k, k) / 4^k, the series of (1 - z)^(-1/2), L and R are the same, and no factors have a smaller
error in the highest term (Fichtenberger, Henzinger and Upadhyay, "Constant matters", ICML 2023, arXiv 2202.11205).
That is the integral of u^k / (pi sqrt(u (1 - u))) over u from 0 to 1; we take its sum over points p_i, evenly spaced
in log(u / (1 - u)), some log n of them for n epochs. So the noise of an epoch follows from that of the one before by
some log n numbers for each bin (Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and near-optimal noise
generation for streaming differential privacy", FOCS 2024, arXiv 2404.16706). It is 2% wider than by the square root
itself, at 10^5 epochs.

**s.** All o_i and p_i are positive, so l is a moment sequence and log-convex; so by Kaluza's theorem 1 / l(z) is 1 /
l_0 less a series without negative terms that sum to 1 / l_0 at most. So an error of h in each number of L r = 1 is
one of 2 h / l_0 at most in each of r, and s^2 is found in floats: r by Newton's iteration, then h by multiplying
back, with a billionth added.

**Exactly normal.** w = g (z + 3 y), where g is 2^-40 deviations, z has the discrete Gaussian law of deviation 2^40
and y the normal law. By Poisson's formula the density of w is normal to a factor within 1 +- 2.1 exp(-18 pi^2) < 1 +-
2^-250, whatever the number of epochs and bins, and `shift_of` leaves room for 2^-40. Answers are rounded to whole
weights: post-processing, since A x is whole. Only a sum that is nearer to a half than floats tell, and than y could
carry it, needs y: then that is another discrete Gaussian number on a grid 2^40 times as fine, and all is computed in
integers. An answer is wrong, by 1, with a probability below 2^-60, which belongs to the computational part of the
promise (privacy rule 43).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]
Draw: TypeAlias = Callable[[int, int, int], Whole]
"""Discrete Gaussian noise of deviation 2^PLACES, of a rank (0: z, 1: y), for the epochs after one up to another."""

FORM = "factored sums, format 1"
"""What the key of a release is bound to, beside the horizon."""
MOST = 1 << 22
"""Epochs."""
PLACES = 40
"""The grid of z is 2^-PLACES deviations, and that of y as much finer."""
BEYOND = 5.0
"""How far points reach beyond log(n), and from zero on the other side twice as far."""
PIECE = 4096
"""Epochs that are added up at once; by floats to 2^-42 of the sum of all sizes."""
BITS = 256
"""Binary places of sums in integers."""


@dataclass(frozen=True)
class Sums:
    """The factors for so many epochs.

    >>> sums = factors(1000)
    >>> len(sums.points), round(float(sums.square) ** 0.5, 2), round(sums.deviation(1000), 2)
    (22, 1.84, 1.78)
    """

    horizon: int

    @cached_property
    def points(self) -> Floats:
        """p_i."""
        at = np.arange(-(math.log(self.horizon) + BEYOND), 2 * BEYOND, 1.0)
        return np.asarray(1 / (1 + np.exp(at)))

    @cached_property
    def parts(self) -> Floats:
        """o_i."""
        return np.asarray(np.sqrt(self.points * (1 - self.points)) / math.pi)

    @cached_property
    def square(self) -> Fraction:
        """s^2, rounded up."""
        size = self.horizon
        powers = (part * np.power(point, np.arange(size)) for part, point in zip(self.parts, self.points, strict=True))
        row = np.sum(np.fromiter(powers, np.dtype((np.float64, size))), axis=0)
        inverse, known = np.array([1 / row[0]]), 1
        while known < size:
            known = min(2 * known, size)
            rest = -_product(row[:known], inverse, known)
            rest[0] += 2
            inverse = _product(inverse, rest, known)
        column = np.cumsum(inverse)
        off = float(np.max(np.abs(_product(row, column, size) - 1))) + 1e-9
        length = math.sqrt(float(np.sum(column**2))) + math.sqrt(size) * 2 * off / float(row[0])
        return Fraction(length * length * (1 + 1e-9))

    def deviation(self, epoch: int) -> float:
        """The standard deviation of an answer where that of w is 1: the length of a row of L."""
        pairs = np.multiply.outer(self.points, self.points)
        sums = -np.expm1(epoch * np.log(pairs)) / (1 - pairs)
        return math.sqrt(float(self.parts @ sums @ self.parts))


@lru_cache(16)
def factors(horizon: int) -> Sums:
    """The factors, computed once."""
    return Sums(horizon)


def _product(first: Floats, second: Floats, size: int) -> Floats:
    """The first terms of the product of two series."""
    wide = 1 << (len(first) + len(second)).bit_length()
    return np.asarray(np.fft.irfft(np.fft.rfft(first, wide) * np.fft.rfft(second, wide), wide)[:size])


@dataclass
class Running:
    """The noise of one bin, from epoch to epoch.

    Attributes:
        sums: The factors.
        square: The variance of w, in squared units of 1/resolution.
        epoch: How far it has come.
        state: For each point the sum of p^(epoch - j) z_j.
        sizes: The same sum of sizes, from above.
    """

    sums: Sums
    square: Fraction
    epoch: int
    state: Floats
    sizes: Floats

    @classmethod
    def begin(cls, sums: Sums, square: Fraction) -> Running:
        """Before the first epoch."""
        return cls(sums, square, 0, np.zeros(len(sums.points)), np.zeros(len(sums.points)))

    def at(self, epoch: int, draw: Draw) -> int:
        """The noise at this epoch, not before that it has come to, in units of 1/resolution."""
        while self.epoch < epoch:
            last = min(epoch, self.epoch + PIECE)
            drawn = draw(0, self.epoch, last).astype(np.float64)
            powers = np.power(self.sums.points[:, None], np.arange(last - self.epoch - 1, -1, -1))
            factor = self.sums.points ** (last - self.epoch)
            self.state = factor * self.state + powers @ drawn
            self.sizes = factor * self.sizes + powers @ np.abs(drawn)
            self.epoch = last
        grid = math.sqrt(self.square) / 2**PLACES
        total = grid * float(self.sums.parts @ self.state)
        unsure = grid * (float(self.sums.parts @ self.sizes) * 2.0**-40 + 2**9)
        nearest: int = math.floor(total + 0.5)
        if abs(total - nearest) + unsure < 0.5:
            return nearest
        return exactly(self.sums, self.square, draw(0, 0, epoch).tolist(), draw(1, 0, epoch).tolist())


def exactly(sums: Sums, square: Fraction, first: list[int], second: list[int]) -> int:
    """The noise after some epochs, by integers.

    Args:
        sums: The factors; floats are the dyadic numbers that they stand for.
        square: The variance of w.
        first, second: z and y of the epochs, y on its own grid.
    """
    total = 0
    for part, point in zip(sums.parts.tolist(), sums.points.tolist(), strict=True):
        power, state = int(Fraction(point) * 2**BITS), 0
        for z, y in zip(first, second, strict=True):
            state = (state * power >> BITS) + (((z << PLACES) + 3 * y) << BITS)
        total += int(Fraction(part) * 2**BITS) * state
    grid = math.isqrt(square.numerator * 4**BITS // square.denominator)
    noise: int = (total * grid + (1 << (3 * BITS + 2 * PLACES - 1))) >> (3 * BITS + 2 * PLACES)
    return noise
