"""The histogram at every epoch, as a tree of changes, so that each prefix is a sum of few histograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

from wpinq.core.state.histogram import Histogram
from wpinq.core.state.table import Ids, Weights
from wpinq.errors import NotReadyError

WIDTH = 16


class Level(NamedTuple):
    """Sums of equally many changes: the number of forgotten ones, and the others."""

    gone: int
    kept: list[Histogram]


class Changes:
    """The changes of a histogram, epoch by epoch.

    Each change is kept, and the sum of every `WIDTH` changes, and of every `WIDTH` such sums, and so on. A bin is held
    in log(n) / log(16) levels after n epochs, and a prefix is a sum of at most 15 histograms of each level. One thread
    appends and forgets while others read; every step keeps each prefix complete, because an incomplete one would be
    published under the noise of the complete one.

    Args:
        empty: Makes a histogram without records.
    """

    def __init__(self, empty: Callable[[], Histogram]) -> None:
        self._empty = empty
        self._levels: list[Level] = []

    def append(self, change: Histogram) -> None:
        """Add the change of one epoch."""
        number = 0
        while True:
            if number == len(self._levels):
                self._levels.append(Level(0, []))
            level = self._levels[number]
            level.kept.append(change)
            if (level.gone + len(level.kept)) % WIDTH:
                return
            change = _sum(self._empty(), level.kept[-WIDTH:])
            number += 1

    def forget(self, epochs: int) -> None:
        """Drop what is not needed for this number of epochs or more."""
        size = WIDTH
        for number, level in enumerate(self._levels[:-1]):
            useless = epochs // size * WIDTH - level.gone
            if useless > 0:
                self._levels[number] = Level(level.gone + useless, level.kept[useless:])
            size *= WIDTH

    def lookup(self, epochs: int, bins: pl.DataFrame, ids: Ids) -> Weights:
        """The weights of bins after so many epochs.

        Raises:
            NotReadyError: They were forgotten, perhaps just now by another thread.
        """
        total: Weights = np.zeros(len(ids), np.int64)
        levels = self._levels[:]
        done, size = 0, WIDTH ** max(len(levels) - 1, 0)
        for gone, kept in reversed(levels):
            first, last = done // size - gone, epochs // size - gone
            if first < min(last, 0):
                raise NotReadyError("observe: the epoch is held no more; see live(keep=...).")
            for item in kept[first:last]:
                total = total + item.lookup(bins, ids)
            done = epochs // size * size
            size //= WIDTH
        return total


def _sum(total: Histogram, changes: list[Histogram]) -> Histogram:
    for change in changes:
        total.merge(change)
    return total
