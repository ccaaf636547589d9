"""The picture of a bipartite graph: degrees, joint degrees and butterflies, measured, true, random and fitted."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wpinq.postprocess.bipartite.counts import PairGraph
from wpinq.postprocess.bipartite.measured import PairMeasurements
from wpinq.postprocess.bipartite.synthetic import PairSummary
from wpinq.postprocess.bipartite.walker import BEYOND, PairWalker
from wpinq.postprocess.fit import Fit
from wpinq.postprocess.graphs.measured import Noisy
from wpinq.postprocess.graphs.walker import buckets_of
from wpinq.postprocess.shown import beside_noise, whose
from wpinq.postprocess.style import BAND, FAINT, FITTED, GRID, INK, NOISY, TRUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from wpinq.postprocess.graphs.counts import Floats
    from wpinq.postprocess.picture import Picture

Drawn = dict[str, tuple[PairGraph, dict[str, Any]]]


def plot_pairs(
    asked: PairMeasurements, chance: PairGraph, fitted: PairGraph, path: str | Path | None, truth: npt.ArrayLike | None
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
    for side, fit in enumerate((asked.left, asked.right)):
        _degrees(panels[side], fit, graphs, side)
    largest = [max(buckets_of(graph.degrees[side]) for graph, _ in graphs.values()) for side in (0, 1)]
    shape = (largest[0], largest[1], largest[1] + BEYOND)
    size = shape[0] * shape[1]
    counts = {name: PairWalker(one, shape, np.random.default_rng(0)).counts() for name, (one, _) in graphs.items()}
    slices = {name: one[size:].reshape(shape[1:]).sum(axis=0) for name, one in counts.items()}
    _slices(panels[2], asked.butterflies, graphs, slices)
    _joint(panels[3], asked.joint, graphs, {name: one[:size] for name, one in counts.items()}, shape[:2])
    for panel in panels:
        panel.grid(color=GRID, linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=8)
    about = asked.about
    heading = f"A synthetic bipartite graph of {len(fitted.pairs):,} pairs"
    picture.suptitle(heading if about is None else f"{heading}\n{whose(about)}", fontsize=11, color=INK)
    picture.supxlabel(_caption(graphs, about), fontsize=8, color=FAINT)
    if path is not None:
        picture.write(path)
    return picture


def _caption(graphs: Drawn, about: Any) -> str:
    """A line for each graph, and what is not in the answers."""
    lines = []
    for name, (graph, _) in graphs.items():
        found = PairSummary.of(graph)
        lines.append(
            f"{name}: {found.pairs:,} pairs of {found.lefts:,} and {found.rights:,} nodes, {found.butterflies:,} "
            f"butterflies, clustering {found.clustering:.3f}, assortativity {found.assortativity:+.3f}"
        )
    return "\n".join(lines + (textwrap.wrap(beside_noise(about["beside noise"]), 170) if about is not None else []))


def _degrees(panel: Axes, fit: Fit, graphs: Drawn, side: int) -> None:
    noisy = np.asarray(fit.noisy_cdf, float)
    at = np.arange(1, len(noisy) + 1)
    panel.scatter(at[noisy > 0], noisy[noisy > 0], s=7, color=NOISY, label="measured", zorder=1)
    for name, (graph, style) in graphs.items():
        if name != "random":  # its degrees are those of the fitted graph
            heights = np.cumsum(np.bincount(graph.degrees[side])[::-1])[::-1][1:]
            panel.plot(np.arange(1, len(heights) + 1), heights, color=style["color"], linewidth=1.2, label=name)
    where = ("left", "right")[side]
    panel.set(xscale="log", yscale="log", xlabel="degree", ylabel=f"{where} nodes with that degree or more")
    panel.set(ylim=(0.7, None))


def _slices(panel: Axes, asked: Noisy | None, graphs: Drawn, slices: dict[str, Floats]) -> None:
    """What right nodes share, of all buckets together: their noises add up in squares."""
    at = np.arange(max(map(len, slices.values())))
    if asked is not None:
        values = np.zeros(len(at))
        found = asked.values.sum(axis=0)[: len(at)]
        values[: len(found)] = found
        _noisy(panel, at, values, asked.scale * np.sqrt(len(asked.values)))
    for name, weights in slices.items():
        style = graphs[name][1]
        panel.plot(at, weights, linewidth=1, markersize=5, label=name, fillstyle="none", **style)
    panel.set_xticks(at[::3], [f"{2.0 ** (k - 4):,.2g}" for k in at[::3]], fontsize=8)
    panel.set(xlabel="what two right nodes share, up to", ylabel="weight of such nodes", yscale="symlog")


def _joint(panel: Axes, asked: Noisy | None, graphs: Drawn, counts: dict[str, Floats], shape: tuple[int, ...]) -> None:
    at = np.arange(shape[0] * shape[1])
    order = np.argsort(-counts["fitted"], kind="stable")
    if asked is not None:
        values = np.zeros(shape)
        part = tuple(slice(0, min(pair)) for pair in zip(shape, asked.values.shape, strict=True))
        values[part] = asked.values[part]
        _noisy(panel, at, values.ravel()[order], asked.scale)
    for name, weights in counts.items():
        marks: dict[str, Any] = {"linestyle": "none", "markersize": 4, "fillstyle": "none", "label": name}
        panel.plot(at, weights[order], **marks, **graphs[name][1])
    panel.set(xlabel="pairs of buckets, by what is fitted", ylabel="weight of pairs")


def _noisy(panel: Axes, at: Any, values: Floats, scale: float) -> None:
    """What was measured, with the interval that noise is in with probability 0.9."""
    width = scale * np.log(10)
    panel.errorbar(at, values, yerr=width, fmt="s", markersize=4, color=NOISY, label="measured", elinewidth=1, zorder=1)
