"""What pages show: what there is, measurements, fits, budgets and releases, each as the API answers.

A release shows its windows as they close, as a table and as a curve, and its files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from starlette.responses import Response

from wpinq.apps.remote.admin import Editions, Windows
from wpinq.apps.remote.wire import Described, Fitted, Listed, Observed
from wpinq.apps.serve.page import drawing, forms
from wpinq.apps.serve.page.request import ROWS, Visit, attached, framed, saved
from wpinq.apps.serve.refusals import RefusedError, problem
from wpinq.errors import BinError, WpinqError
from wpinq.exact import exact
from wpinq.html.numbers import beside_noise, noisy
from wpinq.postprocess.charts import chart
from wpinq.postprocess.plot import draw_cdf

LEVELS = ("0.5", "0.9", "0.95", "0.99")


async def home(visit: Visit) -> Response:
    """What there is, and what is left."""
    listed, left = await visit.ask("measurements"), await visit.ask("budget")
    return visit.page("home", listed=listed, left={data_set.data: data_set for data_set in left.data})


async def measurement(visit: Visit) -> Response:
    """A measurement, and the bins of it that were typed."""
    listed: Listed = await visit.ask("measurements")
    matching = [served for served in listed.measurements if served.name == visit.path["name"]]
    if not matching:
        raise RefusedError(403)
    described, what, wrong, observed = matching[0], {}, None, None
    if visit.fields:
        try:
            what = _wanted(visit.fields, described)
        except WpinqError as error:
            wrong = problem(error)
        else:
            observed, wrong = await visit.tried("observe", what, name=described.name)
    if observed is None:
        return visit.page("measurement", wrong.status if wrong else 200, one=described, problem=wrong, levels=LEVELS,
                          whole=_whole(described), seen=None)  # fmt: skip
    named = what["bins"] if "bins" in what else [*range(what["range"]["first"], what["range"]["last"] + 1)]
    if visit.fields.get("as"):
        return await _saved_counts(visit, described, named, observed)
    return visit.page(
        "measurement",
        one=described,
        levels=LEVELS,
        whole=_whole(described),
        seen=observed,
        **_shown(described, named, observed),
    )


def _whole(described: Described) -> bool:
    """Whether bins are whole numbers, of which a range can be typed."""
    return [column.type for column in described.columns] == ["integer"]


def _wanted(fields: dict[str, str], described: Described) -> dict[str, Any]:
    """What was typed, as `POST /api/measurements/NAME/observe` has it.

    Raises:
        BinError: It is no bin and no range.
    """
    level = fields.get("level") or "0.95"
    if fields.get("bins", "").strip():
        return {"bins": forms.bins(fields["bins"], described.columns), "level": level}
    try:
        first, last = int(fields.get("first", "")), int(fields.get("last", ""))
    except ValueError:
        raise BinError(
            "type at least one bin" + (", or the two ends of a range." if _whole(described) else ".")
        ) from None
    return {"range": {"first": first, "last": last}, "level": level}


def _shown(described: Described, named: list[Any], observed: Observed) -> dict[str, Any]:
    half, values = observed.half_width, observed.values
    low, high = min([0, *(value - half for value in values)]), max([0, *(value + half for value in values)])
    rows = [(label(name), noisy(value, half), drawing.whisker(value, half, low, high))
            for name, value in zip(named[:ROWS], values, strict=False)]  # fmt: skip
    curve = ""
    if len(named) > 2 and _whole(described) and named == sorted(named) and named[0] is not None:
        indices = [at - 1 for at in _evenly(len(named))]
        counts = [values[at] for at in indices]
        bottom, top = ([value + way * half for value in counts] for way in (-1, 1))
        names = (described.columns[0].name, "noisy count")
        curve = drawing.counts([named[at] for at in indices], counts, bottom, top, names)
    return {
        "rows": rows,
        "more": len(named) - len(rows),
        "curve": curve,
        "beside": beside_noise(described.beside_noise),
    }


def _evenly(size: int) -> list[int]:
    return [int(number) for number in np.unique(np.linspace(1, size, min(size, drawing.MOST)).astype(int))]


def label(name: Any) -> str:
    """A value as people read it."""
    return "NULL" if name is None else ", ".join(map(label, name)) if isinstance(name, list) else str(name)


async def _saved_counts(visit: Visit, described: Described, named: list[Any], observed: Observed) -> Response:
    table = [name if isinstance(name, list) else [name] for name in named]
    keys = {column.name: [row[index] for row in table] for index, column in enumerate(described.columns)}
    count = "count"
    while count in keys:
        count += "_"
    low, high = ([value + way * observed.half_width for value in observed.values] for way in (-1, 1))
    frame = framed({**keys, count: observed.values}, {count: (low, high)})
    cells = framed({**keys, count: observed.values}, {})
    notes = [f"Intervals are of noise alone, with probability {observed.level:g} each.",
             beside_noise(described.beside_noise), f"Protects {described.protects}."]  # fmt: skip
    ends = {count: (pl.Series(low, dtype=pl.Float64), pl.Series(high, dtype=pl.Float64))}
    return await saved(
        visit, described.name, frame, lambda: chart(cells, ends, described.meaning, [n for n in notes if n])
    )


async def fit(visit: Visit) -> Response:
    """A degree distribution with what was observed of it."""
    listed: Listed = await visit.ask("measurements")
    matching = [listed_fit for listed_fit in listed.fits if listed_fit.name == visit.path["name"]]
    fitted: Fitted = await visit.ask("fit", name=visit.path["name"])
    points = drawing.spread(len(fitted.cdf)) or [1]
    observed: Observed = await visit.ask("observe", {"bins": points}, name=matching[0].cdf)
    cdf, low, high = (
        [row[at - 1] if at <= len(row) else 0 for at in points] for row in (fitted.cdf, fitted.low, fitted.high)
    )
    if visit.fields.get("as"):
        return await _saved_fit(visit, fitted, points, observed)
    curve = drawing.degrees(points, observed.values, cdf, low, high)
    rows = [(k, noisy(value, observed.half_width), fit_, bottom, top)
            for k, value, fit_, bottom, top in zip(points, observed.values, cdf, low, high, strict=True)]  # fmt: skip
    return visit.page("fit", told=matching[0], fitted=fitted, curve=curve, rows=rows, size=len(fitted.cdf))


async def _saved_fit(visit: Visit, fitted: Fitted, ranks: list[int], observed: Observed) -> Response:
    k = [*range(1, max(len(fitted.cdf), len(fitted.high)) + 1)]
    cdf, low, high = (row + [0] * (len(k) - len(row)) for row in (fitted.cdf, fitted.low, fitted.high))
    frame = framed({"k": k, "cdf": cdf}, {"cdf": (low, high)})
    points = np.zeros(ranks[-1])
    points[np.array(ranks) - 1] = observed.values
    title = f"{fitted.name}: {fitted.distinct:,} things, {fitted.records:,} records"
    band = (fitted.low, fitted.high)
    return await saved(visit, fitted.name, frame, lambda: draw_cdf(points, fitted.cdf, band, title))


async def budget(visit: Visit) -> Response:
    """What is left, and what was asked; for curators the ledgers as well."""
    left, questions = await visit.ask("budget"), (await visit.ask("history")).asked
    ledgers = (await visit.ask("ledger")).data if visit.grant.curator else []
    paid = [float(exact(row.epsilon, "epsilon")) for row in questions if row.epsilon is not None]
    whole = max([float(exact(data_set.cap, "cap")) for data_set in left.data if data_set.cap is not None], default=0.0)
    curve = drawing.spending(paid, whole) if len(paid) > 1 else ""
    return visit.page("budget", left=left.data, asked=list(reversed(questions[-ROWS:])), ledgers=ledgers, curve=curve)


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
        shown |= _window_rows(await visit.ask("windows", body, name=visit.path["name"]), visit.fields.get("group"))
        shown |= {"table": table}
    return visit.page("release", name=visit.path["name"], periods=periods, tables=tables, **shown)


async def published(visit: Visit) -> Response:
    """One file of a published period."""
    file = await visit.ask("published", **visit.path)
    return attached(file.content, file.file)


def _window_rows(answer: Windows, wanted: str | None) -> dict[str, Any]:
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
