"""A batch: many weighted records as columns, the only thing that flows through an engine.

One Polars frame holds the columns, the weight (an exact integer in units of 1/resolution) and, for each ranged column,
where its range ends. A row stands for the box of all records that its ranges span, each with the row's weight. Weights
are signed: a batch is a change to a collection, and a collection is a sum of changes. They are held in 64 or in 128
bits, as the step says that made the batch (`weights.py`).

Equal rows of a small batch are found by the identities of their records, since Polars takes five times as long to
begin; and rows are taken column by column, for which Polars wakes no thread. The key is of this process alone. What is
equal does not depend on it, but with a probability of 2^-100; what is kept where rows collide is one of them with the
weight of both, as wherever records are known by their identities.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import mul

import numpy as np
import polars as pl

from wpinq.core.kernels import LIB
from wpinq.core.kernels.repeats import of_ids
from wpinq.core.records import canonical
from wpinq.core.records.identity import column_identities, identities, tuple_identities
from wpinq.core.records.schema import Column, Kind, Schema, in_columns, polars_type
from wpinq.core.records.weights import WeightType

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
    taken = pl.Series(rows.astype(np.uint32))
    return in_columns(pl.Series(weight, sums) if name == weight else frame[name][taken] for name in frame.columns)


WEIGHT = "\0weight"
END = "\0end "


def rows_of(frame: pl.DataFrame, rows: np.ndarray) -> pl.DataFrame:
    """Some rows of a frame, by their numbers."""
    taken = pl.Series(rows.astype(np.uint32))
    if frame.height < FEW:
        return in_columns(column[taken] for column in frame.get_columns())
    return frame[taken]


def weight_series(weights: np.ndarray, held: WeightType) -> pl.Series:
    """A column of weights from exact integers."""
    plain = weights.tolist() if weights.dtype == object else weights
    return pl.Series(WEIGHT, plain, dtype=held.column)


def integers(series: pl.Series) -> np.ndarray:
    """Exact integers as an array: of int64, or of Python integers where they are held in 128 bits."""
    if series.dtype == pl.Int128:
        return np.array(series.to_list(), object)
    return series.to_numpy()


def bytes_of_row(frame: pl.DataFrame) -> int:
    """Bytes of a row, about; a text has 16 and where it is longer than 12 its own."""
    long = [pl.col(name).str.len_bytes() for name, kind in frame.schema.items() if kind == pl.String]
    texts = sum(frame.select(pl.when(size > 12).then(size).mean().fill_null(0)).item() for size in long)
    return int(texts) + 16 * frame.width


@dataclass(frozen=True, slots=True)
class Batch:
    """Weighted records in columns.

    Attributes:
        frame: The schema's columns in order, `WEIGHT`, and `END + name` (exclusive) for each ranged column.
        schema: The names and kinds of the columns.
    """

    frame: pl.DataFrame
    schema: Schema

    @classmethod
    def of(cls, frame: pl.DataFrame, schema: Schema) -> Batch:
        """Records without weights, each counted once."""
        if frame.height < FEW:
            ones = pl.Series(WEIGHT, np.ones(frame.height, np.int64))
            return cls(in_columns([*(frame[name] for name in schema.names), ones]), schema)
        weight = pl.lit(1, pl.Int64).alias(WEIGHT)  # which Polars writes out late, so that it takes no memory
        return cls(frame[list(schema.names)].with_columns(weight), schema)

    @classmethod
    def empty(cls, schema: Schema) -> Batch:
        """No records."""
        types: dict[str, pl.DataType] = {column.name: polars_type(column.kind) for column in schema}
        types[WEIGHT] = pl.Int64()
        types.update({END + name: pl.Int64() for name in schema.ranged})
        return cls(pl.DataFrame(schema=types), schema)

    @classmethod
    def concat(cls, batches: Iterable[Batch], schema: Schema) -> Batch:
        """All rows of all batches, which have the same columns."""
        frames = [batch.frame for batch in batches]
        return cls(pl.concat(frames, how="vertical_relaxed"), schema) if frames else cls.empty(schema)

    def __len__(self) -> int:
        return self.frame.height

    @property
    def weights(self) -> np.ndarray:
        """The weight of each row, as exact integers."""
        return integers(self.frame[WEIGHT])

    def __repr__(self) -> str:
        return f"Batch{self.schema}"

    def select(self, names: Iterable[str]) -> Batch:
        """Keep these columns; the weights of records that become equal add up."""
        schema = self.schema.select(names)
        frame, wanted = self.frame, [*schema.names, WEIGHT, *(END + name for name in schema.ranged)]
        widths = [pl.col(END + name) - pl.col(name) for name in self.schema.ranged if name not in schema]
        if widths:
            frame = frame.with_columns(reduce(mul, widths, pl.col(WEIGHT)).alias(WEIGHT))
        return self if frame.columns == wanted else Batch(in_columns(frame[name] for name in wanted), schema)

    def project(self, columns: dict[str, str]) -> Batch:
        """Choose columns, each once, under new names: a mapping from the new name to the old one."""
        chosen = list(columns.values())
        batch = self.select(chosen)
        kinds = [batch.schema[old] for old in chosen]
        schema = Schema(tuple(Column(new, old.kind, old.ranged) for new, old in zip(columns, kinds, strict=True)))
        ends = {END + new: END + columns[new] for new in schema.ranged}
        named = {**columns, WEIGHT: WEIGHT, **ends}
        return Batch(in_columns(batch.frame[old].alias(new) for new, old in named.items()), schema)

    def expand(self, names: Iterable[str]) -> Batch:
        """Write the ranges of these columns out, one row for each integer."""
        batch = self
        for name in names:
            batch = _expand(batch, name)
        return batch

    def consolidate(self) -> Batch:
        """Add up the weights of equal rows and drop what cancels."""
        keys = [name for name in self.frame.columns if name != WEIGHT]
        ends = (Column(name, Kind.INT) for name in keys if name not in self.schema)
        few = added_up(self.frame, Schema((*self.schema.expanded(), *ends)), WEIGHT)
        if few is not None:
            return Batch(few, self.schema)
        rows = canonical.bits(self.frame.lazy())
        result = rows.group_by(keys).agg(pl.col(WEIGHT).sum()).filter(pl.col(WEIGHT) != 0).select(self.frame.columns)
        return Batch(canonical.numbers(result, self.schema).collect(), self.schema)

    def scale(self, factor: int, held: WeightType | None = None) -> Batch:
        """Multiply every weight, and hold the products as this type says, or as the weights were held."""
        before = self.frame.schema[WEIGHT]
        kind = before if held is None else held.column
        if factor == 1 and kind == before:
            return self
        weight = pl.col(WEIGHT).cast(kind) * pl.lit(factor, kind)
        return Batch(self.frame.with_columns(weight.alias(WEIGHT)), self.schema)

    def refine(self, coarse: WeightType, fine: WeightType) -> Batch:
        """Write weights of one type as weights of another, at a resolution as fine or finer."""
        return self.scale(fine.resolution // coarse.resolution, fine)


def _expand(batch: Batch, name: str) -> Batch:
    if not batch.schema[name].ranged:
        return batch
    columns = tuple(Column(name, Kind.INT) if column.name == name else column for column in batch.schema)
    frame = batch.frame.filter(pl.col(END + name) > pl.col(name))
    written = frame.with_columns(pl.int_ranges(name, END + name).alias(name)).drop(END + name).explode(name)
    return Batch(written, Schema(columns))


def sum_of_rows(frame: pl.DataFrame, schema: Schema, key: bytes) -> np.ndarray:
    """The sum of the identities of all rows, by their weights if they have any: the same in whatever order."""
    rows = identities(frame, schema, key)
    if WEIGHT in frame.columns:
        rows = rows * frame[WEIGHT].to_numpy().astype(np.uint64)[:, None]
    result: np.ndarray = rows.sum(axis=0, dtype=np.uint64)
    return result
