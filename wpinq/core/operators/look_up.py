"""Look up: records with the columns of a public table's row of their key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from wpinq.core.functions.bind import bind
from wpinq.core.functions.rows import KEY, Rows, rows
from wpinq.core.operators.filter import Filter
from wpinq.core.operators.keys import Extend, keyed
from wpinq.core.operators.map import Map, choose
from wpinq.core.plan.node import Node
from wpinq.core.plan.shapes import Keyed, Shape
from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT, Batch, weight_series
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Column, Kind, Schema, polars_type
from wpinq.core.state.states import State
from wpinq.core.state.table import Table
from wpinq.core.state.write_buffer import Tally
from wpinq.errors import PlanError, SourceError
from wpinq.lazy import above


def look_up(node: Node, table: object, on: object, *, left: object, right: object, how: object) -> LookUp:
    """The step of `join` with a public table.

    Raises:
        PlanError: A key is missing, is not unique in the table, or of another type there.
        SourceError: The table cannot be read, or is too large to look up.
    """
    ours, theirs = (on if side is None else side for side in (left, right))
    if ours is None or theirs is None:
        raise PlanError("join: name the key of both sides, on='user' or left=..., right=....")
    if not isinstance(how, str) or how not in {"inner", "left"}:
        raise PlanError("join(how=...): takes 'inner' or 'left'.")
    try:
        schema, frame = above("public_table")(table, "the public table")
    except SourceError as error:
        raise SourceError(f"join: takes another protected collection, or a public table: {error}") from None
    if not isinstance(theirs, str) or theirs not in schema.names:
        raise PlanError(_no_key("join", theirs, schema))
    kept = node.schema.names
    keyed_node, keys = keyed(node, ours, "join(on=...)")
    if len(keys) != 1:
        raise PlanError(f"join: the keys ({', '.join(keys)}) and ({theirs}) differ in number.")
    key = replace(keyed_node.schema[keys[0]], ranged=False)
    if len(schema) == 1:
        raise PlanError("join: the public table has no column beside its key; give it one, or filter by the key.")
    rest = Schema(tuple(column for column in schema if column.name != theirs))
    table_rows = frame.select(_as(frame[theirs], schema[theirs].kind, key.kind).alias(KEY), *rest.names).drop_nulls(KEY)
    twice = (
        f"join: {theirs} is not unique in the public table, so a record would count many times; join on what is "
        "unique there."
    )
    function = rows(key, table_rows, rest, outer=how == "left", note=f"a public table by {theirs}", twice=twice)
    return LookUp(keyed_node, function, None, keys, kept)


def _no_key(call: str, theirs: object, schema: Schema) -> str:
    """What is wrong with the key of a public table."""
    named = isinstance(theirs, str)
    what = f"the public table has no column {theirs!r}" if named else "the key of a public table is one of its columns"
    return f"{call}: {what}; there are {schema.listed}. Say on=, or right= where it has another name there."


def those_in(node: Node, table: object, on: object, *, left: object, right: object, call: str, there: bool) -> Map:
    """The records whose key is in a public table, or is not, as they are; a key that is None is in none.

    Raises:
        PlanError: A key is missing, or of another type there.
        SourceError: The table cannot be read, or is too large to look up.
    """
    ours, theirs = (on if side is None else side for side in (left, right))
    try:
        schema, frame = above("public_table")(table, "the public table")
    except SourceError as error:
        raise SourceError(f"{call}: takes another protected collection, or a public table: {error}") from None
    if ours is None or not isinstance(theirs, str) or theirs not in schema.names:
        raise PlanError(_no_key(call, None if ours is None else theirs, schema))
    keyed_node, keys = keyed(node, ours, f"{call}(on=...)")
    if len(keys) != 1:
        raise PlanError(f"{call}: the keys ({', '.join(keys)}) and ({theirs}) differ in number.")
    key = replace(keyed_node.schema[keys[0]], ranged=False)
    label = keyed_node.schema.fresh("known")
    known = frame.select(_as(frame[theirs], schema[theirs].kind, key.kind).alias(KEY)).drop_nulls(KEY).unique()
    rest = Schema((Column(label, Kind.BOOL),))
    marked = known.with_columns(pl.lit(value=True).alias(label))
    function = rows(key, marked, rest, outer=not there, note=f"a public table by {theirs}", twice=call)
    led = LookUp(keyed_node, function, None, keys, node.schema.names)
    if there:
        return choose(led, node.schema.names, call)
    missing = bind(pl.col(label).is_null(), led.schema, call, condition=True)
    return choose(Filter(led, missing), node.schema.names, call)


def mapped(node: LookUp, result: object, columns: Sequence[str] | Mapping[str, object] | None) -> Map:
    """What a function makes of records with their rows."""
    return Map(node, bind(result, node.schema, "join(result=...)", columns=columns))


def _as(values: pl.Series, kind: Kind, wanted: Kind) -> pl.Series:
    """The keys of a public table as the type that the records have; null where no record can have them.

    Raises:
        PlanError: None is of that type.
    """
    if wanted is kind:
        return values
    if wanted is Kind.ANY:
        return canonical.encoded(values, kind)
    if {kind, wanted} == {Kind.INT, Kind.FLOAT}:
        cast = values.cast(polars_type(wanted), strict=False)
        return cast.set(cast.cast(values.dtype, strict=False).ne_missing(values), None)
    raise PlanError(
        f"join: the key is of the type {wanted.value} here and {kind.value} in the public table; convert one of them."
    )


@dataclass(frozen=True, eq=False)
class LookUp(Extend):
    """Plan node of a join with a public table, whose keys are unique: a record has one row or none.

    Stability:  1; each record goes to one place, or, if it has no row, is dropped (inner) or gets nulls (outer).
    """

    function: Rows

    @property
    def title(self) -> str:
        return f"look_up({self.function.note})"

    def lower(self, needed: frozenset[str]) -> Shape:
        """Where nothing of the record itself is needed, records are counted by key, and each row is looked at once."""
        if self.function.outer or needed & set(self.kept):
            return super().lower(needed)
        return Keyed((self.given,), lambda key: Counted(self, key), alone=True)

    @cached_property
    def key(self) -> Schema:
        """The column that is looked up."""
        return Schema((replace(self.source.schema[self.given[0]], ranged=False),))


class Counted(State):
    """The weights of keys, until they are asked for: then each row of the table has the weight of its key."""

    def __init__(self, node: LookUp, identity_key: bytes) -> None:
        function, new = node.function, node.schema.columns[len(node.kept) :]
        self._schema, self._held = Schema(new), node.held
        self._tally = Tally(node.key, identity_key)
        self._ids = identities(function.table.select(pl.col(KEY).alias(node.given[0])), node.key, identity_key)
        names = zip(function.output.names, new, strict=True)
        self._rows = function.table.select(pl.col(old).alias(column.name) for old, column in names)

    def absorb(self, port: int, batch: Batch) -> None:
        """Add to the weights of keys."""
        self._tally.absorb(batch)

    def emit(self) -> Batch:
        """The rows whose keys came; a sum of changes is the change of a sum, so nothing is remembered."""
        table = Table(self._held.array)
        table.add(*self._tally.take())
        weights = table.lookup(self._ids)
        rows = np.flatnonzero(weights)
        frame = self._rows[rows].with_columns(weight_series(weights[rows], self._held).alias(WEIGHT))
        return Batch(frame, self._schema)
