"""What people take for one function, in whatever version of Python: names, constants, and all that it captured."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from wpinq.core.functions.code.bytecode import nested, readable
from wpinq.core.functions.code.capture import Walk
from wpinq.core.functions.code.fingerprint import digest
from wpinq.core.records.values import encode


def outlined(function: Callable[..., Any]) -> bytes | None:
    """A digest of what a function names, of its constants and of all that it captured, equal in versions of Python.

    It decides nothing: bytecode, and what Python's own functions compute (3.12 adds up floats in another way), differ
    between versions, so only the fingerprint says that two functions compute the same.
    """
    if not readable():
        return None
    walk = Walk("map", form=outline)
    try:
        _, form = walk.take(function)
    except RecursionError:
        return None
    return digest("outline", form) if walk.known else None


def outline(code: CodeType, constant: Callable[[Any], Any], *, named: bool) -> Any:
    """What code names and the constants that it holds, in no order; code that computes something else may share it."""
    parts = list(nested(code))
    held = {encode(constant(item)) for part in parts for item in part.co_consts if not isinstance(item, CodeType)}
    looked = {name for part in parts for name in part.co_names}
    return (tuple(sorted(held - {encode(constant(None))})), tuple(sorted(looked)), code.co_argcount)
