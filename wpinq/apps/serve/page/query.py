"""A question of one's own: built or written, priced with the error to expect, then asked by a second button."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl
from starlette.responses import Response

from wpinq.apps.remote.wire import Answered, Listed
from wpinq.apps.serve.page import forms
from wpinq.apps.serve.page.downloads import framed, saved
from wpinq.apps.serve.page.request import Visit
from wpinq.apps.serve.page.views import ROWS
from wpinq.apps.serve.refusals import problem
from wpinq.errors import PlanError
from wpinq.exact import exact
from wpinq.postprocess.charts import chart
from wpinq.postprocess.shown import beside_noise, within


async def ask(visit: Visit) -> Response:
    """The form of a question; with POST its price, or its answer."""
    listed: Listed = await visit.ask("measurements")
    given, wrong, found = visit.given, None, None
    if "build" in given:
        try:
            given["query"] = forms.built(given, listed.data)
        except PlanError as error:
            wrong = problem(error)
    elif visit.posted:
        found, wrong = await visit.tried("sql", forms.question(given, dry=given.get("do") != "ask"))
        if wrong is not None:
            wrong = msgspec.structs.replace(wrong, message=forms.in_its_words(wrong.message))
    if found is not None and given.get("as"):
        return await _saved(visit, found)
    answer = None if found is None or found.price is not None else _shown(found)
    data = [one for one in listed.data if one.questions]
    published = exact(visit.site.catalogue.config.limits.delta, "limits.delta") > 0
    return visit.page("ask", wrong.status if wrong else 200, data=data, published=published,
                      kinds=list(forms.KINDS), problem=wrong,
                      price=None if found is None else found.price, answer=answer,
                      asked={name: given.get(name, "") for name in FIELDS})  # fmt: skip


FIELDS = ("query", "epsilon", "within", "keys", "delta", "name")


def _shown(found: Answered) -> dict[str, Any]:
    rows = [
        [within(cell, *end) if end else "NULL" if cell is None else str(cell)
         for cell, end in zip(row, ends, strict=True)]
        for row, ends in zip((found.rows or [])[:ROWS], found.intervals or [], strict=False)
    ]  # fmt: skip
    about = found.about or {}
    return {"columns": found.columns, "rows": rows, "more": len(found.rows or []) - len(rows),
            "beside": beside_noise(about.get("beside noise", ())), "protects": about.get("protects", "")}  # fmt: skip


async def _saved(visit: Visit, found: Answered) -> Response:
    names, rows, intervals = found.columns or [], found.rows or [], found.intervals or []
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    ends = {
        name: (_ends(intervals, place, 0), _ends(intervals, place, 1))
        for place, name in enumerate(names)
        if any(row[place] is not None for row in intervals)
    }
    series = {
        name: (pl.Series(low, dtype=pl.Float64), pl.Series(high, dtype=pl.Float64))
        for name, (low, high) in ends.items()
    }
    notes = [beside_noise((found.about or {}).get("beside noise", ()))]
    return await saved(visit, "answer", framed(columns, ends),
                       lambda: chart(framed(columns, {}), series, visit.given["query"], notes))  # fmt: skip


def _ends(intervals: list[list[tuple[float, float] | None]], place: int, end: int) -> list[float | None]:
    """Where the intervals of one column begin, or end."""
    cells = [row[place] for row in intervals]
    return [None if one is None else one[end] for one in cells]
