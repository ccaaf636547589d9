"""Decide whether a function is column arithmetic without branches, and if so trace it with stand-ins (privacy rule 23).

Stand-ins cannot detect `x is None`, `x in {...}`, `isinstance(x, str)` or a branch; these would give wrong constants.
So the bytecode is checked first: only the instructions listed here, no jumps, no calls except of `len`, `abs` and the
methods of stand-ins, no outer names except plain constants. The traced function is then compared with plain Python on
probe values; if any result differs, the function runs by the plain way. No record is used for this.

A `Formula` is the way back: expressions of columns as a function that Python computes on the values of one record.

Stand-ins for columns: a traced function computes with them, and they record its operations.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from wpinq.core.functions import tree
from wpinq.core.functions.binding import Binding
from wpinq.core.functions.code.bytecode import readable, steps_of
from wpinq.core.functions.traced.expression import (
    BITS,
    FIELDS,
    METHODS,
    ORDER,
    PYTHON,
    SPACES,
    SUMS,
    Expression,
    Untraced,
)
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError

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


MEANING = {**PYTHON, "len": length}
"""What operations do, with stand-ins too."""


@dataclass(frozen=True)
class Formula:
    """A function of these columns, in this order.

    Attributes:
        nodes: The expression of each output.
        reads: The columns.
    """

    nodes: tuple[Expression, ...]
    reads: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in (name for node in self.nodes for name in node.value_tree.columns):
            if name not in self.reads:
                raise PlanError(f"the expression reads column {name!r}, which reads= does not name.")

    def __call__(self, *values: Any) -> Any:
        """The output, or the outputs where there are several."""
        columns = dict(zip(self.reads, values, strict=True))
        result = tuple(_value(node, columns) for node in self.nodes)
        return result if len(result) > 1 else result[0]


def _value(node: Expression, columns: Mapping[str, Any]) -> Any:
    if node.name == "column":
        return columns[node.options[0]]
    if node.name == "constant":
        return node.value
    return MEANING[node.name](*[_value(part, columns) for part in node.inputs], *node.options)


_STRAIGHT = """
    RESUME NOP PUSH_NULL PRECALL CALL COPY_FREE_VARS LOAD_FAST LOAD_FAST_CHECK STORE_FAST LOAD_CONST LOAD_DEREF
    LOAD_GLOBAL LOAD_ATTR LOAD_METHOD BUILD_TUPLE BUILD_SLICE BINARY_SUBSCR BINARY_SLICE BINARY_OP COMPARE_OP
    UNARY_NEGATIVE RETURN_VALUE RETURN_CONST EXTENDED_ARG"""
STRAIGHT = frozenset(_STRAIGHT.split())
ATTRIBUTES = frozenset((*METHODS, *FIELDS, "split"))
CALLS: dict[str, Any] = {"len": length, "abs": abs}


def trace(
    function: object, binding: Binding, schema: Schema, size: int | None
) -> tuple[list[Expression], list[Expression]]:
    """Call a straight function with stand-ins.

    Returns:
        The outputs, and every operation that was done on the way.

    Raises:
        Untraced: It is not straight, or does something that columns do not.
    """
    copy = function if isinstance(function, Formula) else _straight(function)
    log: list[Expression] = []
    values = [Standin(Expression.of_column(name, schema[name].kind), log) for name in binding.reads]
    positional, keywords = binding.arguments(values)
    try:
        result = copy(*positional, **keywords)
    except Exception:  # noqa: BLE001  the function refused the stand-ins, or raises for every record
        raise Untraced from None
    if sum(node.size for node in log) > tree.TOGETHER:
        raise Untraced
    results = result if size is not None and isinstance(result, tuple) else (result,)
    return [_output(value) for value in results], log


def _straight(function: object) -> FunctionType:
    """The function, with those outer names alone that straight code may use."""
    if not isinstance(function, FunctionType) or function.__dict__ or not readable():
        raise Untraced
    copy = FunctionType(
        function.__code__, _outside(function), function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _outside(function: FunctionType) -> dict[str, Any]:
    """The outer names that straight code may use; raises Untraced when the code is not straight."""
    names: dict[str, Any] = {"__builtins__": {}}
    for cell in function.__closure__ or ():
        _plain(cell.cell_contents)
    for step in steps_of(function.__code__):
        if step.opname not in STRAIGHT or (
            step.opname in ("LOAD_ATTR", "LOAD_METHOD") and step.argval not in ATTRIBUTES
        ):
            raise Untraced
        if step.opname == "LOAD_GLOBAL":
            names[step.argval] = _global(step.argval, function.__globals__)
    return names


def _global(name: str, globals_: dict[str, Any]) -> Any:
    if name in CALLS and name not in globals_:
        return CALLS[name]
    if name not in globals_:
        raise Untraced
    return _plain(globals_[name])


def _plain(value: Any) -> Any:
    if value is not None and type(value) not in (*CONSTANTS, dt.datetime):
        raise Untraced
    return value


def _output(value: Any) -> Expression:
    if isinstance(value, Standin):
        return value.node
    if isinstance(value, Parts):
        raise Untraced
    try:
        return lift(value)
    except Untraced:
        pass
    if isinstance(value, (list, tuple)):
        raise Untraced  # could hold stand-ins
    return _any(value)


def _any(value: Any) -> Expression:
    try:
        return Expression.of_constant(value, Kind.ANY)
    except Exception:  # noqa: BLE001
        raise Untraced from None
