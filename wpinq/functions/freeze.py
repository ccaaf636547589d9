"""Fix a function to what it means when the plan is written.

Python looks closures and globals up when a function runs, so a lambda made in a loop would later mean its last turn,
while its fingerprint was taken in an earlier one. A frozen function has its own copies of both, of lists, sets and
dictionaries in them too: it can no longer count records in a global or a closure, and changing a list between two runs
of one question is not a way to compare two histograms. What its helpers look up is theirs: functions must be pure.
"""

from __future__ import annotations

import builtins
from copy import deepcopy
from types import CellType, FunctionType

from wpinq.errors import PlanError
from wpinq.functions.bytecode import FRAMES, global_names, nested

ABOUT = ("__builtins__", "__name__", "__package__", "__spec__")


def freeze(function: FunctionType, call: str) -> FunctionType:
    """A copy of a function with the outer names that it uses as they are now.

    Raises:
        PlanError: It uses a name that is not there yet.
    """
    if FRAMES & {name for part in nested(function.__code__) for name in part.co_names}:
        return function
    found = {name: function.__globals__[name] for name in ABOUT if name in function.__globals__}
    for name in global_names(function.__code__):
        if name in function.__globals__:
            found[name] = _own(function.__globals__[name])
        elif not hasattr(builtins, name):
            raise PlanError(f"{call}: the function uses the name {name!r}, which is not defined yet; define it first.")
    closure = tuple(_copy(cell) for cell in function.__closure__ or ())
    defaults = None if function.__defaults__ is None else tuple(map(_own, function.__defaults__))
    frozen = FunctionType(function.__code__, found, function.__name__, defaults, closure)
    frozen.__kwdefaults__ = {name: _own(value) for name, value in (function.__kwdefaults__ or {}).items()} or None
    frozen.__module__ = function.__module__
    frozen.__dict__.update(function.__dict__)
    return frozen


def _copy(cell: CellType) -> CellType:
    try:
        return CellType(_own(cell.cell_contents))
    except ValueError:
        return CellType()


def _own(value: object) -> object:
    """A copy of what could be changed from outside; what cannot be copied has no fingerprint either."""
    if type(value) not in (list, dict, set, bytearray):
        return value
    try:
        return deepcopy(value)
    except Exception:  # noqa: BLE001  any object may be in it
        return value
