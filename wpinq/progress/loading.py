"""What lets a process start soon: modules are loaded when they are first used, and the collector waits meanwhile."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

MODULES = 3
"""How many times as many objects as all others loading made, if nearly all of them are of modules."""


class _Heap:
    """What is known of the objects that loading made."""

    made = 0
    """How many they are."""
    frozen = False
    """Whether they were frozen; the collector tells it by looking at all that are, which takes milliseconds."""


@contextmanager
def loading(name: str) -> Iterator[None]:
    """Pause the collector while a module is loaded for the first time: nothing of a module is garbage.

    What it made goes to the oldest generation without a look at it. Where nearly all objects of the process are now of
    what was loaded, as in a process that begins with wpinq, all are frozen for good: the collector would look through
    them again and again, and once more at the end of the process, for a fifth of the time of a short run. The others
    are few then, are still freed when nothing refers to them, and only cycles among them stay.

    Objects are counted by blocks of memory: `gc.get_objects` would hold for a moment what other threads are still
    making, and Python then fails in these with a SystemError.
    """
    pausing = name not in sys.modules and gc.isenabled()
    if pausing:
        gc.disable()
        before = sys.getallocatedblocks()
    try:
        yield
    finally:
        if pausing:
            now = sys.getallocatedblocks()
            _Heap.made += max(now - before, 0)
            if 0 < MODULES * (now - _Heap.made) <= _Heap.made:
                gc.freeze()
                _Heap.frozen = True
            elif not _Heap.frozen and not gc.get_freeze_count():
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
            has = ", ".join(sys.modules[face].__all__)
            raise AttributeError(f"module {face!r} has no attribute {name!r}; it has {has}.")
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
        return _Method(self._module, name)


class _Method:
    def __init__(self, module: ModuleType, name: str) -> None:
        self._module, self._name = module, name

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._here = owner, name

    def __get__(self, instance: object, owner: type) -> Any:
        function = getattr(self._module, self._name)
        if vars(self._owner).get(self._here) is self:  # else somebody has put another there, which stays
            setattr(self._owner, self._here, function)
        return function.__get__(instance, owner)
