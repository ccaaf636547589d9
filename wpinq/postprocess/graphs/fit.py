"""Fit graphs to released answers: degrees, who is joined to whom, and triangles; numbers in, graphs out."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wpinq.arguments import NOTHING, PATH, WHOLE, Expected, require, takes
from wpinq.errors import PlanError
from wpinq.html.parts import framed, pictured
from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.degrees.synthesis.synthesize import SEED
from wpinq.postprocess.graphs.counts import Floats, Graph, Ints
from wpinq.postprocess.graphs.measured import Measurements
from wpinq.postprocess.graphs.synthetic import Summary, SyntheticGraph, with_degrees
from wpinq.postprocess.graphs.walker import Target, Walker
from wpinq.progress.bars import bar

if TYPE_CHECKING:
    from wpinq.postprocess.picture import Picture

MIXING, JOINING, STEPS, LEAST = 10, 20, 600, 30_000_000
"""Swaps proposed for each edge: to mix the first graph, to fit the joint degrees, and all answers; and at the least."""
BLOCKS, COOLING, HOT = 40, 24, 50.0
"""The last in so many blocks, of which so many warm up from a likelihood that is told so much less loudly."""
SETTLED, LONGEST = 1.1, 4
"""Chains go on, until R-hat is at most this or they have gone so many times as far, where no steps are given."""
CHAINS = Expected("a whole number from 1 to 64", lambda value: WHOLE.holds(value) and 1 <= value <= 64)
PROPOSALS = Expected("a whole number from 0 on", lambda value: WHOLE.holds(value) and 0 <= value < 2**62)


@dataclass(frozen=True, eq=False, repr=False)
class GraphFit:
    """Graphs that answer like the protected one, up to noise: post-processing, so looking at them costs nothing.

    Attributes:
        measurements: What they were fitted to.
        graph: The graph at the end of the first chain.
        seed_graph: The graph that the first chain began with: fitted degrees and, where measured, joint degrees.
        r_hat: For some numbers of a graph, whether the chains agree and have settled: near 1 where they have. With one
            chain its two halves are compared, which tells less.
        counts: Of the graph, what the queries weigh: as `target` of the measurements has it.
        crowded: Edges of the graph at which paths of two edges weigh more than one: there `triangle_buckets` would
            count a little less than `counts` says. The search never adds to them.
    """

    measurements: Measurements
    graph: SyntheticGraph
    seed_graph: SyntheticGraph
    r_hat: Mapping[str, float]
    counts: Floats
    crowded: int
    _walkers: tuple[Walker, ...]
    _target: Target

    def draw(self, seed: int | np.random.Generator | None = None) -> SyntheticGraph:
        """Another graph: where the chain is after as many swaps again as mix a graph.

        Args:
            seed: Seed or generator; the same seed gives the same graph.
        """
        require(seed, SEED | NOTHING, "fit.draw(seed=...)")
        rng = np.random.default_rng(seed)
        start = self._walkers[int(rng.integers(len(self._walkers)))]
        walker = Walker(Graph(start.edges, start.graph.nodes), start.buckets, rng)
        walker.walk(self._target, JOINING * len(self.graph.edges))
        return SyntheticGraph(walker.edges, walker.graph.nodes)

    def save(self, path: str | Path, columns: tuple[str, str] = ("src", "dst")) -> None:
        """Write the edges of the graph (see `SyntheticGraph.save`)."""
        self.graph.save(path, columns)

    def to_networkx(self) -> Any:
        """The graph of networkx."""
        return self.graph.to_networkx()

    def summary(self) -> dict[str, dict[str, float]]:
        """The graph, and the one that the chain began with, in a few numbers."""
        return {"fitted": asdict(self.graph.summary()), "seed": asdict(self.seed_graph.summary())}

    def content(self) -> dict[str, Any]:
        """What a JSON file holds: what was released, and the graph in numbers."""
        degrees = {"noisy": self.measurements.degrees.noisy_cdf.tolist(), "fit": self.graph.degrees.tolist()}
        return {
            **reported(self.measurements, self.summary(), self.r_hat),
            "degrees": degrees,
            "crowded edges": self.crowded,
        }

    def plot(self, path: str | Path | None = None, truth: npt.ArrayLike | None = None) -> Picture:
        """Draw degrees, joint degrees and triangles: as measured, of the seed, fitted, and true where given.

        Args:
            path: Where to write it: `.png`, `.svg` or `.pdf`; None writes nothing.
            truth: The edges of the true graph, where they are public.

        Raises:
            SourceError: The path cannot be written.
        """
        from wpinq.postprocess.graphs.picture import plot_graphs

        require(path, PATH | NOTHING, "fit.plot(path=...)")
        return plot_graphs(self.measurements, self.seed_graph, self.graph, path, truth)

    def _repr_html_(self) -> str:
        return framed(f"{self}".strip("<>"), pictured(self.plot, f"{self}"))

    def __repr__(self) -> str:
        size = f"{self.graph.nodes:,} nodes and {len(self.graph.edges):,} edges"
        crowded = f"; {self.crowded:,} crowded edges" if self.crowded else ""
        return f"<graph of {size}; {agreement(self.r_hat)}{crowded}>"


def reported(measurements: Any, summary: Mapping[str, Any], r_hat: Mapping[str, float]) -> dict[str, Any]:
    """What JSON files of graphs with one or two kinds of nodes both hold."""
    noisy = {name: answers.content() for name, answers in measurements.noisy().items()}
    return {**dict(measurements.about or {}), "graphs": summary, "R-hat": dict(r_hat), "noisy": noisy}


def agreement(r_hat: Mapping[str, float]) -> str:
    """The largest R-hat, and whether it says that the chains have not settled."""
    worst = max(r_hat.values(), default=1.0)
    return f"R-hat {worst:.2f} at most{'' if worst <= SETTLED else ', not settled'}"


@takes("graphs.fit", seed=SEED | NOTHING, steps=PROPOSALS | NOTHING, chains=CHAINS)
def fit(
    measurements: Measurements,
    *,
    seed: int | np.random.Generator | None = None,
    steps: int | None = None,
    chains: int = 1,
) -> GraphFit:
    """Search for graphs that give the released answers, as near as they can be.

    Each chain begins with a random graph of the fitted degrees, fits the joint degrees, and then all answers, at first
    told softly and then louder (annealing: a falling temperature, no exchange between chains). It ends in sampling
    graphs with about the probability that noise of the answers' scales, raised to a power, gives the answers.

    Answers that noise swamps are first moved to what the degrees and the answers beside them let one expect (see
    `smoothed` and `shrunken` in `measured.py`).

    Args:
        measurements: What `graphs.measure` released; or plain numbers.
        seed: Seed or generator; the same seed gives the same graphs.
        steps: Swaps that each chain proposes. By default 600 for each edge and at least thirty million, and up to four
            times as many, until R-hat is at most 1.1 (`r_hat` tells whether that was reached): ten seconds to a minute
            for 10,000 edges, a minute to six for 100,000.
        chains: How many chains are run, one after the other; `r_hat` tells whether they agree.

    Raises:
        PlanError: It is not what was measured of a graph.
    """
    if not isinstance(measurements, Measurements):
        raise PlanError("graphs.fit(measurements): takes what graphs.measure(...) returns.")
    first = with_degrees(degrees_of(measurements.degrees))
    target = measurements.target(first.degrees)
    wanted = steps if steps is not None else max(STEPS * len(first.edges), LEAST)
    spawned = np.random.default_rng(seed).spawn(chains)
    work = chains * (wanted + (MIXING + JOINING) * len(first.edges))
    with bar("fitting a graph", work) as done:
        runs = [_run(first, target, wanted, rng, done) for rng in spawned]

    def on(walker: Walker) -> Summary:
        walker.walk(target, wanted // BLOCKS)
        return Summary.of(walker.edges, walker.triangles, walker.degrees)

    settled = settle(runs, TRACED, on if steps is None else None)
    walker, begun, _ = runs[0]
    graph = SyntheticGraph(walker.edges, first.nodes)
    walkers = tuple(run[0] for run in runs)
    return GraphFit(measurements, graph, begun, settled, walker.counts(target.fine), walker.crowded, walkers, target)


_Run = tuple[Walker, SyntheticGraph, list[Summary]]
_Runs = Sequence[tuple[Any, Any, list[Any]]]


def settle(runs: _Runs, traced: Sequence[str], on: Callable[[Any], object] | None) -> Mapping[str, float]:
    """R-hat of what chains went through; they go on while they do not agree, each time as far as since they had cooled.

    Args:
        runs: Of each chain where it is, the graph that it began with, and what it went through.
        traced: Names of numbers of these.
        on: What lets a chain go on for a block, and tells its graph in numbers; None where it must not.
    """
    most = len(runs[0][2]) + (LONGEST - 1) * BLOCKS
    settled = _agreeing(runs, traced)
    while on is not None and max(settled.values(), default=1.0) > SETTLED and len(runs[0][2]) < most:
        more = min(len(runs[0][2]), most - len(runs[0][2]))
        with bar("letting chains settle", len(runs) * more) as done:
            for walker, _, trace in runs:
                for _ in range(more):
                    trace.append(on(walker))
                    if done is not None:
                        done(1)
        settled = _agreeing(runs, traced)
    return settled


def _agreeing(runs: _Runs, traced: Sequence[str]) -> Mapping[str, float]:
    """R-hat of what the chains went through, the first half left out where they went on."""
    last = max(len(runs[0][2]) // 2, BLOCKS - COOLING)
    traces = {
        name: np.array([[getattr(summary, name) for summary in run[2][-last:]] for run in runs]) for name in traced
    }
    return {name: split_r_hat(trace.astype(float)) for name, trace in traces.items()}


TRACED = ("triangles", "clustering", "average_clustering", "assortativity")


def _run(first: Graph, target: Target, steps: int, rng: np.random.Generator, done: Any) -> _Run:
    """One chain: where it ends, the graph that it began with, and what it went through after it had cooled."""
    walker = Walker(copy.copy(first), target.buckets, rng)
    trace: list[Summary] = []

    def walk(aim: Target, proposals: int, wedges: float = 0.5) -> None:
        walker.walk(aim, proposals, wedges)
        if done is not None:
            done(proposals)

    edges = len(first.edges)
    walk(target.times(0), MIXING * edges, 0.0)
    walk(target.times(1, triangles=False), JOINING * edges)
    begun = SyntheticGraph(walker.edges, first.nodes)
    for block in range(BLOCKS):
        heat = max(0.0, 1 - (block + 1) / COOLING)
        proposals = steps * (block + 1) // BLOCKS - steps * block // BLOCKS
        walk(target.times(HOT**-heat), proposals)
        if block >= COOLING:
            trace.append(Summary.of(walker.edges, walker.triangles, walker.degrees))
    return walker, begun, trace


def degrees_of(degrees: Fit) -> Ints:
    """Degrees of nodes, in falling order: those of the posterior means, whose tail has no steps.

    A path has no posterior; there the fitted ones are taken.
    """
    try:
        heights = np.rint(np.cumsum(degrees.frequencies()[::-1])[::-1]).astype(np.int64)
    except PlanError:
        return np.asarray(degrees.sequence, np.int64)
    counted = -np.diff(np.maximum.accumulate(heights[::-1])[::-1], append=0)
    return np.repeat(np.arange(len(counted), 0, -1), counted[::-1])


def split_r_hat(trace: Floats) -> float:
    """How much wider all chains are together than each by itself: 1 where they have settled.

    Each chain is cut in two halves, so one that still drifts shows.

    Source: Gelman, Carlin, Stern, Dunson, Vehtari, Rubin, Bayesian Data Analysis, 3rd ed., sec. 11.4.

    >>> split_r_hat(np.array([[1.0, 2.0, 1.0, 2.0], [1.0, 2.0, 1.0, 2.0]])) < 1
    True
    """
    half = trace.shape[1] // 2
    if half < 2:
        return math.nan
    halves = np.concatenate([trace[:, :half], trace[:, half : 2 * half]])
    inner = float(halves.var(axis=1, ddof=1).mean())
    between = float(halves.mean(axis=1).var(ddof=1))
    if inner <= 0:
        return 1.0 if between <= 0 else math.inf
    return math.sqrt((half - 1) / half + between / inner)
