"""Distances between two degree distributions, each given as its cumulative staircase.

Entry k - 1 of a staircase is the number of items of degree at least k, as in `fit.cdf`. Use these to judge a
fit against a truth that is public, or a synthetic data set against the fit that it was made from.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wpinq.errors import PlanError


def volume(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Measure the area between two staircases: how many views one must gain or lose to become the other.

    Raises:
        PlanError: A staircase is not a one-dimensional array of finite numbers.

    >>> from wpinq.degrees import volume
    >>> volume([3, 1, 1], [3, 2])
    2.0
    """
    left, right = _aligned(a, b, "volume")
    return float(np.abs(left - right).sum())


def earth_movers(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Measure how far degrees must move, on average over items, to make one distribution the other.

    The numbers of items may differ: each staircase is first divided by its own.

    Raises:
        PlanError: A staircase is not a one-dimensional array of finite numbers, or exactly one of them is empty.

    >>> from wpinq.degrees import earth_movers
    >>> earth_movers([4, 2], [2, 1]), earth_movers([4], [4, 4])
    (0.0, 1.0)
    """
    return float(np.abs(_difference(a, b, "earth_movers")).sum())


def kolmogorov_smirnov(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Measure the largest difference between the shares of items of degree at least k, over all k.

    Raises:
        PlanError: A staircase is not a one-dimensional array of finite numbers, or exactly one of them is empty.

    >>> from wpinq.degrees import kolmogorov_smirnov
    >>> kolmogorov_smirnov([4, 2], [4, 3, 1])
    0.25
    """
    return float(np.abs(_difference(a, b, "kolmogorov_smirnov")).max(initial=0.0))


def _difference(a: npt.ArrayLike, b: npt.ArrayLike, call: str) -> npt.NDArray[np.float64]:
    left, right = _aligned(a, b, call)
    items = left[:1].sum(), right[:1].sum()
    if items == (0, 0):
        return np.zeros(0)
    if min(items) <= 0:
        raise PlanError(f"{call}(a, b): one staircase has no items, hence no distribution; compare volumes.")
    return np.asarray(left / items[0] - right / items[1])


def _aligned(a: npt.ArrayLike, b: npt.ArrayLike, call: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    curves = [np.asarray(curve) for curve in (a, b)]
    for name, curve in zip("ab", curves, strict=True):
        numbers = curve.size == 0 or curve.dtype.kind in "iuf"
        if curve.ndim != 1 or not numbers or not np.isfinite(curve.astype(float)).all():
            raise PlanError(f"{call}({name}=...): expected the numbers of items of degree >= 1, 2, ..., as in fit.cdf.")
    left, right = (np.zeros(max(len(curve) for curve in curves)) for _ in range(2))
    left[: len(curves[0])], right[: len(curves[1])] = curves
    return left, right
