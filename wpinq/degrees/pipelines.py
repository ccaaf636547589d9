"""Collections that tell how often things are counted: the two of *Things that count*, and the corner of both.

Source: McSherry, Things that count, 2018.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from wpinq.arguments import COLLECTION, takes
from wpinq.core.operators.map import Map
from wpinq.degrees.cells import corner_bin

if TYPE_CHECKING:
    from wpinq.collection import Collection


@takes("degrees.cdf", collection=COLLECTION)
def cdf(collection: Collection) -> Collection:
    """The cumulative degree distribution, as a collection to measure.

    Bin k weighs as much as there are records counted k times or more.

    >>> from wpinq.degrees import cdf
    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(cdf(protected(page="text")), [("a",), ("a",), ("b",)])
    {(1,): 2, (2,): 1}
    """
    return _last(collection.shave(name="index"))


@takes("degrees.sequence", collection=COLLECTION)
def sequence(collection: Collection) -> Collection:
    """The frequency sequence, as a collection to measure.

    Bin r weighs how often the r-th most frequent record is counted.

    >>> from wpinq.degrees import sequence
    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(sequence(protected(page="text")), [("a",), ("a",), ("b",)])
    {(1,): 2, (2,): 1}
    """
    return _last(cdf(collection).shave(name="rank"))


@takes("degrees.corner", collection=COLLECTION)
def corner(collection: Collection) -> Collection:
    """Both curves at once, each record counted only by the one that tells it better, as a collection to measure.

    Record k of the r-th most frequent record counts in bin k where r > k, and in bin -r elsewhere.
    Since each is counted once, one measurement at the full epsilon has both.

    >>> from wpinq.degrees import corner
    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(corner(protected(page="text")), [("a",), ("a",), ("b",)])
    {(-1,): 2, (1,): 1}
    """
    cells = cdf(collection).shave(name="rank")
    return cells._then(Map(cells._node, corner_bin(cells._node.schema)))


def _last(sliced: Collection) -> Collection:
    """Forget the record and keep the number of its slice."""
    return sliced.map(pl.col(sliced.columns[-1]))
