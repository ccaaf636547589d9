"""Canonical forms of values, bytecode and the platform, for fingerprints that are equal in every process."""

from __future__ import annotations

import datetime as dt
import decimal
import dis
import locale
import os
import struct
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import CodeType
from typing import Any

from wpinq.core.functions.code.bytecode import FRAMES, nested, steps_of
from wpinq.core.functions.code.stdlib import denied

REPRESENTED = (
    type(None), type(...), type(NotImplemented), bool, range, Decimal, Fraction, dt.date, dt.timedelta, dt.time,
    dt.datetime, dt.timezone,
)  # fmt: skip
"""Immutable types whose values are determined by their `repr`."""
OUTWARD = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "IMPORT_NAME", "LOAD_BUILD_CLASS")


DOCUMENTED = 0x4000000
"""The flag of code that has a docstring, since Python 3.14."""
ZONED = frozenset(
    ["timestamp", "astimezone", "strftime", "strptime", "format", "format_map", "Formatter"]
)  # fmt: skip
"""Names of functions whose results depend, or may depend, on the time zone of the computer."""


def platform(*, zoned: bool) -> tuple[Any, ...]:
    """Settings on which results of plain Python depend besides its arguments: how numbers and times are written."""
    context = decimal.DefaultContext  # that of a new thread, as functions run in
    exact = (context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp)
    traps = tuple(sorted(signal.__name__ for signal, set_ in context.traps.items() if set_))
    words = (locale.setlocale(locale.LC_TIME), locale.setlocale(locale.LC_NUMERIC))
    zone = (*time.tzname, time.timezone, os.environ.get("TZ")) if zoned else ()
    return (*exact, *traps, *words, sys.get_int_max_str_digits(), *zone)


def value(item: Any) -> bytes | None:
    """A canonical form of a value that cannot change; None for any other."""
    form = _FORMS.get(type(item))
    if form is None or (getattr(item, "tzinfo", None) is not None and type(item.tzinfo) is not dt.timezone):
        return None
    return form(item)


def _represented(item: Any) -> bytes:
    return f"{type(item).__name__} {item!r}".encode()


_FORMS: dict[Any, Callable[[Any], bytes]] = dict.fromkeys(REPRESENTED, _represented) | {
    str: lambda text: b"s" + text.encode("utf-8", "surrogatepass"),
    bytes: lambda content: b"b" + content,
    int: lambda number: b"i%x" % number,
    float: lambda number: b"f" + _number(number),
    complex: lambda number: b"c" + _number(number.real) + b" " + _number(number.imag),
}


def _number(number: float) -> bytes:
    """A float by its bits, so that NaNs with different signs, which `copysign` reads, differ."""
    return number.hex().encode() if number == number else struct.pack(">d", number)  # noqa: PLR0124


def bytecode(code: CodeType, constant: Callable[[Any], Any], *, named: bool) -> Any:
    """Instructions and the constants that they load, in order of use, so that a docstring is none.

    Args:
        code: Of a function.
        constant: Gives the form of a constant.
        named: Whether parameters have names; those have none to which columns are bound.
    """
    steps = list(steps_of(code))
    loaded = [step.arg for step in steps if step.opcode in dis.hasconst and step.arg is not None]
    number = {index: order for order, index in enumerate(dict.fromkeys(loaded))}  # a docstring may be one of them
    done = tuple((step.opcode, number[step.arg] if step.arg in number and step.opcode in dis.hasconst else step.arg)
                 for step in steps)  # fmt: skip
    constants = tuple(_constant(code.co_consts[index], constant) for index in number)
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if named else ()
    counts = (
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_nlocals,
        code.co_flags & ~DOCUMENTED,
    )
    return (done, code.co_exceptiontable, code.co_names, arguments, counts, constants)


def _constant(item: Any, constant: Callable[[Any], Any]) -> Any:
    if isinstance(item, CodeType):
        return ("code", bytecode(item, constant, named=True))
    return constant(item)


def names(code: CodeType) -> frozenset[str]:
    """All names that code looks up, outside of itself or in values."""
    return frozenset(name for part in nested(code) for name in part.co_names)


def pure(code: CodeType) -> bool:
    """Whether code neither assigns outside of itself, nor makes classes, nor looks up what may lead anywhere."""
    if any(map(denied, names(code))) or names(code) & FRAMES:
        return False
    for part in nested(code):
        for step in steps_of(part):
            freed = step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in code.co_freevars
            if freed or step.opname in OUTWARD:
                return False
    return True


def zoned(code: CodeType) -> bool:
    """Whether code may look at the computer's zone, as `f"{time:%s}"` does too."""
    steps = [step for part in nested(code) for step in steps_of(part)]
    formats = any(step.opname == "FORMAT_VALUE" and (step.arg or 0) & 4 for step in steps)
    return formats or bool(names(code) & ZONED)


def attributed(code: CodeType, name: str) -> bool:
    """Whether code does no more with an outer name than to look up attributes of it, as with a module."""
    loads = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")
    for part in nested(code):
        listed = list(steps_of(part))
        for step, following in zip(listed, [*listed[1:], None], strict=True):
            looks = following is not None and following.opname in ("LOAD_ATTR", "LOAD_METHOD")
            if step.opname in loads and step.argval == name and not looks:
                return False
    return True
