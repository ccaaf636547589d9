"""Keys of joins, groups and partitions: columns of the record, or a column that a function computes.

**Along a way.** A join on a key by which records find their owner has the owner in its key too, written or not. Key 5
may be owned by p and by 10,000 others. On the key alone p's 20 lineitems would meet 10,000 orders; with the owner
each pair of a lineitem and p meets the orders of p, which is what the tables without owners would give, for each owner.
A key with the owner is local in the owner, so what a person moves is what their own records make.

An owner who is a person in one period is named by person and time. A pair of a row and such an owner has the first
time of the owner's rows of its key in the period (`sources/owned.py`), so it meets these: where a key is in one row,
that row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from wpinq.core.functions.bind import bind
from wpinq.core.functions.function import Function
from wpinq.core.operators.resolution import common_resolution
from wpinq.core.plan.forms import Linear
from wpinq.core.plan.node import Node, Record, Source, read_by, steps
from wpinq.core.plan.person_bound import Constant, changes
from wpinq.core.records.batch import END, WEIGHT, Batch
from wpinq.core.records.schema import Column, Schema
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet


def owners_met(
    left: Node, right: Node, left_keys: Sequence[str], right_keys: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """The columns of owners, here and there, that come to a key by which records are led to their owner.

    Args:
        left, right: What is joined.
        left_keys, right_keys: Columns that are equal.

    Returns:
        One pair, and one of times where owners are in periods and both sides hold the time; none where the key is along
        no way, or has the owners, or a side holds no owner of all its records.
    """
    walks = [steps(side) for side in (left, right)]  # of which the last step is the side itself
    if not any(data.unit.way for walk in walks for data in read_by(walk)):
        return ()
    for left_key, right_key in zip(left_keys, right_keys, strict=True):
        ours, theirs = _origin(left, left_key), _origin(right, right_key)
        if ours is None or theirs is None or ours[0].book != theirs[0].book or _end(*ours) != _end(*theirs):
            continue
        if _led(*ours) or _led(*theirs):
            book = ours[0].book
            named = [tuple(held(side[-1], book) for side in walks) for held in (_owner, _time)]
            if None in named[0]:
                return ()
            pairs = [(str(here), str(there)) for here, there in named if here is not None and there is not None]
            return tuple(pair for pair in pairs if pair not in set(zip(left_keys, right_keys, strict=True)))
    return ()


def _origin(node: Node, name: str) -> tuple[DataSet, str] | None:
    """The table and column of whose value a column is; None where it is computed."""
    while not isinstance(node, Source):
        origin = node.carried(name)
        if origin is None:
            return None
        node, name = node.inputs[origin[0]], origin[1]
    return node.data, name


def _led(data: DataSet, name: str) -> bool:
    """Whether a table is led to its owner by this column."""
    return bool(data.unit.way) and data.unit.way[0][0] == name


def _end(data: DataSet, name: str) -> tuple[str, str]:
    """The table and column that a key is of: where it leads, or itself."""
    return data.unit.way[0][1:] if _led(data, name) else (data.name, name)


def _owner(node: Node, book: str) -> str | None:
    """The column that holds the person in all records that a person moves."""
    change = changes(steps(node)).get(book)
    fixed = {} if change is None else change.fixed
    held = [name for name in node.schema.names if name in fixed and not isinstance(fixed[name], Constant)]
    return held[0] if held else None


def _time(node: Node, book: str) -> str | None:
    """The column that holds the time by which a person is in a period."""
    for name in node.schema.names:
        origin = _origin(node, name)
        if origin is not None and origin[0].book == book and origin[1] in origin[0].unit.columns[1:]:
            return name
    return None


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
    if isinstance(key, Sequence) and all(isinstance(item, str) for item in key):
        names = tuple(key)
        for entry in names:
            if entry not in node.schema:
                raise PlanError(f"{call}: no column {entry!r}; there are {node.schema.listed}.")
        if len(set(names)) < len(names):
            raise PlanError(f"{call}: a column stands twice in the key; name it once.")
        return node, names
    function = bind(key, node.schema, call)
    if function.projection is not None and len(set(function.projection)) == len(function.projection):
        return node, function.projection
    every = node.schema.names
    made = Extend(node, function, name, every, every)
    return made, made.schema.names[len(every) :]


def both_keyed(
    nodes: Sequence[Node], on: object, left: object, right: object, call: str
) -> tuple[tuple[Node, Node], tuple[tuple[str, ...], tuple[str, ...]]]:
    """Two steps at one resolution, each with its key as columns, and the names of these; owners come to ways.

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
    (first, second), _ = common_resolution(nodes)
    try:
        first, left_keys = keyed(first, ours, f"{call}({'on' if left is None else 'left'}=...)")
        second, right_keys = keyed(second, theirs, f"{call}({'on' if right is None else 'right'}=...)")
    except PlanError as error:
        hint = " Keys of different names are given as left= and right=." if on is not None else ""
        raise PlanError(f"{error}{hint}") from None
    if len(left_keys) != len(right_keys):
        raise PlanError(f"{call}: the keys ({', '.join(left_keys)}) and ({', '.join(right_keys)}) differ in number.")
    for left_owner, right_owner in owners_met(first, second, left_keys, right_keys):
        left_keys, right_keys = (*left_keys, left_owner), (*right_keys, right_owner)
    return (first, second), (left_keys, right_keys)


@dataclass(frozen=True, eq=False)
class Extend(Linear):
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
    keeps_sign = True

    @cached_property
    def schema(self) -> Schema:
        columns = list(self.source.schema.expanded(self.function.reads).select(self.kept))
        for number, column in enumerate(self.function.output, 1):
            several = "" if len(self.function.output) == 1 else f"_{number}"
            name = column.name if self.name is None else self.name + several
            columns.append(Column(Schema(tuple(columns)).fresh(name), column.kind))
        return Schema(tuple(columns))

    @property
    def title(self) -> str:
        return f"{'reduce' if self.name is None else 'with ' + self.name}({self.function.note})"

    @property
    def local(self) -> Mapping[str, str]:
        """What it keeps of a record it passes on as it is."""
        return {name: name for name in self.kept}

    @property
    def reads(self) -> tuple[str, ...]:
        return self.function.reads

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (needed & frozenset(self.kept) | frozenset(self.reads),)

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        values = dict(zip(self.source.schema.names, record, strict=True))
        made = self.function.call(tuple(values[name] for name in self.given))
        return [((*(values[name] for name in self.kept), *made), Fraction(1))]

    def apply(self, batch: Batch) -> Batch:
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
        unchanged = batch.schema.select(kept).columns if kept else ()
        return Batch(frame, Schema((*unchanged, *new)))
