"""What `wpinq demo` prints, in the page that shows it, run anew whenever the site is built."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

MARK = "<!-- what wpinq demo prints -->"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the screen where the page asks for it, as MkDocs asks hooks to."""
    return markdown.replace(MARK, f"```text\n{printed()}```") if page.file.src_uri == "tutorial.md" else markdown


def printed() -> str:
    """The screen of a terminal of 80 columns."""
    command = [sys.executable, "-m", "wpinq", "demo"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  it is wpinq
