"""Collections that tell how a bipartite graph hangs together, over its pairs of a left and a right node.

People and what they choose, say: the left are those with few pairs each, for all pairs of their choices are paths.

| query | bin | true weight | uses of the pairs |
|---|---|---|---|
| `pair_buckets` | (i, j) | 1/4 for each pair, shared among the buckets of its left and its right end | 4 |
| `butterfly_buckets` | (i, k) | slice k of what a right node shares with each other one, weighed as below | 3 |

**Butterflies** are cycles of four pairs: two left nodes that have the same two right ones. Two right nodes share the
weight s = sum over common left nodes u of 1/(2 d_u), and c common ones are c (c - 1) / 2 butterflies. So how often
right nodes share how much says how many butterflies there are, and where they lie: `shave` cuts s into slices, the
first up to 1/16 and each later one twice as far as the one before. A path through u weighs 1/(2 d_u), so one pair more
moves all of them together by one, and no bound on degrees is needed.

The weights that a right node q shares, S_q in all, are then counted in the buckets of its degree d (see `queries.py`),
at d / (S_q + d): between 2/3 and 1, as S_q is d / 2 at the most.

`measure_pairs` measures what a synthetic bipartite graph needs: the degrees of both sides, their joint degrees and
butterflies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from wpinq.arguments import COLLECTION, MAPPING, NAME, NOTHING, takes
from wpinq.core.measurements.answer import About
from wpinq.degrees import corner
from wpinq.errors import PlanError
from wpinq.exact import Amount, positive
from wpinq.graphs.measure import LEVEL, GraphQuotes, fitted, quotes_of, reached, split_by
from wpinq.graphs.queries import MOST_BUCKETS
from wpinq.postprocess.graphs.measured import BEYOND, Noisy, PairMeasurements

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.core.measurements.measurement import Measurement

LEAST_SHARED, MOST_SLICES = Fraction(1, 16), 36
"""How thick the first slice is, and how many there are before one as thick as the last follows another."""
SLICES = (LEAST_SHARED, *(LEAST_SHARED * 2**i for i in range(MOST_SLICES - 1)))


@takes("graphs.pairs", pairs=COLLECTION)
def pairs(pairs: Collection) -> Collection:
    """Name the two columns `left` and `right`, and count each pair once: what all queries here take.

    Raises:
        PlanError: There are not two columns.
    """
    names = pairs._node.schema.names
    if len(names) != 2:
        raise PlanError(
            f"graphs: a pair has two columns, left and right; found {', '.join(names)}. Choose two, by map or "
            "columns=('left', 'right')."
        )
    return pairs.map(lambda left, right: (left, right), columns=["left", "right"]).distinct()


def buckets(pairs: Collection, side: str) -> Collection:
    """Each node of a side in its buckets, at a weight of d in all: slices that are 1, 2, 4, 8, ... thick."""
    return pairs.map(side).shave([2**i for i in range(MOST_BUCKETS)], name="bucket")


@takes("graphs.pair_buckets", pairs=COLLECTION)
def pair_buckets(pairs: Collection) -> Collection:
    """Count pairs by the buckets of their left and of their right end.

    >>> from wpinq.graphs import pair_buckets
    >>> from wpinq.testing import evaluate, protected
    >>> found = evaluate(pair_buckets(protected(left="text", right="text")), [("ann", "a"), ("ann", "b")])
    >>> {bin: round(float(weight), 3) for bin, weight in sorted(found.items())}
    {(1, 1): 0.25, (2, 1): 0.25}
    """
    left = pairs.join(buckets(pairs, "left"), on="left", result=lambda left, right, bucket: (left, right, bucket))
    right = pairs.join(buckets(pairs, "right"), on="right", result=lambda left, right, bucket: (left, right, bucket))
    return left.join(right, on=["left", "right"], result=lambda bucket, bucket_2: (bucket, bucket_2))


@takes("graphs.butterfly_buckets", pairs=COLLECTION)
def butterfly_buckets(pairs: Collection) -> Collection:
    """Weigh what right nodes share, in slices, by the buckets of their degrees.

    >>> from wpinq.graphs import butterfly_buckets
    >>> from wpinq.testing import evaluate, protected
    >>> square = [("ann", "a"), ("ann", "b"), ("bob", "a"), ("bob", "b")]
    >>> found = evaluate(butterfly_buckets(protected(left="text", right="text")), square)
    >>> {bin: round(float(weight), 3) for bin, weight in sorted(found.items())}  # a and b share 1/2, at 2 / (1/2 + 2)
    {(1, 1): 0.05, (1, 2): 0.05, (1, 3): 0.1, (1, 4): 0.2, (2, 1): 0.05, (2, 2): 0.05, (2, 3): 0.1, (2, 4): 0.2}
    """
    paths = pairs.join(pairs, on="left", result=lambda right, right_2: (right, right_2))
    shared = paths.filter(lambda right, right_2: right != right_2).shave(list(SLICES), name="part")
    sliced = shared.map(lambda right, part: (right, part), columns=["right", "part"])
    return sliced.join(buckets(pairs, "right"), on="right", result=lambda bucket, part: (bucket, part))


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
