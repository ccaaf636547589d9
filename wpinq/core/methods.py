"""Operators and measurements that are methods of collections, each loaded when it is first used: few plans use many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wpinq.lazy import late

if TYPE_CHECKING:
    from wpinq.core.measurements.measure import explain, measure, quote
    from wpinq.core.measurements.select import select
    from wpinq.core.operators.concat import concat, subtract
    from wpinq.core.operators.contribution.sample import at_most
    from wpinq.core.operators.distinct import distinct
    from wpinq.core.operators.filter import filter
    from wpinq.core.operators.flat_map import flat_map
    from wpinq.core.operators.group_by import group_by
    from wpinq.core.operators.join import join
    from wpinq.core.operators.join_rows import join_rows
    from wpinq.core.operators.map import map
    from wpinq.core.operators.partition import partition
    from wpinq.core.operators.semijoin import antijoin, limit, semijoin
    from wpinq.core.operators.shave import shave
    from wpinq.core.operators.union import intersect, union
    from wpinq.core.operators.window import window

__all__ = [
    "antijoin", "at_most", "concat", "distinct", "explain", "filter", "flat_map", "group_by", "intersect", "join",
    "join_rows", "limit", "map", "measure", "partition", "quote", "select", "semijoin", "shave", "subtract", "union",
    "window",
]  # fmt: skip
MEASUREMENTS = {"explain", "measure", "quote", "select"}
OPERATORS = sorted(set(__all__) - MEASUREMENTS)
"""Those that give a collection again, each with a contract."""


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    _HOMES = {
        "measurements.measure": "explain measure quote",
        "measurements.select": "select",
        "operators.concat": "concat subtract",
        "operators.contribution.sample": "at_most",
        "operators.semijoin": "antijoin limit semijoin",
        "operators.union": "intersect union",
        **{f"operators.{name}": name for name in (
            "distinct", "filter", "flat_map", "group_by", "join", "join_rows", "map", "partition", "shave", "window",
        )},
    }  # fmt: skip
    __getattr__ = late(__name__, {f"core.{home}": names for home, names in _HOMES.items()})
