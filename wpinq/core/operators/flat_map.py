"""Flat map: one record in, many records out, which share its weight, or the first few of which have all of it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import polars as pl

from wpinq.arguments import FLAG, WHOLE, require
from wpinq.core.functions.bind import bind_many
from wpinq.core.functions.plain import COUNT, MAX_OUTPUTS, PLACE, Many
from wpinq.core.operators.resolution import fit_resolution
from wpinq.core.plan.forms import Linear
from wpinq.core.plan.node import Builder, C, Record
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Schema
from wpinq.errors import PlanError

EXACT = 16  # MOST is the least common multiple of 1 to 16


def flat_map(
    self: Builder[C],
    function: object,
    columns: Sequence[str] | Mapping[str, object] | None = None,
    *,
    at_most: int | None = None,
    whole: bool = False,
) -> C:
    """Replace each record by several, which share its weight; or by the first few, each of which has all of it.

    Weights:    output i of n (from 0) gets in[x] * floor((L + i) / n) / L, where L = 720,720, or the least common
                multiple of 1 to `at_most`: in[x] / n exactly where n divides L, as every n up to 16 does; equal outputs
                add up. With more than L outputs of one record some get nothing, and a record with more than 720,720
                is dropped, so that a generator that never ends does end.
                With `whole` each of the first `at_most` outputs gets in[x], and later ones nothing.
    Stability:  1; the n coefficients are not negative and sum to L, because the floors of (L + i) / n for i < n do. The
                map is linear in the weight, so changes in any portions cancel exactly (privacy rule 17).
                With `whole` it is `at_most`: the coefficients are 1 for so many outputs at the most, and else 0.
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("SelectMany"); McSherry, PINQ, SIGMOD 2009
                ("SelectMany(k)", for `whole`).

    Args:
        function: A Python function of one record that returns an iterable of records, or yields them. Parameters are
            matched to columns as in `map`. A set is sorted. A record on which it raises is dropped, uncounted.
        columns: Names, or names with types, of the columns of the outputs; without them an output is one value.
        at_most: How many outputs share a weight exactly, 16 or fewer: keeps the resolution coarse, so that a later join
            is exact. Not a promise about the data. With `whole` how many outputs are kept, in the order in which the
            function gives them.
        whole: Count outputs, instead of shares of records. Noise grows with `at_most`.

    Raises:
        PlanError: The parameters do not fit the columns, or `at_most` is no whole number from 1 to 16 (with `whole` to
            720,720).

    >>> from wpinq.testing import evaluate, protected
    >>> words = protected(line="text").flat_map(lambda line: line.split(), columns={"word": str}, at_most=2)
    >>> evaluate(words, [("a b",), ("a a",)])
    {('a',): Fraction(3, 2), ('b',): Fraction(1, 2)}
    """
    require(whole, FLAG, "flat_map(whole=...)")
    most = MAX_OUTPUTS if whole else EXACT
    if (whole or at_most is not None) and (not WHOLE.holds(at_most) or not 1 <= (at_most or 0) <= most):
        needs = "of the outputs that count whole" if whole else "or leave it out"
        raise PlanError(f"flat_map(at_most=...): give a whole number from 1 to {most:,}, {needs}.")
    parts = math.lcm(*range(1, (at_most or EXACT) + 1))
    made = bind_many(function, self._node.schema, "flat_map", columns=columns)
    if whole and at_most is not None:
        return self._then(FirstOutputs(self._node, made, at_most))
    return self._then(FlatMap(fit_resolution(self._node, parts), made, parts))


@dataclass(frozen=True, eq=False)
class Outputs(Linear):
    """A step that makes several records of each, with coefficients that depend on their places alone."""

    function: Many
    keeps_sign = True

    @cached_property
    def schema(self) -> Schema:
        return self.function.output

    @property
    def reads(self) -> tuple[str, ...]:
        return self.function.reads or self.source.schema.names[:1]

    def apply(self, batch: Batch) -> Batch:
        made = self.function.apply_many(batch.frame, [WEIGHT])
        weight = pl.col(WEIGHT).cast(self.held.column) * self.coefficient
        frame = made.with_columns(weight.alias(WEIGHT)).select(*self.schema.names, WEIGHT)
        return Batch(frame.filter(pl.col(WEIGHT) != 0), self.schema)

    @property
    @abstractmethod
    def coefficient(self) -> pl.Expr:
        """That of an output at `PLACE` of `COUNT`, in units of 1/resolution for one of the source's."""


@dataclass(frozen=True, eq=False)
class FlatMap(Outputs):
    """Plan node of `flat_map`: `parts` is the L of its rule."""

    parts: int
    bias = "the outputs of a record share its weight, so it is no count of outputs"

    @cached_property
    def resolution(self) -> int:
        """Fine enough to share a weight."""
        return self.source.resolution * self.parts

    @property
    def title(self) -> str:
        return f"flat_map({'' if self.parts == MAX_OUTPUTS else f'in parts of 1/{self.parts}; '}{self.function.note})"

    @property
    def coefficient(self) -> pl.Expr:
        return (pl.col(PLACE) + self.parts) // pl.col(COUNT)

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        made = self.function.call_many(record)
        for index, output in enumerate(made):
            yield output, Fraction((self.parts + index) // len(made), self.parts)


@dataclass(frozen=True, eq=False)
class FirstOutputs(Outputs):
    """Plan node of `flat_map` with `whole`."""

    at_most: int

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """So many outputs of a record."""
        return (Fraction(self.at_most),)

    @property
    def title(self) -> str:
        return f"flat_map(first {self.at_most}, whole; {self.function.note})"

    @property
    def bias(self) -> str:
        """What is left out."""
        return f"of the outputs of a record {self.at_most:,} are kept"

    @property
    def coefficient(self) -> pl.Expr:
        return (pl.col(PLACE) < self.at_most).cast(pl.Int64)

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        return ((output, Fraction(1)) for output in self.function.call_many(record)[: self.at_most])
