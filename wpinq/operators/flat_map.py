"""Flat map: one record in, many records out, which share its weight."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import polars as pl

from wpinq.errors import PlanError
from wpinq.functions import Many, bind_many
from wpinq.functions.many import COUNT, MAX_OUTPUTS, PLACE
from wpinq.operators.align import fit_resolution
from wpinq.plan.builder import Builder, C
from wpinq.plan.forms import Linear
from wpinq.plan.node import Record
from wpinq.records.batch import WEIGHT, Batch
from wpinq.records.schema import Schema

EXACT = 16  # MOST is the least common multiple of 1 to 16


def flat_map(
    self: Builder[C],
    function: object,
    columns: Sequence[str] | Mapping[str, object] | None = None,
    *,
    at_most: int | None = None,
) -> C:
    """Replace each record by several, which share its weight.

    Weights:    output i of n (from 0) gets in[x] * floor((L + i) / n) / L, where L = 720,720, or the least common
                multiple of 1 to `at_most`: in[x] / n exactly where n divides L, as every n up to 16 does; equal outputs
                add up. With more than L outputs of one record some get nothing, and a record with more than 720,720
                is dropped, so that a generator that never ends does end.
    Stability:  1; the n coefficients are not negative and sum to L, because the floors of (L + i) / n for i < n do. The
                map is linear in the weight, so changes in any portions cancel exactly (privacy rule 17).
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("SelectMany").

    Args:
        function: A Python function of one record that returns an iterable of records, or yields them. Parameters are
            matched to columns as in `map`. A set is sorted. A record on which it raises is dropped, uncounted.
        columns: Names, or names with types, of the columns of the outputs; without them an output is one value.
        at_most: How many outputs share a weight exactly, 16 or fewer: keeps the resolution coarse, so that a later join
            is exact. Not a promise about the data.

    Raises:
        PlanError: The parameters do not fit the columns, or `at_most` is no whole number from 1 to 16.

    >>> from wpinq.testing import evaluate, protected
    >>> words = protected(line="text").flat_map(lambda line: line.split(), columns={"word": str}, at_most=2)
    >>> evaluate(words, [("a b",), ("a a",)])
    {('a',): Fraction(3, 2), ('b',): Fraction(1, 2)}
    """
    if at_most is not None and (not isinstance(at_most, int) or isinstance(at_most, bool) or not 1 <= at_most <= EXACT):
        raise PlanError("flat_map(at_most=...): give a whole number from 1 to 16, or leave it out.")
    parts = math.lcm(*range(1, (at_most or EXACT) + 1))
    function = bind_many(function, self._node.schema, "flat_map", columns=columns)
    return self._then(FlatMap(fit_resolution(self._node, parts), function, parts))


@dataclass(frozen=True, eq=False)
class FlatMap(Linear):
    """Plan node of `flat_map`: `parts` is the L of its rule."""

    function: Many
    parts: int
    bias = "the outputs of a record share its weight, so it is no count of outputs"
    keeps_sign = True

    @property
    def schema(self) -> Schema:
        return self.function.output

    @property
    def resolution(self) -> int:
        """Fine enough to share a weight."""
        return self.source.resolution * self.parts

    @property
    def title(self) -> str:
        return f"flat_map({'' if self.parts == MAX_OUTPUTS else f'in parts of 1/{self.parts}; '}{self.function.note})"

    @property
    def reads(self) -> tuple[str, ...]:
        return self.function.reads or self.source.schema.names[:1]

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        made = self.function.call_many(record)
        for place, output in enumerate(made):
            yield output, Fraction((self.parts + place) // len(made), self.parts)

    def apply(self, batch: Batch) -> Batch:
        made = self.function.apply_many(batch.frame, [WEIGHT])
        coefficient = (pl.col(PLACE) + self.parts) // pl.col(COUNT)
        weight = pl.col(WEIGHT).cast(self.held.column) * coefficient
        frame = made.with_columns(weight.alias(WEIGHT)).select(*self.schema.names, WEIGHT)
        return Batch(frame.filter(pl.col(WEIGHT) != 0), self.schema)
