"""The posterior over all staircases: medians that err less than the likeliest path, and credible bands.

Beforehand all staircases of one size are equally likely, and so are all orders of magnitude of the size. The noise has
likelihood exp(-|noise| / scale), discrete or continuous. Near size n the number of staircases grows by pi / sqrt(6 n)
nats with each record (Hardy and Ramanujan), which is the weight to be taken off each cell: nothing where there is much
to see, and what keeps the posterior from filling empty ground with noise where there is little. The size is where prior
and posterior agree, the point of greatest evidence.

A column's median is the best guess in absolute distance, and medians are monotone. The band that is looked at reaches
12 scales beyond the value and the path in each column. Where the grid is long, rows bound it too: each ends where the
columns and rows along it speak with 16 nats against going on. What lies outside has probability about e**-12.
Rows beyond the ranks given carry no weight, and do not end the band: where the path reaches the last rank, it goes on
as the columns alone have it (see `lifted`). `Fit.band` says how often its bands were measured to hold.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels.loops import compiled, compiled_items
from wpinq.errors import PlanError
from wpinq.postprocess.degrees.path import Ints, conjugate, shortest_path
from wpinq.postprocess.degrees.posterior.law import REACH
from wpinq.postprocess.degrees.posterior.marginals import NEVER, Chain, Floats, begins

AGAINST = 16.0
SHORT = 16_384
"""Columns up to which the band is not bounded by rows."""
MOST_CELLS = 1 << 27
SETTLING = 8
FAINT = 0.02
"""Pull of the prior, in scales of the noise, that moves no band."""

Answer = TypeVar("Answer")


@compiled
def weigh(
    curves: tuple[Floats, Floats], weights: tuple[float, float], band: tuple[Ints, Ints], pull: float, weight_of: Floats
) -> None:
    """Write the logarithmic weight of each height of each column: likelihood of its value and rows, and prior."""
    (v, h), (lo, hi), at = curves, band, 0
    for c in range(len(v)):
        heights = np.arange(lo[c], hi[c] + 1)
        rows = h[lo[c] : hi[c]]
        steps = np.zeros(len(heights))
        steps[1 : len(rows) + 1] = np.minimum(np.maximum(2 * (c - rows) + 1, -1.0), 1.0)
        logs = -weights[0] * np.abs(v[c] - heights) - weights[1] * np.cumsum(steps) - pull * heights
        weight_of[at : at + len(heights)] = logs
        at += len(heights)


@compiled_items
def frontier(
    curves: tuple[Floats, Floats], weights: tuple[float, float], lengths: Ints, against: float, ends: tuple[Ints, Ints]
) -> None:
    """Write for each row between which columns it plausibly ends, walking away from where the path has it end."""
    v, h = curves
    for j in range(len(lengths)):
        for way in (0, 1):
            c, total = lengths[j], 0.0
            while total < against and (c < len(v) if way == 1 else c > 0):
                at = c if way == 1 else c - 1
                column = min(max(2 * (j - v[at]) + 1, -1.0), 1.0)
                row = min(max(2 * (at - h[j]) + 1, -1.0), 1.0) if j < len(h) else 0.0
                total += (weights[0] * column + weights[1] * row) * (1 if way == 1 else -1)
                c += 1 if way == 1 else -1
            ends[way][j] = c


def band_about(
    path: Ints, curves: tuple[Floats, Floats], weights: tuple[float, float], bounded_by_rows: bool
) -> tuple[Ints, Ints]:
    """Return least and greatest heights, both nonincreasing, that hold nearly all of the posterior."""
    v, _ = curves
    reach = int(np.ceil(REACH / weights[0]))
    lo = np.minimum.accumulate(np.maximum(np.floor(np.minimum(v, path)) - reach, 0).astype(np.int64))
    tops = (np.ceil(np.maximum(v, path)) + reach).astype(np.int64)
    hi = np.ascontiguousarray(np.maximum.accumulate(tops[::-1])[::-1])
    if bounded_by_rows:
        count = int(np.count_nonzero(path > np.arange(len(path)))) + reach
        lengths = conjugate(np.minimum(path, count), count)
        ends = lengths.copy(), lengths.copy()
        frontier(curves, weights, lengths, AGAINST, ends)
        low = conjugate(np.minimum.accumulate(ends[0]), len(path))
        high = conjugate(np.maximum.accumulate(ends[1][::-1])[::-1], len(path))
        lo = np.maximum(lo, low)
        hi = np.where(high < count, np.minimum(hi, high), hi)
    return lo, hi


def lifted(path: Ints, values: npt.NDArray[Any], rows: int) -> Ints:
    """Let the columns that reach the last of `rows` go on by their values alone: their nearest decreasing sequence.

    >>> lifted(np.array([2, 2, 1]), np.array([7, 9, 1]), 2).tolist()
    [9, 9, 1]
    """
    touching = int(np.count_nonzero(path >= rows))
    tops = decreasing(np.clip(values[:touching], rows, 2.0**53).tolist())
    return np.concatenate([np.rint(tops).astype(np.int64), path[touching:]])


def decreasing(values: list[float]) -> list[float]:
    """Return a nonincreasing sequence that is nearest in absolute distance: medians, which one wild value cannot move.

    The heap holds where the slope of the least cost of the values so far changes (slope trick).
    """
    slopes: list[float] = []
    answer = []
    for value in values:
        heapq.heappush(slopes, value)
        if slopes[0] < value:
            heapq.heapreplace(slopes, value)
        answer.append(slopes[0])
    for c in range(len(answer) - 2, -1, -1):
        answer[c] = max(answer[c], answer[c + 1])
    return answer


def settle(start: float, look: Callable[[float], tuple[float, Answer]]) -> Answer:
    """Find the size at which prior and posterior agree, and return what was seen there.

    Args:
        start: A first guess of the size; a good one saves time only.
        look: From the pull of the prior on each cell, the size that the posterior has, and the answer.
    """
    size = start
    for _ in range(SETTLING):
        result, answer = look(math.pi / math.sqrt(6 * max(size, 1.0)))
        if 0.8 <= (result + 1) / (size + 1) <= 1.25:
            break
        size = result
    return answer


def other_pulls(size: float, scale: float) -> tuple[float, ...]:
    """Other pulls of the prior on each cell than that of a size: none and twice it, where that is not next to nothing.

    >>> other_pulls(10**6, 5.0), len(other_pulls(100, 5.0))
    ((), 2)
    """
    pull = math.pi / math.sqrt(6 * max(size, 1.0))
    return (0.0, 2 * pull) if pull * scale > FAINT else ()


class Posterior:
    """The posterior of a noisy CDF and a noisy sequence.

    Args:
        cdf: Noisy values of the columns, multiplicities 1, 2, ...
        sequence: Noisy values of the rows, ranks 1, 2, ...
        scales: Scales of their noise, positive.

    Raises:
        PlanError: The curves contradict each other so widely that the band does not fit in memory.
    """

    def __init__(self, cdf: npt.ArrayLike, sequence: npt.ArrayLike, scales: tuple[Fraction, Fraction]) -> None:
        v, h = np.asarray(cdf), np.asarray(sequence)
        self._path = lifted(shortest_path(v, h, scales), v, len(h))
        reach = 20.0 * REACH * float(scales[0])
        self._curves = np.clip(v.astype(np.float64), self._path - reach, self._path + reach), h.astype(np.float64)
        self._weights = float(1 / scales[0]), float(1 / scales[1])
        self._band = band_about(self._path, self._curves, self._weights, len(v) > SHORT)
        check_room(self._band)
        self._ends = np.append(np.full(len(v), NEVER), 0.0)

    @cached_property
    def chain(self) -> Chain:
        """The columns, weighed with the prior of the size that is most plausible."""
        return settle(float(self._path.sum()), self._weighed)

    def quantiles(self, levels: tuple[float, ...]) -> Ints:
        """Return the posterior quantiles of each column's height: one row of heights for each level."""
        return np.minimum.accumulate(self.chain.quantiles(self._ends, levels), axis=1)

    def bands(self, levels: tuple[float, ...]) -> Ints:
        """Return the quantiles, and for levels other than 0.5 the widest of those with other pulls of the prior."""
        answers, result = self.quantiles(levels), float(self.quantiles((0.5,)).sum())
        low, high = (np.array([way * (level - 0.5) > 0 for level in levels]) for way in (-1, 1))
        for pull in other_pulls(result, float(1 / self._weights[0])) if low.any() or high.any() else ():
            _, chain = self._weighed(pull)
            others = np.minimum.accumulate(chain.quantiles(self._ends, levels), axis=1)
            answers[low] = np.minimum(answers, others)[low]
            answers[high] = np.maximum(answers, others)[high]
        return answers

    def _weighed(self, pull: float) -> tuple[float, Chain]:
        logs = np.empty(int(begins(self._band)[-1]))
        weigh(self._curves, self._weights, self._band, pull, logs)
        chain = Chain.of(logs, self._band)
        return float(chain.quantiles(self._ends, (0.5,)).sum()), chain


def quantiles(
    cdf: npt.ArrayLike, sequence: npt.ArrayLike, scales: tuple[Fraction, Fraction], levels: tuple[float, ...]
) -> Ints:
    """Return the posterior quantiles of each column's height; see `Posterior`.

    >>> quantiles([30, 10, 10, 8], [4] * 10 + [1] * 20, (Fraction(1, 9), Fraction(1, 9)), (0.5,)).tolist()
    [[30, 10, 10, 9]]
    """
    return Posterior(cdf, sequence, scales).quantiles(levels)


def check_room(*bands: tuple[Ints, Ints]) -> None:
    """Refuse bands that memory cannot hold."""
    if sum(int((hi - lo + 1).sum()) for lo, hi in bands) > MOST_CELLS:
        raise PlanError(
            "reconcile(method='posterior'): the noise is too wide, or the two curves contradict each other "
            "too much, for the posterior to fit in memory; use method='path' or 'squares'."
        )
