"""What a public call may be given: checked once, where the caller enters, by one line above the function.

A value of a wrong type would otherwise fail far inside, with an error that names nothing that the caller wrote. The
message names the type of what was given and never the value, whose own `repr`, `==` or `bool` might fail or be long.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from wpinq.errors import PlanError

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Expected:
    """What an argument has to be.

    Attributes:
        words: For the message: `a text`.
        holds: Whether a value is such.
    """

    words: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Expected) -> Expected:
        return Expected(f"{self.words} or {other.words}", lambda value: self.holds(value) or other.holds(value))


def instance(words: str, *types: type) -> Expected:
    """A value of one of some types."""
    return Expected(words, lambda value: isinstance(value, types))


def _encodable(text: str) -> bool:
    try:
        return "\0" not in text and bool(text.encode() or True)
    except UnicodeEncodeError:
        return False


def _path(value: Any) -> bool:
    if not isinstance(value, (str, os.PathLike)):
        return False
    path = os.fspath(value)
    return (
        isinstance(path, str) and "\0" not in path and not any("\ud800" <= character < "\udc80" for character in path)
    )


NOTHING = Expected("None", lambda value: value is None)
FLAG = Expected("True or False", lambda value: isinstance(value, bool))
TEXT = Expected("a text", lambda value: isinstance(value, str))
NAME = Expected("a name without NUL and lone surrogates", lambda value: isinstance(value, str) and _encodable(value))
PATH = Expected("a path", _path)
NAMES = Expected(
    "a name, or several of them",
    lambda value: NAME.holds(value) or (isinstance(value, (list, tuple)) and all(map(NAME.holds, value))),
)
COLLECTION = Expected("a protected collection", lambda value: hasattr(value, "_node"))
MAPPING = instance("a mapping", Mapping)
WHOLE = Expected("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool))


def described(value: object) -> str:
    """A number or a short text as it was given, and of anything else the type."""
    if isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= SHOWN):
        return repr(value) if not isinstance(value, int) or abs(value) < 10**SHOWN else "a very large number"
    return type(value).__name__


SHOWN = 60
"""Characters of a value that a message repeats."""


def require(value: object, expected: Expected, argument: str) -> None:
    """Refuse an argument that is not what it has to be.

    Raises:
        PlanError: At the argument, `"shave(name=...)"`: it is something else.
    """
    if not expected.holds(value):
        raise PlanError(f"{argument}: takes {expected.words}, and {type(value).__name__} was given.")


def takes(call: str | None = None, /, **expected: Expected) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Refuse arguments that are not what a function takes, before it begins.

    Args:
        call: What the caller wrote; by default the function's own name.
        expected: What each of some arguments has to be.

    Raises:
        PlanError: At the call: an argument is something else.
        TypeError: At the call: an argument is missing, or one too many.

    >>> @takes(name=TEXT | NOTHING)
    ... def greet(name=None):
    ...     return name or "somebody"
    >>> greet()
    'somebody'
    >>> greet(7)
    Traceback (most recent call last):
    wpinq.errors.PlanError: greet(name=...): takes a text or None, and int was given.
    >>> greet("ann", "bob")
    Traceback (most recent call last):
    TypeError: greet(): too many positional arguments.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        title = call or function.__name__

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                result = signature.bind(*args, **kwargs)
            except TypeError as error:  # it does not say which call it was
                raise TypeError(f"{title}(): {error}.") from None
            received = {**result.arguments, **kwargs}
            for name, value in received.items():
                if name in expected:
                    require(value, expected[name], f"{title}({name}=...)")
            return function(*args, **kwargs)

        return checked

    return decorate
