"""Schemas of tables of Arrow: types are public, and files that are read as one table have the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wpinq.core.ledger.versions import printable
from wpinq.core.records.reader import listed
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import SourceError
from wpinq.sources.files import Files, reading
from wpinq.sources.form import Columns, check_names, chosen, keeps_all
from wpinq.sources.tables.arrays import compatible, public_kind, rounds

if TYPE_CHECKING:
    import pyarrow as pa

ALTERED = re.compile(r"\b(UHUGEINT|TIME WITH TIME ZONE|VARIANT|BIT|BIGNUM)\b")
"""Types of DuckDB whose values are other ones in Arrow: negative beyond 2^127, without their offset, several that are
one in DuckDB, or DuckDB's own bytes."""


def schema_of(types: Mapping[str, pa.DataType | str | None], names: list[str], columns: Columns, where: str) -> Schema:
    """The schema of a table whose columns have public types; None is a column of Python objects.

    A text is what a type is called that Arrow lacks, or has values of that are other ones. Such a column is left out.

    Args:
        types: The type of each name.
        names: All names, to see whether one stands twice.
        columns: What the caller declares.
        where: The table, for messages.

    Raises:
        SourceError: A declared column is not there, or cannot have the declared type.
    """
    check_names(names, where)
    kinds = {name: _kind(type_) for name, type_ in types.items()}
    for name in columns or ():
        if name in kinds and kinds[name] is None:
            raise SourceError(f"{where}: the column {name!r} is of type {types[name]}, which cannot be read.")
    left_out = tuple((name, printable(str(types[name]))) for name, kind in kinds.items() if kind is None)
    result = {name: kind for name, kind in kinds.items() if kind is not None}
    if left_out and not result:
        name, type_ = left_out[0]
        raise SourceError(f"{where}: no column can be read; {name!r} is of type {type_}.")
    schema = chosen(result, columns, where)
    for column in schema:
        native = types[column.name]
        if isinstance(native, str) or not compatible(native, column.kind):
            raise SourceError(
                f"{where}: the column {column.name!r} is {native} and cannot be read as {column.kind.value}."
            )
    return Schema(tuple(replace(column, rounded=rounds(types[column.name], column)) for column in schema),
                  left_out if keeps_all(columns) else ())  # fmt: skip


def _kind(type_: pa.DataType | str | None) -> Kind | None:
    if type_ is None:
        return Kind.ANY
    return None if isinstance(type_, str) else public_kind(type_)


def columns_alike(source: Files, schemas: Sequence[Any], columns: Columns) -> Schema:
    """The columns of files of these Arrow schemas.

    Raises:
        SourceError: They differ, or columns are not declared well.
    """
    first = _columns(schemas[0])
    for file, schema in zip(source.files, schemas, strict=True):
        if _columns(schema) != first:
            what = listed(f"{name}: {kind}" for name, kind in _columns(schema))
            raise SourceError(f"{file.given}: its columns ({what}) are not those of the first file.")
    types = {field.name: field.type for field in schemas[0]}
    schema = schema_of(types, schemas[0].names, columns, source.given)
    for file, other in zip(source.files, schemas, strict=True):
        schema_of({field.name: field.type for field in other}, other.names, columns, file.given)
    return schema


def _columns(schema: Any) -> list[tuple[str, str]]:
    kinds = [(field.name, public_kind(field.type)) for field in schema]
    return [(name, "unknown" if kind is None else kind.value) for name, kind in kinds]


def duckdb_types(schema: Any, relation: Any) -> dict[str, Any]:
    """The Arrow types of the columns of a relation of DuckDB; a text is what is left out."""
    native = map(str, relation.types)
    return {item.name: type_ if ALTERED.search(unquoted(type_)) else item.type
            for item, type_ in zip(schema, native, strict=True)}  # fmt: skip


def unquoted(type_: str) -> str:
    """A type without names of fields and values that stand in quotes."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", "", type_)


@contextmanager
def decoding(path: str, form: str = "a Parquet file") -> Iterator[None]:
    """Turn errors of Arrow into one line that quotes nothing of a file of this form.

    Raises:
        SourceError: Instead of any error of reading or decoding.
    """
    import pyarrow as pa

    try:
        with reading(path):
            yield
    except pa.ArrowException:
        raise SourceError(
            f"{path}: is not {form}, or is damaged; or Arrow cannot read one column: name others, columns=('a', 'b')."
        ) from None
