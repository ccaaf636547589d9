"""What is wrong with a source, row by row: what `check.py` finds out, for the curator only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

import polars as pl

from wpinq.core.records.schema import Schema
from wpinq.sources.form import ANEW
from wpinq.sources.looks import Look

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
        return not self.counts and not self.missing

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
        """What would read the lines that are dropped."""
        others = [f"{number:,} of these lines fit {what}" for what, number in self.fits.most_common() if number]
        lacking = [f"no record holds anything in {name!r}, so it is null in all of them" for name in self.missing]
        return [f"{name} begins as UTF-16 does; {ANEW}" for name in self.wide] + others + lacking

    def add(
        self, reason: str, rows: Iterable[int], total: int, *, column: str | None = None, file: str | None = None
    ) -> None:
        """Count problems, and list the first ones."""
        if total:
            room = max(self.limit - self.counts[reason], 0)
            self.counts[reason] += total
            self.problems.extend(Problem(reason, int(row), column, file) for row in islice(rows, room))
