"""Traced functions in JSON: what tracing found is sent, and is a function again where it arrives (`Formula`).

That is bound like any other: traced, compared with plain Python on probe values, and its expression must be the one
that was sent. So what is computed and priced is what the client says, whatever it had traced.
"""

from __future__ import annotations

import msgspec

from wpinq.apps.remote import grammar
from wpinq.apps.remote.bins import TYPES
from wpinq.core import Columnar, Expression, Formula, Function, Kind, Schema, total_size
from wpinq.errors import PlanError


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
        value = msgspec.to_builtins(node.value)
        return grammar.Constant(type=node.kind.value, value=value)
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
            return Expression.of_constant(
                msgspec.convert(expression.value, TYPES[kind]) if kind in TYPES else expression.value, kind
            )
        inputs = tuple(_node(operand, schema, call) for operand in expression.of)
        return Expression.of_rule(expression.name, inputs, tuple(expression.options), call)
    except PlanError:
        raise
    except Exception:  # noqa: BLE001  a constant of another type, an operation on other operands, wrong options
        name = expression.name if isinstance(expression, grammar.Do) else "a constant"
        raise PlanError(f"{call}: {name} does not fit what it works on, or is no operation.") from None
