"""Keys: columns that are there already, or one that a function makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import polars as pl

from wpinq.batch import END, WEIGHT, Batch
from wpinq.functions import Dropped, Function, bind
from wpinq.plan import Collection as Weighted
from wpinq.plan import Node, Record, Shape, Stateless, Unary
from wpinq.schema import Column, Schema

ASIDE = "\0aside "


def keyed(node: Node, key: object, call: str, name: str = "key") -> tuple[Node, tuple[str, ...]]:
    """The step with its key as columns, and their names.

    Args:
        node: The step.
        key: A column, several columns, or a function of a record as in `map`.
        call: Name of the call, for messages.
        name: Name of the column that a function makes.

    Raises:
        PlanError: There is no such column, or the function does not fit.
    """
    if isinstance(key, str):
        key = (key,)
    if isinstance(key, Sequence) and all(isinstance(one, str) for one in key):
        names = tuple(key)
        node.schema.select([node.schema[one].name for one in names])
        return node, names
    function = bind(key, node.schema, call)
    if function.projection is not None:
        return node, function.projection
    return extend(node, function, name)


def extend(node: Node, function: Function, name: str) -> tuple[Node, tuple[str, ...]]:
    """The step with what a function makes of each record as further columns, and their names."""
    made = Extend(node, function, name)
    return made, made.schema.names[len(node.schema) :]


@dataclass(frozen=True, eq=False)
class Extend(Unary):
    """Records with further columns, which are a function of them.

    Stability:  1; each record goes to one place, or is dropped where the function has no value.
    """

    function: Function
    name: str

    @cached_property
    def schema(self) -> Schema:
        """The record and the outputs of the function."""
        schema = self.source.schema.expanded(self.function.reads)
        for place, column in enumerate(self.function.output, 1):
            wanted = self.name if len(self.function.output) == 1 else f"{self.name}_{place}"
            schema = Schema((*schema.columns, Column(schema.fresh(wanted), column.kind)))
        return schema

    @property
    def title(self) -> str:
        """How `explain` shows it."""
        return f"with {self.name}({self.function.note})"

    @property
    def identity(self) -> tuple[bytes | None, ...]:
        """The function, as far as it can be covered."""
        return (self.function.fingerprint,)

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What is needed later and what the function reads."""
        return (needed & frozenset(self.source.schema.names) | frozenset(self.function.reads),)

    def lower(self, needed: frozenset[str]) -> Shape:
        """The function on columns, beside the record."""
        return Stateless(self._apply)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Call the function on each record."""
        out: dict[Record, Fraction] = {}
        for record, weight in inputs[0].items():
            try:
                out[(*record, *self.function.call(record))] = weight
            except Dropped:
                continue
        return out

    def _apply(self, batch: Batch) -> Batch:
        batch = batch.expand(name for name in self.function.reads if batch.schema[name].ranged)
        aside = {name: ASIDE + name for name in batch.schema.names}
        kept = [WEIGHT, *(END + name for name in batch.schema.ranged), *aside.values()]
        frame = batch.frame.with_columns(pl.col(name).alias(other) for name, other in aside.items())
        mapped = self.function.apply(frame, kept)
        new = self.schema.columns[len(self.source.schema) :]
        named = {old: column.name for old, column in zip(self.function.output.names, new, strict=True)}
        outputs = [pl.col(old).alias(name) for old, name in named.items()]
        records = [pl.col(other).alias(name) for name, other in aside.items()]
        frame = mapped.select(*records, *outputs, *kept[: 1 + len(batch.schema.ranged)])
        return Batch(frame, Schema((*batch.schema.columns, *new)))
