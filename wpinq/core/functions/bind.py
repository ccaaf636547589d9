"""Bind a user's function or expression to the columns of a collection.

What plans of expressions do not need, Python functions and SQL, is loaded where one is bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from wpinq.core.functions.function import Function
from wpinq.core.functions.tree import Node, col
from wpinq.core.records.schema import Schema

if TYPE_CHECKING:
    from wpinq.core.functions.plain import Many


def bind(
    function: object,
    schema: Schema,
    call: str,
    *,
    columns: Sequence[str] | Mapping[str, object] | None = None,
    condition: bool = False,
) -> Function:
    """Bind a function or expression to columns.

    Args:
        function: A Python function, element-wise Polars expressions, SQL text, or what another process had traced.
        schema: The columns of the input.
        call: Name of the call, for messages: `map`.
        columns: Names of the outputs, or names with types.
        condition: Whether it is used as a predicate, so that SQL text is a condition.

    Raises:
        PlanError: The parameters do not fit the columns, or the outputs do not fit `columns`.
        UntraceableError: An expression is not a function of one record.
    """
    if isinstance(function, str):
        if not condition and _is_column(function, schema):
            return _expressions([col(function)], schema, call, columns)
        from wpinq.core.functions.sql.bind import predicate, projection

        return predicate(function, schema, call) if condition else projection(function, schema, call, columns)
    if isinstance(function, (pl.Expr, Node)):
        return _expressions([function], schema, call, columns)
    if isinstance(function, (list, tuple)):
        return _expressions(function, schema, call, columns)
    from wpinq.core.functions.traced.bind import bound

    return bound(function, schema, call, columns)


def bind_many(
    function: object, schema: Schema, call: str, *, columns: Sequence[str] | Mapping[str, object] | None = None
) -> Many:
    """Bind a function that returns an iterable of records, or yields them, to columns.

    Each item is one value, or, when `columns` names several, a tuple of as many.

    Raises:
        PlanError: It is an expression, or the parameters do not fit the columns.
    """
    from wpinq.core.functions.plain import Many
    from wpinq.core.functions.traced.bind import bind_as

    return bind_as(Many, function, schema, call, columns)


def _expressions(
    items: Sequence[object], schema: Schema, call: str, columns: Sequence[str] | Mapping[str, object] | None
) -> Function:
    from wpinq.core.functions.expressions import expressions

    return expressions(items, schema, call, columns)


def _is_column(text: str, schema: Schema) -> bool:
    """Whether SQL text is just a column's name; then the SQL parser need not be loaded."""
    return text.isidentifier() and text in schema.names
