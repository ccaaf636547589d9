"""Before: what is done to each record by itself before the records of a person are bounded.

A bound keeps a few of a person's records. Those that a question leaves out anyway would take the places of those that
it asks about: so `protect(where=..., derive=...)` drops and computes first, and bounds what is left.

*Why a person is still protected by the unit of the ledger.* Let F be these steps. They look at one record at a time,
give at most one record for it, of the same weight, and leave the columns alone that tell units apart. So for the
records D of all others and those P of one unit, F(D + P) = F(D) + F(P), and F(P) are records of that unit alone. What
is bounded moves by no more than the unit's bound when any records of a unit come or go (`contribution/sample.py`,
`contribution/share.py`), so also when F(P) do: the collection after the bound moves by no more than the unit's bound,
whatever F is. It is as if F(D) were the source.

Several questions with other steps over one ledger keep other samples of the same person. Each sample is a function of
the person's own records and moves by no more than the bound, so each question costs its epsilon and the ledger adds
them up, as it does for other questions (privacy rules 25 and 26). The steps are steps of the plan: they are in its
fingerprint, in `explain` and in the names of its partitions, so parts and windows of two such collections never share a
price.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import FunctionType, NoneType
from typing import get_args, get_type_hints

import polars as pl

from wpinq.arguments import MAPPING, NAME, NOTHING, require
from wpinq.core.functions.bind import bind
from wpinq.core.functions.function import Function
from wpinq.core.operators.contribution.unit_key import UnitKey
from wpinq.core.operators.filter import Filter
from wpinq.core.plan.forms import Linear
from wpinq.core.plan.node import Node, Record
from wpinq.core.plan.unit import Unit
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.kinds import TYPES
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import PlanError

CARRIED = "\0carried "


@dataclass(frozen=True, eq=False)
class Before:
    """Steps between a source and its bound, which fit its columns.

    Attributes:
        derived: Columns that are computed, in this order, each by its name.
        where: What a record must fulfil to be counted, over the columns and what was computed; None where all are.
        schema: The columns that come out.
        said: The steps as they were written, where they were written as text, for people.
    """

    derived: tuple[tuple[str, Function], ...]
    where: Function | None
    schema: Schema
    said: tuple[str, ...]

    def over(self, node: Node) -> Node:
        """The steps over a source."""
        for name, function in self.derived:
            node = Derive(node, name, function)
        return node if self.where is None else Filter(node, self.where)


def before(schema: Schema, unit: Unit, where: object, derive: Mapping[str, object] | None, call: str) -> Before:
    """Bind what `protect` and `live` were given to the columns of a source, and refuse a unit that does not fit them.

    Args:
        schema: The columns of the source.
        unit: Whom the guarantee protects.
        where: A condition, as `filter` takes it, or None.
        derive: For each new column what computes it: an SQL expression, a Python function or a Polars expression; or a
            pair of a function and the type of what it gives.
        call: Name of the call, for messages: `protect`.

    Raises:
        PlanError: They or the unit do not fit the columns, look at other records, or would change whose a record is.
    """
    require(derive, MAPPING | NOTHING, f"{call}(derive=...)")
    derived, texts = [], []
    for name, value in (derive or {}).items():
        require(name, NAME, f"{call}(derive=...)")
        if name in unit.declared:
            raise PlanError(
                f"{call}(derive={{{name!r}: ...}}): the column tells apart whom the guarantee protects, so it "
                "cannot be computed anew; choose another name."
            )
        function, kind = value if isinstance(value, tuple) and len(value) == 2 else (value, _kind(value))
        argument = f"{call}(derive={{{name!r}: ...}})"
        bound = bind(function, schema, argument, columns=None if kind is None else {name: kind})
        if len(bound.output) != 1:
            raise PlanError(f"{argument}: gives {len(bound.output)} values; a column needs one.")
        derived.append((name, bound))
        texts.append(f"{name}: {function if isinstance(function, str) else bound.note}")
        schema = _with(schema, name, bound)
    if unit.column is not None:
        UnitKey(unit, schema).check(call)
    kept = None if where is None else bind(where, schema, f"{call}(where=...)", condition=True)
    if kept is not None:
        texts.append(f"where {where if isinstance(where, str) else kept.note}")
    return Before(tuple(derived), kept, schema, tuple(texts))


def _kind(function: object) -> object:
    """The type that a Python function says it gives, by `-> str` or `-> str | None`; None where it says none."""
    if not isinstance(function, FunctionType):
        return None
    try:
        annotation = get_type_hints(function).get("return")
    except Exception:  # noqa: BLE001  annotations are any code; one that cannot be read says nothing
        return None
    named = [type_ for type_ in get_args(annotation) or (annotation,) if type_ is not NoneType]
    return named[0] if len(named) == 1 and TYPES.get(named[0], Kind.ANY) is not Kind.ANY else None


def _with(schema: Schema, name: str, function: Function) -> Schema:
    """The columns of a source, and one that is computed; it stands where one of its name stood."""
    new = Column(name, function.output.columns[0].kind)
    if name in schema:
        return Schema(tuple(new if column.name == name else column for column in schema))
    return Schema((*schema.columns, new))


@dataclass(frozen=True, eq=False)
class Derive(Linear):
    """Plan node of one column of `protect(derive=...)`: each record with what the function makes of it."""

    name: str
    function: Function
    shown = "derive({0.name}: {0.function.note})"
    keeps_sign = True

    @cached_property
    def schema(self) -> Schema:
        """The columns of its input, and the new one."""
        return _with(self.source.schema, self.name, self.function)

    @property
    def images(self) -> int:
        """One."""
        return 1

    @property
    def reads(self) -> tuple[str, ...]:
        """What the function reads."""
        return self.function.reads

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What is needed later and what the function reads."""
        return ((needed - {self.name}) | frozenset(self.reads),)

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        """The record with its new value."""
        (value,) = self.function.call(record)
        values = {**dict(zip(self.source.schema.names, record, strict=True)), self.name: value}
        return [(tuple(values[name] for name in self.schema.names), Fraction(1))]

    def apply(self, batch: Batch) -> Batch:
        """The function on all rows, with the other columns carried along."""
        carried = [name for name in batch.schema.names if name != self.name]
        frame = batch.frame.with_columns(pl.col(name).alias(CARRIED + name) for name in carried)
        made = self.function.apply(frame, [*(CARRIED + name for name in carried), WEIGHT])
        (computed,) = self.function.output.names
        schema = self.schema.select({*carried, self.name})
        columns = [pl.col(computed if name == self.name else CARRIED + name).alias(name) for name in schema.names]
        return Batch(made.select(*columns, WEIGHT), schema)
