"""The least threshold at which bins that only one unit is in are published with probability at most delta.

Let M be the L1 and C the L-infinity sensitivity, in units of 1/resolution. A unit that is spread over bins of its own,
with w_i >= 1 in bin i, is seen with probability 1 - prod P(w_i + N < tau) = 1 - exp(-sum f(w_i)), where f(w) = -log P(w
+ N < tau) increases and, as the noise is log-concave (discrete Laplace and discrete Gaussian noise are), is convex. So
the worst case has sum w_i = M. For a given number m of bins a convex sum is largest at a vertex of 1 <= w_i <= C, sum
w_i = M: some bins have C, some have 1, and one has r between. One more bin takes 1 from that bin, which adds f(1) -
(f(r) - f(r - 1)); this grows while r falls. So between two m at which r is 1 (or C) the sum is convex in m, and largest
at an end. At these ends, a bins of C and M - a C bins of 1, the sum is linear in a. With M = q C + s three cases are
left: M bins of 1; q bins of C and s of 1; and, where m begins, q bins of C and one of s. All comparisons use integer
bounds of enough precision; nothing is rounded.

Where a unit is in N bins at the most, fewer than M, M is N C at the most, and m ends at N: so M bins of 1 give way to
the vertex of N bins, and to the last end before it, with the fewest bins of C whose number with those of 1 is within N;
q bins of C and s of 1 stay where q + s is.

M and C are the sensitivities through all data sets that a unit may be in: for several data sets of one ledger they are
sums, and delta is the sum of what these are charged (`core/pricing/sensitivity.py`). Outside of the event whose
probability is bounded here, the published table is a function of the noisy weights, so it costs no further epsilon.
Source: Korolova, Kenthapadi, Mishra and Ntoulas, WWW 2009 (thresholds); the three cases are proved above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from wpinq.errors import PlanError
from wpinq.exact import exp_bounds, power

if TYPE_CHECKING:
    from wpinq.core.noise import Mechanism

LAW = "discrete Laplace"
"""The distribution that continual release is proved for, in units of 1/resolution or on a finer grid."""

Bounds: TypeAlias = tuple[int, int]
"""A number from below and from above, in units of 2^-bits."""
Tail: TypeAlias = Callable[[Fraction, int, int], Bounds]
"""Bounds 2^bits * P(N >= k), by the parameter of the noise, k and bits."""
MOST_BITS = 1024
"""A probability that is not known to be small enough by then is taken to be too large."""


def refuse_other_law(noise: object, call: str) -> None:
    """Refuse a mechanism whose own class does not name `LAW`; a subclass that does not may draw otherwise.

    Raises:
        PlanError: It has another law, or names none; nothing was charged.
    """
    result = vars(type(noise)).get("law")
    if result != LAW:
        raise PlanError(
            f"{call}: it is proved for noise of the law {LAW} alone, and this mechanism's law is {result}; take "
            "mechanism='geometric'. Nothing was charged."
        )


def tail_of(noise: Mechanism, call: str) -> tuple[Tail, Fraction]:
    """The tail of a mechanism in steps, and its parameter.

    Raises:
        PlanError: Its own class names no law whose tail is known; nothing was charged.
    """
    result = vars(type(noise)).get("law")
    if result == LAW:
        return tail_bounds, noise.scale * noise.grid
    from wpinq.core.noise.gaussian import DiscreteGaussian  # few plans have this noise
    from wpinq.core.noise.gaussian_tails import tail_bounds as gaussian_bounds

    if result == DiscreteGaussian.law and isinstance(noise, DiscreteGaussian):
        return gaussian_bounds, noise.square
    raise PlanError(
        f"{call}: thresholds are not known for noise of the law {result}; give the bins with release(keys=...), or "
        "take mechanism='geometric'. Nothing was charged."
    )


def tail_bounds(scale: Fraction, k: int, bits: int) -> Bounds:
    """Bound 2^bits * P(N >= k) for discrete Laplace noise N of this scale.

    P(N >= k) = r^k / (1 + r) for k >= 1, and by symmetry 1 - P(N >= 1 - k) else.
    """
    unit = 1 << bits
    if k < 1:
        low, high = tail_bounds(scale, 1 - k, bits)
        return unit - high, unit - low
    (low, high), (r_low, r_high) = exp_bounds(k / scale, bits), exp_bounds(1 / scale, bits)
    return (low << bits) // (unit + r_high), -(-(high << bits) // (unit + r_low))


def any_bounds(chances: Iterable[tuple[Bounds, int]], bits: int) -> Bounds:
    """Bound 2^bits * P(at least one success), for independent trials, given as probabilities with their numbers."""
    unit = 1 << bits
    low = high = unit  # of the probability that none does
    for chance, trials in chances:
        low = low * power(unit - chance[1], trials, bits, up=False) >> bits
        high = -(-high * power(unit - chance[0], trials, bits, up=True) >> bits)
    return unit - high, unit - low


def seen_bounds(
    scale: Fraction, grid: int, l1: int, tau: int, bits: int, *, linf: int | None = None, bins: int | None = None,
    tail: Tail = tail_bounds,
) -> Bounds:  # fmt: skip
    """Bound 2^bits * delta: the probability that a bin of a unit alone is published, in the worst case.

    Args:
        scale: Of the noise, in steps.
        grid: Steps in a unit of 1/resolution.
        l1: The L1 sensitivity, in units of 1/resolution.
        tau: The threshold: a bin is published if weight plus noise reach it, in steps.
        bits: Precision.
        linf: The L-infinity sensitivity; by default the L1 sensitivity.
        bins: How many bins one unit is in at the most; None where that is not known.
        tail: Of noise that is no discrete Laplace noise; `scale` is its parameter then.
    """
    shown = [
        any_bounds(((tail(scale, tau - weight * grid, bits), number) for weight, number in way), bits)
        for way in ways(l1, l1 if linf is None else min(linf, l1), bins)
    ]
    return max(low for low, _ in shown), max(high for _, high in shown)


def ways(l1: int, linf: int, bins: int | None = None) -> list[list[tuple[int, int]]]:
    """The three ways of which one is the worst: of each kind of bin its units, and how many there are.

    >>> ways(20, 3)
    [[(1, 20)], [(3, 6), (1, 2)], [(3, 6), (2, 1)]]
    >>> ways(20, 3, 9)
    [[(3, 6), (1, 2)], [(3, 6), (2, 1)], [(3, 5), (2, 1), (1, 3)], [(3, 6), (1, 2)]]
    """
    bins = l1 if bins is None else max(1, bins)
    l1 = min(l1, bins * linf)
    full, rest = divmod(l1, linf)
    few = [(linf, full), (rest, 1 if rest else 0)]
    if bins >= l1:
        return [[(1, l1)], [(linf, full), (1, rest)], few]
    splits = [[(linf, full), (1, rest)]] if full + rest <= bins else []
    most, left = divmod(l1 - bins, linf - 1)  # of N bins of 1 each, so many can be raised to C, and one by what is left
    last = [(linf, most), (left + 1, 1), (1, bins - most - 1)] if most < bins else [(linf, bins)]
    least = most + (left > 0)
    ends = [[(linf, least), (1, l1 - least * linf)]] if least <= full else []
    return [*splits, few, last, *ends]


@lru_cache(maxsize=256)
def least_threshold(
    scale: Fraction, grid: int, l1: int, delta: Fraction, linf: int | None = None, *, bins: int | None = None,
    tail: Tail = tail_bounds,
) -> int:  # fmt: skip
    """Find the least tau >= 1 for which the probability that `seen_bounds` bounds is at most delta.

    >>> least_threshold(Fraction(1), 1, 1, Fraction(1, 10**6))
    15
    >>> [least_threshold(Fraction(4), 1, 20, Fraction(1, 10**6), most) for most in (20, 3)]
    [73, 66]
    """
    high, more = 1, {"linf": linf, "bins": bins}
    while _shows(scale, grid, (l1, high), delta, more, tail=tail):
        high *= 2
    low = high // 2  # it shows at low, or low is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _shows(scale, grid, (l1, middle), delta, more, tail=tail) else (low, middle)
    return high


def _shows(
    scale: Fraction, grid: int, units: tuple[int, int], delta: Fraction, more: Mapping[str, int | None], *, tail: Tail
) -> bool:  # fmt: skip
    """Whether that probability is above delta, or not known to be at most that.

    Of discrete Laplace noise it is algebraic in exp(-1/scale), so it never equals a rational.
    """
    (l1, tau), bits = units, 128
    while bits <= MOST_BITS:
        low, high = seen_bounds(scale, grid, l1, tau, bits, **more, tail=tail)
        if low > delta * (1 << bits):
            return True
        if high <= delta * (1 << bits):
            return False
        bits *= 2
    return True
