"""What a SELECT reads: the records of FROM and WHERE, its group keys, and what is computed from them.

A query and the subqueries in its FROM and WITH are read by the same rules. They differ in what becomes of groups: those
of the query are measured, those of a subquery are records again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from wpinq.collection import Collection
from wpinq.core.functions.function import named as uniquely
from wpinq.core.functions.sql.terms import Term, shown, whole_number
from wpinq.core.functions.tree import Node, copied, lit
from wpinq.core.records.schema import Kind, polars_type
from wpinq.errors import PlanError
from wpinq.query.select.aggregates import LISTED, NUMBERS, unknown_function
from wpinq.query.select.bounds import Declared
from wpinq.query.select.derived import CALL, Derived, Rows, plainly
from wpinq.query.select.exists import constant, number, semi_joined, sought
from wpinq.query.select.grouping import NAME, grouping, missing, sets_of
from wpinq.query.select.joins import bare, conjuncts
from wpinq.query.select.names import OutputNames
from wpinq.query.select.public_rows import PublicRows
from wpinq.query.select.tables import Tables

if TYPE_CHECKING:
    from sqlglot import exp

ENDS = {"DP_INTERVAL_LOW": "low", "DP_INTERVAL_HIGH": "high"}
"""Snowflake's names of the ends of an interval."""


class Names(Protocol):
    """What the names of tables stand for; see `subquery.Scope`."""

    def within(self, clause: Any) -> Names:
        """The names inside of a SELECT with a WITH."""

    def tables(self, select: Any) -> Tables:
        """The tables that a SELECT names."""

    def declared(self, tables: Tables, canonical: Callable[[Any], Any]) -> Declared:
        """The bounds of their columns."""

    def derived(self, node: Any) -> Derived:
        """The table that a subquery makes."""


