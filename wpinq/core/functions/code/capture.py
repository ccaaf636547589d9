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

`outlined` is the form of a function that any version of Python gives: its names, its constants and all that it
captured.
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
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

from wpinq.core.functions.code.bytecode import FRAMES, cells, global_names, nested, own_builtins, readable
from wpinq.core.functions.code.fingerprint import ZONED, attributed, bytecode, names, pure, value, zoned
from wpinq.core.functions.code.stdlib import READS, foreign, known_name, library, member
from wpinq.core.functions.covering import Uncovered
from wpinq.core.records.values import digest, encode
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

    def take(self, item: Any, looked: frozenset[str] = NONE) -> Taken:
        """A copy of a value, and its form; `looked` are the names that the code which refers to it looks up."""
        plain = value(item)
        if plain is not None:
            return item, plain
        key = (id(item), looked) if isinstance(item, ModuleType) else id(item)  # of a module each has its own part
        if key in self._met:
            return self._met[key][1]
        if key in self._open:  # it holds itself
            return self._unknown(item)
        self._open.add(key)
        try:
            taken = self._container(item) or self._called(item, looked) or self._unknown(item)
        except Uncovered:
            taken = self._unknown(item)
        self._open.discard(key)
        self._met.setdefault(key, (item, self._again(*taken)))
        return taken

    def _again(self, copy: Any, form: Any) -> Taken:
        """A value that is referred to a second time; for mutable values the form says that it is the same object."""
        if type(copy) not in MUTABLE or form is None:
            return copy, form
        self._shared += 1
        return copy, ("shared", self._shared)

    def _unknown(self, item: Any) -> Taken:
        self.known = False
        return item, None

    def _all(self, items: Iterable[Any]) -> tuple[list[Any], tuple[Any, ...]]:
        taken = [self.take(item) for item in items]
        return [copy for copy, _ in taken], tuple(form for _, form in taken)

    def _container(self, value: Any) -> Taken | None:
        """What holds values."""
        kind = type(value)
        self.restless |= kind in MUTABLE
        if kind is bytearray:
            return bytearray(value), ("bytearray", bytes(value))
        if kind in (tuple, list):
            copies, forms = self._all(value)
            return kind(copies), (kind.__name__, *forms)
        if kind in (set, frozenset):
            copies, forms = self._all(value)
            return kind(copies), (kind.__name__, *sorted(map(encode, forms)))
        if kind is dict:
            keys, items = self._all(value), self._all(value.values())
            return dict(zip(keys[0], items[0], strict=True)), ("dict", keys[1], items[1])
        if kind is slice:
            copies, forms = self._all((value.start, value.stop, value.step))
            return slice(*copies), ("slice", *forms)
        if kind is re.Pattern:
            return value, ("pattern", self.take(value.pattern)[1], value.flags)
        return None

    def _called(self, item: Any, looked: frozenset[str]) -> Taken | None:
        """What is called, or looked into."""
        if isinstance(item, ModuleType):
            return self._module(item, looked)
        if isinstance(item, (FunctionType, functools._lru_cache_wrapper)):
            return self._function(item)
        if isinstance(item, BuiltinFunctionType) and not isinstance(item.__self__, (ModuleType, type(None))):
            return self._bound(item)
        if isinstance(item, (type, BuiltinFunctionType)):
            self.zoned |= item.__name__ in ZONED
            return item, ("library", *library(item))
        if isinstance(item, (MethodDescriptorType, WrapperDescriptorType)):
            return item, ("descriptor", self._known(item.__name__), *library(item.__objclass__))
        if isinstance(item, MethodType):
            (function, owner), forms = self._all((item.__func__, item.__self__))
            return MethodType(function, owner), ("method", *forms)
        if type(item) in (functools.partial, *GETTERS):
            return self._applied(item)
        named = member(item)
        return None if named is None else (item, ("member", *named))

    def _known(self, name: str) -> str:
        self.zoned |= name in ZONED
        return known_name(name)

    def _bound(self, method: Any) -> Taken:
        """A method of a value: of text, of a dictionary, of a class."""
        owner, name = method.__self__, self._known(method.__name__)
        if isinstance(owner, type):
            return method, ("made by", name, *library(owner))
        if type(owner) in MUTABLE and name not in READS:
            raise Uncovered
        copy, form = self.take(owner)
        return getattr(copy, name), ("bound", name, form)

    def _applied(self, getter: Any) -> Taken:
        """A partial call, or one of the getters of `operator`."""
        if type(getter) is functools.partial:
            (function, arguments, keywords), forms = self._all((getter.func, getter.args, getter.keywords))
            if vars(getter):
                raise Uncovered
            return functools.partial(function, *arguments, **keywords), ("partial", *forms)
        made, arguments = getter.__reduce__()
        first, keywords = (made.args, made.keywords) if type(made) is functools.partial else ((), {})
        if type(getter) is not operator.itemgetter:
            texts = (argument for argument in (*first, *arguments) if isinstance(argument, str))
            for name in [item for text in texts for item in text.split(".")]:
                self._known(name)
        (copied, named), forms = self._all(((*first, *arguments), keywords))
        return type(getter)(*copied, **named), ("getter", type(getter).__name__, *forms)

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

    def _function(self, item: Any) -> Taken:
        """A function of the user or of a library, or one with a cache, whose copy has a cache of its own."""
        try:
            return item, ("library", *library(item))
        except Uncovered:
            pass
        inner = item.__wrapped__ if isinstance(item, functools._lru_cache_wrapper) else item
        home = sys.modules.get(getattr(inner, "__module__", None) or "")
        if not isinstance(inner, FunctionType) or (home and vars(home) is inner.__globals__ and foreign(home, inner)):
            return self._unknown(item)
        if inner.__dict__.keys() - {"__wrapped__"}:
            self.known = False
        if names(inner.__code__) & FRAMES:
            return self._unknown(item)
        copy = outer = FunctionType(inner.__code__, self._globals(inner), inner.__name__, None, cells(inner))
        self._functions += 1
        met = ("met", self._functions)
        if inner is not item:
            outer = functools.lru_cache(item.cache_parameters()["maxsize"], typed=True)(copy)
            met = ("remembered", self._functions)
        self._met[id(item)] = (item, (outer, met))  # it may call itself
        form = self._fill(inner, copy)
        return outer, (met[0], form)

    def _globals(self, function: FunctionType) -> dict[str, Any]:
        """The globals of the copy: Python's builtins, and all globals if its code imports or makes classes."""
        result = {name: function.__globals__[name] for name in ABOUT if name in function.__globals__}
        builtins_ = own_builtins(function)
        wanted = set(builtins_) if not pure(function.__code__) else set(global_names(function.__code__))
        return result | {"__builtins__": {name: builtins_[name] for name in wanted if name in builtins_}}

    def _fill(self, function: FunctionType, copy: FunctionType) -> Any:
        """Fill the copy with all that its function has, and return its form."""
        code, looked, first = function.__code__, names(function.__code__), self._functions == 1
        self.known &= pure(code)
        outer = tuple((name, self._outer(function, copy, name, looked, first=first)) for name in global_names(code))
        closure = []
        for name, cell, copied in zip(
            code.co_freevars, function.__closure__ or (), copy.__closure__ or (), strict=True
        ):
            try:
                content = cell.cell_contents
            except ValueError:
                self.known = False
                continue
            copied.cell_contents, form = self._looked_at(content, code, name, looked)
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

    def _looked_at(self, item: Any, code: Any, name: str, looked: frozenset[str]) -> Taken:
        """The value of an outer name; a module may be looked into, and no more, since only that is copied."""
        if isinstance(item, ModuleType) and not attributed(code, name):
            return self._unknown(item)
        return self.take(item, looked)


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
