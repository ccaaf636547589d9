"""Rows of public tables in a subquery: filtered and derived like those of protected ones, and looked up later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from polars import selectors

from wpinq.core.functions.admit import GROWTH, admit, bounded
from wpinq.core.functions.polars_tree import tree
from wpinq.core.functions.tree import Node
from wpinq.core.operators.group_columns import GroupColumn, aggregated
from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.schema import Column, Kind, Schema, polars_type
from wpinq.errors import PlanError
from wpinq.query.derived import CALL
from wpinq.sources.public import public_table


@dataclass(frozen=True)
class PublicRows:
    """A public table, with the methods of a collection that subqueries use; all of it is known.

    Attributes:
        frame: Its rows.
        schema: Its columns.
        growth: How many times as long its texts may be as those that were given.
    """

    frame: pl.DataFrame
    schema: Schema
    growth: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""
        return self.schema.names

    def filter(self, condition: Node | pl.Expr) -> PublicRows:
        """The rows that fulfil a condition."""
        return PublicRows(self.frame.filter(tree(condition, CALL).expr), self.schema, self.growth)

    def map(self, columns: Sequence[Node | pl.Expr]) -> PublicRows:
        """Other columns of each row.

        Raises:
            PlanError: A text may become too long: this is computed when the query is priced.
        """
        parts = [tree(part, CALL) for part in columns]
        for part in parts:
            admit(part, self.schema, CALL)
        growth = self.growth * max((bounded(part, self.schema, CALL) for part in parts), default=1)
        if growth > GROWTH:
            raise PlanError(
                f"{CALL}: texts of a public table may become more than {GROWTH:,} times as long; shorten them."
            )
        row = pl.int_range(pl.len()).alias("\0place")  # so that a constant is there for each row
        frame = self.frame.select(*(part.expr for part in parts), row).drop("\0place")
        frame = frame.cast({selectors.integer(): pl.Int64, selectors.float(): pl.Float64})
        kinds = {polars_type(kind): kind for kind in Kind if kind is not Kind.ANY}
        return replace(self._of(frame, [kinds[dtype] for dtype in frame.dtypes]), growth=growth)

    def distinct(self) -> PublicRows:
        """Each row once."""
        return PublicRows(self.frame.unique(maintain_order=True), self.schema, self.growth)

    def aggregated(self, keys: Sequence[str], columns: Sequence[GroupColumn]) -> PublicRows:
        """One row of each key, with aggregates of its rows."""
        rows = self.frame.with_columns(pl.lit(1, pl.Int64).alias(WEIGHT))
        frame = aggregated(rows, keys, keys, columns, self.schema).drop(WEIGHT)
        kinds = [*(self.schema[name].kind for name in keys), *(column.kind(self.schema) for column in columns)]
        return replace(self._of(frame, kinds), growth=self.growth)

    def _of(self, frame: pl.DataFrame, kinds: Sequence[Kind]) -> PublicRows:
        schema = Schema(tuple(Column(name, kind) for name, kind in zip(frame.columns, kinds, strict=True)))
        return PublicRows(canonical.frame(frame, schema), schema)


def public_rows(table: Any, name: str = "") -> PublicRows:
    """The rows of a public table: those of a subquery, or what is read of what was given under this name.

    Raises:
        SourceError: It cannot be read, or is too large to look up.
    """
    if isinstance(table, PublicRows):
        return table
    schema, frame = public_table(table, f"{CALL}: the public table {name}".rstrip())
    return PublicRows(frame, schema)
