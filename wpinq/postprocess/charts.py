"""Pictures of released tables: bars with whiskers for names, a line with a band for times and for whole numbers."""

from __future__ import annotations

import datetime as dt
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from wpinq.postprocess.style import BAND, FAINT, FITTED, GRID, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from wpinq.postprocess.picture import Picture

BARS = 40
"""Bars in one picture; the others are said to be left out."""
PANELS = 4
LEAST, BAR = 3.2, 0.19
"""Inches that a panel is high at least, and that each bar takes, so that labels do not overlap."""
WIDE = 72
"""Letters of a heading in one line, also where all are capitals."""


def chart(
    cells: pl.DataFrame, ends: Mapping[str, tuple[pl.Series, pl.Series]], title: str, notes: Sequence[str],
    path: str | os.PathLike[str] | None = None,
) -> Picture:  # fmt: skip
    """Draw a table of released numbers.

    Args:
        cells: One row for each group.
        ends: For each column of noisy numbers, where the interval of each begins and ends.
        title: Heading.
        notes: What must be known beside the numbers.
        path: A `.png`, `.svg` or `.pdf` file, which appears whole or not at all; none is written without it.

    Raises:
        SourceError: The suffix is unknown, or the path cannot be written.
    """
    from wpinq.postprocess.picture import Picture

    names = list(ends)[:PANELS]
    keys = [name for name in cells.columns if name not in ends]
    ordered = len(keys) == 1 and (isinstance(kind := cells.schema[keys[0]], pl.Date | pl.Datetime) or kind.is_integer())
    notes = [*notes]
    if not ordered and cells.height > BARS:
        notes.append(f"The first {BARS} of {cells.height:,} rows are drawn.")
        cells, ends = cells.head(BARS), {name: (low.head(BARS), high.head(BARS)) for name, (low, high) in ends.items()}
    panel = LEAST if ordered else max(LEAST, 0.6 + BAR * cells.height)
    size = 8, 1.6 + panel * max(len(names), 1)
    figure = Picture(figsize=size, layout="constrained", facecolor="white")
    for axes, name in zip(figure.subplots(len(names) or 1, squeeze=False)[:, 0], names, strict=False):
        draw = _line if ordered else _bars
        draw(axes, cells, keys, [series.to_numpy().astype(np.float64) for series in (cells[name], *ends[name])])
        _style(axes, name, vertical=ordered)
    heading = "\n".join(textwrap.fill(line, WIDE) for line in title.splitlines())
    figure.suptitle(heading, x=0.012, ha="left", fontsize=12, color=INK, parse_math=False)
    caption = "\n".join(textwrap.fill(note, 110) for note in notes)
    figure.supxlabel(caption, x=0.012, ha="left", fontsize=8.5, color=FAINT, parse_math=False)
    if path is not None:
        figure.write(path)
    return figure


def _bars(axes: Axes, cells: pl.DataFrame, keys: list[str], numbers: list[Any]) -> None:
    """Horizontal bars, the first row on top."""
    value, low, high = numbers
    names = [textwrap.shorten(", ".join("NULL" if label is None else str(label) for label in row), 40) for row in
             cells.select(keys).rows()] if keys else ["all"] * len(value)  # fmt: skip
    positions = np.arange(len(value))
    axes.barh(positions, value, color=BAND, height=0.7)
    axes.errorbar(value, positions, xerr=[np.maximum(value - low, 0), np.maximum(high - value, 0)], fmt="none",
                  ecolor=INK, elinewidth=1, capsize=3)  # fmt: skip
    axes.set_yticks(positions, names, parse_math=False)
    axes.invert_yaxis()


def _line(axes: Axes, cells: pl.DataFrame, keys: list[str], numbers: list[Any]) -> None:
    """A line in the order of the key, with a band."""
    key = cells[keys[0]]
    order = key.arg_sort().to_numpy()
    order = order[~key.is_null().to_numpy()[order]]
    x = key.to_numpy()[order]
    value, low, high = (values[order] for values in numbers)
    axes.fill_between(x, low, high, color=BAND, alpha=0.35, lw=0)
    axes.plot(x, value, color=FITTED, lw=1.4, marker=".", ms=5)
    if key.dtype.is_temporal():
        _keep_in_calendar(axes)
    axes.set_xlabel(keys[0], parse_math=False)


def _keep_in_calendar(axes: Axes) -> None:
    """Let no margin beside the line end before the year 1 or after 9999, where there are no times."""
    from matplotlib.dates import date2num

    low, high = date2num([dt.datetime.min, dt.datetime.max.replace(microsecond=0)])  # type: ignore[no-untyped-call]
    left, right = axes.get_xlim()
    axes.set_xlim(max(left, low), min(right, high))


def _style(axes: Axes, name: str, *, vertical: bool) -> None:
    (axes.set_ylabel if vertical else axes.set_xlabel)(name, fontsize=10, color=INK, parse_math=False)
    axes.grid(visible=True, axis="y" if vertical else "x", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelcolor=INK, labelsize=9)
