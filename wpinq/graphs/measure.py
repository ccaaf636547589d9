"""Measure what a synthetic graph needs: degrees, who is joined to whom, and triangles, charged as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Collection as Names
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from wpinq.arguments import COLLECTION, FLAG, MAPPING, NAME, NOTHING, takes
from wpinq.core.measurements.answer import About
from wpinq.core.pricing.privacy_cost import Terms
from wpinq.degrees import corner
from wpinq.degrees.observed import WIDEST, at_once, observe_corner
from wpinq.errors import PlanError
from wpinq.exact import Amount, positive
from wpinq.graphs.queries import (
    joint_buckets,
    joint_degrees,
    triangle_buckets,
    triangles_by_degree,
    triangles_by_intersect,
    undirected,
)
from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.degrees.posterior.evidence import Cornered
from wpinq.postprocess.degrees.reconcile import LARGEST_SCALE
from wpinq.postprocess.graphs.counts import Ints, buckets_of, triple_cells
from wpinq.postprocess.graphs.measured import Measurements, Noisy, NoisyByDegree, degrees_of

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.pricing.quote import Quote

SHARES: Mapping[str, Fraction] = {
    "degrees": Fraction(3, 10),
    "joint": Fraction(2, 10),
    "triangles": Fraction(3, 10),
    "intersect": Fraction(2, 10),
}
"""How epsilon is split: chosen from what noise does to each answer of public graphs, and of random parts of them that
have few triangles, and not tuned to the figures of `tests/benchmarks/bench_graphs.py` (`--shares` tries others there).
Triangles have the widest noise, and their total is what people look at, so they get half, in two answers: buckets tell
where many of them are, and one total how many there are where noise swamps the buckets. Degrees err by less than a
thousandth in edges at a tenth of this already, but all else rests on them; joint degrees carry assortativity alone."""
LEVEL = Fraction(95, 100)
QUERIES: Mapping[str, Callable[[Collection], Collection]] = {
    "degrees": lambda both: corner(both.map(lambda src: src)),
    "joint": joint_buckets,
    "triangles": triangle_buckets,
    "intersect": triangles_by_intersect,
    "joint_degrees": joint_degrees,
    "triangles_by_degree": triangles_by_degree,
}
MOST_DEGREES = {"joint_degrees": 512, "triangles_by_degree": 64}
"""Of answers by degree, the smallest of the fitted degrees that are asked for: 262,144 and 45,760 bins at the most.
Edges and triangles of larger ones weigh less than a thousandth each."""


@dataclass(frozen=True, eq=False)
class GraphQuotes:
    """Quotes of all that is measured of a graph, the degrees first, by name."""

    quotes: Mapping[str, Quote[Measurement]]

    @property
    def epsilon(self) -> Fraction:
        """What they cost together."""
        return sum((quote.epsilon for quote in self.quotes.values()), Fraction(0))


@takes(
    "graphs.measure",
    edges=COLLECTION,
    shares=MAPPING | NOTHING,
    mutual=FLAG,
    name=NAME | NOTHING,
    analyst=NAME | NOTHING,
)
def measure(
    edges: Collection,
    epsilon: Amount,
    *,
    shares: Mapping[str, Amount] | None = None,
    mutual: bool = False,
    name: str | None = None,
    analyst: str | None = None,
) -> Measurements:
    """Measure the degrees of a graph, its joint degrees, and its triangles by degree; all are charged, or none.

    What is protected is what the data set's unit says. With records as units it is an edge, in both directions and
    however often it is listed: adding or removing it changes all answers together by no more than epsilon tells. With
    `unit=users("src", at_most=k)` it is all that one node lists, k edges at the most; add `mutual`, and it is the node
    with all of its edges. Noise grows with k.

    Uses: an undirected edge is two records of `undirected`, so degrees use it 2 times, joint degrees 8, triangles 12,
    and TbI 6; JDD 8 and TbD 18, where asked; noise has that scale, over its share of epsilon.

    Args:
        edges: A collection of two columns: undirected edges, listed in one direction or in both. Loops and repetitions
            do not count. Give the list, and not `undirected` of it, which would make the noise twice as wide.
        epsilon: What it costs the privacy unit in all, exact.
        shares: How epsilon is split, in proportion: of `"degrees"` (always), `"joint"`, `"triangles"` and
            `"intersect"` (TbI, the paper's one number for triangles); by default 3 : 2 : 3 : 2;
            and of `"joint_degrees"` (JDD) and `"triangles_by_degree"` (TbD), by default nothing.
        mutual: Keep only edges that both ends list (see `undirected`).
        name: Name of the release in the ledger, which also makes an independent repetition.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        PlanError: An edge has not two columns of one type, the collection is not answered at once, degrees have no
            share, or the noise is too wide to fit degrees (scale 1,000); nothing was charged.
        ExactnessError: An amount is not exact or not above zero; nothing was charged.
        BudgetError: It costs more than is left; nothing was charged.
    """
    quotes = quoted(edges, epsilon, shares=shares, mutual=mutual, name=name, analyst=analyst)
    made = dict(zip(quotes.quotes, edges._commit(list(quotes.quotes.values())), strict=True))
    degrees = fitted(made["degrees"])
    buckets = reached(degrees)
    observed: dict[str, Any] = {
        key: _observed(key, measurement, buckets, degrees) for key, measurement in made.items() if key != "degrees"
    }
    return Measurements(degrees, **observed, about=About("a graph", tuple(made.values())).described(LEVEL))


def quoted(
    edges: Collection,
    epsilon: Amount,
    *,
    shares: Mapping[str, Amount] | None = None,
    mutual: bool = False,
    name: str | None = None,
    analyst: str | None = None,
) -> GraphQuotes:
    """Check the arguments of `measure`, and quote what it asks."""
    whole = positive(epsilon, "graphs.measure(epsilon=...)")
    split = split_by("graphs.measure", SHARES if shares is None else shares, QUERIES, ["degrees"])
    both = undirected(edges, mutual)
    queries = {key: (query(both), split[key] * whole) for key, query in QUERIES.items() if key in split}
    return quotes_of("graphs.measure", queries, name or "graph", analyst)


def quotes_of(
    call: str, queries: Mapping[str, tuple[Collection, Fraction]], name: str, analyst: str | None
) -> GraphQuotes:
    """Quote each query at its epsilon: degrees, and what has other bins."""
    quotes = {}
    for key, (query, epsilon) in queries.items():
        widest = WIDEST if key.endswith("degrees") else LARGEST_SCALE
        (quotes[key],) = at_once([(query, Terms(epsilon, call=call), f"{name}: {key}")], widest, analyst)
    return GraphQuotes(quotes)


def split_by(call: str, shares: Mapping[str, Amount], known: Names[str], needed: Names[str]) -> dict[str, Fraction]:
    """The share of each query in the whole."""
    unknown, missing = (sorted(map(str, some)) for some in (set(shares) - set(known), set(needed) - set(shares)))
    if unknown or missing:
        fault = (
            f"found {', '.join(unknown)}" if unknown else f"{' and '.join(missing)} missing, which all others rest on"
        )
        raise PlanError(f"{call}(shares=...): of {', '.join(known)}; {fault}.")
    parts = {key: positive(part, f"{call}(shares={{{key!r}: ...}})") for key, part in shares.items()}
    return {key: part / sum(parts.values()) for key, part in parts.items()}


def fitted(measurement: Measurement) -> Fit:
    """The degrees that the answers of a diagonal split tell."""
    evidence = Cornered(observe_corner(measurement), measurement.scale)
    return Fit(*evidence.staircases((0.5,))[0], evidence, "posterior", measurement.about)


def reached(degrees: Fit) -> int:
    """How many buckets the degrees reach into, as far as noise lets that be told."""
    return buckets_of([degrees.interval("largest", 0.999)[1], *degrees.sequence[:1]])


def _observed(key: str, measurement: Measurement, buckets: int, degrees: Fit) -> Noisy:
    """The answers for the buckets that the degrees reach into, as far as noise lets that be told."""
    scale, numbers = float(measurement.scale), range(1, buckets + 1)
    if key in MOST_DEGREES:
        return _by_degree(key, measurement, np.unique(degrees_of(degrees))[: MOST_DEGREES[key]])
    if key == "intersect":
        return Noisy(np.array([measurement.observe("triangles")], float), scale)
    if key == "triangles":
        return Noisy(np.asarray(measurement.observe_many(list(numbers)), float), scale)
    pairs = [(low, high) for low in numbers for high in numbers if low <= high]
    values = np.zeros((buckets, buckets))
    values[np.triu_indices(buckets)] = np.asarray(measurement.observe_many(pairs), float)
    return Noisy(values, scale)


def _by_degree(key: str, measurement: Measurement, degrees: Ints) -> NoisyByDegree:
    """The answers for all pairs of these degrees, or all ascending triples; none where noise left no degree."""
    joint = key == "joint_degrees"
    cells = np.indices((len(degrees),) * 2).reshape(2, -1).T if joint else triple_cells(len(degrees))
    bins = [tuple(cell) for cell in degrees[cells].tolist()]
    weights = np.asarray(measurement.observe_many(bins) if bins else [], float)
    return NoisyByDegree(
        weights.reshape(len(degrees), len(degrees)) if joint else weights, float(measurement.scale), degrees
    )
