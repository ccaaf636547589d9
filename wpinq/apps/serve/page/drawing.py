"""Curves as SVG, which needs no script; with one, uPlot draws the same numbers so that one can zoom into them."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

from wpinq.apps.publish.evidence.curves import short

Curve = Sequence[float | int | None]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 380, 64, 40, 14, 14
MOST = 300
"""Places that are drawn of one curve."""
BELOW = 0.7
"""Where logarithmic axes begin."""


@dataclass(frozen=True)
class Axis:
    """Numbers as places of a picture.

    Attributes:
        low: The first number.
        high: The last.
        first: Where the first stands.
        last: Where the last stands.
        log: Whether equal steps are equal factors.
    """

    low: float
    high: float
    first: float
    last: float
    log: bool

    def __call__(self, value: float) -> str:
        """Where a number stands."""
        low, high, at = (math.log(max(number, 1e-9)) if self.log else number for number in (self.low, self.high, value))
        share = min(max((at - low) / (high - low), 0), 1)
        return f"{self.first + share * (self.last - self.first):.1f}"

    def ticks(self) -> list[float]:
        """Round numbers between both ends."""
        if self.log:
            decades = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if len(decades) < 3 else (1,)
            return [tick for decade in decades for step in steps if (tick := step * 10.0**decade) <= self.high]
        rough = (self.high - self.low) / 5
        step = 10 ** math.floor(math.log10(rough))
        step *= next(tick for tick in (1, 2, 5, 10) if tick * step >= rough)
        return [step * tick for tick in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def spread(size: int, most: int = MOST) -> list[int]:
    """Whole numbers from 1 to `size`: all of few, else so many that are evenly spaced on a logarithmic axis.

    >>> spread(3), len(spread(10**6)) <= MOST
    ([1, 2, 3], True)
    """
    if size <= most:
        return [*range(1, size + 1)]
    return [int(number) for number in np.unique(np.geomspace(1, size, most).astype(np.int64))]


def counts(x: Sequence[int], values: Curve, low: Curve, high: Curve, names: tuple[str, str]) -> Markup:
    """Noisy counts of a range, or of windows, with the interval around each."""
    return _figure(x, (low, high), {"line": values}, names, log=False)


def degrees(x: Sequence[int], noisy: Curve, fitted: Curve, low: Curve, high: Curve) -> Markup:
    """A degree distribution on two logarithmic axes: what was observed, and what fits, with its band."""
    names = ("degree k", "things of degree at least k")
    return _figure(x, (low, high), {"dots": noisy, "step": fitted}, names, log=True)


def spending(amounts: Sequence[float], whole: float) -> Markup:
    """What was spent after each question."""
    x = [*range(len(amounts) + 1)]
    curve = [0.0, *np.cumsum(amounts).tolist()]
    return _figure(x, ([], []), {"step": curve}, ("question", "epsilon spent"), log=False, top=whole)


def whisker(value: float, half: float, low: float, high: float) -> Markup:
    """One count with its interval, between the ends of a column of a table."""
    axis = Axis(low, high if high > low else low + 1, 4, 196, log=False)
    left, right = sorted((float(axis(0)), float(axis(value))))
    parts = [f'<rect class="bar" x="{left:.1f}" width="{right - left:.1f}" y="3" height="10"/>',
             f'<line class="ends" x1="{axis(value - half)}" x2="{axis(value + half)}" y1="8" y2="8"/>',
             f'<circle class="dot" cx="{axis(value)}" cy="8" r="2.5"/>']  # fmt: skip
    return Markup(f'<svg class="whisker" viewBox="0 0 200 16" aria-hidden="true">{"".join(parts)}</svg>')  # noqa: S704


def _figure(
    x: Sequence[int], band: tuple[Curve, Curve], curves: dict[str, Curve], names: tuple[str, str], *, log: bool,
    top: float = 0,
) -> Markup:  # fmt: skip
    (low, high), (across, up) = band, names
    every = [float(number) for curve in (low, high, *curves.values()) for number in curve if number is not None]
    most, least = max([*every, top, 1]), min([*every, 0])
    xs = Axis(BELOW, 1.5 * max(3, x[-1]), LEFT, WIDTH - RIGHT, log=True) if log else Axis(
        x[0], max(x[-1], x[0] + 1), LEFT, WIDTH - RIGHT, log=False)  # fmt: skip
    ys = Axis(BELOW, 1.6 * max(3, most), HEIGHT - BOTTOM, TOP, log=True) if log else Axis(
        least, most + 0.04 * (most - least), HEIGHT - BOTTOM, TOP, log=False)  # fmt: skip
    parts = [*_axes(xs, ys, across, up), _band(x, low, high, xs, ys)]
    parts += [_curve(kind, x, curve, xs, ys, log=log) for kind, curve in curves.items()]
    data = json.dumps({"x": x, "low": low, "high": high, **curves, "log": log, "across": across, "up": up, "top": top})
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(up)} by {escape(across)}">'
    figure = f'<figure class="plot" data-plot="{escape(data)}">{svg}{"".join(parts)}</svg></figure>'
    return Markup(figure)  # noqa: S704  numbers, and texts that are escaped


def _axes(xs: Axis, ys: Axis, across: str, up: str) -> list[str]:
    foot, parts = HEIGHT - BOTTOM, []
    for tick in ys.ticks():
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{ys(tick)}" y2="{ys(tick)}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 8}" y="{ys(tick)}" dy=".35em">{short(tick)}</text>')
    for tick in xs.ticks():
        if xs.log or tick == round(tick):
            parts.append(f'<line class="grid" x1="{xs(tick)}" x2="{xs(tick)}" y1="{TOP}" y2="{foot}"/>')
            parts.append(f'<text class="tick mid" x="{xs(tick)}" y="{foot + 17}">{short(tick)}</text>')
    parts.append(f'<text class="name mid" x="{(WIDTH + LEFT) // 2}" y="{HEIGHT - 4}">{escape(across)}</text>')
    parts.append(f'<text class="name" x="{LEFT + 4}" y="{TOP + 8}">{escape(up)}</text>')
    return parts


def _band(x: Sequence[int], low: Curve, high: Curve, xs: Axis, ys: Axis) -> str:
    there = [index for index, number in enumerate(low) if number is not None]
    if not there:
        return ""
    upper = _corners([(xs(x[at]), ys(float(high[at] or 0))) for at in there], steps=xs.log)
    lower = _corners([(xs(x[at]), ys(float(low[at] or 0))) for at in there], steps=xs.log)
    return f'<polygon class="band" points="{" ".join([*upper, *reversed(lower)])}"/>'


def _corners(points: list[tuple[str, str]], *, steps: bool) -> list[str]:
    """Points of a line, or of a staircase."""
    corners = [f"{at},{height}" for at, height in points[:1]]
    for (_, before), (at, height) in itertools.pairwise(points):
        corners += [f"{at},{before}", f"{at},{height}"] if steps else [f"{at},{height}"]
    return corners


def _curve(kind: str, x: Sequence[int], curve: Curve, xs: Axis, ys: Axis, *, log: bool) -> str:
    there = [(xs(at), ys(float(height))) for at, height in zip(x, curve, strict=True)
             if height is not None and (height > 0 or not log)]  # fmt: skip
    if kind == "dots":
        return "".join(f'<circle class="dot" cx="{at}" cy="{height}" r="2.6"/>' for at, height in there)
    points = " ".join(_corners(there, steps=kind == "step"))
    return f'<polyline class="line" points="{points}"/>'
