"""Several counts with Gaussian noise, as one measurement of records that are numbered by their count.

Gaussian noise at an epsilon and a delta costs little more for many answers than for one, as long as all are asked at
once: what one person moves counts by its length, the root of the sum of squares. Asked one by one each of n counts has
an n-th part of epsilon and of delta: 100 counts at (1, 1e-6) have noise of the standard deviation 412 then, and 42.3
together (`core/noise/gaussian_curve.py`). So each record is taken once for each count, beside the number of the count,
and what is measured has a bin for each group and number. Numbers tell the counts apart, so that in one bin one unit
moves no more than in one count (`core/plan/person_bound.py`).

Where a ledger adds up divergences, n counts at an n-th part of rho are the same, and are asked one by one, but for
"best" noise: which noise is nearer is another question for all of them than for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import polars as pl

from wpinq.core.functions.function import named as uniquely
from wpinq.core.functions.tree import col, lit
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.plan.node import sources
from wpinq.core.pricing.privacy_cost import BEST, GAUSSIAN

if TYPE_CHECKING:
    from wpinq.collection import Collection


def joined_counts(counts: Sequence[Collection], mechanism: str | None) -> Collection | None:
    """The records of all counts, each with the number of its count last; None where they are asked one by one.

    Args:
        counts: What each count is of: records that are groups, of the same columns.
        mechanism: What adds noise.
    """
    if len(counts) < 2 or mechanism not in (GAUSSIAN, BEST):
        return None
    if mechanism == GAUSSIAN and all(data.ledger.curves for count in counts for data in sources(count._node)):
        return None
    *names, number = uniquely([*counts[0].columns, "number"])
    parts = [
        count.map([*(col(name).alias(name) for name in names), lit(place, pl.Int64).alias(number)])
        for place, count in enumerate(counts)
    ]
    while len(parts) > 1:  # in pairs: a long chain is nested as deeply as it is long
        parts = [one if other is None else one.concat(other) for one, other in zip_longest(parts[::2], parts[1::2])]
    return parts[0]


@dataclass(frozen=True)
class CountByNumber:
    """One of several counts that are measured together, as answers observe it.

    Attributes:
        together: What was measured.
        place: The number of the count.
    """

    together: Measurement
    place: int

    def observe_many(self, bins: Any, /) -> npt.NDArray[Any]:
        """The noisy count of each group."""
        frame = bins if isinstance(bins, pl.DataFrame) else pl.DataFrame([bins])
        return self.together.observe_many(frame.with_columns(pl.lit(self.place, pl.Int64).alias("\0number")))

    def interval(self, level: Fraction, bins: int = 1) -> float:
        """By how much noise moves it at most, with this probability."""
        return self.together.interval(level, bins=bins)
