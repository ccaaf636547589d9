"""How far a sum of independent noises can be from zero."""

from __future__ import annotations

import math
from collections.abc import Sequence


def half_width(scales: Sequence[float], rest: float) -> float:
    """A distance that the sum of discrete Laplace noises of these scales exceeds with at most this probability.

    It is Chernoff's bound on both sides, with exact moments: P(|S| > t) <= 2 exp(-x t) prod (1 - r)^2 / ((1 - r e^x)
    (1 - r e^-x)), r = exp(-1 / scale), at the best of a thousand x below 1 / max(scale). It is not tight.

    >>> 59 < half_width([10.0], 0.01) < 80
    True
    """
    top = 1 / max(scales)
    best = min((_log_moment(scales, x) + math.log(2 / rest)) / x for x in (top * i / 1000 for i in range(1, 1000)))
    return math.ceil(best)


def _log_moment(scales: Sequence[float], x: float) -> float:
    """The logarithm of E exp(x S)."""
    total = 0.0
    for scale in scales:
        r = 1 / scale
        total += 2 * math.log(-math.expm1(-r)) - math.log(-math.expm1(x - r)) - math.log(-math.expm1(-x - r))
    return total
