"""Rows of public tables in a subquery: filtered and derived like those of protected ones, and looked up later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from polars import selectors

from wpinq.operators.group_columns import GroupColumn, aggregated
from wpinq.records import canonical
from wpinq.records.batch import WEIGHT
from wpinq.records.schema import Column, Kind, Schema, polars_type


@dataclass(frozen=True)
class PublicRows:
    """A public table, with the methods of a collection that subqueries use; all of it is known.

    Attributes:
        frame: Its rows.
        schema: Its columns.
    """

    frame: pl.DataFrame
    schema: Schema

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""
        return self.schema.names

    def filter(self, condition: pl.Expr) -> PublicRows:
        """The rows that fulfil a condition."""
        return PublicRows(self.frame.filter(condition), self.schema)

    def map(self, columns: Sequence[pl.Expr]) -> PublicRows:
        """Other columns of each row."""
        place = pl.int_range(pl.len()).alias("\0place")  # so that a constant is there for each row
        frame = self.frame.select(*columns, place).drop("\0place")
        frame = frame.cast({selectors.integer(): pl.Int64, selectors.float(): pl.Float64})
        kinds = {polars_type(kind): kind for kind in Kind if kind is not Kind.ANY}
        return self._of(frame, [kinds[dtype] for dtype in frame.dtypes])

    def distinct(self) -> PublicRows:
        """Each row once."""
        return PublicRows(self.frame.unique(maintain_order=True), self.schema)

    def aggregated(self, keys: Sequence[str], columns: Sequence[GroupColumn]) -> PublicRows:
        """One row of each key, with aggregates of its rows."""
        rows = self.frame.with_columns(pl.lit(1, pl.Int64).alias(WEIGHT))
        found = aggregated(rows, keys, keys, columns, self.schema).drop(WEIGHT)
        return self._of(
            found, [*(self.schema[name].kind for name in keys), *(one.kind(self.schema) for one in columns)]
        )

    def _of(self, frame: pl.DataFrame, kinds: Sequence[Kind]) -> PublicRows:
        schema = Schema(tuple(Column(name, kind) for name, kind in zip(frame.columns, kinds, strict=True)))
        return PublicRows(canonical.frame(frame, schema), schema)
