"""What a curator declares of a source: its columns, which ones, under which names and of which types, and its form.

The form is how a source is read, where its name and its columns do not tell.

Everything here is declared and nothing is found out from records. What goes wrong with a declaration is refused before
a record is read; what does not fit it is null or dropped, each field and row by itself (privacy rule 14).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias, TypedDict, Unpack

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
    return Schema(tuple(column(name, kind or usual, usual) for name, kind in kinds.items()))


def column(name: str, kind: Kind, native: Kind) -> Column:
    """A column of one kind out of values of another: as numbers, long ones are rounded. Objects are as they come."""
    return Column(name, kind, rounded=kind is Kind.FLOAT and native not in (Kind.FLOAT, Kind.ANY))


def chosen(known: Mapping[str, Kind], columns: Columns, where: str) -> Schema:
    """The schema of a source that has names: the columns declared by a sequence, or all, with the declared kinds.

    Raises:
        SourceError: A declared column is not there; the message lists what is.
    """
    kinds = {} if columns is None else declared(columns)
    missing = [name for name in kinds if name not in known]
    if missing:
        raise SourceError(f"{where}: no column {listed(missing)}; there are {listed(known)}.")
    names = known if keeps_all(columns) else kinds
    return Schema(tuple(column(name, kinds.get(name) or known[name], known[name]) for name in names))


def keeps_all(columns: Columns) -> bool:
    """Whether all columns are read, also those that the caller does not name."""
    return columns is None or isinstance(columns, Mapping)


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


ANEW = "write such files anew first, for example with iconv -f utf-16 -t utf-8"
SEPARATORS = ";\t|"
"""What else than a comma stands between the fields of files that are called CSV."""


class Words(TypedDict, total=False):
    """What may be said of the form of a source; `protect` says what each means."""

    header: bool
    format: str | None
    separator: str | None
    decimal: str | None
    encoding: str | None
    table: str | None
    tz: str | None


@dataclass(frozen=True, slots=True)
class Form:
    """The declared form of a source.

    Attributes:
        header: Whether the first line of a CSV or TSV file gives the names of its columns.
        format: The format of files, where their ending does not tell it, or the form of the lines of a log.
        separator: The character between the fields of a CSV file.
        decimal: The decimal mark of its numbers.
        encoding: Its encoding.
        table: The table of a database file.
        tz: The zone in whose time instants are given.
    """

    header: bool = True
    format: str | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    table: str | None = None
    tz: str | None = None

    @property
    def text(self) -> str:
        """All that was said, for fingerprints; nothing where nothing was, and as it was before there was more."""
        declared = [(field_.name, getattr(self, field_.name)) for field_ in fields(self)[1:]]
        return "; ".join(
            ([] if self.header else ["no header"])
            + [f"{name} {value!r}" for name, value in declared if value is not None]
        )

    def only(self, where: str, *allowed: str) -> None:
        """Refuse what means nothing for a source.

        Raises:
            SourceError: Something else than these was said.
        """
        for field_ in fields(self)[1:]:
            if getattr(self, field_.name) is not None and field_.name not in (*allowed, "tz"):
                raise SourceError(f"{where}: {field_.name}= means nothing here; {_MEANT[field_.name]}.")

    def delimiter(self, form: str) -> str:
        """The byte between fields.

        Raises:
            SourceError: It cannot be one.
        """
        mark = self.separator
        if mark is None:
            return "\t" if form == "tsv" else ","
        if len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0' or mark.isalnum():
            raise SourceError("separator= takes one character, such as ';' or a tab.")
        return mark

    def comma(self) -> bool:
        """Whether numbers have a decimal comma.

        Raises:
            SourceError: There is no such mark.
        """
        if self.decimal not in (None, ".", ","):
            raise SourceError("decimal= takes '.' or ','.")
        return self.decimal == ","

    def charset(self) -> str | None:
        """The encoding of text, by the name that Python has for it; None for UTF-8.

        One in which a byte means something by its neighbours would let a damaged line change the next one.

        Raises:
            SourceError: It is not known, or not one of single bytes that agree with ASCII.
        """
        import codecs

        if self.encoding is None:
            return None
        try:
            name = codecs.lookup(self.encoding).name
            if name in ("utf-8", "utf-8-sig", "ascii"):
                return None
            text = bytes(range(256)).decode(name, "replace")
        except (LookupError, UnicodeError):
            name = text = ""
        single = len(text) == 256 and text[:128] == bytes(range(128)).decode()
        if not single or any(character.isascii() for character in text[128:]):
            raise SourceError(
                f"encoding= takes utf-8 and encodings of one byte a character, such as latin-1 or cp1252; {ANEW}."
            )
        return name


def declared_form(**words: Unpack[Words]) -> Form:
    """The form that these words declare.

    Raises:
        SourceError: A time zone is not known.
    """
    form = Form(**words)
    if form.tz is not None:
        _check_zone(form.tz)
    return form


FORMS = {"csv": "csv", "tsv": "tsv", "pairs": "pairs", "json": "json", "jsonl": "json", "ndjson": "json",
         "log": "log", "parquet": "parquet", "arrow": "arrow", "feather": "arrow", "ipc": "arrow"}  # fmt: skip
"""Formats of files by name; any other name or string is the format of a log."""


def file_form(format_: str | None) -> str | None:
    """The form of files of a declared format; None where their ending tells it."""
    return None if format_ is None else FORMS.get(format_, "log")


_MEANT = {
    "format": "it is for files",
    "separator": "it is for CSV files",
    "decimal": "it is for the numbers of CSV files",
    "encoding": "it is for CSV files",
    "table": "it is for DuckDB and SQLite files",
}


def _check_zone(zone: str) -> None:
    """Refuse what is no time zone.

    Raises:
        SourceError: It is none that Polars knows.
    """
    import polars as pl

    try:
        pl.select(pl.lit(0).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone))
    except Exception:  # noqa: BLE001  it fails in several ways
        raise SourceError(f"tz={zone!r} is no time zone; write one such as 'Europe/Amsterdam' or 'UTC'.") from None
