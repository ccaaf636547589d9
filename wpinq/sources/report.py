"""What is wrong with a source, row by row: what `check.py` finds out, for the curator only.

It says too what the fields of a column look like, for the curator to declare its type. No type is inferred. A column is
judged by its first fields, and one with a type by those that became null under it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

import polars as pl

from wpinq.core.records import text as convert
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.sources.form import ANEW

RETURN = "carriage return inside, or longer than 64 MiB"
QUOTING = "ill-formed quoting"
RAGGED = "wrong number of fields"
FORM = "not of the format of the log"
FORM_JSON = "not an object of JSON"
UTF8 = "invalid UTF-8"
NUL = "NUL byte"
TYPE = "not of its declared type"
LOST = "not a value that a record can hold"
DROPPED = frozenset({RETURN, QUOTING, RAGGED, FORM, FORM_JSON})


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of one row or field.

    Attributes:
        reason: What is wrong.
        row: The line of a text file, counted from 1 with the header, else the row, counted from 1.
        column: The column, if the row as such is right.
        file: The file, if there are several.
    """

    reason: str
    row: int
    column: str | None = None
    file: str | None = None


@dataclass(slots=True)
class Report:
    """The problems of a source.

    Attributes:
        name: The file's name.
        schema: The columns.
        size: Bytes of the files, if there are any.
        limit: How many problems of each reason are listed.
        rows: How many records can be read.
        counts: How often each reason was found.
        problems: The first ones of each reason.
        fits: How many of the lines that are no records are of another form, by what would declare it.
        wide: The files that begin as UTF-16 does.
        looks: What the fields of each column look like, where they are text.
        named: The columns that were declared, which a record should have.
    """

    name: str
    schema: Schema
    size: int | None
    limit: int
    rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    fits: Counter[str] = field(default_factory=Counter)
    wide: list[str] = field(default_factory=list)
    looks: dict[str, Look] = field(default_factory=dict)
    named: frozenset[str] = frozenset()

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.counts and not self.missing and not self.schema.left_out

    @property
    def missing(self) -> list[str]:
        """The declared columns that hold nothing in any record, such as keys of JSON that no record has."""
        return [name for name, look in self.looks.items() if self.rows and name in self.named and not look.filled]

    def see(self, name: str, texts: pl.Series, read: pl.Series) -> None:
        """Look at the fields of a column that hold something, and at what was read of them."""
        self.looks.setdefault(name, Look(self.schema[name])).see(texts, read.is_null())

    @property
    def dropped(self) -> int:
        """How many rows are no records."""
        return sum(number for reason, number in self.counts.items() if reason in DROPPED)

    @property
    def hints(self) -> list[str]:
        """What would read the lines that are dropped, and which columns hold nothing or are left out."""
        others = [f"{number:,} of these lines fit {what}" for what, number in self.fits.most_common() if number]
        lacking = [f"no record holds anything in {name!r}, so it is null in all of them" for name in self.missing]
        unread = [
            f"the column {name!r} is left out: it is of type {type_}, which cannot be read; name others, --columns"
            for name, type_ in self.schema.left_out
        ]
        return [f"{name} begins as UTF-16 does; {ANEW}" for name in self.wide] + others + lacking + unread

    def add(
        self, reason: str, rows: Iterable[int], total: int, *, column: str | None = None, file: str | None = None
    ) -> None:
        """Count problems, and list the first ones."""
        if total:
            room = max(self.limit - self.counts[reason], 0)
            self.counts[reason] += total
            self.problems.extend(Problem(reason, int(row), column, file) for row in islice(rows, room))


LOOKED = 10_000
"""Fields that are looked at."""
MOST = 0.9
"""The share of them that is enough to say what they look like."""
DATES = "dates that are not written as 2026-12-31"
COMMA = "numbers with a decimal comma"
SECONDS = "seconds since 1970"
TEXT, EMPTY = "text", "nothing: no field is filled"
KINDS = {
    Kind.INT: "whole numbers", Kind.FLOAT: "numbers", Kind.BOOL: "true and false", Kind.DATE: "dates",
    Kind.INSTANT: "times with an offset", Kind.TIME: "times", Kind.SPAN: "durations",
}  # fmt: skip
"""Kinds by what people call them, the narrowest first."""
FORMS = {
    SECONDS: r"^1[0-9]{9}(?:[0-9]{3})?(?:\.[0-9]+)?$",
    COMMA: r"^-?[0-9]{1,3}(?:\.?[0-9]{3})*,[0-9]+$",
    DATES: r"^[0-9]{1,2}[./-][0-9]{1,2}[./-](?:[0-9]{2}|[0-9]{4})(?:[ T].*)?$|^[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}",
}
"""What a field can look like that no type reads."""
TIMES = (Kind.DATE, Kind.TIME, Kind.INSTANT)
WORDS = {Kind.INSTANT: "instant", Kind.TIME: "timestamp", Kind.SPAN: "timedelta", Kind.FLOAT: "float",
         Kind.BOOL: "bool", Kind.DATE: "date", Kind.INT: "int"}  # fmt: skip


@dataclass
class Look:
    """What is known of a column.

    Attributes:
        column: The column, as it is read.
        filled: Fields that hold something.
        lost: Of these, fields that are null once they are read.
        looked: Fields that were looked at.
        matches: How many of these are of each form.
    """

    column: Column
    filled: int = 0
    lost: int = 0
    looked: int = 0
    matches: Counter[str] = field(default_factory=Counter)

    def see(self, texts: pl.Series, lost: pl.Series) -> None:
        """Look at the fields that hold something, and at which of them are null once they are read."""
        self.filled += len(texts)
        self.lost += int(lost.sum())
        if self.looked >= LOOKED or (room := LOOKED - self.looked) <= 0:
            return
        some = (texts if self.column.kind is Kind.TEXT else texts.filter(lost)).drop_nulls().head(room).alias("x")
        self.looked += len(some)
        for kind, name in KINDS.items():
            self.matches[name] += len(some) - convert.parse_column(some, kind).null_count()
        for name, pattern in FORMS.items():
            self.matches[name] += int(some.str.contains(pattern).sum())

    @property
    def looks(self) -> str:
        """What the fields look like; of a column with a type, those that it does not fit."""
        if not self.filled:
            return EMPTY
        if not self.looked:
            return KINDS.get(self.column.kind, self.column.kind.value)
        order = [SECONDS, *KINDS.values(), COMMA, DATES] if self.column.kind in TIMES else [*KINDS.values(), *FORMS]
        return next((name for name in order if self.matches[name] >= MOST * self.looked), TEXT)

    @property
    def mend(self) -> str:
        """What would read the fields; nothing where they are read, or nothing would."""
        looks, name = self.looks, self.column.name
        if not name:  # no option can name it
            return ""
        if looks == COMMA:
            return f"--decimal , --columns {name}:float"
        if looks == SECONDS and self.column.kind in TIMES:
            return "write times as 2026-12-31T23:59:59Z"
        if looks == DATES:
            return "write dates as 2026-12-31"
        kind = next((kind for kind, words in KINDS.items() if words == looks), None)
        if kind is not None and kind is not self.column.kind and self.looked:
            return f"--columns {name}:{WORDS[kind]}"
        return f"--columns {name}:text" if looks == TEXT and self.column.kind is not Kind.TEXT and self.lost else ""

    @property
    def empty(self) -> bool:
        """Whether it is null in every record."""
        return self.filled == self.lost
