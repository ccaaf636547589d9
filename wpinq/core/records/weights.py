"""The width of weights: 64 or 128 bits, decided by the plan and never by the data, so that no sum of them overflows.

If a weight overflowed, one record could change it by 2^64, and with it every later step that is not linear. Three
numbers rule this out.

    capacity  A source holds 2^40 records at the most. That is checked where records are read and sent; a larger source
              is refused, as one is that does not fit the machine.
    gain      A step's records weigh no more than its gain g for each record of a source: if no source holds more than
              N records, its weights sum up, in absolute value, to g N at the most. It follows from stability: the
              output for empty inputs is empty, so the output weighs at most the inputs' weight times the stability. So
              g is the sum over the inputs of stability times gain; steps with a smaller gain override it.
    resolution   Weights are whole numbers of 1/L.

So the weights of any of a step's records sum up to less than 2^40 g L units, and a change of them (weights after less
weights before) to less than twice as much: to less than 2^63 where g L < 2^22, and less than 2^127 where g L < 2^86.
All intermediate values of a kernel are such sums, or products that are terms of one: a weight times the length of a
range, its share of an output, its copies. A dither rounds each row by less than one unit; its stability, 1 + 2^-16,
which the gain includes, allows for 2^62 rows. A plan with a larger g L is refused when it is made, before any charge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from wpinq.errors import PlanError

if TYPE_CHECKING:
    import polars as pl

CAPACITY = 2**40
"""Records of a source."""
NARROW = 2**22
"""Gain times resolution of weights in 64 bits is below it."""
WIDE = 2**86
"""Gain times resolution of weights in 128 bits is below it."""


@dataclass(frozen=True, slots=True)
class WeightType:
    """How a step's weights are held.

    Attributes:
        resolution: They are whole numbers of 1/resolution.
        wide: Whether in 128 bits; else in 64.
    """

    resolution: int
    wide: bool = False

    @classmethod
    def of(cls, resolution: int, gain: Fraction, call: str) -> WeightType:
        """The type for a resolution and a gain.

        Raises:
            PlanError: Not even 128 bits hold such weights.
        """
        if gain * resolution >= WIDE:
            raise PlanError(
                f"{call}: one record can weigh {_power(gain)} here, in steps of 1/{_power(resolution)}, and 128 bits "
                "do not hold sums of such weights. Let records weigh less (max_weight=, fewer sums of a collection "
                "with itself), or keep the steps coarser (thickness=, step=, flat_map(at_most=))."
            )
        return cls(resolution, gain * resolution >= NARROW)

    @property
    def column(self) -> pl.DataType:
        """The type of columns."""
        import polars as pl

        return pl.Int128() if self.wide else pl.Int64()

    @property
    def array(self) -> np.dtype[np.int64] | np.dtype[np.object_]:
        """The type of arrays: int64, or Python integers."""
        return np.dtype(object) if self.wide else np.dtype(np.int64)

    @property
    def whole(self) -> bool:
        """Whether weights are whole and held in 64 bits."""
        return self.resolution == 1 and not self.wide


def fits(resolution: int, gain: Fraction) -> bool:
    """Whether 128 bits hold weights of this resolution and gain."""
    return gain * resolution < WIDE


def _power(number: Fraction | int) -> str:
    """A number for people: as it is, or about a power of two."""
    return str(number) if number < NARROW and len(str(number)) < 9 else f"about 2^{round(math.log2(number))}"
