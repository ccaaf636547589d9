"""What each group of a histogram on a grid weighs, and the choices that are made of it.

The random words of a group are those of its bins: a choice among points has those of the points, and one among very
many places those of the group's first point. Each choice of a group has a number, so no two share a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wpinq.aggregates.groups import Groups
from wpinq.aggregates.heap import Heap
from wpinq.aggregates.utility import Losses
from wpinq.core.noise import Words
from wpinq.core.noise.exponential import PermuteAndFlip
from wpinq.core.noise.valleys import Draws, Valley, ValleyChoice
from wpinq.core.records.identity import column_identities, integer_identities, tuple_identities
from wpinq.core.records.schema import Schema, in_columns
from wpinq.core.state.histogram import Histogram


@dataclass(frozen=True)
class GroupViews:
    """How to find the weights of groups.

    Attributes:
        schema: The columns of a bin: those of groups, and last the point.
        where: The groups.
        size: How many points the grid has.
        key: Of identities.
    """

    schema: Schema
    where: Groups
    size: int
    key: bytes

    @cached_property
    def _keys(self) -> list[NDArray[np.uint64]]:
        """The identities of the values of each group's columns."""
        if self.where.schema is None or self.where.keys is None:
            return []
        return column_identities(self.where.keys, self.where.schema, self.key)

    @cached_property
    def _points(self) -> NDArray[np.uint64]:
        return integer_identities(np.arange(self.size if self.where.by else 0), self.key)

    def of(self, histogram: Histogram, words: Words) -> Iterator[GroupView]:
        """Group by group."""
        return (GroupView(self, row, histogram, words) for row in range(len(self.where)))

    def identities(self, row: int, size: int) -> NDArray[np.uint64]:
        """Of the bins of a group and the points from 0 on."""
        points = self._points[:size] if size <= len(self._points) else integer_identities(np.arange(size), self.key)
        if not self._keys:
            return points
        return tuple_identities(
            [*(np.repeat(key[row : row + 1], size, axis=0) for key in self._keys), points], self.key
        )


@dataclass(frozen=True)
class GroupView:
    """What one group weighs, and its choices; see `utility.View`."""

    views: GroupViews
    row: int
    histogram: Histogram
    words: Words

    @cached_property
    def mass(self) -> Losses:
        """The weight at each point."""
        name = self.views.schema.names[-1]
        frame = in_columns([pl.Series(name, np.arange(self.views.size))])  # of one column; others go by identities
        return self.histogram.lookup(frame, self.views.identities(self.row, self.views.size))

    @cached_property
    def heap(self) -> Heap:
        """The weights that there are."""
        if self.views.schema.ranged:
            return Heap(self.views.size, *self.histogram.numbers())
        return Heap(self.views.size, np.arange(self.views.size), self.mass)

    def flip(self, turn: int, points: NDArray[np.int64], losses: Losses, rate: Fraction) -> int:
        """Choose one of some places by permute-and-flip."""
        ids = self.views.identities(self.row, int(points.max()) + 1)[points]
        least: Any = losses - losses.min()
        return int(points[PermuteAndFlip(rate).choose(self.words, ids, least, turn)])

    def cut(self, turn: int, valley: Valley, rate: Fraction) -> int:
        """Choose one of very many places by the exponential mechanism."""
        return ValleyChoice(rate).choose(Draws(self.words, self.views.identities(self.row, 1), turn), valley)
