"""The law of noise on released bins, as a posterior weighs it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

REACH = 12
"""Nats against noise beyond which nothing is looked at."""


class NoiseTerm(NamedTuple):
    """Independent noises of one kind.

    Attributes:
        scale: Of Laplace noise; of Gaussian noise the standard deviation.
        many: How many there are.
        gaussian: Whether they are Gaussian.
    """

    scale: float
    many: int
    gaussian: bool = False


@dataclass(frozen=True)
class Law:
    """Laplace noise, or Gaussian noise: its logarithmic likelihood is -loss / unit, but for a constant.

    Attributes:
        scale: Of Laplace noise; of Gaussian noise the standard deviation.
        gaussian: Whether it is Gaussian.
    """

    scale: float
    gaussian: bool = False

    @property
    def unit(self) -> float:
        """The loss that costs one nat."""
        return 2 * self.scale**2 if self.gaussian else self.scale

    @property
    def reach(self) -> int:
        """The noise that costs `REACH` nats."""
        return math.ceil(self.scale * math.sqrt(2 * REACH) if self.gaussian else REACH * self.scale)

    def loss(self, noise: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The size of noise, or its square."""
        result: npt.NDArray[Any] = np.square(noise) if self.gaussian else np.abs(noise)
        return result

    def of(self, many: int) -> NoiseTerm:
        """So many independent ones."""
        return NoiseTerm(self.scale, many, self.gaussian)
