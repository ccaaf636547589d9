"""A cross table as an office prints it: spanning heads, totals, and below it how far noise moves the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import product
from typing import TypeAlias

from wpinq.html import parts

Key: TypeAlias = tuple[str, Sequence[str]]
Measure: TypeAlias = tuple[str, Sequence[str], Sequence[bool]]

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
    title: str, keys: Sequence[Key], down: int, measures: Sequence[Measure], *, notes: Sequence[str]
) -> str:  # fmt: skip
    """The table as one HTML page that needs no network and no script.

    Args:
        title: Its heading.
        keys: The name of each key and its values; the last value is the total.
        down: How many of the keys stand at the side; the others stand above.
        measures: What is told of each cell: its name, a text for each cell in the order of the keys, and whether that
            is set apart, since it may be zero.
        notes: Sentences below it.
    """
    side, above = keys[:down], keys[down:]
    heads = list(product(*(range(len(values)) for _, values in above)))
    names, texts, faints = zip(*measures, strict=True)
    cells = list(zip(zip(*texts, strict=True), zip(*faints, strict=True), strict=True))
    lines = [f"<caption>{escape(title)}</caption><thead>", *_head(side, above, names), "</thead><tbody>"]
    before: tuple[int, ...] = ()
    for line, position in enumerate(product(*(range(len(values)) for _, values in side))):
        total = _is_total(position, side)
        labels = [
            "" if position[: depth + 1] == before[: depth + 1] and depth < down - 1 else values[at]
            for depth, (at, (_, values)) in enumerate(zip(position, side, strict=True))
        ]
        row = zip(cells[line * len(heads) : (line + 1) * len(heads)], heads, strict=True)
        shown = "".join(
            _cell(text, faint, total=total or _is_total(head, above))
            for told, head in row for text, faint in zip(*told, strict=True)
        )  # fmt: skip
        named = "".join(f'<th scope="row">{escape(name)}</th>' for name in labels)
        lines.append(f"<tr{' class=t' if total else ''}>{named}{shown}</tr>")
        before = position
    body = "\n".join([*lines, "</tbody>"])
    below = "".join(parts.text(note) for note in notes)
    main = f'<main class="wpinq"><div class="wide"><table>{body}</table></div>{below}</main>'
    return parts.page(title, parts.look() + STYLE, main)


def _head(side: Sequence[Key], above: Sequence[Key], measures: Sequence[str]) -> list[str]:
    """A row for each key that stands above; the last one names the keys at the side, and its own before its values.

    Several measures are the last row, and so is one where no key stands above.
    """
    named = "".join(f'<th scope="col">{escape(name)}</th>' for name, _ in side)
    levels: list[Key] = [*above, *([("", measures)] if len(measures) > 1 or not above else [])]
    lines, times = [], 1
    for depth, (name, values) in enumerate(levels):
        span = math.prod(len(after) for _, after in levels[depth + 1 :])
        wide = f' colspan="{span}"' if span > 1 else ""
        last = depth == len(levels) - 1
        labels = [f"{name}: {values[0]}", *values[1:]] if last and name else [*values]
        cells = "".join(f'<th scope="col" class="n"{wide}>{escape(value)}</th>' for value in labels * times)
        first = named if last else f'<th colspan="{max(len(side), 1)}">{escape(name)}</th>' if side else ""
        lines.append(f"<tr>{first}{cells}</tr>")
        times *= len(values)
    return lines


def _is_total(position: Sequence[int], keys: Sequence[Key]) -> bool:
    return any(at == len(values) - 1 for at, (_, values) in zip(position, keys, strict=True))


def _cell(text: str, faint: bool, *, total: bool) -> str:
    kind = f"n{' t' if total else ''}{' f' if faint else ''}"
    return f'<td class="{kind}">{escape(text)}</td>'
