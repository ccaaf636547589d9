"""The sum and the difference of two collections: `concat` and `subtract`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from wpinq.core.operators.resolution import aligned
from wpinq.core.plan.forms import Binary
from wpinq.core.plan.node import Builder, C, Record, Weighted
from wpinq.core.plan.shapes import Merge, Shape


def concat(self: Builder[C], other: Builder[C]) -> C:
    """Add the weights of two collections.

    Weights:    out[x] = self[x] + other[x]
    Stability:  1 for each input: |(a' + b') - (a + b)| <= |a' - a| + |b' - b|.
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("Concat").

    **Public rows** are no operand. It would not be unstable: nobody owns them, so their weights c are those of both
    neighbours, and |(a' + c) - (a + c)| = |a' - a|. But every step makes nothing of no records: a run, a part, a
    window, a process with a share of the files, and an epoch each hand on changes of weights, and would each bring the
    same rows in again. And a person's bound says how much one key can weigh in all that is theirs, which `join_rows`
    and `shave` rely on: rows of nobody with that key would break it. Add them to the answer instead: what `map`,
    `filter` and `flat_map` make of public rows is known, costs nothing, and is added to the noisy count of each bin.

    Args:
        other: A collection with as many columns; they are matched by position and named as in this one.

    Raises:
        PlanError: The numbers of columns differ.

    >>> from wpinq.testing import evaluate, protected
    >>> pages = protected(page="text")
    >>> evaluate(pages.concat(pages), [("a",), ("b",)])
    {('a',): 2, ('b',): 2}
    """
    return self._then(Sum(*aligned(self, other, "concat"), 1))


@dataclass(frozen=True, eq=False)
class Sum(Binary):
    """Plan node of `concat` and `subtract`: a signed sum."""

    sign: int
    apart = True

    @cached_property
    def nonnegative(self) -> bool:
        return self.sign > 0 and all(source_node.nonnegative for source_node in self.inputs)

    @property
    def images(self) -> int:
        """One, of whichever input."""
        return 1

    @property
    def monotone(self) -> bool:
        """A sum, and no difference."""
        return self.sign > 0

    @property
    def title(self) -> str:
        return "concat" if self.sign > 0 else "subtract"

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (needed, needed)

    def lower(self, needed: frozenset[str]) -> Shape:
        return Merge((1, self.sign), self.schema.kept(needed), self.held)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Add record by record."""
        out = dict(inputs[0])
        for record, weight in inputs[1].items():
            out[record] = out.get(record, Fraction(0)) + self.sign * weight
        return out


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
