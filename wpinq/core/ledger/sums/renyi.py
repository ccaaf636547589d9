"""Renyi divergence of a charge at one order: exact upper bounds, and what they say about (epsilon, delta).

**One bin.** Discrete Laplace noise whose step costs t (epsilon of a shift by one step of its grid) and a shift that
costs s, a whole number of steps: summing P(x)^a Q(x)^(1-a) left of both centres, between them and right of both gives

    exp((a - 1) D_a) = A exp((a - 1) s) + (1 - A) exp(-a s),    A = sinh(a t) / (sinh(a t) + sinh((a - 1) t)).

A is between 1/2 and 1, grows with t from a / (2a - 1), which is Laplace noise on the line, and is what randomised
response has at t = s. Every mechanism of which only its epsilon s is known is post-processing of randomised response
(Kairouz, Oh, Viswanath, ICML 2015), so its curve is that of t = s: the worst there is, at most min(s, a s^2 / 2).

**Several bins.** g(s) / s never falls as s grows, with t fixed (log of a sum of exponentials with positive weights is
convex, and g(0) = 0) and with t = s (then (a - 1) g = log cosh((a - 1/2) s) - log cosh(s / 2), and x tanh x -
log cosh x grows). So g(s_1) + g(s_2) + ... <= (s_1 + s_2 + ...) g(B) / B where no s_i exceeds B: a unit that moves all
bins together by what costs E, and no bin by more than what costs B, loses at most E g(B) / B. That is linear in the
movement, so it composes over paths and parallel parts as epsilon does (`cost.py`): each path pays its own epsilon times
`rate`, where B is of the whole charge, all paths together: two paths to one bin are one shift of twice the size.
Gaussian noise: D_a = a rho, and rho is linear in the movement in the same way.

**Several charges.** At one order a fixed beforehand the divergences of charges that are chosen adaptively add up, and a
filter may stop at a limit on their sum (Feldman and Zrnic, NeurIPS 2021, arXiv 2008.11193). A sum D at order a is

    epsilon = D - log(a / (a - 1)) - log(delta a) / (a - 1),

solved for D in `limit` (Canonne, Kamath, Steinke, NeurIPS 2020, arXiv 2004.00010, proposition 12). `None` for the order
is zero-concentrated privacy (Bun and Steinke, TCC 2016): rho with D_a <= a rho at all orders, s^2 / 2 of pure noise.

What is irrational is rounded to a multiple of 2^-GRID so that the promise holds: a rate up, a limit down.
Source: Mironov, CSF 2017 (Renyi divergence, and of Laplace noise).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from wpinq.exact import exp_bounds, log_bounds

Order: TypeAlias = Fraction | None
"""An order of Renyi divergence, above 1; None for zero-concentrated privacy, which speaks of all of them."""

GRID = 80
"""Binary places of rates and limits."""
BITS = 192
"""Binary places of what is computed; more where a step is finer than 2^-32."""
DIGITS = 8
"""Significant decimal digits of an epsilon that `pure_within` finds."""


@lru_cache(1)
def orders() -> tuple[Fraction, ...]:
    """The orders that a ledger may have: each about 2% further from 1 than the one before."""
    return tuple(1 + mantissa * Fraction(2) ** power for power in range(-9, 24) for mantissa in range(32, 64))


@lru_cache(4096)
def rate(loss: Fraction, step: Fraction, order: Order) -> Fraction:
    """Divergence for each epsilon of a charge, at most, from 0 to 1.

    Args:
        loss: Epsilon of the largest shift of one bin; of the whole charge, where only its epsilon is known.
        step: Epsilon of one step of the noise; `loss` where the noise is not discrete Laplace, or it is not known.
        order: The order.

    >>> rate(Fraction(1, 100), Fraction(1, 100), None) == Fraction(1, 200)
    True
    >>> float(rate(Fraction(1, 100), Fraction(1, 2**20), Fraction(20)))  # below 20 * 0.01 / 2
    0.0990...
    """
    if order is None:
        return min(loss / 2, Fraction(1))
    return _up(min(_divergence(loss, min(step, loss), order) / loss, order * loss / 2, Fraction(1)))


def limit(epsilon: Fraction, delta: Fraction, order: Fraction) -> Fraction:
    """The largest divergence at an order that is (epsilon, delta); not above zero where there is none."""
    low_delta, low_order = _log_low(delta * order), _log_low(order / (order - 1))
    return _down(epsilon + low_order + low_delta / (order - 1))


def epsilon_of(divergence: Callable[[Fraction], Fraction], delta: Fraction) -> Fraction:
    """The epsilon that divergences at `orders()` are at a delta, where all hold: of the best, chosen in floats."""

    def epsilon(order: Fraction) -> float:
        shift = float(order) - 1
        return float(divergence(order)) - math.log1p(1 / shift) - (math.log(delta) + math.log1p(shift)) / shift

    best = min(orders(), key=epsilon)
    return max(divergence(best) - limit(Fraction(0), delta, best), Fraction(0))


def best_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The order at which a budget holds most of what is small: the largest `limit / order`. Any is right."""

    def gain(order: Fraction) -> float:
        shift = float(order) - 1
        return (float(epsilon) + math.log1p(1 / shift) + (math.log(delta) + math.log1p(shift)) / shift) / float(order)

    return max(orders(), key=gain)


