"""Means and variances of noisy moments, with intervals for the noise.

If t is the true mean, S - t N of the noisy sum S and count N is noise alone: the noise of S less t times the noise of
N. Its distribution is known for each t, so the interval is all t for which that noise is not too large (Fieller's
method; exact except for the steps of discrete noise). For a variance v around a mean m the same holds for Q(m) - v N,
where Q(m) is the sum of squares around m, which follows from the three moments. The mean is not known: m goes over an
interval that may fail with a tenth of the probability, which matters little, as Q is least at the mean. Intervals from
a box around all moments would be up to three times as wide, and hold with 99% where 95% are wanted.

Source: Fieller, "Some problems in interval estimation", JRSS B 16 (1954); Johnson, Kotz and Balakrishnan, "Continuous
univariate distributions 2" (1995), chapter 24, for sums of Laplace variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

Range: TypeAlias = tuple[Floats, Floats]
"""Numbers from below and above, one of each for every group."""

APART = 1.003
"""Scales that are nearer to each other than this are moved apart, upwards, for the formula of different ones."""
HALVINGS = 45
MEANS = 33
SHARE = 0.1
"""Of what may fail: for the mean, within the interval of a variance; of samples as much again for their number."""


@dataclass(frozen=True)
class BinNoise:
    """The noise of each moment, and the probability with which an interval may fail.

    Attributes:
        scale: Of the Laplace distribution, in weight, or the standard deviation of the Gaussian one.
        grid: Its steps.
        miss: The probability with which the interval of one answer may fail.
        half: The half width that the noise of one moment exceeds with that probability.
        gaussian: Whether it is Gaussian.
    """

    scale: float
    grid: float
    miss: float
    half: float
    gaussian: bool = False

    def failing(self, miss: float) -> BinNoise:
        """The same noise, for intervals that may fail with another probability."""
        return replace(self, miss=miss)

    def plausible(self, sizes: Floats, *factors: Floats | float) -> NDArray[np.bool_]:
        """Whether a weighted sum of noises reaches these sizes with the probability that may fail, or more.

        A sum of Gaussian noises is Gaussian, with the sum of their variances. Discrete noise is at most one step
        larger: by monotone coupling, as the sum over k, k + 1, ... of a falling curve is at most its integral from
        k - 1 on, and the sum over all integers at least the whole one.
        """
        if not self.gaussian:
            return self.exceeds(sizes, *factors) >= self.miss
        spread = np.sqrt(sum(np.square(factor) for factor in factors)) * self.scale
        steps = self.grid * sum(np.abs(factor) for factor in factors)
        result: NDArray[np.bool_] = sizes - steps <= self._reach * spread
        return result

    @property
    def slope(self) -> float:
        """The number of records up to which it leaves everything plausible; beyond it plausibility decreases."""
        return self.scale * (self._reach if self.gaussian else -float(np.log(self.miss))) + self.grid

    @property
    def _reach(self) -> float:
        """In standard deviations, how far Gaussian noise goes."""
        return -NormalDist().inv_cdf(self.miss / 2)

    def exceeds(self, sizes: Floats, *factors: Floats | float) -> Floats:
        """An upper bound on the probability that a weighted sum of Laplace noises reaches these sizes.

        Discrete noise is at most continuous noise plus one step.
        """
        shape = np.broadcast_shapes(sizes.shape, *(np.shape(factor) for factor in factors))
        scales = np.sort([np.broadcast_to(np.abs(factor), shape) for factor in factors], axis=0)
        sizes = np.maximum(sizes - self.grid * scales.sum(axis=0), 0.0) / self.scale
        scales = np.maximum(scales, 1e-6 * scales[-1])
        for index in range(1, len(scales)):
            scales[index] = np.maximum(scales[index], APART * scales[index - 1])
        squares, result = scales**2, np.zeros(shape)
        for index, square in enumerate(squares):
            others = [square - other for far, other in enumerate(squares) if far != index]
            result += np.prod(square / np.array(others), axis=0) * np.exp(-sizes / scales[index])
        return result


def ratio(total: Floats, number: Floats) -> Floats:
    """A quotient that lies in [-1, 1], of at least one record."""
    return np.clip(total / np.maximum(number, 1.0), -1, 1)


def mean(moments: Floats, noise: BinNoise | None) -> Range:
    """The mean, of number and total."""
    number, total = moments
    value = ratio(total, number)
    if noise is None:
        return value, value

    def plausible(mean: Floats) -> NDArray[np.bool_]:
        return noise.plausible(np.abs(total - mean * number), 1.0, mean)

    known = number > noise.slope
    low = np.where(known, farthest(plausible, value, np.full_like(value, -1)), -1)
    return low, np.where(known, farthest(plausible, value, np.full_like(value, 1)), 1)


def spread(moments: Floats, noise: BinNoise | None, *, sample: bool) -> Range:
    """The variance, of number, total and sum of 2 y^2 - 1; of a sample, of at least two records."""
    number, total, squares = moments
    middle = ratio(total, number)
    value = np.clip((1 + ratio(squares, number)) / 2 - middle**2, 0, 1)
    few = many = np.maximum(number, 2.0)
    low = high = value
    if noise is not None:
        small = noise.failing(SHARE * noise.miss / (1 + sample))
        rest = noise.failing((1 - SHARE) * noise.miss)
        low, high = around(moments, np.linspace(*mean(moments[:2], small), MEANS), value, rest)
        few, many = (np.maximum(number + side * small.slope, 2.0) for side in (-1, 1))
    if not sample:
        return low, high
    return low * many / (many - 1), high * few / (few - 1)


def around(moments: Floats, means: Floats, value: Floats, noise: BinNoise) -> Range:
    """The least and the largest variance around any of the means, of which each row holds one for every group."""
    number, total, squares = moments
    sums = (number + squares) / 2 - 2 * means * total + means**2 * number

    def plausible(variance: Floats) -> NDArray[np.bool_]:
        size = np.abs(sums - variance * number)
        return noise.plausible(size, 0.5, 2 * means, 0.5 + means**2 - variance)

    start = np.clip(sums / np.maximum(number, 1.0), 0, 1)
    low = np.min(farthest(plausible, start, np.zeros_like(start)), axis=0)
    high = np.max(farthest(plausible, start, np.ones_like(start)), axis=0)
    known = number > noise.slope
    return np.where(known, np.minimum(low, value), 0), np.where(known, np.maximum(high, value), 1)


def farthest(plausible: Callable[[Floats], NDArray[np.bool_]], start: Floats, end: Floats) -> Floats:
    """The farthest plausible number between each start and end, by bisection; the start if none is plausible."""
    far = np.where(plausible(end), 1.0, 0.0)
    near = far.copy()
    far[far == 0] = 1.0
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        good = plausible(start + (end - start) * middle)
        near, far = np.where(good, middle, near), np.where(good, far, middle)
    result: Floats = start + (end - start) * far
    return result
