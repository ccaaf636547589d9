"""Ranges of a numeric column: how many records lie between any two of many edges, for one charge.

Each level of a tree of buckets is counted by itself (`range_tree.py` says how they are put together). The price and the
noise of every range follow from the tree and epsilon alone, so a quote tells both before anything is charged.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import polars as pl

from wpinq.aggregates.buckets import Edges
from wpinq.aggregates.keywords import Options
from wpinq.aggregates.moments import Moments
from wpinq.aggregates.quoted import QuotedAggregate
from wpinq.aggregates.range_tree import Floats, Tree
from wpinq.aggregates.scale import Cells, refuse_no_numbers
from wpinq.aggregates.sums import ask_count
from wpinq.arguments import NAME, takes
from wpinq.core.ledger import Price, price_all, wording
from wpinq.core.ledger.several import price_lines
from wpinq.core.measurements.answer import LEVEL, About, Answer, Released
from wpinq.core.noise.accuracy import level_of_each
from wpinq.core.noise.tails import half_width_of_sum
from wpinq.core.plan.node import steps
from wpinq.core.plan.phrase import phrase
from wpinq.core.pricing.quote import Quote
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact, four_digits, positive
from wpinq.html.parts import framed, lines, text

if TYPE_CHECKING:
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.plan.node import Builder


@takes(column=NAME)
def ranges(
    self: Builder[Any], column: str, edges: Sequence[Amount], epsilon: Amount, *, name: str | None = None,
    analyst: str | None = None,
) -> Ranges:  # fmt: skip
    """Charge for how many records have a number between any two of some edges.

    It is nearer to the truth than the sum of the counts of `histogram`, from some 40 buckets on: with 1,024 buckets
    twice as near for the usual range. Buckets are those of `histogram`. `quote_ranges` says how near, for nothing.

    Args:
        column: A column of numbers.
        edges: Numbers that rise and do not depend on the data; the first may be minus infinity, the last infinity.
        epsilon: What all ranges together cost the privacy unit, exact.
        name: Tells repetitions apart.
        analyst: Who is charged.

    Returns:
        `between` answers for ranges.

    Raises:
        PlanError: The column holds no numbers, edges are not two or more that rise, or the collection has windows.
        ExactnessError, BudgetError, LedgerError: See `measure`.

    >>> import wpinq
    >>> people = wpinq.protect([(age,) for age in range(100)], budget=100, columns={"age": int})
    >>> ages = people.ranges("age", range(0, 101, 2), epsilon=100)
    >>> ages.between([(20, 60), (98, 100)]).frame["count"].round().to_list()
    [40.0, 2.0]
    """
    return ask_ranges(self, column, edges, epsilon, Options(name=name, analyst=analyst), call="ranges").charge()


@takes(column=NAME)
def quote_ranges(
    self: Builder[Any], column: str, edges: Sequence[Amount], epsilon: Amount, *, name: str | None = None,
    analyst: str | None = None,
) -> QuotedRanges:  # fmt: skip
    """Say what `ranges` with these arguments would cost, and how far noise would move each range; charge nothing.

    Arguments and errors are those of `ranges`.

    Returns:
        Printed, it says the price and what is left. `stddev` and `half_width` say how wide noise is, and `charge` asks.

    >>> import wpinq
    >>> people = wpinq.protect([(age,) for age in range(100)], budget=2, columns={"age": int})
    >>> quote = people.quote_ranges("age", range(0, 101, 2), epsilon=1)
    >>> print(quote)
    ranges of age from 0 to 100: 50 buckets, counted at 2 levels of 50 and 7 bins
      noise of one bucket has the standard deviation 2.424, of half of them 6.834, of all 7.331
      now: epsilon 1 to pay; data set 'records' has 2 left, and 1 afterwards
    >>> round(quote.stddev(20, 60), 2), quote.charge().stddev(20, 60) == quote.stddev(20, 60)
    (6.07, True)
    """
    return ask_ranges(self, column, edges, epsilon, Options(name=name, analyst=analyst), call="quote_ranges")


def ask_ranges(
    self: Builder[Any], column: str, edges: Any, epsilon: Amount, options: Options, *, call: str
) -> QuotedRanges:
    """Quote ranges, in the words of a call; see `quote_ranges`."""
    refuse_no_numbers(self._node, column, call)
    if any(node.windows for node in steps(self._node)):
        raise PlanError(f"{call}: answers once; take the windows out, or ask histogram(...).at(time).")
    cost = positive(epsilon, f"{call}(epsilon=...)")
    wording(options.name, f"{call}(name=...)")
    cuts = Edges.of(column, edges, whole=self._node.schema[column].kind is not Kind.FLOAT)
    return levels_of(self, cuts, Tree.of(len(cuts.edges) - 1), cost, options)


def levels_of(self: Builder[Any], cuts: Edges, tree: Tree, epsilon: Fraction, options: Options) -> QuotedRanges:
    """Quote each level of a tree of ranges.

    Args:
        cuts: The edges.
        tree: The levels between them.
        epsilon: What all levels cost together.
        options: Of which name, analyst and mechanism are meant.
    """
    result = []
    for level, share in enumerate(tree.shares):
        coarse = Edges(cuts.column, tree.edges(cuts.edges, level), cuts.whole)
        cells = Cells(self._node, (), coarse, f"ranges({cuts.column})")
        counted = Moments(cells, (), None, (0,), f"ranges({cuts.column})")
        name = None if options.name is None else f"{options.name}: {level}"
        buckets = (cells.schema.names[-1],), list(range(len(coarse.edges) - 1))
        more = Options(*buckets, name, options.analyst, mechanism=options.mechanism)
        result.append(ask_count(self, counted, epsilon * share, more))
    text = phrase(self._node, f"ranges({cuts.column})")
    return QuotedRanges(self, cuts, tree, result).named(lambda quote: quote.worded(text))


class Spans(ABC):
    """Ranges between edges, and the noise of each, which follows from the levels alone.

    Args:
        cuts: The edges.
        tree: The levels.
    """

    def __init__(self, cuts: Edges, tree: Tree) -> None:
        self._cuts, self._tree = cuts, tree

    @property
    @abstractmethod
    def measured(self) -> Sequence[Measurement]:
        """What is measured of each level, charged or not."""

    def stddev(self, low: Amount, high: Amount) -> float:
        """The standard deviation of the noise of a range.

        Raises:
            PlanError, ExactnessError: See `between`.
        """
        return self._deviation(*self._edge_indices((low, high), "stddev"))

    def half_width(self, low: Amount, high: Amount, level: Amount = LEVEL) -> float:
        """By how much noise moves the count of a range at most, with this probability.

        Raises:
            PlanError, ExactnessError: See `between`; or the level is not strictly between 0 and 1.
        """
        span = self._edge_indices((low, high), "half_width")
        return self.half_between(*span, exact(level, "ranges.half_width(level=...)"))

    def _deviation(self, first: int, last: int) -> float:
        return math.sqrt(self._tree.variance(first, last, self._variances))

    def half_between(self, first: int, last: int, level: Fraction, bins: int = 1) -> float:
        """The same of a range by the places of its ends among the edges, where so many hold together."""
        if len(self.measured) == 1 and last - first == 1:  # one noise, whose law is known
            return self.measured[0].interval(level, bins=bins)
        rest = float(1 - level_of_each(level, bins))
        weights = self._tree.weights(first, last, self._variances)
        scales = [float(level.quote.mechanism.scale) for level in self.measured]
        fine = [level.node.resolution * level.quote.mechanism.grid for level in self.measured]
        return half_width_of_sum(
            [(weight / unit, scale) for weight, unit, scale in zip(weights, fine, scales, strict=True)], rest
        )

    @cached_property
    def _variances(self) -> list[float]:
        return [max(level.stddev() ** 2, 1e-12) for level in self.measured]

    def _edge_indices(self, pair: tuple[Amount, Amount], call: str = "between") -> tuple[int, int]:
        """The places of both ends among the edges."""
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise PlanError(f"ranges.{call}: takes pairs of edges, for example [(0, 18), (18, 65)].")
        indices = [self._edge_index(edge, call) for edge in pair]
        if indices[0] >= indices[1]:
            raise PlanError(f"ranges.{call}: the lower edge of a range is below the upper one.")
        return indices[0], indices[1]

    def _edge_index(self, edge: Amount, call: str) -> int:
        if isinstance(edge, float) and math.isinf(edge):
            index = len(self._cuts.edges) - 1 if edge > 0 else 0
            if self._cuts.edges[index] is None:
                return index
        number = exact(edge, f"ranges.{call}(...)")
        if number not in self._cuts.edges:
            raise PlanError(f"ranges.{call}: {decimal(number)} is none of the edges that were charged.")
        return self._cuts.edges.index(number)

    @property
    def _ends(self) -> str:
        low, high = self._cuts.numbers[0], self._cuts.numbers[-1]
        return f"ranges of {self._cuts.column} from {low:g} to {high:g}"


class QuotedRanges(Spans):
    """What ranges would cost, and how far noise would move each of them. It spends nothing until `charge`."""

    def __init__(self, of: Builder[Any], cuts: Edges, tree: Tree, levels: Sequence[QuotedAggregate]) -> None:
        super().__init__(cuts, tree)
        self._of, self._levels = of, tuple(levels)

    def named(self, name: Callable[[Quote[Measurement]], Quote[Measurement]]) -> QuotedRanges:
        """The same, with other words for the quote of each level."""
        levels = [replace(level, quote=name(level.quote)) for level in self._levels]
        return QuotedRanges(self._of, self._cuts, self._tree, levels)

    @property
    def quotes(self) -> list[Quote[Measurement]]:
        """What is charged: a quote for each level."""
        return [level.quote for level in self._levels]

    @cached_property
    def measured(self) -> Sequence[Measurement]:
        """What is measured of each level, not charged yet."""
        return [quote.query for quote in self.quotes]

    @property
    def epsilon(self) -> Fraction:
        """What all levels cost the privacy unit."""
        return sum((quote.epsilon for quote in self.quotes), Fraction(0))

    @property
    def prices(self) -> list[Price]:
        """What all levels would cost each data set if they were charged now, and what is left of its budget.

        Raises:
            LedgerError: A ledger cannot be trusted or read.
        """
        return price_all([request for quote in self.quotes for request in quote.charges])

    def charge(self) -> Ranges:
        """Charge for all ranges or nothing; again it is the same, and free.

        Raises:
            BudgetError, LedgerError, PlanError: See `measure`; nothing was charged.
        """
        return self.charged(self._of._commit(self.quotes))

    def charged(self, made: Sequence[Measurement]) -> Ranges:
        """The ranges of the queries that were charged for its quotes."""
        answers = [level.answer(query, None) for level, query in zip(self._levels, made, strict=True)]
        return Ranges(self._cuts, self._tree, made, answers)

    @property
    def noise(self) -> list[str]:
        """Lines that say which levels are counted, and how wide noise is."""
        sizes = self._tree.sizes
        *most, last = [f"{size:,}" for size in sizes]
        at = f"{len(sizes)} levels of {', '.join(most)} and {last} bins" if most else f"one level of {last} bins"
        middle = (sizes[0] // 4, sizes[0] // 4 + (sizes[0] + 1) // 2)
        one, half, whole = (four_digits(self._deviation(*span)) for span in ((0, 1), middle, (0, sizes[0])))
        return [
            f"{self._ends}: {sizes[0]:,} buckets, counted at {at}",
            f"  noise of one bucket has the standard deviation {one}, of half of them {half}, of all {whole}",
        ]

    def __str__(self) -> str:
        return "\n".join([*self.noise, *price_lines(lambda: self.prices)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return framed("Quote", lines(str(self).splitlines()), text("A quote charges nothing; its charge() does."))

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a quote is never pickled or copied; quote again, it costs nothing.")


class Ranges(Spans):
    """Charged counts of ranges. Using them costs nothing more."""

    def __init__(self, cuts: Edges, tree: Tree, measurements: Sequence[Measurement], levels: Sequence[Answer]) -> None:
        super().__init__(cuts, tree)
        self._measurements, self._levels = tuple(measurements), tuple(levels)

    @property
    def measured(self) -> Sequence[Measurement]:
        """What was measured of each level."""
        return self._measurements

    def between(self, asked: Sequence[tuple[Amount, Amount]]) -> Answer:
        """How many records are in each of some ranges, which begin and end at edges.

        Intervals hold what they say, by Chernoff's bound for the sum of the noises that are in a range; they are up to
        half wider than they need be.

        Args:
            asked: Pairs of edges, the lower first: a range holds it, and not the upper one, but for the last edge.

        Returns:
            A row for each range: `from`, `to`, `count` and its interval.

        Raises:
            PlanError: They are no pairs of edges that rise.
            ExactnessError: One is no number.
            SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
        """
        spans = [self._edge_indices(pair) for pair in asked]
        about = About(f"ranges({self._cuts.column})", self.measured)
        ends = pl.DataFrame(
            [(self._cuts.numbers[a], self._cuts.numbers[b]) for a, b in spans],
            {"from": pl.Float64, "to": pl.Float64}, orient="row",
        )  # fmt: skip

        def released(level: Fraction, simultaneous: bool) -> Released:
            counts = pl.Series("count", [self.counted(*span) for span in spans], dtype=pl.Float64)
            bins = max(len(spans), 1) if simultaneous else 1
            half = pl.Series([self.half_between(*span, level, bins) for span in spans], dtype=pl.Float64)
            return ends.with_columns(counts), {"count": (counts - half, counts + half)}

        return Answer(about, released)

    def __repr__(self) -> str:
        spent = decimal(sum((level.epsilon for level in self.measured), Fraction(0)))
        return f"<{self._ends}, {self._tree.sizes[0]} buckets, epsilon {spent}>"

    def counted(self, first: int, last: int) -> float:
        """The count of a range by the places of its ends among the edges."""
        return float(self._before[last] - self._before[first])

    @cached_property
    def _before(self) -> Floats:
        """How many are below each edge."""
        counts = [answer.frame[:, -3].to_numpy().astype(np.float64) for answer in self._levels]
        return np.concatenate([[0.0], np.cumsum(self._tree.fitted(counts, self._variances))])
