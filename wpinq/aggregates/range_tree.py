"""Ranges of a numeric column: how many records lie between any two of many edges, for one charge.

Counts of single buckets alone are bad at ranges: one of k buckets adds up k noises. So epsilon is divided among levels
of a tree: buckets, stretches of b buckets, stretches of b such stretches. Each level is a histogram of its own, in
which a record is in one bin, so all levels cost the sum of their shares.

What is told are the counts of buckets that fit all levels best, by weighted least squares: from the leaves up each
node's own count is averaged with the sum of its children's, weighed by their variances, then from the top down what is
left over is divided among children by their variances. That is the estimate without bias of the least variance that is
linear in the noisy counts (Hay, Rastogi, Miklau and Suciu, "Boosting the accuracy of differentially private histograms
through consistency", PVLDB 3(1), 2010, theorems 3 and 4); post-processing, so it costs nothing. All ranges agree.

How many levels there are follows from the number of buckets, and shares from b: a level of which a range adds up n
nodes is best given a share that grows as the cube root of n. Of 1,024 buckets at epsilon 1 a range is off by 12.3 on
average, where single buckets are off by 25. Source of large b: Qardaji, Yang and Li, "Understanding hierarchical
methods for differentially private histograms", PVLDB 6(14), 2013.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wpinq.aggregates.buckets import Edges
from wpinq.aggregates.keywords import Options
from wpinq.aggregates.moments import Moments
from wpinq.aggregates.scale import Cells, refuse_no_numbers
from wpinq.aggregates.sums import ask_count
from wpinq.arguments import NAME, takes
from wpinq.core.ledger import wording
from wpinq.core.measurements.answer import Answer, Released
from wpinq.core.measurements.provenance import About
from wpinq.core.noise.accuracy import level_of_each
from wpinq.core.noise.tails import half_width_of_sum
from wpinq.core.operators.window import Window
from wpinq.core.plan.node import steps
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact, positive

if TYPE_CHECKING:
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.plan.builder import Builder

FEW, TIMES = 40, 17
"""From so many buckets on there is a second level, and from so many times as many on a further one, and so on."""
Floats: TypeAlias = NDArray[np.float64]


@takes(column=NAME)
def ranges(
    self: Builder[Any], column: str, edges: Sequence[Amount], epsilon: Amount, *, name: str | None = None,
    analyst: str | None = None,
) -> Ranges:  # fmt: skip
    """Charge for how many records have a number between any two of some edges.

    It is nearer to the truth than the sum of the counts of `histogram`, from some 40 buckets on: with 1,024 buckets
    twice as near for the usual range. Buckets are those of `histogram`.

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
    refuse_no_numbers(self._node, column, "ranges")
    if any(isinstance(node, Window) for node in steps(self._node)):
        raise PlanError("ranges: answers once; take the windows out, or ask histogram(...).at(time).")
    cost, label = positive(epsilon, "ranges(epsilon=...)"), wording(name, "ranges(name=...)")
    cuts = Edges.of(column, edges, whole=self._node.schema[column].kind is not Kind.FLOAT)
    tree = Tree.of(len(cuts.edges) - 1)
    quoted = []
    for level, share in enumerate(tree.shares):
        coarse = Edges(column, tree.edges(cuts.edges, level), cuts.whole)
        cells = Cells(self._node, (), coarse, f"ranges({column})")
        buckets = list(range(len(coarse.edges) - 1))
        options = Options((cells.schema.names[-1],), buckets, None if label is None else f"{label}: {level}", analyst)
        quoted.append(ask_count(self, Moments(cells, (), None, (0,), f"ranges({column})"), cost * share, options))
    made = self._commit([question.quote for question in quoted])
    return Ranges(
        cuts,
        tree,
        tuple(made),
        tuple(question.answer(of, None) for question, of in zip(quoted, made, strict=True)),
    )


