"""Union and intersection: the larger and the smaller of two weights.

Both are one step, `Extreme`; both of one pair together cost as much as one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256

import polars as pl

from wpinq.core.operators.resolution import Align, aligned
from wpinq.core.plan.forms import Binary
from wpinq.core.plan.node import Builder, C, Record, Weighted, fingerprints
from wpinq.core.plan.shapes import Keyed, Shape
from wpinq.core.records.schema import Schema
from wpinq.core.state.pointwise import Pointwise, PointwiseRule
from wpinq.core.state.table import Ids


def union(self: Builder[C], other: Builder[C]) -> C:
    """Take the larger weight of each record.

    Weights:    out[x] = max(self[x], other[x]); a record that is absent weighs 0
    Stability:  1 for each input, and the union and the intersection of one pair move by no more together: when one of
                two numbers moves by d, their maximum or their minimum moves by d in all, because max + min is their
                sum and both are monotone. So measurements of the two cost the larger of them, at one epoch of a live
                source: at another it is another pair, and the two add up.
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("Union"); wPINQ in Rust (`min_max`).

    Args:
        other: A collection with as many columns; they are matched by position and named as in this one.

    Raises:
        PlanError: The numbers of columns differ.

    >>> from wpinq.testing import evaluate, protected
    >>> pages = protected(page="text")
    >>> evaluate(pages.union(pages.filter(lambda page: page == "a")), [("a",), ("b",), ("b",)])
    {('a',): 1, ('b',): 2}
    """
    return self._then(Extreme(*aligned(self, other, "union"), larger=True))


@dataclass(frozen=True, eq=False)
class Extreme(Binary):
    """Plan node of `union` and `intersect`."""

    larger: bool
    apart = True
    keeps_sign = True

    @cached_property
    def schema(self) -> Schema:
        return self.left.schema.expanded()

    @property
    def images(self) -> int:
        """One, of whichever input."""
        return 1

    @property
    def monotone(self) -> bool:
        """The larger, or the smaller, of two weights that do not fall does not fall."""
        return True

    @property
    def title(self) -> str:
        return "union" if self.larger else "intersect"

    @property
    def part(self) -> tuple[str, str] | None:
        """The pair, in either order, and which of the two it is; a pair without fingerprints costs the sum.

        The pair is known by what it was before its sides were aligned, since `Align` is injective on records: names
        are no part of a record, and the canonical bytes of equal values, and of these only, are equal. So the records
        that meet are the same whichever side comes first, and a record that moves by d moves the larger and the smaller
        of its two weights by d together.
        """
        pair = [source_node.source if isinstance(source_node, Align) else source_node for source_node in self.inputs]
        digests = fingerprints(*pair)
        known = sorted(digest for digest in map(digests.get, pair) if digest is not None)
        return (f"pair {sha256(b''.join(known)).hexdigest()}", self.title) if len(known) == 2 else None

    def lower(self, needed: frozenset[str]) -> Shape:
        """A record meets only itself."""
        names = self.schema.names
        points = PointwiseRule(self.schema, self.schema.kept(needed), 2, self.held, self.held, self._choose)
        return Keyed((names, names), lambda key: Pointwise(points, key))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        choose = max if self.larger else min
        zero = Fraction(0)
        return {x: choose(inputs[0].get(x, zero), inputs[1].get(x, zero)) for x in {**inputs[0], **inputs[1]}}

    def _choose(self, weights: Sequence[pl.Series], ids: Callable[[], Ids]) -> pl.Series:
        choose = pl.max_horizontal if self.larger else pl.min_horizontal
        return pl.select(choose(*weights)).to_series()


def intersect(self: Builder[C], other: Builder[C]) -> C:
    """Take the smaller weight of each record.

    Weights:    out[x] = min(self[x], other[x]); a record that is absent weighs 0
    Stability:  1 for each input; measured together with the union of the same pair it costs the larger of the two, for
                the reason that `union` gives.
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("Intersect").

    Args:
        other: A collection with as many columns; they are matched by position and named as in this one.

    Raises:
        PlanError: The numbers of columns differ.

    >>> from wpinq.testing import evaluate, protected
    >>> pages = protected(page="text")
    >>> evaluate(pages.intersect(pages.filter(lambda page: page == "a")), [("a",), ("a",), ("b",)])
    {('a',): 2}
    """
    return self._then(Extreme(*aligned(self, other, "intersect"), larger=False))
