"""Distinct: every record at most once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import polars as pl

from wpinq.plan.builder import Builder, C
from wpinq.plan.forms import Unary
from wpinq.plan.node import Record, Weighted
from wpinq.plan.shapes import Keyed, Shape
from wpinq.records.schema import Schema
from wpinq.state.pointwise import Pointwise, PointwiseRule
from wpinq.state.table import Ids


def distinct(self: Builder[C]) -> C:
    """Bound every record's weight by 1.

    Weights:    out[x] = clamp(in[x], 0, 1)
    Stability:  1; clamping a number never moves it further than the number moved (privacy rule 20).
    Source:     McSherry, PINQ, SIGMOD 2009 ("Distinct"), for weights.

    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(protected(page="text").distinct(), [("a",), ("a",), ("b",)])
    {('a',): 1, ('b',): 1}
    """
    return self._then(Distinct(self._node))


@dataclass(frozen=True, eq=False)
class Distinct(Unary):
    """Plan node of `distinct`."""

    shown = "distinct"
    apart = True
    keeps_sign = True

    @property
    def schema(self) -> Schema:
        return self.source.schema.expanded()

    def lower(self, needed: frozenset[str]) -> Shape:
        """A record meets only itself."""
        points = PointwiseRule(self.schema, self.schema.kept(needed), 1, self.held, self.held, self._clamp)
        return Keyed((self.schema.names,), lambda key: Pointwise(points, key))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        return {record: min(max(weight, Fraction(0)), Fraction(1)) for record, weight in inputs[0].items()}

    def _clamp(self, weights: Sequence[pl.Series], ids: Callable[[], Ids]) -> pl.Series:
        return weights[0].clip(0, self.resolution)
