"""The picture of a bipartite graph: degrees, joint degrees and butterflies, measured, true, random and fitted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wpinq.postprocess.bipartite.counts import PairGraph
from wpinq.postprocess.bipartite.measured import PairMeasurements
from wpinq.postprocess.bipartite.synthetic import PairSummary
from wpinq.postprocess.bipartite.walker import BEYOND, PairWalker
from wpinq.postprocess.graphs.measured import Noisy
from wpinq.postprocess.graphs.picture import draw_cells, draw_degrees, draw_noisy, framed, padded
from wpinq.postprocess.graphs.walker import buckets_of
from wpinq.postprocess.style import BAND, FITTED, TRUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from wpinq.postprocess.graphs.counts import Floats
    from wpinq.postprocess.picture import Picture

Drawn = dict[str, tuple[PairGraph, dict[str, Any]]]


def plot_pairs(
    measured: PairMeasurements,
    chance: PairGraph,
    fitted: PairGraph,
    path: str | Path | None,
    truth: npt.ArrayLike | None,
) -> Picture:
    """Draw what was measured beside what a random graph and the fitted one have, and the truth where given."""
    from wpinq.postprocess.picture import Picture

    graphs: Drawn = {
        "random": (chance, {"color": BAND, "marker": "v"}),
        "fitted": (fitted, {"color": FITTED, "marker": "o"}),
    }
    if truth is not None:
        graphs["true"] = (PairGraph.of(truth), {"color": TRUE, "marker": "x"})
    picture = Picture(figsize=(15, 4.9), layout="constrained")
    panels = picture.subplots(1, 4)
    for side, (name, fit) in enumerate((("left", measured.left), ("right", measured.right))):
        others = {
            title: drawn for title, drawn in graphs.items() if title != "random"
        }  # whose degrees are the fitted ones
        shown = {title: (graph.degrees[side], style["color"]) for title, (graph, style) in others.items()}
        draw_degrees(panels[side], fit, shown, f"{name} nodes")
    largest = [max(buckets_of(graph.degrees[side]) for graph, _ in graphs.values()) for side in (0, 1)]
    shape = (largest[0], largest[1], largest[1] + BEYOND)
    size = shape[0] * shape[1]
    counts = {
        name: PairWalker(drawn_graph, shape, np.random.default_rng(0)).counts()
        for name, (drawn_graph, _) in graphs.items()
    }
    slices = {name: weights[size:].reshape(shape[1:]).sum(axis=0) for name, weights in counts.items()}
    _slices(panels[2], measured.butterflies, graphs, slices)
    _joint(panels[3], measured.joint, graphs, {name: weights[:size] for name, weights in counts.items()}, shape[:2])
    heading = f"A synthetic bipartite graph of {len(fitted.pairs):,} pairs"
    lines = [_caption(name, graph) for name, (graph, _) in graphs.items()]
    return framed(picture, heading, lines, measured.about, path)


def _caption(name: str, graph: PairGraph) -> str:
    summary = PairSummary.of(graph)
    return (
        f"{name}: {summary.pairs:,} pairs of {summary.lefts:,} and {summary.rights:,} nodes, {summary.butterflies:,} "
        f"butterflies, clustering {summary.clustering:.3f}, assortativity {summary.assortativity:+.3f}"
    )


def _slices(panel: Axes, noisy: Noisy | None, graphs: Drawn, slices: dict[str, Floats]) -> None:
    """What right nodes share, of all buckets together: their noises add up in squares."""
    at = np.arange(max(map(len, slices.values())))
    if noisy is not None:
        values = np.zeros(len(at))
        sums = noisy.values.sum(axis=0)[: len(at)]
        values[: len(sums)] = sums
        draw_noisy(panel, at, values, noisy.scale * np.sqrt(len(noisy.values)))
    for name, weights in slices.items():
        style = graphs[name][1]
        panel.plot(at, weights, linewidth=1, markersize=5, label=name, fillstyle="none", **style)
    panel.set_xticks(at[::3], [f"{2.0 ** (k - 4):,.2g}" for k in at[::3]], fontsize=8)
    panel.set(xlabel="what two right nodes share, up to", ylabel="weight of such nodes", yscale="symlog")


def _joint(panel: Axes, noisy: Noisy | None, graphs: Drawn, counts: dict[str, Floats], shape: tuple[int, ...]) -> None:
    values = None if noisy is None else padded(noisy.values, shape).ravel()
    draw_cells(panel, values, 0.0 if noisy is None else noisy.scale, counts, graphs)
    panel.set(xlabel="pairs of buckets, by what is fitted", ylabel="weight of pairs")
