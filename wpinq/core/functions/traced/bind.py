"""Bind a Python function to the columns of a collection: traced, where it is column arithmetic, else as it stands.

A function that reads an attribute that no value of a column's type has would fail for every record, so it is refused.
Only functions that surely reach the attribute are judged: their code has no branches, and the columns alone decide
which types there are. They are called once, with a value of each column's type that is of no record.
"""

from __future__ import annotations

import datetime as dt
import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any, TypeVar

import polars as pl

from wpinq.core.functions.binding import Binding, match
from wpinq.core.functions.code.bytecode import arity, readable, steps_of, yields
from wpinq.core.functions.code.capture import Captured, capture
from wpinq.core.functions.function import (
    Declared,
    Function,
    columns_code,
    columns_of,
    named,
    projection_code,
    shape,
)
from wpinq.core.functions.isolate import each
from wpinq.core.functions.plain import Many, Plain
from wpinq.core.functions.traced.columnar import Columnar, agrees, columns_read, projected
from wpinq.core.functions.traced.expression import Expression, Untraced
from wpinq.core.functions.traced.trace import STRAIGHT, Formula, trace
from wpinq.core.functions.versioned import Versioned
from wpinq.core.records.kinds import declared_kinds
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.records.values import digest
from wpinq.errors import PlanError

_ALONE = {"KW_NAMES", "UNARY_NOT", "IS_OP", "CONTAINS_OP", "FORMAT_VALUE", "BUILD_STRING", "CACHE"}
ALONE = STRAIGHT - {"COPY_FREE_VARS", "LOAD_DEREF", "LOAD_GLOBAL"} | _ALONE
"""Bytecodes of straight functions that read nothing but their arguments and constants."""
TYPICAL: dict[Kind, tuple[str, Any]] = {
    Kind.TEXT: ("a text", "a b"), Kind.INT: ("an integer", 1), Kind.FLOAT: ("a number", 1.5),
    Kind.BOOL: ("a boolean", True), Kind.BYTES: ("bytes", b"a"), Kind.DATE: ("a date", dt.date(2026, 1, 2)),
    Kind.TIME: ("a time", dt.datetime(2026, 1, 2)),
    Kind.INSTANT: ("a time", dt.datetime(2026, 1, 2, tzinfo=dt.UTC)), Kind.SPAN: ("a duration", dt.timedelta(1)),
}  # fmt: skip
WORDS = {type(value): words for words, value in reversed(TYPICAL.values())}


P = TypeVar("P", bound=Plain)
M = TypeVar("M", bound=Many)


def bound(
    function: object, schema: Schema, call: str, columns: Sequence[str] | Mapping[str, object] | None
) -> Function:
    """Bind a Python function, or what another process had traced, to columns; see `functions.bind`.

    Raises:
        PlanError: The parameters do not fit the columns, or the outputs do not fit `columns`.
    """
    plain = _plain(Plain, function, schema, call, columns)
    if plain.held.named:
        return plain
    try:
        return _traced(plain, () if columns is None else declared_kinds(columns, call), call)
    except Untraced:
        if isinstance(function, Formula):
            raise PlanError(f"{call}: no function traces to this expression; send what wpinq.connect sends.") from None
        refuse_misspelt(plain.function, plain.binding, schema, call)
        return plain


def bind_as(
    way: type[M], function: object, schema: Schema, call: str, columns: Sequence[str] | Mapping[str, object] | None
) -> M:
    """See `functions.bind_many`; `way` says what is made of the items."""
    if isinstance(function, (pl.Expr, list, tuple)):
        raise PlanError(f"{call}: takes a Python function that returns a list of records, not Polars expressions.")
    many = _plain(way, function, schema, call, columns)
    refuse_misspelt(many.function, many.binding, schema, call)
    return many


def refuse_misspelt(function: object, binding: Binding, schema: Schema, call: str) -> None:
    """Refuse a function that asks every record for what none has.

    Raises:
        PlanError: It does; the message names what comes nearest.
    """
    kinds = [schema[name].kind for name in binding.reads]
    if not isinstance(function, FunctionType) or not _straight(function) or Kind.ANY in kinds:
        return
    positional, keywords = binding.arguments([TYPICAL[kind][1] for kind in kinds])
    mistakes: list[tuple[type, str]] = []

    def call_once(_: tuple[Any, ...]) -> None:
        try:
            function(*positional, **keywords)
        except AttributeError as error:
            if error.name is not None and type(error.obj) in WORDS and not hasattr(error.obj, error.name):
                mistakes.append((type(error.obj), error.name))

    each(call_once, [()])
    for type_, name in mistakes:
        nearest = difflib.get_close_matches(
            name, [attribute for attribute in dir(type_) if not attribute.startswith("_")], 1
        )
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise PlanError(f"{call}: {WORDS[type_]} has no {name!r}, so the function fails for every record.{hint}")


