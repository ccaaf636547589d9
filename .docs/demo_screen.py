"""What `wpinq demo` prints, as pictures of a terminal and as text, in the page that shows it.

`python .docs/demo_screen.py` writes the pictures; so does a build of the site, where they differ. They are the same in
each run: here alone, in a process of its own, the system's random numbers are those of a seed. The people are made up.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from html import escape
from pathlib import Path
from textwrap import indent
from typing import Any

PICTURES = Path(__file__).parents[1] / "wpinq" / "docs"
MARK = "<!-- what wpinq demo prints -->"
SEED = 9
"""Chooses the noise of the pictures; in a terminal each run has another."""
SHOWN = {
    "demo-exact.svg": ("1", "2", "Two exact tables of a company, and what their difference tells of one person."),
    "demo-noisy.svg": ("3", "3", "The price of the same question, and noisy counts with their intervals."),
    "demo-attackers.svg": ("4", "4", "What attackers see in two worlds that differ by one person: two histograms."),
    "demo-cost.svg": ("5", "5", "What it cost, as the ledger shows it, and a refusal."),
}
"""For each picture the first and the last of the parts that it shows, and what it shows in words."""
RUN = """
import os, random, sys
os.urandom = random.Random(int(sys.argv[1])).randbytes
from wpinq.apps.cli import main
sys.exit(main(["demo"]))
"""
WIDE, HIGH, SIZE, EDGE = 8.4, 18, 14, 16
"""Pixels of a character, of a line, of the letters, and around all."""
COLUMNS, NO_BREAK = 80, "\u00a0"


def on_pre_build(**_: Any) -> None:
    """Write the pictures that differ from those that are there, as MkDocs asks hooks to."""
    write()


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the text where the page asks for it, below the pictures that it shows."""
    if page.file.src_uri != "tutorial.md":
        return markdown
    text = indent(f"```text\n{printed()}```", "    ")
    return markdown.replace(MARK, f'??? note "The same as text"\n\n{text}')


@cache
def printed() -> str:
    """The screen of a terminal of 80 columns."""
    command = [sys.executable, "-c", RUN, str(SEED)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  it is wpinq


def pictures() -> dict[str, str]:
    """The pictures, by the names of their files."""
    parts = {part[0]: part for part in re.split(r"^(?=\d\. )", printed(), flags=re.MULTILINE) if part[:1].isdigit()}
    return {
        name: drawn("".join(parts[number] for number in sorted(parts) if first <= number <= last), alt)
        for name, (first, last, alt) in SHOWN.items()
    }


def drawn(text: str, title: str) -> str:
    """Text as a picture of a terminal; each line has its width said, so that columns stand below each other."""
    lines = ["$ wpinq demo", "...", *text.rstrip("\n").splitlines()]
    width, height = round(COLUMNS * WIDE + 2 * EDGE), len(lines) * HIGH + 2 * EDGE
    rows = "".join(_row(EDGE + HIGH * at + SIZE, line) for at, line in enumerate(lines) if line)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img"><title>{escape(title)}</title>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#1c1f26"/>\n'
        f'<g fill="#e3e6eb" font-size="{SIZE}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace">\n'
        f"{rows}</g></svg>\n"
    )


def _row(at: int, line: str) -> str:
    shown = escape(line).replace(" ", NO_BREAK)  # browsers make one space of several
    return f'<text x="{EDGE}" y="{at}" textLength="{WIDE * len(line):.1f}">{shown}</text>\n'


def write() -> list[str]:
    """Write those that differ from what is there, and name them."""
    changed = {name: text for name, text in pictures().items() if not _same(PICTURES / name, text)}
    for name, text in changed.items():
        (PICTURES / name).write_text(text, "utf-8")
    return list(changed)


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text("utf-8") == text


if __name__ == "__main__":
    sys.stdout.write("".join(f"written: {name}\n" for name in write()))
