"""`wpinq.versioned`: a function that is known by a name and a version, which its author promises to change with it.

A plain Python function is known by its bytecode and the version of Python, since either may change what it computes.
So another Python is another question, at a new charge; and where bytecode is not known, every question is a new one. A
versioned function is the same question for ever, in every Python. What it rests on is the author's promise; the seal of
each answered histogram holds it, as far as it can be held: a function that computes another histogram under the same
name closes the version of the data, and nothing is answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import Signature, signature
from types import CodeType, FunctionType
from typing import Any

from wpinq.core.functions.code.bytecode import arity, readable
from wpinq.core.functions.code.capture import Captured, capture
from wpinq.core.functions.code.fingerprint import value
from wpinq.core.records.values import digest
from wpinq.errors import PlanError

_CONTENTS: dict[tuple[str, str], object] = {}
"""What each name and version stands for in this process."""


@dataclass(frozen=True, eq=False)
class Versioned:
    """A function with a name and a version.

    Attributes:
        function: The function.
        name, version: What it is known by, instead of its bytecode.
    """

    function: Callable[..., Any]
    name: str
    version: str

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Call the function."""
        return self.function(*values, **named)

    @property
    def __signature__(self) -> Signature:
        return signature(self.function)

    def __repr__(self) -> str:
        return f"versioned({self.name}, {self.version!r})"

    @property
    def returns(self) -> int | None:
        """The number of items of the tuple that it is seen to return; None where that is not seen."""
        code = getattr(self.function, "__code__", None)
        return arity(code) if isinstance(code, CodeType) else None

    def captured(self, call: str) -> Captured:
        """The function with what it holds, known by its name.

        Args:
            call: Name of the call, for messages.
        """
        return replace(
            capture(self.function, call), code=digest("versioned", self.name, self.version), restless=False, named=True
        )


def versioned(function: Callable[..., Any], version: str, *, name: str | None = None) -> Versioned:
    """Name a function for ever, so that the same question is free in every version of Python.

    You promise that the name and the version stand for one computation: whenever the function, or anything that it
    looks up (a threshold, a helper, a library), computes something else for any record, give it another version. Two
    functions of one process that differ are refused under one name; what another process computes cannot be compared
    before it has run. Then a different histogram closes the version of the data for all questions, and that this
    happens tells the curator something about records at no charge: keep the promise.

    It runs as plain Python and reads all columns that it has parameters for. Name its outputs, `columns=[...]`, where
    it returns a tuple.

    Args:
        function: A pure function of one record.
        version: Its version, for example "1".
        name: Its name; by default the one that `def` gave it. A lambda needs one.

    Returns:
        The function, to be given to `map`, `filter` and all others that take one.

    Raises:
        PlanError: It is no function, has no name, or another function has the name and version.

    Source: the identity of a query, privacy rule 2.

    >>> import wpinq
    >>> def newspaper(page):
    ...     return page.split("/")[0]
    >>> views = wpinq.protect([("ann", "news/1"), ("bob", "news/2")], budget=1, columns={"user": str, "page": str})
    >>> papers = views.map(wpinq.versioned(newspaper, "1"))
    >>> both = papers.measure(epsilon="0.5"), papers.measure(epsilon="0.5")
    >>> views.left
    Fraction(1, 2)
    """
    if isinstance(function, Versioned) or not callable(function):
        raise PlanError(f"versioned: takes a function, and got {type(function).__name__}.")
    if name is None and getattr(function, "__name__", "<").startswith("<"):
        raise PlanError("versioned: the function has no name of its own; give name=, which you keep for ever.")
    title = _word(getattr(function, "__name__", "") if name is None else name, "name")
    words = _word(version, "version")
    content = _content(function)
    if _CONTENTS.setdefault((title, words), content) != content:
        raise PlanError(
            f"versioned: another function, or one that holds other values, is named {title!r}, version {words!r}, in "
            "this process; give this one another version= or name=."
        )
    return Versioned(function, title, words)


def _word(given: object, argument: str) -> str:
    if not isinstance(given, str) or not given or not given.isprintable():
        raise PlanError(f'versioned({argument}=...): takes a text that can be printed, for example "1".')
    return given


def _content(function: Callable[..., Any]) -> object:
    """What tells a function from others of this process, as far as that can be seen."""
    code = capture(function, "versioned").code if readable() else None
    if code is not None or not isinstance(function, FunctionType):
        return code or id(function)
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    held += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return _code(function.__code__), tuple(value(content) or id(content) for content in held)


def _code(code: CodeType) -> object:
    constants = tuple(_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    return code.co_code, code.co_names, constants
