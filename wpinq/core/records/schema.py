"""Names and types of a collection's columns. They are public: declared or read from a schema, never from records.

A record is a tuple of named columns. Values that Python calls equal are one value (`1 == 1.0 == True`, `0.0 == -0.0`),
and NaN is null; `values.py` holds the whole rule, `canonical.py` what a column may hold.

A column may be *ranged*: one row of a batch then stands for all integers from its first to its last, as the `index`
of `shave` does. Whether a column is ranged is a property of the plan, so no data decides how a record is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from wpinq.core.records.fields import SHOWN
from wpinq.errors import PlanError

if TYPE_CHECKING:
    import polars as pl


class Kind(Enum):
    """Types of columns, with the word that people read."""

    INT = "integer"
    FLOAT = "number"
    TEXT = "text"
    BOOL = "boolean"
    BYTES = "bytes"
    DATE = "date"
    TIME = "timestamp"  # without a time zone, in microseconds
    INSTANT = "timestamp with time zone"  # held in UTC, in microseconds
    SPAN = "duration"
    ANY = "value"  # any of the above, nested tuples too; held as canonical bytes


WORDS: dict[str, Kind] = {
    **{kind.value: kind for kind in Kind if kind is not Kind.ANY},
    "int": Kind.INT, "float": Kind.FLOAT, "str": Kind.TEXT, "string": Kind.TEXT, "bool": Kind.BOOL,
    "datetime": Kind.TIME, "instant": Kind.INSTANT, "timedelta": Kind.SPAN,
}  # fmt: skip
"""How users may write the type of a column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of records.

    Attributes:
        name: Its name.
        kind: Its type.
        ranged: Whether rows hold ranges of it.
        rounded: Whether two values of its source may be one number here, which then names no person.
    """

    name: str
    kind: Kind
    ranged: bool = False
    rounded: bool = field(default=False, compare=False, repr=False, metadata=SHOWN)


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a record, in order.

    Attributes:
        columns: The columns of each record.
        left_out: Columns of the source that no record has, each with its type, which cannot be read.
    """

    columns: tuple[Column, ...]
    left_out: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False, metadata=SHOWN)

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.columns):
            raise PlanError(f"columns {', '.join(self.names)}: a name stands twice; every column needs its own.")
        if not self.columns:
            raise PlanError("a record needs at least one column; return a value or a tuple of values.")

    @classmethod
    def of(cls, **kinds: Kind) -> Schema:
        """Build a schema from names and kinds.

        >>> str(Schema.of(user=Kind.TEXT, page=Kind.TEXT))
        '(user: text, page: text)'
        """
        return cls(tuple(Column(name, kind) for name, kind in kinds.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def listed(self) -> str:
        """The names for a message, in quotes where blanks and the like would not be seen; then what is left out.

        >>> Schema((Column("user", Kind.TEXT), Column(" page", Kind.TEXT)), (("at", "TIME WITH TIME ZONE"),)).listed
        "user, ' page' (left out: 'at', of type TIME WITH TIME ZONE)"
        """
        names = ", ".join(name if name.isidentifier() else repr(name) for name in self.names)
        return names + self.lacks

    @property
    def lacks(self) -> str:
        """What is left out, as a remark for a message; empty where nothing is."""
        left_out = ", ".join(f"{name!r}, of type {type_}" for name, type_ in self.left_out)
        return f" (left out: {left_out})" if left_out else ""

    @property
    def ranged(self) -> tuple[str, ...]:
        """The names of the columns that rows hold as ranges."""
        return tuple(column.name for column in self.columns if column.ranged)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise PlanError(f"no column {name!r}; there are {self.listed}.")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __str__(self) -> str:
        return "(" + ", ".join(f"{column.name}: {column.kind.value}" for column in self.columns) + ")"

    def select(self, names: Iterable[str]) -> Schema:
        """The columns of these names, in this schema's own order."""
        wanted = set(names)
        return replace(self, columns=tuple(column for column in self.columns if column.name in wanted))

    def kept(self, needed: Iterable[str]) -> tuple[str, ...]:
        """The needed names in order, and at least one, because a record without columns still counts."""
        wanted = set(needed)
        return tuple(name for name in self.names if name in wanted) or self.names[:1]

    def expanded(self, names: Iterable[str] | None = None) -> Schema:
        """The same columns, with none of these (by default, of all) ranged."""
        wanted = set(self.names if names is None else names)
        columns = (replace(column, ranged=column.ranged and column.name not in wanted) for column in self.columns)
        return replace(self, columns=tuple(columns))

    def fresh(self, name: str) -> str:
        """A column name like `name` that is not taken yet: `index`, `index_2`, ..."""
        taken, number, candidate = set(self.names), 1, name
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        return candidate


def check_name(name: object, call: str) -> None:
    """Refuse what cannot name a column that a step makes.

    Raises:
        PlanError: It is empty, or see `wrong_name`.
    """
    wrong = "a column's name is text that is not empty" if name == "" else wrong_name(name)
    if wrong is not None:
        raise PlanError(f"{call}: {wrong}.")


def wrong_name(name: object) -> str | None:
    """What is wrong with the name of a column, and what to do; None if nothing is.

    Polars reads `*` as all columns and what stands between `^` and `$` as a pattern, and steps keep columns of their
    own under names that begin with a NUL.
    """
    if not isinstance(name, str):
        return f"a column's name is text, and {type(name).__name__} was given"
    if "\0" in name:
        return "a column name holds a NUL byte, which no column's can; is this UTF-8 text?"
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        return f"a column cannot be called {name!r}, which stands for other columns; give it another name"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "a column name is not valid text; decode it first"
    return None


def in_columns(columns: Iterable[pl.Series]) -> pl.DataFrame:
    """A frame of these columns. One without a name keeps that: Polars would give it one."""
    import polars as pl

    held = list(columns)
    return held[0].to_frame().hstack(held[1:]) if held else pl.DataFrame()


@cache
def polars_type(kind: Kind) -> pl.DataType:
    """The Polars type that holds a column of this kind."""
    import polars as pl

    types: dict[Kind, pl.DataType] = {
        Kind.INT: pl.Int64(),
        Kind.FLOAT: pl.Float64(),
        Kind.TEXT: pl.String(),
        Kind.BOOL: pl.Boolean(),
        Kind.BYTES: pl.Binary(),
        Kind.DATE: pl.Date(),
        Kind.TIME: pl.Datetime("us"),
        Kind.INSTANT: pl.Datetime("us", "UTC"),
        Kind.SPAN: pl.Duration("us"),
        Kind.ANY: pl.Binary(),
    }
    return types[kind]
