"""Fix a function to what it means when the plan is written.

Python looks closures and globals up when a function runs, so a lambda made in a loop would later mean its last turn,
while its fingerprint was taken in an earlier one. A frozen function has its own copies of both; it can also no longer
count records in a global or a closure. Lists and dictionaries are not copied: functions must be pure.
"""

from __future__ import annotations

import builtins
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
            found[name] = function.__globals__[name]
        elif not hasattr(builtins, name):
            raise PlanError(f"{call}: the function uses the name {name!r}, which is not defined yet; define it first.")
    closure = tuple(_copy(cell) for cell in function.__closure__ or ())
    frozen = FunctionType(function.__code__, found, function.__name__, function.__defaults__, closure)
    frozen.__kwdefaults__ = dict(function.__kwdefaults__) if function.__kwdefaults__ else None
    frozen.__module__ = function.__module__
    frozen.__dict__.update(function.__dict__)
    return frozen


def _copy(cell: CellType) -> CellType:
    try:
        return CellType(cell.cell_contents)
    except ValueError:
        return CellType()