@dataclass
class Reads:
    """The clauses that a query and a subquery have in common.

    Attributes:
        select: The parsed SELECT.
        tables: What FROM names.
        scope: What names of tables stand for.
        declared: Bounds of its columns.
        groups: Its group keys.
        sets: Those that are grouped by together, where there are several such sets.
        counts: The COUNTs that it asks for.
        numbers: Its other aggregates.
    """

    select: Any
    tables: Tables
    scope: Names
    groups: list[Any] = field(default_factory=list)
    sets: list[frozenset[Any]] = field(default_factory=list)
    counts: list[Any] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.declared = self.scope.declared(self.tables, self.canonical)
        self.outputs = OutputNames(self.select.expressions, self.tables.canonical)

    @property
    def selected(self) -> list[Any]:
        """What is selected, without names."""
        return [item.this if type(item).__name__ == "Alias" else item for item in self.select.expressions]

    def group(self, selected: list[Any]) -> None:
        """Read GROUP BY.

        Raises:
            PlanError: It groups by an aggregate, or by several sets of keys.
        """
        from sqlglot import exp

        clause = self.select.args.get("group")
        if clause is None:
            return

        def key(node: Any) -> Any:
            result = self.canonical(self.outputs.in_group_by(self.numbered(node, selected)))
            if result.find(exp.AggFunc):
                raise PlanError(f"{CALL}: GROUP BY {shown(result)} groups by an aggregate; group by columns.")
            return result

        self.groups, self.sets = sets_of(clause, key)

    def numbered(self, node: Any, selected: list[Any]) -> Any:
        """GROUP BY 1 and ORDER BY 1 mean the first column of the answer."""
        node = bare(node)
        if type(node).__name__ != "Literal" or node.is_string:
            return node
        position = whole_number(node.this, len(selected))
        if not position:
            raise PlanError(f"{CALL}: there is no column number {shown(node.this)} in the SELECT.")
        copied(selected[position - 1], CALL, lambda: shown(node))
        return selected[position - 1]

    def canonical(self, node: Any) -> Any:
        """An expression whose columns are written in one way, so that equal ones are equal."""

        def canonical(column: exp.Expression) -> exp.Expression:
            if type(column).__name__ != "Column":
                return column
            result = self.tables.canonical(column)
            if result is None:
                raise self.tables.missing(column)
            return result

        return bare(node).transform(self._known).transform(canonical)

    def _known(self, node: Any) -> Any:
        """A query inside of an expression as what it is, of public tables.

        Raises:
            PlanError: It is of protected tables.
        """
        from sqlglot import exp

        if isinstance(node, exp.Subquery):
            return number(node, self.scope.derived)
        condition = sought(node, self.tables, self.scope) if isinstance(node, (exp.In, exp.Exists)) else None
        if condition is not None:
            if isinstance(condition.rows.rows, PublicRows):
                return constant(condition)
            raise PlanError(f"{CALL}: {condition.text} is a query of its own over a protected table: it is answered as "
                            "a condition of WHERE by itself or with AND, and EXISTS with NOT too.")  # fmt: skip
        if isinstance(node, exp.Query):
            raise PlanError(f"{CALL}: {plainly(node)} is a query of its own, which would look at other records; JOIN a "
                            "public table, or take its values by IN (SELECT ...); ask for a number first, and write "
                            "the one that was released.")  # fmt: skip
        return node

    def by_position(self, node: Any) -> Any:
        """An expression over group keys and aggregates by their place: `key 0`, `count 0`, `number 0`.

        Raises:
            PlanError: It holds a column that is neither.
        """
        from sqlglot import exp

        def positioned(part: exp.Expression) -> exp.Expression:
            if part in self.groups:
                return exp.column(f"key {self.groups.index(part)}", quoted=True)
            kind = type(part).__name__
            if kind == "Grouping" and self.sets:
                return grouping(part, self.groups, exp.column(f"key {len(self.groups)}", quoted=True))
            if kind == "Anonymous" and part.name.upper() in ENDS and len(part.expressions) == 1:
                return _end(ENDS[part.name.upper()], positioned(part.expressions[0]), part)
            if kind == "Anonymous":
                raise PlanError(f"{CALL}: {plainly(part)}: {unknown_function(part)}.")
            if kind == "Count" or kind in NUMBERS:
                what, result = ("count", self.counts) if kind == "Count" else ("number", self.numbers)
                if part not in result:
                    result.append(part)
                return exp.column(f"{what} {result.index(part)}", quoted=True)
            if isinstance(part, (exp.AggFunc, exp.Filter, exp.Window)):
                raise PlanError(f"{CALL}: {plainly(part)}: {LISTED}; other aggregates are not, and windows look at "
                                "other records.")  # fmt: skip
            if kind == "Column":
                raise PlanError(
                    f"{CALL}: {plainly(part)} is neither in GROUP BY nor counted, so it would show records."
                )
            return part

        return self.canonical(node).transform(positioned)

    def filtered(self) -> Rows:
        """The records that pass WHERE: conditions of one record first, then those on rows of protected tables."""
        where = self.select.args.get("where")
        rows = self.tables.base
        if not where:
            return rows
        conditions = [(part, sought(part, self.tables, self.scope)) for part in conjuncts(where.this)]
        joined = [
            condition
            for _, condition in conditions
            if condition is not None and isinstance(condition.rows.rows, Collection)
        ]
        if not isinstance(rows, Collection):
            joined = []
        for part, condition in conditions:
            if condition not in joined and not self.tables.pushed_down(part):
                rows = rows.filter(self.tables.translator.condition(self.canonical(part)).value)
        for condition in joined:
            rows = semi_joined(rows, condition, [self.tables.base_name(column) for column in condition.columns])
        return rows

    def names(self) -> tuple[str, ...]:
        """What the group keys are called."""
        columns = [group.name if type(group).__name__ == "Column" else None for group in self.groups]
        return uniquely([*columns, NAME] if self.sets else columns)

    def keys(self, names: tuple[str, ...]) -> list[Node]:
        """The group keys of a record."""
        return [term.value.alias(name) for term, name in zip(self._terms(), names, strict=False)]

    def rows(self, filtered: Rows, names: tuple[str, ...], *more: Node) -> Rows:
        """The group keys of each record, once for each set of them, or a constant without keys; then more columns."""
        if not self.sets:
            return filtered.map([*(self.keys(names) or [lit(0).alias("all")]), *more])
        terms, united = self._terms(), []
        if any(term.kind in (Kind.ANY, None) for term in terms):
            raise PlanError(
                f"{CALL}: several sets of keys need the types of their columns; declare them with columns=."
            )
        for chosen in self.sets:
            values = [
                term.value if key in chosen else lit(None, polars_type(term.kind or Kind.ANY))
                for key, term in zip(self.groups, terms, strict=True)
            ]
            values.append(lit(missing(self.groups, chosen), pl.Int64))
            named = [value.alias(name) for value, name in zip(values, names, strict=True)]
            united.append(filtered.map([*named, *more]))
        return reduce(lambda first, second: first.concat(second), united)

    def _terms(self) -> list[Term]:
        return [self.tables.bare(node) if type(node).__name__ == "Column" else self.tables.translator.term(node)
                for node in self.groups]  # fmt: skip


def _end(word: str, aggregate: Any, node: Any) -> exp.Expression:
    """The end of an interval, by the name that rows have it under."""
    from sqlglot import exp

    if type(aggregate).__name__ != "Column" or aggregate.name.partition(" ")[0] not in ("count", "number"):
        raise PlanError(f"{CALL}: {plainly(node)} is of a COUNT, SUM or the like by itself, or of its name.")
    return exp.column(f"{word} {aggregate.name}", quoted=True)


def aggregates(items: Iterable[Any]) -> bool:
    """Whether there is an aggregate among expressions."""
    from sqlglot import exp

    return any(item.find(exp.AggFunc, exp.WithinGroup) is not None for item in items)
