"""Random inputs of a dataflow, and inputs that differ by one privacy unit, as strategies of hypothesis."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from wpinq.collection import Collection
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Record, Source
from wpinq.core.plan.person_bound import mover
from wpinq.core.records.schema import Kind
from wpinq.errors import needs
from wpinq.testing.evaluation import leaves

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

MANY = 6
"""Records of an input, and of a person, at the most: what breaks a stability does so with few."""

FEW: dict[Kind, list[Any]] = {
    Kind.INT: [0, 1, 2, 3, -1, None],
    Kind.FLOAT: [0.0, 1.0, 0.5, 2.0, -1.5, None],
    Kind.TEXT: ["a", "b", "c", "a b", "", None],
    Kind.BOOL: [False, True, None],
    Kind.BYTES: [b"a", b"b", b"", None],
    Kind.DATE: [dt.date(2026, 1, day) for day in (1, 2, 9)] + [None],
    Kind.TIME: [dt.datetime(2026, 1, day, hour) for day in (1, 2) for hour in (0, 7)] + [None],
    Kind.INSTANT: [dt.datetime(2026, 1, day, 7, tzinfo=dt.UTC) for day in (1, 2, 9)] + [None],
    Kind.SPAN: [dt.timedelta(hours=hours) for hours in (0, 1, 30)] + [None],
    Kind.ANY: [0, 1, "a", "b", 0.5, (1, "a"), None],
}
"""Values of each kind: few, so that many records are equal."""

Values = Mapping[str, Sequence[Any]] | None
"""Values to draw from, by the name of a column."""


class Neighbours(NamedTuple):
    """Inputs of a dataflow without and with one privacy unit.

    Attributes:
        without: The records of each source.
        with_one: The same, and one unit more: a record in one of them, or a person in all of their ledger's.
        data: A data set that the unit is in.
    """

    without: tuple[list[Record], ...]
    with_one: tuple[list[Record], ...]
    data: DataSet


def inputs(collection: Collection, values: Values = None) -> SearchStrategy[tuple[list[Record], ...]]:
    """Random records for each protected collection that a dataflow is made of, in the order of `evaluate`.

    Args:
        collection: What the dataflow returns.
        values: For some columns the values to draw from, such as those that a filter looks for.

    Raises:
        PlanError: Hypothesis is not installed.
    """
    st = needed("hypothesis.strategies")
    records = [st.lists(_records(source, values), max_size=MANY) for source in leaves(collection)]
    result: SearchStrategy[tuple[list[Record], ...]] = st.tuples(*records)
    return result


def neighbours(collection: Collection, values: Values = None) -> SearchStrategy[Neighbours]:
    """Random inputs that differ by one privacy unit: one record, or all records of one person.

    Arguments and errors are those of `inputs`.
    """
    st = needed("hypothesis.strategies")
    read = leaves(collection)

    def draw_both(draw: Callable[[Any], Any]) -> Neighbours:
        index = draw(st.integers(0, len(read) - 1))
        data, without = read[index].data, list(draw(inputs(collection, values)))
        unit = draw(st.lists(_records(read[index], values), min_size=1, max_size=MANY))
        unit = _one_unit(read[index], unit)
        whose = _whose(read[index], unit[0])
        with_one = [list(records) for records in without]
        for at, source in enumerate(read):
            if at == index or (whose and mover(source.data) == mover(data)):
                more = unit if at == index else draw(st.lists(_records(source, values), max_size=MANY))
                without[at] = _others(source, without[at], whose)
                with_one[at] = [*without[at], *(_as(source, record, whose) for record in more)]
        return Neighbours(tuple(without), tuple(with_one), data)

    result: SearchStrategy[Neighbours] = st.composite(draw_both)()
    return result


def needed(module: str) -> ModuleType:
    """Hypothesis, where it is installed.

    Raises:
        ExtraError: It is not.
    """
    from importlib import import_module

    needs("testing", "wpinq.testing")
    return import_module(module)


def _records(source: Source, values: Values) -> Any:
    st = needed("hypothesis.strategies")
    pools = values or {}
    return st.tuples(*(st.sampled_from(list(pools.get(c.name, FEW[c.kind]))) for c in source.schema))


def _one_unit(source: Source, records: list[Record]) -> list[Record]:
    """Records that are all of one unit: the first of some, or all of them as if the person of the first had them."""
    unit, names = source.data.unit, source.schema.names
    if unit.column is None:
        return records[:1]
    fixed = {names.index(name) for name in unit.columns}
    return [tuple(records[0][at] if at in fixed else value for at, value in enumerate(record)) for record in records]


def _whose(source: Source, record: Record) -> tuple[Any, ...]:
    """What names the unit of a record, a person; nothing where it is the record."""
    names = source.schema.names
    return tuple(record[names.index(name)] for name in source.data.unit.columns)


def _as(source: Source, record: Record, whose: tuple[Any, ...]) -> Record:
    """A record as if the unit had it."""
    named = dict(zip(source.data.unit.columns, whose, strict=False))
    return tuple(named.get(name, value) for name, value in zip(source.schema.names, record, strict=True))


def _others(source: Source, records: list[Record], whose: tuple[Any, ...]) -> list[Record]:
    """The records of others than one person."""
    if not whose:
        return records
    at = source.schema.names.index(str(source.data.unit.column))
    return [record for record in records if record[at] != whose[0]]
