"""The bound of a query: how much of each person it looks at, in each of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wpinq.collection import Collection
from wpinq.errors import PlanError
from wpinq.query.derived import CALL


def rebounded(tables: Mapping[str, Any], at_most: object, per: object) -> Mapping[str, Any]:
    """The tables under the bound of a query.

    Args:
        tables: The tables by name.
        at_most: How many records of each person, in each table of people, or by table; None for the bound that they
            were protected with.
        per: A column and a number beside it, or by table.

    Raises:
        PlanError: There is no table of people, or none of a name; or see `Collection.at_most`.
    """
    if at_most is None:
        if per is not None:
            raise PlanError(f"{CALL}(per=...): goes with at_most=, a number of records.")
        return tables
    people = [
        name for name, table in tables.items() if isinstance(table, Collection) and table._node.bounds_units is not None
    ]
    numbers = at_most if isinstance(at_most, Mapping) else dict.fromkeys(people, at_most)
    columns = per if isinstance(per, Mapping) else dict.fromkeys(numbers, per)
    unknown = [name for name in (*numbers, *columns) if name not in people]
    if unknown or not people:
        which = f"table {unknown[0]!r}" if unknown else "each table"
        raise PlanError(f"{CALL}(at_most=...): {which} is no table of people, as protect(unit=users(...)) gives it.")
    return {
        name: table.at_most(numbers[name], per=columns.get(name)) if name in numbers else table
        for name, table in tables.items()
    }
