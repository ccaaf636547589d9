"""The law of noise on released bins, as a posterior weighs it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

REACH = 12
"""Nats against noise beyond which nothing is looked at."""
DRAWS = 100_000
FAR = 0.999
"""The level up to which a sum of noises is drawn."""


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

    @property
    def stddev(self) -> float:
        """The standard deviation of one of them."""
        return self.scale if self.gaussian else math.sqrt(2) * self.scale


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


@cache
def half_width(noise: tuple[NoiseTerm, ...], level: float) -> int:
    """Return what the sum of independent noises exceeds with probability 1 - `level` at most.

    Of one noise, or of Gaussian ones, by their distribution, else by drawing: a sum of Laplace variables is a
    difference of two gamma ones.

    >>> half_width(((10.0, 1),), 0.9), 230 < half_width(((10.0, 100),), 0.9) < 236, half_width(((10.0, 4, True),), 0.9)
    (24, True, 33)
    """
    terms = [term for parts in noise if (term := NoiseTerm(*parts)).many]
    if all(term.gaussian for term in terms):
        spread = math.sqrt(sum(term.many * term.scale**2 for term in terms))
        return math.ceil(spread * NormalDist().inv_cdf((1 + level) / 2)) if spread else 0
    if sum(term.many for term in terms) == 1:
        return math.ceil(sum(term.scale * math.log(1 / (1 - level)) for term in terms))
    rng = np.random.default_rng(0)
    total = np.zeros(DRAWS)
    for scale, count, gaussian in terms:
        if gaussian:
            total += scale * math.sqrt(count) * rng.standard_normal(DRAWS)
        else:
            total += scale * (rng.standard_gamma(count, DRAWS) - rng.standard_gamma(count, DRAWS))
    return math.ceil(float(np.quantile(np.abs(total), level)))
