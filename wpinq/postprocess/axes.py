"""One key of a table: which of its values and totals were measured, and what follows from them.

The counts of a table are a product over its keys, so least squares are too: key by key. What is said here of one key
holds of all, where the parts of their noise are multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.postprocess.degrees.posterior.law import NoiseTerm
from wpinq.postprocess.margins import added_up

Parts: TypeAlias = tuple[tuple[float, int], ...]
"""Parts of the noise of one measured number, and how many there are of each."""


@dataclass(frozen=True)
class Axis:
    """Values and their total.

    Attributes:
        size: How many values there are.
        total: Whether their total was measured, too.
    """

    size: int
    total: bool

    @property
    def nodes(self) -> int:
        """The places of the table along it."""
        return self.size + 1

    @property
    def measured(self) -> int:
        """How many of them were measured."""
        return self.size + self.total

    def solved(self, values: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
        """What was measured along an axis, moved as little as makes it add up, and its total."""
        return added_up(values, axis, measured=self.total)

    @property
    def kinds(self) -> tuple[tuple[slice, Parts], ...]:
        """Places of the same noise, and the parts of it; see `cube_noise`."""
        size = self.size
        if self.total:
            return ((slice(None), ((size / (size + 1), 1), (1 / (size + 1), size))),)
        return (slice(None, -1), ((1.0, 1),)), (slice(-1, None), ((1.0, size),))


def noises(axes: Sequence[Axis], unit: NoiseTerm) -> Iterator[tuple[tuple[slice, ...], tuple[NoiseTerm, ...]]]:
    """The cells of a table by their noise.

    Args:
        axes: Its keys.
        unit: The noise of one measured number.

    >>> [noise for _, noise in noises([Axis(3, False)], NoiseTerm(2.0, 1))]
    [(NoiseTerm(scale=2.0, many=1, gaussian=False),), (NoiseTerm(scale=2.0, many=3, gaussian=False),)]
    """
    for kinds in product(*(axis.kinds for axis in axes)):
        terms = [(1.0, 1)]
        for _, parts in kinds:
            terms = [(part * more, many * times) for part, many in terms for more, times in parts]
        yield (
            tuple(places for places, _ in kinds),
            tuple(NoiseTerm(unit.scale * part, many, unit.gaussian) for part, many in terms),
        )
