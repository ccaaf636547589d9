"""How far a sum of independent noises can be from zero.

Thresholds at which bins are published under continual release: one delta for all epochs that there will ever be.

At some epochs, which are public, every bin is looked at whose weight w_t is at least L ("least", 1 by default, in units
of 1/resolution); if its noisy weight w_t + Z_t is at least tau_t, it is published from then on. Z_t is the sum of the
nodes of the counting trees at epoch t. A bin is looked at also where it did not change, for ever: if it were looked at
only where it changed, one record more of a bin that others are in would be one look more, and that is no function of
noisy weights.

**Proof that this costs delta, and no epsilon beside that of the noise.** Let two streams X and X' differ by one unit,
which moves bin k by at most v_k in all, where 1 <= v_k <= C and the sum of v_k is at most M: the L-infinity and the L1
sensitivity. Let E be the event that a bin passes at an epoch at which it is looked at in exactly one of the streams.

1. Where E does not happen, what is published is the same function of the noisy nodes for both streams, as both look at
   each other bin at the same epochs. So P(X gives S) <= P_X(E) + exp(epsilon) P(X' gives S), by the trees' proof.
2. If bin k is looked at at epoch t in one stream only, its weight in one is at least L and in the other at most L - 1.
   They differ by at most v_k. So w_t <= L - 1 + v_k in either, and it passes only if Z_t >= tau_t - (L - 1) - v_k.
3. Chernoff: for x > 0 that has at most probability E exp(x Z_t) exp(-x (tau_t - L + 1)) exp(x v_k). exp(x v) / v falls
   and then rises in v, so over all bins of the unit exp(x v_k) sums to at most M max(exp(x), exp(x C) / C).
4. tau_t is chosen such that this is at most delta share(t), and the shares of all epochs sum to 1. So P_X(E) <= delta.

The records may depend on what was published. Weights never decrease (plans that subtract are refused), so a bin that is
looked at in one stream only was never looked at in the other, and nothing that was published depends on its noise until
E happens or both streams look at it. So nobody can have chosen it by its noise, and steps 2 to 4 hold for whichever
bins the unit moves. For this no bin can be observed by its name.

**Epochs.** A segment has all of its epochs looked at, or 486 of them, evenly spread, so a bin waits for less than a
243rd of the time that has passed. Segment s has 1 / ((s + 1) (s + 2)) of delta, which sums to 1 over all segments.

Source: Zhang et al., "Differentially private stream processing at scale" (DP-SQLP), PVLDB 17(12), 2024, which selects
keys of a stream with a tree of noise; Korolova, Kenthapadi, Mishra and Ntoulas, WWW 2009 (thresholds).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wpinq.core.noise.counting_tree import GROWTH, segment_of

Floats = NDArray[np.float64]


def half_width(scales: Sequence[float], rest: float) -> float:
    """A distance that the sum of discrete Laplace noises of these scales exceeds with at most this probability.

    It is Chernoff's bound on both sides, with exact moments, at the best of a thousand x. It is not tight.

    >>> 59 < half_width([10.0], 0.01) < 80
    True
    """
    x, moments = log_moments(scales)
    return math.ceil(float(((moments + math.log(2 / rest)) / x).min()))


def half_width_of_sum(parts: Sequence[tuple[Floats, float]], rest: float) -> float:
    """A distance that a weighted sum of independent discrete Laplace noises exceeds with at most this probability.

    It is Chernoff's bound on both sides, at the best of a hundred x, with exact moments
    E exp(x c N) = (1 - r)^2 / ((1 - r e^(x c)) (1 - r e^(-x c))). It is not tight.

    Args:
        parts: Weights c, and the scale of the noise of each of them.
        rest: The probability.

    >>> 59 < half_width_of_sum([(np.array([1.0]), 10.0)], 0.01) < 80
    True
    """
    nonzero = [(np.abs(weights[weights != 0]), scale) for weights, scale in parts]
    most = 1 / max((float(weights.max()) * scale for weights, scale in nonzero if len(weights)), default=1.0)
    x = most * np.arange(1, 100) / 100
    moments = np.full(len(x), math.log(2 / rest))
    for weights, scale in nonzero:
        each, often = np.unique(weights, return_counts=True)
        r, moved = 1 / scale, x[:, np.newaxis] * each
        logs = 2 * math.log(-math.expm1(-r)) - np.log(-np.expm1(moved - r)) - np.log(-np.expm1(-moved - r))
        moments += np.sum(logs * often, axis=1)
    return float((moments / x).min())


def log_moments(scales: Sequence[float]) -> tuple[Floats, Floats]:
    """A thousand x below 1 / max(scale), and for each log E exp(x S) of the sum S of discrete Laplace noises.

    E exp(x S) = prod (1 - r)^2 / ((1 - r e^x) (1 - r e^-x)), r = exp(-1 / scale).
    """
    x = np.arange(1, 1000) / (1000 * max(scales))
    moments = np.zeros(len(x))
    for scale in scales:
        r = 1 / scale
        moments += 2 * math.log(-math.expm1(-r)) - np.log(-np.expm1(x - r)) - np.log(-np.expm1(-x - r))
    return x, moments


EVERY = 5
"""The last segment of which all epochs are looked at."""
SLACK = 1 + 1e-9
"""More than the rounding of the floats here, of some thousand operations."""


def share_at(epoch: int) -> Fraction:
    """What share of delta the look at an epoch may cost; 0 where there is none.

    >>> [str(share_at(epoch)) for epoch in (1, 2, 3, 3**7 - 1 + 8, 3**7 - 1 + 9)]
    ['1/4', '1/4', '1/36', '0', '1/34992']
    """
    segment = segment_of(epoch)
    gap = GROWTH ** max(segment.number - EVERY, 0)
    if (epoch - segment.first + 1) % gap:
        return Fraction(0)
    return Fraction(gap, (segment.number + 1) * (segment.number + 2) * segment.length)


def lasting_threshold(
    scales: Sequence[float], grid: int, l1: int, linf: int, *, chance: Fraction, least: int = 1
) -> int:
    """Find a threshold that all bins of a unit alone reach at one epoch with at most this probability.

    Args:
        scales: Of the noises whose sum is drawn, in steps.
        grid: Steps in a unit of 1/resolution.
        l1, linf: The sensitivities, in units of 1/resolution.
        chance: The probability, which may be as small as one likes.
        least: The weight from which bins are looked at, in units of 1/resolution.

    Returns:
        The threshold, in steps.

    >>> 14 <= lasting_threshold([1.0], 1, 1, 1, chance=Fraction(1, 10**6)) <= 18
    True
    """
    wanted = math.log(l1) - math.log(chance.numerator) + math.log(chance.denominator)
    most = min(linf, l1)
    x, moments = log_moments(scales)
    thresholds = (moments + np.maximum(x * grid, x * grid * most - math.log(most)) + wanted) / x
    return math.ceil(float(thresholds.min()) * SLACK) + (least - 1) * grid
