"""The parts of Python's library that depend on their arguments alone: an allow-list.

Files, clocks, generators of random numbers, caches and addresses are not on it, because results that depend on them
change while the code stays the same. A module counts as Python's own by the place of its file, not by its name, which a
file of the user may have too (`profile.py`, `calendar.py`).
"""

from __future__ import annotations

import builtins
import enum
import functools
import sys
import sysconfig
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from wpinq.core.functions.covering import Uncovered

_MODULES = """
    _bisect _blake2 _collections _decimal _functools _hashlib _heapq _md5 _operator _pydecimal _sha1 _sha2 _sha256
    _sha512 _statistics _struct abc array ast base64 binascii bisect cmath collections collections.abc colorsys
    contextlib copy datetime decimal difflib enum fractions functools graphlib hashlib heapq hmac html html.entities
    ipaddress itertools json json.decoder json.encoder keyword math numbers operator re shlex statistics string struct
    textwrap typing unicodedata urllib.parse zlib"""
_FUNCTIONS = "basename dirname isabs join normpath split splitext"
_BUILTINS = """
    abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter float format frozenset
    hasattr int isinstance issubclass iter len list map max memoryview min next oct hex ord pow print range repr
    reversed round set slice sorted str sum tuple type zip"""
_DENIED = """
    now today utcnow fromtimestamp getcontext setcontext localcontext samples file_digest monthcalendar
    setfirstweekday attrgetter methodcaller get_field get_type_hints ForwardRef gi_frame cr_frame ag_frame tb_frame
    f_back"""
_READS = """
    __contains__ __getitem__ __len__ copy count difference get index intersection isdisjoint issubset issuperset items
    keys symmetric_difference union values"""
_OPERATORS = "add contains eq ge getitem gt le len lt mod mul ne sub"
MODULES = frozenset(_MODULES.split())
"""Modules whose functions and classes depend on their arguments alone, but for `DENIED`."""
FUNCTIONS = frozenset(f"posixpath.{name}" for name in _FUNCTIONS.split())
"""Functions of other modules that do."""
BUILTINS = frozenset(_BUILTINS.split())
DENIED = frozenset(_DENIED.split())
"""Names that code may not look up, nor any name between double underscores: they give access to anything, by names as
text or by frames, which hold other records."""
READS = frozenset(_READS.split())
"""Methods of lists, dictionaries and sets that leave them as they are."""
OPERATORS = frozenset(f"__{name}__" for name in _OPERATORS.split())


def denied(name: str) -> bool:
    """Whether code that looks the name up has no fingerprint."""
    return name in DENIED or (name.startswith("__") and name.endswith("__") and name not in OPERATORS)


@functools.cache
def _places() -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Where Python's own modules lie, and where others are installed, which may be below."""
    python, others = (
        tuple(Path(sysconfig.get_path(key)).resolve() for key in keys)
        for keys in (("stdlib", "platstdlib"), ("purelib", "platlib"))
    )
    return python, others


def pythons(module: ModuleType | None) -> bool:
    """Whether a module is one of Python's own, whatever it is called."""
    spec = getattr(module, "__spec__", None)
    if module is None or spec is None or sys.modules.get(module.__name__) is not module:
        return False
    return spec.origin in ("built-in", "frozen") or (_lies(module, _places()[0]) and not installed(module))


def installed(module: ModuleType | None) -> bool:
    """Whether a module was installed beside Python's own."""
    return module is not None and _lies(module, _places()[1])


def _lies(module: ModuleType, places: tuple[Path, ...]) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and any(Path(file).resolve().is_relative_to(folder) for folder in places)


def foreign(home: ModuleType, function: FunctionType) -> bool:
    """Whether a function is a library's own, and not made by a call of one, as a decorator makes them."""
    return (pythons(home) or installed(home)) and "<locals>" not in function.__qualname__


def known_name(name: str) -> str:
    """The name of a method that may be looked up.

    Raises:
        Uncovered: What it leads to cannot be known.
    """
    if denied(name) and name not in READS:
        raise Uncovered
    return name


def library(value: Any) -> tuple[str, str]:
    """The module and the name of a function or class of Python's own that depends on its arguments alone.

    Raises:
        Uncovered: It is none, or not the one that its name says, or not known to be one.
    """
    home, name = getattr(value, "__module__", None) or "builtins", getattr(value, "__qualname__", None)
    module = sys.modules.get(home)
    if not isinstance(name, str) or not pythons(module) or any(map(denied, name.split("."))):
        raise Uncovered
    try:
        result = functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        raise Uncovered from None
    if result is not value or not (home in MODULES or f"{home}.{name}" in FUNCTIONS or _builtin(home, name, value)):
        raise Uncovered
    return home, name


def _builtin(home: str, name: str, value: Any) -> bool:
    exception = isinstance(value, type) and issubclass(value, BaseException)
    return home == builtins.__name__ and (name in BUILTINS or exception)


def member(value: Any) -> tuple[str, ...] | None:
    """What names a member of one of Python's own enumerations, such as `re.IGNORECASE`."""
    return (*library(type(value)), str(value.name), str(value.value)) if isinstance(value, enum.Enum) else None
