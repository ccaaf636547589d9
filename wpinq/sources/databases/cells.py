"""Cells of SQLite, of whatever types they are, as columns of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from wpinq.core.records import python as values
from wpinq.core.records import text as convert
from wpinq.core.records.schema import Column, Kind, polars_type
from wpinq.sources.databases.postgres import quoted

WORDS = (  # the first that occurs in a declared type decides, as SQLite does it
    ("INT", Kind.INT), ("BOOL", Kind.BOOL), ("CHAR", Kind.TEXT), ("CLOB", Kind.TEXT), ("TEXT", Kind.TEXT),
    ("BLOB", Kind.BYTES), ("REAL", Kind.FLOAT), ("FLOA", Kind.FLOAT), ("DOUB", Kind.FLOAT), ("DATETIME", Kind.TIME),
    ("TIMESTAMP", Kind.TIME), ("DATE", Kind.DATE), ("NUM", Kind.FLOAT), ("DEC", Kind.FLOAT),
)  # fmt: skip
STORED = {Kind.INT: "integer", Kind.BYTES: "blob"}
TEXTS = (Kind.TEXT, Kind.DATE, Kind.TIME)


def kind_of(declared: str) -> Kind:
    """The kind that a declared type stands for."""
    return next((kind for word, kind in WORDS if word in declared.upper()), Kind.ANY)


def selected(column: Column, stored_kind: Kind) -> str:
    """Two cells: the value, null unless it is stored as its column's type, and how it is stored."""
    name = quoted(column.name)
    if stored_kind is Kind.ANY:
        return f"{name}, typeof({name})"
    if stored_kind in TEXTS:
        return f"CASE typeof({name}) WHEN 'text' THEN {name} END, 0"
    if stored_kind is Kind.FLOAT:
        return f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN CAST({name} AS REAL) END, 0"
    if stored_kind is Kind.BOOL:
        return f"CASE WHEN typeof({name}) = 'integer' AND {name} IN (0, 1) THEN {name} END, 0"
    return f"CASE typeof({name}) WHEN '{STORED[stored_kind]}' THEN {name} END, 0"


def decoded(cells: Sequence[Sequence[Any]], column: Column, native: Kind) -> pl.Series:
    """A column from what was selected for it."""
    import pyarrow as pa

    result, stored = cells
    if native is Kind.ANY:
        return values.column(map(_value, result, stored), column)
    if native in TEXTS:
        text = pa.chunked_array([pa.array(result, pa.binary())])
        return convert.from_field(text, Column(column.name, column.kind))
    series = pl.Series(column.name, result, dtype=polars_type(Kind.INT if native is Kind.BOOL else native))
    if native is Kind.FLOAT and column.kind is Kind.INT:
        series = series.set(series.floor() != series, None)
    return series.cast(polars_type(native)).cast(polars_type(column.kind), strict=False)


def _value(cell: Any, stored: bytes) -> Any:
    if stored != b"text":
        return cell
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return None
