"""The interface of a bound function: a user's function or expression with the columns that it reads and returns.

Of those that are computed in columns only, what they do with one record follows from what they do with a frame of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import polars as pl

from wpinq.core.functions.tree import Node
from wpinq.core.records.batch import Batch
from wpinq.core.records.kinds import declared_kinds, plain_record, read, series
from wpinq.core.records.schema import Column, Kind, Schema, in_columns
from wpinq.core.records.values import digest
from wpinq.errors import PlanError

Constant: TypeAlias = tuple[Kind, Hashable]
"""A value of a type."""
FAILURES = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What Polars raises where it cannot compute."""
ONE = "\0one"
"""A column of a frame without others, which would have no rows."""
ROW = "\0probe"
"""A column that numbers rows."""
TRUTHFUL = (Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.TEXT)
"""Kinds whose values are not all true."""


class Dropped(Exception):  # noqa: N818  not an error: the policy for a record on which a function has no value
    """The function has no value for this record, so the record is dropped, uncounted."""


@dataclass(frozen=True, eq=False)
class Function(ABC):
    """A function of one record, in three ways that agree: `call` is the definition, `apply` does it in columns.

    Attributes:
        schema: The columns of the input.
        reads: The columns of the input that it reads, in parameter order.
        output: The columns of the output; for a predicate one column of whatever kind.
        projection: Set when every output is just an input column: their names, in output order, none of them twice.
            An engine then only renames, and ranged columns stay ranged.
        note: How it runs, for `explain`.
        fingerprint: Equal for functions of the same meaning, in any process; None when it has no fingerprint, and
            then the plan is a new query every time (privacy rule 2).
    """

    schema: Schema
    reads: tuple[str, ...]
    output: Schema
    projection: tuple[str, ...] | None
    note: str
    fingerprint: bytes | None

    @property
    def covered(self) -> tuple[object, ...] | None:
        """What a plan's fingerprint covers of it; None where that is not known."""
        return None if self.fingerprint is None else (self.fingerprint, self.reads, self.output, self.projection)

    @property
    def passed(self) -> dict[str, str]:
        """The outputs that are a column of the input as it is, with its name; of a function of columns alone."""
        return {}

    @property
    def constants(self) -> Mapping[str, Constant | None]:
        """The outputs that are the same for every record, each with its value as columns store it, or None.

        Of whole numbers, texts and booleans the value is given: two of one type are one value only if they are equal.
        """
        return {}

    @property
    def condition(self) -> Node | None:
        """A tree of the same meaning, where its one output is a truth value and it is an expression; else None."""
        return None

    @property
    def growth(self) -> int:
        """How many characters an output may have for each of an input's, beside constants; 1 also of plain Python."""
        return 1

    @abstractmethod
    def call(self, record: tuple[Any, ...]) -> tuple[Any, ...]:
        """Map one record: the values of all input columns, in order, to the values of all output columns.

        Raises:
            Dropped: The record has no output.
        """

    @abstractmethod
    def test(self, record: tuple[Any, ...]) -> bool:
        """The truth value of the function on one record; False when the record is dropped."""

    @abstractmethod
    def apply(self, frame: pl.DataFrame, keep: Sequence[str]) -> pl.DataFrame:
        r"""Map all rows of a frame that holds the columns of `reads`.

        Args:
            frame: Rows of the input; `reads` and `keep` are looked at. Unless the function is a projection, ranged
                columns among `reads` have been expanded before.
            keep: Columns to carry along, row by row (weights, ends of ranges). Their names start with `\0`.

        Returns:
            The output columns, followed by `keep`, in any order of rows. Rows whose record is dropped are absent.
        """

    @abstractmethod
    def predicate(self, frame: pl.DataFrame) -> pl.Series:
        """A mask over the rows of a frame: the truth value, False where the record is dropped."""


