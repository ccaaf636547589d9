"""How many bins to observe, decided from released numbers only.

Bins are free once a measurement is charged, so looking too far costs time alone; not far enough loses the tail. With
`margin(s)` = s ln(10**9), which the noise of one bin exceeds with probability below 10**-9:

- columns: the largest multiplicity is below the sequence's first bin plus its margin. Columns are then observed in
  doubling blocks, and no further once the block after the first K sums to less than K / 2 and K >= 350 max(s,1)**2.
  An item that reaches past such a block adds K to it, so it is missed only when the block's noise is below -K / 2: by
  Chernoff's bound exp(-K / (16.6 s**2)), below 10**-9. This matters when the sequence is much noisier than the CDF.
- rows: the number of items is below the CDF's first bin plus its margin; as many ranks are observed.

An item that is longer than `MOST_COLUMNS` is observed to there, and the sequence alone tells the rest.

Source: privacy rule 41.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from wpinq.errors import PlanError

MOST_COLUMNS = 1 << 22
MOST_ROWS = 1 << 25
FIRST_BLOCK = 256


class Observable(Protocol):
    """What is asked of a measurement: noisy values of bins 1, 2, 3, ..., and the scale of their noise."""

    @property
    def scale(self) -> Fraction:
        """Scale of the Laplace noise on each bin."""

    def observe_many(self, bins: Any, /) -> npt.NDArray[Any]:
        """Return the noisy values of `bins`."""


def margin(scale: Fraction) -> int:
    """Return what the noise of one bin exceeds, on one side, with probability below 10**-9.

    >>> margin(Fraction(10))
    208
    """
    return math.ceil(float(scale) * math.log(1e9))


def observe_enough(cdf: Observable, sequence: Observable) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Observe the columns and rows that hold the whole staircase, and little more.

    Returns:
        The noisy values of columns 1, 2, ... and of ranks 1, 2, ...

    Raises:
        PlanError: There are more items than ranks can be observed.
    """
    first = float(block(sequence, 1, 1)[0])
    columns = observe_columns(cdf, clamp(first + margin(sequence.scale), MOST_COLUMNS))
    count = float(columns[0]) + margin(cdf.scale)
    if count > MOST_ROWS:
        raise PlanError(
            f"reconcile(cdf, sequence): the CDF speaks of more than {MOST_ROWS:,} items, and as many ranks "
            "would have to be observed; coarsen what is counted, or pass arrays with scales=."
        )
    return columns, block(sequence, 1, clamp(count, MOST_ROWS))


def observe_columns(cdf: Observable, most: int) -> npt.NDArray[Any]:
    """Observe the CDF in doubling blocks, up to `most` columns or to where a block is clearly noise."""
    enough = 350 * max(float(cdf.scale), 1.0) ** 2
    blocks, observed = [block(cdf, 1, min(FIRST_BLOCK, most))], min(FIRST_BLOCK, most)
    while observed < most:
        last = min(2 * observed, most)
        blocks.append(block(cdf, observed + 1, last))
        if observed >= enough and last == 2 * observed and float(blocks[-1].sum()) < observed / 2:
            break
        observed = last
    return np.concatenate(blocks)


def block(measurement: Observable, first: int, last: int) -> npt.NDArray[Any]:
    """Observe bins `first` to `last`, both included; backwards, where `last` is below."""
    bins = np.arange(first, last + 1) if first <= last else np.arange(first, last - 1, -1)
    values = np.asarray(measurement.observe_many(bins.astype(np.int64)))
    if values.shape != bins.shape:
        raise PlanError(
            f"reconcile(cdf, sequence): observe_many of {len(bins)} bins answered with shape {values.shape}; "
            "the bins of both measurements must be the whole numbers from 1."
        )
    return values


def clamp(number: float, most: int) -> int:
    """Return a number of bins to observe: at least one, at most `most`."""
    return int(min(max(math.ceil(number), 1), most))
