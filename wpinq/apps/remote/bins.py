"""Bins and traced functions in JSON, both read by the public types of the columns, as strictly as in Python.

Of a traced function what tracing found is sent, and is a function again where it arrives (`Formula`). That is bound
like any other: traced, compared with plain Python on probe values, and its expression must be the one that was sent. So
what is computed and priced is what the client says, whatever it had traced.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wpinq.apps.remote import cells, grammar
from wpinq.apps.remote.wire import Observe
from wpinq.core import Column, Columnar, Expression, Formula, Function, Kind, Schema, total_size
from wpinq.errors import BinError, PlanError


def bins_of(request: Observe, schema: Schema, most: int) -> Any:
    """The bins that a request names: a list, or a range of whole numbers.

    Args:
        request: The request.
        schema: The columns that are measured.
        most: How many bins one request may have.

    Raises:
        BinError: A bin is none of these columns, or there are none or too many.
    """
    if (request.bins is None) is (request.range is None):
        raise BinError('observe: give either {"bins": [...]} or {"range": {"first": 1, "last": 100}}.')
    if request.bins is not None:
        _insist(len(request.bins) <= most, most)
        return [value(bin_, schema) for bin_ in request.bins]
    assert request.range is not None  # noqa: S101  one of the two is there
    first, last = request.range.first, request.range.last
    _insist(0 <= last - first < most, most)
    _insist(first >= -(2**63) and last < 2**63, most)
    return range(first, last + 1)


def value(data: Any, schema: Schema, call: str = "observe") -> Any:
    """One bin, or one group, as Python has it; `call` is what messages name.

    Raises:
        BinError: It is none of these columns.
    """
    if len(schema) == 1:
        return _read(data, schema.columns[0], call)
    if not isinstance(data, list) or len(data) != len(schema):
        raise BinError(f"{call}: a bin of {schema} is a list of {len(schema)} values.")
    return tuple(_read(part, column, call) for part, column in zip(data, schema, strict=True))


def _read(data: Any, column: Column, call: str) -> Any:
    if isinstance(data, list) and column.kind is not Kind.ANY:
        raise BinError(f"{call}: a list does not fit; bins of {column.name!r} are {column.kind.value}.")
    try:
        return cells.received(data, column.kind)
    except msgspec.ValidationError:
        hint = f"bins of column {column.name!r} are of the type {column.kind.value}, as ISO 8601 text"
        raise BinError(f"{call}: {type(data).__name__} does not fit; {hint}.") from None


def _insist(fits: bool, most: int) -> None:
    if not fits:
        raise BinError(f"observe: at most {most} bins, in order; ask for them in several requests.")


def sent(function: Function, call: str) -> grammar.Traced:
    """A function that was traced, as it is sent.

    Raises:
        PlanError: It was not traced, or computes what it does not return.
    """
    if not isinstance(function, Columnar):
        raise PlanError(
            f"{call}: this function is no column arithmetic, so it cannot be sent: only straight code of comparisons, "
            "sums, text methods and parts of times is traced (no if, in, is, or calls of others). Write SQL text."
        )
    if not function.whole:
        raise PlanError(f"{call}: the function computes what it does not return; leave that out.")
    return grammar.Traced(
        reads=list(function.reads), names=list(function.output.names), values=[_sent(node) for node in function.nodes]
    )


def _sent(node: Expression) -> grammar.Expression:
    if node.name == "column":
        return grammar.Column(name=node.options[0])
    if node.name == "constant":
        return grammar.Constant(type=node.kind.value, value=cells.as_json(node.value))
    return grammar.Do(name=node.name, of=[_sent(part) for part in node.inputs], options=list(node.options))


def received(traced: grammar.Traced, schema: Schema, call: str) -> Formula:
    """The function that an expression stands for; whatever binds it finds whether a function traces to it.

    Args:
        traced: What was sent.
        schema: The columns that it reads.
        call: Name of the step, for messages.

    Raises:
        PlanError: There is no such column or operation, or it stands for too large an expression.
    """
    if len(traced.names) != len(traced.values):
        raise PlanError(f"{call}: {len(traced.values)} values and {len(traced.names)} names.")
    nodes = tuple(_node(value, schema, call) for value in traced.values)
    total_size().add(sum(part.size for node in nodes for part in node.parts()), call, "the function")
    return Formula(nodes, tuple(traced.reads))


def _node(expression: grammar.Expression, schema: Schema, call: str) -> Expression:
    try:
        if isinstance(expression, grammar.Column):
            return Expression.of_column(expression.name, schema[expression.name].kind)
        if isinstance(expression, grammar.Constant):
            kind = Kind(expression.type)
            return Expression.of_constant(cells.received(expression.value, kind), kind)
        inputs = tuple(_node(operand, schema, call) for operand in expression.of)
        return Expression.of_rule(expression.name, inputs, tuple(expression.options), call)
    except PlanError:
        raise
    except Exception:  # noqa: BLE001  a constant of another type, an operation on other operands, wrong options
        name = expression.name if isinstance(expression, grammar.Do) else "a constant"
        raise PlanError(f"{call}: {name} does not fit what it works on, or is no operation.") from None
