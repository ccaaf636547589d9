"""One key of a table: which of its values and totals were measured, and what follows from them.

The counts of a table are a product over its keys, so least squares are too: key by key. What is said here of one key
holds of all, where the parts of their noise are multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.postprocess.degrees.posterior.law import NoiseTerm
from wpinq.postprocess.margins import added_up
from wpinq.postprocess.rounding import controlled
from wpinq.postprocess.rounding_search import searched
from wpinq.postprocess.rounding_trees import rounded_tree

Places: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

MOST = 200_000
"""Numbers of a hierarchy beside another key that are rounded together; of more those are sought that are near."""

Parts: TypeAlias = tuple[tuple[float, int], ...]
"""Parts of the noise of one measured number, and how many there are of each."""


@dataclass(frozen=True)
class Axis:
    """Values and their total, or the codes of a hierarchy, of which the finest were measured.

    Attributes:
        size: How many values were measured.
        total: Whether their total was measured, too.
        parents: Of a hierarchy the node above each node, but of the last, which is the total.
    """

    size: int
    total: bool
    parents: tuple[int, ...] = ()

    @property
    def nodes(self) -> int:
        """The places of the table along it."""
        return (len(self.parents) or self.size) + 1

    @property
    def measured(self) -> int:
        """How many numbers were measured along it."""
        return self.size + self.total

    @cached_property
    def families(self) -> list[tuple[int, Places]]:
        """Each total with its parts, from the last place down."""
        children: dict[int, list[int]] = {}
        for node, parent in enumerate(self.parents or (self.size,) * self.size):
            children.setdefault(parent, []).append(node)
        result, queue = [], [self.nodes - 1]
        for node in queue:
            if node in children:
                result.append((node, np.array(children[node])))
                queue += children[node]
        return result

    @cached_property
    def leaves(self) -> Places:
        """The places that are no totals."""
        return np.setdiff1d(np.arange(self.nodes), [parent for parent, _ in self.families])

    def summed(self, values: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
        """Values with all totals along an axis."""
        result = np.empty((self.nodes, *np.moveaxis(values, axis, 0).shape[1:]))
        result[self.leaves] = np.moveaxis(values, axis, 0)
        for parent, children in reversed(self.families):
            result[parent] = result[children].sum(axis=0)
        return np.moveaxis(result, 0, axis)

    @cached_property
    def cells(self) -> list[list[int]]:
        """Of each place those that it is the sum of and that are no totals; of one that is none itself."""
        result = [[node] for node in range(self.nodes)]
        for parent, children in reversed(self.families):
            result[parent] = [leaf for child in children.tolist() for leaf in result[child]]
        return result

    def covariance(self, node: int) -> npt.NDArray[np.float64]:
        """How the noise of each place goes along with that of one place, in variances of one measured number."""
        part = np.isin(self.leaves, self.cells[node]).astype(np.float64)
        return self.summed(part - part.sum() / (self.size + 1) if self.total else part, 0)

    def solved(self, values: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
        """What was measured along an axis, moved as little as makes it add up, and all totals."""
        result = added_up(values, axis, measured=self.total)
        return self.summed(np.split(result, [-1], axis=axis)[0], axis) if self.parents else result

    @cached_property
    def kinds(self) -> tuple[tuple[Places, Parts], ...]:
        """Places of the same noise, and the parts of it; see `cube_noise`.

        The sum of k of n values has all of their noise; where the total was measured, too, k / (n + 1) of what it and
        the values differ by is taken away.
        """
        many = self.summed(np.ones(self.size), 0).astype(np.int64)
        result = []
        for each in np.unique(many).tolist():
            part = each / (self.size + 1)
            parts: Parts = ((1 - part, each), (part, self.size + 1 - each)) if self.total else ((1.0, each),)
            result.append((np.flatnonzero(many == each), parts))
        return tuple(result)


def exactly(axes: Sequence[Axis]) -> bool:
    """Whether each number of a table can be made whole by less than one, and those that are whole stay.

    It is so along one key, or two of which one at the most is a hierarchy.
    """
    trees = sum(bool(axis.parents) for axis in axes)
    return len(axes) == 1 or (len(axes) == 2 and trees < 2 and (not trees or math.prod(a.nodes for a in axes) <= MOST))


def rounded(values: Floats, axes: Sequence[Axis], kept: Iterable[tuple[int, ...]] = ()) -> Integers:
    """Whole numbers that add up exactly, of a table that does.

    Where `exactly` holds each number goes up or down by less than one. Elsewhere whole numbers are sought of which this
    is true (`searched`); all cells are next to their values, and the most of all totals.

    Args:
        values: The table.
        axes: Its keys.
        kept: Where numbers are public: whole ones that are reached along the keys in their order.

    >>> rounded(np.array([1.5, 0.75, 0.75, 0.5, 2.0]), [Axis(3, False, (4, 0, 0, 4))]).tolist()
    [2, 1, 1, 0, 2]
    """
    if exactly(axes) and len(axes) == 2:
        if not any(axis.parents for axis in axes):
            return controlled(values)
        turned = bool(axes[1].parents)
        result = rounded_tree(values.T if turned else values, axes[turned].parents)
        return result.T if turned else result
    start = in_order(values, axes)
    return start if exactly(axes) else searched(start, values, [axis.cells for axis in axes], kept)


def in_order(values: Floats, axes: Sequence[Axis]) -> Integers:
    """Whole numbers along the keys in their order.

    Along the first each number goes up or down by less than one, from the total downwards; then so within each value of
    the first along the second, and so on: of the parts of a total those go up that have the largest fractions. All
    other totals are the sums of their parts, and may move by more.
    """
    cells = np.round(values[(-1,) * values.ndim])[None]
    for place, axis in enumerate(axes):
        before, after = (
            (each.leaves for each in axes[:place]),
            (np.array([each.nodes - 1]) for each in axes[place + 1 :]),
        )
        block = values[np.ix_(*before, np.arange(axis.nodes), *after)]
        block = block.reshape(block.shape[: place + 1])
        result = np.empty(block.shape)
        result[..., -1] = cells.reshape(block.shape[:-1])
        for parent, children in axis.families:
            low = np.floor(block[..., children])
            up = np.round(result[..., parent] - low.sum(axis=-1))[..., None]
            rank = np.argsort(np.argsort(low - block[..., children], axis=-1, kind="stable"), axis=-1)
            result[..., children] = low + (rank < up)
        cells = result[..., axis.leaves]
    for place, axis in enumerate(axes):
        cells = axis.summed(cells, place)
    told: npt.NDArray[np.int64] = np.round(cells).astype(np.int64)
    return told


def noises(axes: Sequence[Axis], unit: NoiseTerm) -> Iterator[tuple[Any, tuple[NoiseTerm, ...]]]:
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
            np.ix_(*(places for places, _ in kinds)),
            tuple(NoiseTerm(unit.scale * part, many, unit.gaussian) for part, many in terms),
        )
