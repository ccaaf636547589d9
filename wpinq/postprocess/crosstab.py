"""A cross table as an office prints it: spanning heads, totals, and below it how far noise moves the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import product
from typing import TYPE_CHECKING

from wpinq.html import parts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

STYLE = """\
body{margin:0;background:#fff}@media(prefers-color-scheme:dark){body{background:#15181c}}
.wpinq{max-width:72rem;margin:2rem auto;padding:0 1rem;font:16px/1.5 system-ui,sans-serif}
.wpinq .wide{overflow-x:auto}.wpinq .wide th{overflow-wrap:normal}
.wpinq caption{max-width:calc(100vw - 2rem);text-align:left;font-weight:600;font-size:1.15em;padding:0 0 .6em}
.wpinq td.n,.wpinq thead th.n{text-align:right;padding:.28em .6em}.wpinq thead th.n[colspan]{text-align:center}
.wpinq .t{font-weight:600;color:var(--ink)}.wpinq .f{color:var(--faint);font-style:italic}
.wpinq tbody th{font-weight:400;color:var(--ink);font-size:1em}.wpinq tr.t>*{border-bottom:2px solid var(--line)}
@media print{body{background:#fff}.wpinq{margin:0;max-width:none;--ink:#000;--faint:#444;--line:#999}
.wpinq .wide{overflow:visible}.wpinq tr{break-inside:avoid}}
"""


def page(
    title: str, keys: Sequence[tuple[str, Sequence[str]]], down: int, counts: npt.NDArray[np.int64], *,
    halves: npt.NDArray[np.float64],
    notes: Sequence[str],
) -> str:  # fmt: skip
    """The table as one HTML page that needs no network and no script.

    Args:
        title: Its heading.
        keys: The name of each key and its values; the last value is the total.
        down: How many of the keys stand at the side; the others stand above.
        counts: An axis for each key.
        halves: How far noise moves each count; one that is nearer to zero is set apart.
        notes: Sentences below it.
    """
    side, above = keys[:down], keys[down:]
    heads = list(product(*(range(len(values)) for _, values in above)))
    lines = [f"<caption>{escape(title)}</caption><thead>", *_head(side, above), "</thead><tbody>"]
    shape = (-1, len(heads))
    rows = zip(counts.reshape(shape).tolist(), (abs(counts) < halves).reshape(shape).tolist(), strict=True)
    before: tuple[int, ...] = ()
    for position, row in zip(product(*(range(len(values)) for _, values in side)), rows, strict=True):
        total = _is_total(position, side)
        names = [
            "" if position[: depth + 1] == before[: depth + 1] and depth < down - 1 else values[at]
            for depth, (at, (_, values)) in enumerate(zip(position, side, strict=True))
        ]
        cells = [
            _cell(number, faint, total=total or _is_total(head, above))
            for number, faint, head in zip(*row, heads, strict=True)
        ]
        named = "".join(f'<th scope="row">{escape(name)}</th>' for name in names)
        lines.append(f"<tr{' class=t' if total else ''}>{named}{''.join(cells)}</tr>")
        before = position
    body = "\n".join([*lines, "</tbody>"])
    texts = "".join(parts.text(note) for note in notes)
    shown = f'<main class="wpinq"><div class="wide"><table>{body}</table></div>{texts}</main>'
    return parts.page(title, parts.look() + STYLE, shown)


def _head(side: Sequence[tuple[str, Sequence[str]]], above: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """A row for each key that stands above; the last one names the keys at the side, and its own before its values."""
    named = "".join(f'<th scope="col">{escape(name)}</th>' for name, _ in side)
    if not above:
        return [f'<tr>{named}<th scope="col" class="n">count</th></tr>']
    lines, times = [], 1
    for depth, (name, values) in enumerate(above):
        span = math.prod(len(after) for _, after in above[depth + 1 :])
        wide = f' colspan="{span}"' if span > 1 else ""
        last = depth == len(above) - 1
        labels = [f"{name}: {values[0]}", *values[1:]] if last else [*values]
        cells = "".join(f'<th scope="col" class="n"{wide}>{escape(value)}</th>' for value in labels * times)
        first = named if last else f'<th colspan="{max(len(side), 1)}">{escape(name)}</th>' if side else ""
        lines.append(f"<tr>{first}{cells}</tr>")
        times *= len(values)
    return lines


def _is_total(position: Sequence[int], keys: Sequence[tuple[str, Sequence[str]]]) -> bool:
    return any(at == len(values) - 1 for at, (_, values) in zip(position, keys, strict=True))


def _cell(number: int, faint: bool, *, total: bool) -> str:
    kind = f"n{' t' if total else ''}{' f' if faint else ''}"
    return f'<td class="{kind}">{number:,}</td>'
