"""Search for graphs that give released answers: of one kind of nodes, or of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from wpinq.arguments import NOTHING, takes
from wpinq.postprocess.bipartite.fit import PairFit, fit_pairs
from wpinq.postprocess.bipartite.measured import PairMeasurements
from wpinq.postprocess.degrees.synthesis.synthesize import SEED
from wpinq.postprocess.graphs.fit import CHAINS, PROPOSALS, GraphFit
from wpinq.postprocess.graphs.fit import fit as fit_graph
from wpinq.postprocess.graphs.measured import Measurements

if TYPE_CHECKING:
    import numpy as np


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
