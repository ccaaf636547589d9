"""How high a threshold must be, so that bins which a unit alone brought in are published with probability delta only.

One unit moves a histogram by `moves` in all. Spread over m bins that nobody else is in, it is seen with probability
1 - prod P(w_i + N < tau). As the noise is log-concave, -log P(w + N < tau) is convex in w: for a given m the worst is
all but m - 1 least weights in one bin, and that is convex in m. So the worst of all is one bin, or as many as there can
be. Everything is decided by integer bounds that get closer, nothing is rounded. Source: privacy rule 30.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from wpinq.noise.digits import exp_bounds

Bounds = tuple[int, int]
"""A number from below and from above, in units of 2^-bits."""


def tail_bounds(scale: Fraction, k: int, bits: int) -> Bounds:
    """Bound 2^bits * P(N >= k) for discrete Laplace noise N of this scale.

    P(N >= k) = r^k / (1 + r) for k >= 1, and by symmetry 1 - P(N >= 1 - k) else.
    """
    one = 1 << bits
    if k < 1:
        low, high = tail_bounds(scale, 1 - k, bits)
        return one - high, one - low
    (low, high), (r_low, r_high) = exp_bounds(k / scale, bits), exp_bounds(1 / scale, bits)
    return (low << bits) // (one + r_high), -(-(high << bits) // (one + r_low))


def any_bounds(chance: Bounds, trials: int, bits: int) -> Bounds:
    """Bound 2^bits * (1 - (1 - p)^trials): that at least one of so many independent trials hits."""
    one = 1 << bits
    return one - power(one - chance[0], trials, bits, up=True), one - power(one - chance[1], trials, bits, up=False)


def power(base: int, exponent: int, bits: int, *, up: bool) -> int:
    """Give (base / 2^bits)^exponent in units of 2^-bits, rounded down or up throughout."""
    result = 1 << bits
    while exponent:
        if exponent & 1:
            result = -(-result * base >> bits) if up else result * base >> bits
        base = -(-base * base >> bits) if up else base * base >> bits
        exponent >>= 1
    return result


def seen_bounds(scale: Fraction, grid: int, moves: int, tau: int, bits: int) -> Bounds:
    """Bound 2^bits * delta: that a unit of `moves` lattice units shows, in the worst way to spread them.

    Args:
        scale: Of the noise, in steps; `grid` steps are one lattice unit.
        grid: Steps in a lattice unit.
        moves: The largest movement of a unit, in lattice units.
        tau: A bin is published when weight and noise reach it, in steps.
        bits: Precision.
    """
    one_bin = tail_bounds(scale, tau - moves * grid, bits)
    many = any_bounds(tail_bounds(scale, tau - grid, bits), moves, bits)
    return max(one_bin[0], many[0]), max(one_bin[1], many[1])


@lru_cache(maxsize=256)
def least_threshold(scale: Fraction, grid: int, moves: int, delta: Fraction) -> int:
    """Find the least tau >= 1 at which a unit shows with probability delta at the most; see `seen_bounds`.

    >>> least_threshold(Fraction(1), 1, 1, Fraction(1, 10**6))
    15
    """
    high = 1
    while _shows(scale, grid, moves, high, delta):
        high *= 2
    low = high // 2  # it shows at low, or low is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _shows(scale, grid, moves, middle, delta) else (low, middle)
    return high


def _shows(scale: Fraction, grid: int, moves: int, tau: int, delta: Fraction) -> bool:
    """Whether it shows with more than delta. That is algebraic in exp(-1/scale), so it never equals a rational."""
    bits = 128
    while True:
        low, high = seen_bounds(scale, grid, moves, tau, bits)
        if low > delta * (1 << bits):
            return True
        if high <= delta * (1 << bits):
            return False
        bits *= 2
