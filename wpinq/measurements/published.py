"""Published bins as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wpinq.records.kinds import read
from wpinq.records.schema import Kind, Schema

PLAIN: dict[type, pl.DataType] = {str: pl.String(), int: pl.Int64(), float: pl.Float64()}


@dataclass(frozen=True)
class Release:
    """Bins that were published, with their noisy weights, the largest first and then by name.

    It iterates over pairs of a bin and its noisy weight. A bin that is not in it may exist or not.

    Attributes:
        frame: One row for each bin: its columns, and `count`, or `weighted_sum` where weights are no whole numbers.
        threshold: The least noisy weight that is published, 0 where bins were given by name.
        delta: What the publication cost, beside the epsilon of its measurement.
        half_width: Half the width of the 95% interval around one count, for its noise. Of bins that were chosen by a
            threshold those near to it are rather too high than too low.
    """

    frame: pl.DataFrame
    threshold: float
    delta: float
    half_width: float

    def __len__(self) -> int:
        return self.frame.height

    def __iter__(self) -> Iterator[tuple[Any, int | float]]:
        for row in self.frame.iter_rows():
            yield (row[0] if len(row) == 2 else row[:-1]), row[-1]


def ordered(frame: pl.DataFrame, counts: np.ndarray, schema: Schema, *, whole: bool) -> pl.DataFrame:
    """Order bins by count and then by name, never by the data, and write them as people read them.

    What is no count, since weights are fractions (of pairs of a join, of records that share one), is not called so.
    """
    label = schema.fresh("count" if whole else "weighted_sum")
    descending = [True] + [False] * len(schema)
    table = frame.with_columns(pl.Series(label, counts)).sort([label, *schema.names], descending=descending)
    return table.with_columns(readable(table[column.name], column.kind) for column in schema)


def by_name(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Bins without counts, ordered by name."""
    table = frame.sort(schema.names)
    return table.with_columns(readable(table[column.name], column.kind) for column in schema)


def readable(column: pl.Series, kind: Kind) -> pl.Series:
    """A column of any values, as a plain column where they are of one simple type, else as Python objects."""
    if kind is not Kind.ANY:
        return column
    values = [read(value, kind) for value in column]
    types = {type(value) for value in values if value is not None}
    plain = PLAIN.get(next(iter(types), str), pl.Object()) if len(types) < 2 else pl.Object()
    if plain == pl.Int64 and any(value is not None and abs(value) >= 2**63 for value in values):
        plain = pl.Object()
    return pl.Series(column.name, values, dtype=plain)
