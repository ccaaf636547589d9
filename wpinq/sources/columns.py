"""Declared columns: which ones, under which names, of which types; and the interface of readers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from wpinq.errors import SourceError
from wpinq.records.schema import WORDS, Column, Kind, Schema, wrong_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import polars as pl

#: Names in order, or names with types. A type of None leaves a column as the source has it.
Columns: TypeAlias = "Sequence[str] | Mapping[str, type | str | None] | None"

PAIR = ("user", "page")
TYPES: dict[type, Kind] = {
    str: Kind.TEXT,
    int: Kind.INT,
    float: Kind.FLOAT,
    bool: Kind.BOOL,
    bytes: Kind.BYTES,
    dt.date: Kind.DATE,
    dt.datetime: Kind.TIME,
    dt.timedelta: Kind.SPAN,
}


class Steady(Enum):
    """How to find out whether a source still holds the records that it held when it was opened."""

    FILES = "its files are compared whenever they are read, and `content` tells what they hold"
    MEMORY = "nobody can change it while this process holds it"
    UNKNOWN = "only reading it tells"


class Reader(Protocol):
    """A source of records that can be read as a stream of columns."""

    @property
    def schema(self) -> Schema:
        """All columns with their public kinds."""

    @property
    def name(self) -> str:
        """A default name for the data set: the file's name, or `records`."""

    @property
    def way(self) -> tuple[object, ...]:
        """How records are read, where the columns do not tell: the format, the table; text, numbers and tuples."""

    @property
    def path(self) -> Path | None:
        """The file, or the directory of a pattern, beside which a ledger may lie; None for objects."""

    @property
    def total_bytes(self) -> int | None:
        """The size of the files, for progress; None for objects."""

    @property
    def steady(self) -> Steady:
        """How it is known that it still holds the same records."""

    @property
    def title(self) -> str:
        """What a version of its records is called where nobody names it: what the curator wrote of the source."""

    def version(self) -> str | None:
        """Path, size and modification time of every file; None for objects. A run tells two readers apart by it."""

    def check(self) -> None:
        """Refuse files that are no longer as they were opened.

        Raises:
            ChangedError: One was changed, or is gone.
        """

    def state(self) -> str | None:
        """How the system shows the files now, with all that it sets at each change; None for objects.

        None for files, too, so soon after a change that another one may leave no trace.
        """

    def content(self, key: bytes = b"") -> bytes | None:
        """BLAKE2b-256 over the files' bytes, or under a key of 16 bytes GMAC, which is quicker.

        None where what is read must tell: of objects, and of databases, whose files change while their rows stay.
        """

    def batches(
        self,
        columns: Sequence[str],
        *,
        share: tuple[int, int] = (0, 1),
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Frames of exactly these columns, in their canonical Polars types.

        Args:
            columns: Names out of the schema, at least one.
            share: (i, n) reads the i-th of n disjoint shares, whose union is everything.
            progress: Called with the number of bytes read since the last call; never with a number of rows.

        Raises:
            SourceError: A file vanished, changed or is damaged. The message holds nothing of its contents.
        """


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


def named(columns: Columns, own: Kind, default: Sequence[str] | None, where: str) -> Schema:
    """The schema of a source without names of its own.

    Raises:
        SourceError: Nothing was declared, and there is no default.
    """
    if columns is None and default is None:
        raise SourceError(f"{where}: no header names the columns, so they need names; pass columns=('user', 'page').")
    kinds = declared(default if columns is None else columns)
    return Schema(tuple(Column(name, kind or own) for name, kind in kinds.items()))


def chosen(found: Mapping[str, Kind], columns: Columns, where: str) -> Schema:
    """The schema of a source that has names: the columns declared by a sequence, or all, with the declared kinds.

    Raises:
        SourceError: A declared column is not there; the message lists what is.
    """
    kinds = {} if columns is None else declared(columns)
    missing = [name for name in kinds if name not in found]
    if missing:
        raise SourceError(f"{where}: no column {listed(missing)}; there are {listed(found)}.")
    names = found if columns is None or isinstance(columns, Mapping) else kinds
    return Schema(tuple(Column(name, kinds.get(name) or found[name]) for name in names))


def wanted(schema: Schema, columns: Sequence[str], where: str) -> Schema:
    """The asked columns, in the asked order.

    Raises:
        SourceError: One of them is not there, or none is asked for.
    """
    missing = [name for name in columns if name not in schema]
    if missing or not columns:
        raise SourceError(f"{where}: no column {listed(missing)}; there are {listed(schema.names)}.")
    return Schema(tuple(schema[name] for name in columns))


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names for a message, on one line, the first few of them."""
    quoted = [repr(name) for name in names]
    return ", ".join(quoted[:most]) + (f" and {len(quoted) - most} more" if len(quoted) > most else "")


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
