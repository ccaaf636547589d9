"""Conditions of questions, in the SQL of a database that counts its rows: what they leave out need not come here.

A row may be left out there only if it is left out here: the step that asks the condition asks it again of what comes.
So it is enough that a condition which is true here is true there. It is, because

- every operation below is the same function of values there as here, of all values of its kinds, and raises on none;
- a cell that cannot be read as its kind is null here, and may be a value there. No operation makes a truth of a null
  that it would not make of every value in its place: in Kleene's logic what is true with something unknown is true
  whatever that is. IS NULL does, so it is not in the table; nor does anything compare what is read in another kind.

Whether the condition is true there must not show in the time beyond the number of rows that are. A database skips rows
by the least and the largest value of a block, or looks them up in an index, which tells whether a value occurs before
anything is charged for it. So a condition is written such that neither can be done: over a CASE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, TypeVar

import polars as pl

from wpinq.core.functions.tree import Node
from wpinq.core.records.schema import Kind


class Truth(Enum):
    """The kind of a condition."""

    TRUTH = "true, false or unknown"


class Operation(NamedTuple):
    """What is known of an operation.

    Attributes:
        sql: How it is written in SQLite and in DuckDB, with places for what it works on.
        kinds: What it works on: all of one kind, out of these.
        why: Why it means there what it means here.
    """

    sql: str
    kinds: tuple[Kind | Truth, ...]
    why: str


_VALUES = (Kind.INT, Kind.TEXT)
_SAME = "integers of 64 bits by their value, texts byte by byte; unknown of a null"
_KLEENE = "Kleene's logic of three values, in SQL as in Polars"
TABLE: Mapping[str, Operation] = {
    "Eq": Operation("({} = {})", _VALUES, _SAME),
    "NotEq": Operation("({} <> {})", _VALUES, _SAME),
    "Boolean.IsIn": Operation("({} IN ({}))", _VALUES, f"{_SAME}; the list holds no null and is not empty"),
    "And": Operation("({} AND {})", (Truth.TRUTH,), _KLEENE),
    "LogicalAnd": Operation("({} AND {})", (Truth.TRUTH,), _KLEENE),
    "Or": Operation("({} OR {})", (Truth.TRUTH,), _KLEENE),
    "LogicalOr": Operation("({} OR {})", (Truth.TRUTH,), _KLEENE),
    "Boolean.Not": Operation("(NOT {})", (Truth.TRUTH,), _KLEENE),
}
"""The operations that a database may do, by their names in trees; nothing on floats, and on no times."""
MOST = 200
"""Operations, depth and constants of a condition; a longer one is asked here alone."""

T = TypeVar("T")
Column = Callable[[str], tuple[str, Kind] | None]
"""How a column is written there, and its kind, where it is read of values of that very kind."""
Constant = Callable[[int | str], str]


class _UnknownError(Exception):
    """The database may not be asked this."""


def condition(anyone: Sequence[Node], column: Column, constant: Constant) -> str | None:
    """What stands after WHERE, so that a row stays for which one of some conditions is true; None if none can be said.

    Args:
        anyone: The conditions.
        column: Writes a column.
        constant: Writes a constant.
    """
    if not anyone or sum(tree.size for tree in anyone) > MOST:
        return None
    try:
        parts = [_written(tree, column, constant) for tree in anyone]
    except _UnknownError:
        return None
    if any(kind is not Truth.TRUTH for _, kind in parts):
        return None
    return f"CASE WHEN {' OR '.join(text for text, _ in parts)} THEN 1 ELSE 0 END = 1"


def _written(tree: Node, column: Column, constant: Constant) -> tuple[str, Kind | Truth]:
    if tree.name == "Column":
        name = tree.options["name"]
        return _known(None if name == "*" or name.startswith("^") else column(name))  # which may be a pattern to Polars
    if tree.name == "Literal":
        return _constant(_value(tree), constant)
    if tree.name == "Cast" and tree.options["dtype"] in (pl.Boolean, {"Literal": "Boolean"}):
        text, kind = _written(tree.inputs[0], column, constant)
        return _known((text, kind) if kind is Truth.TRUTH else None)
    operation = _known(TABLE.get(tree.name))
    parts = [_written(tree.inputs[0], column, constant)]
    if tree.name == "Boolean.IsIn":
        if tree.options.get("nulls_equal"):
            raise _UnknownError
        constants = [_constant(value, constant) for value in _listed(tree.inputs[1])]
        parts.append((", ".join(text for text, _ in constants), constants[0][1]))
        kinds = {kind for _, kind in (parts[0], *constants)}
    else:
        parts += [_written(part, column, constant) for part in tree.inputs[1:]]
        kinds = {kind for _, kind in parts}
    if len(kinds) != 1 or not kinds.issubset(operation.kinds):
        raise _UnknownError
    return operation.sql.format(*(text for text, _ in parts)), Truth.TRUTH


def _known(part: T | None) -> T:
    if part is None:
        raise _UnknownError
    return part


def _value(tree: Node) -> object:
    """The value of a constant, whatever wrote it."""
    return pl.select(tree.expr).to_series().to_list()[0]


def _listed(tree: Node) -> list[object]:
    values = _value(tree) if tree.name == "Literal" else None
    values = values.to_list() if isinstance(values, pl.Series) else values
    if not isinstance(values, list) or not 0 < len(values) <= MOST:
        raise _UnknownError
    return values


def _constant(value: object, constant: Constant) -> tuple[str, Kind]:
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return constant(value), Kind.INT
    if type(value) is str and "\0" not in value:
        return constant(value), Kind.TEXT
    raise _UnknownError


def integer(value: int) -> str:
    """A whole number as SQL reads one: the least of 64 bits is no literal of it."""
    return str(value) if value > -(1 << 63) else f"({value + 1} - 1)"


def text(value: str) -> str:
    """A text without NUL, in quotes."""
    return "'" + value.replace("'", "''") + "'"
