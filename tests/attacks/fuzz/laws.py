"""What discrete noise loses, exactly: divergences in closed sums, and distributions of losses, rounded down."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath as mp

from wpinq.core.noise.gaussian import DiscreteGaussian
from wpinq.core.noise.weighted_rounds import UNIT, WeightedRounds

mp.mp.dps = 50
GRID = 2**16
"""Losses are multiples of 1 / GRID in the distribution of all losses."""


def exactly(number: Fraction) -> Any:
    return mp.mpf(number.numerator) / number.denominator


def laplace(steps: int, scale: Fraction, order: Fraction) -> Any:
    """The divergence of discrete Laplace noise that moves by so many steps: three geometric sums."""
    r, a, s = mp.exp(-1 / exactly(scale)), exactly(order), abs(steps)
    left, right = r ** ((1 - a) * s) / (1 - r), r ** (a * s) / (1 - r)
    each = r ** (2 * a - 1)
    middle = r ** ((1 - a) * s) * each * (1 - each ** (s - 1)) / (1 - each)
    return mp.log((left + middle + right) * (1 - r) / (1 + r)) / (a - 1)


def gaussian(steps: int, square: Fraction, order: Fraction) -> Any:
    """The divergence of discrete Gaussian noise: two theta sums."""
    a, two = exactly(order), 2 * exactly(square)
    reach = int(mp.sqrt(two) * 12) + abs(steps) + 2
    whole = mp.fsum(mp.exp(-(mp.mpf(k) ** 2) / two) for k in range(-reach, reach + 1))
    centre = (1 - a) * steps
    at = int(mp.nint(centre))
    shifted = mp.fsum(mp.exp(-((k - centre) ** 2) / two) for k in range(at - reach, at + reach + 1))
    return (a * (a - 1) * mp.mpf(steps) ** 2 / two + mp.log(shifted / whole)) / (a - 1)


def losses(steps: int, noise: Any) -> dict[int, float]:
    """The distribution of the loss of one bin, in multiples of 1 / GRID, rounded down."""
    found: dict[int, float] = {}
    if isinstance(noise, DiscreteGaussian):
        two, reach = 2 * float(noise.square), int(math.sqrt(float(noise.square)) * 9) + abs(steps) + 2
        weights = [(k, math.exp(-k * k / two)) for k in range(-reach, reach + 1)]
        pairs = [(((k - steps) ** 2 - k * k) / two, weight) for k, weight in weights]
    else:
        scale, s = float(noise.scale * noise.grid), abs(steps)
        r = math.exp(-1 / scale)
        pairs = [(s / scale, 1 / (1 - r)), (-s / scale, r**s / (1 - r))]
        pairs += [((s - 2 * k) / scale, r**k) for k in range(1, s)]
    whole = sum(weight for _, weight in pairs) * (1 + 1e-12)
    for loss, weight in pairs:
        place = math.floor(loss * GRID)
        found[place] = found.get(place, 0.0) + weight / whole
    return found


def beyond(bins: list[tuple[int, Any]], epsilon: float) -> float:
    """A lower bound of the delta that all bins together have at an epsilon."""
    whole = {0: 1.0}
    for steps, noise in bins:
        own, after = losses(steps, noise), dict[int, float]()
        for (one, p), (other, q) in itertools.product(whole.items(), own.items()):
            after[one + other] = after.get(one + other, 0.0) + p * q
        whole = {loss: p for loss, p in after.items() if p > 1e-18}
        if len(whole) > 200_000:
            return 0.0
    return sum(p * -math.expm1(epsilon - loss / GRID) for loss, p in whole.items() if loss / GRID > epsilon)


def passes(noise: Any, weight: int, tau: int) -> Any:
    """The probability that a weight and its noise reach a threshold."""
    r, above = mp.exp(-1 / exactly(noise.scale * noise.grid)), tau - weight * noise.grid
    return r**above / (1 + r) if above > 0 else 1 - r ** (1 - above) / (1 + r)


def selection_loss(rule: Any, epsilon: Fraction, moved: list[tuple[int, int]]) -> Any:
    """What a selection loses beside its delta: so much for each step of each bin; of rounds, all that was paid."""
    if isinstance(rule, WeightedRounds):
        return exactly(epsilon) * bool(moved)
    return exactly(rule.epsilon) * sum(abs(weight - other) for weight, other in moved)


def selected(rule: Any, moved: list[tuple[int, int]]) -> Any:
    """The probability that a selection names what only the unit is in; by rounds, as if all its names were such."""
    if isinstance(rule, WeightedRounds):
        return named_by_rounds(rule, len(moved))
    hidden = mp.mpf(1)
    for weight, other in moved:
        if other <= 0 < weight:
            hidden *= 1 - mp.mpf(rule.places(weight, 300)) / mp.mpf(2) ** 300
    return 1 - hidden


def named_by_rounds(rule: WeightedRounds, names: int) -> Any:
    """The probability that any round names one of the names that one person alone has, all of them in every round.

    Noise has the grid of the weights, `UNIT` steps in 1, so that its tail is that of a normal law but for rounding.
    """
    hidden = mp.mpf(1)
    for each in rule.rounds if names else ():
        missing = each.threshold - math.isqrt(UNIT**2 // names) - mp.mpf(1) / 2
        hidden *= (1 - mp.erfc(missing / mp.sqrt(2 * exactly(each.noise.square))) / 2) ** names
    return 1 - hidden
