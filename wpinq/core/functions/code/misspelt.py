"""Attributes that no value of a column's type has: a function that asks for one fails for every record.

Only functions that surely come to the place where they ask are judged: their code is straight, and nothing in it but
the columns decides what types there are. They are called once with a value of each column's type that is no record's.
"""

from __future__ import annotations

import datetime as dt
import difflib
from types import FunctionType
from typing import Any

from wpinq.core.functions.binding import Binding
from wpinq.core.functions.code.bytecode import readable, steps_of
from wpinq.core.functions.isolate import each
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError

_STRAIGHT = """
    RESUME NOP PUSH_NULL PRECALL CALL KW_NAMES LOAD_FAST LOAD_FAST_CHECK STORE_FAST LOAD_CONST LOAD_ATTR LOAD_METHOD
    BUILD_TUPLE BUILD_SLICE BINARY_SUBSCR BINARY_SLICE BINARY_OP COMPARE_OP UNARY_NEGATIVE UNARY_NOT IS_OP CONTAINS_OP
    FORMAT_VALUE BUILD_STRING RETURN_VALUE RETURN_CONST EXTENDED_ARG CACHE"""
STRAIGHT = frozenset(_STRAIGHT.split())
TYPICAL: dict[Kind, tuple[str, Any]] = {
    Kind.TEXT: ("a text", "a b"), Kind.INT: ("an integer", 1), Kind.FLOAT: ("a number", 1.5),
    Kind.BOOL: ("a boolean", True), Kind.BYTES: ("bytes", b"a"), Kind.DATE: ("a date", dt.date(2026, 1, 2)),
    Kind.TIME: ("a time", dt.datetime(2026, 1, 2)),
    Kind.INSTANT: ("a time", dt.datetime(2026, 1, 2, tzinfo=dt.UTC)), Kind.SPAN: ("a duration", dt.timedelta(1)),
}  # fmt: skip
WORDS = {type(value): words for words, value in reversed(TYPICAL.values())}


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
    return readable() and not constants and all(step.opname in STRAIGHT for step in steps_of(code))
