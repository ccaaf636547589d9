"""Whole: all records of each person, where nothing bounds them yet."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from wpinq.core.operators.contribution.unit_key import ByUnit
from wpinq.core.plan.node import Record, Weighted
from wpinq.core.plan.shapes import Shape, Stateless
from wpinq.core.state.states import State
from wpinq.errors import InternalError


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
