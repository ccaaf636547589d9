"""The operators of SQL that are functions of one record. What is in no `RULES`, or says more, is refused."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.core.functions.sql import texts, times
from wpinq.core.functions.sql.terms import (
    NUMBERS,
    Term,
    balanced,
    constant,
    divided,
    null,
    shown,
    to,
    together,
    whole_number,
)
from wpinq.core.functions.tree import Node, lit, of_all, when
from wpinq.core.records.schema import Kind, polars_type
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.core.functions.sql.translator import Translator

Translation = Callable[["Translator", Any], Term]
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq, "NEQ": operator.ne, "LT": operator.lt, "LTE": operator.le, "GT": operator.gt, "GTE": operator.ge,
}  # fmt: skip


def _truth(value: Node) -> Term:
    return Term(value, Kind.BOOL, "")


def _pair(translator: Translator, first: Any, second: Any) -> tuple[Node, Node]:
    """Two parts in one type."""
    (left, right), _ = together([translator.term(first), translator.term(second)], translator.call)
    return left.value, right.value


def _compare(translator: Translator, node: Any) -> Term:
    return _truth(COMPARE[type(node).__name__](*_pair(translator, node.this, node.expression)))


def _distinct(translator: Translator, node: Any) -> Term:
    left, right = _pair(translator, node.this, node.expression)
    same = type(node).__name__ == "NullSafeEQ"
    return _truth(left.eq_missing(right) if same else left.ne_missing(right))


def _chain(translator: Translator, node: Any) -> Term:
    """A long chain of AND or OR, as a balanced tree: Polars recurses into it."""
    kind, parts, open_ = type(node), [], [node]
    while open_:
        part = open_.pop()
        if type(part) is kind:
            open_ += [part.expression, part.this]
        else:
            parts.append(translator.condition(part).value)
    return _truth(balanced(operator.and_ if kind.__name__ == "And" else operator.or_, parts))


def _not(translator: Translator, node: Any) -> Term:
    return _truth(~translator.condition(node.this).value)


def _is(translator: Translator, node: Any) -> Term:
    """IS [NOT] NULL, TRUE, FALSE."""
    what = type(node.expression).__name__
    if what == "Null":
        result = translator.term(node.this).value.is_null()
    elif what == "Boolean":
        result = translator.condition(node.this).value.eq_missing(lit(bool(node.expression.this)))
    else:
        raise translator.refused(node)
    return _truth(~result if node.args.get("negate") else result)


def _between(translator: Translator, node: Any) -> Term:
    terms = [translator.term(node.args[name]) for name in ("this", "low", "high")]
    value, low, high = (term.value for term in together(terms, translator.call)[0])
    result = (value >= low) & (value <= high)
    if node.args.get("symmetric"):
        result = result | ((value >= high) & (value <= low))
    return _truth(~result if node.args.get("negate") else result)


def _in(translator: Translator, node: Any) -> Term:
    """A list of constants; NULL among them makes what is not found NULL."""
    (value, *items), kind = together(
        [translator.term(entry) for entry in (node.this, *node.expressions)], translator.call
    )
    constants = [item for item in items if item.constant is not None]
    if all(item.constant is not None or item.text == "NULL" for item in items):
        cast = float if kind is Kind.FLOAT else lambda one: one
        series = pl.Series([cast(item.constant) for item in constants], dtype=polars_type(kind))
        result = value.value.is_in(series.to_list()) if constants else lit(None, pl.Boolean)
        result = result | lit(None, pl.Boolean) if len(constants) < len(items) else result
    else:
        result = balanced(operator.or_, [value.value == item.value for item in items])
    return _truth(~result if node.args.get("negate") else result)


def _like(translator: Translator, node: Any, escape: str = "\\") -> Term:
    """LIKE and ILIKE with a constant pattern, as a regular expression."""
    value, pattern = translator.term(node.this), translator.term(node.expression)
    if value.kind not in (Kind.TEXT, None) or not pattern.quoted:
        raise PlanError(f"{translator.call}: {translator.spell(node)} needs a text and a quoted pattern.")
    flags = "(?si)" if type(node).__name__ == "ILike" else "(?s)"
    expression = rf"{flags}\A{_regex(pattern.constant, escape, translator, node)}\z"
    result = value.value.cast(pl.String, strict=False).str.contains(expression)
    return _truth(~result if node.args.get("negate") else result)


def _regex(pattern: str, escape: str, translator: Translator, node: Any) -> str:
    out, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            following = next(letters, None)
            if following is None:
                raise PlanError(
                    f"{translator.call}: {translator.spell(node)}: the pattern ends in its escape character."
                )
            out.append(re.escape(following))
        else:
            out.append({"%": ".*", "_": "."}.get(letter) or re.escape(letter))
    return "".join(out)


def _escaped(translator: Translator, node: Any) -> Term:
    known = {"this", "expression", "negate"}
    mark, kind = node.expression, type(node.this).__name__
    if kind not in ("Like", "ILike", "SimilarTo") or type(mark).__name__ != "Literal" or len(mark.this) > 1:
        raise translator.refused(node)
    if not {name for name, value in node.this.args.items() if value} <= known:
        raise translator.refused(node)
    return (texts.similar if kind == "SimilarTo" else _like)(translator, node.this, mark.this)


def _numbers(translator: Translator, *nodes: Any) -> tuple[list[Node], Kind]:
    """Parts as numbers: integers wide enough not to overflow, or doubles."""
    terms = [translator.term(node) for node in nodes]
    kind = Kind.FLOAT if any(term.kind is Kind.FLOAT for term in terms) else Kind.INT
    terms = [to(term, kind, translator.call) if term.quoted or term.kind is None else term for term in terms]
    for term in terms:
        if term.kind not in NUMBERS:
            raise PlanError(f"{translator.call}: {term.text} is of type {term.spoken}; arithmetic takes numbers.")
    wide = pl.Int128 if kind is Kind.INT else pl.Float64
    return [term.value.cast(wide, strict=False) for term in terms], kind


def _arithmetic(translator: Translator, node: Any) -> Term:
    name = type(node).__name__
    if name in ("Add", "Sub") and type(node.expression).__name__ == "Interval":
        return times.shifted(translator, node, node.this, node.expression)
    if name == "Add" and type(node.this).__name__ == "Interval":
        return times.shifted(translator, node, node.expression, node.this)
    known = _computed(translator, node)
    if known is not None:
        return constant(known, Kind.FLOAT, "")
    (left, right), kind = _numbers(translator, node.this, node.expression)
    if name == "Mod" and kind is Kind.FLOAT:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: % takes integers.")
    if name in ("Div", "Mod"):
        whole = kind is Kind.INT
        quotient = (left.abs() // right.abs() * left.sign() * right.sign()) if whole else divided(left, right)
        result = when(right != 0, quotient if name == "Div" else left - right * quotient)
    else:
        result = {"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul}[name](left, right)
    return Term(result.cast(polars_type(kind), strict=False), kind, "")


def _computed(translator: Translator, node: Any) -> float | None:
    """A sum, a difference or a product of constants, of which one has a point, as the nearest double.

    `0.06 + 0.01` is 0.07, as in PostgreSQL, where the sum of the two doubles is not.
    """
    computed = {"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul}.get(type(node).__name__)
    parts = [translator.term(part) for part in (node.this, node.expression)]
    if computed is None or any(part.kind not in NUMBERS or part.constant is None for part in parts):
        return None
    if all(part.kind is Kind.INT for part in parts) or not all(math.isfinite(part.constant) for part in parts):
        return None
    try:
        return float(computed(*(Fraction(repr(part.constant)) for part in parts)))
    except OverflowError:
        return None


def _negative(translator: Translator, node: Any) -> Term:
    inner = node.this
    digits = inner.this if type(inner).__name__ == "Literal" and not inner.is_string else ""
    written = whole_number(digits, 2**63)
    if written is not None:
        return constant(-written, Kind.INT, f"-{shown(inner.this)}")
    term = translator.term(inner)
    (value,), kind = _numbers(translator, inner)
    known = -term.constant if isinstance(term.constant, (int, float)) else None
    return Term((0 - value).cast(polars_type(kind), strict=False), kind, "", known)


def _join_texts(translator: Translator, node: Any) -> Term:
    terms = [translator.term(item) for item in (node.this, node.expression)]
    if any(term.kind not in (Kind.TEXT, None) for term in terms):
        raise PlanError(f"{translator.call}: {translator.spell(node)}: || joins texts; cast what is no text.")
    parts = [term.value.cast(pl.String, strict=False) for term in terms]
    return Term(of_all("pl.concat_str", parts), Kind.TEXT, "")


def _case(translator: Translator, node: Any) -> Term:
    branches = node.args["ifs"]
    if any({name for name, value in item.args.items() if value} - {"this", "true"} for item in branches):
        raise translator.refused(node)
    if node.this is None:
        tests = [translator.condition(entry.this).value for entry in branches]
    else:
        tests = [operator.eq(*_pair(translator, node.this, branch.this)) for branch in branches]
    default = node.args.get("default")
    results = [translator.term(branch.args["true"]) for branch in branches]
    results.append(null() if default is None else translator.term(default))
    results, kind = together(results, translator.call)
    outcome = results[-1].value
    for test, result in zip(reversed(tests), reversed(results[:-1]), strict=True):
        outcome = when(test, result.value, outcome)
    return Term(outcome, kind, "")


def _boolean(translator: Translator, node: Any) -> Term:
    return constant(bool(node.this), Kind.BOOL, str(node.this))


def literal(translator: Translator, node: Any) -> Term:
    """A number or a quoted text."""
    text = node.this
    if node.is_string:
        return constant(text, Kind.TEXT, shown(node), quoted=True)
    if text.isdecimal():
        whole = whole_number(text, 2**63 - 1)
        if whole is None:
            raise PlanError(
                f"{translator.call}: {shown(text)} is beyond 64 bits; write it as a number, {shown(text)}.0."
            )
        return constant(whole, Kind.INT, shown(text))
    try:
        return constant(float(text), Kind.FLOAT, shown(text))
    except ValueError:
        raise translator.refused(node) from None


def nothing(translator: Translator, node: Any) -> Term:
    """The word NULL."""
    return null()


BINARY = frozenset(["this", "expression"])
RULES: dict[str, tuple[frozenset[str], Translation]] = {
    "Column": (frozenset(["this", "table"]), lambda translator, node: translator.resolve(node)),
    "Paren": (frozenset(["this"]), lambda translator, node: translator.term(node.this)),
    "Literal": (frozenset(["this", "is_string"]), literal),
    "Null": (frozenset(), nothing),
    "Boolean": (frozenset(["this"]), _boolean),
    **dict.fromkeys(COMPARE, (BINARY, _compare)),
    **dict.fromkeys(("NullSafeEQ", "NullSafeNEQ"), (BINARY, _distinct)),
    **dict.fromkeys(("And", "Or"), (BINARY, _chain)),
    "Not": (frozenset(["this"]), _not),
    "Is": (BINARY | {"negate"}, _is),
    "Between": (frozenset(["this", "low", "high", "negate", "symmetric"]), _between),
    "In": (frozenset(["this", "expressions", "negate"]), _in),
    **dict.fromkeys(("Like", "ILike"), (BINARY | {"negate"}, _like)),
    "Escape": (BINARY, _escaped),
    **dict.fromkeys(("Add", "Sub", "Mul", "Mod"), (BINARY, _arithmetic)),
    "Div": (BINARY | {"typed"}, _arithmetic),
    "Neg": (frozenset(["this"]), _negative),
    "DPipe": (BINARY | {"safe"}, _join_texts),
    "Case": (frozenset(["this", "ifs", "default"]), _case),
}
