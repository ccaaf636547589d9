"""Where an SQL text is wrong, and what may have been meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

WORDS = ("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "BY", "HAVING", "LIMIT", "JOIN", "AND", "OR", "NOT", "LIKE", "AS",
         "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT", "INTERVAL")  # fmt: skip
OTHERS = {
    "TOP": "write LIMIT 10 at the end",
    "CLAMPED": "leave it out, and declare bounds beside the query",
    **dict.fromkeys(("DIFFERENTIAL_PRIVACY", "ANONYMIZATION"), "leave it out: all that is asked here is private"),
}
"""Words of other databases, and what to do instead."""
NEAR = 2
"""The parser stops at most so many words behind a misspelt one, which it takes for a name."""


def syntax_error(text: str, error: dict[str, Any], skip: int = 0) -> str:
    """Say what a parser stopped at: its place, counted from 1 at its first letter, and why.

    >>> told("SELEC page FROM views", {"line": 1, "col": 15, "description": "Unexpected token"})
    ' at line 1, column 1: did you mean SELECT? Found SELEC'
    """
    from sqlglot import tokenize

    tokens = tokenize(text, read="postgres")
    ends = [(token.line, token.col) for token in tokens]
    stop = (error.get("line"), error.get("col"))
    index = ends.index(stop) if stop in ends else len(tokens) - 1
    for token in tokens[max(index - NEAR, 0) : index + 1]:
        word = token.text.upper()
        alike = [] if word in WORDS else difflib.get_close_matches(word, WORDS, 1, 0.75)
        if token.token_type.name == "VAR" and alike and abs(len(alike[0]) - len(word)) < 2:
            return f"{_at(token, skip)}: did you mean {alike[0]}? Found {token.text}"
    words = [token.text.upper() for token in tokens]
    for word, instead in OTHERS.items():
        if word in words and index - words.index(word) in (-1, 0, 1):
            return f"{_at(tokens[words.index(word)], skip)}: {word} is of other databases; {instead}"
    reason = re.sub("^Required keyword: .* missing for .*", "something is missing", error.get("description") or "")
    reason = re.sub(" but got <Token.*", "", reason).rstrip(".") or "unreadable"
    if "Unexpected token" in reason and tokens:
        reason = (
            f"{tokens[index].text} cannot stand here; is a comma or a word missing before it, or a quote or bracket"
        )
    return (_at(tokens[index], skip) if tokens and error.get("line") else "") + f": {reason}"


def suggestion(word: str, names: Iterable[str]) -> str:
    """A name like a misspelt one, as a sentence; nothing where there is none.

    >>> near("clinc", ["user", "clinic"])
    ' Did you mean clinic?'
    """
    alike = difflib.get_close_matches(word.lower(), {name.lower(): name for name in names}, 1)
    return f" Did you mean {alike[0]}?" if alike else ""


def _at(token: Any, skip: int) -> str:
    first = token.col - (token.end - token.start) - (skip if token.line == 1 else 0)
    return f" at line {token.line}, column {max(first, 1)}"
