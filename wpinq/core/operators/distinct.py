"""Distinct: every record at most once, or at most so often."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import polars as pl

from wpinq.core.operators.resolution import fit_resolution
from wpinq.core.plan.forms import Unary
from wpinq.core.plan.node import Builder, C, Node, Record, Weighted
from wpinq.core.plan.shapes import Keyed, Shape
from wpinq.core.records.schema import Schema
from wpinq.core.records.weights import CAPACITY
from wpinq.core.state.pointwise import Pointwise, PointwiseRule
from wpinq.core.state.table import Ids
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, positive


def distinct(self: Builder[C], at_most: Amount = 1) -> C:
    """Bound every record's weight by 1, or by another number.

    Weights:    out[x] = clamp(in[x], 0, at_most)
    Stability:  1; clamping a number never moves it further than the number moved (privacy rule 20).
    Source:     McSherry, PINQ, SIGMOD 2009 ("Distinct", and "Distinct(k)"), for weights.

    Args:
        at_most: The largest weight of a record, above zero and exact, and below what any record can weigh. What bounds
            the weight of a key rather than of a record is `limit`.

    Raises:
        ExactnessError: `at_most` is no number above zero.
        PlanError: It is so large that it bounds nothing, or so fine that weights cannot be held.

    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(protected(page="text").distinct(), [("a",), ("a",), ("b",)])
    {('a',): 1, ('b',): 1}
    >>> evaluate(protected(page="text").distinct(2), [("a",), ("a",), ("a",), ("b",)])
    {('a',): 2, ('b',): 1}
    """
    most = positive(at_most, "distinct(at_most=...)")
    if most >= CAPACITY * self._node.gain:
        raise PlanError(f"distinct(at_most=...): no record weighs more than {CAPACITY * self._node.gain}; give less.")
    node = self._node if most.denominator == 1 else fit_resolution(self._node, most.denominator)
    return self._then(Distinct(node, most))


@dataclass(frozen=True, eq=False)
class Distinct(Unary):
    """Plan node of `distinct`."""

    at_most: Fraction = Fraction(1)
    apart = True
    keeps_sign = True

    @cached_property
    def schema(self) -> Schema:
        return self.source.schema.expanded()

    @cached_property
    def resolution(self) -> int:
        """Fine enough for the bound."""
        return math.lcm(self.source.resolution, self.at_most.denominator)

    @property
    def images(self) -> int:
        """One."""
        return 1

    @property
    def monotone(self) -> bool:
        """The smaller of a weight and the bound, but not below 0."""
        return True

    @property
    def title(self) -> str:
        return "distinct" if self.at_most == 1 else f"distinct({decimal(self.at_most)})"

    @property
    def meaning(self) -> Mapping[str, object]:
        """The bound, unless it is 1: so a question of before there was another one is the same question."""
        return super().meaning if self.at_most != 1 else {"source": self.source}

    def bounds(self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]) -> Fraction | None:
        """Records that agree in all columns are one, which weighs the bound at the most."""
        return self.at_most if columns.issuperset(self.schema.names) else None

    @property
    def moves_at_most(self) -> Mapping[frozenset[str], Fraction]:
        """A record from 0 to the bound."""
        return {frozenset(self.schema.names): self.at_most}

    def lower(self, needed: frozenset[str]) -> Shape:
        """A record meets only itself."""
        points = PointwiseRule(self.schema, self.schema.kept(needed), 1, self.source.held, self.held, self._clamp)
        return Keyed((self.schema.names,), lambda key: Pointwise(points, key))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        return {record: min(max(weight, Fraction(0)), self.at_most) for record, weight in inputs[0].items()}

    def _clamp(self, weights: Sequence[pl.Series], ids: Callable[[], Ids]) -> pl.Series:
        finer = pl.Series([self.resolution // self.source.resolution], dtype=self.held.column)
        return (weights[0].cast(self.held.column) * finer).clip(0, int(self.at_most * self.resolution))
