"""Whose records they are: what tells the units of a source apart, a person or a person in one window of time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from wpinq.errors import PlanError
from wpinq.operators.window import moment, span_of, ticks
from wpinq.plan.node import Record
from wpinq.plan.unit import Unit
from wpinq.records.identity import identities
from wpinq.records.schema import Column, Kind, Schema
from wpinq.records.values import encode
from wpinq.state.table import Ids

NUMBER = "\0window"


@dataclass(frozen=True)
class UnitKey:
    """Tells the units of a source apart. Records without a time are those of one window more.

    Attributes:
        unit: A unit that is a person.
        schema: The columns of the source.
    """

    unit: Unit
    schema: Schema

    def check(self) -> None:
        """Refuse a unit that does not fit the columns.

        Raises:
            PlanError: It names a column that is not there, or its windows do not fit the column of the time.
        """
        for name in (*self.columns, *(self.unit.per[:1] if self.unit.per else ())):
            if name not in self.schema:
                raise PlanError(f"protect(unit=...): no column {name!r}; there are {', '.join(self.schema.names)}.")
        _ = self.span

    @property
    def user(self) -> str:
        """The column that names the person."""
        return str(self.unit.column)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell units apart."""
        return (self.user, *(self.unit.window[1:] if self.unit.window else ()))

    @cached_property
    def span(self) -> int | None:
        """The length of a window, in the units of its column; None where the unit is the whole person."""
        if self.unit.window is None:
            return None
        length, at = self.unit.window
        return span_of(length, self.schema[at], "users(window=...)")

    @property
    def text(self) -> str:
        """What it looks at, for fingerprints."""
        return self.user if self.unit.window is None else repr((*self.columns, self.span))

    def ids(self, frame: pl.DataFrame, key: bytes) -> Ids:
        """The identity of the unit of each row."""
        if self.unit.window is None:
            return identities(frame, self.schema.select([self.user]), key)
        time = self.schema[self.unit.window[1]]
        numbered = frame.select(self.user, (ticks(time) // self.span).alias(NUMBER))
        return identities(numbered, Schema((self.schema[self.user], Column(NUMBER, Kind.INT))), key)

    def of(self, record: Record) -> bytes:
        """The unit of a record, for definitions."""
        values = dict(zip(self.schema.names, record, strict=True))
        if self.unit.window is None or self.span is None:
            return encode(values[self.user])
        time = values[self.unit.window[1]]
        kind = self.schema[self.unit.window[1]].kind
        return encode((values[self.user], None if time is None else moment(time, kind) // self.span))
