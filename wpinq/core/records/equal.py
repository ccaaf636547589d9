"""Equal rows among a few, found by the identities of their records: Polars takes five times as long to begin.

The key is of this process alone. What is equal does not depend on it, but with a probability of 2^-100; what is kept
where rows collide is one of them with the weight of both, as wherever records are known by their identities.
"""

from __future__ import annotations

import os

import polars as pl

from wpinq.core.kernels import LIB
from wpinq.core.kernels.repeats import of_ids
from wpinq.core.records.identity import column_identities, tuple_identities
from wpinq.core.records.schema import Kind, Schema

FEW = 1 << 13
"""Rows from which on Polars is as fast."""
KEY = os.urandom(16)


def added_up(frame: pl.DataFrame, schema: Schema, weight: str) -> pl.DataFrame | None:
    """The rows of a frame once each, with the sums of their weights, none of which is 0.

    Args:
        frame: Holds the columns of the schema in their canonical types, and weights.
        schema: Its columns but for the weight.
        weight: The column of the weights.

    Returns:
        Nothing where there are many rows, or where the values of records must be looked at one by one.
    """
    if LIB is None or frame.height >= FEW or frame.schema[weight] != pl.Int64:
        return None
    if any(column.kind is Kind.ANY for column in schema):  # of which tuples are hashed item by item
        return None
    ids = column_identities(frame, schema, KEY)
    rows, sums = of_ids(LIB, ids[0] if len(ids) == 1 else tuple_identities(ids, KEY), frame[weight].to_numpy())
    if not sums.all():
        rows, sums = rows[sums != 0], sums[sums != 0]
    if len(rows) == frame.height:
        return frame
    distinct = frame[pl.Series(rows, dtype=pl.UInt32)]
    return distinct.replace_column(distinct.get_column_index(weight), pl.Series(weight, sums))
