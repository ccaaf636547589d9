"""A user's functions and expressions, bound to the columns of a collection."""

from __future__ import annotations

from wpinq.functions.bind import bind
from wpinq.functions.function import Dropped, Function
from wpinq.functions.isolate import running

__all__ = ["Dropped", "Function", "bind", "running"]
