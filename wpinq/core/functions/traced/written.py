"""A traced function as a function again: made of syntax trees that this file writes, from the names of rules.

Nothing is parsed as Python. What is made traces to the expressions that it was made of.
"""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from wpinq.core.functions.traced.expression import Expression, Untraced
from wpinq.core.records.kinds import read
from wpinq.core.records.schema import Schema
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


def written(nodes: Sequence[Expression], reads: Sequence[str], schema: Schema) -> FunctionType:
    """A straight function that computes these expressions of columns.

    Raises:
        PlanError: One reads another column than these.
    """
    return _function(nodes, _parameters(reads, schema))


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
