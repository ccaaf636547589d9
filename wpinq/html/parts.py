"""Parts of HTML: tables, facts, gauges, and the frame around what a notebook shows. All text is escaped here."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from wpinq.errors import lacking

WIDTH = 1000
"""Units of a gauge; it is as wide as there is room."""


@cache
def look() -> str:
    """The style sheet."""
    return (Path(__file__).parent / "look.css").read_text("utf-8")


def framed(heading: str, *parts: str) -> str:
    """What a notebook shows of an object.

    Args:
        heading: What it is, as text.
        parts: HTML, made by the functions of this file.
    """
    return f'<div class="wpinq"><style>{look()}</style><h4>{escape(heading)}</h4>{"".join(parts)}</div>'


def page(title: str, style: str, body: str) -> str:
    """A page that needs no network.

    Args:
        title: What it is called, as text.
        style: Its style sheet.
        body: HTML.
    """
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return f"<!doctype html>\n<html lang=en><head>{head}<style>{style}</style></head><body>\n{body}</body></html>\n"


def text(content: str, kind: str = "p") -> str:
    """A paragraph, or another element.

    >>> text("a < b")
    '<p>a &lt; b</p>'
    """
    return f"<{kind}>{escape(content)}</{kind}>"


def lines(content: Iterable[str]) -> str:
    """Lines whose spaces count, such as the tree of a plan."""
    return f"<pre>{escape(chr(10).join(content))}</pre>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts; numbers stand to the right by the style of `td.n`.

    >>> table(["bin"], [["<b>"]])
    '<table><thead><tr><th scope="col">bin</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    named = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    filled = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{named}</tr></thead><tbody>{filled}</tbody></table>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names with what they are."""
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(what)}</dd>' for name, what in pairs)}</dl>"


def pictured(draw: Callable[[], Any], label: str) -> str:
    """A picture, or how to install what draws it.

    Args:
        draw: Gives a figure.
        label: What it shows, for those who do not see it.
    """
    if missing := lacking("plot"):
        return text(f"No picture: {missing}.")
    return f'<img alt="{escape(label)}" src="data:image/png;base64,{b64encode(draw()._repr_png_()).decode()}">'


def gauge(left: Fraction, whole: Fraction, label: str, asked: Fraction = Fraction(0)) -> str:
    """How much of an amount was spent, and how much of the rest a question takes.

    Args:
        left: What is left of it before the question.
        whole: The whole amount.
        label: What it says, for those who do not see it.
        asked: What the question takes.

    >>> 'x="250" width="500"' in gauge(Fraction(3), Fraction(4), "3 of 4 left", Fraction(2))
    True
    """
    spent = _share(whole - left, whole)
    more = min(_share(asked, whole), WIDTH - spent)
    bars = (
        f'<rect class="spent" width="{spent}" height="12"/><rect class="asked" x="{spent}" width="{more}" height="12"/>'
    )
    head = f'<svg class="gauge" viewBox="0 0 {WIDTH} 12" preserveAspectRatio="none" role="img"'
    return f'{head} aria-label="{escape(label)}"><rect class="whole" width="{WIDTH}" height="12"/>{bars}</svg>'


def _share(part: Fraction, whole: Fraction) -> int:
    return 0 if whole <= 0 else max(0, min(WIDTH, round(WIDTH * part / whole)))


def _cell(content: str) -> str:
    kind = ' class="n"' if content.lstrip("-")[:1].isdigit() else ""
    return f"<td{kind}>{escape(content)}</td>"
