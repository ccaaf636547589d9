"""Match the parameters of a function to columns.

By name when every parameter without a default names a column (`*args` and parameters before a `/` name none), else by
position, and then there must be as many as there are columns; `*args` takes all that are left. A parameter with a
default keeps it, unless parameters are matched by name and it names a column. A parameter that the code never uses
gets None, so its column need not be read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from wpinq.core.functions.code.bytecode import used
from wpinq.core.records.schema import Schema
from wpinq.errors import PlanError

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Binding:
    """How a call is made from the columns read.

    Attributes:
        reads: The columns, in parameter order.
        labels: What each of them is called in the output when it is passed on.
        positional: For each positional argument its place in `reads`; None for one that is never looked at.
        keywords: Pairs of a keyword and a place in `reads`, or None likewise.
    """

    reads: tuple[str, ...]
    labels: tuple[str, ...]
    positional: tuple[int | None, ...]
    keywords: tuple[tuple[str, int | None], ...]

    def arguments(self, values: list[Any] | tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call, from the values of `reads`."""
        inputs = (*values, None)
        positional = [inputs[-1 if position is None else position] for position in self.positional]
        return positional, {name: inputs[-1 if position is None else position] for name, position in self.keywords}

    @property
    def straight(self) -> bool:
        """Whether the arguments are the values as they come."""
        return bool(self.reads) and self.positional == tuple(range(len(self.reads))) and not self.keywords

    def code(self) -> tuple[Any, ...]:
        """What a fingerprint must hold of it."""
        return self.reads, self.positional, self.keywords

    def narrowed(self, reads: frozenset[str]) -> Binding:
        """The same call when only these columns matter."""
        positions = [position for position, name in enumerate(self.reads) if name in reads]
        moved: dict[int | None, int] = {old: new for new, old in enumerate(positions)}
        return Binding(
            tuple(self.reads[position] for position in positions),
            tuple(self.labels[position] for position in positions),
            tuple(moved.get(position) for position in self.positional),
            tuple((name, moved.get(position)) for name, position in self.keywords),
        )


def match(function: Callable[..., Any], schema: Schema, call: str) -> Binding:
    """Match a function's parameters to columns.

    Raises:
        PlanError: They do not fit.
    """
    parameters = _parameters(function)
    if parameters is None:
        if len(schema) != 1:
            raise PlanError(f"{call}: the parameters of this function cannot be seen, and there are {len(schema)} "
                            f"columns ({', '.join(schema.names)}); write a lambda that names the columns.")  # fmt: skip
        return Binding(schema.names, schema.names, (0,), ())
    binding = _by_name(parameters, schema) or _by_position(parameters, schema, call)
    return _unread(binding, parameters, function)


def _parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...] | None:
    if isinstance(function, type):
        return None
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return None


def parameter_names(function: object) -> tuple[str, ...]:
    """The names of a function's parameters, where they can be seen."""
    parameters = _parameters(function) if callable(function) else None
    return tuple(parameter.name for parameter in parameters or ())


def _by_name(parameters: tuple[inspect.Parameter, ...], schema: Schema) -> Binding | None:
    named: list[str] = []
    positional: list[int | None] = []
    keywords: list[tuple[str, int | None]] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            return None
        if parameter.name not in schema:
            if parameter.default is parameter.empty:
                return None
            continue
        if parameter.kind in POSITIONAL and parameter is parameters[len(positional)]:
            positional.append(len(named))
        else:
            keywords.append((parameter.name, len(named)))
        named.append(parameter.name)
    return Binding(tuple(named), tuple(named), tuple(positional), tuple(keywords)) if named else None


def _by_position(parameters: tuple[inspect.Parameter, ...], schema: Schema, call: str) -> Binding:
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    fixed = [parameter.name for parameter in required if parameter.kind in POSITIONAL]
    many = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    stray = [parameter.name for parameter in required if parameter.kind is parameter.KEYWORD_ONLY]
    if stray:
        raise PlanError(f"{call}: parameter {stray[0]!r} names no column; there are {schema.listed}.")
    if len(fixed) > len(schema) or (len(fixed) < len(schema) and not many):
        takes = f"{len(fixed)} argument{'' if len(fixed) == 1 else 's'}" + (" or more" if many else "")
        raise PlanError(f"{call}: the function takes {takes}, and there are {len(schema)} columns "
                        f"({', '.join(schema.names)}); name columns as parameters, or take all of them.")  # fmt: skip
    labels = (*fixed, *schema.names[len(fixed) :])
    return Binding(schema.names, labels, tuple(range(len(schema))), ())


def _unread(binding: Binding, parameters: tuple[inspect.Parameter, ...], function: Callable[..., Any]) -> Binding:
    """Leave out the columns of parameters that the code never touches."""
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return binding
    touched = used(function.__code__)
    if any(parameter.kind is parameter.VAR_POSITIONAL and parameter.name in touched for parameter in parameters):
        return binding
    return binding.narrowed(
        frozenset(name for name, label in zip(binding.reads, binding.labels, strict=True) if label in touched)
    )
