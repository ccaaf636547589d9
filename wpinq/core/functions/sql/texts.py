r"""SQL functions of texts, and PostgreSQL's regular expressions as those of Polars, which take linear time.

A construct that means something else in Polars is refused when the plan is made: back references, look-around, `\b`,
and both greedy and lazy quantifiers in one pattern. One difference remains: of several matches that begin at the same
letter PostgreSQL takes the longest, and Polars the one that alternatives and quantifiers come to first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.core.functions.sql.casts import as_text
from wpinq.core.functions.sql.terms import Term
from wpinq.core.functions.sql.translator import argument, whole, words
from wpinq.core.functions.tree import Node, lit, of_all, when
from wpinq.core.records.schema import Kind, polars_type
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.core.functions.sql.translator import Translator

SAME = frozenset("dDsSwWntr")
"""Letters that mean the same after a backslash."""
META = frozenset(r"\.+*?()|[]{}^$#&-~")
OTHER = {"A": r"\A", "Z": r"\z", "y": r"\b", "m": r"\b{start}", "M": r"\b{end}"}
QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})(\??)")
NAMED = re.compile(r"\[:[a-z]+:\]")
FLAGS = "gi"
REPLACED = {"&": "${0}", "\\": "\\", **{digit: f"${{{digit}}}" for digit in "123456789"}}


@dataclass(frozen=True)
class Pattern:
    """A regular expression of Polars, and how many groups it has."""

    text: str
    groups: int


def pattern(text: str, flags: str = "") -> Pattern:
    r"""Read a pattern of PostgreSQL.

    Raises:
        ValueError: It is none, or means something else in Polars; says what.

    >>> pattern(r"id=(\d+)", "i")
    Pattern(text='(?si)id=(\\d+)', groups=1)
    """
    if set(flags) - set(FLAGS):
        raise ValueError(f"the flags are {', '.join(FLAGS)}")
    out, groups, lazy, position = [], 0, set(), 0
    while position < len(text):
        letter = text[position]
        if letter == "\\":
            part, position = _escape(text, position)
        elif letter == "[":
            part, position = _bracket(text, position)
        elif quantifier := QUANTIFIER.match(text, position):
            lazy.add(quantifier[1])
            part, position = quantifier[0], quantifier.end()
        else:
            if text.startswith("(?", position) and not text.startswith("(?:", position):
                raise ValueError("of (?...) there is only (?:...)")
            groups += letter == "(" and not text.startswith("(?:", position)
            # A quantifier follows an atom, so the question mark of (?: is none.
            part = "(?:" if text.startswith("(?:", position) else letter
            position += len(part)
        out.append(part)
    if len(lazy) > 1:
        raise ValueError("greedy and lazy quantifiers mix; use one sort")
    result = f"(?s{'i' if 'i' in flags else ''})" + "".join(out)
    try:
        pl.select(pl.lit("").str.contains(result))
    except pl.exceptions.PolarsError:
        raise ValueError("it is no regular expression, or a very large one") from None
    return Pattern(result, groups)


def similar_to(text: str, escape: str = "\\") -> str:
    r"""A pattern of SIMILAR TO as a regular expression of PostgreSQL, which fits all of a text.

    Source: PostgreSQL's `similar_escape`; a bracket that is first in brackets is in them, as from version 18 on.

    Raises:
        ValueError: It ends in its escape character, or has the separators of SUBSTRING.

    >>> similar_to("a%(b|_).")
    '^(?:a.*(?:b|.)\\.)$'
    """
    out, position, inside = [], 0, ""
    while position < len(text):
        letter, named = text[position], NAMED.match(text, position) if inside else None
        part = letter if named is None else named[0]
        position += len(part)
        closes = letter == "]" and inside not in ("", "[", "[^")
        if letter == escape:
            if text[position : position + 1] in ("", '"'):
                raise ValueError("the escape character is followed by nothing that it stands for")
            part, position, closes = "\\" + text[position], position + 1, False
        elif letter == "\\" or (not inside and letter in ".^$"):
            part = "\\" + letter
        elif not inside:
            part = {"%": ".*", "_": ".", "(": "(?:"}.get(letter, letter)
        out.append(part)
        inside = "" if closes else inside + part if inside or part == "[" else ""
    return f"^(?:{''.join(out)})$"


def replacement(text: str) -> str:
    r"""What PostgreSQL puts in the place of a match, as Polars writes it.

    Raises:
        ValueError: A backslash is followed by something that stands for nothing.

    >>> replacement(r"\2=$\1\&")
    '${2}=$$${1}${0}'
    """
    out, letters = [], iter(text)
    for letter in letters:
        mark = next(letters, "") if letter == "\\" else ""
        if letter == "\\" and mark not in REPLACED:
            raise ValueError(r"in a replacement there are \1 to \9, \& and \\")
        out.append(REPLACED[mark] if mark else {"$": "$$"}.get(letter, letter))
    return "".join(out)


def _escape(text: str, position: int) -> tuple[str, int]:
    mark = text[position + 1 : position + 2]
    if mark in SAME and mark:
        return "\\" + mark, position + 2
    if mark in OTHER:
        return OTHER[mark], position + 2
    if not mark or mark.isalnum() or not mark.isascii():
        raise ValueError(f"\\{mark} is not read; a word's edge is \\y")
    return ("\\" if mark in META else "") + mark, position + 2


def _bracket(text: str, place: int) -> tuple[str, int]:
    """A set of characters; two of the same operator in it would be an operation on sets for Polars."""
    end = place + 1 + text.startswith("^", place + 1)
    out, first = text[place:end], True
    while end < len(text) and (first or text[end] != "]"):
        first = False
        if text[end] == "\\":
            part, after = _escape(text, end)
            if part.startswith((r"\A", r"\z", r"\b")):
                raise ValueError(f"{text[end:after]} has no place in brackets")
        elif named := NAMED.match(text, end):
            part, after = named[0], named.end()
        elif text.startswith(("[.", "[=", "[:"), end):
            raise ValueError("of [...] in brackets there are names as [:alpha:]")
        else:
            part, after = ("\\" + text[end] if text[end] in "[]&~" else text[end]), end + 1
        if part == "-" and text[end + 1 : end + 2] == "-":
            raise ValueError("-- has no place in brackets")
        out, end = out + part, after
    return out + "]" if end < len(text) else out, end + 1


def text(work: Callable[[Any], Node], kind: Kind = Kind.TEXT) -> Any:
    """A function of one text."""

    def rule(translator: Translator, node: Any) -> Term:
        result = work(argument(translator, node.this, Kind.TEXT).value.str)
        return Term(result.cast(polars_type(kind), strict=False), kind, "")

    return rule


def end(translator: Translator, node: Any) -> Term:
    """LEFT and RIGHT: so many characters of one end; below zero, all but so many of the other."""
    value = argument(translator, node.this, Kind.TEXT).value
    size = whole(translator, node.expression, node, None)
    if size is None:
        raise translator.refused(node)
    result = value.str.head(size) if type(node).__name__ == "Left" else value.str.tail(size)
    return Term(result, Kind.TEXT, "")


def substring(translator: Translator, node: Any) -> Term:
    """Characters by number from 1; what lies before the first is counted, and is not there. Or what a pattern finds."""
    value = argument(translator, node.this, Kind.TEXT).value
    begin = node.args.get("start")
    if type(begin).__name__ == "Literal" and begin.is_string and node.args.get("length") is None:
        return _first_match(value, _pattern(translator, begin, node))
    start = whole(translator, begin, node, 1)
    length = whole(translator, node.args.get("length"), node, None)
    if start is None or (length is not None and length < 0):
        raise PlanError(f"{translator.call}: {translator.spell(node)}: a length is not below zero.")
    first = max(start - 1, 0)
    size = None if length is None else max(start - 1 + length - first, 0)
    return Term(value.str.slice(first, size), Kind.TEXT, "")


def trim(translator: Translator, node: Any) -> Term:
    """TRIM, LTRIM, RTRIM, BTRIM: spaces, or any of the characters of a text."""
    value = argument(translator, node.this, Kind.TEXT).value.str
    characters = node.args.get("expression")
    marks = " " if characters is None else words(translator, characters, node)
    strip = {"LEADING": value.strip_chars_start, "TRAILING": value.strip_chars_end}
    return Term(strip.get(node.args.get("position") or "", value.strip_chars)(marks), Kind.TEXT, "")


def replaced(translator: Translator, node: Any) -> Term:
    """REPLACE, of a constant text by another."""
    value = argument(translator, node.this, Kind.TEXT).value
    old = words(translator, node.expression, node)
    new = words(translator, node.args.get("replacement"), node)
    return Term(value.str.replace_all(old, new, literal=True) if old else value, Kind.TEXT, "")


def part(translator: Translator, node: Any) -> Term:
    """SPLIT_PART: the n-th part, from the end if n is below zero; an empty text where there is none."""
    value = argument(translator, node.this, Kind.TEXT).value
    mark = words(translator, node.args.get("delimiter"), node)
    number = whole(translator, node.args.get("part_index"), node, None)
    if not number:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: parts are numbered from 1, and from -1 from "
                        "the end.")  # fmt: skip
    if not mark:
        return Term(value if number in (1, -1) else _empty(value), Kind.TEXT, "")
    parts = value.str.split(mark).list.get(number - (number > 0), null_on_oob=True)
    return Term(when(value.is_not_null(), parts.fill_null("")), Kind.TEXT, "")


def _empty(value: Node) -> Node:
    return when(value.is_not_null(), "")


def position(translator: Translator, node: Any) -> Term:
    """STRPOS and POSITION: where a constant text begins, from 1; 0 where it is not there."""
    value = argument(translator, node.this, Kind.TEXT).value
    mark = words(translator, node.args.get("substr"), node)
    if not mark:
        return Term(when(value.is_not_null(), lit(1, pl.Int64)), Kind.INT, "")
    before = value.str.split(mark).list.get(0, null_on_oob=True).str.len_chars().cast(pl.Int64, strict=False)
    return Term(when(value.str.contains(mark, literal=True), before + 1, when(value.is_not_null(), 0)), Kind.INT, "")


def starts(translator: Translator, node: Any) -> Term:
    """STARTS_WITH."""
    value, first = (argument(translator, item, Kind.TEXT).value for item in (node.this, node.expression))
    return Term(value.str.starts_with(first), Kind.BOOL, "")


def joined(translator: Translator, node: Any) -> Term:
    """CONCAT and CONCAT_WS, which skip NULL."""
    parts, mark = list(node.expressions), ""
    if type(node).__name__ == "ConcatWs":
        mark = words(translator, parts.pop(0), node)
    terms = [as_text(translator, translator.term(item), node) for item in parts]
    return Term(of_all("pl.concat_str", terms, separator=mark, ignore_nulls=True), Kind.TEXT, "")


def _pattern(
    translator: Translator, node: Any, whole_: Any, flags: str = "", read: Callable[[str], str] = str
) -> Pattern:
    text = words(translator, node, whole_)
    try:
        return pattern(read(text), flags)
    except ValueError as error:
        raise PlanError(f"{translator.call}: {translator.spell(whole_)}: of this pattern, {error}.") from None


def matches(translator: Translator, node: Any) -> Term:
    """`~`, `~*` and REGEXP_LIKE: whether a pattern is found."""
    value = argument(translator, node.this, Kind.TEXT).value
    flag = node.args.get("flag")
    flags = "" if flag is None else words(translator, flag, node)
    flags += "i" * (type(node).__name__ == "RegexpILike")
    return Term(value.str.contains(_pattern(translator, node.expression, node, flags).text), Kind.BOOL, "")


def similar(translator: Translator, node: Any, escape: str = "\\") -> Term:
    """SIMILAR TO: whether a pattern fits all of a text."""
    value = argument(translator, node.this, Kind.TEXT).value
    regex = _pattern(translator, node.expression, node, read=lambda text: similar_to(text, escape))
    return Term(value.str.contains(regex.text), Kind.BOOL, "")


def _first_match(value: Node, regex: Pattern, group: int | None = None) -> Term:
    """What a pattern finds, or its first group; NULL where it finds nothing."""
    wanted = min(regex.groups, 1) if group is None else group
    return Term(value.str.extract(regex.text, group_index=wanted), Kind.TEXT, "")


def extracted(translator: Translator, node: Any) -> Term:
    """REGEXP_EXTRACT(text, pattern, group) and REGEXP_SUBSTR(text, pattern)."""
    value = argument(translator, node.this, Kind.TEXT).value
    regex = _pattern(translator, node.expression, node)
    group = whole(translator, node.args.get("position"), node, 0)
    if group is None or not 0 <= group <= regex.groups:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: the pattern has {regex.groups} groups.")
    return _first_match(value, regex, group)


def matched(translator: Translator, node: Any) -> Term:
    """`(regexp_match(text, pattern))[n]`: the n-th group, or all where the pattern has none."""
    inner = node.this.this if type(node.this).__name__ == "Paren" else node.this
    parts = inner.expressions if type(inner).__name__ == "Anonymous" and inner.name.lower() == "regexp_match" else []
    if len(parts) not in (2, 3) or len(node.expressions) != 1:
        raise translator.refused(node)
    flags = words(translator, parts[2], node) if len(parts) == 3 else ""
    regex = _pattern(translator, parts[1], node, flags)
    group = whole(translator, node.expressions[0], node, 0)  # sqlglot counts from 0
    if group is None or not 0 <= group < max(regex.groups, 1):
        raise PlanError(f"{translator.call}: {translator.spell(node)}: the pattern has {regex.groups} groups.")
    return _first_match(argument(translator, parts[0], Kind.TEXT).value, regex, group + 1 if regex.groups else 0)


def rewritten(translator: Translator, node: Any) -> Term:
    """REGEXP_REPLACE: the first match, or with the flag g each."""
    value = argument(translator, node.this, Kind.TEXT).value
    modifiers = node.args.get("modifiers")
    flags = "" if modifiers is None else words(translator, modifiers, node)
    regex = _pattern(translator, node.expression, node, flags)
    new = words(translator, node.args.get("replacement"), node)
    try:
        written = replacement(new)
    except ValueError as error:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: {error}.") from None
    work = value.str.replace_all if "g" in flags else value.str.replace
    return Term(work(regex.text, written), Kind.TEXT, "")
