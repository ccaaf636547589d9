"""Map: one record in, one record out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from wpinq.core.functions.bind import bind
from wpinq.core.functions.function import Function, OfRanges
from wpinq.core.plan.forms import Linear
from wpinq.core.plan.node import Builder, C, Node, Record
from wpinq.core.plan.shapes import Shape, Stateless
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Column, Kind, Schema

EXACT = (Kind.TEXT, Kind.INT, Kind.BOOL)
"""What a function of columns passes on as it is; of other types it writes equal values alike."""


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


def choose(node: Node, names: Sequence[str], call: str) -> Map:
    """The step that keeps some columns, as `map` does.

    Raises:
        PlanError: There is no such column.
    """
    from wpinq.core.functions.expressions import chosen

    return Map(node, chosen(names, node.schema, call))


def called(node: Node, note: str) -> Map:
    """A map whose function is called something else for people; it is the same question."""
    assert isinstance(node, Map)  # noqa: S101  what `map` returns
    return replace(node, function=replace(node.function, note=note))


@dataclass(frozen=True, eq=False)
class Map(Linear):
    """Plan node of `map`. A mere choice of columns moves no values, and is the same however it was written."""

    function: Function
    shown = "map({0.function.note})"
    keeps_sign = True

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
    def images(self) -> int:
        """One."""
        return 1

    @property
    def local(self) -> Mapping[str, str]:
        """Columns that the function only passes on."""
        if self.function.projection is not None:
            return self._chosen
        kinds = self.source.schema
        return {name: column for name, column in self.function.passed.items() if kinds[column].kind in EXACT}

    @property
    def constants(self) -> Mapping[str, tuple[Kind, Hashable] | None]:
        return self.function.constants

    @property
    def meaning(self) -> Mapping[str, object]:
        chosen = self.function.projection
        return super().meaning if chosen is None else {"chosen": chosen}

    @property
    def reads(self) -> tuple[str, ...]:
        """What the function reads; a mere choice looks at no values."""
        chosen = self.function.projection is not None
        return () if chosen else self.function.reads or self.source.schema.names[:1]

    @property
    def _chosen(self) -> dict[str, str]:
        return dict(zip(self.schema.names, self.function.projection or (), strict=False))

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What the function reads; of a mere choice, the columns that are chosen and needed."""
        return (frozenset(self.reads) | {old for new, old in self._chosen.items() if new in needed},)

    def lower(self, needed: frozenset[str]) -> Shape:
        """A function of ranges is given them as they are."""
        ordinary = super().lower(needed)
        if not isinstance(self.function, OfRanges) or not isinstance(ordinary, Stateless):
            return ordinary
        of_ranges = self.function.of_ranges

        def kernel(batch: Batch) -> Batch:
            made = of_ranges(batch.select(self.reads))
            return ordinary.kernel(batch) if made is None else made

        return Stateless(kernel)

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        return [(self.function.call(record), Fraction(1))]

    def apply(self, batch: Batch) -> Batch:
        if self.function.projection is not None:
            return batch.project({new: old for new, old in self._chosen.items() if old in batch.schema})
        return Batch(self.function.apply(batch.frame, [WEIGHT]), self.schema)
