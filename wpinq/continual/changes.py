"""What was counted up to each epoch: the changes, merged like nodes of a tree, so that every prefix is at hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from wpinq.state.histogram import Histogram
from wpinq.state.table import Ids, Weights

WIDTH = 16


class Changes:
    """The changes of a histogram, epoch by epoch.

    Each change is kept, and with every `WIDTH` of them (and of those, and so on) also their sum. Up to n changes of
    one bin are held in log(n) / log(16) sums, and a prefix is a sum of at most 15 of each.

    Args:
        empty: Makes a histogram without records.
    """

    def __init__(self, empty: Callable[[], Histogram]) -> None:
        self._empty = empty
        self._levels: list[list[Histogram]] = []
        self._gone: list[int] = []

    def append(self, change: Histogram) -> None:
        """Add the change of one epoch."""
        level = 0
        while True:
            if level == len(self._levels):
                self._levels.append([])
                self._gone.append(0)
            self._levels[level].append(change)
            if (self._gone[level] + len(self._levels[level])) % WIDTH:
                return
            change = _sum(self._empty(), self._levels[level][-WIDTH:])
            level += 1

    def forget(self, epochs: int) -> None:
        """Let go of what is not needed for this number of epochs or more: what whole sums of it tell."""
        size = WIDTH
        for level in range(len(self._levels) - 1):
            useless = epochs // size * WIDTH - self._gone[level]
            if useless > 0:
                del self._levels[level][:useless]
                self._gone[level] += useless
            size *= WIDTH

    def lookup(self, epochs: int, bins: pl.DataFrame, ids: Ids) -> Weights:
        """The weights of bins after so many epochs."""
        total: Weights = np.zeros(len(ids), np.int64)
        done, size = 0, WIDTH ** max(len(self._levels) - 1, 0)
        for histograms, gone in zip(reversed(self._levels), reversed(self._gone), strict=True):
            for one in histograms[done // size - gone : epochs // size - gone]:
                total = total + one.lookup(bins, ids)
            done = epochs // size * size
            size //= WIDTH
        return total


def _sum(total: Histogram, changes: list[Histogram]) -> Histogram:
    for change in changes:
        total.merge(change)
    return total
