"""Releases in a browser: their windows as they close, as a table and as a curve, and their files."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from wpinq.apps.remote.admin import Editions, Windows
from wpinq.apps.serve.page import drawing
from wpinq.apps.serve.page.downloads import attached
from wpinq.apps.serve.page.request import Visit
from wpinq.apps.serve.page.views import ROWS, label
from wpinq.postprocess.shown import noisy

LAST = 200
"""Windows that are shown: the last ones."""


async def release(visit: Visit) -> Response:
    """The windows of one table, the newest first; the page asks again each minute."""
    editions: Editions = await visit.ask("release", name=visit.path["name"])
    tables = sorted({table for edition in editions.periods for table in edition.tables})
    periods = sorted(editions.periods, key=lambda edition: edition.period, reverse=True)
    shown: dict[str, Any] = {"table": "", "rows": [], "groups": [], "group": "", "curve": "", "columns": []}
    if tables:
        table = visit.fields.get("table") or tables[0]
        later = [edition.period for edition in periods if table in edition.tables]
        body = {"table": table} if len(later) <= LAST else {"table": table, "after": later[LAST]}
        shown |= _shown(await visit.ask("windows", body, name=visit.path["name"]), visit.fields.get("group"))
        shown |= {"table": table}
    return visit.page("release", name=visit.path["name"], periods=periods, tables=tables, **shown)


async def published(visit: Visit) -> Response:
    """One file of a published period."""
    file = await visit.ask("published", **visit.path)
    return attached(file.content, file.file)


def _shown(answer: Windows, wanted: str | None) -> dict[str, Any]:
    lines = [(window.period, row, ends) for window in reversed(answer.windows)
             for row, ends in zip(window.rows, window.intervals, strict=True)]  # fmt: skip
    counted = sorted({index for _, _, ends in lines for index, end in enumerate(ends) if end is not None})
    keys = [index for index in range(len(answer.columns)) if index not in counted]

    def group(row: list[Any]) -> str:
        return ", ".join(label(row[index]) for index in keys)

    groups = list(dict.fromkeys(group(row) for _, row, _ in lines))
    chosen = wanted if wanted in groups else groups[0] if groups else ""
    rows = [
        [
            period,
            *(noisy(cell, (end[1] - end[0]) / 2) if end else label(cell) for cell, end in zip(row, ends, strict=True)),
        ]
        for period, row, ends in lines
    ]
    curve: Any = ""
    if counted:
        points = [
            (row[counted[0]], ends[counted[0]] or (None, None))
            for _, row, ends in reversed(lines)
            if group(row) == chosen
        ]
        if len(points) > 1:
            low, high = ([end[way] for _, end in points] for way in (0, 1))
            names = (f"window, from {lines[-1][0]} on", answer.columns[counted[0]])
            curve = drawing.counts([*range(1, len(points) + 1)], [value for value, _ in points], low, high, names)
    return {"rows": rows[:ROWS], "groups": groups if keys else [], "group": chosen, "curve": curve,
            "columns": answer.columns}  # fmt: skip
