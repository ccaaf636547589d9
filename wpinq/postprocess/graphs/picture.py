"""The picture of a fitted graph: degrees, joint degrees, triangles or butterflies, as measured, true and fitted."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wpinq.html.numbers import beside_noise, whose
from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.graphs import pair_counts
from wpinq.postprocess.graphs.chain import S
from wpinq.postprocess.graphs.counts import Fine, Floats, Ints, buckets_of, joint, middle, shares
from wpinq.postprocess.graphs.measured import BEYOND, Measurements, Noisy, PairMeasurements, common
from wpinq.postprocess.graphs.synthetic import PairSummary, Summary
from wpinq.postprocess.style import BAND, FAINT, FITTED, GRID, INK, NOISY, TRUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from wpinq.postprocess.picture import Picture

BY_FIT = "{}, by what is fitted"
CELLS = 150
"""So many pairs or triples of degrees are drawn."""


Drawn = dict[str, tuple[Any, dict[str, Any]]]
"""Graphs by name, and how each is drawn."""


def plot_graphs(
    measured: Measurements | PairMeasurements,
    chance: tuple[str, S],
    fitted: S,
    path: str | Path | None,
    truth: npt.ArrayLike | None,
) -> Picture:
    """Draw what was measured beside what the fitted graph has, one that tells less, and the true one where given.

    Args:
        measured: What was released.
        chance: The graph that tells less, and its name; its degrees are those of the fitted one.
        fitted: The fitted graph.
        path: Where to write the picture; None writes nothing.
        truth: The edges of the true graph, or its pairs.
    """
    name, first = chance
    graphs: Drawn = {
        name: (first, {"color": BAND, "marker": "v"}),
        "fitted": (fitted, {"color": FITTED, "marker": "o"}),
    }
    if truth is not None:
        graphs["true"] = (type(fitted).of(truth), {"color": TRUE, "marker": "x"})
    if isinstance(measured, PairMeasurements):
        picture, size = _pairs(measured, graphs), f"bipartite graph of {len(fitted.rows):,} pairs"
    else:
        picture, size = _simple(measured, graphs), fitted.title
    for panel in picture.axes:
        panel.grid(color=GRID, linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=8)
    heading, lines = f"A synthetic {size}", [_caption(name, graph.summary()) for name, (graph, _) in graphs.items()]
    if (about := measured.about) is not None:
        heading = f"{heading}\n{whose(about)}"
        lines += textwrap.wrap(beside_noise(about["beside noise"]), 170)
    picture.suptitle(heading, fontsize=11, color=INK)
    picture.supxlabel("\n".join(lines), fontsize=8, color=FAINT)
    if path is not None:
        picture.write(path)
    return picture


def _simple(measured: Measurements, graphs: Drawn) -> Picture:
    from wpinq.postprocess.picture import Picture

    fine = {"pairs": measured.joint_degrees, "triangles": measured.triangles_by_degree}
    by_degree = {name: answers for name, answers in fine.items() if answers is not None}
    many = 3 + len(by_degree)
    picture = Picture(figsize=(12.5 / 3 * many, 4.9), layout="constrained")
    panels = picture.subplots(1, many)
    _degrees(panels[0], measured.degrees, {name: graph.degrees for name, (graph, _) in graphs.items()}, graphs, "nodes")
    buckets = max(int(max(graph.degrees, default=1)).bit_length() for graph, _ in graphs.values())
    _triangles(panels[1], measured.triangles, graphs, buckets)
    upper = np.triu_indices(buckets)
    weights = {name: joint(graph.edges, shares(graph.degrees, buckets))[upper] for name, (graph, _) in graphs.items()}
    values = None if measured.joint is None else _padded(measured.joint.values, (buckets, buckets))[upper]
    _cells(panels[2], values, measured.joint, weights, graphs)
    panels[2].set(xlabel=BY_FIT.format("pairs of buckets"), ylabel="weight of edges")
    for panel, (name, answers) in zip(panels[3:], by_degree.items(), strict=True):
        cells = Fine(pairs=answers.degrees) if name == "pairs" else Fine(triples=answers.degrees)
        weights = {title: cells.counts(graph) for title, (graph, _) in graphs.items()}
        _cells(panel, answers.values.ravel(), answers, weights, graphs)
        panel.set(xlabel=BY_FIT.format(f"degrees of {name}"), ylabel=f"weight of {name}", yscale="symlog")
    return picture


def _pairs(measured: PairMeasurements, graphs: Drawn) -> Picture:
    from wpinq.postprocess.picture import Picture

    picture = Picture(figsize=(15, 4.9), layout="constrained")
    panels = picture.subplots(1, 4)
    for side, (name, fit) in enumerate((("left", measured.left), ("right", measured.right))):
        degrees = {title: graph.degrees[side] for title, (graph, _) in graphs.items()}
        _degrees(panels[side], fit, degrees, graphs, f"{name} nodes")
    left, right = (max(buckets_of(graph.degrees[side]) for graph, _ in graphs.values()) for side in (0, 1))
    slices, weights = {}, {}
    for name, (graph, _) in graphs.items():
        ours, theirs = (shares(degrees, many) for degrees, many in zip(graph.degrees, (left, right), strict=True))
        slices[name] = pair_counts.by_slice(graph, theirs, right + BEYOND).sum(axis=0)
        weights[name] = pair_counts.joint(graph, ours, theirs).ravel()
    _slices(panels[2], measured.butterflies, graphs, slices)
    values = None if measured.joint is None else _padded(measured.joint.values, (left, right)).ravel()
    _cells(panels[3], values, measured.joint, weights, graphs)
    panels[3].set(xlabel=BY_FIT.format("pairs of buckets"), ylabel="weight of pairs")
    return picture


def _caption(name: str, summary: Summary | PairSummary) -> str:
    if isinstance(summary, PairSummary):
        return (
            f"{name}: {summary.pairs:,} pairs of {summary.lefts:,} and {summary.rights:,} nodes, "
            f"{summary.butterflies:,} butterflies, clustering {summary.clustering:.3f}, "
            f"assortativity {summary.assortativity:+.3f}"
        )
    return (
        f"{name}: {summary.edges:,} edges, {summary.triangles:,} triangles, clustering {summary.clustering:.3f}, "
        f"on average {summary.average_clustering:.3f}, assortativity {summary.assortativity:+.3f}"
    )


def _degrees(panel: Axes, fit: Fit, degrees: dict[str, Ints], graphs: Drawn, nodes: str) -> None:
    """A released degree distribution beside those of graphs, but the first, whose degrees are those of the fitted."""
    noisy = np.asarray(fit.noisy_cdf, float)
    at = np.arange(1, len(noisy) + 1)
    panel.scatter(at[noisy > 0], noisy[noisy > 0], s=7, color=NOISY, label="measured", zorder=1)
    for name in list(graphs)[1:]:
        heights = np.cumsum(np.bincount(degrees[name])[::-1])[::-1][1:]
        panel.plot(np.arange(1, len(heights) + 1), heights, color=graphs[name][1]["color"], linewidth=1.2, label=name)
    panel.set(xscale="log", yscale="log", xlabel="degree", ylabel=f"{nodes} with that degree or more", ylim=(0.7, None))


def _triangles(panel: Axes, noisy: Noisy | None, graphs: Drawn, buckets: int) -> None:
    at = np.arange(buckets)
    if noisy is not None:
        _noisy(panel, at, noisy.values[:buckets], noisy.scale)
    for name, (graph, style) in graphs.items():
        weights = middle(graph.at_nodes(), graph.degrees, shares(graph.degrees, buckets))
        panel.plot(at, weights, linewidth=1, markersize=5, label=name, fillstyle="none", **style)
    panel.set_xticks(at, [f"{2**i:,}" for i in at], fontsize=8)
    panel.set(xlabel="degree, from", ylabel="weight of triangles at nodes")


def _slices(panel: Axes, noisy: Noisy | None, graphs: Drawn, slices: dict[str, Floats]) -> None:
    """What right nodes share, of all buckets together: their noises add up in squares."""
    at = np.arange(max(map(len, slices.values())))
    if noisy is not None:
        values = np.zeros(len(at))
        sums = noisy.values.sum(axis=0)[: len(at)]
        values[: len(sums)] = sums
        _noisy(panel, at, values, noisy.scale * np.sqrt(len(noisy.values)))
    for name, weights in slices.items():
        style = graphs[name][1]
        panel.plot(at, weights, linewidth=1, markersize=5, label=name, fillstyle="none", **style)
    panel.set_xticks(at[::3], [f"{2.0 ** (k - 4):,.2g}" for k in at[::3]], fontsize=8)
    panel.set(xlabel="what two right nodes share, up to", ylabel="weight of such nodes", yscale="symlog")


def _padded(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Answers for so many rows and columns; 0 where none was asked."""
    cells, part = np.zeros(shape), common(shape, values.shape)
    cells[part] = values[part]
    return cells


def _cells(panel: Axes, values: Floats | None, noisy: Noisy | None, weights: dict[str, Floats], graphs: Drawn) -> None:
    """The cells of a query that weigh most on the fitted graph, in falling order: as measured, and of some graphs.

    Args:
        panel: Where they are drawn.
        values: What was measured of them, or None.
        noisy: The answers that they are of.
        weights: What the cells weigh on each graph.
        graphs: How each is drawn, beside itself.
    """
    order = np.argsort(-weights["fitted"], kind="stable")[:CELLS]
    at = np.arange(len(order))
    if values is not None and noisy is not None:
        _noisy(panel, at, values[order], noisy.scale)
    for name, cells in weights.items():
        marks: dict[str, Any] = {"linestyle": "none", "markersize": 4, "fillstyle": "none", "label": name}
        panel.plot(at, cells[order], **marks, **graphs[name][1])


def _noisy(panel: Axes, at: Any, values: Floats, scale: float) -> None:
    """What was measured, with the interval that noise is in with probability 0.9."""
    width = scale * np.log(10)
    panel.errorbar(at, values, yerr=width, fmt="s", markersize=4, color=NOISY, label="measured", elinewidth=1, zorder=1)
