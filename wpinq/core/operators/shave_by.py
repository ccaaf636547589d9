"""Shave by a function of the record, which says how thick its slices are, in whole multiples of a step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from wpinq.core.functions.binding import parameter_names
from wpinq.core.functions.function import Dropped
from wpinq.core.functions.plain import COUNT, PLACE, Many
from wpinq.core.functions.traced.bind import bind_as
from wpinq.core.operators.resolution import fit_resolution
from wpinq.core.operators.slices import (
    THICKEST,
    Cuts,
    HeldWeights,
    Slices,
    Slicing,
    checked_name,
    moved_slices,
    refuse_thin,
    sliced,
)
from wpinq.core.plan.node import Builder, C, Record, Weighted
from wpinq.core.plan.shapes import Keyed, Shape
from wpinq.core.records.batch import Batch
from wpinq.core.records.kinds import Misfit
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.records.weights import CAPACITY
from wpinq.core.state.table import Weights
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact, positive

UNITS = "units"
LONGEST = 1000
"""Thicknesses of one record that count: the last of them repeats, so a generator that never ends does end."""


ROW = "\0row"


def shaved_by(self: Builder[C], function: object, name: str, step: Amount) -> C:
    """See `shave`."""
    checked_name(name)
    thinnest = positive(step, "shave(step=...)")
    refuse_thin(self, thinnest, "step")
    node = fit_resolution(self._node, thinnest.denominator)
    most = math.ceil(CAPACITY * node.gain / thinnest)
    widths = thicknesses(function, node.schema, "shave", thinnest, most, number=name)
    if thinnest * node.resolution >= THICKEST:
        raise PlanError("shave(step=...): no weight is as thick as these slices; make it thinner.")
    return self._then(ShaveBy(node, widths, name))


@dataclass(frozen=True, eq=False)
class Thicknesses(Many):
    """A Python function that gives a thickness, or several, of which the last repeats.

    Attributes:
        step: Of this each thickness is a multiple, rounded down, and once at least.
        most: So many steps no record weighs; later thicknesses do not matter.
        numbered: The function where it is called with the number of each slice: it reads that as a column.
        number: The name of that column.
    """

    step: Fraction = Fraction(1)
    most: int = 1
    numbered: Many | None = None
    number: str = ""

    @property
    def covered(self) -> tuple[object, ...] | None:
        """The function and its step."""
        form = super().covered
        return None if form is None else (*form, self.step, *self._code)

    @property
    def portable(self) -> tuple[object, ...] | None:
        """The function and its step, in whatever version of Python."""
        form = super().portable
        return None if form is None else (*form, self.step, *self._code)

    @property
    def _code(self) -> tuple[Any, ...]:
        """What a fingerprint must hold of a function that is called with the number of a slice."""
        return () if self.numbered is None else (self.number, self.numbered.binding.code())

    def units(self, record: tuple[Any, ...]) -> list[int]:
        """The thicknesses of one record, in steps.

        Raises:
            Dropped: The function raised, or gave what is no number above zero.
        """
        return [units for (units,) in self.call_many(record)]

    def _listed(self, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        returned = self._result(values) if self.numbered is None else self._by_number(self.numbered, values)
        several = isinstance(returned, (Sequence, Iterator)) and not isinstance(returned, str)
        result, total = [], 0
        for item in islice(returned if several else (returned,), LONGEST):
            thickness = exact(item, "shave")
            if thickness <= 0:
                raise Misfit
            result.append((min(max(int(thickness / self.step), 1), self.most),))
            total += result[-1][0]
            if total >= self.most:
                break
        if not result:
            raise Misfit
        return result

    def _by_number(self, function: Many, values: tuple[Any, ...]) -> Iterator[Any]:
        """What the function gives for each number of a slice."""
        place = function.reads.index(self.number)
        for number in range(1, LONGEST + 1):
            yield function._result((*values[:place], number, *values[place:]))


def thicknesses(
    function: object, schema: Schema, call: str, step: Fraction, most: int, *, number: str
) -> Thicknesses:  # fmt: skip
    """Bind such a function to columns, and to the number of a slice where a parameter has its name and no column has.

    Raises:
        PlanError: It is an expression, or the parameters do not fit the columns.
    """
    wide = schema if number in schema else Schema((*schema.columns, Column(number, Kind.INT)))
    made = bind_as(Thicknesses, function, wide if number in parameter_names(function) else schema, call, {UNITS: int})
    if number in schema or number not in made.reads:
        return replace(made, schema=schema, step=step, most=most)
    reads = tuple(name for name in made.reads if name != number)
    return replace(made, schema=schema, reads=reads, step=step, most=most, numbered=made, number=number)


@dataclass(frozen=True, eq=False)
class ShaveBy(Slicing):
    """Plan node of `shave` with a function: what it gives is counted in steps."""

    function: Thicknesses
    name: str
    apart = True
    keeps_sign = True

    @cached_property
    def schema(self) -> Schema:
        """The record and the number of its slice."""
        before = self.source.schema.expanded()
        return Schema((*before.columns, Column(before.fresh(self.name), Kind.INT, ranged=True)))

    @cached_property
    def resolution(self) -> int:
        """Fine enough for a step."""
        return math.lcm(self.source.resolution, self.function.step.denominator)

    @property
    def title(self) -> str:
        return f"shave(in steps of {decimal(self.function.step)}; {self.function.note})"

    def lower(self, needed: frozenset[str]) -> Shape:
        """A record meets only itself, so the record is its own key."""
        names = self.source.schema.names
        keep = tuple(name for name in names if name in needed or name in self.function.reads) or names[:1]
        made = partial(SlicesBy, self.schema, keep, self.function, (self.source.held, self.held))
        return Keyed((names,), made, alone=True)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Slice by slice."""
        out: dict[Record, Fraction] = {}
        for record, weight in inputs[0].items():
            try:
                widths = [self.function.step * units for units in self.function.units(record)]
            except Dropped:
                continue
            out |= sliced(record, weight, widths)
        return out


