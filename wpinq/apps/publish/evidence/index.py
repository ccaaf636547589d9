"""The page of a release: all periods, each question as curves with their bands, and feeds of the latest numbers.

It is written from what was published and from the release file alone, so it is the same however often it is written,
and a file that is right already is left as it is.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from wpinq.apps.publish.answers import LOSS, naming
from wpinq.apps.publish.evidence.curves import LARGE, SMALL, Point, curve, measured, number
from wpinq.apps.publish.evidence.edition import FACTS, INTERVALS, PAGE, naming_of
from wpinq.apps.publish.file.declared import Every, Page
from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.price import Price
from wpinq.html.written import json_text
from wpinq.storage import appearing, settle

INDEX, JSON, CSV = "index.html", "latest.json", "latest.csv"
ROWS = 10_000
"""Rows of each table in the feeds, those with the largest numbers."""
SHOWN = 100
"""Rows of each table on the page."""
FEW = 14
"""Periods whose reports stand open on the page; a longer list is opened by its reader."""
STYLE = """\
:root{--ink:#1d2733;--faint:#5b6875;--line:#d9dfe5;--paper:#fff;--card:#f6f8fa;--blue:#0072b2;--band:#56b4e9}
@media(prefers-color-scheme:dark){:root{--ink:#e3e8ee;--faint:#98a4b1;--line:#333d48;--paper:#12171d;--card:#1a2129;\
--blue:#6cc0f0;--band:#2f7fb0}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:1.5rem 1rem 3rem;background:var(--paper);color:var(--ink);\
font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .4rem}h2{font-size:1.25rem;margin:2.4rem 0 .2rem}
h3{font-size:.95rem;margin:0;font-weight:600;overflow-wrap:anywhere}
p{margin:.3rem 0;max-width:46rem}a{color:var(--blue)}.faint{color:var(--faint);font-size:.88rem}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(15rem,100%),1fr));gap:.8rem;margin:1rem 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.7rem .8rem .4rem;\
display:flex;flex-direction:column}.card svg{margin-top:auto;padding-top:.3rem}h4{margin:1.2rem 0 -.4rem;font-size:1rem}
.wide{max-width:36rem;margin:1rem 0}.wide svg text{font-size:9px}@media(max-width:30rem){.wide svg text{font-size:13px}}
.value{font-size:1.5rem;font-weight:600;font-variant-numeric:tabular-nums}
svg{display:block;width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:var(--faint)}
.grid{stroke:var(--line);stroke-width:1}.band{fill:var(--band);opacity:.35}
.line{fill:none;stroke:var(--blue);stroke-width:1.8;stroke-linejoin:round}
.whisker{stroke:var(--blue);stroke-width:1.5}circle{fill:var(--blue)}
table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums;font-size:.92rem}
td,th{border-bottom:1px solid var(--line);padding:.25rem .9rem .25rem 0;text-align:left;font-weight:400;\
white-space:nowrap}
th{color:var(--faint)}td.n,th.n{text-align:right}.scroll{overflow-x:auto}
code{font-size:.86rem;overflow-wrap:anywhere}summary{cursor:pointer;color:var(--blue);margin:.4rem 0}
"""


@dataclass(frozen=True)
class Published:
    """A period that was published.

    Attributes:
        name: Its name.
        files: Where its files are kept.
        link: Its directory, from the page.
        facts: Its evidence.
    """

    name: str
    files: Path
    link: str
    facts: Mapping[str, Any]

    @property
    def tables(self) -> list[str]:
        """The names of its tables, as the questions stand."""
        return [name for question in self.facts["questions"] for name in question["tables"]]

    def table(self, name: str) -> tuple[pl.LazyFrame, dict[str, tuple[str, str]]] | None:
        """A table, and which columns hold the ends of which numbers; None where it has none of this name."""
        path = self.files / f"{name}.parquet"
        if not path.is_file():
            return None
        return pl.scan_parquet(path, glob=False), json.loads(pl.read_parquet_metadata(path)[INTERVALS])

    def keys(self, name: str, frame: pl.LazyFrame, ends: Mapping[str, tuple[str, str]]) -> list[str]:
        """The columns that name the rows of a table."""
        taken = {*ends, *(end for pair in ends.values() for end in pair)}
        known = naming_of(self.facts)
        return known[name] if name in known else naming(frame.collect_schema(), taken)


def published(name: str, files: Path, link: str) -> Published:
    """A period, from its files."""
    return Published(name, files, link, json.loads((files / FACTS).read_text()))


def pages(
    title: str, words: Page, periods: Sequence[Published], formats: Sequence[str], every: Every
) -> dict[str, bytes]:
    """The page and its feeds, by name.

    Args:
        title: What it is headed with.
        words: What the release file says of the page.
        periods: All that were published, in order; one at the least.
        formats: In which formats tables lie in a period's directory.
        every: What kind of periods they are.
    """
    body = "".join(_body(words.title or title, words, periods, formats, every))
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(words.title or title)}</title>"
        f'<link rel="alternate" type="application/json" href="{JSON}"><style>{STYLE}</style>'
    )
    start = f'<!doctype html>\n<html lang="{escape(words.language)}">'
    return {
        INDEX: f"{start}<head>{head}</head><body>{body}</body></html>\n".encode(),
        **feeds(words.title or title, periods[-1]),
    }


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files that are others than those that are there, each whole or not at all."""
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            with appearing(path, 0o644) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            settle(folder)


