"""A user's functions and expressions, bound to the columns of a collection.

`README.md` says what each file knows.
"""

from __future__ import annotations

from wpinq.functions.bind import bind, bind_many
from wpinq.functions.function import Dropped, Function
from wpinq.functions.isolate import running
from wpinq.functions.many import Many

__all__ = ["Dropped", "Function", "Many", "bind", "bind_many", "running"]
