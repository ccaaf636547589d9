"""Functions that say how thick the slices of a record are, as `shave` takes: whole numbers of a step, exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any

from wpinq.core.functions.bind import bind_as
from wpinq.core.functions.many import Many
from wpinq.core.records.kinds import Misfit
from wpinq.core.records.schema import Schema
from wpinq.exact import exact

UNITS = "units"
LONGEST = 1000
"""Thicknesses of one record that count: the last of them repeats, so a generator that never ends does end."""


@dataclass(frozen=True, eq=False)
class Thicknesses(Many):
    """A Python function that gives a thickness, or several, of which the last repeats.

    Attributes:
        step: Of this each thickness is a multiple, rounded down, and once at least.
        most: So many steps no record weighs; later thicknesses do not matter.
    """

    step: Fraction = Fraction(1)
    most: int = 1

    @property
    def covered(self) -> tuple[object, ...] | None:
        """The function and its step."""
        form = super().covered
        return None if form is None else (*form, self.step)

    @property
    def portable(self) -> tuple[object, ...] | None:
        """The function and its step, in whatever version of Python."""
        form = super().portable
        return None if form is None else (*form, self.step)

    def units(self, record: tuple[Any, ...]) -> list[int]:
        """The thicknesses of one record, in steps.

        Raises:
            Dropped: The function raised, or gave what is no number above zero.
        """
        return [units for (units,) in self.call_many(record)]

    def _listed(self, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        returned = self._result(values)
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


def thicknesses(function: object, schema: Schema, call: str, step: Fraction, most: int) -> Thicknesses:
    """Bind such a function to columns.

    Raises:
        PlanError: It is an expression, or the parameters do not fit the columns.
    """
    made = bind_as(Thicknesses, function, schema, call, {UNITS: int})
    return replace(made, step=step, most=most)
