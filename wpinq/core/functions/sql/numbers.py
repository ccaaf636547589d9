"""SQL functions of numbers. What PostgreSQL raises on gives NULL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.core.functions.sql.arguments import argument, whole
from wpinq.core.functions.sql.terms import NUMBERS, Term, divided, to
from wpinq.core.functions.tree import Node, when
from wpinq.core.records.schema import Kind, polars_type
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.core.functions.sql.translator import Translator


def _number(translator: Translator, node: Any) -> Node:
    """A part as a double."""
    return to(argument(translator, node, *NUMBERS), Kind.FLOAT, translator.call).value


def absolute(translator: Translator, node: Any) -> Term:
    """ABS; the one integer without an absolute value gives NULL."""
    term = argument(translator, node.this, *NUMBERS)
    wide = term.value.cast(pl.Int128, strict=False) if term.kind is Kind.INT else term.value
    return Term(wide.abs().cast(polars_type(term.kind or Kind.INT), strict=False), term.kind, "")


def rounded(work: Callable[[Node], Node]) -> Any:
    """A function that makes doubles whole, and leaves integers as they are."""

    def rule(translator: Translator, node: Any) -> Term:
        term = argument(translator, node.this, *NUMBERS)
        return term if term.kind is Kind.INT else Term(work(term.value), Kind.FLOAT, "")

    return rule


def nearest(translator: Translator, node: Any) -> Term:
    """ROUND: halves of a double go to the even whole number, those of a decimal, or of digits, away from zero."""
    digits = whole(translator, node.args.get("decimals"), node, None)
    if digits is None:
        term = argument(translator, node.this, *NUMBERS)
        mode = "half_away_from_zero" if term.decimal else "half_to_even"
        return term if term.kind is Kind.INT else Term(term.value.round(decimals=0, mode=mode), Kind.FLOAT, "")
    if not 0 <= digits <= 15:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: round to 0 to 15 digits.")
    return Term(_number(translator, node.this).round(decimals=digits, mode="half_away_from_zero"), Kind.FLOAT, "")


def where(known: Callable[[Node], Node], work: Callable[[Node], Node]) -> Any:
    """A function of one double, NULL where it is not defined."""

    def rule(translator: Translator, node: Any) -> Term:
        value = _number(translator, node.this)
        return Term(when(known(value), work(value)), Kind.FLOAT, "")

    return rule


def logarithm(translator: Translator, node: Any) -> Term:
    """LOG(x), of base 10, and LOG(base, x)."""
    if node.args.get("expression") is None:
        value = _number(translator, node.this)
        return Term(when(value > 0, value.log(10)), Kind.FLOAT, "")
    base, value = _number(translator, node.this), _number(translator, node.expression)
    result = divided(value.log(10), base.log(10))
    return Term(when((value > 0) & (base > 0) & (base != 1), result), Kind.FLOAT, "")


def power(translator: Translator, node: Any) -> Term:
    """POWER and ^ with a constant exponent; NULL where it is beyond doubles or not real.

    Polars computes powers of a column otherwise where a record is alone, so that the last digit would depend on others.
    """
    base, exponent = _number(translator, node.this), _number(translator, node.expression)
    if exponent.columns:
        raise PlanError(
            f"{translator.call}: {translator.spell(node)}: the exponent is a constant; EXP(y * LN(x)) is x^y."
        )
    result = base.pow(exponent)
    return Term(when(result.is_finite(), result), Kind.FLOAT, "")


def bucket(translator: Translator, node: Any) -> Term:
    """WIDTH_BUCKET: in which of n equal parts of [low, high) a number lies; 0 before them, n + 1 behind."""
    value = _number(translator, node.this)
    ends = [translator.term(node.args[name]).constant for name in ("min_value", "max_value")]
    count = whole(translator, node.args.get("num_buckets"), node, None)
    if any(not isinstance(edge, (int, float)) or isinstance(edge, bool) for edge in ends) or ends[0] == ends[1]:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: write the ends as two different numbers.")
    if count is None or count < 1:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: there is at least one bucket.")
    low, high = map(float, ends)
    before, behind = (value < low, value >= high) if low < high else (value > low, value <= high)
    inside = (count * (divided(value - low, high - low))).floor().clip(0, count - 1) + 1
    result = when(before, 0.0, when(behind, float(count + 1), inside))
    known = when(value.is_not_nan(), result)
    return Term(known.cast(pl.Int64, strict=False), Kind.INT, "")
