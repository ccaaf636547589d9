"""Laplace noise on a data-independent dyadic grid: discrete Laplace at a finer resolution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wpinq.core.noise.geometric import LARGEST, DiscreteLaplace
from wpinq.core.noise.words import Words, WordSource

FINEST = 20


@dataclass(frozen=True)
class GridLaplace:
    """Laplace noise on a grid of 2^-20 of a unit of 1/resolution, exactly.

    A measurement adds in grid steps and divides last: `(true * grid + draw) / grid`. True weights are
    whole numbers of grid steps too, so this is the discrete Laplace mechanism of `scale * grid` steps, with
    the same epsilon and no float before the division. (Floats leak: Mironov, "On significance of
    the least significant bits for differential privacy", 2012.)

    Attributes:
        scale: In units of 1/resolution.

    Raises:
        PlanError: The scale is out of the range of `DiscreteLaplace`.

    Source: privacy rule 34.
    """

    scale: Fraction
    name: ClassVar[str] = "laplace"
    law: ClassVar[str] = "discrete Laplace"

    def __post_init__(self) -> None:
        DiscreteLaplace(self.scale)

    @property
    def grid(self) -> int:
        """Steps in a unit of 1/resolution: 2^20, or less at scales so large that 64 bits would not hold the noise.

        It depends on the scale alone, which is public.
        """
        return 1 << min(FINEST, math.floor(LARGEST / self.scale).bit_length() - 1)

    @cached_property
    def steps(self) -> DiscreteLaplace:
        """The same noise in grid steps."""
        return DiscreteLaplace(self.scale * self.grid)

    def draw(self, words: WordSource, identities: NDArray[Any]) -> NDArray[np.int64]:
        """Draw the noise of each identity, in grid steps; see `DiscreteLaplace.draw`."""
        return self.steps.draw(words, identities)

    def draw_one(self, words: Words, identity: bytes) -> int:
        """Draw the noise of one identity, in grid steps; see `DiscreteLaplace.one`."""
        return self.steps.draw_one(words, identity)

    def half_width(self, level: Fraction) -> int:
        """Find the least number t of grid steps with P(|N| <= t) >= level, exactly."""
        return self.steps.half_width(level)

    def variance(self) -> float:
        """Give the variance in squared grid steps."""
        return self.steps.variance()
