"""Bind a user's function or expression to the columns of a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CodeType

from wpinq.errors import PlanError
from wpinq.functions.binding import match
from wpinq.functions.bytecode import arity, yields
from wpinq.functions.function import Function
from wpinq.functions.outputs import named, shape
from wpinq.functions.plain import Plain
from wpinq.schema import Column, Kind, Schema


def bind(
    function: object,
    schema: Schema,
    call: str,
    *,
    columns: Sequence[str] | Mapping[str, object] | None = None,
) -> Function:
    """Bind a function or expression to columns.

    Args:
        function: A Python function, or element-wise Polars expressions.
        schema: The columns of the input.
        call: Name of the call, for messages: `map`.
        columns: Names of the outputs, or names with types.

    Raises:
        PlanError: The parameters do not fit the columns, or the outputs do not fit `columns`.
        UntraceableError: An expression is not a function of one record.
    """
    if not callable(function):
        raise PlanError(f"{call}: takes a function or Polars expressions, and got {type(function).__name__}.")
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType) and yields(code):
        raise PlanError(f"{call}: the function yields; return one value or a tuple, or use flat_map.")
    binding = match(function, schema, call)
    size, wanted = shape(columns, arity(code) if isinstance(code, CodeType) else None, call)
    names = tuple(name for name, _ in wanted) or named([None] * (size or 1))
    kinds = tuple(kind or Kind.ANY for _, kind in wanted) or (Kind.ANY,) * len(names)
    output = Schema(tuple(Column(name, kind) for name, kind in zip(names, kinds, strict=True)))
    plain = Plain(
        schema=schema,
        reads=binding.reads,
        output=output,
        projection=None,
        note="plain Python on distinct records",
        fingerprint=None,
        function=function,
        binding=binding,
        size=size,
    )
    return plain
