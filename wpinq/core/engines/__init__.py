"""Engines run plans. They see five shapes, not operators; they know no budgets and draw no random numbers.

Whether bytewax is installed is asked here, before anything is loaded that plans need.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec


@cache
def installed() -> bool:
    """Whether bytewax is: it has no release for Python 3.13 and later."""
    return find_spec("bytewax") is not None


def engine_name() -> str:
    """The engine of large files and streams, in words."""
    return "bytewax" if installed() else "a plain loop in one process (bytewax needs Python 3.11 or 3.12)"
