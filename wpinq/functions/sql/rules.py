"""The operators of SQL that are functions of one record. What is not in `RULES`, or says more, is refused."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.errors import PlanError
from wpinq.functions.sql import calls as sqlcalls
from wpinq.functions.sql.terms import NUMBERS, Term, constant, null, shown, to, together, whole_number
from wpinq.records.schema import Kind, polars_type

if TYPE_CHECKING:
    from wpinq.functions.sql.reader import Reader

Rule = Callable[["Reader", Any], Term]
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq, "NEQ": operator.ne, "LT": operator.lt, "LTE": operator.le, "GT": operator.gt, "GTE": operator.ge,
}  # fmt: skip


def _truth(value: pl.Expr) -> Term:
    return Term(value, Kind.BOOL, "")


def _pair(reader: Reader, one: Any, other: Any) -> tuple[pl.Expr, pl.Expr]:
    """Two parts in one type."""
    (left, right), _ = together([reader.term(one), reader.term(other)], reader.call)
    return left.value, right.value


def _compare(reader: Reader, node: Any) -> Term:
    return _truth(COMPARE[type(node).__name__](*_pair(reader, node.this, node.expression)))


def _distinct(reader: Reader, node: Any) -> Term:
    left, right = _pair(reader, node.this, node.expression)
    same = type(node).__name__ == "NullSafeEQ"
    return _truth(left.eq_missing(right) if same else left.ne_missing(right))


def _chain(reader: Reader, node: Any) -> Term:
    """A long chain of AND or OR, as a balanced tree: Polars recurses into it."""
    kind, parts, open_ = type(node), [], [node]
    while open_:
        part = open_.pop()
        if type(part) is kind:
            open_ += [part.expression, part.this]
        else:
            parts.append(reader.condition(part).value)
    return _truth(_balanced(operator.and_ if kind.__name__ == "And" else operator.or_, parts))


def _balanced(join: Callable[[Any, Any], Any], parts: Sequence[pl.Expr]) -> pl.Expr:
    while len(parts) > 1:
        parts = [reduce(join, parts[place : place + 2]) for place in range(0, len(parts), 2)]
    return parts[0]


def _not(reader: Reader, node: Any) -> Term:
    return _truth(~reader.condition(node.this).value)


def _is(reader: Reader, node: Any) -> Term:
    """IS [NOT] NULL, TRUE, FALSE."""
    what = type(node.expression).__name__
    if what == "Null":
        found = reader.term(node.this).value.is_null()
    elif what == "Boolean":
        found = reader.condition(node.this).value.eq_missing(pl.lit(bool(node.expression.this)))
    else:
        raise reader.refused(node)
    return _truth(~found if node.args.get("negate") else found)


def _between(reader: Reader, node: Any) -> Term:
    asked = [reader.term(node.args[name]) for name in ("this", "low", "high")]
    value, low, high = (term.value for term in together(asked, reader.call)[0])
    found = (value >= low) & (value <= high)
    return _truth(~found if node.args.get("negate") else found)


def _in(reader: Reader, node: Any) -> Term:
    """A list of constants; NULL among them makes what is not found NULL."""
    (value, *items), kind = together([reader.term(one) for one in (node.this, *node.expressions)], reader.call)
    given = [item for item in items if item.constant is not None]
    if all(item.constant is not None or item.text == "NULL" for item in items):
        cast = float if kind is Kind.FLOAT else lambda one: one
        series = pl.Series([cast(item.constant) for item in given], dtype=polars_type(kind))
        found = value.value.is_in(series.to_list()) if given else pl.lit(None, pl.Boolean)
        found = found | pl.lit(None, pl.Boolean) if len(given) < len(items) else found
    else:
        found = _balanced(operator.or_, [value.value == item.value for item in items])
    return _truth(~found if node.args.get("negate") else found)


def _like(reader: Reader, node: Any, escape: str = "\\") -> Term:
    """LIKE and ILIKE with a constant pattern, as a regular expression."""
    value, pattern = reader.term(node.this), reader.term(node.expression)
    if value.kind not in (Kind.TEXT, None) or not pattern.quoted:
        raise PlanError(f"{reader.call}: {reader.spell(node)} needs a text and a quoted pattern.")
    flags = "(?si)" if type(node).__name__ == "ILike" else "(?s)"
    expression = rf"{flags}\A{_regex(pattern.constant, escape, reader, node)}\z"
    found = value.value.cast(pl.String, strict=False).str.contains(expression)
    return _truth(~found if node.args.get("negate") else found)


def _regex(pattern: str, escape: str, reader: Reader, node: Any) -> str:
    out, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            following = next(letters, None)
            if following is None:
                raise PlanError(f"{reader.call}: {reader.spell(node)}: the pattern ends in its escape character.")
            out.append(re.escape(following))
        else:
            out.append({"%": ".*", "_": "."}.get(letter) or re.escape(letter))
    return "".join(out)


def _escaped(reader: Reader, node: Any) -> Term:
    known = {"this", "expression", "negate"}
    mark = node.expression
    if type(node.this).__name__ not in ("Like", "ILike") or type(mark).__name__ != "Literal" or len(mark.this) > 1:
        raise reader.refused(node)
    if not {name for name, value in node.this.args.items() if value} <= known:
        raise reader.refused(node)
    return _like(reader, node.this, mark.this)


def _numbers(reader: Reader, *nodes: Any) -> tuple[list[pl.Expr], Kind]:
    """Parts as numbers: integers wide enough not to overflow, or doubles."""
    terms = [reader.term(node) for node in nodes]
    kind = Kind.FLOAT if any(term.kind is Kind.FLOAT for term in terms) else Kind.INT
    terms = [to(term, kind, reader.call) if term.quoted or term.kind is None else term for term in terms]
    for term in terms:
        if term.kind not in NUMBERS:
            raise PlanError(f"{reader.call}: {term.text} is of type {term.spoken}; arithmetic takes numbers.")
    wide = pl.Int128 if kind is Kind.INT else pl.Float64
    return [term.value.cast(wide, strict=False) for term in terms], kind


def _arithmetic(reader: Reader, node: Any) -> Term:
    name = type(node).__name__
    if name in ("Add", "Sub") and type(node.expression).__name__ == "Interval":
        return sqlcalls.shifted(reader, node)
    (left, right), kind = _numbers(reader, node.this, node.expression)
    if name == "Mod" and kind is Kind.FLOAT:
        raise PlanError(f"{reader.call}: {reader.spell(node)}: % takes integers.")
    if name in ("Div", "Mod"):
        whole = kind is Kind.INT
        each = pl.when(left.is_not_null()).then(right)  # by a constant, Polars would multiply columns with its inverse
        quotient = (left.abs() // right.abs() * left.sign() * right.sign()) if whole else left / each
        found = pl.when(right != 0).then(quotient if name == "Div" else left - right * quotient)
    else:
        found = {"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul}[name](left, right)
    return Term(found.cast(polars_type(kind), strict=False), kind, "")


def _negative(reader: Reader, node: Any) -> Term:
    inner = node.this
    digits = inner.this if type(inner).__name__ == "Literal" and not inner.is_string else ""
    written = whole_number(digits, 2**63)
    if written is not None:
        return constant(-written, Kind.INT, f"-{shown(inner.this)}")
    (value,), kind = _numbers(reader, inner)
    term = reader.term(inner)
    known = -term.constant if isinstance(term.constant, (int, float)) else None
    return Term((0 - value).cast(polars_type(kind), strict=False), kind, "", known)


def _join_texts(reader: Reader, node: Any) -> Term:
    terms = [reader.term(one) for one in (node.this, node.expression)]
    if any(term.kind not in (Kind.TEXT, None) for term in terms):
        raise PlanError(f"{reader.call}: {reader.spell(node)}: || joins texts; cast what is no text.")
    return Term(pl.concat_str([term.value.cast(pl.String, strict=False) for term in terms]), Kind.TEXT, "")


def _case(reader: Reader, node: Any) -> Term:
    branches = node.args["ifs"]
    if any({name for name, value in one.args.items() if value} - {"this", "true"} for one in branches):
        raise reader.refused(node)
    if node.this is None:
        tests = [reader.condition(one.this).value for one in branches]
    else:
        tests = [operator.eq(*_pair(reader, node.this, one.this)) for one in branches]
    default = node.args.get("default")
    results = [reader.term(one.args["true"]) for one in branches]
    results.append(null() if default is None else reader.term(default))
    results, kind = together(results, reader.call)
    found = results[-1].value
    for test, result in zip(reversed(tests), reversed(results[:-1]), strict=True):
        found = pl.when(test).then(result.value).otherwise(found)
    return Term(found, kind, "")


def _boolean(reader: Reader, node: Any) -> Term:
    return constant(bool(node.this), Kind.BOOL, str(node.this))


def literal(reader: Reader, node: Any) -> Term:
    """A number or a quoted text."""
    text = node.this
    if node.is_string:
        return constant(text, Kind.TEXT, shown(node), quoted=True)
    if text.isdecimal():
        whole = whole_number(text, 2**63 - 1)
        if whole is None:
            raise PlanError(f"{reader.call}: {shown(text)} is beyond 64 bits; write it as a number, {shown(text)}.0.")
        return constant(whole, Kind.INT, shown(text))
    try:
        return constant(float(text), Kind.FLOAT, shown(text))
    except ValueError:
        raise reader.refused(node) from None


def nothing(reader: Reader, node: Any) -> Term:
    """The word NULL."""
    return null()


BINARY = frozenset(["this", "expression"])
RULES: dict[str, tuple[frozenset[str], Rule]] = {
    "Column": (frozenset(["this", "table"]), lambda reader, node: reader.resolve(node)),
    "Paren": (frozenset(["this"]), lambda reader, node: reader.term(node.this)),
    "Literal": (frozenset(["this", "is_string"]), literal),
    "Null": (frozenset(), nothing),
    "Boolean": (frozenset(["this"]), _boolean),
    **dict.fromkeys(COMPARE, (BINARY, _compare)),
    **dict.fromkeys(("NullSafeEQ", "NullSafeNEQ"), (BINARY, _distinct)),
    **dict.fromkeys(("And", "Or"), (BINARY, _chain)),
    "Not": (frozenset(["this"]), _not),
    "Is": (BINARY | {"negate"}, _is),
    "Between": (frozenset(["this", "low", "high", "negate"]), _between),
    "In": (frozenset(["this", "expressions", "negate"]), _in),
    **dict.fromkeys(("Like", "ILike"), (BINARY | {"negate"}, _like)),
    "Escape": (BINARY, _escaped),
    **dict.fromkeys(("Add", "Sub", "Mul", "Mod"), (BINARY, _arithmetic)),
    "Div": (BINARY | {"typed"}, _arithmetic),
    "Neg": (frozenset(["this"]), _negative),
    "DPipe": (BINARY | {"safe"}, _join_texts),
    "Case": (frozenset(["this", "ifs", "default"]), _case),
    **sqlcalls.RULES,
}
