"""The operators that are methods of collections. Each is loaded when it is first used, since few plans use many.

They are not in `__init__.py`, because there the file `map.py` would hide its function `map` as soon as it is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wpinq.progress.loading import late

if TYPE_CHECKING:
    from wpinq.operators.concat import concat
    from wpinq.operators.distinct import distinct
    from wpinq.operators.filter import filter
    from wpinq.operators.flat_map import flat_map
    from wpinq.operators.group_by import group_by
    from wpinq.operators.intersect import intersect
    from wpinq.operators.join import join
    from wpinq.operators.join_rows import join_rows
    from wpinq.operators.map import map
    from wpinq.operators.partition import partition
    from wpinq.operators.semijoin import antijoin, limit, semijoin
    from wpinq.operators.shave import shave
    from wpinq.operators.subtract import subtract
    from wpinq.operators.union import union
    from wpinq.operators.window import window

__all__ = [
    "antijoin",
    "concat",
    "distinct",
    "filter",
    "flat_map",
    "group_by",
    "intersect",
    "join",
    "join_rows",
    "limit",
    "map",
    "partition",
    "semijoin",
    "shave",
    "subtract",
    "union",
    "window",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    _HOMES = dict(zip(__all__, __all__, strict=True)) | {"antijoin": "semijoin", "limit": "semijoin"}
    __getattr__ = late(__name__, {name: f"operators.{home}" for name, home in _HOMES.items()})
