"""The functions and casts of SQL that are functions of one record: the table that the translator reads and lists.

What PostgreSQL raises on, such as the square root of a number below zero, gives NULL.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from wpinq.core.functions.sql import casts, texts, times
from wpinq.core.functions.sql.terms import NUMBERS, Term, balanced, divided, to, together
from wpinq.core.functions.sql.translator import argument, whole
from wpinq.core.functions.tree import Node, of_all, when
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


class Function(NamedTuple):
    """A function of SQL.

    Attributes:
        usage: How it is written.
        meaning: What it gives.
        nodes: What sqlglot calls it; in lower case where sqlglot does not know it.
        known: The arguments of such a node that are read; a node with others is refused.
        translate: Makes it an expression.
    """

    usage: str
    meaning: str
    nodes: tuple[str, ...]
    known: frozenset[str]
    translate: Callable[[Translator, Any], Term]


def _most(translator: Translator, node: Any) -> Term:
    """GREATEST and LEAST, which skip NULL."""
    terms, kind = together([translator.term(item) for item in (node.this, *node.expressions)], translator.call)
    wins = operator.ge if type(node).__name__ == "Greatest" else operator.le

    def better(first: Node, second: Node) -> Node:
        return when(wins(first, second) | second.is_null(), first, second)

    return Term(balanced(better, [term.value for term in terms]), kind, "")


def _coalesce(translator: Translator, node: Any) -> Term:
    terms, kind = together([translator.term(item) for item in (node.this, *node.expressions)], translator.call)
    return Term(of_all("pl.coalesce", [term.value for term in terms]), kind, "")


def _nullif(translator: Translator, node: Any) -> Term:
    (value, other), kind = together([translator.term(node.this), translator.term(node.expression)], translator.call)
    return Term(when(value.value.ne_missing(other.value), value.value), kind, "")


def _function(usage: str, meaning: str, nodes: str, known: str, translate: Any) -> Function:
    return Function(usage, meaning, tuple(nodes.split()), frozenset(known.split()), translate)


FUNCTIONS = (
    _function("lower(text)", "in small letters", "Lower", "this", texts.text(lambda text: text.to_lowercase())),
    _function("upper(text)", "in capital letters", "Upper", "this", texts.text(lambda text: text.to_uppercase())),
    _function("length(text)", "how many characters", "Length", "this",
              texts.text(lambda text: text.len_chars(), Kind.INT)),
    _function("trim(text), ltrim(text), rtrim(text), btrim(text, 'characters')",
              "without spaces, or characters, at its ends", "Trim", "this expression position", texts.trim),
    _function("left(text, n)", "the first n characters; all but the last -n", "Left", "this expression", texts.end),
    _function("right(text, n)", "the last n characters; all but the first -n", "Right", "this expression", texts.end),
    _function("substring(text, start, length)", "characters by number from 1", "Substring", "this start length",
              texts.substring),
    _function("substring(text from 'pattern')", "what a pattern's first group finds, or all of it; NULL if nothing", "",
              "", texts.substring),
    _function("split_part(text, 'mark', n)", "the n-th part; from the end below zero", "SplitPart",
              "this delimiter part_index", texts.part),
    _function("replace(text, 'old', 'new')", "with each old replaced", "Replace", "this expression replacement",
              texts.replaced),
    _function("concat(a, b, ...), concat_ws('mark', a, ...)", "texts, numbers and times joined, without NULL",
              "Concat ConcatWs", "expressions safe coalesce", texts.joined),
    _function("strpos(text, 'part'), position('part' in text)", "where it begins, from 1; 0 if nowhere", "StrPosition",
              "this substr", texts.position),
    _function("starts_with(text, start)", "whether it begins so", "StartsWith", "this expression", texts.starts),
    _function("text ~ 'pattern', ~*, !~, regexp_like(text, 'pattern', 'i')", "whether a pattern is found",
              "RegexpLike RegexpILike", "this expression flag", texts.matches),
    _function("text SIMILAR TO 'pattern'", "whether a pattern of %, _, |, *, +, ?, {n}, (...) and [...] fits all of it",
              "SimilarTo", "this expression", texts.similar),
    _function("regexp_replace(text, 'pattern', 'new', 'gi')", "the first match replaced, with g each",
              "RegexpReplace", "this expression replacement modifiers single_replace", texts.rewritten),
    _function("regexp_extract(text, 'pattern', group)", "what a group finds, 0 for all; NULL if nothing",
              "RegexpExtract", "this expression position", texts.extracted),
    _function("regexp_substr(text, 'pattern')", "what a pattern finds; NULL if nothing", "RegexpSubstr",
              "this expression", texts.extracted),
    _function("(regexp_match(text, 'pattern'))[n]", "what the n-th group finds; NULL if nothing", "Bracket",
              "this expressions", texts.matched),
    _function("abs(x)", "without its sign", "Abs", "this", absolute),
    _function("floor(x)", "the whole number below", "Floor", "this", rounded(lambda number: number.floor())),
    _function("ceil(x), ceiling(x)", "the whole number above", "Ceil", "this",
              rounded(lambda number: number.ceil())),
    _function("trunc(x)", "the whole number towards zero", "Trunc", "this",
              rounded(lambda number: number.truncate())),
    _function("round(x), round(x, digits)", "the nearest; halves away from zero, of a double alone to the even number",
              "Round", "this decimals", nearest),
    _function("sign(x)", "-1, 0 or 1", "Sign", "this", where(lambda x: x.is_not_nan(), lambda x: x.sign())),
    _function("sqrt(x)", "the square root; NULL below zero", "Sqrt", "this",
              where(lambda x: x >= 0, lambda x: x.sqrt())),
    _function("exp(x)", "e to the power of x; NULL if too large", "Exp", "this",
              where(lambda x: x.exp().is_finite(), lambda x: x.exp())),
    _function("ln(x)", "the natural logarithm; NULL unless above zero", "Ln", "this",
              where(lambda x: x > 0, lambda x: x.log(math.e))),
    _function("log(x), log(base, x)", "the logarithm, of base 10", "Log", "this expression", logarithm),
    _function("power(x, y), x ^ y", "x to the power of y; NULL if too large or not real", "Pow", "this expression",
              power),
    _function("width_bucket(x, low, high, n)", "which of n equal parts, from 1; 0 below, n + 1 above", "WidthBucket",
              "this min_value max_value num_buckets", bucket),
    _function("greatest(a, b, ...)", "the largest, without NULL", "Greatest", "this expressions ignore_nulls", _most),
    _function("least(a, b, ...)", "the smallest, without NULL", "Least", "this expressions ignore_nulls", _most),
    _function("coalesce(a, b, ...)", "the first that is not NULL", "Coalesce", "this expressions", _coalesce),
    _function("nullif(a, b)", "a, but NULL where it equals b", "Nullif", "this expression", _nullif),
    _function("extract(field from time), date_part('field', time)",
              "a field: " + ", ".join([*times.PARTS, *times.WITHIN]), "Extract", "this expression", times.extract),
    _function("date_trunc('field', time), date_trunc('field', time, 'zone')",
              "where it begins: " + ", ".join([*times.STEPS, *times.FINE]), "TimestampTrunc", "this unit zone",
              times.truncated),
    _function("time AT TIME ZONE 'zone'", "a zone's clock at this time, or the time at which a zone's clock shows this",
              "AtTimeZone", "this zone", times.at_zone),
    _function("time + INTERVAL '1 day 2 hours', time - INTERVAL ..., INTERVAL ... + time",
              "later, earlier: " + ", ".join([*times.STEPS, "second"]), "", "", times.shifted),
    _function("to_char(time, 'YYYY-MM-DD HH24:MI')", "as text, by PostgreSQL's letters", "TimeToStr", "this format",
              times.written),
    _function("strftime(time, '%Y-%m-%d %H:%M')", "as text, by C's letters", "strftime", "this expressions",
              times.written),
    _function("CAST(x AS type), TRY_CAST(x AS type), x::type",
              "as INTEGER, DOUBLE PRECISION, TEXT, BOOLEAN, DATE, TIMESTAMP or TIMESTAMPTZ; NULL if it does not fit",
              "Cast TryCast", "this to safe", casts.cast),
)  # fmt: skip
RULES = {node: (item.known, item.translate) for item in FUNCTIONS for node in item.nodes}
NAMES = re.findall(r"([a-z_]+)\(", " ".join(item.usage for item in FUNCTIONS))
"""Names of functions, for suggestions."""


DIFFERENCES = """
Names and meanings are PostgreSQL's, with these differences:
- What has no value for a record is NULL, where PostgreSQL ends the query: a division by zero, a cast that does not
  fit, ln(0). One record cannot end a query that others are in.
- A number with a point is held as a double. It is rounded and cast as the decimal that it is in PostgreSQL.
- In patterns of ~, regexp_replace and regexp_extract, [:alpha:] and the like name ASCII letters alone.
- Clocks of a zone change by its rules up to the year 2099; from then on they stay as in winter.
- A time with a zone is shown in UTC, whatever the zone of the session is; AT TIME ZONE gives the clock of another."""


def listed() -> str:
    """All functions: how each is written and what it gives; and where they differ from PostgreSQL's."""
    return "\n".join([*(f"{item.usage}\n    {item.meaning}" for item in FUNCTIONS), DIFFERENCES])
