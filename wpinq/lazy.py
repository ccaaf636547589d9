"""Names of a module that are loaded when they are first used (PEP 562), methods that are, and what stands above a room.

The core is shown, and reads public tables, by functions that stand on it. It asks for them by name (`above`), and
`wpinq/__init__.py` says where they are (`provide`): so nothing in the core imports what knows HTML, pictures or files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any


def late(face: str, files: Mapping[str, str], rooms: Sequence[str] = ()) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names are each loaded when they are first used: most of them never are.

    Type checkers do not see it, so the module imports its names once more under TYPE_CHECKING.

    Args:
        face: The name of the module.
        files: For each file of wpinq the names of it.
        rooms: Names that are modules in it themselves.
    """
    homes = {name: file for file, names in files.items() for name in names.split()}

    def loaded(name: str) -> Any:
        if name not in homes and name not in rooms:
            has = ", ".join(sys.modules[face].__all__)
            raise AttributeError(f"module {face!r} has no attribute {name!r}; it has {has}.")
        home = f"wpinq.{homes[name]}" if name in homes else f"{face}.{name}"
        module = import_module(home)
        value = getattr(module, name) if name in homes else module
        setattr(sys.modules[face], name, value)  # also where a file of that name was set there by its import
        return value

    return loaded


_above: dict[str, str] = {}


def provide(files: Mapping[str, str]) -> None:
    """Say where the functions are that rooms ask for by `above`.

    Args:
        files: For each file of wpinq the names of it.
    """
    _above.update({name: file for file, names in files.items() for name in names.split()})


def above(name: str) -> Any:
    """A function that stands above whoever asks for it, by its name; it is loaded when it is first asked for."""
    return getattr(import_module(f"wpinq.{_above[name]}"), name)


def shown_by(name: str) -> Any:
    """A method that is a function of `above`, such as how an object is shown."""

    def method(self: object) -> Any:
        return above(name)(self)

    return method


class Methods:
    """Stands for a module in the body of a class, where `f = module.f` makes a method of its function.

    The function is taken from the module when the method is first used, or asked for at the class.

    Args:
        module: The module.
        around: Makes the method of the function, where that is more than the function.
    """

    def __init__(self, module: ModuleType, around: Callable[[Any], Any] | None = None) -> None:
        self._module, self._around = module, around

    def __getattr__(self, name: str) -> Any:
        return _Method(self._module, name, self._around)


class _Method:
    def __init__(self, module: ModuleType, name: str, around: Callable[[Any], Any] | None) -> None:
        self._module, self._name, self._around = module, name, around

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._here = owner, name

    def __get__(self, instance: object, owner: type) -> Any:
        function = getattr(self._module, self._name)
        function = function if self._around is None else self._around(function)
        if vars(self._owner).get(self._here) is self:  # else somebody has put another there, which stays
            setattr(self._owner, self._here, function)
        return function.__get__(instance, owner)
