"""Where a module comes from: Python, a versioned library, or the user."""

from __future__ import annotations

import functools
import importlib.metadata
import sys
import sysconfig
from pathlib import Path

_RESTLESS = """
    random secrets time uuid sys io socket subprocess threading multiprocessing tempfile ctypes gc inspect importlib
    asyncio select signal shelve sqlite3 urllib.request http"""
RESTLESS = frozenset(_RESTLESS.split())


class Uncovered(Exception):  # noqa: N818
    """A fingerprint cannot cover something."""


def origin(name: str | None) -> str | None:
    """The version of the library that a module belongs to; None for a module of the user.

    Raises:
        Uncovered: The module is a clock, random, or otherwise not a function of its arguments, or has no version.
    """
    if name is None:
        raise Uncovered
    top = name.split(".")[0]
    if top in RESTLESS or name in RESTLESS:
        raise Uncovered
    if top == "__main__":
        return None
    if top in sys.stdlib_module_names:
        return ".".join(map(str, sys.version_info[:3]))
    return _version(top) if _installed(top) else None


def _installed(top: str) -> bool:
    places = [Path(sysconfig.get_path(key)) for key in ("purelib", "platlib")]
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is not None and any(Path(file).is_relative_to(place) for place in places)


@functools.cache
def _version(top: str) -> str:
    version = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        raise Uncovered from None
