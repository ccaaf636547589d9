"""The unit key: the columns whose values name the privacy unit of a record, a person or a person in one period.

`ByUnit` is the step of all contribution bounds. `Whole` keeps all records of each person, where nothing bounds them
yet.

`anew` computes a bound again for each unit whose records came or were taken back. A sample forgets the records that it
pushed out, and a share does not know which of its records have a negative weight. So where records can be taken back,
all records of each person are held, and those of people who changed go through the step again from the beginning.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar

import polars as pl

from wpinq.core.operators.periods import Periods, periods
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.forms import Unary
from wpinq.core.plan.node import Node, Record, Source, Weighted
from wpinq.core.plan.shapes import Keyed, Shape, Stateless
from wpinq.core.plan.unit import Unit
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.records.values import encode
from wpinq.core.records.weights import WeightType
from wpinq.core.state.bykey import ByKey, Port
from wpinq.core.state.states import State
from wpinq.core.state.table import Ids
from wpinq.errors import InternalError, PlanError

NUMBER = "\0period"


@dataclass(frozen=True)
class UnitKey:
    """Names the privacy unit of each record. Records without a time are in a period of their own.

    Attributes:
        unit: A unit that is a person.
        schema: The columns of the source.
    """

    unit: Unit
    schema: Schema

    def check(self, call: str) -> None:
        """Refuse a unit that does not fit the columns.

        Args:
            call: Name of the call, for messages.

        Raises:
            PlanError: It names a column that is not there, or whose numbers are rounded, so that two people may be one;
                or its periods do not fit the column of the time.
        """
        for name in (*self.unit.columns, *(self.unit.per[:1] if self.unit.per else ())):
            if name not in self.schema:
                raise PlanError(f"{call}(unit=...): no column {name!r}; there are {self.schema.listed}.")
        if self.schema[self.user].rounded:
            raise PlanError(
                f"{call}(unit=...): the column {self.user!r} is read as rounded numbers, so two people may be one; "
                f"declare it, columns={{{self.user!r}: 'text'}}, or 'int' where it has at most 18 digits."
            )
        _ = self.span

    @property
    def user(self) -> str:
        """The column that names the person."""
        return str(self.unit.column)

    @cached_property
    def span(self) -> Periods | None:
        """The periods of which the unit is in one; None where the unit is the whole person."""
        if self.unit.period is None:
            return None
        length, at = self.unit.period
        return periods(length, self.schema[at], "users(period=...)", self.unit.zone)

    def ids(self, frame: pl.DataFrame, key: bytes) -> Ids:
        """The identity of the unit of each row."""
        if self.span is None:
            return identities(frame, self.schema.select([self.user]), key)
        numbered = frame.select(self.user, self.span.numbers(self.unit.columns[1]).alias(NUMBER))
        return identities(numbered, Schema((self.schema[self.user], Column(NUMBER, Kind.INT))), key)

    def of(self, record: Record) -> bytes:
        """The unit of a record, for definitions."""
        values = dict(zip(self.schema.names, record, strict=True))
        if self.span is None:
            return encode(values[self.user])
        time = values[self.unit.columns[1]]
        return encode((values[self.user], None if time is None else self.span.number(time)))


def origin(node: Node) -> Source:
    """The one source that a chain of steps reads."""
    while not isinstance(node, Source):
        (node,) = node.inputs
    return node


@dataclass(frozen=True, eq=False)
class ByUnit(Unary):
    """A step in which the records of one unit meet, over a source or what is done to each record before.

    A record that weighs less than nothing, because it was taken back and never came, is not there for it.
    """

    nonnegative = True
    bounding: ClassVar[bool] = False
    """Whether its output is the records of the units, bounded."""

    @property
    def data(self) -> DataSet:
        """The data set that the records are of."""
        return origin(self).data

    @property
    def bounds_units(self) -> DataSet | None:
        return self.data if self.bounding else None

    def carried(self, name: str) -> tuple[int, str] | None:
        return (0, name) if self.bounding else None

    @property
    def unit_key(self) -> UnitKey:
        """The unit key; records of one unit are bounded together."""
        return UnitKey(self.data.unit, self.source.schema)

    @property
    def most(self) -> Fraction:
        """The total weight of one unit; 1 where nothing bounds it, and what one moves is known by other means."""
        return Fraction(1) if self.data.unit.bound is None else self.data.unit.bound

    def lower(self, needed: frozenset[str]) -> Shape:
        return Keyed(((self.unit_key.user,),), partial(self.state, self.schema.kept(needed)))

    def bounds(self, columns: frozenset[str], of: object) -> Fraction | None:
        """What the unit lets one person bring; of a person in one period, with one time.

        Records of one person at one time are in one period; nothing bounds what is in all periods together.
        """
        unit = self.data.unit
        if unit.bound is None or not columns.issuperset(unit.columns):
            return None
        return min(unit.bound, Fraction(unit.per[1])) if unit.per and unit.per[0] in columns else unit.bound

    @abstractmethod
    def state(self, keep: tuple[str, ...], key: bytes) -> State:
        """What a shard remembers of the records of each unit, from the key of identities."""


@dataclass(frozen=True, eq=False)
class Whole(ByUnit):
    """Plan node of `protect(unit=users(COLUMN))`: the records of each person, as they are.

    Weights:    out[x] = in[x]
    Stability:  1; but one person moves it by no known amount. A later step may bound what is made of a person
                (`core/plan/person_bound.py`): one person more adds records that hold that person in the column, and
                changes no others. Where the unit is a person in one period, read "person in one period" for "person".
    """

    shown = "people({0.unit_key.user})"
    silent = True
    bounding = True

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What is needed later."""
        return (needed,)

    def lower(self, needed: frozenset[str]) -> Shape:
        names = self.schema.kept(needed)
        return Stateless(lambda batch: batch.select(names))

    def state(self, keep: tuple[str, ...], key: bytes) -> State:
        """No records of a person meet in it."""
        raise InternalError("all records of a person are kept as they come; please report this.")

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """The same records."""
        return dict(inputs[0])


def anew(  # noqa: PLR0917
    make: Callable[[], State], schema: Schema, user: str, keep: Sequence[str], held: WeightType, key: bytes
) -> ByKey:
    """The state of a step over the records of a source that can be taken back.

    Args:
        make: Makes the state of the step for records that only come.
        schema: The columns of the source.
        user: The one that names the person; a person's records in all periods are looked at together.
        keep: The columns that are needed later.
        held: How the weights of the source are held.
        key: The key of identities.
    """

    def compute(sides: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
        """What is left of the records of some whole persons: of those that are there."""
        state = make()
        state.absorb(0, Batch(sides[0].select(*schema.names, WEIGHT).filter(pl.col(WEIGHT) > 0), schema))
        return [state.emit().frame]

    return ByKey([Port(schema, (user,), schema.names, held, held)], compute, schema.select(keep), key)
