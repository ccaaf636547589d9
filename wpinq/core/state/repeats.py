"""Adds up equal values of a column before they are hashed, as far as a small table finds them."""

from __future__ import annotations

import numpy as np
import polars as pl

from wpinq.core import kernels
from wpinq.core.kernels import repeats
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.schema import Kind, Schema

FEW = 0.75
"""Where more of the rows than that are left, little repeats near by, and the next frames go on as they are."""
PAUSE = 8
"""Frames that go on as they are, before it is tried again."""
VIEWS = frozenset({Kind.TEXT, Kind.BYTES, Kind.ANY})


class Repeats:
    """Counts the rows of each value of one column, frame by frame. Whether it does changes the speed and no sum."""

    def __init__(self, schema: Schema) -> None:
        self._kind = schema.columns[0].kind if len(schema) == 1 else None
        self._pause = 0

    def count(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The same records with their weights in fewer rows; or the frame as it is, without weights."""
        if kernels.LIB is None or self._kind is None or self._pause or not frame.height:
            self._pause = max(self._pause - 1, 0)
            return frame
        column = frame.to_series().rechunk()
        missing = column.null_count()
        values = column.drop_nulls() if missing else column
        if self._kind in VIEWS:
            rows, counts = repeats.of_views(kernels.LIB, kernels.Views(values.rechunk()))
        else:
            rows, counts = repeats.of_words(kernels.LIB, _words(values))
        self._pause = PAUSE if len(rows) > FEW * frame.height else 0
        distinct = values.gather(rows)
        if missing:
            distinct, counts = distinct.extend_constant(None, 1), np.append(counts, missing)
        return pl.DataFrame({column.name: distinct, WEIGHT: counts})  # not a list: a name may be empty


def _words(values: pl.Series) -> kernels.Words:
    """One word for each value; a column holds no -0.0 and no NaN, so equal numbers have equal bits."""
    plain = values.to_physical()
    return (plain if plain.dtype == pl.Float64 else plain.cast(pl.Int64)).to_numpy().view(np.uint64)
