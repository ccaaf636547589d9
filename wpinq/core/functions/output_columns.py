"""The columns of a function's output: how many, what they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wpinq.core.functions.code.fingerprint import digest
from wpinq.core.records.kinds import declared_kinds
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import PlanError

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
