"""The posterior over all staircases: medians that err less than the likeliest path, and credible bands.

Every staircase is equally likely beforehand, and the noise has likelihood exp(-|noise| / scale), discrete or
continuous. One pass forward and one backward over the columns give each height's exact marginal among the staircases of
a band about the shortest path. A column's median is the best guess in absolute distance, and medians are monotone.

The band reaches 12 scales beyond the value and the path in each column. Where the grid is long, rows bound it too: each
ends where the columns and rows along it speak with 16 nats against going on. What lies outside has probability about
e**-12. Rows beyond the observed ranks carry no weight, so too few of them cost little.

Source: study "Fitting a degree staircase", section 4 (posterior algorithm, calibration).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from wpinq.degrees.corridor import Ints
from wpinq.degrees.path import compiled, conjugate, shortest_path
from wpinq.errors import PlanError

Floats = npt.NDArray[np.float64]

REACH = 12
AGAINST = 16.0
SHORT = 16_384
"""Columns up to which the band is not bounded by rows and nothing is compiled (50 us a column)."""
MOST_CELLS = 1 << 27


def marginals(
    curves: tuple[Floats, Floats], weights: tuple[float, float], band: tuple[Ints, Ints], levels: Floats, answers: Ints
) -> None:
    """Write each column's quantiles at `levels` among the staircases between `band` to `answers[level, column]`.

    Sums of probabilities are floored at 1e-300, so that curves that contradict each other cannot end in 0 / 0.
    """
    v, h = curves
    lo, hi = band
    columns = len(v)
    starts = np.zeros(columns + 1, np.int64)
    starts[1:] = np.cumsum(hi - lo + 1)
    own, past = np.zeros(starts[-1]), np.zeros(starts[-1])
    tail, before = np.ones(1), hi[0]
    for c in range(columns):
        low, here = lo[c], slice(starts[c], starts[c + 1])
        heights = np.arange(low, hi[c] + 1)
        rows = h[low : hi[c]]
        steps = np.zeros(len(heights))
        steps[1 : len(rows) + 1] = np.minimum(np.maximum(2 * (c - rows) + 1, -1.0), 1.0)
        logs = -weights[0] * np.abs(v[c] - heights) - weights[1] * np.cumsum(steps)
        own[here] = logs
        logs = logs + np.log(np.maximum(tail[np.maximum(heights - before, 0)], 1e-300))
        logs = logs - logs.max()
        past[here] = logs
        tail, before = np.cumsum(np.exp(logs)[::-1])[::-1], low
    ahead, below, top = np.ones(1), np.int64(0), np.int64(0)
    for c in range(columns - 1, -1, -1):
        low, here = lo[c], slice(starts[c], starts[c + 1])
        heights = np.arange(low, hi[c] + 1)
        future = np.log(np.maximum(ahead[np.minimum(heights, top) - below], 1e-300))
        logs = past[here] + future
        chances = np.cumsum(np.exp(logs - logs.max()))
        answers[:, c] = low + np.searchsorted(chances, levels * chances[-1])
        logs = own[here] + future
        ahead, below, top = np.cumsum(np.exp(logs - logs.max())), low, hi[c]


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
                row = min(max(2 * (at - h[j]) + 1, -1.0), 1.0)
                total += (weights[0] * column + weights[1] * row) * (1 if way == 1 else -1)
                c += 1 if way == 1 else -1
            ends[way][j] = c


def band_about(
    path: Ints, curves: tuple[Floats, Floats], weights: tuple[float, float], bounded_by_rows: bool
) -> tuple[Ints, Ints]:
    """Return least and greatest heights, both nonincreasing, that hold nearly all of the posterior."""
    v, h = curves
    reach = int(np.ceil(REACH / weights[0]))
    lo = np.minimum.accumulate(np.maximum(np.floor(np.minimum(v, path)) - reach, 0).astype(np.int64))
    tops = (np.ceil(np.maximum(v, path)) + reach).astype(np.int64)
    hi = np.ascontiguousarray(np.maximum.accumulate(tops[::-1])[::-1])
    if bounded_by_rows:
        count = min(len(h), int(np.count_nonzero(path > np.arange(len(path)))) + reach)
        lengths = conjugate(np.minimum(path, count), count)
        ends = lengths.copy(), lengths.copy()
        compiled(frontier)(curves, weights, lengths, AGAINST, ends)
        low = conjugate(np.minimum.accumulate(ends[0]), len(path))
        high = conjugate(np.maximum.accumulate(ends[1][::-1])[::-1], len(path))
        lo = np.maximum(lo, low)
        hi = np.where(high < count, np.minimum(hi, high), hi)
    return lo, hi


def quantiles(
    cdf: npt.ArrayLike, sequence: npt.ArrayLike, scales: tuple[Fraction, Fraction], levels: tuple[float, ...]
) -> Ints:
    """Return the posterior quantiles of each column's height: one row of heights for each level.

    Args:
        cdf: Noisy values of the columns, multiplicities 1, 2, ...
        sequence: Noisy values of the rows, ranks 1, 2, ...
        scales: Scales of their noise, positive.
        levels: Probabilities; 0.5 asks for the medians.

    Raises:
        PlanError: The curves contradict each other so widely that the band does not fit in memory.

    >>> quantiles([30, 10, 10, 8], [4] * 10 + [1] * 20, (Fraction(1, 9), Fraction(1, 9)), (0.5,)).tolist()
    [[30, 10, 10, 9]]
    """
    v, h = np.asarray(cdf), np.asarray(sequence)
    path = shortest_path(v, h, scales)
    reach = 20.0 * REACH * float(scales[0])
    curves = np.clip(v.astype(np.float64), path - reach, path + reach), h.astype(np.float64)
    weights = float(1 / scales[0]), float(1 / scales[1])
    long = len(v) > SHORT
    band = band_about(path, curves, weights, long)
    if int((band[1] - band[0] + 1).sum()) > MOST_CELLS:
        raise PlanError(
            "reconcile(method='posterior'): the noise is too wide, or the two curves contradict each other "
            "too much, for the posterior to fit in memory; use method='path' or 'squares'."
        )
    answers = np.zeros((len(levels), len(v)), np.int64)
    kernel = compiled(marginals) if long else marginals
    kernel(curves, weights, band, np.array(levels), answers)
    return np.minimum.accumulate(answers, axis=1)
