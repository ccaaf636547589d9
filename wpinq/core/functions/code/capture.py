"""Capture a user's function when the plan is written: a copy with all values that it refers to, and its fingerprint.

One walk makes both, so the function that runs is the one that the fingerprint covers. Python looks closures, globals,
modules and defaults up when a function runs; the copy has its own, also of helper functions, down to immutable values.
So a lambda made in a loop keeps the values of its own iteration, and a list, a helper or a patched module that changes
later changes no plan.

Covered are the bytecode with its constants, defaults, closures and, recursively, every outer name that is looked up:
helpers likewise, Python's own library by name as far as `pure` lists it, Python itself by version. Names of files,
lines, comments, docstrings and local variables do not matter. Other values (objects, user classes, other libraries,
arrays, iterators, code that assigns outer names or attributes) are held as they are and have no fingerprint, so that
the plan is a new query every time. Functions must be pure all the same: what the code does not show, above all the
order in which a set gives its items, is the responsibility of their author.
"""

from __future__ import annotations

import functools
import operator
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

from wpinq.core.functions.code.bytecode import FRAMES, cells, global_names, own_builtins, readable
from wpinq.core.functions.code.fingerprint import ZONED, attributed, bytecode, digest, names, pure, value, zoned
from wpinq.core.functions.code.stdlib import READS, foreign, known_name, library, member
from wpinq.core.functions.covering import Uncovered
from wpinq.core.records.values import encode
from wpinq.errors import PlanError

ABOUT = ("__name__", "__package__", "__spec__")
GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
MUTABLE = (list, dict, set, bytearray)
NONE: frozenset[str] = frozenset()
UNREADABLE = (
    "this Python is newer than this wpinq, which cannot see what functions compute: they run as plain Python, and each "
    "question with one is a new question at a new charge, also when it is asked again. Name them, with "
    'wpinq.versioned(f, "1"), or write SQL or expressions.'
)
Taken = tuple[Any, Any]
"""A copy, and its canonical form as nested tuples."""


@dataclass(frozen=True)
class Captured:
    """A captured function.

    Attributes:
        function: The copy that runs.
        code: A digest of all of it, equal in every process; None where it refers to something unknown.
        restless: Whether it holds mutable values, which a call could change.
        zoned: Whether it may use the time zone of the computer.
        named: Whether it is known by a name that its author promises to keep (`core/functions/versioned.py`).
    """

    function: Callable[..., Any]
    code: bytes | None
    restless: bool
    zoned: bool
    named: bool = False


def capture(function: Callable[..., Any], call: str = "map") -> Captured:
    """Take a function as it is; where its bytecode is not known, it is held as it stands, and warned of once.

    Args:
        function: The function, or whatever is called.
        call: Name of the call, for messages.

    Raises:
        PlanError: It uses a name that is not there yet.
    """
    if not readable():
        warnings.warn(UNREADABLE, RuntimeWarning, stacklevel=2)
        return Captured(function, None, restless=True, zoned=True)
    walk = Walk(call)
    version = ".".join(map(str, sys.version_info[:3]))
    try:
        copy, code = walk.take(function)
        known = digest("python", sys.implementation.name, version, code) if walk.known else None
    except RecursionError:
        return Captured(function, None, restless=True, zoned=True)
    return Captured(copy, known, walk.restless, walk.zoned)


