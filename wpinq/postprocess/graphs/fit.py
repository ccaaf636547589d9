"""Fit graphs to released answers: degrees, who is joined to whom, triangles or butterflies; numbers in, graphs out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from wpinq.arguments import NOTHING, PATH, WHOLE, Expected, require, takes
from wpinq.errors import PlanError
from wpinq.html.parts import framed, pictured
from wpinq.postprocess.degrees.synthesis.synthesize import SEED
from wpinq.postprocess.graphs.bipartite import BipartiteChain
from wpinq.postprocess.graphs.chain import Chain, S, ready
from wpinq.postprocess.graphs.counts import Floats
from wpinq.postprocess.graphs.measured import Measurements, PairMeasurements
from wpinq.postprocess.graphs.simple import SimpleChain
from wpinq.postprocess.graphs.synthetic import PairSummary, Summary, SyntheticGraph, SyntheticPairs
from wpinq.postprocess.graphs.target import Target
from wpinq.progress import bar

if TYPE_CHECKING:
    from wpinq.postprocess.picture import Picture

JOINING = 20
"""Swaps proposed for each edge to fit the joint degrees, and to draw another graph."""
BLOCKS, COOLING, HOT = 40, 24, 50.0
"""Parts of a search, of which so many warm up from a likelihood that is told so much less loudly."""
SETTLED, LONGEST = 1.1, 4
"""Chains go on, until R-hat is at most this or they have gone so many times as far, where no steps are given."""
CHAINS = Expected("a whole number from 1 to 64", lambda value: WHOLE.holds(value) and 1 <= value <= 64)
PROPOSALS = Expected("a whole number from 0 on", lambda value: WHOLE.holds(value) and 0 <= value < 2**62)
M = TypeVar("M", Measurements, PairMeasurements)


@dataclass(frozen=True, eq=False, repr=False)
class Fitted(Generic[M, S]):
    """Graphs that answer like the protected one, up to noise: post-processing, so looking at them costs nothing.

    Attributes:
        measurements: What they were fitted to.
        graph: The graph at the end of the first chain.
        seed_graph: The graph that the first chain began with: fitted degrees and, where measured, joint degrees.
        r_hat: For some numbers of a graph, whether the chains agree and have settled: near 1 where they have. With one
            chain its two halves are compared, which tells less.
        counts: Of the graph, what the queries weigh: as `target` of the measurements has it.
    """

    measurements: M
    graph: S
    seed_graph: S
    r_hat: Mapping[str, float]
    counts: Floats
    _chains: tuple[Chain[Any], ...]
    _target: Target

    def draw(self, seed: int | np.random.Generator | None = None) -> S:
        """Another graph: where the chain is after as many swaps again as mix a graph.

        Args:
            seed: Seed or generator; the same seed gives the same graph.
        """
        require(seed, SEED | NOTHING, "fit.draw(seed=...)")
        rng = np.random.default_rng(seed)
        start = self._chains[int(rng.integers(len(self._chains)))]
        chain = replace(start, graph=start.now, rng=rng)
        chain.walk(self._target, JOINING * len(self.graph.rows))
        return type(self.graph).like(chain.now)

    def save(self, path: str | Path, columns: tuple[str, str] | None = None) -> None:
        """Write the edges or pairs of the graph (see `SyntheticGraph.save`)."""
        self.graph.save(path, columns)

    def to_networkx(self) -> Any:
        """The graph of networkx."""
        return self.graph.to_networkx()

    def summary(self) -> dict[str, dict[str, float]]:
        """The graph, and the one that the chain began with, in a few numbers."""
        return {"fitted": asdict(self.graph.summary()), "seed": asdict(self.seed_graph.summary())}

    def content(self) -> dict[str, Any]:
        """What a JSON file holds: what was released, and the graph in numbers."""
        noisy = {name: answers.content() for name, answers in self.measurements.noisy().items()}
        about = dict(self.measurements.about or {})
        return {**about, "graphs": self.summary(), "R-hat": dict(self.r_hat), "noisy": noisy}

    def plot(self, path: str | Path | None = None, truth: npt.ArrayLike | None = None) -> Picture:
        """Draw degrees, joint degrees and what else was measured: as measured, fitted, by chance, and true where given.

        Args:
            path: Where to write it: `.png`, `.svg` or `.pdf`; None writes nothing.
            truth: The edges of the true graph, or its pairs, where they are public.

        Raises:
            SourceError: The path cannot be written.
        """
        from wpinq.postprocess.graphs.picture import plot_graphs

        require(path, PATH | NOTHING, "fit.plot(path=...)")
        return plot_graphs(self.measurements, self._chance(), self.graph, path, truth)

    def _chance(self) -> tuple[str, S]:
        """What a picture has beside the fitted graph: a graph that tells less, and its name."""
        return "seed", self.seed_graph

    def _repr_html_(self) -> str:
        return framed(f"{self}".strip("<>"), pictured(self.plot, f"{self}"))

    def __repr__(self) -> str:
        worst = max(self.r_hat.values(), default=1.0)
        return f"<{self.graph.title}; R-hat {worst:.2f} at most{'' if worst <= SETTLED else ', not settled'}>"


@dataclass(frozen=True, eq=False, repr=False)
class GraphFit(Fitted[Measurements, SyntheticGraph]):
    """Graphs that answer like the protected one, up to noise; `Fitted` says what both kinds of fits have.

    Attributes:
        crowded: Edges of the graph at which paths of two edges weigh more than one: there `triangle_buckets` would
            count a little less than `counts` says. The search never adds to them.
    """

    crowded: int

    def content(self) -> dict[str, Any]:
        """What a JSON file holds: what was released, and the graph in numbers."""
        degrees = {"noisy": self.measurements.degrees.noisy_cdf.tolist(), "fit": self.graph.degrees.tolist()}
        return {**super().content(), "degrees": degrees, "crowded edges": self.crowded}

    def __repr__(self) -> str:
        crowded = f"; {self.crowded:,} crowded edges" if self.crowded else ""
        return f"{super().__repr__()[:-1]}{crowded}>"


@dataclass(frozen=True, eq=False, repr=False)
class PairFit(Fitted[PairMeasurements, SyntheticPairs]):
    """Bipartite graphs that answer like the protected one, up to noise; `Fitted` says what both kinds of fits have.

    Attributes:
        random_graph: A random graph with the fitted degrees, with which that chain began: what degrees alone tell.
    """

    random_graph: SyntheticPairs

    def _chance(self) -> tuple[str, SyntheticPairs]:
        return "random", self.random_graph

    def summary(self) -> dict[str, dict[str, float]]:
        """The graph in a few numbers, the one that the chain began with, and a random one of the same degrees."""
        return {**super().summary(), "random": asdict(self.random_graph.summary())}

    def content(self) -> dict[str, Any]:
        """What a JSON file holds: what was released, and the graph in numbers."""
        fits = {"left": self.measurements.left, "right": self.measurements.right}
        degrees = {
            side: {"noisy": fit.noisy_cdf.tolist(), "fit": made.tolist()}
            for (side, fit), made in zip(fits.items(), self.graph.degrees, strict=True)
        }
        return {**super().content(), "degrees": degrees}


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

    Each chain begins with a random graph of the fitted degrees, fits the joint degrees, and then all answers, at first
    told softly and then louder (annealing: a falling temperature, no exchange between chains). It ends in sampling
    graphs with about the probability that noise of the answers' scales, raised to a power, gives the answers.

    Answers that noise swamps are first moved to what the degrees and the answers beside them let one expect (see
    `smoothed`, `shrunken` and `believed` in `measured.py`).

    Args:
        measurements: What `graphs.measure` or `graphs.measure_pairs` released; or plain numbers.
        seed: Seed or generator; the same seed gives the same graphs.
        steps: Swaps that each chain proposes. By default 600 for each edge and at least thirty million; of a
            bipartite graph 200 for each pair and at least ten million; and up to four times as many, until R-hat is at
            most 1.1 (`r_hat` tells whether that was reached): ten seconds to a minute for 10,000 edges, a minute to six
            for 100,000.
        chains: How many chains are run, one after the other; `r_hat` tells whether they agree.

    Raises:
        PlanError: It is not what was measured of a graph, or its degrees are larger than the search has room for.
        ExtraError: networkx is not there, for graphs that are not bipartite; or there are no compiled kernels.
    """
    if not isinstance(measurements, Measurements | PairMeasurements):
        seen = type(measurements).__name__
        raise PlanError(
            f"graphs.fit(measurements): takes what graphs.measure or measure_pairs returns; found a {seen}."
        )
    ready("graphs.fit(...)")
    rng, bipartite = np.random.default_rng(seed), isinstance(measurements, PairMeasurements)
    kind: type[Chain[Any]] = BipartiteChain if bipartite else SimpleChain
    start, target = kind.begin(measurements, rng)
    size = len(start.graph.rows)
    wanted = steps if steps is not None else max(kind.steps * size, kind.least)
    with bar(f"fitting {kind.title}", chains * (wanted + (kind.mixing + JOINING) * size)) as done:
        runs = [_run(replace(start, rng=its), target, wanted, done) for its in rng.spawn(chains)]
    r_hat = settle(runs, target, None if steps is not None else wanted // BLOCKS)
    chain, begun, _ = runs[0]
    rest = (r_hat, chain.counts(), tuple(run[0] for run in runs), target)
    if isinstance(measurements, PairMeasurements):
        pairs, seed_pairs, chance = (SyntheticPairs.like(graph) for graph in (chain.now, begun, start.graph))
        return PairFit(measurements, pairs, seed_pairs, *rest, chance)
    made, seeded = (SyntheticGraph.like(graph) for graph in (chain.now, begun))
    return GraphFit(measurements, made, seeded, *rest, chain.crowded)


_Run = tuple[Any, Any, list[Summary | PairSummary]]
"""A chain, the graph that it began with, and what it went through after it had cooled."""


def _run(chain: Chain[Any], target: Target, steps: int, done: Any) -> _Run:
    size = len(chain.graph.rows)

    def walk(aim: Target, proposals: int, wedges: float = 0.5) -> None:
        chain.walk(aim, proposals, wedges)
        if done is not None:
            done(proposals)

    if chain.mixing:
        walk(target.times(0), chain.mixing * size, 0.0)
    walk(target.times(1, rest=False), JOINING * size)
    begun, trace = chain.now, []
    for block in range(BLOCKS):
        heat = max(0.0, 1 - (block + 1) / COOLING)
        walk(target.times(HOT**-heat), steps * (block + 1) // BLOCKS - steps * block // BLOCKS)
        if block >= COOLING:
            trace.append(chain.summary())
    return chain, begun, trace


def settle(runs: Sequence[_Run], target: Target, steps: int | None) -> Mapping[str, float]:
    """R-hat of what chains went through; they go on while they do not agree, each time as far as since they had cooled.

    Args:
        runs: Of each chain where it is, the graph that it began with, and what it went through.
        target: What they look for.
        steps: Swaps of a block by which they go on; None where they must not.
    """
    most = len(runs[0][2]) + (LONGEST - 1) * BLOCKS
    r_hat = _agreement(runs)
    while steps is not None and max(r_hat.values(), default=1.0) > SETTLED and len(runs[0][2]) < most:
        more = min(len(runs[0][2]), most - len(runs[0][2]))
        with bar("letting chains settle", len(runs) * more) as done:
            for chain, _, trace in runs:
                for _ in range(more):
                    chain.walk(target, steps)
                    trace.append(chain.summary())
                    if done is not None:
                        done(1)
        r_hat = _agreement(runs)
    return r_hat


def _agreement(runs: Sequence[_Run]) -> Mapping[str, float]:
    """R-hat of what the chains went through, the first half left out where they went on."""
    last = max(len(runs[0][2]) // 2, BLOCKS - COOLING)
    traces = {
        name: np.array([[getattr(summary, name) for summary in run[2][-last:]] for run in runs])
        for name in runs[0][0].traced
    }
    return {name: split_r_hat(trace.astype(float)) for name, trace in traces.items()}


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
