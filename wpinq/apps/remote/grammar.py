"""The grammar of plans: operators and traced expressions as JSON, closed, and decoded strictly.

A plan is a list of steps, each of which names earlier ones by their places, so it has no circle, and a step that is
read twice is written once. Functions are SQL text, names of columns, or expressions as tracing finds them: no code.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from wpinq.apps.remote.wire import Amount, Asks, Bin, Scalar, Word

Place: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=10_000)]
Columns: TypeAlias = Annotated[list[Word], msgspec.Meta(min_length=1, max_length=100)]


class Part(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="is", tag=str.lower, kw_only=True):
    """A part of an expression, or of a function."""


class Column(Part, frozen=True, kw_only=True):
    """The value of a column."""

    name: Word


class Constant(Part, frozen=True, kw_only=True):
    """A constant of a column's type; dates, times, durations and bytes are text, as in bins."""

    type: Word
    value: Scalar


class Do(Part, frozen=True, kw_only=True):
    """An operation on parts: a name, and constants such as the bounds of a slice."""

    name: Word
    of: list[Expression]
    options: list[str | int | None] = []


Expression: TypeAlias = Column | Constant | Do


class Written(Part, frozen=True, tag="sql", kw_only=True):
    """A function as SQL text: a condition, or expressions with names."""

    text: Text


class Chosen(Part, frozen=True, kw_only=True):
    """Columns as they are."""

    names: Columns


class Traced(Part, frozen=True, kw_only=True):
    """A function that was traced: the columns that it reads, in the order of its parameters, and its outputs."""

    reads: list[Word]
    names: Columns
    values: list[Expression]


Function: TypeAlias = Written | Chosen | Traced


class Step(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="do", tag=str.lower, kw_only=True):
    """A step of a plan."""


class Table(Step, frozen=True, kw_only=True):
    """The records of a data set."""

    name: Word


class Unary(Step, frozen=True, kw_only=True):
    """A step that reads one other."""

    of: Place


class Map(Unary, frozen=True, kw_only=True):
    """Each record becomes another."""

    function: Function


class Filter(Unary, frozen=True, kw_only=True):
    """Records of which a condition holds."""

    function: Written | Traced


class Shave(Unary, frozen=True, kw_only=True):
    """Slices of weight."""

    thickness: tuple[Amount, ...] = (1,)
    name: Word = "index"


class Distinct(Unary, frozen=True, kw_only=True):
    """Weights bounded."""

    at_most: Amount = 1


class GroupBy(Unary, frozen=True, tag="group_by", kw_only=True):
    """Groups of a key, or their sizes."""

    key: Function
    sizes: bool = True
    name: Word | None = None
    whole: bool = False


class Limit(Unary, frozen=True, kw_only=True):
    """At most so much weight of each key."""

    key: Function
    at_most: int = 1


class PartOf(Unary, frozen=True, tag="part", kw_only=True):
    """One of the declared parts of a partition."""

    key: Function
    parts: Annotated[list[Bin], msgspec.Meta(min_length=1, max_length=10_000)]
    part: Place


class Binary(Step, frozen=True, kw_only=True):
    """A step that reads two others."""

    left: Place
    right: Place


class Concat(Binary, frozen=True, kw_only=True):
    """The sum."""


class Subtract(Binary, frozen=True, kw_only=True):
    """The difference."""


class Union(Binary, frozen=True, kw_only=True):
    """The larger weights."""


class Intersect(Binary, frozen=True, kw_only=True):
    """The smaller weights."""


class Keyed(Binary, frozen=True, kw_only=True):
    """A step that matches records of two steps by a key."""

    left_key: Function
    right_key: Function


class Join(Keyed, frozen=True, kw_only=True):
    """Pairs of equal key; a key of more than `at_most` records is left out."""

    at_most: int
    how: Literal["inner", "left"] = "inner"


class JoinRows(Keyed, frozen=True, tag="join_rows", kw_only=True):
    """All pairs of equal key, where bounds say how many records a key has."""

    how: Literal["inner", "left"] = "inner"


class SemiJoin(Keyed, frozen=True, kw_only=True):
    """Records with a partner."""


class AntiJoin(Keyed, frozen=True, kw_only=True):
    """Records without a partner."""


AnyStep: TypeAlias = (
    Table | Map | Filter | Shave | Distinct | GroupBy | Limit | PartOf | Concat | Subtract | Union | Intersect | Join
    | JoinRows | SemiJoin | AntiJoin
)  # fmt: skip


class Measure(Asks, frozen=True, kw_only=True):
    """A noisy histogram of a plan, whose last step is measured."""

    plan: Annotated[list[AnyStep], msgspec.Meta(min_length=1)]
    mechanism: Literal["geometric", "laplace", "gaussian", "best"] = "geometric"
    rho: Amount | None = None
    delta: Amount | None = None
