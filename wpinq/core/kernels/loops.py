"""Loops with two implementations: in Python, as the definition, and in C, which runs where it was compiled.

Both give the same results, bit for bit, and draw the same random numbers; plain Python takes about a hundred times as
long. Each is a function of arrays, numbers and generators, or of tuples of them, that writes into arrays of its caller.
A generator is not locked while compiled code draws from it: two threads need two.

Searches for graphs (`walk`, `wander`) take a minute in C, so they run there alone; tests hold their Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from wpinq.core import kernels

P = ParamSpec("P")
R = TypeVar("R")


class _Array(ctypes.Structure):
    _fields_ = (("at", ctypes.c_void_p), ("length", ctypes.c_int64))


class _Draws(ctypes.Structure):
    _fields_ = (("next", ctypes.c_void_p), ("state", ctypes.c_void_p))


ARRAYS = {"I": np.dtype(np.int64), "i": np.dtype(np.int32), "F": np.dtype(np.float64), "B": np.dtype(np.uint8)}
TYPES = {**dict.fromkeys(ARRAYS, _Array), "n": ctypes.c_int64, "x": ctypes.c_double, "r": _Draws}
RESULTS: dict[str, Callable[[Any], Any]] = {"": lambda _: None, "n": int, "?": bool}
LOOPS = {
    "lower": "IInI",
    "upper": "IInI",
    "narrow": "IInnnIIIn",
    "sweep": "IInnnIIIIB",
    "trace": "IIBnI",
    "pool": "FFI>n",
    "weigh": "FFxxIIxF",
    "frontier": "FFxxIxII",
    "forward": "FIIIxFFF",
    "backward": "FFFFIIIxFF",
    "take": "IIi>?",
    "arrange": "Ii>n",
    "untangle": "Iirnn>?",
    "trade_lists": "Iiiir",
    "walk": "IiiiIIIFFiiFFFFinnnnxnr>n",
    "wander": "IIiiiiIIIIIIIFFiFFFFFinnxxnr>n",
}
"""What each takes, tuples unpacked: an array of a type, a whole number, a double or a generator; and what it gives."""

kernels.declare({
    f"wpinq_{name}": (ctypes.c_int64 if ">" in codes else None, tuple(TYPES[code] for code in codes.split(">")[0]))
    for name, codes in LOOPS.items()
})  # fmt: skip


def kernel(name: str) -> Callable[..., Any]:
    """The library's function of this name, which needs the library.

    Raises:
        TypeError: An array is not of the type that the C function takes, or not contiguous.
    """
    codes, _, result = LOOPS[name].partition(">")

    def run(*arguments: Any) -> Any:
        converted = [_converted(code, item) for code, item in zip(codes, _unpacked(arguments), strict=True)]
        return RESULTS[result](getattr(kernels.LIB, f"wpinq_{name}")(*converted))

    return run


def compiled(plain: Callable[P, R]) -> Callable[P, R]:
    """Let the library's function of this name do the work, or `plain` where there is no library; see `kernel`."""
    quick = kernel(plain.__name__)

    @wraps(plain)
    def run(*arguments: P.args, **keywords: P.kwargs) -> R:
        return cast(R, (plain if kernels.LIB is None else quick)(*arguments, **keywords))

    return run


def compiled_items(plain: Callable[P, R]) -> Callable[P, R]:
    """Do as `compiled`, with a `plain` that goes by single items: it gets memory views, quicker there than arrays."""

    @wraps(plain)
    def viewing(*arguments: P.args, **keywords: P.kwargs) -> R:
        return plain(*map(_viewed, arguments), **keywords)

    return compiled(viewing)


def _unpacked(arguments: tuple[Any, ...]) -> Iterator[Any]:
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _unpacked(argument)
        else:
            yield argument


def _converted(code: str, value: Any) -> Any:
    if code == "n":
        return int(value)
    if code == "x":
        return float(value)
    if code == "r":
        source = value.bit_generator.ctypes
        return _Draws(ctypes.cast(source.next_double, ctypes.c_void_p), source.state_address)
    if value.dtype != ARRAYS[code] or not value.flags.c_contiguous:
        raise TypeError(f"a kernel takes a contiguous array of {ARRAYS[code]}; found one of {value.dtype}.")
    return _Array(value.ctypes.data, len(value))


def _viewed(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_viewed, value))
    return memoryview(value) if isinstance(value, np.ndarray) else value  # type: ignore[arg-type]  # mypy sees no buffer
