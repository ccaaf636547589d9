"""Filter: keep the records that a predicate accepts."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from wpinq.core.functions import Function, bind
from wpinq.core.plan.builder import Builder, C
from wpinq.core.plan.forms import Where
from wpinq.core.plan.node import Record


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
    return self._then(Filter(self._node, bind(predicate, self._node.schema, "filter", condition=True)))


@dataclass(frozen=True, eq=False)
class Filter(Where):
    """Plan node of `filter`."""

    predicate: Function
    shown = "filter({0.predicate.note})"
    apart = True

    @property
    def reads(self) -> tuple[str, ...]:
        return self.predicate.reads

    def accepts(self, record: Record) -> bool:
        return self.predicate.test(record)

    def mask(self, frame: pl.DataFrame) -> pl.Series:
        return self.predicate.predicate(frame)
