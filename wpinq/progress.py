"""Progress of anything that may take over two seconds, in bytes of files or steps of work, never rows; quick imports.

The number of rows is protected, so a bar that counted them would publish it (privacy rule 42).
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from importlib import import_module
from types import ModuleType
from typing import Any

BAR_DELAY = 2.0
"""Seconds before a bar appears."""
MODULES = 4
"""How many times as many objects as others there are, if nearly all of them are of modules."""


@contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Show a bar once the work has taken two seconds: on standard error, if that is a terminal, or in a notebook.

    Yields:
        A function to call with the progress since the last call, or None where nobody would see it.
    """
    kind = _Cell if notebook() else _Bar if sys.stderr.isatty() else None
    if kind is None or not total:
        yield None
        return
    shown = kind(title, total)
    try:
        yield shown.update
    finally:
        shown.close()


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


class _Heap:
    """What is known of the objects that loading made."""

    made = 0
    """How many of them the collector may still look at."""
    frozen = False
    """Whether some were frozen; the collector tells it by looking at all that are, which takes milliseconds."""


@contextmanager
def loading(name: str) -> Iterator[None]:
    """Pause the collector while a module is loaded for the first time: nothing of a module is garbage.

    What it made goes to the oldest generation without a look at it. Where nearly all objects of the process are now of
    what was loaded, as in a process that begins with wpinq, all are frozen for good: the collector would look through
    them again and again, and once more at the end of the process, for a fifth of the time of a short run. The others
    are few then, are still freed when nothing refers to them, and only cycles among them stay.
    """
    pausing = name not in sys.modules and gc.isenabled()
    if pausing:
        gc.disable()
        before, count = len(gc.get_objects()), gc.get_count()[0]  # objects; allocations, counted though it is off
    try:
        yield
    finally:
        if pausing:
            made = gc.get_count()[0] - count
            if before + made >= MODULES * (before - _Heap.made):
                gc.freeze()
                _Heap.made, _Heap.frozen = 0, True
            else:
                _Heap.made += made
                if not _Heap.frozen and not gc.get_freeze_count():
                    gc.freeze()
                    gc.unfreeze()
            gc.enable()


def late(face: str, homes: Mapping[str, str], rooms: Sequence[str] = ()) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names are each loaded when they are first used: most of them never are.

    Type checkers do not see it, so the module imports its names once more under TYPE_CHECKING.

    Args:
        face: The name of the module.
        homes: For each name the module that it is of, within wpinq.
        rooms: Names that are modules in it themselves.
    """

    def found(name: str) -> Any:
        if name not in homes and name not in rooms:
            raise AttributeError(f"module {face!r} has no attribute {name!r}; it has {', '.join([*homes, *rooms])}.")
        home = f"wpinq.{homes[name]}" if name in homes else f"{face}.{name}"
        with loading(home):
            module = import_module(home)
        return getattr(module, name) if name in homes else module

    return found


class Methods:
    """Stands for a module in the body of a class, where `f = module.f` makes a method of its function.

    The function is taken from the module when the method is first used, or asked for at the class.
    """

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _Method(self._module)


class _Method:
    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type) -> Any:
        setattr(self._owner, self._name, getattr(self._module, self._name))
        return getattr(owner if instance is None else instance, self._name)
