"""The picture of a fit: noisy values, fitted staircase, its band, and the truth where it is known, on log-log axes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wpinq.errors import SourceError
from wpinq.postprocess.degrees.path import conjugate
from wpinq.postprocess.style import BAND, FAINT, FITTED, GRID, INK, NOISY, TRUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from wpinq.postprocess.picture import Picture

Floats = NDArray[np.float64]

POINTS = 700  # drawn in one panel, evenly spaced on the logarithmic axis
BOTTOM = 0.7  # where the axes begin; whatever is smaller is not seen
LEVEL = 0.9
CUT: dict[str, Any] = {"color": INK, "linestyle": (0, (1, 2)), "linewidth": 1.2, "zorder": 2}


class Drawable(Protocol):
    """What is read of a fit."""

    @property
    def cdf(self) -> ArrayLike:
        """Number of items of degree at least k, for k = 1, 2, ..."""

    @property
    def sequence(self) -> ArrayLike:
        """Degree of each item, largest first."""

    @property
    def noisy_cdf(self) -> ArrayLike:
        """What was observed of the one."""

    @property
    def noisy_sequence(self) -> ArrayLike:
        """What was observed of the other."""

    def band(self, level: float, of: Literal["cdf", "sequence"]) -> tuple[ArrayLike, ArrayLike]:
        """Low and high values of the columns, or of the rows."""


def plot_fit(
    fit: Drawable, path: str | Path | None = None, truth: ArrayLike | None = None, title: str | None = None, *,
    notes: Sequence[str] = (), cut: float | None = None,
) -> Picture:  # fmt: skip
    """Draw a fit as two panels: the cumulative degrees and the degrees by rank.

    The bands hold for each k, or rank, alone. Noisy values that a logarithmic axis cannot hold are left out, and the
    caption counts them; of long curves a few hundred points are drawn, evenly spaced along the axis. Giving
    `truth` publishes it, since it was not released.

    Args:
        fit: A fit; it holds released numbers only.
        path: A `.png`, `.svg` or `.pdf` file, which appears whole or not at all; without it none is written.
        truth: Entry k - 1 is the true number of items of degree at least k, where that is public.
        title: Heading; the fit's size when there is none.
        notes: What must be known beside the numbers.
        cut: The degree that no item can pass, since contributions are bounded.

    Returns:
        The figure, which a notebook shows.

    Raises:
        SourceError: The suffix is unknown, the path cannot be written, or `truth` is not a nonincreasing row of counts.
    """
    true_cdf = None if truth is None else _true_cdf(truth)
    figure = draw(fit, true_cdf, title, notes=notes, cut=cut)
    if path is not None:
        figure.write(path)
    return figure


def draw(
    fit: Drawable, true_cdf: NDArray[np.int64] | None = None, title: str | None = None, *, notes: Sequence[str] = (),
    cut: float | None = None,
) -> Picture:  # fmt: skip
    """Make the figure, without pyplot and so without any global state."""
    from wpinq.postprocess.picture import Picture

    cdf, sequence, noisy_cdf, noisy_sequence = (
        np.asarray(item, dtype=np.float64) for item in (fit.cdf, fit.sequence, fit.noisy_cdf, fit.noisy_sequence)
    )
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08, wspace=0.04)
    figure = Picture(figsize=(11, 5.2), layout=layout, facecolor="white")
    left, right = figure.subplots(1, 2)
    true_sequence = None if true_cdf is None else conjugate(true_cdf)
    _panel(left, "noisy CDF", noisy_cdf, cdf, true_cdf)
    _panel(right, "noisy sequence", noisy_sequence, sequence, true_sequence)
    if len(noisy_cdf):
        _band(left, fit.band(LEVEL, "cdf"))
        _band(right, fit.band(LEVEL, "sequence"))
    if cut is not None:
        left.axvline(cut, label=f"bound: at most {cut:g}", **CUT)
        right.axhline(cut, label=f"bound: at most {cut:g}", **CUT)
    _label(left, "degree k", "items of degree at least k")
    _label(right, "rank of the item", "degree of the item")
    heading = title or f"{len(sequence):,} items, {int(sequence.sum()):,} records"
    figure.suptitle(heading, x=0.012, ha="left", fontsize=14, color=INK, parse_math=False)
    drawn = [_left_out(left, "CDF", noisy_cdf, cdf), _left_out(right, "sequence", noisy_sequence, sequence)]
    if cut is not None:
        drawn.append(f"Contributions are bounded, so no item has more than {cut:g} records: what was beyond is cut.")
    caption = "\n".join(textwrap.fill(line, 170) for line in (*drawn, *notes) if line)
    figure.supxlabel(caption, x=0.012, ha="left", fontsize=8.5, color=FAINT, parse_math=False)
    return figure


def draw_cdf(noisy: ArrayLike, cdf: ArrayLike, band: tuple[ArrayLike, ArrayLike], title: str) -> Picture:
    """The left panel alone, of what a server tells of a fit: items of degree at least k, with a 90% band."""
    from wpinq.postprocess.picture import Picture

    figure = Picture(figsize=(8, 5.2), layout="constrained", facecolor="white")
    axes = figure.subplots()
    points, fitted = np.asarray(noisy, dtype=np.float64), np.asarray(cdf, dtype=np.float64)
    _panel(axes, "noisy CDF", points, fitted, None)
    _band(axes, band)
    _label(axes, "degree k", "items of degree at least k")
    figure.suptitle(title, x=0.012, ha="left", fontsize=14, color=INK, parse_math=False)
    return figure


def _panel(axes: Axes, name: str, noisy: Floats, fitted: Floats, true: NDArray[np.int64] | None) -> None:
    """Set both axes, then draw points, staircase and truth."""
    curves = [fitted] if true is None else [fitted, true.astype(np.float64)]
    shown = curves if any(len(curve) for curve in curves) else [noisy]
    axes.set(xscale="log", yscale="log")
    axes.set_xlim(BOTTOM, 1.5 * max(3, *map(len, shown)))
    axes.set_ylim(BOTTOM, 1.6 * max(3.0, *(curve.max(initial=0) for curve in shown)))
    _points(axes, name, noisy)
    if len(fitted):
        x, y = _steps(fitted, closed=True)
        axes.plot(x, y, color=FITTED, linewidth=1.6 if len(x) > 100 else 2.4, zorder=3, label="fit")
    else:
        axes.text(0.5, 0.5, "the fit has no items", transform=axes.transAxes, ha="center", color=FAINT)
    if true is not None and len(true):
        x, y = _steps(true.astype(np.float64), closed=True)
        axes.plot(x, y, color=TRUE, linewidth=1.0, linestyle=(0, (3, 3)), zorder=4, label="truth")


def _points(axes: Axes, name: str, noisy: Floats) -> None:
    """Draw noisy values: few ones large and over the lines, many small and below them."""
    where = _spread(len(noisy))
    where = where[noisy[where] > 0]
    if not len(where):
        return
    few = len(where) <= 60
    axes.scatter(
        where + 1,
        noisy[where],
        s=42 if few else 11,
        color=NOISY,
        edgecolors="white",
        linewidths=0.8 if few else 0,
        alpha=1 if few else 0.6,
        zorder=5 if few else 1,
        label=name,
    )


def _band(axes: Axes, band: tuple[ArrayLike, ArrayLike]) -> None:
    """Shade the region between two staircases."""
    low, high = (np.asarray(item, dtype=np.float64) for item in band)
    if len(high):
        x, below, above = _steps(low, high)
        axes.fill_between(x, below, above, color=BAND, alpha=0.35, lw=0, zorder=2, label=f"{LEVEL:.0%} band")


def _label(axes: Axes, x: str, y: str) -> None:
    """Name and style one panel."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    axes.set_xlabel(x, fontsize=11, color=INK)
    axes.set_ylabel(y, fontsize=11, color=INK)
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 150 * low else (1,), numticks=12))
        axis.set_major_formatter(EngFormatter(sep=""))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="both", color=GRID, labelcolor=INK, labelsize=10)
    axes.grid(visible=True, which="major", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#999999")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", fontsize=10, labelcolor=INK, framealpha=0.9, edgecolor="none")


def _steps(*curves: Floats, closed: bool = False) -> tuple[Floats, ...]:
    """Corners of staircases: k takes the place from k - 1/2 to k + 1/2; `closed` ones end on the axis.

    >>> [one.tolist() for one in _steps(np.array([5.0, 2.0, 2.0]))]
    [[0.5, 1.5, 1.5, 3.5], [5.0, 5.0, 2.0, 2.0]]
    """
    size = len(curves[0])
    changes = np.flatnonzero(np.logical_or.reduce([np.diff(curve) != 0 for curve in curves])) + 1
    if len(changes) > 4 * POINTS:
        changes = changes[_spread(len(changes), 4 * POINTS)]
    bounds = np.concatenate([[0], changes, [size]])
    x = np.repeat(bounds + 0.5, 2)[1:-1]
    corners = [np.repeat(np.maximum(curve[bounds[:-1]], BOTTOM / 10), 2) for curve in curves]
    if closed:
        x, corners = np.append(x, x[-1]), [np.append(corner, BOTTOM / 10) for corner in corners]
    return x, *corners


def _spread(size: int, most: int = POINTS) -> NDArray[np.int64]:
    """At most about `most` positions, all of the first and evenly spaced on a logarithmic axis after them."""
    if size <= most:
        return np.arange(size)
    return np.unique(np.geomspace(1, size, most).astype(np.int64)) - 1


def _left_out(axes: Axes, name: str, noisy: Floats, fitted: Floats) -> str:
    """Say what of the noisy values in the range shown is not drawn."""
    inside = noisy[: int(axes.get_xlim()[1])]
    gone = int((inside <= 0).sum())
    zero = f", {gone:,} of them zero or less, which has no place on a log axis" if gone else ""
    thinned = "; long rows of points are thinned evenly" if len(noisy) > POINTS else ""
    short = "; the fit beyond them follows from the other panel" if 0 < len(noisy) < len(fitted) else ""
    return f"Noisy {name}: {len(inside):,} values{zero}{thinned}{short}."


def _true_cdf(truth: ArrayLike) -> NDArray[np.int64]:
    """Read a true curve, without the zeros at its end."""
    raw: NDArray[Any] = np.asarray(truth)
    if raw.ndim == 1 and raw.dtype.kind in "iuf" and np.isfinite(raw).all():
        whole = raw.astype(np.int64)
        if (whole == raw).all() and (np.diff(whole) <= 0).all() and (whole >= 0).all():
            return whole[whole > 0]
    if raw.size == 0:
        return np.empty(0, dtype=np.int64)
    raise SourceError("plot(truth=...): give the number of items of degree at least 1, 2, ...: never more than before.")
