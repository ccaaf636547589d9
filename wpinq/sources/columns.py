"""Declared columns: which ones, under which names, of which types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from wpinq.core.records.reader import listed
from wpinq.core.records.schema import WORDS, Column, Kind, Schema, wrong_name
from wpinq.errors import SourceError

#: Names in order, or names with types. A type of None leaves a column as the source has it.
Columns: TypeAlias = "Sequence[str] | Mapping[str, type | str | None] | None"

PAIR = ("user", "page")
TYPES: dict[type, Kind] = {
    str: Kind.TEXT, int: Kind.INT, float: Kind.FLOAT, bool: Kind.BOOL, bytes: Kind.BYTES, dt.date: Kind.DATE,
    dt.datetime: Kind.TIME, dt.timedelta: Kind.SPAN,
}  # fmt: skip


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse names that cannot be the columns of a record.

    Raises:
        SourceError: A name is taken twice or cannot be one, or there is none.
    """
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise SourceError(f"{where}: the column name {listed(twice)} stands twice; every column needs its own name.")
    if not names:
        raise SourceError(f"{where}: there is no column.")
    wrong = next(filter(None, map(wrong_name, names)), None)
    if wrong is not None:
        raise SourceError(f"{where}: {wrong}.")


def declared(columns: Columns) -> dict[str, Kind | None]:
    """The declared names and kinds, in order.

    Raises:
        SourceError: It is neither names nor names with types.
    """
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise SourceError("columns is not a list of names; write ('user', 'page') or {'user': str, 'page': int}.")
    names = list(columns)
    if not all(isinstance(name, str) for name in names):
        raise SourceError("columns: a name is not a text; write ('user', 'page') or {'user': str, 'page': int}.")
    check_names(names, "columns")
    return {name: kind_of(columns[name] if isinstance(columns, Mapping) else None, name) for name in names}


def kind_of(type_: object, name: str = "a column") -> Kind | None:
    """The kind that a declared type or word stands for.

    Raises:
        SourceError: There is no such type.
    """
    if type_ is None:
        return None
    kind = TYPES.get(type_) if isinstance(type_, type) else WORDS.get(type_.lower()) if isinstance(type_, str) else None
    if kind is None:
        raise SourceError(f"columns: {name} has no type {type_!r}; there are {', '.join(sorted(WORDS))}.")
    return kind


def named(columns: Columns, usual: Kind, default: Sequence[str] | None, where: str) -> Schema:
    """The schema of a source without names of its own.

    Raises:
        SourceError: Nothing was declared, and there is no default.
    """
    if columns is None and default is None:
        raise SourceError(f"{where}: no header names the columns, so they need names; pass columns=('user', 'page').")
    kinds = declared(default if columns is None else columns)
    return Schema(tuple(Column(name, kind or usual) for name, kind in kinds.items()))


def chosen(known: Mapping[str, Kind], columns: Columns, where: str) -> Schema:
    """The schema of a source that has names: the columns declared by a sequence, or all, with the declared kinds.

    Raises:
        SourceError: A declared column is not there; the message lists what is.
    """
    kinds = {} if columns is None else declared(columns)
    missing = [name for name in kinds if name not in known]
    if missing:
        raise SourceError(f"{where}: no column {listed(missing)}; there are {listed(known)}.")
    names = known if columns is None or isinstance(columns, Mapping) else kinds
    return Schema(tuple(Column(name, kinds.get(name) or known[name]) for name in names))


def parse_columns(text: str | None) -> Columns:
    """Read names, separated by commas, each with or without a type.

    Without any type this picks columns, or names them in order; with types all columns stay (see `open_source`).

    Raises:
        SourceError: A name is missing or stands twice, or there is no such type.

    >>> parse_columns("user,page")
    ('user', 'page')
    >>> parse_columns("user,page:int")
    {'user': None, 'page': 'int'}
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    pairs = [part.rpartition(":") if ":" in part else (part, "", "") for part in parts]
    types = {name.strip(): word.strip() or None for name, _, word in pairs}
    if len(types) < len(pairs) or "" in types:
        raise SourceError(f"--columns {text}: a name is missing or stands twice; write --columns user,page:int.")
    declared(types)
    return types if any(types.values()) else tuple(types)
