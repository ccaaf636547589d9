"""Functions of released numbers: what is computed from them costs nothing and shows nothing more.

Of the numbers of records there are fewer functions: there the last digit of one must not depend on another record.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

from wpinq.core.functions.sql.bind import translator
from wpinq.core.functions.sql.operators import RULES
from wpinq.core.functions.sql.terms import NUMBERS, Term, constant, to
from wpinq.core.functions.sql.translator import Translator, argument
from wpinq.core.functions.tree import Node, when
from wpinq.core.records.schema import Kind
from wpinq.query.derived import CALL

DOUBLES: dict[str, Callable[[Node], Node]] = {
    "Cos": lambda x: x.cos(), "Sin": lambda x: x.sin(), "Tan": lambda x: x.tan(), "Cot": lambda x: x.cot(),
    "Acos": lambda x: x.arccos(), "Asin": lambda x: x.arcsin(), "Atan": lambda x: x.arctan(),
    "Cosh": lambda x: x.cosh(), "Sinh": lambda x: x.sinh(), "Tanh": lambda x: x.tanh(), "Acosh": lambda x: x.arccosh(),
    "Asinh": lambda x: x.arcsinh(), "Atanh": lambda x: x.arctanh(), "Degrees": lambda x: x.degrees(),
    "Radians": lambda x: x.radians(), "Cbrt": lambda x: x.cbrt(),
}  # fmt: skip


def released_translator(resolve: Callable[[Any], Term], spelled: Callable[[Any], str]) -> Translator:
    """Translates what is computed from released numbers."""
    known = "computed from released numbers here"
    result = translator(resolve, CALL, spelled=spelled, known=known)
    result.rules = {**RULES, **MORE}
    return result


def _double(translate: Translator, node: Any) -> Node:
    return to(argument(translate, node, *NUMBERS), Kind.FLOAT, CALL).value


def _finite(value: Node) -> Term:
    """A double, NULL where it is none."""
    return Term(when(value.is_finite(), value), Kind.FLOAT, "")


def _function(translate: Translator, node: Any) -> Term:
    return _finite(DOUBLES[type(node).__name__](_double(translate, node.this)))


def _power(translate: Translator, node: Any) -> Term:
    return _finite(_double(translate, node.this).pow(_double(translate, node.expression)))


MORE: dict[str, tuple[frozenset[str], Any]] = {
    **dict.fromkeys(DOUBLES, (frozenset(["this"]), _function)),
    "Pow": (frozenset(["this", "expression"]), _power),
    "Pi": (frozenset(), lambda translate, node: constant(pi, Kind.FLOAT, "PI()")),
}
