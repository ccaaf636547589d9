"""How high a threshold must be, so that bins which a unit alone brought in are published with probability delta only.

One unit moves a histogram by M units of 1/resolution in all, and one bin by at most C. Spread over bins that nobody
else is in, with w_i >= 1 in bin i, it is seen with probability 1 - prod P(w_i + N < tau) = 1 - exp(-sum f(w_i)), where
f(w) = -log P(w + N < tau) rises and, as the noise is log-concave, is convex. So more weight is worse and sum w_i = M.
For a given number m of bins a convex sum is largest at a corner of 1 <= w_i <= C, sum w_i = M: bins of C, bins of 1,
and one of r between. One bin more takes 1 from the bin of r, which adds f(1) - (f(r) - f(r - 1)): that grows while r
falls, so between two m at which r is 1 (or C) the sum is convex in m and largest at an end. Among these ends, a bins
of C and M - a C bins of 1, it is linear in a. With M = q C + s that leaves three: M bins of 1; q bins of C and s of 1;
and, where m begins, q bins of C and one of s. Everything is decided by integer bounds that get closer, nothing is
rounded.

M and C are what one unit moves through all data sets that it may be in: of several with one ledger their sums, and
delta is then what all of them are charged (`selection.spread`). Outside of the event that is bounded here what is
published is a function of the noisy weights, so epsilon is that of the measurement. Source: Korolova, Kenthapadi,
Mishra and Ntoulas, WWW 2009 (thresholds); the corners are proved above.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from wpinq.errors import PlanError
from wpinq.noise.digits import exp_bounds

LAW = "discrete Laplace"
"""The law that the bounds here hold for, on the resolution or on a finer grid."""

Bounds = tuple[int, int]
"""A number from below and from above, in units of 2^-bits."""


def refuse_other_law(noise: object, call: str) -> None:
    """Refuse a mechanism whose own class does not name the law that is known here; a subclass may draw otherwise.

    Raises:
        PlanError: It has another law, or names none; nothing was charged.
    """
    found = vars(type(noise)).get("law")
    if found != LAW:
        raise PlanError(
            f"{call}: it is proved for noise of the law {LAW} alone, and this mechanism's law is {found}; give the "
            "bins with release(keys=...), or take mechanism='geometric'. Nothing was charged."
        )


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


def any_bounds(chances: Iterable[tuple[Bounds, int]], bits: int) -> Bounds:
    """Bound 2^bits * P(a trial hits), for independent trials: so many of each chance."""
    one = 1 << bits
    low = high = one  # of the probability that none does
    for chance, trials in chances:
        low = low * power(one - chance[1], trials, bits, up=False) >> bits
        high = -(-high * power(one - chance[0], trials, bits, up=True) >> bits)
    return one - high, one - low


def power(base: int, exponent: int, bits: int, *, up: bool) -> int:
    """Give (base / 2^bits)^exponent in units of 2^-bits, rounded down or up throughout."""
    result = 1 << bits
    while exponent:
        if exponent & 1:
            result = -(-result * base >> bits) if up else result * base >> bits
        base = -(-base * base >> bits) if up else base * base >> bits
        exponent >>= 1
    return result


def seen_bounds(scale: Fraction, grid: int, moves: int, tau: int, bits: int, *, most: int | None = None) -> Bounds:
    """Bound 2^bits * delta: that a unit of `moves` units of 1/resolution shows, in the worst way to spread them.

    Args:
        scale: Of the noise, in steps; `grid` steps are one unit of 1/resolution.
        grid: Steps in a unit of 1/resolution.
        moves: The largest movement of all bins by a unit, in units of 1/resolution.
        tau: A bin is published when weight and noise reach it, in steps.
        bits: Precision.
        most: The largest movement of one bin; by default all of it.
    """
    most = moves if most is None else min(most, moves)
    full, rest = divmod(moves, most)
    ways = (((1, moves),), ((most, full), (1, rest)), ((most, full), (rest, 1 if rest else 0)))
    shown = [
        any_bounds(((tail_bounds(scale, tau - weight * grid, bits), bins) for weight, bins in way), bits)
        for way in ways
    ]
    return max(low for low, _ in shown), max(high for _, high in shown)


@lru_cache(maxsize=256)
def least_threshold(scale: Fraction, grid: int, moves: int, delta: Fraction, most: int | None = None) -> int:
    """Find the least tau >= 1 at which a unit shows with probability delta at the most; see `seen_bounds`.

    >>> least_threshold(Fraction(1), 1, 1, Fraction(1, 10**6))
    15
    >>> [least_threshold(Fraction(4), 1, 20, Fraction(1, 10**6), most) for most in (20, 3)]
    [73, 66]
    """
    high = 1
    while _shows(scale, grid, moves, high, delta, most=most):
        high *= 2
    low = high // 2  # it shows at low, or low is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _shows(scale, grid, moves, middle, delta, most=most) else (low, middle)
    return high


def _shows(scale: Fraction, grid: int, moves: int, tau: int, delta: Fraction, *, most: int | None) -> bool:
    """Whether it shows with more than delta. That is algebraic in exp(-1/scale), so it never equals a rational."""
    bits = 128
    while True:
        low, high = seen_bounds(scale, grid, moves, tau, bits, most=most)
        if low > delta * (1 << bits):
            return True
        if high <= delta * (1 << bits):
            return False
        bits *= 2
