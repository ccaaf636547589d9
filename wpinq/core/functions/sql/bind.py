"""SQL text as functions of one record: `filter("zip = 80127 AND age > 40")`, `map("user, lower(page) AS page")`.

The text is parsed by sqlglot, never evaluated, and translated node by node into a tree of operations (`tree.py`), which
is then admitted like that of any expression of Polars (`admit.py`). The dialect is PostgreSQL's, with what PostgreSQL
would raise on a value being NULL: overflow, division by zero, a cast that fails. A condition keeps a record only where
it is true.

Names are matched exactly, or, where they are not in double quotes, without regard to case if that fits one column.

Errors say where an SQL text is wrong, and what may have been meant.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wpinq.core.functions.expressions import Expressions, expressions
from wpinq.core.functions.sql import calls, operators
from wpinq.core.functions.sql.terms import Term, shown
from wpinq.core.functions.sql.translator import Translator, too_deep
from wpinq.core.functions.tree import Node, col
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError, needs

if TYPE_CHECKING:
    from sqlglot import exp

RULES = {**operators.RULES, **calls.RULES}
"""What translates each kind of part."""
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

    >>> syntax_error("SELEC page FROM views", {"line": 1, "col": 15, "description": "Unexpected token"})
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

    >>> suggestion("clinc", ["user", "clinic"])
    ' Did you mean clinic?'
    """
    alike = difflib.get_close_matches(word.lower(), {name.lower(): name for name in names}, 1)
    return f" Did you mean {alike[0]}?" if alike else ""


def _at(token: Any, skip: int) -> str:
    first = token.col - (token.end - token.start) - (skip if token.line == 1 else 0)
    return f" at line {token.line}, column {max(first, 1)}"


LONGEST = 20_000  # characters of a text


def translator(resolve: Callable[[exp.Expression], Term], call: str, **more: Any) -> Translator:
    """Translates expressions by the rules of SQL; see `Translator`."""
    return Translator(resolve, call, RULES, names=calls.NAMES, **more)


def predicate(text: str, schema: Schema, call: str) -> Expressions:
    """Bind a condition.

    Raises:
        PlanError: It is no SQL condition over these columns, or not a function of one record.
    """
    items = parsed(text, call)
    if len(items) != 1 or type(items[0]).__name__ == "Alias":
        raise PlanError(f"{call}: {shown(text)!r} is not one condition; join conditions with AND.")
    term = translator(columns(schema, call), call).condition(items[0])
    return expressions([term.value], schema, call, None)


def projection(
    text: str, schema: Schema, call: str, names: Sequence[str] | Mapping[str, object] | None = None
) -> Expressions:
    """Bind a list of expressions, each with or without a name: `user, lower(page) AS page`.

    Raises:
        PlanError: They are no SQL expressions over these columns, or not functions of one record.
    """
    translate, whole = translator(columns(schema, call), call), columns(schema, call, of_any=True)
    return expressions([_named(item, translate, whole) for item in parsed(text, call)], schema, call, names)


def _named(item: exp.Expression, translator: Translator, whole: Callable[[exp.Expression], Term]) -> Node:
    """An expression of a list; a column that is passed on as it is may hold values of any type."""
    inner = item.this if type(item).__name__ == "Alias" else item
    passed = type(inner).__name__ == "Column"
    value = (whole if passed else translator.term)(inner).value
    if inner is not item:
        return value.alias(item.alias)
    return value if passed else value.alias("value")


def parsed(text: str, call: str) -> list[exp.Expression]:
    """The comma-separated expressions of a text.

    Raises:
        PlanError: It is anything else: a statement, a clause, several statements.
    """
    select = statement(f"SELECT {text}", call, skip=len("SELECT "))
    clauses = {name for name, value in select.args.items() if value}
    if type(select).__name__ != "Select" or clauses != {"expressions"}:
        raise PlanError(f"{call}: {shown(text)!r} is not an SQL expression; clauses (FROM, WHERE, ...) have no place.")
    return list(select.expressions)


def statement(text: str, call: str, skip: int = 0) -> Any:
    """One parsed SQL statement.

    Raises:
        PlanError: It does not parse, or is not one.
        ExtraError: There is no sqlglot to parse it.
    """
    if "\0" in text or len(text) > LONGEST:
        raise PlanError(f"{call}: the SQL text holds a NUL or more than {LONGEST:,} characters.")
    needs("sql", call)
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # its warnings go to standard error
    try:
        result = sqlglot.parse(text, dialect="postgres")
    except ParseError as error:
        reason = shown(syntax_error(text, error.errors[0] if error.errors else {}, skip), 160)
        raise PlanError(f"{call}: this is not SQL{reason}.") from None
    except SqlglotError:
        raise PlanError(f"{call}: this is not SQL; check its quotes.") from None
    except RecursionError:
        raise too_deep(call) from None
    if len(result) != 1 or result[0] is None:
        raise PlanError(f"{call}: give one SQL {'expression' if skip else 'statement'}, without a semicolon.")
    return result[0]


def columns(schema: Schema, call: str, *, of_any: bool = False) -> Callable[[exp.Expression], Term]:
    """How names become columns of a schema; `of_any` says whether these may hold values of any type."""

    def resolve(node: exp.Expression) -> Term:
        if any(node.args.get(part) for part in ("table", "db", "catalog")):
            raise PlanError(f"{call}: {shown(node)} names a table; name only the column.")
        return column(node, schema, call, of_any=of_any)

    return resolve


def column(node: exp.Expression, schema: Schema, call: str, *, of_any: bool = False) -> Term:
    """A column of a schema by its name."""
    name = named(node.this, schema.names, call, remark=schema.lacks)
    kind = schema[name].kind
    if kind is Kind.ANY and not of_any:
        raise PlanError(f"{call}: column {name!r} may hold values of any type; declare one with columns=, as in "
                        f"columns={{{name!r}: int}}.")  # fmt: skip
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        raise PlanError(f"{call}: column {name!r} has a name that Polars reads as a pattern; write a Python function.")
    return Term(col(name), kind, shown(node))


def named(
    identifier: exp.Expression, names: Sequence[str], call: str, what: str = "column", *, remark: str = ""
) -> str:
    """The one name that an identifier stands for.

    Raises:
        PlanError: It stands for none, or for several.
    """
    wanted = identifier.name
    if wanted in names:
        return wanted
    alike = [] if identifier.args.get("quoted") else [name for name in names if name.lower() == wanted.lower()]
    if len(alike) != 1:
        result = f"several {what}s" if alike else f"no {what}"
        hint = "" if alike else suggestion(wanted, names)
        raise PlanError(f"{call}: {result} {shown(wanted)!r}; there are {', '.join(map(repr, names))}{remark}.{hint}")
    return alike[0]
