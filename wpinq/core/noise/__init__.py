"""Noise: exact mechanisms, drawn from a keyed pseudorandom function of the bin.

Only charged queries import this package (measurements, selections, aggregates). No sampler computes with floats.
Published answers must be reproducible, so a sampler's output for a key never changes under the same `FORMAT`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wpinq.core.noise.digest import MODULUS, histogram_digest
from wpinq.core.noise.gaussian import DiscreteGaussian
from wpinq.core.noise.geometric import DiscreteLaplace, GridLaplace
from wpinq.core.noise.words import Words, WordSource
from wpinq.errors import PlanError

__all__ = [
    "FORMAT",
    "MODULUS",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "GridLaplace",
    "Mechanism",
    "WordSource",
    "Words",
    "histogram_digest",
    "mechanism",
]

FORMAT = 3
"""Version of the words, samplers and digests, bound into every release key."""


class Mechanism(Protocol):
    """Additive noise. `scale` is in units of 1/resolution, all else in steps of 1 / `grid` of such a unit."""

    @property
    def name(self) -> str:
        """What `measure(mechanism=)` calls it."""
        ...

    @property
    def law(self) -> str:
        """The distribution of the noise; each class names its own. A proof for one law refuses mechanisms of others."""
        ...

    @property
    def scale(self) -> Fraction:
        """Sensitivity divided by scale is epsilon; in units of 1/resolution."""
        ...

    @property
    def grid(self) -> int:
        """Steps in a unit of 1/resolution; a released value is `(true * grid + draw) / grid`, divided last."""
        ...

    def draw(self, words: WordSource, identities: NDArray[Any]) -> NDArray[np.int64]:
        """Draw the noise of each identity (shape (n, 2), uint64), in steps."""
        ...

    def draw_one(self, words: Words, identity: bytes) -> int:
        """Draw the noise of one identity, given as its 16 bytes: the same, without arrays."""
        ...

    def half_width(self, level: Fraction) -> int:
        """Find the least t with P(|noise| <= t) >= level, in steps."""
        ...

    def variance(self) -> float:
        """Give the variance, in squared steps."""
        ...


def mechanism(name: str, scale: Fraction) -> Mechanism:
    """Make the mechanism of that name.

    Args:
        name: "geometric" (the default of `measure`) or "laplace".
        scale: In units of 1/resolution.

    Raises:
        PlanError: No such mechanism, or a scale out of range.

    >>> mechanism("geometric", Fraction(10)).half_width(Fraction(95, 100))
    30
    """
    match name:
        case "geometric":
            return DiscreteLaplace(scale)
        case "laplace":
            return GridLaplace(scale)
    raise PlanError(
        f"measure(mechanism={name!r}): no such mechanism; use 'geometric', 'laplace', 'gaussian' or 'best'."
    )
