"""The interface of a bound function: a user's function or expression with the columns that it reads and returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import polars as pl

from wpinq.core.functions.tree import Node
from wpinq.core.records.batch import Batch
from wpinq.core.records.schema import Kind, Schema

Constant: TypeAlias = tuple[Kind, Hashable]
"""A value of a type."""


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
