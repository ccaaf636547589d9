"""Shave: cut each record's weight into numbered slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from wpinq.core.operators.resolution import fit_resolution
from wpinq.core.operators.slices import (
    THICKEST,
    RangedSlices,
    Slices,
    Slicing,
    checked_name,
    refuse_thin,
    sliced,
)
from wpinq.core.plan.node import Builder, C, Record, Weighted
from wpinq.core.plan.shapes import Keyed, Shape
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.state.histogram import is_steps
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, positive


def shave(
    self: Builder[C], thickness: Amount | Sequence[Amount] | Callable[..., Any] = 1, name: str = "index", *,
    step: Amount | None = None,
) -> C:  # fmt: skip
    """Cut each record into slices `(record, 1), (record, 2), ...` of bounded weight.

    Weights:    out[x, i] = sign(in[x]) * clamp(|in[x]| - t_1 - ... - t_(i-1), 0, t_i), numbered from 1 as the post
                does; t_i is t_i(x) where a function gives it
    Stability:  1; each slice is a monotone piece of in[x] and the pieces sum to it, so moving in[x] by d moves the
                slices of x by d in total (privacy rule 20). That holds for each record by itself, so also where the
                thicknesses are a function of the record; they are none of its weight or of other records.
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("Shave"); McSherry, Things that count, 2018.

    Args:
        thickness: Thickness of every slice, in weight, positive and exact; or a sequence, whose last one repeats; or a
            function of a record, as in `map`, that returns either, or yields thicknesses: a thousand of them count at
            the most. A parameter that has the name of the new column is the number of the slice (the paper's f(x, i)).
            A record on which it raises, or gives no number above zero, is dropped.
        name: Name of the new column.
        step: What a function gives is rounded down to a multiple of this, which is the thinnest slice; 1 by default.

    Raises:
        ExactnessError: A thickness is not positive.
        PlanError: Slices are thicker than weights can be, or so thin that one record makes too many of them, or it is
            no name; the function's parameters do not fit the columns, or there is a step and no function.

    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(protected(page="text").shave(), [("a",), ("a",)])
    {('a', 1): 1, ('a', 2): 1}
    >>> halves = protected(page="text").shave(lambda page: (len(page), 0.5), step=0.5)
    >>> evaluate(halves, [("ab",)] * 3)
    {('ab', 1): 2, ('ab', 2): Fraction(1, 2), ('ab', 3): Fraction(1, 2)}
    >>> evaluate(protected(page="text").shave(lambda page, index: index), [("a",)] * 4)
    {('a', 1): 1, ('a', 2): 2, ('a', 3): 1}
    """
    if callable(thickness):
        from wpinq.core.operators.shave_by import shaved_by  # few thicknesses are functions

        return shaved_by(self, thickness, name, 1 if step is None else step)
    if step is not None:
        raise PlanError("shave(step=...): is of the thicknesses that a function gives; leave it out.")
    many = thickness if isinstance(thickness, Sequence) and not isinstance(thickness, str) else [thickness]
    slices = tuple(positive(item, "shave(thickness=...)") for item in many)
    checked_name(name)
    if not slices:
        raise PlanError("shave(thickness=...): takes a thickness, or a sequence of some; there is none.")
    finest = math.lcm(*(entry.denominator for entry in slices))
    refuse_thin(self, slices[-1], "thickness")  # the one that repeats
    node = Shave(fit_resolution(self._node, finest), slices, name)
    if sum(slices) * node.resolution >= (THICKEST**2 if node.held.wide else THICKEST):
        raise PlanError("shave(thickness=...): no weight is as thick as these slices; make them thinner.")
    return self._then(node)


@dataclass(frozen=True, eq=False)
class Shave(Slicing):
    """Plan node of `shave`."""

    thickness: tuple[Fraction, ...]
    name: str
    apart = True
    keeps_sign = True

    @cached_property
    def schema(self) -> Schema:
        """The record and the number of its slice."""
        before = self.source.schema if is_steps(self.source.schema) else self.source.schema.expanded()
        return Schema((*before.columns, Column(before.fresh(self.name), Kind.INT, ranged=True)))

    @cached_property
    def resolution(self) -> int:
        """Fine enough for every thickness."""
        return math.lcm(self.source.resolution, *(thickness.denominator for thickness in self.thickness))

    @property
    def moves_at_most(self) -> Mapping[frozenset[str], Fraction]:
        """A slice by its thickness, and twice as much where it can be negative."""
        return {frozenset(self.schema.names): max(self.thickness) * (1 if self.source.nonnegative else 2)}

    @property
    def title(self) -> str:
        shown = ", ".join(decimal(thickness) for thickness in self.thickness)
        return f"shave({'' if self.thickness == (Fraction(1),) else shown})"

    def lower(self, needed: frozenset[str]) -> Shape:
        """A record meets only itself, so the record is its own key."""
        units = tuple(int(thickness * self.resolution) for thickness in self.thickness)
        held = (self.source.held, self.held)
        if is_steps(self.source.schema):
            return Keyed(((),), lambda key: RangedSlices(self.schema, needed, units, held))
        keep = tuple(name for name in self.source.schema.names if name in needed)
        made = partial(Slices, self.schema, keep, units, held)
        return Keyed((self.source.schema.names,), made, hashed=not keep)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Slice by slice."""
        out: dict[Record, Fraction] = {}
        for record, weight in inputs[0].items():
            out |= sliced(record, weight, self.thickness)
        return out
