"""Suggest the bounds of a column: a charged, private estimate of where its numbers lie.

A third of epsilon chooses a centre, the median on the grid of `Magnitudes`, which knows no bounds. The rest counts
numbers between edges: the powers of two around zero and around the centre. Where the centre is right, the edges around
it are as fine as the numbers are; where there are too few records for that, those around zero are still there.

All else is computed from the noisy counts. Half of the records lie in the narrowest stretch of buckets that is as heavy
as half of the heaviest, noise taken off. Bounds hold the stretch whose count, less `WORTH` scales of noise for each
doubling of that width, is the largest. So few records far away are not worth the way to them, and many are. A doubling
has two buckets at most, so that noise alone makes bounds longer by n doublings has a chance below exp(-4.3 n), by
Chernoff's bound for 2 n Laplace variables that sum to `WORTH` n scales: 10^-12 for a hundred times the width.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wpinq.aggregates.heap import PARTS, Heap
from wpinq.aggregates.scale import LARGEST_POWER, LEAST_POWER, SIZE, FineCells, Magnitudes, limits, points
from wpinq.aggregates.splitting import quantiles, tree_of
from wpinq.arguments import COLLECTION, NAME, takes
from wpinq.core import methods
from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.noise import DiscreteLaplace, WordSource
from wpinq.core.noise.valleys import Draws, ValleyChoice
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.node import sources, steps
from wpinq.core.pricing.quote import Quote, price
from wpinq.core.pricing.sensitivity import l1_sensitivity
from wpinq.core.records.identity import integer_identities
from wpinq.core.records.schema import Kind
from wpinq.core.runs.epochs import answered_from, log_of
from wpinq.errors import PlanError, redacted
from wpinq.exact import Amount, exact, positive

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder

CENTRE = Fraction(1, 3)
"""Of epsilon, for the centre; the rest is for counts."""
NEAREST = 2.0**-24
"""Of the centre, for the nearest edge around it."""
WORTH = 8
"""Scales of noise that a doubling of the width has to hold to be worth it."""
IDENTITIES = 1 + 4 * (LARGEST_POWER - LEAST_POWER + 2)
"""One for the centre, and one for each edge at the most."""
DIGITS = 100
"""Bounds are rounded outwards to a power of ten, of which at least this many lie between them."""


@takes(collection=COLLECTION, column=NAME)
def suggest_bounds(
    collection: Builder[Any], column: str, epsilon: Amount, name: str | None = None, analyst: str | None = None
) -> tuple[float, float]:
    """Guess bounds of a column's numbers, for `sum`, `mean`, `quantiles` and the others.

    Of some 300 / epsilon records or more the bounds hold nearly all, and are a few times as far apart as these. Records
    that lie apart are followed if they are more than some 20 / epsilon for each doubling of the way to them; fewer are
    left out, and will be clamped. Of few records it is a guess; it never fails.

    Args:
        collection: The records.
        column: A column of numbers. Nulls, NaN and infinities are left out.
        epsilon: What it costs the privacy unit, exact.
        name: Tells repetitions apart, and names the charge in the ledger.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Returns:
        The lower and the upper bound; the same whenever it is asked.

    Raises:
        PlanError: The column holds no numbers, or the collection is live or has windows.
        ExactnessError, BudgetError, LedgerError: See `measure`.

    Source: Wilson et al., "Differentially private SQL with bounded user contribution", PoPETs 2020(2), "ApproxBounds",
    for the counts around zero; `splitting.py` for the centre.

    >>> from wpinq import protect, suggest_bounds
    >>> people = protect([(age,) for age in range(18, 66)], budget=90, columns={"age": int})
    >>> suggest_bounds(people, "age", epsilon=90)
    (16.0, 74.0)
    """
    limits(collection._node, column, (0, 1), None, "suggest_bounds")
    windows = any(node.windows for node in steps(collection._node))
    if windows or log_of(sources(collection._node)) is not None:
        raise PlanError("suggest_bounds: answers at once and once; give a file of the past, without windows.")
    cost = positive(epsilon, "suggest_bounds(epsilon=...)")
    finite = methods.filter(collection, pl.col(column).cast(pl.Float64, strict=False).is_finite())
    cells = FineCells(finite._node, (), Magnitudes(column), f"suggest_bounds({column})")
    survey, epochs = answered_from(fit_noise(cells), "suggest_bounds")
    quote = price(
        survey, cost, call="suggest_bounds", kind=ChargedBounds, mechanism=l1_sensitivity(survey),
        fields=("bounds around a centre", CENTRE, WORTH, PARTS), name=name, analyst=analyst, epochs=epochs,
    )  # fmt: skip
    (made,) = collection._commit([quote])
    low, high = made.bounds()
    if collection._node.schema[column].kind is not Kind.FLOAT:
        low, high = math.floor(low), math.ceil(high)
    return float(low), float(high)


class ChargedBounds(ChargedQuery):
    """Charged bounds, found when they are first asked for."""

    purpose = "bounds"

    def __init__(self, quote: Quote[Any]) -> None:
        super().__init__(quote)
        self._l1: int = quote.mechanism
        self._bounds: tuple[float, float] | None = None

    def bounds(self) -> tuple[float, float]:
        """The lower and the upper bound."""
        refuse_inside("suggest_bounds")
        if self._bounds is None:
            self._bounds = redacted("suggest_bounds", self._choose)
        return self._bounds

    def _choose(self) -> tuple[float, float]:
        histogram, words = self._settled()
        ids = integer_identities(np.arange(IDENTITIES), self.key_owner.identity_key)
        return bounds_of(Heap(SIZE, *histogram.numbers()), self.epsilon, self._l1, words, ids)


def bounds_of(
    heap: Heap, epsilon: Fraction, l1: int, words: WordSource, ids: NDArray[np.uint64]
) -> tuple[float, float]:
    """Choose bounds of weights.

    A unit that moves them by m, of l1 at most, loses epsilon * CENTRE * m / l1 by the centre, and by the counts, of
    which each part of m moves one, the rest of epsilon * m / l1.

    Args:
        heap: The weights on the grid of `Magnitudes`.
        epsilon: Of all.
        l1: The L1 sensitivity, in units of 1/resolution.
        words: The query's pseudorandom words.
        ids: Identities: the first is that of the centre, the others those of the counts.
    """
    middle = quantiles(
        heap, tree_of((Fraction(1, 2),)), epsilon * CENTRE, l1,
        lambda turn, valley, rate: ValleyChoice(rate).choose(Draws(words, ids[:1], turn), valley),
    )  # fmt: skip
    edges = edges_around(Magnitudes("").points([middle[0]])[0])
    noise = DiscreteLaplace(l1 / (epsilon * (1 - CENTRE)))
    counts = np.diff([*(heap.under(point) for point in points(edges[:-1]).tolist()), heap.weight])
    noisy = counts + noise.draw(words, ids[1 : len(edges)])
    low, high = heaviest(edges, noisy, float(noise.scale))
    return rounded(low, high) if max(-low, high) > 2.0**LEAST_POWER else (0.0, 1.0)


def edges_around(centre: float) -> NDArray[np.float64]:
    """The powers of two around zero and around a centre, there down to a ten-millionth of it."""
    powers = 2.0 ** np.arange(LEAST_POWER, LARGEST_POWER + 1)
    around = np.concatenate([[0.0], powers, -powers])
    largest = 2.0**LARGEST_POWER
    near = around[(around == 0) | (np.abs(around) >= abs(centre) * NEAREST)]
    edges = np.unique(np.clip(np.concatenate([around, centre + near]), -largest, largest))
    distinct: NDArray[np.float64] = edges[np.concatenate([[True], np.diff(points(edges)) > 0])]
    return distinct


def heaviest(edges: NDArray[np.float64], counts: NDArray[np.int64], scale: float) -> tuple[float, float]:
    """The stretch of buckets that is worth most, by its two edges.

    Args:
        edges: Of the buckets.
        counts: Noisy ones.
        scale: Of their noise.

    >>> heaviest(np.array([0, 1, 2, 4, 8, 16, 32.0]), np.array([0, 300, 500, 0, 90, 3]), 2)
    (1.0, 16.0)
    """
    before = np.concatenate([[0], np.cumsum(counts)])
    first, last = np.triu_indices(len(edges), 1)
    weight, width = before[last] - before[first], edges[last] - edges[first]
    sure = weight - scale * np.sqrt(8 * (last - first))  # two deviations
    usual = width[sure >= sure.max() / 2].min()
    worth = weight - WORTH * scale * np.maximum(np.log2(width / usual), 0)
    best = np.lexsort((-width, worth))[-1]
    return float(edges[first[best]]), float(edges[last[best]])


def rounded(low: float, high: float) -> tuple[float, float]:
    """Bounds with few digits, hardly wider.

    >>> rounded(999998.76543, 1000001.2345)
    (999998.76, 1000001.24)
    """
    unit = Fraction(10) ** math.floor(math.log10((high - low) / DIGITS))
    bounds = float(exact(low, "low") // unit * unit), float(-(-exact(high, "high") // unit) * unit)
    return max(bounds[0], -(2.0**LARGEST_POWER)), min(bounds[1], 2.0**LARGEST_POWER)
