"""Read the records that a caller sends, as columns of a declared schema."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

import polars as pl

from wpinq.arguments import WHOLE, described
from wpinq.core.operators.periods import moment
from wpinq.core.records import canonical
from wpinq.core.records import kinds as values
from wpinq.core.records.schema import Kind, Schema, in_columns, polars_type
from wpinq.core.records.text import utf8
from wpinq.errors import PlanError, SourceError


def frames(records: Any, schema: Schema) -> list[pl.DataFrame]:
    """Read records as columns of a schema.

    Args:
        records: Tuples, or a table with the Arrow C stream protocol, or an Arrow array of structs, that has all
            columns by name.
        schema: Names and kinds.

    Raises:
        SourceError: It holds no such records.
    """
    if hasattr(records, "__arrow_c_array__"):
        from wpinq.sources.tables.arrow import as_table

        records = as_table(records)
    if hasattr(records, "__arrow_c_stream__") or hasattr(records, "collect_batches"):
        return _table(records, schema)
    if hasattr(records, "__array_interface__"):
        raise SourceError("send: a NumPy array holds no records; give map(tuple, array.tolist()), or a data frame.")
    if isinstance(records, Iterable) and not isinstance(records, (str, bytes, bytearray, dict)):
        return [_tuples(records, schema)]
    raise SourceError(f"send: {type(records).__name__} holds no records; give tuples or an Arrow table.")


def _table(table: Any, schema: Schema) -> list[pl.DataFrame]:
    from wpinq.sources.tables.arrow import open_table

    own = table.schema if isinstance(table, pl.DataFrame) else {}
    if all(own.get(c.name) == polars_type(c.kind) and c.kind is not Kind.ANY for c in schema):
        whole = (table[column.name] for column in schema)
        return [in_columns(utf8(one.cast(pl.Binary)) if one.dtype == pl.String else one for one in whole)]
    kinds = {column.name: None if column.kind is Kind.ANY else column.kind.value for column in schema}
    reader = open_table(table, kinds)
    result = []
    for frame in reader.batches(schema.names):
        held = ((canonical.column(frame[c.name], reader.schema[c.name].kind), c) for c in schema)
        cells = [
            canonical.encoded(item, reader.schema[c.name].kind) if c.kind is Kind.ANY else item for item, c in held
        ]
        result.append(in_columns(cells))
    return result


def _tuples(records: Iterable[Any], schema: Schema) -> pl.DataFrame:
    from wpinq.sources.tables.tuples import proper

    rows = list(proper(records, schema.names))
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    return in_columns([values.column(items, column) for column, items in zip(schema, columns, strict=True)])


def takes_back(weight: object, *, declared: bool) -> bool:
    """Whether records are taken back, by the weight that they are sent with.

    Args:
        weight: 1 or -1.
        declared: Whether the source takes records back.

    Raises:
        PlanError: It is another number, or the source does not.
    """
    if not WHOLE.holds(weight) or weight not in (1, -1):
        raise PlanError(
            f"send(weight={described(weight)}): 1, or -1 to take back; send records as often as they count."
        )
    if weight == -1 and not declared:
        raise PlanError(
            "send(weight=-1): this source takes no record back, and what is proved of its answers rests on that; make "
            "it with wpinq.live(..., retractions=True)."
        )
    return weight == -1


def stored_time(until: object) -> int:
    """A time as columns store it: microseconds, or ones where it is a whole number.

    Raises:
        PlanError: It is not a time.
    """
    if isinstance(until, dt.datetime):
        return moment(until, Kind.TIME if until.tzinfo is None else Kind.INSTANT)
    if isinstance(until, dt.date):
        return moment(until, Kind.DATE)
    if isinstance(until, int) and not isinstance(until, bool):
        return until
    raise PlanError(f"advance(until=...): {type(until).__name__} is not a time; give a datetime, a date or an integer.")