def _straight(function: FunctionType) -> bool:
    code = function.__code__
    constants = any(isinstance(constant, (tuple, frozenset)) for constant in code.co_consts)
    return readable() and not constants and all(step.opname in ALONE for step in steps_of(code))


def _plain(
    way: type[P], function: object, schema: Schema, call: str, columns: Sequence[str] | Mapping[str, object] | None
) -> P:
    if not callable(function):
        raise PlanError(f"{call}: takes a function or Polars expressions, and got {type(function).__name__}.")
    if isinstance(function, Versioned) and function.returns and columns is None and way is Plain:
        raise PlanError(f"{call}: {function} returns a tuple; name its items, columns=[...].")
    held, binding, several = _taken(way, function, schema, call)
    size, wanted = shape(columns, several, call)
    names = tuple(name for name, _ in wanted) or named([None] * (size or 1))
    kinds = [kind or Kind.ANY for _, kind in wanted] or [Kind.ANY] * len(names)
    output = columns_of(names, kinds)
    about = (way.__name__, binding.code(), size, columns_code(schema, binding.reads), columns_code(output))
    return way(
        schema=schema,
        reads=binding.reads,
        output=output,
        projection=None,
        note="plain Python on distinct records",
        fingerprint=None if held.code is None else digest("plain", held.code, about),
        held=held,
        binding=binding,
        size=size,
    )


def _taken(
    way: type[Plain], function: Callable[..., Any], schema: Schema, call: str
) -> tuple[Captured, Binding, int | None]:
    """The function with what it captured, the columns of its parameters, and how many values it is seen to return."""
    if isinstance(function, Formula):
        binding = Binding(function.reads, function.reads, tuple(range(len(function.reads))), ())
        several = len(function.nodes) if len(function.nodes) > 1 else None
        return Captured(function, None, restless=False, zoned=False), binding, several
    if isinstance(function, Versioned):
        return function.captured(call), match(function, schema, call), None
    code, many = getattr(function, "__code__", None), issubclass(way, Many)
    if isinstance(code, CodeType) and yields(code, asynchronous=many):
        raise PlanError(f"{call}: the function yields; return one value or a tuple, or use flat_map.")
    held = capture(function, call)
    return held, match(held.function, schema, call), arity(code) if isinstance(code, CodeType) and not many else None


def _traced(plain: Plain, wanted: Declared, call: str) -> Function:
    nodes, steps = trace(plain.function, plain.binding, plain.schema, plain.size)
    if isinstance(plain.function, Formula) and tuple(nodes) != plain.function.nodes:
        raise Untraced
    if len(nodes) != (plain.size or 1):
        raise PlanError(f"{call}: the function returns one value and columns= names {plain.size}; return a tuple.")
    kinds = [node.kind for node in nodes]
    if any(
        kind not in (None, fallback)
        for (_, kind), fallback in zip(wanted or [("", None)] * len(kinds), kinds, strict=True)
    ):
        raise Untraced
    binding = plain.binding.narrowed(columns_read(plain.reads, [*nodes, *steps]))
    labels = dict(zip(binding.reads, binding.labels, strict=True))
    names = tuple(name for name, _ in wanted) or named(
        [labels[node.options[0]] if node.name == "column" else None for node in nodes]
    )
    projection = projected(nodes) if not steps else None
    ranged = [projection is not None and plain.schema[node.options[0]].ranged for node in nodes]
    output = columns_of(names, kinds, ranged)
    fallback = replace(plain, reads=binding.reads, binding=binding, output=output.expanded())
    note = "columns: " if projection else "traced: "
    function = Columnar(
        schema=plain.schema,
        reads=binding.reads,
        output=output,
        projection=projection,
        note=note + ", ".join(map(str, nodes)),
        fingerprint=projection_code(projection, plain.schema, output)
        if projection
        else _meaning(nodes, steps, plain.schema, binding.reads, output),
        nodes=tuple(nodes),
        steps=tuple(steps),
        plain=fallback,
    )
    if projection is None and not agrees(function, plain):
        raise Untraced
    return function


def _meaning(
    nodes: list[Expression], steps: list[Expression], schema: Schema, reads: tuple[str, ...], output: Schema
) -> bytes:
    done = tuple(sorted({step.code() for step in steps}))
    python = sys.version_info[:2] if steps else ()  # what letters and numbers do is Python's
    about = (columns_code(schema, reads), columns_code(output))
    return digest("columns", python, tuple(node.code() for node in nodes), done, *about)
