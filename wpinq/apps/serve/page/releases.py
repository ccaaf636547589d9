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
    found: Editions = await visit.ask("release", name=visit.path["name"])
    tables = sorted({table for one in found.periods for table in one.tables})
    periods = sorted(found.periods, key=lambda one: one.period, reverse=True)
    shown: dict[str, Any] = {"table": "", "rows": [], "groups": [], "group": "", "curve": "", "columns": []}
    if tables:
        table = visit.given.get("table") or tables[0]
        own = [one.period for one in periods if table in one.tables]
        body = {"table": table} if len(own) <= LAST else {"table": table, "after": own[LAST]}
        shown |= _shown(await visit.ask("windows", body, name=visit.path["name"]), visit.given.get("group"))
        shown |= {"table": table}
    return visit.page("release", name=visit.path["name"], periods=periods, tables=tables, **shown)


async def published(visit: Visit) -> Response:
    """One file of a published period."""
    found = await visit.ask("published", **visit.path)
    return attached(found.content, found.file)


def _shown(told: Windows, wanted: str | None) -> dict[str, Any]:
    lines = [(window.period, row, ends) for window in reversed(told.windows)
             for row, ends in zip(window.rows, window.intervals, strict=True)]  # fmt: skip
    counted = sorted({place for _, _, ends in lines for place, end in enumerate(ends) if end is not None})
    keys = [place for place in range(len(told.columns)) if place not in counted]

    def group(row: list[Any]) -> str:
        return ", ".join(label(row[place]) for place in keys)

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
            names = (f"window, from {lines[-1][0]} on", told.columns[counted[0]])
            curve = drawing.counts([*range(1, len(points) + 1)], [value for value, _ in points], low, high, names)
    return {"rows": rows[:ROWS], "groups": groups if keys else [], "group": chosen, "curve": curve,
            "columns": told.columns}  # fmt: skip
