"""What people see of an answer: lines of text, a table for a notebook, a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wpinq.errors import WpinqError
from wpinq.html import numbers as shown
from wpinq.lazy import above

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure

    from wpinq.core.measurements.answer import Answer, Released


def answer_text(answer: Answer, released: Released | None) -> str:
    """The first rows, where they were computed, and what must be known beside them."""
    lines = shown.lines(*released) if released else ["computed when it is first asked for"]
    return "\n".join([f"<{shown.heading(answer.about)}>", *lines, *shown.footnotes(answer.about)])


def answer_html(answer: Answer) -> str:
    """The same for a notebook, which computes them."""
    try:
        return shown.html(answer.about, *answer.released)
    except WpinqError:
        return shown.html(answer.about)


def answer_chart(answer: Answer, path: str | os.PathLike[str] | None, title: str | None) -> Figure:
    """See `Answer.plot`."""
    about: dict[str, Any] = answer.about
    heading = f"{title or about['query']}\n{shown.whose(about)}"
    figure: Figure = above("chart")(*answer.released, heading, shown.footnotes(about), path)
    return figure
