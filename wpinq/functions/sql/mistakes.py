"""Where an SQL text is wrong, and what may have been meant."""

from __future__ import annotations

import difflib
import re
from typing import Any

WORDS = ("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "BY", "HAVING", "LIMIT", "JOIN", "AND", "OR", "NOT", "LIKE", "AS",
         "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT", "INTERVAL")  # fmt: skip
NEAR = 2
"""The parser stops at most so many words behind a misspelt one, which it takes for a name."""


def told(text: str, error: dict[str, Any], skip: int = 0) -> str:
    """Say what a parser stopped at: its place, counted from 1 at its first letter, and why.

    >>> told("SELEC page FROM views", {"line": 1, "col": 15, "description": "Unexpected token"})
    ' at line 1, column 1: did you mean SELECT? Found SELEC'
    """
    from sqlglot import tokenize

    tokens = tokenize(text, read="postgres")
    ends = [(token.line, token.col) for token in tokens]
    stop = (error.get("line"), error.get("col"))
    place = ends.index(stop) if stop in ends else len(tokens) - 1
    for token in tokens[max(place - NEAR, 0) : place + 1]:
        word = token.text.upper()
        alike = [] if word in WORDS else difflib.get_close_matches(word, WORDS, 1, 0.75)
        if token.token_type.name == "VAR" and alike and abs(len(alike[0]) - len(word)) < 2:
            return f"{_at(token, skip)}: did you mean {alike[0]}? Found {token.text}"
    said = re.sub("^Required keyword: .* missing for .*", "something is missing", error.get("description") or "")
    said = re.sub(" but got <Token.*", "", said).rstrip(".") or "unreadable"
    return (_at(tokens[place], skip) if tokens and error.get("line") else "") + f": {said}"


def _at(token: Any, skip: int) -> str:
    first = token.col - (token.end - token.start) - (skip if token.line == 1 else 0)
    return f" at line {token.line}, column {max(first, 1)}"
