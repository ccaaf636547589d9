"""Measure what a synthetic bipartite graph needs: degrees of both sides, who is joined to whom, and butterflies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from wpinq.arguments import COLLECTION, MAPPING, NAME, NOTHING, takes
from wpinq.core.measurements.provenance import About
from wpinq.degrees import corner
from wpinq.exact import Amount, positive
from wpinq.graphs.bipartite import butterfly_buckets, pair_buckets, pairs
from wpinq.graphs.measure import LEVEL, GraphQuotes, fitted, quotes_of, reached, split_by
from wpinq.postprocess.bipartite.measured import PairMeasurements
from wpinq.postprocess.bipartite.walker import BEYOND
from wpinq.postprocess.graphs.measured import Noisy

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.core.measurements.measurement import Measurement

SHARES: Mapping[str, Fraction] = {
    "left degrees": Fraction(3, 20),
    "right degrees": Fraction(3, 20),
    "joint": Fraction(2, 10),
    "butterflies": Fraction(5, 10),
}
"""How epsilon is split: as `graphs.measure` splits it, with the degrees' share halved between the sides."""
QUERIES: Mapping[str, Callable[[Collection], Collection]] = {
    "left degrees": lambda listed: corner(listed.map(lambda left: left)),
    "right degrees": lambda listed: corner(listed.map(lambda right: right)),
    "joint": pair_buckets,
    "butterflies": butterfly_buckets,
}


@takes("graphs.measure_pairs", pairs=COLLECTION, shares=MAPPING | NOTHING, name=NAME | NOTHING, analyst=NAME | NOTHING)
def measure_pairs(
    pairs: Collection,
    epsilon: Amount,
    *,
    shares: Mapping[str, Amount] | None = None,
    name: str | None = None,
    analyst: str | None = None,
) -> PairMeasurements:
    """Measure the degrees of both sides of a bipartite graph, its joint degrees and its butterflies; all, or none.

    What is protected is what the data set's unit says. With records as units it is a pair, however often it is listed:
    adding or removing it changes all answers together by no more than epsilon tells. With
    `unit=users("left", at_most=k)` it is a left node with all that it lists, k pairs at the most; noise grows with k.

    Uses: degrees use the pairs once for each side, joint degrees 4 times, butterflies 3 times; noise has that scale,
    over its share of epsilon.

    Args:
        pairs: A collection of two columns, such as people and what they chose. Repetitions do not count. The left are
            those with few pairs each: what a left node with d of them takes to count grows with the square of d.
        epsilon: What it costs the privacy unit in all, exact.
        shares: How epsilon is split, in proportion: of `"left degrees"` and `"right degrees"` (always), `"joint"` and
            `"butterflies"`; by default 3 : 3 : 4 : 10.
        name: Name of the release in the ledger, which also makes an independent repetition.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        PlanError: A pair has not two columns, the collection is not answered at once, degrees have no share, or the
            noise is too wide to fit degrees (scale 1,000); nothing was charged.
        ExactnessError: An amount is not exact or not above zero; nothing was charged.
        BudgetError: It costs more than is left; nothing was charged.
    """
    quotes = quoted(pairs, epsilon, shares=shares, name=name, analyst=analyst)
    made = dict(zip(quotes.quotes, pairs._commit(list(quotes.quotes.values())), strict=True))
    left, right = (fitted(made[f"{side} degrees"]) for side in ("left", "right"))
    sizes = {"joint": (reached(left), reached(right)), "butterflies": (reached(right), reached(right) + BEYOND)}
    observed = {key: _observed(made[key], *size) for key, size in sizes.items() if key in made}
    about = About("a bipartite graph", tuple(made.values())).described(LEVEL)
    return PairMeasurements(left, right, **observed, about=about)


def quoted(
    listed: Collection,
    epsilon: Amount,
    *,
    shares: Mapping[str, Amount] | None = None,
    name: str | None = None,
    analyst: str | None = None,
) -> GraphQuotes:
    """Check the arguments of `measure_pairs`, and quote what it asks."""
    whole = positive(epsilon, "graphs.measure_pairs(epsilon=...)")
    needed = ["left degrees", "right degrees"]
    split = split_by("graphs.measure_pairs", SHARES if shares is None else shares, QUERIES, needed)
    named = pairs(listed)
    queries = {key: (query(named), split[key] * whole) for key, query in QUERIES.items() if key in split}
    return quotes_of("graphs.measure_pairs", queries, name or "pairs", analyst)


def _observed(measurement: Measurement, rows: int, columns: int) -> Noisy:
    """The answers for so many rows and columns of bins."""
    bins = [(row, column) for row in range(1, rows + 1) for column in range(1, columns + 1)]
    values = np.asarray(measurement.observe_many(bins), float).reshape(rows, columns)
    return Noisy(values, float(measurement.scale))
