"""Weight: take each record's weight from a column of the source, bounded."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import polars as pl

from wpinq.core.plan.forms import Linear
from wpinq.core.plan.node import Node, Record
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, positive

MAX_WEIGHT_STEPS = 2**53
"""Steps of the largest weight: a double tells them apart."""
WHOLE = 2.0**52
"""From here on a double is a whole number, and a half more would round it."""


def weigh(node: Node, column: str, max_weight: Amount = 1, step: Amount | None = None) -> Node:
    """Weigh records by a column, clamped and rounded, and drop the column.

    Weights:    out[x] = sum over the records (x, w) of round(clamp(w, -max_weight, max_weight)), to multiples of step
    Stability:  max_weight; a record weighs at most that, whatever its column holds (privacy rule 19).

    Args:
        node: The source.
        column: A column of integers or numbers. What is null or no number weighs nothing.
        max_weight: The largest weight of a record, either way, 1 or more; it multiplies the noise.
        step: Weights are rounded to multiples of this, halves up: 1/n for a whole n. By default 1 for integers and
            1/1000 for numbers.

    Raises:
        PlanError: The column is not numeric, or it is the only one, or an amount is out of bounds.
        ExactnessError: An amount is not a finite number above zero.
    """
    return Weigh(node, column, *weights(node.schema, column, max_weight, step))


def weights(schema: Schema, column: str, max_weight: Amount = 1, step: Amount | None = None) -> tuple[Fraction, int]:
    """The largest weight of a record, and how many steps a weight of 1 has; see `weigh`.

    Raises:
        PlanError, ExactnessError: The columns cannot be weighed so.
    """
    if column not in schema:
        raise PlanError(f"protect(weight=...): no column {column!r}; there are {schema.listed}.")
    kind = schema[column].kind
    if kind not in (Kind.INT, Kind.FLOAT):
        raise PlanError(f"protect(weight={column!r}): the column is {kind.value}; declare it, for example "
                        f"columns={{{column!r}: float}}.")  # fmt: skip
    if len(schema) == 1:
        raise PlanError(f"protect(weight={column!r}): a record needs a column besides its weight.")
    most = positive(max_weight, "protect(max_weight=...)")
    fine = positive(step or (1 if kind is Kind.INT else Fraction(1, 1000)), "weigh(step=...)")
    if most < 1:
        raise PlanError("protect(max_weight=...): it is below 1; multiply the column, so that weights reach 1.")
    if fine.numerator != 1:
        raise PlanError(f"weigh(step=...): {decimal(fine)} is not 1/n for a whole n.")
    if math.floor(most) * fine.denominator >= MAX_WEIGHT_STEPS:
        raise PlanError(f"protect(max_weight=...): more than 2^53 steps of {decimal(fine)}; scale the column down.")
    return most, fine.denominator


@dataclass(frozen=True, eq=False)
class Weigh(Linear):
    """Plan node of `protect(weight=...)`."""

    column: str
    most: Fraction
    fine: int

    @cached_property
    def schema(self) -> Schema:
        """All columns but the weight."""
        return self.source.schema.select(name for name in self.source.schema.names if name != self.column)

    @cached_property
    def resolution(self) -> int:
        """Of the steps of a weight."""
        return self.fine

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """The largest weight of one record."""
        return (self.most,)

    @property
    def images(self) -> int:
        """One."""
        return 1

    @property
    def title(self) -> str:
        return f"weight({self.column}, at most {decimal(self.most)})"

    @property
    def bias(self) -> str:
        """What is clamped."""
        return f"{self.column} is clamped to -{decimal(self.most)}..{decimal(self.most)}"

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What is needed later, and the weight."""
        return ((needed or frozenset(self.schema.names[:1])) | {self.column},)

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        index = self.source.schema.names.index(self.column)
        units = self._units(record[index])
        return [(record[:index] + record[index + 1 :], Fraction(units, self.fine))]

    def _units(self, value: object) -> int:
        if not isinstance(value, (int, float)) or math.isnan(value):
            return 0
        number = float(value)
        bound = float(math.ceil(self.most))
        top = math.floor(self.most * self.fine)
        steps = min(max(number, -bound), bound) * self.fine
        return min(max(int(steps) if abs(steps) >= WHOLE else math.floor(steps + 0.5), -top), top)

    def apply(self, batch: Batch) -> Batch:
        bound, top = float(math.ceil(self.most)), math.floor(self.most * self.fine)
        number = pl.col(self.column).cast(pl.Float64).fill_nan(0.0).fill_null(0.0).clip(-bound, bound)
        steps = number * self.fine
        whole = pl.when(steps.abs() >= WHOLE).then(steps).otherwise((steps + 0.5).floor())
        units = whole.cast(pl.Int64).clip(-top, top)
        weight = pl.col(WEIGHT).cast(self.held.column) * units
        names = [name for name in batch.schema.names if name != self.column]
        frame = batch.frame.with_columns(weight.alias(WEIGHT)).filter(pl.col(WEIGHT) != 0)
        return Batch(frame, batch.schema).select(names)
