r"""PostgreSQL's regular expressions as those of Polars, which take time linear in the text.

A construct that means something else there is refused when the plan is made: back references, look-around, `\b`, and
both greedy and lazy quantifiers in one pattern. One difference remains: of several matches that begin at one place,
PostgreSQL takes the longest, and Polars the one that alternatives and quantifiers come to first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

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
