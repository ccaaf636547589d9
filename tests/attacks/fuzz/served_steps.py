"""What is asked of a server: every operation of its contract, and every page, with right and with odd requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from urllib.parse import urlencode

CONDITIONS = ["", " WHERE page = 'new'", " WHERE size > 7", " WHERE page IS NULL", " WHERE size BETWEEN 0 AND 7"]
QUERIES = [
    "SELECT COUNT(*) AS c FROM views{}",
    "SELECT SUM(size) AS s, COUNT(*) AS c FROM views{}",
    "SELECT AVG(size) AS a FROM views{}",
    "SELECT MIN(size) AS a, MAX(size) AS b FROM views{}",
    "SELECT MEDIAN(size) AS m FROM views{}",
    "SELECT COUNT(DISTINCT user) AS d FROM views{}",
    "EXPLAIN SELECT COUNT(*) AS c FROM views{}",
]
GROUPED = [
    "SELECT page, COUNT(*) AS c FROM views{} GROUP BY page",
    "SELECT page, AVG(size) AS a FROM views{} GROUP BY page",
]
WRONG = [
    "SELECT * FROM views",
    "SELECT COUNT(*) FROM hidden_table",
    "SELECT nope FROM views",
    "1",
    "",
    "SELECT 1/0 FROM views",
]
EPSILONS = ["1/10", "0.02", "1/20", "1/50", 0.25, 0.125, "1", "1", "100", "1e-9", "x", -1]
KEYS = [["p0", "new", "none"], ["none"], ["new", "p0", None], []]
TABLE, PAGES = {"do": "table", "name": "views"}, {"is": "chosen", "names": ["page"]}
PLANS: list[list[Any]] = [
    [TABLE, {"do": "map", "of": 0, "function": PAGES}],
    [TABLE, {"do": "filter", "of": 0, "function": {"is": "sql", "text": "size > 3"}}],
    [TABLE, {"do": "group_by", "of": 0, "key": PAGES, "sizes": True}],
    [TABLE, {"do": "part", "of": 0, "key": PAGES, "parts": ["p0", "new"], "part": 1}],
    [TABLE, {"do": "join", "left": 0, "right": 0, "left_key": PAGES, "right_key": PAGES, "at_most": 3}],
    [TABLE, {"do": "eval", "of": 0}],
    [{"do": "table", "name": "hidden"}],
]
BINS: list[Any] = [["p0"], ["new"], ["none", "p0", "new", None], [["p0", 1]], [3], list(map(str, range(40)))]
MEASURED = ["views.pages", "views.cdf", "views.sequence", "hidden.pages", "none"]


@dataclass(frozen=True)
class Step:
    """One request, or what the curator does to the file of both servers.

    Attributes:
        who: Who sends it.
        method: GET, POST, PUT or DELETE; or REPLACED, where a record is added to the file.
        path: The address; `{}` in it stands for a measurement that was asked for before.
        body: What is sent.
        browser: Whether a browser sends it.
    """

    who: str
    method: str
    path: str
    body: bytes = b""
    browser: bool = False

    def of(self, known: list[str]) -> Step:
        """The same with a name in its address."""
        return replace(self, path=self.path.format(known[-1] if known else "asked.0")) if "{}" in self.path else self


REPLACED = Step("", "REPLACED", "")
Grower = Callable[[Random, bool], tuple[str, str, Any]]


def _sql(draw: Random, planted: bool) -> tuple[str, str, Any]:
    grouped = draw.random() < 0.4
    query = draw.choice(GROUPED if grouped else [*QUERIES, *QUERIES, draw.choice(WRONG)]).format(
        draw.choice(CONDITIONS)
    )
    body: dict[str, Any] = {"query": query, "epsilon": draw.choice(EPSILONS), "dry": draw.random() < 0.4}
    if grouped and planted and draw.random() < 0.4:
        body["delta"] = draw.choice(["1e-4", "1e-3", "1"])
    elif grouped:
        body["keys"] = draw.choice(KEYS)
    if draw.random() < 0.3:
        body["name"] = draw.choice(["a", "b"])
    if draw.random() < 0.1:
        body["within"] = draw.choice([50, "1/2"])
    return "POST", "/api/sql", body


def _measure(draw: Random, _: bool) -> tuple[str, str, Any]:
    more = {"name": "m"} if draw.random() < 0.3 else {}
    body = {"plan": draw.choice(PLANS), "epsilon": draw.choice(EPSILONS), "dry": draw.random() < 0.3, **more}
    return "POST", "/api/measure", body


def _observe(draw: Random, _: bool) -> tuple[str, str, Any]:
    body: dict[str, Any] = {"bins": draw.choice(BINS)}
    if draw.random() < 0.3:
        body = {"range": {"first": 1, "last": draw.choice([1, 40, 600, 10**7])}}
    if draw.random() < 0.2:
        body["level"] = draw.choice([0.5, "9/10", 1])
    return "POST", f"/api/measurements/{draw.choice([*MEASURED, '{}', '{}', '{}'])}/observe", body


def _cap(draw: Random, _: bool) -> tuple[str, str, Any]:
    who = draw.choice(["ann", "ben", "eve", "zoe"])
    return (
        "PUT",
        "/api/caps",
        {"data": draw.choice(["views", "hidden"]), "analyst": who, "cap": draw.choice(["1/2", 3])},
    )


def _windows(draw: Random, _: bool) -> tuple[str, str, Any]:
    return "POST", "/api/releases/none/windows", {"table": "t", **draw.choice([{}, {"after": "2026"}])}


def _get(path: str) -> Grower:
    return lambda *_: ("GET", path, None)


OPERATIONS: dict[str, Grower] = {
    "sql": _sql,
    "measure": _measure,
    "observe": _observe,
    "cap": _cap,
    "windows": _windows,
    "budget": _get("/api/budget"),
    "history": _get("/api/history"),
    "measurements": _get("/api/measurements"),
    "fit": _get("/api/fits/degrees"),
    "ledger": _get("/api/ledger"),
    "tokens": _get("/api/tokens"),
    "release": _get("/api/releases/none"),
    "published": _get("/api/releases/none/2026/report.md"),
    "revoke": lambda *_: ("DELETE", "/api/tokens/0123456789abcdef", None),
}
"""By the names of the contract; a test holds that there are no others."""
OFTEN = ["sql"] * 7 + ["measure"] * 4 + ["observe"] * 7 + ["history", "budget", "ledger"]
SELDOM = 0.1
"""Share of the requests of fits that is sent: one takes seconds."""
SEEN = [
    "/",
    "/budget",
    "/fits/degrees",
    "/fits/degrees?as=csv",
    "/measurements/views.cdf?first=1&last=9",
    "/measurements/views.pages?bins=new",
    "/measurements/views.pages?bins=p0&as=csv",
    "/measurements/none",
    "/releases/none",
    "/ask",
    "/no-such-page",
]


def _page(draw: Random, who: str, planted: bool) -> Step:
    if draw.random() < 0.5:
        return Step(who, "GET", draw.choice(SEEN), browser=True)
    _, _, body = _sql(draw, planted)
    keys = "\n".join(one or "" for one in body.get("keys", ()))
    typed = {
        "query": body["query"],
        "epsilon": str(body["epsilon"]),
        "keys": keys,
        "do": draw.choice(["price", "ask", "ask"]),
    }
    if draw.random() < 0.2:
        typed["as"] = "csv"
    return Step(who, "POST", "/ask", urlencode(typed).encode(), browser=True)


def grown(draw: Random, *, planted: bool) -> list[Step]:
    """Some requests, by several analysts and the curator; some are sent twice, and after a file was replaced many."""
    result: list[Step] = []
    for _ in range(draw.randrange(12, 30)):
        if len(result) > 6 and REPLACED not in result and draw.random() < 0.05:
            result += [REPLACED, *(step for step in result if "/measure" in step.path and step.method == "POST")]
        who = draw.choice(["ann", "ann", "ann", "ben", "eve", "boss", "boss", *["nobody"][: draw.randrange(2)]])
        if result and draw.random() < 0.15:
            result.append(replace(draw.choice([step for step in result if step is not REPLACED])))
        elif who != "nobody" and draw.random() < 0.2:
            result.append(_page(draw, who, planted))
        else:
            name = draw.choice([*OFTEN, *OPERATIONS])
            method, path, body = OPERATIONS[name](draw, planted)
            result.append(Step(who, method, path, b"" if body is None else json.dumps(body).encode()))
    return [one for one in result if "/fits/" not in one.path or draw.random() < SELDOM]
