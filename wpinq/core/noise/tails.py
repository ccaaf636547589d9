"""How far a sum of independent noises can be from zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def half_width(scales: Sequence[float], rest: float) -> float:
    """A distance that the sum of discrete Laplace noises of these scales exceeds with at most this probability.

    It is Chernoff's bound on both sides, with exact moments, at the best of a thousand x. It is not tight.

    >>> 59 < half_width([10.0], 0.01) < 80
    True
    """
    x, moments = log_moments(scales)
    return math.ceil(float(((moments + math.log(2 / rest)) / x).min()))


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
