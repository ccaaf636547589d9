"""SQL text as functions of one record: `filter("zip = 80127 AND age > 40")`, `map("user, lower(page) AS page")`.

The text is parsed by sqlglot, never evaluated, and translated node by node into Polars expressions, which are then
admitted like any that a user writes (`admit.py`). The dialect is PostgreSQL's, with what PostgreSQL would raise on a
value being NULL: overflow, division by zero, a cast that fails. A condition keeps a record only where it is true.

Names are matched exactly, or, where they are not in double quotes, without regard to case if that fits one column.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.errors import PlanError
from wpinq.functions.expressions import Expressions, expressions
from wpinq.functions.terms import Term, constant, null, shown, whole_number
from wpinq.schema import Kind, Schema

if TYPE_CHECKING:
    from sqlglot import exp

LONGEST = 20_000  # characters of a text
DEEPEST = 60  # nested operators of an expression


def predicate(text: str, schema: Schema, call: str) -> Expressions:
    """Bind a condition.

    Raises:
        PlanError: It is no SQL condition over these columns, or not a function of one record.
    """
    items = parsed(text, call)
    if len(items) != 1 or type(items[0]).__name__ == "Alias":
        raise PlanError(f"{call}: {shown(text)!r} is not one condition; join conditions with AND.")
    term = Reader(columns(schema, call), call).condition(items[0])
    return expressions([term.value], schema, call, None)


def projection(
    text: str, schema: Schema, call: str, names: Sequence[str] | Mapping[str, object] | None = None
) -> Expressions:
    """Bind a list of expressions, each with or without a name: `user, lower(page) AS page`.

    Raises:
        PlanError: They are no SQL expressions over these columns, or not functions of one record.
    """
    reader = Reader(columns(schema, call), call)
    return expressions([_named(item, reader) for item in parsed(text, call)], schema, call, names)


def _named(item: exp.Expression, reader: Reader) -> pl.Expr:
    if type(item).__name__ == "Alias":
        return reader.term(item.this).value.alias(item.alias)
    term = reader.term(item)
    return term.value if type(item).__name__ == "Column" else term.value.alias("value")


def parsed(text: str, call: str) -> list[exp.Expression]:
    """The comma-separated expressions of a text.

    Raises:
        PlanError: It is anything else: a statement, a clause, several statements.
    """
    select = statement(f"SELECT {text}", call, skip=len("SELECT "))
    given = {name for name, value in select.args.items() if value}
    if type(select).__name__ != "Select" or given != {"expressions"}:
        raise PlanError(f"{call}: {shown(text)!r} is not an SQL expression; clauses (FROM, WHERE, ...) have no place.")
    return list(select.expressions)


def statement(text: str, call: str, skip: int = 0) -> Any:
    """One parsed SQL statement.

    Raises:
        PlanError: It does not parse, or is not one.
    """
    if "\0" in text or len(text) > LONGEST:
        raise PlanError(f"{call}: the SQL text holds a NUL or more than {LONGEST:,} characters.")
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # its warnings go to standard error
    try:
        found = sqlglot.parse(text, dialect="postgres")
    except ParseError as error:
        where = error.errors[0] if error.errors else {}
        column = max((where.get("col") or 1) - (skip if where.get("line") == 1 else 0), 1)
        place = f" at line {where['line']}, column {column}" if where.get("line") else ""
        reason = shown((where.get("description") or "unreadable").rstrip("."))
        raise PlanError(f"{call}: this is not SQL{place}: {reason}.") from None
    except SqlglotError:
        raise PlanError(f"{call}: this is not SQL; check its quotes.") from None
    except RecursionError:
        raise _too_deep(call) from None
    if len(found) != 1 or found[0] is None:
        raise PlanError(f"{call}: give one SQL {'expression' if skip else 'statement'}, without a semicolon.")
    return found[0]


def columns(schema: Schema, call: str) -> Callable[[exp.Expression], Term]:
    """How names become columns of a schema."""

    def resolve(node: exp.Expression) -> Term:
        if any(node.args.get(part) for part in ("table", "db", "catalog")):
            raise PlanError(f"{call}: {shown(node)} names a table; name only the column.")
        return column(node, schema, call)

    return resolve


def column(node: exp.Expression, schema: Schema, call: str) -> Term:
    """A column of a schema by its name."""
    name = named(node.this, schema.names, call)
    kind = schema[name].kind
    if kind is Kind.ANY:
        raise PlanError(f"{call}: column {name!r} may hold values of any type; declare one with columns=, as in "
                        f"columns={{{name!r}: int}}.")  # fmt: skip
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        raise PlanError(f"{call}: column {name!r} has a name that Polars reads as a pattern; write a Python function.")
    return Term(pl.col(name), kind, shown(node))


def named(identifier: exp.Expression, names: Sequence[str], call: str, what: str = "column") -> str:
    """The one name that an identifier stands for.

    Raises:
        PlanError: It stands for none, or for several.
    """
    wanted = identifier.name
    if wanted in names:
        return wanted
    alike = [] if identifier.args.get("quoted") else [name for name in names if name.lower() == wanted.lower()]
    if len(alike) != 1:
        found = f"several {what}s" if alike else f"no {what}"
        raise PlanError(f"{call}: {found} {shown(wanted)!r}; there are {', '.join(map(repr, names))}.")
    return alike[0]


class Reader:
    """Translates the expressions of one text.

    Attributes:
        resolve: Turns a name into a column.
        call: Name of the call, for messages.
        spelled: How messages write a part.
        known: What a function must be that is not in the list of those that are translated.
    """

    def __init__(
        self,
        resolve: Callable[[exp.Expression], Term],
        call: str,
        *,
        spelled: Callable[[exp.Expression], str] = shown,
        known: str = "computed from one record alone",
    ) -> None:
        self.resolve, self.call, self.spelled, self.known = resolve, call, spelled, known
        self._depth = 0

    def condition(self, node: exp.Expression) -> Term:
        """A part that is true, false or NULL.

        Raises:
            PlanError: It is of another type.
        """
        term = self.term(node)
        if term.kind not in (Kind.BOOL, None):
            raise PlanError(f"{self.call}: {term.text} is of type {term.spoken} and not a condition; compare it.")
        return Term(term.value if term.kind else pl.lit(None, pl.Boolean), Kind.BOOL, term.text)

    def term(self, node: exp.Expression) -> Term:
        """Translate any part.

        Raises:
            PlanError: It is not known to be a function of one record.
        """
        from wpinq.functions.sqlrules import RULES

        rule = RULES.get(type(node).__name__)
        if rule is None:
            raise self.refused(node)
        known, translate = rule
        if not {name for name, value in node.args.items() if value} <= known:
            raise self.refused(node)
        self._depth += 1
        if self._depth > DEEPEST:
            raise _too_deep(self.call)
        found = translate(self, node)
        self._depth -= 1
        return Term(found.value, found.kind, self.spell(node), found.constant, found.quoted)

    def spell(self, node: exp.Expression) -> str:
        """How a part was written."""
        try:
            return self.spelled(node)
        except RecursionError:
            raise _too_deep(self.call) from None

    def refused(self, node: exp.Expression) -> PlanError:
        """Why a part cannot be a function of one record."""
        inside = [type(one).__name__ for one in (node, *node.args.values())]
        why = next(
            (_REASONS[kind] for kind in inside if kind in _REASONS),
            f"is not in the list of what is known to be {self.known}",
        )
        return PlanError(f"{self.call}: {self.spell(node)} {why}.")


def _too_deep(call: str) -> PlanError:
    return PlanError(f"{call}: the SQL text is nested too deeply; write it flatter, or use a Python function.")


_WINDOW = "looks at other records, so it is not a function of one record"
_AGGREGATE = "is an aggregate, which looks at other records; measure it instead"
_QUERY = "holds a query of its own, which would look at other records; join, or list the values"
_REASONS = (
    dict.fromkeys(("Window", "Lag", "Lead", "RowNumber", "Rank", "DenseRank", "WithinGroup"), _WINDOW)
    | dict.fromkeys(("Count", "Sum", "Avg", "Min", "Max", "Stddev", "Variance", "Median"), _AGGREGATE)
    | dict.fromkeys(("Select", "Subquery", "Exists", "Union"), _QUERY)
    | dict.fromkeys(("Rand", "Uuid", "CurrentTimestamp", "CurrentDate", "CurrentTime", "Now"),
                    "gives another value every time")
    | dict.fromkeys(("Placeholder", "Parameter"), "stands for a value; write the value")
    | {"Star": "stands for all columns; name each column", "Alias": "has a name, which has no place here"}
)  # fmt: skip


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
