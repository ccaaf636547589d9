"""Facts about a Python function that follow from its bytecode, without calling it. CPython 3.11 to 3.14.

What a newer one means by its instructions is not known here (`readable`), so nothing is concluded from them: functions
run as plain Python, read every column that they are given, and have no fingerprint but by `wpinq.versioned`.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple

NEWEST = (3, 14)
"""The last version whose instructions are known."""
FRAMES = frozenset({"locals", "vars", "dir", "eval", "exec", "globals", "_getframe", "currentframe"})
ENDS = frozenset(["JUMP_FORWARD", "JUMP_BACKWARD", "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"])
GENERATES = inspect.CO_GENERATOR
AWAITS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
JOINED = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
"""Two instructions in one, since 3.13 and 3.14."""
FORMATS = {"FORMAT_SIMPLE": 0, "FORMAT_WITH_SPEC": 4}
"""What 3.13 has made of FORMAT_VALUE, and its argument."""
RENAMED = {"LOAD_FAST_BORROW": "LOAD_FAST", "LOAD_SMALL_INT": "LOAD_CONST", "NOT_TAKEN": "NOP"}
"""What 3.14 has made of older instructions, where the argument's value is the same."""


class Step(NamedTuple):
    """An instruction, in the terms of 3.12."""

    opname: str
    opcode: int
    arg: int | None
    argval: Any
    offset: int


def steps_of(code: CodeType) -> tuple[Step, ...]:
    """The instructions of code. They follow from what makes code equal, and each of several rules reads them."""
    try:
        return _known_steps(code)
    except TypeError:  # a constant that somebody put in has no hash
        return tuple(_steps(code))


@lru_cache(maxsize=1024)
def _known_steps(code: CodeType) -> tuple[Step, ...]:
    return tuple(_steps(code))


def _steps(code: CodeType) -> Iterator[Step]:
    for step in dis.get_instructions(code):
        rest = step.opcode, step.arg, step.argval, step.offset
        if step.opname in JOINED:
            for name, value in zip(JOINED[step.opname], step.argval, strict=True):
                yield Step(name, step.opcode, step.arg, value, step.offset)
        elif step.opname in FORMATS:
            yield Step("FORMAT_VALUE", step.opcode, FORMATS[step.opname], step.argval, step.offset)
        elif step.opname == "BINARY_OP" and step.argrepr == "[]":
            yield Step("BINARY_SUBSCR", *rest)
        else:
            yield Step(RENAMED.get(step.opname, step.opname), *rest)


def readable() -> bool:
    """Whether the bytecode of this Python is known."""
    return sys.implementation.name == "cpython" and sys.version_info[:2] <= NEWEST


def yields(code: CodeType, *, asynchronous: bool = False) -> bool:
    """Whether calling it gives a generator or a coroutine (or, if asked, only the latter), not a result."""
    return bool(code.co_flags & (AWAITS if asynchronous else GENERATES | AWAITS))


def arity(code: CodeType) -> int | None:
    """How many items the tuple has that every `return` writes out; None when that cannot be seen.

    >>> arity((lambda a, b: (b, a, 1)).__code__), arity((lambda a: a).__code__)
    (3, None)
    """
    steps = list(steps_of(code))
    result: set[int | None] = set()
    for index, step in enumerate(steps):
        if step.opname == "RETURN_CONST":
            result.add(_size(step.argval))
        elif step.opname == "RETURN_VALUE":
            result.update(_built(origin) for origin in _origins(steps, index))
    size = result.pop() if len(result) == 1 else None
    return size or None


def _origins(steps: list[Step], index: int) -> Iterator[Step]:
    """The instructions after which this one may come, seen through plain jumps."""
    if index and steps[index - 1].opname not in ENDS:
        yield steps[index - 1]
    for other, step in enumerate(steps):
        if step.opcode in dis.hasjrel and step.argval == steps[index].offset:
            if step.opname == "JUMP_FORWARD":
                yield from _origins(steps, other)
            else:
                yield step


def _built(step: Step) -> int | None:
    if step.opname == "BUILD_TUPLE":
        return step.arg
    return _size(step.argval) if step.opname == "LOAD_CONST" else None


def _size(constant: object) -> int | None:
    return len(constant) if isinstance(constant, tuple) else None


def used(code: CodeType) -> frozenset[str]:
    """Names of parameters and variables that the code touches; all where it looks at its own frame, or is not known."""
    if not readable() or FRAMES & {name for part in nested(code) for name in part.co_names}:
        return frozenset(code.co_varnames)
    local = ("FAST", "DEREF", "CLOSURE", "CELL")
    return frozenset(step.argval for step in steps_of(code) if any(word in step.opname for word in local))


def nested(code: CodeType) -> Iterator[CodeType]:
    """The code, and that of the functions which it defines."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def global_names(code: CodeType) -> tuple[str, ...]:
    """Names that the code, or what it defines, looks up outside of itself, sorted."""
    loads = ("LOAD_GLOBAL", "LOAD_NAME")
    result = {step.argval for part in nested(code) for step in steps_of(part) if step.opname in loads}
    return tuple(sorted(result))


def own_builtins(function: Any) -> dict[str, Any]:
    """What a function finds where no outer name is: Python's own names."""
    result: dict[str, Any] = function.__builtins__
    return result


def cells(function: FunctionType) -> tuple[CellType, ...]:
    """New cells for a copy of a closure."""
    return tuple(CellType() for _ in function.__closure__ or ())