def feeds(title: str, latest: Published) -> dict[str, bytes]:
    """The latest numbers for programs: each table as it is, and all in one list."""
    tables, lines = {}, []
    for name in latest.tables:
        table = latest.table(name)
        if table is None:
            continue
        frame, ends = table
        rows, whole = _top(frame, ends, ROWS), frame.select(pl.len()).collect().item()
        tables[name] = {"rows": whole, "columns": rows.columns, "data": rows.rows()}
        keys = latest.keys(name, frame, ends)
        for row in rows.iter_rows(named=True):
            group = ", ".join("none" if row[key] is None else str(row[key]) for key in keys)
            lines += [(latest.name, name, group, column, row[column], row[low], row[high])
                      for column, (low, high) in ends.items()]  # fmt: skip
    content = {
        "title": title, "period": latest.facts["period"], "at": latest.facts["at"],
        "protects": latest.facts["protects"], "cost": latest.facts["cost"], "level": 0.95,
        "report": f"{latest.link}/{PAGE}", "tables": tables,
    }  # fmt: skip
    text, names = io.StringIO(), ["period", "table", "group", "column", "value", "low", "high"]
    kinds = dict.fromkeys(names[:4], pl.String) | dict.fromkeys(names[4:], pl.Float64)
    pl.DataFrame(lines, schema=kinds, orient="row").write_csv(text)
    return {JSON: (json_text(content, indent=1) + "\n").encode(), CSV: text.getvalue().encode()}


def _body(title: str, words: Page, periods: Sequence[Published], formats: Sequence[str], every: Every) -> Iterator[str]:
    latest = periods[-1]
    yield f"<header><h1>{escape(title)}</h1>"
    yield "".join(f"<p>{escape(part)}</p>" for part in (words.words or "").split("\n\n") if part.strip())
    yield (
        f'<p class="faint">Latest: {escape(latest.name)}. Each number has noise; its interval, or the band of a curve,'
        " holds the number without noise with probability 95%. No line leads across a period that was not published."
        f' <a href="{CSV}">{CSV}</a>, <a href="{JSON}">{JSON}</a></p></header>'
    )
    yield "<main>"
    for question in latest.facts["questions"]:
        yield f"<section><h2>{escape(question['name'].replace('_', ' '))}</h2>"
        yield f'<p class="faint"><code>{escape(question["asked"])}</code></p>'
        for name, about in question["tables"].items():
            if not name.endswith(LOSS):
                yield from _table(name, words, periods, formats, every)
            if about["threshold"] is not None:
                least = number(about["threshold"])
                yield f'<p class="faint">A group whose noisy count is below {least} is left out of a period.</p>'
        yield from (f'<p class="faint">{escape(line)}</p>' for line in question.get("left out", []))
        yield "</section>"
    yield from _protected(latest)
    yield from _all(periods)
    yield "</main>"


def _table(name: str, words: Page, periods: Sequence[Published], formats: Sequence[str], every: Every) -> Iterator[str]:
    latest = periods[-1]
    table = latest.table(name)
    if table is None:
        return
    frame, ends = table
    rows, keys = _top(frame, ends, SHOWN), latest.keys(name, frame, ends)
    if not keys and rows.height == 1:
        for column in ends:
            (points,) = _over_time(name, column, pl.DataFrame(), periods, every)
            label = f"{column} of each period"
            drawn = f"<h3>{escape(column)}</h3>{_latest(points[-1])}{curve(points, LARGE, label)}"
            yield f'<div class="card wide">{drawn}</div>'
        return
    groups = rows.head(words.show).select(keys)
    for column in ends if keys else ():
        yield f"<h4>{escape(column)}</h4>"
        yield f'<div class="cards" aria-label="{escape(column)}">'
        for group, points in zip(groups.rows(), _over_time(name, column, groups, periods, every), strict=False):
            label = ", ".join(_called(*pair) for pair in zip(keys, group, strict=True))
            drawn = curve(points, SMALL, f"{column} of {label}")
            yield f'<div class="card"><h3>{escape(label)}</h3>{_latest(points[-1])}{drawn}</div>'
        yield "</div>"
    whole = frame.select(pl.len()).collect().item()
    many = f"The {SHOWN} largest of {whole:,} rows" if whole > rows.height else f"All {whole:,} rows"
    files = ", ".join(f'<a href="{escape(latest.link)}/{name}.{form}">{name}.{form}</a>' for form in formats)
    yield f"<details{'' if ends else ' open'}><summary>{many} of {escape(latest.name)}</summary>"
    yield f'<p class="faint">{files}</p>'
    yield f'<div class="scroll">{_rows(rows, ends)}</div></details>'


