"""Filter: keep the records that a predicate accepts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from wpinq.functions import Function, bind
from wpinq.plan.builder import Builder, C
from wpinq.plan.node import Record, Shape, Stateless, Unary, Weighted
from wpinq.records.batch import Batch
from wpinq.records.schema import Schema


def filter(self: Builder[C], predicate: object) -> C:
    """Keep the records for which a predicate is true.

    Weights:    out[x] = in[x] where predicate(x), else 0
    Stability:  1; a record's weight stays or goes, whatever the other records do.
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("Where").

    Args:
        predicate: A Python function of one record, an element-wise Polars expression, or the text of an SQL condition.
            Parameters are matched to columns as in `map`. A record on which it raises is dropped, uncounted.

    Raises:
        PlanError: The parameters do not fit the columns, or an expression is not element-wise.

    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(protected(user="text", page="text").filter(lambda page: page != "b"), [("ann", "a"), ("bob", "b")])
    {('ann', 'a'): 1}
    """
    return self._then(Filter(self._node, bind(predicate, self._node.schema, "filter")))


@dataclass(frozen=True, eq=False)
class Filter(Unary):
    """Plan node of `filter`."""

    predicate: Function

    @cached_property
    def schema(self) -> Schema:
        """The columns of its input; those that the predicate reads are written out."""
        return self.source.schema.expanded(self.predicate.reads)

    @property
    def title(self) -> str:
        """How `explain` shows it."""
        return f"filter({self.predicate.note})"

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What is needed later and what the predicate reads."""
        return (needed | frozenset(self.predicate.reads),)

    def lower(self, needed: frozenset[str]) -> Shape:
        """A mask."""
        return Stateless(self._apply)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Call the predicate on each record."""
        kept = self.predicate.tests(list(inputs[0]))
        return {record: weight for (record, weight), keep in zip(inputs[0].items(), kept, strict=True) if keep}

    def _apply(self, batch: Batch) -> Batch:
        batch = batch.expand(name for name in self.predicate.reads if batch.schema[name].ranged)
        return Batch(batch.frame.filter(self.predicate.predicate(batch.frame)), batch.schema)
