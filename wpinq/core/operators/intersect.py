"""Intersect: the smaller of two weights."""

from __future__ import annotations

from wpinq.core.operators.resolution import aligned
from wpinq.core.operators.union import Extreme
from wpinq.core.plan.builder import Builder, C


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
