"""Translate the parts of an SQL text into trees of operations, and read the arguments of SQL functions."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.core.functions import tree
from wpinq.core.functions.sql.terms import Term, shown, to
from wpinq.core.functions.tree import lit
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from sqlglot import exp

DEEPEST = 60  # nested operators of an expression
INSIDE = 450  # nodes of a tree one in the other: what Polars takes grows faster than their number
DECIMAL = frozenset(
    ["Literal", "Paren", "Neg", "Add", "Sub", "Mul", "Div", "Mod", "Abs", "Ceil", "Floor", "Trunc", "Round", "Sign",
     "Greatest", "Least", "Coalesce", "Case", "Nullif"]
)  # fmt: skip
"""What makes a decimal of decimals and integers."""


class Translator:
    """Translates the expressions of one text.

    Attributes:
        resolve: Turns a name into a column.
        call: Name of the call, for messages.
        names: Names of functions, which a misspelt one is compared with.
        spelled: How messages write a part.
        known: What a function must be that is not in the list of those that are translated.
        rules: For each kind of part, which of its arguments are known, and what translates it.
    """

    def __init__(
        self,
        resolve: Callable[[exp.Expression], Term],
        call: str,
        rules: Mapping[str, tuple[frozenset[str], Any]],
        *,
        names: Sequence[str] = (),
        spelled: Callable[[exp.Expression], str] = shown,
        known: str = "computed from one record alone",
    ) -> None:
        self.resolve: Callable[[exp.Expression], Term] = resolve
        self.call, self.rules, self.spelled, self.known = call, rules, spelled, known
        self.names = names
        self._open: list[dict[int, tuple[exp.Expression, Term]]] = []
        """For each rule that is at work, by their identities, the parts that it looked at, and what they are."""

    def condition(self, node: exp.Expression) -> Term:
        """A part that is true, false or NULL.

        Raises:
            PlanError: It is of another type.
        """
        term = self.term(node)
        if term.kind not in (Kind.BOOL, None):
            raise PlanError(f"{self.call}: {term.text} is of type {term.spoken} and not a condition; compare it.")
        return replace(term, value=term.value if term.kind else lit(None, pl.Boolean), kind=Kind.BOOL, constant=None)

    def term(self, node: exp.Expression) -> Term:
        """Translate any part; inside of a rule, each part once.

        Raises:
            PlanError: It is not known to be a function of one record, or stands for too large an expression.
        """
        if not self._open:
            result = self._translated(node)
            tree.total_size().add(result.size, self.call, result.text)
            return result
        parts = self._open[-1]
        if id(node) not in parts:
            parts[id(node)] = node, self._translated(node)
        return parts[id(node)][1]

    def _translated(self, node: exp.Expression) -> Term:
        called = type(node).__name__
        rule = self.rules.get(node.name.lower() if called == "Anonymous" else called)
        if rule is None:
            raise self.refused(node)
        known, translate = rule
        if not {name for name, value in node.args.items() if value} <= known:
            raise self.refused(node)
        if len(self._open) == DEEPEST:
            raise too_deep(self.call)
        parts: dict[int, tuple[exp.Expression, Term]] = {}
        self._open.append(parts)
        try:
            result, text = translate(self, node), self.spell(node)
        finally:
            self._open.pop()
        tree.insist(result.size, self.call, text)
        if result.value.depth > INSIDE:
            raise too_deep(self.call)
        decimal = called in DECIMAL and all(part.decimal for _, part in parts.values() if part.kind is Kind.FLOAT)
        return Term(result.value, result.kind, text, result.constant, result.quoted,
                    decimal=result.kind is Kind.FLOAT and decimal)  # fmt: skip

    def spell(self, node: exp.Expression) -> str:
        """How a part was written."""
        try:
            return self.spelled(node)
        except RecursionError:
            raise too_deep(self.call) from None

    def refused(self, node: exp.Expression) -> PlanError:
        """Why a part cannot be a function of one record."""
        inside = [type(item).__name__ for item in (node, *node.args.values())]
        reason = next((_REASONS[kind] for kind in inside if kind in _REASONS), None)
        if reason is not None:
            return PlanError(f"{self.call}: {self.spell(node)} {reason}.")
        if inside[0] in _INSTEAD and [value for value in node.args.values() if value] == [node.this]:
            instead = _INSTEAD[inside[0]].format(self.spell(node.this))
            return PlanError(f"{self.call}: {inside[0].upper()}() is not in the list of functions; write {instead}.")
        why = f"is not in the list of what is known to be {self.known}"
        alike = difflib.get_close_matches(node.name.lower(), self.names, 1) if inside[0] == "Anonymous" else []
        hint = f"Did you mean {alike[0]}? " if alike else ""
        return PlanError(f"{self.call}: {self.spell(node)} {why}. {hint}The list: wpinq sql --functions.")


def too_deep(call: str) -> PlanError:
    """The error for a text that is nested too deeply."""
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
_FIELDS = ("Year", "Quarter", "Month", "Week", "Day", "Hour", "Minute", "Second")
_INSTEAD = {name: f"EXTRACT({name.upper()} FROM {{}})" for name in _FIELDS} | {"Date": "CAST({} AS DATE)"}
"""How functions of other dialects are written here."""


def argument(translator: Translator, node: Any, *kinds: Kind) -> Term:
    """The argument of a function, of one of these types.

    Raises:
        PlanError: It is of another.
    """
    term = translator.term(node)
    if term.kind is None or (term.quoted and Kind.TEXT not in kinds):
        return to(term, kinds[0], translator.call)
    if term.kind not in kinds:
        wanted = " or ".join(kind.value for kind in kinds)
        raise PlanError(f"{translator.call}: {term.text} is of type {term.spoken}, and {wanted} is needed; cast it.")
    return term


def whole(translator: Translator, part: Any, node: Any, default: int | None) -> int | None:
    """A whole number that is written out.

    Raises:
        PlanError: It is something else.
    """
    if part is None:
        return default
    term = translator.term(part)
    if not isinstance(term.constant, int) or isinstance(term.constant, bool) or abs(term.constant) > 2**31:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: write positions as whole numbers.")
    return term.constant


def words(translator: Translator, part: Any, node: Any) -> str:
    """A text that is written out, in quotes.

    Raises:
        PlanError: It is something else.
    """
    term = translator.term(part) if part is not None else None
    if term is None or not term.quoted:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: write {term.text if term else 'it'} as a quoted "
                        "text.")  # fmt: skip
    return str(term.constant)