def _called(key: str, value: Any) -> str:
    """A group's name for people; a number alone would say nothing."""
    text = "none" if value is None else str(value)
    return f"{key} {text}" if isinstance(value, (int, float)) or value is None else text


def _rows(rows: pl.DataFrame, ends: Mapping[str, tuple[str, str]]) -> str:
    """A table of what was published, with intervals beside the numbers that have one."""
    bare = {end for pair in ends.values() for end in pair}
    columns = {name: kind for name, kind in rows.schema.items() if name not in bare}
    head = "".join(
        f'<th class="n">{escape(name)}</th>{"<th class=n>interval</th>" if name in ends else ""}'
        if kind.is_numeric()
        else f"<th>{escape(name)}</th>"
        for name, kind in columns.items()
    )
    body = []
    for row in rows.iter_rows(named=True):
        cells = []
        for name, kind in columns.items():
            if name in ends:
                value, between = measured(row[name], *(row[end] for end in ends[name]))
                cells.append(f'<td class="n">{value}</td><td class="n">{between}</td>')
            elif kind.is_numeric():
                cells.append(f'<td class="n">{number(row[name])}</td>')
            else:
                cells.append(f"<td>{escape('none' if row[name] is None else str(row[name]))}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _latest(point: Point) -> str:
    value, between = measured(point.value, point.low, point.high)
    return f'<div><span class="value">{value or "none"}</span> <span class="faint">{between}</span></div>'


def _over_time(
    name: str, column: str, groups: pl.DataFrame, periods: Sequence[Published], every: Every
) -> list[list[Point]]:
    """One number of each of some groups in all periods; of a table without groups these are one row of no columns.

    Periods stand as far apart as in the calendar, and where one was not published no line leads across it.
    """
    series: list[list[Point]] = [[] for _ in range(max(groups.height, 1))]
    expected = None
    for period in periods:
        here = Period.parse(period.name, every)
        at = (here.start - dt.datetime(1970, 1, 1)) / dt.timedelta(hours=1)
        if expected not in (None, here):
            for points in series:
                points.append(Point("", None, at=points[-1].at))
        expected = here.next
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        table = period.table(name)
        ends = {} if table is None else table[1]
        if table is not None and column in ends:
            rows = {tuple(row[key] for key in groups.columns): row for row in _of_groups(table[0], groups)}
        for points, group in zip(series, groups.rows() or [()], strict=True):
            row = rows.get(group)
            if row is None or row[column] is None:
                points.append(Point(period.name, None, at=at))
            else:
                low, high = ends[column]
                points.append(Point(period.name, float(row[column]), row[low], row[high], at))
    return series


def _of_groups(frame: pl.LazyFrame, groups: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of some groups; none where a table of another period has other columns."""
    if not groups.width:
        return frame.head(1).collect().rows(named=True)
    schema = frame.collect_schema()
    if any(schema.get(key) != kind for key, kind in groups.schema.items()):
        return []
    return frame.join(groups.lazy(), on=groups.columns, how="semi", nulls_equal=True).collect().rows(named=True)


def _top(frame: pl.LazyFrame, ends: Mapping[str, Any], most: int) -> pl.DataFrame:
    """The rows with the largest numbers."""
    first = next(iter(ends), None)
    return (
        (frame if first is None else frame.sort(first, descending=True, nulls_last=True, maintain_order=True))
        .head(most)
        .collect()
    )


def _protected(latest: Published) -> Iterator[str]:
    yield "<section><h2>Whom this protects</h2>"
    price = Price.read(latest.facts["cost"])
    yield (
        f"<p>{escape(latest.facts['protects'].capitalize())}. Whoever sees all numbers learns little about one of them:"
        f" each period costs {escape(price.text)}. {escape(latest.facts['budget']['in words'])}</p>"
    )
    yield (
        f'<p class="faint">The <a href="{escape(latest.link)}/{PAGE}">report of {escape(latest.name)}</a> says what'
        " that means, and what is not protected.</p></section>"
    )


def _all(periods: Sequence[Published]) -> Iterator[str]:
    yield f"<section><h2>All periods</h2><details{'' if len(periods) > FEW else ' open'}>"
    many = f"{len(periods)} published, from {periods[0].name} to {periods[-1].name}"
    yield f'<summary>{escape(many)}</summary><div class="scroll"><table>'
    yield "<thead><tr><th>period</th><th>cost</th><th>files</th></tr></thead><tbody>"
    for period in reversed(periods):
        price = Price.read(period.facts["cost"]).text
        place = escape(period.link)
        files = f'<a href="{place}/{PAGE}">report</a>, <a href="{place}/{FACTS}">evidence</a>'
        yield f"<tr><td>{escape(period.name)}</td><td>{escape(price)}</td><td>{files}</td></tr>"
    yield "</tbody></table></div></details></section>"