@lru_cache(1024)
def pure_within(left: Fraction, order: Order, weights: tuple[Fraction, ...] = (Fraction(1),)) -> Fraction:
    """The largest epsilon, of `DIGITS` decimal digits, whose divergence is at most `left`, whatever the mechanism.

    Args:
        left: The divergence.
        order: Its order.
        weights: Of several questions that cost the epsilon times their weight each, and are to fit together.

    >>> pure_within(Fraction(1, 200), None), pure_within(Fraction(1, 200), None, (Fraction(1),) * 100)
    (Fraction(1, 10), Fraction(1, 100))
    """
    if left <= 0:
        return Fraction(0)
    counts = Counter(weights)
    least = min(weights)
    largest = 2 * max(left, Fraction(math.isqrt(math.ceil(left * 2 * 4**GRID)) + 1, 2**GRID)) / least
    unit = Fraction(10) ** (math.floor(math.log10(largest)) + 1 - DIGITS)

    def fits(units: int) -> bool:
        losses = ((units * unit * weight, count) for weight, count in counts.items())
        return sum(count * loss * rate(loss, loss, order) for loss, count in losses) <= left

    low, high = 0, math.ceil(largest / unit)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low * unit


def _divergence(loss: Fraction, step: Fraction, order: Fraction) -> Fraction:
    """An upper bound of one bin's divergence, not rounded to the grid.

    1 - A is the last digit that matters where steps are fine, so these are computed with more places.
    """
    bits = BITS + 2 * max(0, step.denominator.bit_length() - step.numerator.bit_length() - 32)
    unit = 1 << bits
    low, _ = exp_bounds(step, bits)
    _, high = exp_bounds(2 * (order - 1) * step, bits)
    below, _ = exp_bounds(2 * order * step, bits)
    odds = low * (unit - high) // (unit - below)  # sinh((a - 1) t) / sinh(a t), from below
    share = -(-unit * unit // (unit + odds))
    _, tail = exp_bounds((2 * order - 1) * loss, bits)
    mean = share - (-(unit - share) * tail >> bits)
    _, log = log_bounds(mean, unit, bits)
    return min(loss, loss + Fraction(log, unit) / (order - 1))


def _log_low(number: Fraction) -> Fraction:
    low, _ = log_bounds(number.numerator, number.denominator, BITS)
    return Fraction(low, 1 << BITS)


def _up(amount: Fraction) -> Fraction:
    return Fraction(math.ceil(amount * 2**GRID), 2**GRID)


def _down(amount: Fraction) -> Fraction:
    return Fraction(math.floor(amount * 2**GRID), 2**GRID)
