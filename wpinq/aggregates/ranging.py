"""Suggest the bounds of a column: a charged, private estimate of its least and its largest number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from wpinq.aggregates.keywords import LEVEL
from wpinq.aggregates.scale import limits
from wpinq.arguments import COLLECTION, NAME, takes
from wpinq.core.operators import methods as operators
from wpinq.core.operators.window import Window
from wpinq.core.plan.node import steps
from wpinq.core.runs.timeline import live_log
from wpinq.errors import PlanError
from wpinq.exact import Amount

if TYPE_CHECKING:
    from wpinq.core.plan.builder import Builder

LEAST_POWER, LARGEST_POWER = -30, 63
"""Sizes are rounded up to powers of two from 2^-30 to 2^63; smaller and larger ones are clamped."""


@takes(collection=COLLECTION, column=NAME)
def suggest_bounds(
    collection: Builder[Any], column: str, epsilon: Amount, name: str | None = None, analyst: str | None = None
) -> tuple[float, float]:
    """Guess bounds of a column's numbers, for `sum`, `mean` and the others, between powers of two.

    Numbers are counted by sign and size, and the guess goes from the least size to the largest whose noisy count is
    above what noise alone reaches, in all sizes together, in 5% of guesses. So a size that few records have is left
    out, and its numbers will be clamped. Without any such size it is the one that counts most: it never fails.

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

    Source: Wilson et al., "Differentially private SQL with bounded user contribution", PoPETs 2020(2), "ApproxBounds".

    >>> from wpinq import protect, suggest_bounds
    >>> people = protect([(age,) for age in range(18, 66)], budget=90, columns={"age": int})
    >>> suggest_bounds(people, "age", epsilon=90)
    (16.0, 128.0)
    """
    limits(collection._node, column, (0, 1), None, "suggest_bounds")
    windows = any(isinstance(node, Window) for node in steps(collection._node))
    if windows or live_log(collection._node) is not None:
        raise PlanError("suggest_bounds: answers at once and once; give a file of the past, without windows.")
    number = pl.col(column).cast(pl.Float64, strict=False)
    size = (number.abs().log(2).ceil().clip(LEAST_POWER, LARGEST_POWER) - (LEAST_POWER - 1)) * number.sign()
    finite = operators.filter(collection, number.is_finite())
    sizes = operators.map(finite, size.cast(pl.Int64, strict=False).alias("size"))
    measured = sizes.measure(epsilon, name, analyst=analyst)
    most = LARGEST_POWER - LEAST_POWER + 1
    places = np.arange(-most, most + 1)
    counts = measured.observe_many(places)
    held = places[counts > measured.interval(LEVEL, bins=len(places))]
    if not len(held):
        held = places[[int(np.argmax(counts))]]
    low, high = 0.0 - _edge(-int(held[0])), _edge(int(held[-1]))
    return low, high if high > low else low + 1.0


def _edge(size: int) -> float:
    """The largest number of a size: of a negative one that which is nearest to 0."""
    if size > 0:
        return 2.0 ** (size + LEAST_POWER - 1)
    return 0.0 if size in (0, -1) else -(2.0 ** (-size + LEAST_POWER - 2))
