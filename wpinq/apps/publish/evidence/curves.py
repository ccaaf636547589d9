"""Curves of released numbers over time as SVG: a line with its band, which needs no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from wpinq.html.numbers import six

BLUE, SKY = "#0072b2", "#56b4e9"
"""Colours where no style sheet says others."""
DOTS = 60
"""Points that are marked one by one; of more the line is enough."""


@dataclass(frozen=True)
class Point:
    """A number of one period.

    Attributes:
        period: Its name.
        value: The number; None where the period has none.
        low, high: Where its interval begins and ends.
        at: Where it lies in time, on any scale; without it, points are equally far from each other.
    """

    period: str
    value: float | None
    low: float | None = None
    high: float | None = None
    at: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The interval, or the number itself where there is none."""
        value = self.value or 0.0
        return value if self.low is None else self.low, value if self.high is None else self.high


@dataclass(frozen=True)
class Size:
    """How large a picture is, in its own units, and how many names of periods it has room for."""

    wide: int
    high: int
    names: int


LARGE, SMALL = Size(400, 190, 3), Size(260, 110, 2)
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 12, 22
LETTER = 6.5
"""How wide a letter of a name is."""


def number(value: float | None) -> str:
    """A number for people.

    >>> [number(value) for value in (None, 12345.0, 0.51234567, -3.0)]
    ['', '12,345', '0.512346', '-3']
    """
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else six(value)


def measured(value: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """A number and its interval for people, to the hundredth part of how far the interval reaches.

    >>> measured(479.7012, 443.067, 516.189), measured(0.51234, 0.46, 0.56), measured(2911, 2905.0, 2917.0)
    (('480', '443 to 516'), ('0.512', '0.460 to 0.560'), ('2,911', '2,905 to 2,917'))
    """
    if low is None or high is None:
        return number(value), ""
    if value is not None and all(float(part).is_integer() for part in (value, low, high)):
        return number(value), f"{number(low)} to {number(high)}"
    half = (high - low) / 2
    digits = min(max(1 - math.floor(math.log10(half)), 0), 6) if 0 < half < math.inf else 6
    return "" if value is None else f"{value:,.{digits}f}", f"{low:,.{digits}f} to {high:,.{digits}f}"


def short(value: float) -> str:
    """A number for an axis.

    >>> [short(value) for value in (0, 950.0, 12500.0, 3e6, 0.25)]
    ['0', '950', '12.5k', '3M', '0.25']
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def ticks(low: float, high: float) -> list[float]:
    """Round numbers that enclose a range, from 0 on where it lies above.

    >>> ticks(130, 870)
    [0.0, 500.0, 1000.0]
    >>> ticks(-3, 4)
    [-4.0, -2.0, 0.0, 2.0, 4.0]
    >>> ticks(0, 6200)
    [0.0, 2000.0, 4000.0, 6000.0, 8000.0]
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if high == low:
        return [0.0, 1.0]
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [place * step for place in range(first, last + 1)]


def curve(points: Sequence[Point], size: Size, label: str) -> str:
    """A curve with its band; one period alone is a point with a whisker.

    Args:
        points: The periods, in order.
        size: How large it is.
        label: What it shows, for who cannot see it.
    """
    there = [point for point in points if point.value is not None]
    ends = [end for point in there for end in point.ends]
    axis = ticks(min(ends, default=0.0), max(ends, default=1.0))
    right, bottom = size.wide - RIGHT, size.high - BOTTOM
    across = _across(points, LEFT, right)

    def up(value: float) -> float:
        return bottom - (value - axis[0]) / (axis[-1] - axis[0]) * (bottom - TOP)

    parts = []
    for tick in axis:
        parts.append(f'<path class="grid" stroke="#ccc" d="M{LEFT} {up(tick):.1f}H{right}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    for run in _runs(points):
        xs = [f"{across[point.period]:.1f}" for point in run]
        highs = [f"{x} {up(point.ends[1]):.1f}" for x, point in zip(xs, run, strict=True)]
        lows = [f"{x} {up(point.ends[0]):.1f}" for x, point in zip(xs, run, strict=True)]
        values = [f"{x} {up(point.value or 0.0):.1f}" for x, point in zip(xs, run, strict=True)]
        if len(run) == 1:
            parts.append(f'<path class="whisker" stroke="{BLUE}" d="M{highs[0]}L{lows[0]}"/>')
        else:
            parts.append(f'<path class="band" fill="{SKY}" opacity=".35" d="M{"L".join([*highs, *reversed(lows)])}Z"/>')
            parts.append(f'<path class="line" fill="none" stroke="{BLUE}" d="M{"L".join(values)}"/>')
    if len(there) <= DOTS:
        for point in there:
            value, between = measured(point.value, point.low, point.high)
            title = f"{point.period}: {value} ({between})"
            parts.append(f'<circle cx="{across[point.period]:.1f}" cy="{up(point.value or 0.0):.1f}" r="2.5"><title>'
                         f"{escape(title)}</title></circle>")  # fmt: skip
    parts += _names(across, size)
    shape = f'viewBox="0 0 {size.wide} {size.high}" font-size="11" fill="currentColor"'
    head = f'<svg {shape} role="img" aria-label="{escape(label)}">'
    return f"{head}{''.join(parts)}</svg>"


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """Stretches of periods that have a number."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if point.value is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]


def _across(points: Sequence[Point], left: float, right: float) -> dict[str, float]:
    """How far to the right each period lies; a stretch between periods has no name."""
    at = [place if point.at is None else point.at for place, point in enumerate(points)]
    whole = at[-1] - at[0] if at else 0
    return {
        point.period: left + (right - left) * ((here - at[0]) / whole if whole else 0.5)
        for here, point in zip(at, points, strict=True)
        if point.period
    }


def _names(across: dict[str, float], size: Size) -> list[str]:
    """The names of the first period, of the last, and of some between them that have room."""
    if len(across) < 2:
        return [_name(period, x, size, "middle") for period, x in across.items()]
    (first, begin), (last, end) = list(across.items())[:: len(across) - 1]
    labels, taken = [_name(first, begin, size, "start")], begin + LETTER * len(first)
    for place in range(1, size.names - 1):
        wanted = begin + (end - begin) * place / (size.names - 1)
        name, x = min(across.items(), key=lambda item: abs(item[1] - wanted))
        half = LETTER * (len(name) + 2) / 2
        if taken < x - half and x + half < end - LETTER * len(last):
            labels.append(_name(name, x, size, "middle"))
            taken = x + half
    return [*labels, _name(last, end, size, "end")]


def _name(period: str, x: float, size: Size, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{size.high - 6}" text-anchor="{anchor}">{escape(period)}</text>'
