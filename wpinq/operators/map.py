"""Map: one record in, one record out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from wpinq.functions import Dropped, Function, bind
from wpinq.plan.builder import Builder, C
from wpinq.plan.node import Record, Shape, Stateless, Unary, Weighted
from wpinq.records.batch import WEIGHT, Batch
from wpinq.records.schema import Column, Schema


def map(self: Builder[C], function: object, columns: Sequence[str] | Mapping[str, object] | None = None) -> C:
    """Replace each record by what a function makes of it.

    Weights:    out[y] = sum of in[x] over the x with function(x) = y
    Stability:  1; each record's weight goes to one place, so moving it by d moves the output by at most d.
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("Select").

    Args:
        function: A Python function of one record, an element-wise Polars expression (or a list of them), or the text of
            SQL expressions, `"user, lower(page) AS page"`. Parameters are matched to columns by name when every one of
            them names a column, else by position. A tuple makes several columns. A record on which it raises is
            dropped, uncounted.
        columns: Names, or names with types, for the columns of the result, where the function does not give them.

    Raises:
        PlanError: The parameters do not fit the columns, or an expression is not element-wise.

    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(protected(user="text", page="text").map(lambda user, page: page), [("ann", "a"), ("bob", "a")])
    {('a',): 2}
    """
    return self._then(Map(self._node, bind(function, self._node.schema, "map", columns=columns)))


@dataclass(frozen=True, eq=False)
class Map(Unary):
    """Plan node of `map`."""

    function: Function

    @cached_property
    def schema(self) -> Schema:
        """What the function returns; a column that is only chosen stays ranged if it was."""
        chosen = self.function.projection
        if chosen is None:
            return self.function.output
        before = self.source.schema
        columns = (
            Column(column.name, before[old].kind, before[old].ranged)
            for column, old in zip(self.function.output, chosen, strict=True)
        )
        return Schema(tuple(columns))

    @property
    def title(self) -> str:
        """How `explain` shows it."""
        return f"map({self.function.note})"

    @property
    def meaning(self) -> Mapping[str, object]:
        """The function; a mere choice of columns is the same however it was written."""
        if self.function.projection is None:
            return super().meaning
        return {"chosen": self.function.projection}

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What the function reads; of a mere choice of columns, those that are chosen and needed."""
        if self.function.projection is None:
            return (frozenset(self.function.reads or self.source.schema.names[:1]),)
        chosen = zip(self.schema.names, self.function.projection, strict=True)
        return (frozenset(source for name, source in chosen if name in needed),)

    def lower(self, needed: frozenset[str]) -> Shape:
        """A choice of columns moves no values; everything else is the function on columns."""
        if self.function.projection is None:
            return Stateless(self._apply)
        chosen = zip(self.schema.names, self.function.projection, strict=True)
        wanted = {name: source for name, source in chosen if name in needed}
        return Stateless(lambda batch: batch.project(wanted or dict(list(chosen)[:1])))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Call the function on each record."""
        out: dict[Record, Fraction] = {}
        for record, weight in inputs[0].items():
            try:
                image = self.function.call(record)
            except Dropped:
                continue
            out[image] = out.get(image, Fraction(0)) + weight
        return out

    def _apply(self, batch: Batch) -> Batch:
        batch = batch.select(self.function.reads or batch.schema.names[:1])
        batch = batch.expand(batch.schema.ranged)
        return Batch(self.function.apply(batch.frame, [WEIGHT]), self.schema)
