"""Fit bipartite graphs to released answers: degrees, who is joined to whom, and butterflies; numbers in, pairs out.

`fit` searches for graphs of one kind of nodes, or of two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from wpinq.arguments import NOTHING, PATH, require, takes
from wpinq.html.parts import framed, pictured
from wpinq.postprocess.bipartite.counts import Floats, PairGraph
from wpinq.postprocess.bipartite.measured import PairMeasurements
from wpinq.postprocess.bipartite.synthetic import PairSummary, SyntheticPairs, with_degrees
from wpinq.postprocess.bipartite.walker import BEYOND, PairTarget, PairWalker
from wpinq.postprocess.degrees.synthesis.synthesize import SEED
from wpinq.postprocess.graphs.fit import (
    BLOCKS,
    CHAINS,
    COOLING,
    HOT,
    JOINING,
    PROPOSALS,
    GraphFit,
    agreement,
    degrees_of,
    reported,
    settle,
)
from wpinq.postprocess.graphs.fit import fit as fit_graph
from wpinq.postprocess.graphs.measured import Measurements
from wpinq.postprocess.graphs.walker import buckets_of
from wpinq.progress.bars import bar

if TYPE_CHECKING:
    from wpinq.postprocess.picture import Picture

STEPS, LEAST = 200, 10_000_000
"""Swaps proposed for each pair, and at the least."""
TRACED = ("butterflies", "clustering", "assortativity")


@dataclass(frozen=True, eq=False, repr=False)
class PairFit:
    """Bipartite graphs that answer like the protected one, up to noise: post-processing, so they cost nothing.

    Attributes:
        measurements: What they were fitted to.
        graph: The graph at the end of the first chain.
        random_graph: A random graph with the fitted degrees, with which that chain began: what degrees alone tell.
        seed_graph: That graph once it had the joint degrees, where measured.
        r_hat: For some numbers of a graph, whether the chains agree and have settled: near 1 where they have. With one
            chain its two halves are compared, which tells less.
        counts: Of the graph, what the queries weigh: as `target` of the measurements has it.
    """

    measurements: PairMeasurements
    graph: SyntheticPairs
    random_graph: SyntheticPairs
    seed_graph: SyntheticPairs
    r_hat: Mapping[str, float]
    counts: Floats
    _walkers: tuple[PairWalker, ...]
    _target: PairTarget

    def draw(self, seed: int | np.random.Generator | None = None) -> SyntheticPairs:
        """Another graph: where the chain is after as many swaps again as mix a graph.

        Args:
            seed: Seed or generator; the same seed gives the same graph.
        """
        require(seed, SEED | NOTHING, "fit.draw(seed=...)")
        rng = np.random.default_rng(seed)
        start = self._walkers[int(rng.integers(len(self._walkers)))]
        walker = PairWalker(start.now, start.shape, rng)
        walker.walk(self._target, JOINING * len(self.graph.pairs))
        return SyntheticPairs.like(walker.now)

    def save(self, path: str | Path, columns: tuple[str, str] = ("left", "right")) -> None:
        """Write the pairs of the graph (see `SyntheticPairs.save`)."""
        self.graph.save(path, columns)

    def to_networkx(self) -> Any:
        """The graph of networkx."""
        return self.graph.to_networkx()

    def summary(self) -> dict[str, dict[str, float]]:
        """The graph in a few numbers, the one that the chain began with, and a random one of the same degrees."""
        graphs = {"fitted": self.graph, "seed": self.seed_graph, "random": self.random_graph}
        return {name: asdict(graph.summary()) for name, graph in graphs.items()}

    def content(self) -> dict[str, Any]:
        """What a JSON file holds: what was released, and the graph in numbers."""
        measurements, (left, right) = self.measurements, self.graph.degrees
        degrees = {
            side: {"noisy": fit.noisy_cdf.tolist(), "fit": made.tolist()}
            for side, fit, made in (("left", measurements.left, left), ("right", measurements.right, right))
        }
        return {**reported(measurements, self.summary(), self.r_hat), "degrees": degrees}

    def plot(self, path: str | Path | None = None, truth: npt.ArrayLike | None = None) -> Picture:
        """Draw degrees, joint degrees and butterflies: as measured, of a random graph, fitted, and true where given.

        Args:
            path: Where to write it: `.png`, `.svg` or `.pdf`; None writes nothing.
            truth: The true pairs, where they are public.

        Raises:
            SourceError: The path cannot be written.
        """
        from wpinq.postprocess.bipartite.picture import plot_pairs

        require(path, PATH | NOTHING, "fit.plot(path=...)")
        return plot_pairs(self.measurements, self.random_graph, self.graph, path, truth)

    def _repr_html_(self) -> str:
        return framed(f"{self}".strip("<>"), pictured(self.plot, f"{self}"))

    def __repr__(self) -> str:
        graph = self.graph
        size = f"{graph.lefts:,} and {graph.rights:,} nodes and {len(graph.pairs):,} pairs"
        return f"<bipartite graph of {size}; {agreement(self.r_hat)}>"


def fit_pairs(
    measurements: PairMeasurements, seed: int | np.random.Generator | None, steps: int | None, chains: int
) -> PairFit:
    """Search for bipartite graphs that give the released answers; `graphs.fit` says more."""
    rng = np.random.default_rng(seed)
    first = with_degrees(degrees_of(measurements.left), degrees_of(measurements.right), rng)
    left, right = (buckets_of(some) for some in first.degrees)
    shape = (left, right, right + BEYOND)
    target = measurements.target(PairWalker(first, shape, rng).counts(), shape)
    wanted = steps if steps is not None else max(STEPS * len(first.pairs), LEAST)
    with bar("fitting a bipartite graph", chains * (wanted + JOINING * len(first.pairs))) as done:
        runs = [_run(first, target, wanted, generator, done) for generator in rng.spawn(chains)]

    def on(walker: PairWalker) -> PairSummary:
        walker.walk(target, wanted // BLOCKS)
        return PairSummary.of(walker.now)

    settled = settle(runs, TRACED, on if steps is None else None)
    walker, begun, _ = runs[0]
    graph, chance, seeded = (SyntheticPairs.like(graph_) for graph_ in (walker.now, first, begun))
    walkers = tuple(run[0] for run in runs)
    return PairFit(measurements, graph, chance, seeded, settled, walker.counts(), walkers, target)


def _run(
    first: PairGraph, target: PairTarget, steps: int, rng: np.random.Generator, done: Any
) -> tuple[PairWalker, PairGraph, list[PairSummary]]:
    """One chain: where it ends, the graph that it began with, and what it went through after it had cooled."""
    walker = PairWalker(first, target.shape, rng)
    trace: list[PairSummary] = []

    def walk(aim: PairTarget, proposals: int) -> None:
        walker.walk(aim, proposals)
        if done is not None:
            done(proposals)

    walk(target.times(1, butterflies=False), JOINING * len(first.pairs))
    begun = walker.now
    for block in range(BLOCKS):
        heat = max(0.0, 1 - (block + 1) / COOLING)
        walk(target.times(HOT**-heat), steps * (block + 1) // BLOCKS - steps * block // BLOCKS)
        if block >= COOLING:
            trace.append(PairSummary.of(walker.now))
    return walker, begun, trace


@overload
def fit(
    measurements: Measurements,
    *,
    seed: int | np.random.Generator | None = None,
    steps: int | None = None,
    chains: int = 1,
) -> GraphFit: ...


@overload
def fit(
    measurements: PairMeasurements,
    *,
    seed: int | np.random.Generator | None = None,
    steps: int | None = None,
    chains: int = 1,
) -> PairFit: ...


@takes("graphs.fit", seed=SEED | NOTHING, steps=PROPOSALS | NOTHING, chains=CHAINS)
def fit(
    measurements: Measurements | PairMeasurements,
    *,
    seed: int | np.random.Generator | None = None,
    steps: int | None = None,
    chains: int = 1,
) -> GraphFit | PairFit:
    """Search for graphs that give the released answers, as near as they can be.

    What `graphs.measure` released is fitted as `postprocess.graphs.fit.fit` says. What `graphs.measure_pairs` released
    is fitted in the same way: each chain begins with a random bipartite graph of the fitted degrees, fits the joint
    degrees, and then all answers, at first told softly and then louder.

    Args:
        measurements: What `graphs.measure` or `graphs.measure_pairs` released; or plain numbers.
        seed: Seed or generator; the same seed gives the same graphs.
        steps: Swaps that each chain proposes. By default 600 for each edge and at least thirty million; of a
            bipartite graph 200 for each pair and at least ten million; and up to four times as many, until R-hat is at
            most 1.1.
        chains: How many chains are run, one after the other; `r_hat` tells whether they agree.

    Raises:
        PlanError: It is not what was measured of a graph, or its degrees are larger than the search has room for.
    """
    if isinstance(measurements, PairMeasurements):
        return fit_pairs(measurements, seed, steps, chains)
    return fit_graph(measurements, seed=seed, steps=steps, chains=chains)
