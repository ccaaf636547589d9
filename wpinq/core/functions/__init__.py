"""A user's functions and expressions, bound to the columns of a collection."""

from __future__ import annotations

from wpinq.core.functions.bind import bind, bind_many
from wpinq.core.functions.function import Dropped, Function
from wpinq.core.functions.isolate import running

__all__ = ["Dropped", "Function", "bind", "bind_many", "running"]
