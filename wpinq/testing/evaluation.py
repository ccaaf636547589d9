"""Collections over given or no records, and the reference engine on records given by hand.

`made_up` makes records from the columns of a collection, to try a dataflow on before anything is charged.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from wpinq.collection import Collection
from wpinq.core.engines import reference
from wpinq.core.plan.node import Node, Record, Source, steps
from wpinq.core.records.schema import Column, Kind
from wpinq.errors import PlanError
from wpinq.protection import protect

BUDGET = 10**6
"""Enough for any test."""


def protected(records: Iterable[Any] = (), *, name: str = "records", **columns: Any) -> Collection:
    """A protected collection of typed columns, with a ledger in memory.

    Args:
        records: What measurements of it count; `evaluate` never looks at them.
        name: Names the data set, where a plan reads several.
        columns: The type of each column, in words or as a Python type: `user="text"`, `count=int`, and None
            for values of any kind. For a column that is named "name" or "records", or for people, use `wpinq.protect`:
            whatever it returns can be evaluated too.

    Raises:
        SourceError: There is no column, or one has a type that there is not.

    >>> from wpinq.testing import protected
    >>> protected(user="text", visits=int)
    <protected collection (user: text, visits: integer) by protect(records)>
    """
    return protect(records, budget=BUDGET, columns=columns, name=name, version="1")


def evaluate(collection: Collection, *inputs: Iterable[Any]) -> dict[Record, int | Fraction]:
    """The exact answer of a dataflow, without noise, on records that are given by hand.

    It is computed by the definitions of the operators, with dictionaries and fractions: slow, and the oracle that the
    columnar engine is compared with.

    Args:
        collection: What a dataflow returns.
        inputs: For each protected collection that it is made of, in the order in which it reads them, either records
            (what is no tuple or list is a record of one value), or a mapping from records to weights.

    Returns:
        The records whose weight is not zero, and their weights.

    Raises:
        PlanError: There are more or fewer inputs than collections, or a record has more or fewer values than columns.

    >>> from wpinq.testing import evaluate, protected
    >>> words = protected(word="text")
    >>> evaluate(words.shave(), ["a", "a", "b"])
    {('a', 1): 1, ('a', 2): 1, ('b', 1): 1}
    >>> evaluate(words.distinct(), {("a",): "1/2", ("b",): 3})
    {('a',): Fraction(1, 2), ('b',): 1}
    """
    read = leaves(collection)
    if len(inputs) != len(read):
        raise PlanError(
            f"evaluate(...): the dataflow reads {len(read)} collections, and {len(inputs)} inputs are given."
        )
    records = given_to(collection._node, inputs)
    return {record: _whole(weight) for record, weight in reference.run(collection._node, records).items()}


def each_step(root: Node, records: Iterable[Record]) -> dict[Node, dict[Record, Fraction]]:
    """What each step of a plan holds, in order, where every table that it reads has these records."""
    walk, weights = steps(root), reference.weigh(records)
    sources = {step: weights for step in walk if isinstance(step, Source)}
    return dict(zip(walk, reference.run_reference(walk, sources), strict=True))


def leaves(collection: Collection) -> list[Source]:
    """The tables that a plan reads, each once, under whatever bounds, in the order in which it meets them."""
    return leaves_of(collection._node)


def leaves_of(root: Node) -> list[Source]:
    """The same of a plan: of each table the first source."""
    return list({_table(node): node for node in reversed(steps(root)) if isinstance(node, Source)}.values())[::-1]


def given_to(root: Node, inputs: Iterable[Iterable[Any]]) -> dict[Source, dict[Record, Fraction]]:
    """The records of each source of a plan, as the reference engine takes them: those of its table.

    Raises:
        PlanError: A record has more or fewer values than its table has columns.
    """
    records = dict(zip(map(_table, leaves_of(root)), inputs, strict=True))
    return {node: weighed(node, records[_table(node)]) for node in steps(root) if isinstance(node, Source)}


def _table(source: Source) -> tuple[str, str, int]:
    """What tells tables apart: questions may read one under several bounds."""
    return source.data.book, source.data.edition, id(source.data.reader)


def weighed(source: Source, records: Iterable[Any]) -> dict[Record, Fraction]:
    """Records as the reference engine takes them.

    Raises:
        PlanError: A record has more or fewer values than the source has columns.
    """
    if isinstance(records, Mapping):
        result = {_record(record): Fraction(weight) for record, weight in records.items()}
    else:
        result = reference.weigh(map(_record, records))
    names = source.schema.names
    for record in result:
        if len(record) != len(names):
            raise PlanError(f"evaluate(...): a record has {len(record)} values; the columns are {', '.join(names)}.")
    return result


def distance(one: Mapping[Record, int | Fraction], other: Mapping[Record, int | Fraction]) -> Fraction:
    """How far two weighted collections are apart: the summed absolute difference of their weights.

    >>> from wpinq.testing import distance
    >>> distance({("a",): 2, ("b",): 1}, {("a",): 1})
    Fraction(2, 1)
    """
    return sum((abs(Fraction(one.get(x, 0)) - other.get(x, 0)) for x in {**one, **other}), Fraction(0))


def _record(value: Any) -> Record:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _whole(weight: Fraction) -> int | Fraction:
    return int(weight) if weight.denominator == 1 else weight


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
