"""`llms.txt` and each page as plain text, for programs that read the site, made from the pages whenever it is built.

The form is that of llmstxt.org: a title, a summary, and for each section a list of links with what is behind them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

PUBLIC = re.compile(r"^::: ([\w.]+)\n?(?:    .*\n|\n(?=    ))*", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")
INDEX = "README.md"
FIRST = Path(__file__).parents[1] / "README.md"
"""What the project shows first; its first paragraph is the summary."""
TEXTS: dict[str, str] = {}
"""The text of each page, as the hooks before this one left it."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Keep the text of a page, as MkDocs asks hooks to; the page stays what it is."""
    TEXTS[page.file.src_uri] = markdown
    return markdown


def on_post_build(config: Any, **_: Any) -> None:
    """Write the texts beside the pages of the site, and the list of them."""
    site = Path(config.site_dir)
    for name, text in TEXTS.items():
        (site / name).write_text(PUBLIC.sub(described, text))
    (site / "llms.txt").write_text("\n".join(listed(config.nav, config.site_url or "")))


def described(mark: re.Match[str]) -> str:
    """What the docstrings say of a public name, where the site has them from mkdocstrings."""
    try:
        public = resolve_name(mark[1])
    except (ImportError, AttributeError):  # of another tool, which is not installed where the site is built
        return f"### {mark[1]}\n\n"
    own = vars(public) if isinstance(public, type) else {}
    methods = [one for name, one in own.items() if inspect.isfunction(one) and not name.startswith("_")]
    return "".join(
        f"{level} {one.__name__}{arguments(one)}\n\n{inspect.getdoc(one) or ''}\n\n"
        for level, one in [("###", public), *(("####", one) for one in methods)]
    )


def arguments(public: Any) -> str:
    """The arguments of a function or a class; a module has none, and an error those of Python's own."""
    try:
        return str(inspect.signature(public))
    except (TypeError, ValueError):
        return ""


def listed(nav: Sequence[Mapping[str, Any]], address: str) -> Iterator[str]:
    """The lines of `llms.txt`: the pages in the order of the site, each with what it is for."""
    yield f"# wpinq\n\n> {paragraph(FIRST.read_text())}\n"
    sections: dict[str, list[tuple[str, str]]] = {"Begin": []}
    for entry in nav:
        for title, inside in entry.items():
            if isinstance(inside, str):
                sections["Begin"].append((title, inside))
            else:
                sections[title] = [pair for one in inside for pair in one.items()]
    for section, pages in sections.items():
        yield f"## {section}\n"
        yield from (f"- [{title}]({address}{page}): {purpose(page)}" for title, page in pages)
        yield ""


def purpose(page: str) -> str:
    """What a page is for: what the index says of it alone, or its first sentence."""
    row = re.search(rf"^\| \[[^\]]*\]\({re.escape(page)}\) \| (.+) \|$", TEXTS[INDEX], re.MULTILINE)
    return LINK.sub(r"\1", row[1]) if row else re.split(r"(?<=\.) ", paragraph(TEXTS[page]))[0]


def paragraph(text: str) -> str:
    """The first paragraph of prose of a page, in one line and without links."""
    first = next(part for part in text.split("\n\n") if re.match(r"[\w`*\[]", part.strip()))
    return LINK.sub(r"\1", " ".join(first.split()))
