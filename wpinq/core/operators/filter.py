"""Filter: keep the records that a predicate accepts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from wpinq.core.functions.bind import bind
from wpinq.core.functions.function import Function
from wpinq.core.plan.forms import Unary, Where
from wpinq.core.plan.node import Builder, C, Node, Record

if TYPE_CHECKING:
    from wpinq.core.functions.tree import Node as Condition


def filter(self: Builder[C], predicate: object) -> C:
    """Keep the records for which a predicate is true.

    Right after `protect` of people it is asked before their records are bounded, as `where=` is: what is bounded is
    what a question is about, and what it leaves out takes no places of the bound. Each such question bounds people
    anew. After another step, and over a stream, whose questions share one sample, it is asked of what was kept.

    Weights:    out[x] = in[x] where predicate(x), else 0
    Stability:  1; a record's weight stays or goes, whatever the other records do. Before a bound: that of the bound,
                whose proof holds for whatever records a person has (`core/operators/contribution/preprocess.py`).
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
    kept = bind(predicate, self._node.schema, "filter", condition=True)
    return self._then(before_bound(self._node, kept) or Filter(self._node, kept))


def after_bound(self: Builder[C], predicate: object) -> C:
    """The same of the records that were kept of people, so that several questions share one sample."""
    return self._then(Filter(self._node, bind(predicate, self._node.schema, "filter", condition=True)))


def before_bound(node: Node, predicate: Function) -> Node | None:
    """A bound on people's records with a condition on each record before it; None if the step is no such bound."""
    if node.bounds_units is None or node.bounds_units.live or not isinstance(node, Unary):
        return None
    return replace(node, source=Filter(node.source, predicate))


@dataclass(frozen=True, eq=False)
class Filter(Where):
    """Plan node of `filter`."""

    predicate: Function
    shown = "filter({0.predicate.note})"
    apart = True

    @property
    def reads(self) -> tuple[str, ...]:
        return self.predicate.reads

    @property
    def condition(self) -> Condition | None:
        return self.predicate.condition

    def accepts(self, record: Record) -> bool:
        return self.predicate.test(record)

    def mask(self, frame: pl.DataFrame) -> pl.Series:
        return self.predicate.predicate(frame)