class Walk:
    """One walk over a function and the values that it refers to; each value is copied once.

    Attributes:
        known: Whether all values have a canonical form.
        restless, zoned: See `Captured`.
    """

    def __init__(self, call: str, form: Callable[..., Any] = bytecode) -> None:
        self.known, self.restless, self.zoned = True, False, False
        self._call, self._code = call, form
        self._met: dict[Any, tuple[Any, Taken]] = {}  # by id, with what keeps that id alive
        self._open: set[Any] = set()
        self._functions = self._shared = 0

    def take(self, given: Any, looked: frozenset[str] = NONE) -> Taken:
        """A copy of a value, and its form; `looked` are the names that the code which refers to it looks up."""
        plain = value(given)
        if plain is not None:
            return given, plain
        own = (id(given), looked) if isinstance(given, ModuleType) else id(given)  # of a module each has its own part
        if own in self._met:
            return self._met[own][1]
        if own in self._open:  # it holds itself
            return self._unknown(given)
        self._open.add(own)
        try:
            taken = self._container(given) or self._called(given, looked) or self._unknown(given)
        except Uncovered:
            taken = self._unknown(given)
        self._open.discard(own)
        self._met.setdefault(own, (given, self._again(*taken)))
        return taken

    def _again(self, copy: Any, form: Any) -> Taken:
        """A value that is referred to a second time; for mutable values the form says that it is the same object."""
        if type(copy) not in MUTABLE or form is None:
            return copy, form
        self._shared += 1
        return copy, ("shared", self._shared)

    def _unknown(self, given: Any) -> Taken:
        self.known = False
        return given, None

    def _all(self, given: Iterable[Any]) -> tuple[list[Any], tuple[Any, ...]]:
        taken = [self.take(item) for item in given]
        return [copy for copy, _ in taken], tuple(form for _, form in taken)

    def _container(self, given: Any) -> Taken | None:
        """What holds values."""
        kind = type(given)
        self.restless |= kind in MUTABLE
        if kind is bytearray:
            return bytearray(given), ("bytearray", bytes(given))
        if kind in (tuple, list):
            copies, forms = self._all(given)
            return kind(copies), (kind.__name__, *forms)
        if kind in (set, frozenset):
            copies, forms = self._all(given)
            return kind(copies), (kind.__name__, *sorted(map(encode, forms)))
        if kind is dict:
            keys, items = self._all(given), self._all(given.values())
            return dict(zip(keys[0], items[0], strict=True)), ("dict", keys[1], items[1])
        if kind is slice:
            copies, forms = self._all((given.start, given.stop, given.step))
            return slice(*copies), ("slice", *forms)
        if kind is re.Pattern:
            return given, ("pattern", self.take(given.pattern)[1], given.flags)
        return None

    def _called(self, given: Any, looked: frozenset[str]) -> Taken | None:
        """What is called, or looked into."""
        if isinstance(given, ModuleType):
            return self._module(given, looked)
        if isinstance(given, (FunctionType, functools._lru_cache_wrapper)):
            return self._function(given)
        if isinstance(given, BuiltinFunctionType) and not isinstance(given.__self__, (ModuleType, type(None))):
            return self._bound(given)
        if isinstance(given, (type, BuiltinFunctionType)):
            self.zoned |= given.__name__ in ZONED
            return given, ("library", *library(given))
        if isinstance(given, (MethodDescriptorType, WrapperDescriptorType)):
            return given, ("descriptor", self._known(given.__name__), *library(given.__objclass__))
        if isinstance(given, MethodType):
            (function, owner), forms = self._all((given.__func__, given.__self__))
            return MethodType(function, owner), ("method", *forms)
        if type(given) in (functools.partial, *GETTERS):
            return self._applied(given)
        named = member(given)
        return None if named is None else (given, ("member", *named))

    def _known(self, name: str) -> str:
        self.zoned |= name in ZONED
        return known_name(name)

    def _bound(self, given: Any) -> Taken:
        """A method of a value: of text, of a dictionary, of a class."""
        owner, name = given.__self__, self._known(given.__name__)
        if isinstance(owner, type):
            return given, ("made by", name, *library(owner))
        if type(owner) in MUTABLE and name not in READS:
            raise Uncovered
        copy, form = self.take(owner)
        return getattr(copy, name), ("bound", name, form)

    def _applied(self, given: Any) -> Taken:
        """A partial call, or one of the getters of `operator`."""
        if type(given) is functools.partial:
            (function, arguments, keywords), forms = self._all((given.func, given.args, given.keywords))
            if vars(given):
                raise Uncovered
            return functools.partial(function, *arguments, **keywords), ("partial", *forms)
        made, arguments = given.__reduce__()
        first, keywords = (made.args, made.keywords) if type(made) is functools.partial else ((), {})
        if type(given) is not operator.itemgetter:
            texts = (argument for argument in (*first, *arguments) if isinstance(argument, str))
            for name in [item for text in texts for item in text.split(".")]:
                self._known(name)
        (copied, named), forms = self._all(((*first, *arguments), keywords))
        return type(given)(*copied, **named), ("getter", type(given).__name__, *forms)

    def _module(self, module: ModuleType, looked: frozenset[str]) -> Taken:
        """A module with only those names that are looked up."""
        result = sorted(looked & vars(module).keys())
        before, self.known = self.known, True
        copies, forms = (
            zip(*(self.take(vars(module)[name], looked) for name in result), strict=True) if result else ((), ())
        )
        known, self.known = self.known, self.known and before
        if not result or not known or "__getattr__" in vars(module):  # what is not known stays where it was looked up
            return self._unknown(module)
        copy = ModuleType(module.__name__)
        vars(copy).update(zip(result, copies, strict=True))
        return copy, ("module", tuple(result), forms)

    def _function(self, given: Any) -> Taken:
        """A function of the user or of a library, or one with a cache, whose copy has a cache of its own."""
        try:
            return given, ("library", *library(given))
        except Uncovered:
            pass
        inner = given.__wrapped__ if isinstance(given, functools._lru_cache_wrapper) else given
        home = sys.modules.get(getattr(inner, "__module__", None) or "")
        if not isinstance(inner, FunctionType) or (home and vars(home) is inner.__globals__ and foreign(home, inner)):
            return self._unknown(given)
        if inner.__dict__.keys() - {"__wrapped__"}:
            self.known = False
        if names(inner.__code__) & FRAMES:
            return self._unknown(given)
        copy = outer = FunctionType(inner.__code__, self._globals(inner), inner.__name__, None, cells(inner))
        self._functions += 1
        met = ("met", self._functions)
        if inner is not given:
            outer = functools.lru_cache(given.cache_parameters()["maxsize"], typed=True)(copy)
            met = ("remembered", self._functions)
        self._met[id(given)] = (given, (outer, met))  # it may call itself
        form = self._fill(inner, copy)
        return outer, (met[0], form)

    def _globals(self, function: FunctionType) -> dict[str, Any]:
        """The globals of the copy: Python's builtins, and all globals if its code imports or makes classes."""
        result = {name: function.__globals__[name] for name in ABOUT if name in function.__globals__}
        own = own_builtins(function)
        wanted = set(own) if not pure(function.__code__) else set(global_names(function.__code__))
        return result | {"__builtins__": {name: own[name] for name in wanted if name in own}}

    def _fill(self, function: FunctionType, copy: FunctionType) -> Any:
        """Fill the copy with all that its function has, and return its form."""
        code, looked, first = function.__code__, names(function.__code__), self._functions == 1
        self.known &= pure(code)
        outer = tuple((name, self._outer(function, copy, name, looked, first=first)) for name in global_names(code))
        closure = []
        for name, cell, own in zip(code.co_freevars, function.__closure__ or (), copy.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:
                self.known = False
                continue
            own.cell_contents, form = self._looked_at(content, code, name, looked)
            closure.append(form)
        copy.__defaults__, defaults = self.take(function.__defaults__)
        keywords = dict(sorted((function.__kwdefaults__ or {}).items()))
        filled, kwdefaults = self._all(keywords.values())
        copy.__kwdefaults__ = dict(zip(keywords, filled, strict=True)) or None
        copy.__module__ = function.__module__
        copy.__dict__.update({name: self.take(item)[0] if name == "__wrapped__" else item
                              for name, item in function.__dict__.items()})  # fmt: skip
        self.zoned |= zoned(code)
        form = self._code(code, lambda one: self.take(one)[1], named=not first)
        return (form, defaults, tuple(keywords), kwdefaults, tuple(closure), outer)

    def _outer(
        self, function: FunctionType, copy: FunctionType, name: str, looked: frozenset[str], *, first: bool
    ) -> Any:
        """An outer name."""
        if name in function.__globals__:
            copy.__globals__[name], form = self._looked_at(function.__globals__[name], function.__code__, name, looked)
            return form
        builtins = own_builtins(function)
        if name in builtins:
            return ("builtin", self.take(builtins[name])[1])
        if first:
            raise PlanError(f"{self._call}: the function uses the name {name!r}, which is not defined yet; define it "
                            "first.")  # fmt: skip
        return ("missing",)

    def _looked_at(self, given: Any, code: Any, name: str, looked: frozenset[str]) -> Taken:
        """The value of an outer name; a module may be looked into, and no more, since only that is copied."""
        if isinstance(given, ModuleType) and not attributed(code, name):
            return self._unknown(given)
        return self.take(given, looked)
