"""Records that are made up from the columns of a collection, to try a dataflow on before anything is charged."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from wpinq.collection import Collection
from wpinq.core.records.schema import Column, Kind
from wpinq.testing.evaluation import leaves

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
FEW = 5
"""Different values of a column, about: so that some records have one in common and others do not."""


def made_up(collection: Collection, rows: int = 20) -> list[tuple[Any, ...]]:
    """Records with the columns of the source of a collection, the same at each call. No record of the source is read.

    Args:
        collection: A protected collection, or what a dataflow makes of one.
        rows: How many.

    >>> from wpinq.testing import evaluate, made_up, protected
    >>> visits = protected(region="text", age=int)
    >>> made_up(visits, 2)
    [('region 1', 1), ('region 2', 2)]
    >>> evaluate(visits.map(lambda region: region.upper()), made_up(visits))[("REGION 1",)]
    4
    """
    columns = leaves(collection)[0].schema
    return [tuple(_value(column, index, row) for index, column in enumerate(columns)) for row in range(rows)]


def _value(column: Column, index: int, row: int) -> Any:
    number = row % (FEW + index) + 1
    return _MADE[column.kind](column.name, number)


_MADE: dict[Kind, Callable[[str, int], Any]] = {
    Kind.INT: lambda _, number: number,
    Kind.FLOAT: lambda _, number: number + 0.5,
    Kind.TEXT: lambda name, number: f"{name} {number}",
    Kind.BOOL: lambda _, number: number % 2 == 1,
    Kind.BYTES: lambda name, number: f"{name} {number}".encode(),
    Kind.DATE: lambda _, number: START.date() + dt.timedelta(number),
    Kind.TIME: lambda _, number: START.replace(tzinfo=None) + dt.timedelta(hours=7 * number),
    Kind.INSTANT: lambda _, number: START + dt.timedelta(hours=7 * number),
    Kind.SPAN: lambda _, number: dt.timedelta(minutes=number),
    Kind.ANY: lambda name, number: f"{name} {number}",
}
