"""Stand-ins for columns: a traced function computes with them, and they record its operations."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from typing import Any

from wpinq.core.functions.traced.expression import Expression, Untraced
from wpinq.core.functions.traced.rules import BITS, FIELDS, ORDER, SPACES, SUMS
from wpinq.core.records.schema import Kind

CONSTANTS: dict[type, Kind] = {
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.FLOAT,
    str: Kind.TEXT,
    bytes: Kind.BYTES,
    dt.date: Kind.DATE,
    dt.timedelta: Kind.SPAN,
}


class Standin:
    """Stands for a column without values. Operations that need a value raise, and then the function is not traced."""

    __slots__ = ("log", "node")

    def __init__(self, node: Expression, log: list[Expression]) -> None:
        self.node = node
        self.log = log

    def do(self, name: str, *operands: object, options: tuple[Any, ...] = (), turned: bool = False) -> Standin:
        """Note an operation."""
        nodes = tuple(lift(operand, self.node.kind) for operand in operands)
        inputs = (*nodes, self.node) if turned else (self.node, *nodes)
        node = Expression.of_rule(name, inputs, options)
        self.log.append(node)
        return Standin(node, self.log)

    def __getitem__(self, index: object) -> Standin:
        if isinstance(index, slice):
            if index.step is not None:
                raise Untraced
            return self.do("slice", options=(index.start, index.stop))
        if type(index) is not int:
            raise Untraced
        return self.do("item", options=(index,))

    def split(self, separator: str) -> Parts:
        """The parts of a text, of which one is looked at."""
        return Parts(self, separator)

    def any_of(self, name: str, choices: object) -> Standin:
        """A test of one constant, or of whether it holds for one of a tuple."""
        if not isinstance(choices, tuple):
            return self.do(name, choices)
        if not choices:
            raise Untraced
        return functools.reduce(lambda left, right: left.do("or", right), [self.do(name, choice) for choice in choices])

    def __getattr__(self, name: str) -> Standin:
        if name not in FIELDS:
            raise Untraced
        return self.do(name)


class Parts:
    """What `split` gives: only one of its items, by a constant number, is traced."""

    __slots__ = ("separator", "text")

    def __init__(self, text: Standin, separator: str) -> None:
        self.text = text
        self.separator = separator

    def __getitem__(self, index: int) -> Standin:
        return self.text.do("part", options=(self.separator, index))


def lift(operand: object, wanted: Kind | None = None) -> Expression:
    """A stand-in's expression, or a constant's.

    Raises:
        Untraced: It is neither.
    """
    if isinstance(operand, Standin):
        return operand.node
    kind = CONSTANTS.get(type(operand))
    if type(operand) is dt.datetime:
        kind = Kind.TIME if operand.tzinfo is None else Kind.INSTANT
    if wanted is Kind.FLOAT and type(operand) is int and abs(operand) <= 2**53:
        kind = Kind.FLOAT
    if kind is None:
        raise Untraced
    try:
        return Expression.of_constant(operand, kind)
    except Exception:  # noqa: BLE001  an integer beyond 64 bits, a text that is none
        raise Untraced from None


def length(value: Any) -> Any:
    """What `len` is in a traced function."""
    return value.do("len") if isinstance(value, Standin) else len(value)


def _refuse(*_: object) -> Any:
    raise Untraced


def _noted(name: str, *, turned: bool = False) -> Callable[..., Standin]:
    return lambda self, *operands: self.do(name, *operands, turned=turned)


def _with_options(name: str, *defaults: str) -> Callable[..., Standin]:
    return lambda self, *options: self.do(name, options=options or defaults)


def _tested(name: str) -> Callable[..., Standin]:
    return lambda self, choices: self.any_of(name, choices)


for _name in (*ORDER, "neg", "abs"):
    setattr(Standin, f"__{_name}__", _noted(_name))
for _name in (*SUMS, *BITS, "floordiv", "mod"):
    setattr(Standin, f"__{_name}__", _noted(_name))
    setattr(Standin, f"__r{_name}__", _noted(_name, turned=True))
for _name in ("lower", "upper", "weekday", "isoweekday", "date"):
    setattr(Standin, _name, _noted(_name))
for _name in ("strip", "lstrip", "rstrip"):
    setattr(Standin, _name, _with_options(_name, SPACES))
for _name in ("removeprefix", "removesuffix", "replace"):
    setattr(Standin, _name, _with_options(_name))
for _name in ("startswith", "endswith"):
    setattr(Standin, _name, _tested(_name))
for _name in (
    "bool", "len", "iter", "hash", "index", "int", "float", "complex", "str", "repr", "format", "contains", "call",
    "bytes", "round", "trunc", "floor", "ceil", "truediv", "rtruediv", "pow", "rpow", "divmod", "rdivmod", "invert",
    "pos", "lshift", "rlshift", "rshift", "rrshift", "matmul", "rmatmul",
):  # fmt: skip
    setattr(Standin, f"__{_name}__", _refuse)