class SlicesBy(Slices):
    """The same, where a function of the record says how thick its slices are."""

    def __init__(
        self, schema: Schema, keep: tuple[str, ...], function: Thicknesses, held: HeldWeights, key: bytes
    ) -> None:
        super().__init__(schema, keep, (), held, key)
        self._function, self._factor = function, int(function.step * held[1].resolution)

    def _moved(self, records: pl.DataFrame, before: Weights, after: Weights) -> Batch:
        """A record for which the function has no value has no slices."""
        made = self._function.apply_many(records.with_row_index(ROW), [ROW]).sort(ROW, PLACE)
        rows = made[ROW].unique(maintain_order=True)
        numbered = pl.DataFrame({ROW: rows}).with_row_index("\0new")
        made = made.join(numbered, on=ROW, maintain_order="left").drop(ROW).rename({"\0new": ROW})
        cuts = cuts_of(made, self._factor, self._held[1].array)
        places = rows.to_numpy()
        return self._ranged(records[rows], moved_slices(before[places], after[places], cuts))


def cuts_of(made: pl.DataFrame, factor: int, kind: np.dtype[np.int64] | np.dtype[np.object_]) -> Cuts:
    """Those that a function gave: its outputs for each row, in order."""
    row, position, count, units = (made[name].to_numpy() for name in (ROW, PLACE, COUNT, UNITS))
    before = np.cumsum(units) - units
    begins = position == 0
    offset = before - np.repeat(before[begins], count[begins])
    fine, ends = factor * units.astype(kind), position == count - 1
    row, offset = row.astype(np.int64), factor * offset.astype(kind)
    single = ~ends
    return Cuts(
        row[single], position[single] + 1, offset[single], fine[single], count[ends].astype(np.int64), offset[ends],
        fine[ends],
    )  # fmt: skip