@dataclass(frozen=True, eq=False)
class Columnwise(Function):
    """A function that says what `apply` does."""

    def call(self, record: tuple[Any, ...]) -> tuple[Any, ...]:  # noqa: D102
        rows = self.apply(self._one(record), ()).select(pl.all().to_physical()).rows()
        if not rows:
            raise Dropped
        return tuple(read(value, column.kind) for value, column in zip(rows[0], self.output, strict=True))

    def test(self, record: tuple[Any, ...]) -> bool:  # noqa: D102
        return bool(self.predicate(self._one(record))[0])

    def predicate(self, frame: pl.DataFrame) -> pl.Series:  # noqa: D102
        if len(self.output) != 1:
            raise PlanError(f"a filter takes one expression, and got {len(self.output)}; join them with &.")
        (column,) = self.output
        answers = self.apply(frame.with_row_index(ROW), (ROW,))
        true = answers.filter(truthful(pl.col(column.name), column.kind)).get_column(ROW)
        mask = np.zeros(frame.height, dtype=bool)
        mask[true.to_numpy()] = True
        return pl.Series(mask, dtype=pl.Boolean)

    def _one(self, record: tuple[Any, ...]) -> pl.DataFrame:
        values = zip(self.reads, plain_record(record, self.schema, self.reads), strict=True)
        result = [series(name, [value], self.schema[name].kind) for name, value in values]
        return in_columns(result or [pl.Series(ONE, [0])])


def truthful(value: pl.Expr, kind: Kind) -> pl.Expr:
    """What `bool()` of a value is; for kinds that are not in `TRUTHFUL` every value counts as true."""
    if kind is Kind.BOOL:
        return value
    if kind in (Kind.INT, Kind.FLOAT):
        return value != 0
    return value != "" if kind is Kind.TEXT else value.is_not_null()


TOLD_APART: dict[Kind, type] = {Kind.INT: int, Kind.TEXT: str, Kind.BOOL: bool}
"""Types of which two constants are stored as one value only if they are equal."""


def told_apart(value: Any, kind: Kind) -> Constant | None:
    """A constant as `Function.constants` has it: its type and value, or None where equal values may look different."""
    return (kind, value) if kind in TOLD_APART and type(value) is TOLD_APART[kind] else None


@runtime_checkable
class OfRanges(Protocol):
    """A function of integers that can say what becomes of whole ranges, without writing them out."""

    def of_ranges(self, batch: Batch) -> Batch | None:
        """The sums of its outputs; None where it cannot say."""


Declared = tuple[tuple[str, Kind | None], ...]


def shape(
    columns: Sequence[str] | Mapping[str, object] | None, size: int | None, call: str
) -> tuple[int | None, Declared]:
    """How many items a result must have (None: it is one bare value), and what was declared about them.

    Args:
        columns: The `columns=` argument.
        size: The number of items of the tuple that the function is seen to return, None when it is not.
        call: Name of the call, for messages.

    Raises:
        PlanError: The two do not fit.
    """
    if columns is None:
        return size, ()
    wanted = declared_kinds(columns, call)
    if size is not None and size != len(wanted):
        raise PlanError(f"{call}: the function returns {size} values and columns= names {len(wanted)}; name each.")
    return (size if len(wanted) == 1 else len(wanted)), wanted


def named(labels: Sequence[str | None]) -> tuple[str, ...]:
    """Names for the outputs: that of the column passed on, `value` (or `value_1`, ...) for what is computed.

    >>> named(["page", None]), named([None, "page", None, "page"])
    (('page', 'value'), ('value_1', 'page', 'value_2', 'page_2'))
    """
    computed = [position for position, label in enumerate(labels) if label is None]
    made_names = {
        position: "value" if len(computed) == 1 else f"value_{order}" for order, position in enumerate(computed, 1)
    }
    wanted = [made_names[position] if label is None else label for position, label in enumerate(labels)]
    taken: list[str] = []
    for name in wanted:
        candidate, number = name, 1
        while candidate in taken or (number > 1 and candidate in wanted):
            number += 1
            candidate = f"{name}_{number}"
        taken.append(candidate)
    return tuple(taken)


def columns_of(names: Sequence[str], kinds: Sequence[Kind], ranged: Sequence[bool] | None = None) -> Schema:
    """The columns of these names and kinds."""
    held = [False] * len(names) if ranged is None else ranged
    return Schema(tuple(Column(*each) for each in zip(names, kinds, held, strict=True)))


def columns_code(schema: Schema, names: Sequence[str] | None = None) -> tuple[tuple[str, str], ...]:
    """Names and kinds of columns, for a fingerprint: later steps refer to columns by name."""
    return tuple((name, schema[name].kind.value) for name in (schema.names if names is None else names))


def projection_code(names: Sequence[str], schema: Schema, output: Schema) -> bytes:
    """The fingerprint of columns that are passed on as they are, whoever says so: SQL, an expression or a lambda."""
    return digest("projection", tuple(names), columns_code(schema, names), columns_code(output))
