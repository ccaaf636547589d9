"""Small faults of a module: each changes one expression or drops one statement, as a slip of a hand would."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
REVERSED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Mult: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
SWAPPED = {"max": "min", "min": "max", "floor": "ceil", "ceil": "floor", "any": "all", "all": "any"}
WORDS = {"__repr__", "__str__", "__dir__", "__reduce_ex__", "title", "shown", "text"}
"""Functions that only say something."""


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        file: Of the module, from the root of the project.
        line, column: Where it is.
        what: The code before and after.
        source: The module with the fault.
    """

    file: str
    line: int
    column: int
    what: str
    source: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}, {self.column} {self.what}"


def mutants(root: Path, file: str) -> list[Mutant]:
    """All faults of a module that still are Python."""
    text = (root / file).read_text()
    lines = text.split("\n")
    found = []
    for node, new in faults(ast.parse(text)):
        before = ast.get_source_segment(text, node) or ""
        after = new if isinstance(new, str) else f"({ast.unparse(new)})"
        head = lines[node.lineno - 1].encode()[: node.col_offset].decode()
        tail = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
        source = "\n".join([*lines[: node.lineno - 1], head + after + tail, *lines[node.end_lineno :]])
        try:
            compile(source, file, "exec")
        except (SyntaxError, ValueError):
            continue
        said = " ".join(before.split())[:70], " ".join(after.split())[:70]
        found.append(Mutant(file, node.lineno, node.col_offset, f"`{said[0]}` -> `{said[1]}`", source))
    return found


def faults(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr | str]]:
    """Each node that can be replaced, and what by; nothing in what only speaks: messages, types, decorators."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.arg | ast.Assert):
            continue
        if isinstance(node, ast.FunctionDef) and node.name in WORDS:
            continue
        yield from own(node)
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from own(node.value)
                yield from faults(node.value)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from faults(ast.Module(node.body, []))
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from faults(node)


def own(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr | str]]:
    """What one node can be replaced by."""
    match node:
        case ast.Compare(ops=[one]) if type(one) in COMPARED:
            yield node, changed(node, ops=[COMPARED[type(one)]()])
        case ast.BinOp(op=ast.FloorDiv()):
            yield node, ast.parse(f"-(-({ast.unparse(node.left)}) // ({ast.unparse(node.right)}))").body[0].value  # type: ignore[attr-defined]
        case ast.BinOp(op=one) if type(one) in REVERSED and not text_in(node):
            yield node, changed(node, op=REVERSED[type(one)]())
        case ast.BoolOp():
            yield node, changed(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
        case ast.UnaryOp(op=ast.Not()):
            yield node, node.operand
        case ast.Constant(value=bool(value)):
            yield node, ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield node, ast.Constant(value + 1)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in SWAPPED:
            func = (
                ast.Name(SWAPPED[name]) if isinstance(node.func, ast.Name) else changed(node.func, attr=SWAPPED[name])
            )
            yield node, changed(node, func=func)
            if name in ("max", "min") and len(node.args) == 2:
                yield from ((node, one) for one in node.args if not isinstance(one, ast.Starred))
        case ast.Expr(value=ast.Call()):
            yield node, "pass"
        case ast.If(test=test, body=[ast.Raise()]):
            yield test, ast.Constant(value=False)
        case _:
            return


def text_in(node: ast.AST) -> bool:
    """Whether a sum is one of texts or lists."""
    return any(isinstance(one, ast.JoinedStr | ast.List | ast.Tuple) or (
        isinstance(one, ast.Constant) and isinstance(one.value, str)) for one in ast.walk(node))  # fmt: skip


def changed(node: ast.expr, **fields: object) -> ast.expr:
    """A copy of a node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new
