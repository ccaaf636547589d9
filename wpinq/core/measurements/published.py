"""Published bins as a table."""

from __future__ import annotations

import numpy as np
import polars as pl

from wpinq.core.records.kinds import read
from wpinq.core.records.schema import Kind, Schema

PLAIN: dict[type, pl.DataType] = {str: pl.String(), int: pl.Int64(), float: pl.Float64()}


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
