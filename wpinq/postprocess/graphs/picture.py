"""The picture of a fitted graph: degrees, joint degrees and triangles, measured, true, of the seed and fitted."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.graphs.counts import Fine, Floats, Graph, Ints, joint, middle, shares
from wpinq.postprocess.graphs.measured import Measurements, Noisy
from wpinq.postprocess.graphs.synthetic import Summary
from wpinq.postprocess.shown import beside_noise, whose
from wpinq.postprocess.style import BAND, FAINT, FITTED, GRID, INK, NOISY, TRUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from wpinq.postprocess.picture import Picture

CELLS = 150
"""So many pairs or triples of degrees are drawn."""


def plot_graphs(
    measured: Measurements, seed: Graph, fitted: Graph, path: str | Path | None, truth: npt.ArrayLike | None
) -> Picture:
    """Draw what was measured of a graph beside what the seed and the fitted graph have, and the truth where given."""
    from wpinq.postprocess.picture import Picture

    graphs: dict[str, tuple[Graph, dict[str, Any]]] = {
        "seed": (seed, {"color": BAND, "marker": "v"}),
        "fitted": (fitted, {"color": FITTED, "marker": "o"}),
    }
    if truth is not None:
        graphs["true"] = (Graph.of(truth), {"color": TRUE, "marker": "x"})
    fine = {"pairs": measured.joint_degrees, "triangles": measured.triangles_by_degree}
    by_degree = {name: answers for name, answers in fine.items() if answers is not None}
    many = 3 + len(by_degree)
    picture = Picture(figsize=(12.5 / 3 * many, 4.9), layout="constrained")
    panels = picture.subplots(1, many)
    shown = {name: (graph.degrees, style["color"]) for name, (graph, style) in graphs.items() if name != "seed"}
    draw_degrees(panels[0], measured.degrees, shown, "nodes")  # those of the seed are those of the fitted graph
    buckets = max(int(max(graph.degrees, default=1)).bit_length() for graph, _ in graphs.values())
    _triangles(panels[1], measured.triangles, graphs, buckets)
    _joint(panels[2], measured.joint, graphs, buckets)
    for panel, (name, answers) in zip(panels[3:], by_degree.items(), strict=True):
        cells = Fine(pairs=answers.degrees) if name == "pairs" else Fine(triples=answers.degrees)
        weights = {graph: cells.counts(Graph(made.edges, made.nodes)) for graph, (made, _) in graphs.items()}
        draw_cells(panel, answers.values.ravel(), answers.scale, weights, graphs)
        panel.set(xlabel=f"degrees of {name}, by what is fitted", ylabel=f"weight of {name}", yscale="symlog")
    size = f"A synthetic graph of {fitted.nodes:,} nodes and {len(fitted.edges):,} edges"
    return framed(picture, size, [_caption(name, graph) for name, (graph, _) in graphs.items()], measured.about, path)


def framed(picture: Picture, size: str, lines: list[str], about: Any, path: str | Path | None) -> Picture:
    """A picture of graphs with its grid, heading and caption, written where a path is given.

    Args:
        picture: With all that is drawn in its panels.
        size: How large the fitted graph is.
        lines: A line for each graph.
        about: What describes the answers; what is not in them stands below.
        path: Where to write it.
    """
    for panel in picture.axes:
        panel.grid(color=GRID, linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=8)
    if about is not None:
        size, lines = f"{size}\n{whose(about)}", [*lines, *textwrap.wrap(beside_noise(about["beside noise"]), 170)]
    picture.suptitle(size, fontsize=11, color=INK)
    picture.supxlabel("\n".join(lines), fontsize=8, color=FAINT)
    if path is not None:
        picture.write(path)
    return picture


def _caption(name: str, graph: Graph) -> str:
    summary = Summary.of(graph.edges, graph.at_nodes(), graph.degrees)
    return (
        f"{name}: {summary.edges:,} edges, {summary.triangles:,} triangles, clustering {summary.clustering:.3f}, "
        f"on average {summary.average_clustering:.3f}, assortativity {summary.assortativity:+.3f}"
    )


def draw_degrees(panel: Axes, fit: Fit, graphs: Mapping[str, tuple[Ints, str]], nodes: str) -> None:
    """A released degree distribution beside those of some graphs.

    Args:
        panel: Where it is drawn.
        fit: The released one.
        graphs: The degrees of each graph, and its colour.
        nodes: What the nodes are called.
    """
    noisy = np.asarray(fit.noisy_cdf, float)
    at = np.arange(1, len(noisy) + 1)
    panel.scatter(at[noisy > 0], noisy[noisy > 0], s=7, color=NOISY, label="measured", zorder=1)
    for name, (degrees, color) in graphs.items():
        heights = np.cumsum(np.bincount(degrees)[::-1])[::-1][1:]
        panel.plot(np.arange(1, len(heights) + 1), heights, color=color, linewidth=1.2, label=name)
    panel.set(xscale="log", yscale="log", xlabel="degree", ylabel=f"{nodes} with that degree or more", ylim=(0.7, None))


def _triangles(panel: Axes, noisy: Noisy | None, graphs: dict[str, Any], buckets: int) -> None:
    at = np.arange(buckets)
    if noisy is not None:
        draw_noisy(panel, at, noisy.values[:buckets], noisy.scale)
    for name, (graph, style) in graphs.items():
        weights = middle(graph.at_nodes(), graph.degrees, shares(graph.degrees, buckets))
        panel.plot(at, weights, linewidth=1, markersize=5, label=name, fillstyle="none", **style)
    panel.set_xticks(at, [f"{2**i:,}" for i in at], fontsize=8)
    panel.set(xlabel="degree, from", ylabel="weight of triangles at nodes")


def _joint(panel: Axes, noisy: Noisy | None, graphs: dict[str, Any], buckets: int) -> None:
    upper = np.triu_indices(buckets)
    weights = {name: joint(graph.edges, shares(graph.degrees, buckets))[upper] for name, (graph, _) in graphs.items()}
    values = None if noisy is None else padded(noisy.values, (buckets, buckets))[upper]
    draw_cells(panel, values, 0.0 if noisy is None else noisy.scale, weights, graphs)
    panel.set(xlabel="pairs of buckets, by what is fitted", ylabel="weight of edges")


def padded(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Answers for so many rows and columns; 0 where none was asked."""
    cells = np.zeros(shape)
    part = tuple(slice(0, min(pair)) for pair in zip(shape, values.shape, strict=True))
    cells[part] = values[part]
    return cells


def draw_cells(
    panel: Axes, values: Floats | None, scale: float, weights: dict[str, Floats], graphs: Mapping[str, Any]
) -> None:
    """The cells of a query that weigh most on the fitted graph, in falling order: as measured, and of some graphs.

    Args:
        panel: Where they are drawn.
        values: What was measured, or None.
        scale: Of its noise.
        weights: What the cells weigh on each graph.
        graphs: How each is drawn, beside itself.
    """
    order = np.argsort(-weights["fitted"], kind="stable")[:CELLS]
    at = np.arange(len(order))
    if values is not None:
        draw_noisy(panel, at, values[order], scale)
    for name, cells in weights.items():
        marks: dict[str, Any] = {"linestyle": "none", "markersize": 4, "fillstyle": "none", "label": name}
        panel.plot(at, cells[order], **marks, **graphs[name][1])


def draw_noisy(panel: Axes, at: Any, values: Floats, scale: float) -> None:
    """What was measured, with the interval that noise is in with probability 0.9."""
    width = scale * np.log(10)
    panel.errorbar(at, values, yerr=width, fmt="s", markersize=4, color=NOISY, label="measured", elinewidth=1, zorder=1)
