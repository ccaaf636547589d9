"""Keys: columns that are there already, or one that a function makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import polars as pl

from wpinq.errors import PlanError
from wpinq.functions import Dropped, Function, bind
from wpinq.operators.align import common_resolution
from wpinq.plan.node import Node, Record, Shape, Stateless, Unary, Weighted
from wpinq.records.batch import END, WEIGHT, Batch
from wpinq.records.schema import Column, Schema

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
    every = node.schema.names
    made = Extend(node, function, name, every, every)
    return made, made.schema.names[len(every) :]


def both_keyed(
    nodes: Sequence[Node], on: object, left: object, right: object, call: str
) -> tuple[tuple[Node, Node], tuple[tuple[str, ...], tuple[str, ...]]]:
    """Two steps at one resolution, each with its key as columns, and the names of these.

    Args:
        nodes: The steps.
        on: The key in both, as in `keyed`.
        left: The key of the first, where the two differ.
        right: The key of the second.
        call: Name of the call, for messages.

    Raises:
        PlanError: A key is missing or does not fit, or the two have different numbers of columns.
    """
    ours, theirs = (on if side is None else side for side in (left, right))
    if ours is None or theirs is None:
        raise PlanError(f"{call}: name the key of both sides, on='user' or left=..., right=....")
    (one, two), _ = common_resolution(nodes)
    one, left_keys = keyed(one, ours, f"{call}(on=...)")
    two, right_keys = keyed(two, theirs, f"{call}(on=...)")
    if len(left_keys) != len(right_keys):
        raise PlanError(f"{call}: the keys ({', '.join(left_keys)}) and ({', '.join(right_keys)}) differ in number.")
    return (one, two), (left_keys, right_keys)


@dataclass(frozen=True, eq=False)
class Extend(Unary):
    """Records with further columns, which are a function of them.

    Stability:  1; each record goes to one place, or is dropped where the function has no value.

    Attributes:
        function: The function.
        name: What its outputs are called; None for their own names.
        given: The columns that it is given.
        kept: The columns of the record that stay.
    """

    function: Function
    name: str | None
    given: tuple[str, ...]
    kept: tuple[str, ...]

    @cached_property
    def schema(self) -> Schema:
        """The record and the outputs of the function."""
        columns = list(self.source.schema.expanded(self.function.reads).select(self.kept))
        for place, column in enumerate(self.function.output, 1):
            several = "" if len(self.function.output) == 1 else f"_{place}"
            name = column.name if self.name is None else self.name + several
            columns.append(Column(Schema(tuple(columns)).fresh(name), column.kind))
        return Schema(tuple(columns))

    @property
    def title(self) -> str:
        """How `explain` shows it."""
        return f"{'reduce' if self.name is None else 'with ' + self.name}({self.function.note})"

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What is needed later and what the function reads."""
        read = needed & frozenset(self.kept) | frozenset(self.function.reads)
        return (read or frozenset(self.source.schema.names[:1]),)

    def lower(self, needed: frozenset[str]) -> Shape:
        """The function on columns, beside the record."""
        return Stateless(self._apply)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Call the function on each record."""
        names = self.source.schema.names
        given, kept = ([names.index(name) for name in some] for some in (self.given, self.kept))
        out: dict[Record, Fraction] = defaultdict(Fraction)
        for record, weight in inputs[0].items():
            try:
                made = self.function.call(tuple(record[place] for place in given))
            except Dropped:
                continue
            out[(*(record[place] for place in kept), *made)] += weight
        return out

    def _apply(self, batch: Batch) -> Batch:
        batch = batch.expand(name for name in self.function.reads if batch.schema[name].ranged)
        kept = tuple(name for name in batch.schema.names if name in self.kept)
        ends = [END + name for name in batch.schema.ranged if name in kept]
        frame = batch.frame.with_columns(pl.col(name).alias(ASIDE + name) for name in kept)
        mapped = self.function.apply(frame, [WEIGHT, *ends, *(ASIDE + name for name in kept)])
        new = self.schema.columns[len(self.kept) :]
        outputs = zip(self.function.output.names, new, strict=True)
        frame = mapped.select(
            *(pl.col(ASIDE + name).alias(name) for name in kept),
            *(pl.col(old).alias(column.name) for old, column in outputs),
            WEIGHT,
            *ends,
        )
        own = batch.schema.select(kept).columns if kept else ()
        return Batch(frame, Schema((*own, *new)))
