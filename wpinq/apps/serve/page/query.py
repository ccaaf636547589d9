"""A question of one's own: built or written, priced with the error to expect, then asked by a second button."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl
from starlette.responses import Response

from wpinq.apps.remote.wire import Answered, Listed
from wpinq.apps.serve.page import forms
from wpinq.apps.serve.page.request import ROWS, Visit, framed, saved
from wpinq.apps.serve.refusals import problem
from wpinq.errors import PlanError
from wpinq.exact import exact
from wpinq.html.numbers import beside_noise, within
from wpinq.postprocess.charts import chart


async def ask(visit: Visit) -> Response:
    """The form of a question; with POST its price, or its answer."""
    listed: Listed = await visit.ask("measurements")
    fields, wrong, answered = visit.fields, None, None
    if "build" in fields:
        try:
            fields["query"] = forms.built(fields, listed.data)
        except PlanError as error:
            wrong = problem(error)
    elif visit.posted:
        answered, wrong = await visit.tried("sql", forms.question(fields, dry=fields.get("do") != "ask"))
        if wrong is not None:
            wrong = msgspec.structs.replace(wrong, message=forms.in_its_words(wrong.message))
    if answered is not None and fields.get("as"):
        return await _saved(visit, answered)
    answer = None if answered is None or answered.price is not None else _shown(answered)
    data = [data_set for data_set in listed.data if data_set.questions]
    published = exact(visit.site.catalogue.config.limits.delta, "limits.delta") > 0
    return visit.page("ask", wrong.status if wrong else 200, data=data, published=published,
                      kinds=list(forms.KINDS), problem=wrong,
                      price=None if answered is None else answered.price, answer=answer,
                      asked={name: fields.get(name, "") for name in FIELDS})  # fmt: skip


FIELDS = ("query", "epsilon", "within", "keys", "delta", "name")


def _shown(answered: Answered) -> dict[str, Any]:
    rows = [
        [within(cell, *end) if end else "NULL" if cell is None else str(cell)
         for cell, end in zip(row, ends, strict=True)]
        for row, ends in zip((answered.rows or [])[:ROWS], answered.intervals or [], strict=False)
    ]  # fmt: skip
    about = answered.about or {}
    return {"columns": answered.columns, "rows": rows, "more": len(answered.rows or []) - len(rows),
            "beside": beside_noise(about.get("beside noise", ())), "protects": about.get("protects", "")}  # fmt: skip


async def _saved(visit: Visit, answered: Answered) -> Response:
    names, rows, intervals = answered.columns or [], answered.rows or [], answered.intervals or []
    columns = {name: [row[index] for row in rows] for index, name in enumerate(names)}
    ends = {
        name: (_ends(intervals, index, 0), _ends(intervals, index, 1))
        for index, name in enumerate(names)
        if any(row[index] is not None for row in intervals)
    }
    series = {
        name: (pl.Series(low, dtype=pl.Float64), pl.Series(high, dtype=pl.Float64))
        for name, (low, high) in ends.items()
    }
    notes = [beside_noise((answered.about or {}).get("beside noise", ()))]
    return await saved(visit, "answer", framed(columns, ends),
                       lambda: chart(framed(columns, {}), series, visit.fields["query"], notes))  # fmt: skip


def _ends(intervals: list[list[tuple[float, float] | None]], index: int, end: int) -> list[float | None]:
    """Where the intervals of one column begin, or end."""
    cells = [row[index] for row in intervals]
    return [None if interval is None else interval[end] for interval in cells]
