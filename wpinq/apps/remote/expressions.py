"""Traced functions in JSON: what tracing found is sent, and becomes a function again that traces to the very same.

The function is made of syntax trees that this file writes, from the names of rules; nothing that was sent is parsed as
Python. It is then bound like any other: traced, compared with plain Python on probe values, and its expression must be
the one that was sent. So what is computed and priced is what the client says, whatever it had traced.
"""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

import msgspec

from wpinq.apps.remote import grammar
from wpinq.apps.remote.bins import TYPES
from wpinq.core.functions import Function, bind, sizes
from wpinq.core.functions.traced.columnar import Columnar
from wpinq.core.functions.traced.expression import Expression, Untraced, column, constant, step
from wpinq.core.records.kinds import read
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError

OPERATORS: dict[str, ast.operator] = {
    "add": ast.Add(), "sub": ast.Sub(), "mul": ast.Mult(), "floordiv": ast.FloorDiv(), "mod": ast.Mod(),
    "and": ast.BitAnd(), "or": ast.BitOr(), "xor": ast.BitXor(),
}  # fmt: skip
COMPARED: dict[str, ast.cmpop] = {
    "eq": ast.Eq(), "ne": ast.NotEq(), "lt": ast.Lt(), "le": ast.LtE(), "gt": ast.Gt(), "ge": ast.GtE(),
}  # fmt: skip
CALLED = ("lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith", "removeprefix", "removesuffix",
          "replace", "weekday", "isoweekday", "date")  # fmt: skip
FIELDS = ("year", "month", "day", "hour", "minute", "second")
LITERAL = (str, int, float, bool, bytes, type(None))
OUTER = "_constant_"


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
    inside = {part for node in function.nodes for part in _parts(node)}
    if not inside.issuperset(function.steps):
        raise PlanError(f"{call}: the function computes what it does not return; leave that out.")
    return grammar.Traced(
        reads=list(function.reads), names=list(function.output.names), values=[_said(node) for node in function.nodes]
    )


def _said(node: Expression) -> grammar.Expression:
    if node.name == "column":
        return grammar.Column(name=node.options[0])
    if node.name == "constant":
        value = msgspec.to_builtins(read(node.options[0], node.kind))
        return grammar.Constant(type=node.kind.value, value=value)
    return grammar.Do(name=node.name, of=[_said(part) for part in node.inputs], options=list(node.options))


def received(given: grammar.Traced, schema: Schema, call: str) -> Callable[..., Any]:
    """The function that an expression stands for.

    Args:
        given: What was sent.
        schema: The columns that it reads.
        call: Name of the step, for messages.

    Raises:
        PlanError: There is no such column or operation, it stands for too large an expression, or tracing finds no such
            one.
    """
    if len(given.names) != len(given.values):
        raise PlanError(f"{call}: {len(given.values)} values and {len(given.names)} names.")
    nodes = [_node(one, schema, call) for one in given.values]
    sizes.total().add(sum(part.size for node in nodes for part in _parts(node)), call, "the function")
    function = _function(nodes, _parameters(given.reads, schema))
    names = given.names
    bound = bind(function, schema, call, columns=names)
    if not isinstance(bound, Columnar) or list(bound.nodes) != nodes:
        raise PlanError(f"{call}: no function traces to this expression; send what wpinq.connect sends.")
    return function


def _node(given: grammar.Expression, schema: Schema, call: str) -> Expression:
    try:
        if isinstance(given, grammar.Column):
            return column(given.name, schema[given.name].kind)
        if isinstance(given, grammar.Constant):
            kind = Kind(given.type)
            return constant(msgspec.convert(given.value, TYPES[kind]) if kind in TYPES else given.value, kind)
        inputs = tuple(_node(one, schema, call) for one in given.of)
        return step(given.name, inputs, tuple(given.options), call)
    except PlanError:
        raise
    except Exception:  # noqa: BLE001  a constant of another type, an operation on other operands, wrong options
        name = given.name if isinstance(given, grammar.Do) else "a constant"
        raise PlanError(f"{call}: {name} does not fit what it works on, or is no operation.") from None


def _parameters(reads: Sequence[str], schema: Schema) -> list[tuple[str, str]]:
    """Pairs of a parameter and its column: by name where names can be parameters, else by position."""
    plain = all(
        name.isidentifier() and not name.startswith("_") and not keyword.iskeyword(name) and name in schema
        for name in reads
    )
    if reads and plain and len(set(reads)) == len(reads) and not {"len", "abs"}.intersection(reads):
        return [(name, name) for name in reads]
    return [(f"_{place}", name) for place, name in enumerate(schema.names)]


def _function(nodes: Sequence[Expression], parameters: Sequence[tuple[str, str]]) -> FunctionType:
    """A straight function that computes these expressions."""
    outside: dict[str, Any] = {"__builtins__": builtins, "__name__": __name__}
    names = {of: parameter for parameter, of in parameters}
    made = [_code(node, names, outside) for node in nodes]
    body = made[0] if len(made) == 1 else ast.Tuple(made, ast.Load())
    arguments = ast.arguments([], [ast.arg(name) for name, _ in parameters], None, [], [], None, [])
    tree = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, body)))
    whole = compile(tree, "<expression>", "eval")
    (code,) = [item for item in whole.co_consts if isinstance(item, CodeType)]
    return FunctionType(code, outside, "expression")


def _code(node: Expression, names: dict[str, str], outside: dict[str, Any]) -> ast.expr:
    """The syntax tree of an expression; constants that have no literal are global names."""
    if node.name == "column":
        if node.options[0] not in names:
            raise PlanError(f"the expression reads column {node.options[0]!r}, which reads= does not name.")
        return _name(names[node.options[0]])
    if node.name == "constant":
        value = read(node.options[0], node.kind)
        if type(value) in LITERAL:
            return ast.Constant(value)
        name = f"{OUTER}{len(outside)}"
        outside[name] = value
        return _name(name)
    return _operation(node.name, [_code(part, names, outside) for part in node.inputs], node.options)


def _operation(name: str, of: list[ast.expr], options: tuple[Any, ...]) -> ast.expr:
    if name in OPERATORS:
        return ast.BinOp(of[0], OPERATORS[name], of[1])
    if name in COMPARED:
        return ast.Compare(of[0], [COMPARED[name]], [of[1]])
    if name in ("len", "abs"):
        return ast.Call(_name(name), of, [])
    if name == "neg":
        return ast.UnaryOp(ast.USub(), of[0])
    if name in FIELDS:
        return ast.Attribute(of[0], name, ast.Load())
    if name in CALLED:
        given = [*of[1:], *(ast.Constant(option) for option in options)]
        return ast.Call(ast.Attribute(of[0], name, ast.Load()), given, [])
    if name == "part":
        parts = ast.Call(ast.Attribute(of[0], "split", ast.Load()), [ast.Constant(options[0])], [])
        return ast.Subscript(parts, ast.Constant(options[1]), ast.Load())
    if name == "item":
        return ast.Subscript(of[0], ast.Constant(options[0]), ast.Load())
    if name == "slice":
        return ast.Subscript(of[0], ast.Slice(*(ast.Constant(one) for one in options)), ast.Load())
    raise Untraced


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _parts(node: Expression) -> Iterator[Expression]:
    yield node
    for part in node.inputs:
        yield from _parts(part)
