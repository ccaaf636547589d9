"""The two collections of *Things that count* that tell how often things are counted.

Source: McSherry, Things that count, 2018.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from wpinq.collection import Collection


def cdf(collection: Collection) -> Collection:
    """The cumulative degree distribution, as a collection to measure.

    Bin k weighs as much as there are records counted k times or more.

    >>> evaluate(cdf(protected(page="text")), [("a",), ("a",), ("b",)])
    {(1,): 2, (2,): 1}
    """
    return _last(collection.shave(name="index"))


def sequence(collection: Collection) -> Collection:
    """The frequency sequence, as a collection to measure.

    Bin r weighs how often the r-th most frequent record is counted.

    >>> evaluate(sequence(protected(page="text")), [("a",), ("a",), ("b",)])
    {(1,): 2, (2,): 1}
    """
    return _last(cdf(collection).shave(name="rank"))


def _last(sliced: Collection) -> Collection:
    """Forget the record and keep the number of its slice."""
    return sliced.map(pl.col(sliced.columns[-1]))
