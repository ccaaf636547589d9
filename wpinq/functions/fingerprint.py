"""Canonical fingerprints of Python functions: equal in every process, different when the meaning may differ.

Covered are the bytecode with its constants, defaults, closures and, recursively, every outer name that is looked up:
helpers likewise, libraries by name and version, Python itself by version. Names of files, lines, comments, docstrings
and local variables do not matter. What cannot be covered (objects, user classes, clocks, random numbers, files, code
that assigns outer names) gives no fingerprint, and the plan is then a new question every time (privacy rule 2).
"""

from __future__ import annotations

import datetime as dt
import dis
import functools
import hashlib
import re
import sys
import types
from decimal import Decimal
from fractions import Fraction
from typing import Any

from wpinq.functions.bytecode import global_names, nested
from wpinq.functions.origin import Uncovered, origin
from wpinq.values import encode

_IMPURE = """
    open input eval exec compile globals locals vars dir id hash __import__ getattr setattr delattr breakpoint now today
    utcnow random randint choice shuffle default_rng environ getenv urandom getpid uuid1 uuid4 stat exists read_text
    read_bytes time time_ns monotonic perf_counter"""
IMPURE = frozenset(_IMPURE.split())
REPRESENTED = (range, dt.date, dt.timedelta, dt.time, dt.timezone, Decimal, Fraction, complex)


def digest(*parts: Any) -> bytes:
    """A hash of nested tuples of text, integers, bytes and None."""
    return hashlib.sha256(encode(parts)).digest()


def fingerprint(function: object, *parts: Any) -> bytes | None:
    """The fingerprint of a function and what is said about its call, or None when it cannot be told."""
    try:
        version = ".".join(map(str, sys.version_info[:3]))
        return digest("plain", sys.implementation.name, version, parts, Cover().value(function))
    except (Uncovered, RecursionError):
        return None


class Cover:
    """One walk over a function and what it refers to. Functions met again are referred to by number."""

    def __init__(self) -> None:
        self._met: dict[int, int] = {}

    def value(self, value: Any, names: frozenset[str] = frozenset()) -> Any:
        """A canonical form of a value; `names` are what the code that refers to it looks up.

        Raises:
            Uncovered: There is none.
        """
        kind = type(value)
        if value is None or value is Ellipsis or kind is bool:
            return ("constant", repr(value))
        if kind in (int, float, str, bytes, bytearray):
            return (kind.__name__, _scalar(value))
        if kind in (tuple, list):
            return (kind.__name__, *(self.value(item) for item in value))
        if kind in (set, frozenset):
            return ("set", *sorted(encode(self.value(item)) for item in value))
        if kind is dict:
            return ("dict", *((self.value(key), self.value(item)) for key, item in value.items()))
        if kind in REPRESENTED or (kind is dt.datetime and type(value.tzinfo) in (type(None), dt.timezone)):
            return (kind.__name__, repr(value))
        if kind is re.Pattern:
            return ("pattern", self.value(value.pattern), value.flags)
        return self._callable(value, names)

    def _callable(self, value: Any, names: frozenset[str]) -> Any:
        if isinstance(value, types.ModuleType):
            return self._module(value, names)
        if isinstance(value, type):
            return ("class", *_library(value))
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return ("method", self.value(value.__func__), self.value(value.__self__))
        if type(value) is functools.partial:
            return ("partial", self.value(value.func), self.value(value.args), self.value(value.keywords))
        if isinstance(value, functools._lru_cache_wrapper):
            return ("cached", self.value(value.__wrapped__))
        if isinstance(value, types.BuiltinFunctionType):
            owner = value.__self__
            pure = isinstance(owner, types.ModuleType) or owner is None
            return ("builtin", *_library(value)) if pure else ("bound", value.__name__, self.value(owner))
        if isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return ("descriptor", value.__name__, *_library(value.__objclass__))
        raise Uncovered

    def _module(self, module: types.ModuleType, names: frozenset[str]) -> Any:
        version = origin(module.__name__)
        if version is not None:
            return ("module", module.__name__, version)
        found = sorted(names & vars(module).keys())
        if not found:
            raise Uncovered
        return ("own module", *((name, self.value(vars(module)[name], names)) for name in found))

    def _function(self, function: types.FunctionType) -> Any:
        if id(function) in self._met:
            return ("met", self._met[id(function)])
        self._met[id(function)] = len(self._met)
        if len(self._met) > 1 and origin(function.__module__) is not None and _reachable(function):
            return ("library function", *_library(function))
        if function.__dict__.keys() - {"__wrapped__"}:
            raise Uncovered
        code = function.__code__
        names = frozenset(name for part in nested(code) for name in part.co_names)
        if names & IMPURE:
            raise Uncovered
        _assigns_nothing_outside(code)
        outer = [(name, self._outer(name, function.__globals__, names)) for name in global_names(code)]
        closure = tuple(self.value(_content(cell), names) for cell in function.__closure__ or ())
        own = (self.value(function.__defaults__), self.value(dict(sorted((function.__kwdefaults__ or {}).items()))))
        return ("function", self._code(code, named=len(self._met) > 1), own, closure, tuple(outer))

    def _outer(self, name: str, found: dict[str, Any], names: frozenset[str]) -> Any:
        if name in found:
            return self.value(found[name], names)
        builtins = found.get("__builtins__", {})
        known = builtins if isinstance(builtins, dict) else vars(builtins)
        return ("builtin", name) if name in known else ("missing", name)

    def _code(self, code: types.CodeType, *, named: bool) -> Any:
        """Bytecode and the constants that it loads; parameters have no names where columns are bound to them."""
        loads = (step.arg for step in dis.get_instructions(code) if step.opcode in dis.hasconst)
        places = sorted({place for place in loads if place is not None})
        constants = tuple((place, self._constant(code.co_consts[place])) for place in places)
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if named else ()
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_nlocals, code.co_flags)
        return (code.co_code, code.co_exceptiontable, code.co_names, arguments, counts, constants)

    def _constant(self, constant: Any) -> Any:
        if isinstance(constant, types.CodeType):
            return ("code", self._code(constant, named=True))
        return self.value(constant)


def _scalar(value: Any) -> bytes | str:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, int):
        return hex(value)
    return value.hex() if isinstance(value, float) else bytes(value)


def _library(value: Any) -> tuple[str, str, str]:
    """Where a library's function or class lives, and that library's version."""
    module = getattr(value, "__module__", None) or "builtins"
    version = origin(module)
    if version is None or value.__name__ in IMPURE:
        raise Uncovered
    return module, value.__qualname__, version


def _reachable(function: types.FunctionType) -> bool:
    """Whether a library's function is the one that its name says, and not made by a call."""
    return getattr(sys.modules.get(function.__module__), function.__qualname__, None) is function


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        raise Uncovered from None


def _assigns_nothing_outside(code: types.CodeType) -> None:
    for part in nested(code):
        for step in dis.get_instructions(part):
            outside = step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME") or (
                step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in code.co_freevars
            )
            if outside:
                raise Uncovered
