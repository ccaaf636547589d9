"""Rows of public tables: filtered and derived like those of protected ones, and looked up by joins.

A join with a public table gives each record the columns of the row that has its key, or none. A key of several columns
is one number: of each column the place of the record's value among those of the table is looked up, and places make a
number as digits do. So such a join is a look-up for each column, and one more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import polars as pl
from polars import selectors

from wpinq.core.functions.admit import GROWTH, admit, bounded
from wpinq.core.functions.polars_tree import tree
from wpinq.core.functions.rows import KEY, rows
from wpinq.core.functions.sql.terms import Term, together
from wpinq.core.functions.tree import Node as Value
from wpinq.core.functions.tree import col, lit, when
from wpinq.core.operators.group_columns import GroupColumn, aggregated
from wpinq.core.operators.keys import keyed
from wpinq.core.operators.look_up import LookUp
from wpinq.core.plan.node import Node
from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.schema import Column, Kind, Schema, polars_type
from wpinq.errors import PlanError
from wpinq.query.select.derived import CALL
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

    def filter(self, condition: Value | pl.Expr) -> PublicRows:
        """The rows that fulfil a condition."""
        return PublicRows(self.frame.filter(tree(condition, CALL).expr), self.schema, self.growth)

    def map(self, columns: Sequence[Value | pl.Expr]) -> PublicRows:
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


PLACE = "place"
MOST = 2**62  # places that one number tells apart


def looked_up(
    node: Node, alias: str, public: PublicRows, keys: Sequence[tuple[Term, Term]], names: Sequence[str], *,
    met: Value | None, required: bool, text: str,
) -> LookUp:  # fmt: skip
    """The records with the columns of a public table.

    Args:
        node: The records.
        alias: What the query calls the table.
        public: Its rows.
        keys: What of a record equals what of a row; each an expression.
        names: The columns of the table that records get.
        met: What a record must fulfil to have a row.
        required: Whether a record without a row is left out.
        text: How the join is written.

    Raises:
        PlanError: The key is not unique there, or of other types.
    """
    if alias.startswith("^"):
        raise PlanError(f"{CALL}: table {alias!r} has a name that Polars reads as a pattern; name it with AS.")
    columns, by = node.schema.names, ", ".join(key.text for _, key in keys)
    frame = public.frame
    if len(keys) == 1:
        value, kind, known = _typed(frame, *keys[0])
    else:
        node, value, known = _numbered(node, alias, frame, keys)
        kind = Kind.INT
    node, (key_name,) = keyed(node, [value if met is None else when(met, value)], CALL, f"{alias} key")
    output = Schema(tuple(Column(f"{alias}.{name}", public.schema[name].kind) for name in names))
    table = frame.with_columns(known.alias(KEY)).drop_nulls(KEY).rename(dict(zip(names, output.names, strict=True)))
    what = f"{by} is not unique in {alias}" if len(keys) == 1 else f"{by} together are not unique in {alias}"
    twice = f"{CALL}: {text}: {what}, so a record would count many times; join on what is unique there."
    function = rows(Column(key_name, kind), table, output, outer=not required, note=f"{alias} by {by}", twice=twice)
    return LookUp(node, function, None, (key_name,), columns)


def _typed(frame: pl.DataFrame, ours: Term, key: Term) -> tuple[Value, Kind, pl.Series]:
    """What is looked up and what of each row it is compared with, in one type."""
    (ours, _), kind = together([ours, key], CALL)
    table = frame.select(key.value.expr.cast(polars_type(kind)).alias(KEY))
    return ours.value, kind, canonical.frame(table, Schema((Column(KEY, kind),)))[KEY]


def _numbered(
    node: Node, alias: str, frame: pl.DataFrame, keys: Sequence[tuple[Term, Term]]
) -> tuple[Node, Value, pl.Series]:
    """One number for the values of several columns: of a record, and of each row; NULL where one is not there."""
    number, numbers, sizes = lit(0, pl.Int64), pl.Series([0], dtype=pl.Int64).new_from_index(0, frame.height), []
    for ours, key in keys:
        value, kind, known = _typed(frame, ours, key)
        table = known.drop_nulls().unique().sort().to_frame().with_row_index(PLACE).cast({PLACE: pl.Int64})
        sizes.append(table.height)
        if prod(sizes) > MOST:
            raise PlanError(f"{CALL}: the keys of {alias} have too many values to tell apart; join on fewer columns.")
        columns = node.schema.names
        node, (key_name,) = keyed(node, [value], CALL, f"{alias} key")
        output = Schema((Column(f"{alias} {PLACE}", Kind.INT),))
        table = table.rename({PLACE: output.names[0]})
        function = rows(Column(key_name, kind), table, output, outer=True, note=f"{alias} by {key.text}")
        node = LookUp(node, function, None, (key_name,), columns)
        number = number * table.height + col(node.schema.names[-1])
        positions = known.to_frame().join(table, on=KEY, how="left", maintain_order="left")
        numbers = numbers * table.height + positions[output.names[0]]
    return node, number, numbers
