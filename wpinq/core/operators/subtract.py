"""Subtract: the difference of two collections."""

from __future__ import annotations

from wpinq.core.operators.concat import Sum
from wpinq.core.operators.resolution import aligned
from wpinq.core.plan.builder import Builder, C


def subtract(self: Builder[C], other: Builder[C]) -> C:
    """Take the weights of another collection away; what is left may be negative.

    Weights:    out[x] = self[x] - other[x]
    Stability:  1 for each input: |(a' - b') - (a - b)| <= |a' - a| + |b' - b|.
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("Except").

    Args:
        other: A collection with as many columns; they are matched by position and named as in this one.

    Raises:
        PlanError: The numbers of columns differ.

    >>> from wpinq.testing import evaluate, protected
    >>> pages = protected(page="text")
    >>> evaluate(pages.subtract(pages.filter(lambda page: page == "a")), [("a",), ("b",), ("b",)])
    {('b',): 2}
    """
    return self._then(Sum(*aligned(self, other, "subtract"), -1))
