"""Progress of anything that may take over two seconds, in bytes of files or steps of work, never rows.

The number of rows is protected, so a bar that counted them would publish it (privacy rule 42).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import TextIO

BAR_DELAY = 2.0
"""Seconds before a bar appears."""


@contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Show a bar once the work has taken two seconds: on standard error, if that is a terminal, or in a notebook.

    Yields:
        A function to call with the progress since the last call, or None where nobody would see it.
    """
    kind = _Cell if notebook() else _Bar if terminal(sys.stderr) else None
    if kind is None or not total:
        yield None
        return
    shown = kind(title, total)
    try:
        yield shown.update
    finally:
        shown.close()


def terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is a terminal. Where the process has none, it is None, or closed."""
    return stream is not None and not stream.closed and stream.isatty()


class _Bar:
    def __init__(self, title: str, total: int) -> None:
        self._title, self._total, self._start = title, total, time.monotonic()
        self._close: Callable[[], None] | None = None
        self._done = 0
        self._show: Callable[[int], None] = lambda done: None

    def update(self, more: int) -> None:
        self._done += more
        if self._close is None and time.monotonic() - self._start > BAR_DELAY:
            self._open()
        self._show(self._done)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        task = progress.add_task(self._title, total=self._total)
        progress.start()
        self._show, self._close = lambda done: progress.update(task, completed=done), progress.stop

    def close(self) -> None:
        if self._close is not None:
            self._close()


def notebook() -> bool:
    """Whether this is the process of a notebook; IPython is not loaded to find out."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class _Cell(_Bar):
    """The same below a cell of a notebook, in whole percents; it goes when the work is done."""

    _percent = 0

    def _open(self) -> None:
        shown = import_module("IPython.display")
        handle = shown.display(shown.HTML(self._html(0)), display_id=True)

        def show(done: int) -> None:
            percent = min(100, 100 * done // self._total)
            if percent != self._percent:
                self._percent = percent
                handle.update(shown.HTML(self._html(percent)))

        self._show, self._close = show, lambda: handle.update(shown.HTML(""))

    def _html(self, percent: int) -> str:
        return f'<label>{escape(self._title)} <progress max="100" value="{percent}">{percent}%</progress></label>'