@dataclass(frozen=True)
class Tree:
    """Levels of buckets.

    Attributes:
        sizes: How many nodes each level has, buckets first.
        base: How many nodes make one of the next level; the last one has fewer, perhaps.
        shares: What each level spends of epsilon; they sum to 1.

    >>> Tree.of(1024).sizes, [round(float(share), 2) for share in Tree.of(1024).shares]
    ((1024, 94, 9), [0.35, 0.35, 0.29])
    """

    sizes: tuple[int, ...]
    base: int
    shares: tuple[Fraction, ...]

    @classmethod
    def of(cls, buckets: int) -> Tree:
        """The tree of so many buckets."""
        levels = 1
        while buckets >= FEW * TIMES ** (levels - 1):
            levels += 1
        base = next(b for b in range(2, buckets + 3) if b**levels >= buckets)
        sizes = [buckets]
        while len(sizes) < levels:
            sizes.append(-(-sizes[-1] // base))
        roots = [Fraction(round(1000 * base ** (1 / 3)))] * (levels - 1)
        roots.append(Fraction(round(1000 * (sizes[-1] * 2 / 3) ** (1 / 3))) or Fraction(1))
        return cls(tuple(sizes), base, tuple(root / sum(roots) for root in roots))

    def edges(self, edges: Sequence[Fraction | None], level: int) -> tuple[Fraction | None, ...]:
        """The edges of a level."""
        return (*edges[: -1 : self.base**level], edges[-1])

    def fitted(self, counts: Sequence[Floats], variances: Sequence[float]) -> Floats:
        """The counts of buckets that fit the counts of all levels best."""
        estimates, spread, below = [counts[0]], [np.full(self.sizes[0], variances[0])], []
        for size, count, variance in zip(self.sizes[1:], counts[1:], variances[1:], strict=True):
            firsts = np.arange(size) * self.base
            total, wide = np.add.reduceat(estimates[-1], firsts), np.add.reduceat(spread[-1], firsts)
            below.append((total, wide))
            spread.append(1 / (1 / variance + 1 / wide))
            estimates.append(spread[-1] * (count / variance + total / wide))
        fit = estimates[-1]
        for level in range(len(self.sizes) - 2, -1, -1):
            parent = np.arange(self.sizes[level]) // self.base
            total, wide = below[level]
            fit = estimates[level] + spread[level] * ((fit - total) / wide)[parent]
        return fit

    def weights(self, first: int, last: int, variances: Sequence[float]) -> list[Floats]:
        """By what each count of each level goes into the number of a range of buckets.

        The best fit is x = M^-1 A' D y, with counts y of variances 1 / D and M = A' D A. So a range q has
        q M^-1 A' D y, and M^-1 q is the fit of buckets q / D and nothing else.
        """
        wanted = np.zeros(self.sizes[0])
        wanted[first:last] = variances[0]
        other = [np.zeros(size) for size in self.sizes[1:]]
        levels = [self.fitted([wanted, *other], variances)]
        for size in self.sizes[1:]:
            levels.append(np.add.reduceat(levels[-1], np.arange(size) * self.base))
        return [level / variance for level, variance in zip(levels, variances, strict=True)]


class Ranges:
    """Charged counts of ranges. Using them costs nothing more."""

    def __init__(
        self, cuts: Edges, tree: Tree, measurements: tuple[Measurement, ...], levels: tuple[Answer, ...]
    ) -> None:
        self._cuts, self._tree, self._made, self._levels = cuts, tree, measurements, levels

    def between(self, asked: Sequence[tuple[Amount, Amount]]) -> Answer:
        """How many records are in each of some ranges, which begin and end at edges.

        Intervals hold what they say, by Chernoff's bound for the sum of the noises that are in a range; they are up to
        half wider than they need be.

        Args:
            asked: Pairs of edges, the lower first: a range holds it, and not the upper one, but for the last edge.

        Returns:
            A row for each range: `from`, `to`, `count` and its interval.

        Raises:
            PlanError: They are no asked of edges that rise.
            ExactnessError: One is no number.
            SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
        """
        spans = [self._edge_indices(pair) for pair in asked]
        about = About(f"ranges({self._cuts.column})", self._made)
        ends = pl.DataFrame(
            [(self._cuts.numbers[a], self._cuts.numbers[b]) for a, b in spans],
            {"from": pl.Float64, "to": pl.Float64}, orient="row",
        )  # fmt: skip

        def released(level: Fraction, simultaneous: bool) -> Released:
            before = np.concatenate([[0.0], np.cumsum(self._buckets)])
            counts = pl.Series("count", [before[b] - before[a] for a, b in spans], dtype=pl.Float64)
            rest = float(1 - level_of_each(level, max(len(spans), 1) if simultaneous else 1))
            half = pl.Series([self._half_width(a, b, rest) for a, b in spans], dtype=pl.Float64)
            return ends.with_columns(counts), {"count": (counts - half, counts + half)}

        return Answer(about, released)

    def stddev(self, low: Amount, high: Amount) -> float:
        """The standard deviation of the noise of a range.

        Raises:
            PlanError, ExactnessError: See `between`.
        """
        weights = self._tree.weights(*self._edge_indices((low, high)), self._variances)
        return math.sqrt(
            sum(float(np.sum(weight**2)) * wide for weight, wide in zip(weights, self._variances, strict=True))
        )

    def __repr__(self) -> str:
        low, high = self._cuts.numbers[0], self._cuts.numbers[-1]
        spent = decimal(sum((level.epsilon for level in self._made), Fraction(0)))
        return (
            f"<ranges of {self._cuts.column} from {low:g} to {high:g}, {self._tree.sizes[0]} buckets, epsilon {spent}>"
        )

    @cached_property
    def _buckets(self) -> Floats:
        counts = [answer.frame[:, -3].to_numpy().astype(np.float64) for answer in self._levels]
        return self._tree.fitted(counts, self._variances)

    @cached_property
    def _variances(self) -> list[float]:
        return [max(level.stddev**2, 1e-12) for level in self._made]

    def _half_width(self, first: int, last: int, rest: float) -> float:
        weights = self._tree.weights(first, last, self._variances)
        scales = [float(level.quote.mechanism.scale) for level in self._made]
        fine = [level.node.resolution * level.quote.mechanism.grid for level in self._made]
        return half_width_of_sum(
            [(weight / unit, scale) for weight, unit, scale in zip(weights, fine, scales, strict=True)], rest
        )

    def _edge_indices(self, pair: tuple[Amount, Amount]) -> tuple[int, int]:
        """The places of both ends among the edges."""
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise PlanError("ranges.between: takes pairs of edges, for example [(0, 18), (18, 65)].")
        indices = [self._edge_index(edge) for edge in pair]
        if indices[0] >= indices[1]:
            raise PlanError("ranges.between: the lower edge of a range is below the upper one.")
        return indices[0], indices[1]

    def _edge_index(self, edge: Amount) -> int:
        if isinstance(edge, float) and math.isinf(edge):
            index = len(self._cuts.edges) - 1 if edge > 0 else 0
            if self._cuts.edges[index] is None:
                return index
        number = exact(edge, "ranges.between(...)")
        if number not in self._cuts.edges:
            raise PlanError(f"ranges.between: {decimal(number)} is none of the edges that were charged.")
        return self._cuts.edges.index(number)
