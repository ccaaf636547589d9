"""The report of a period, for whoever must sign: Markdown, and the same as a page that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import polars as pl

from wpinq.apps.publish.evidence.curves import number
from wpinq.apps.publish.file.declared import Words
from wpinq.apps.publish.price import Price
from wpinq.core import GAUSSIAN
from wpinq.exact import decimal
from wpinq.html import parts
from wpinq.html.numbers import six

PROTECTED = """\
Whoever sees everything that is published, and knows all records but those of one privacy unit, learns little about that
unit: for each event, its probability with and without the unit's records differs by a factor of at most e^epsilon{by
how much}. No later computation on published numbers, and no further knowledge, takes that back.
"""
NOT_PROTECTED = (
    "What is true of many people is published, and can be inferred of each of them, whether in the data or not.",
    "Whoever is several privacy units (several accounts, devices) is protected as each of them, and loses the sum.",
    "A privacy unit that is in several periods loses the sum of what they cost, up to the budget.",
    "What is declared is not protected: the release file, its bounds and keys, and that there is a release.",
    "The time of the computation and the size of files with declared keys do not depend on records by design; power,"
    " caches and the network of the machine are not controlled.",
    "Records are where they were, readable by their curator; the ledger's secret must stay secret.",
)
ROWS = 100
"""Rows of a table that the report shows."""
STYLE = """\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;margin:1rem 0}td,th{border-bottom:1px solid #ccc;padding:.3rem .8rem;text-align:left}
img{max-width:100%;height:auto}code{overflow-wrap:anywhere}h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2rem}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}td,th{border-color:#444}img{background:#fff}}
"""


def report(facts: Mapping[str, Any], words: Words, tables: Mapping[str, Any]) -> str:
    """The report as Markdown. It says what was asked, the numbers, at which cost, and what is and is not protected.

    Args:
        facts: What is known of the period; see `edition.compose`.
        words: What the release file says about itself.
        tables: The numbers and the ends of their intervals, by name of the table.
    """
    cost, budget = Price.read(facts["cost"]), facts["budget"]
    sums = budget.get("sums before"), budget.get("sums after")
    spent = "; then: ".join(sums) if all(sums) else f"{_short(budget['spent before'])}, {_short(budget['spent after'])}"
    lines = [
        f"# {plain(facts['title'])}",
        "",
        *_table(
            ("", ""),
            [
                ("published by", words.curator),
                ("purpose", words.purpose),
                ("period", f"{facts['period']['start']} to {facts['period']['end']} ({facts['period']['zone']})"),
                ("computed", facts["at"]),
                ("protects", facts["protects"]),
                ("cost of this period", cost.text),
                ("spent before, after", spent),
                ("budget", budget["promise"]),
            ],
        ),
        "## What was asked",
        "",
        *(line for question in facts["questions"] for line in _question(question, facts["files"], tables)),
        "## What is protected",
        "",
        f"The privacy unit is {plain(facts['protects'])}. Two data sets are neighbours if they differ in the records of"
        f" one such unit ({plain(facts['unit'])}).",
        "",
        PROTECTED.replace("{by\nhow much}", _guarantee(cost, facts["by itself"])).strip(),
        "",
        plain(budget["in words"]),
        "",
        "## What is not protected",
        "",
        *(f"- {line}" for line in (*NOT_PROTECTED, *([plain(words.unprotected)] if words.unprotected else []))),
        "",
        "## How to check it",
        "",
        f"`wpinq publish verify` computes the period anew and compares every byte. The ledger `wpinq ledger verify` "
        f"checks had {facts['ledger']['rows']} rows, the last under the code `{facts['ledger']['head']}`. The records "
        f"are version {facts['records']['version']} of their period. The code of the questions is "
        f"`{facts['definition']}`. Software: wpinq {facts['wpinq']}, Python {facts['python']}.",
        "",
        *_table(("file", "SHA-256"), [(name, f"`{code}`") for name, code in facts["files"].items()]),
    ]
    return "\n".join(lines)


def _question(question: Mapping[str, Any], files: Mapping[str, str], tables: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {plain(question['name'])}"
    yield ""
    yield f"{plain(question['asked'])}"
    yield ""
    rows = [("cost", Price.read(question).text), ("groups", question["groups"])]
    for noise in question["noise"]:
        half = "" if noise["half width"] is None else f"; moves it by at most {six(noise['half width'])} in 95%"
        rows.append((f"noise of {noise['column']}", f"{law(noise)}{half}"))
    for name, table in question["tables"].items():
        rows.append((f"rows of {name}", f"{table['rows']:,}"))
        if table["threshold"] is not None:
            rows.append(("left out", f"groups whose noisy count is below {six(table['threshold'])}"))
        rows += [("beside noise", clause) for clause in table["beside noise"]]
    yield from _table(("", ""), rows)
    for sentence in question["left out"]:
        yield plain(sentence)
        yield ""
    for name in question["tables"]:
        if f"{name}.png" in files:
            yield f"![{plain(name)}]({name}.png)"
            yield ""
        yield from _numbers(name, *tables[name])


def _numbers(name: str, cells: pl.DataFrame, ends: Mapping[str, tuple[pl.Series, pl.Series]]) -> Iterator[str]:
    """The first numbers of a table, each with its interval of probability 95%."""
    head = [part for name in cells.columns for part in ([name, f"{name}, 95%"] if name in ends else [name])]
    rows = []
    for place, row in enumerate(cells.head(ROWS).rows()):
        shown = []
        for column, value in zip(cells.columns, row, strict=True):
            shown.append(number(value) if column in ends else "" if value is None else str(value))
            if column in ends:
                low, high = (end[place] for end in ends[column])
                shown.append("" if low is None or high is None else f"{number(low)} to {number(high)}")
        rows.append(shown)
    yield f"| {' | '.join(map(plain, head))} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(plain, row))} |" for row in rows)
    yield ""
    if cells.height > ROWS:
        yield f"These are the first {ROWS} of {cells.height:,} rows; all are in the files of {plain(name)}."
        yield ""


def page(markdown: str, title: str) -> str:
    """Markdown as one HTML page."""
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return parts.page(title, STYLE, body)


def plain(text: str) -> str:
    r"""Text without what Markdown would read.

    >>> plain("a|b *c* <d>")
    'a\\|b \\*c\\* \\<d\\>'
    """
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in " ".join(str(text).split()))


def _table(head: tuple[str, str], rows: Sequence[tuple[str, str]]) -> list[str]:
    cells = [tuple(cell if cell.startswith("`") else plain(cell) for cell in row) for row in rows]
    return [f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {left} | {right} |" for left, right in cells), ""]


def law(noise: Mapping[str, Any]) -> str:
    """A mechanism with its parameter; that of Gaussian noise is its standard deviation."""
    what = "standard deviation" if noise["mechanism"] == GAUSSIAN else "scale"
    size = "by the bound that was chosen" if noise["scale"] is None else six(noise["scale"])
    return f"{noise['mechanism']}, {what} {size}"


def _guarantee(cost: Price, alone: Mapping[str, str]) -> str:
    """The rest of the sentence about a factor of e^epsilon, for this period by itself."""
    epsilon, delta = _short(alone["epsilon"]), _short(alone["delta"])
    if not cost.rho:
        return f", with epsilon {epsilon}{f' and but for a failure of probability {delta}' if cost.delta else ''}"
    return (
        f" but for a failure of probability delta. No epsilon bounds Gaussian noise with certainty: it is"
        f" zero-concentrated, rho {decimal(cost.concentrated)}, and holds for every delta, such as epsilon {epsilon} at"
        f" delta {delta}"
    )


def _short(number: str) -> str:
    return decimal(Fraction(number))
