"""The functions and casts of SQL that are functions of one record: the table that the translator reads and lists."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from wpinq.core.functions.sql import casts, numbers, texts, times
from wpinq.core.functions.sql.terms import Term, balanced, together
from wpinq.core.functions.tree import Node, of_all, when
from wpinq.core.records.schema import Kind

if TYPE_CHECKING:
    from wpinq.core.functions.sql.translator import Translator


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
    _function("abs(x)", "without its sign", "Abs", "this", numbers.absolute),
    _function("floor(x)", "the whole number below", "Floor", "this", numbers.rounded(lambda number: number.floor())),
    _function("ceil(x), ceiling(x)", "the whole number above", "Ceil", "this",
              numbers.rounded(lambda number: number.ceil())),
    _function("trunc(x)", "the whole number towards zero", "Trunc", "this",
              numbers.rounded(lambda number: number.truncate())),
    _function("round(x), round(x, digits)", "the nearest; halves away from zero, of a double alone to the even number",
              "Round", "this decimals", numbers.nearest),
    _function("sign(x)", "-1, 0 or 1", "Sign", "this", numbers.where(lambda x: x.is_not_nan(), lambda x: x.sign())),
    _function("sqrt(x)", "the square root; NULL below zero", "Sqrt", "this",
              numbers.where(lambda x: x >= 0, lambda x: x.sqrt())),
    _function("exp(x)", "e to the power of x; NULL if too large", "Exp", "this",
              numbers.where(lambda x: x.exp().is_finite(), lambda x: x.exp())),
    _function("ln(x)", "the natural logarithm; NULL unless above zero", "Ln", "this",
              numbers.where(lambda x: x > 0, lambda x: x.log(math.e))),
    _function("log(x), log(base, x)", "the logarithm, of base 10", "Log", "this expression", numbers.logarithm),
    _function("power(x, y), x ^ y", "x to the power of y; NULL if too large or not real", "Pow", "this expression",
              numbers.power),
    _function("width_bucket(x, low, high, n)", "which of n equal parts, from 1; 0 below, n + 1 above", "WidthBucket",
              "this min_value max_value num_buckets", numbers.bucket),
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
