"""What a SELECT reads: the records of FROM and WHERE, its group keys, and what is computed from them.

A query and the subqueries in its FROM and WITH are read by the same rules. They differ in what becomes of groups: those
of the query are measured, those of a subquery are records again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import polars as pl

from wpinq.errors import PlanError
from wpinq.functions.output_columns import named as uniquely
from wpinq.functions.sql.terms import Term, shown, whole_number
from wpinq.query.bounds import Declared
from wpinq.query.derived import CALL, Rows, plainly
from wpinq.query.grouping import NAME, grouping, missing, sets_of
from wpinq.query.names import OutputNames, bare
from wpinq.query.numbers import LISTED, NUMBERS, unknown_function
from wpinq.query.public_rows import PublicRows
from wpinq.query.tables import Tables
from wpinq.records.schema import Kind, polars_type

MOST = 100_000
"""Values of a list."""


@dataclass
class Reads:
    """The clauses that a query and a subquery have in common.

    Attributes:
        select: The parsed SELECT.
        tables: What FROM names.
        declared: Bounds of its columns.
        groups: Its group keys.
        sets: Those that are grouped by together, where there are several such sets.
        counts: The COUNTs that it asks for.
        numbers: Its other aggregates.
    """

    select: Any
    tables: Tables
    bounds: Callable[[Tables, Callable[[Any], Any]], Declared]
    groups: list[Any] = field(default_factory=list)
    sets: list[frozenset[Any]] = field(default_factory=list)
    counts: list[Any] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.declared = self.bounds(self.tables, self.canonical)
        self.outputs = OutputNames(self.select.expressions, self.tables)

    @property
    def given(self) -> list[Any]:
        """What is selected, without names."""
        return [item.this if type(item).__name__ == "Alias" else item for item in self.select.expressions]

    def group(self, given: list[Any]) -> None:
        """Read GROUP BY.

        Raises:
            PlanError: It groups by an aggregate, or by several sets of keys.
        """
        from sqlglot import exp

        clause = self.select.args.get("group")
        if clause is None:
            return

        def key(node: Any) -> Any:
            result = self.canonical(self.outputs.in_group_by(self.numbered(node, given)))
            if result.find(exp.AggFunc):
                raise PlanError(f"{CALL}: GROUP BY {shown(result)} groups by an aggregate; group by columns.")
            return result

        self.groups, self.sets = sets_of(clause, key)

    def numbered(self, node: Any, given: list[Any]) -> Any:
        """GROUP BY 1 and ORDER BY 1 mean the first column of the answer."""
        node = bare(node)
        if type(node).__name__ != "Literal" or node.is_string:
            return node
        place = whole_number(node.this, len(given))
        if not place:
            raise PlanError(f"{CALL}: there is no column number {shown(node.this)} in the SELECT.")
        return given[place - 1]

    def canonical(self, node: Any) -> Any:
        """An expression whose columns are written in one way, so that equal ones are equal."""
        from sqlglot import exp

        def canonical(one: exp.Expression) -> exp.Expression:
            if type(one).__name__ != "Column":
                return one
            result = self.tables.canonical(one)
            if result is None:
                raise self.tables.missing(one)
            return result

        node = bare(node).transform(self._listed)
        inner = node.find(exp.Query, exp.Exists)
        if inner is not None:
            raise PlanError(f"{CALL}: {shown(inner)} is a query of its own, which would look at other records; JOIN a "
                            "public table, or take its values by IN (SELECT ...); ask for a number first, and write "
                            "the one that was released.")  # fmt: skip
        return node.transform(canonical)

    def _listed(self, node: Any) -> Any:
        """IN (SELECT ...) of a public table as a list of its values."""
        from sqlglot import exp

        query = node.args.get("query") if isinstance(node, exp.In) else None
        if query is None:
            return node
        made = self.tables.derive(query).rows
        if not isinstance(made, PublicRows):
            raise PlanError(f"{CALL}: {shown(query)} is a query of its own over a protected table, whose records would "
                            "decide on others; JOIN it, or take semijoin in Python and give the result.")  # fmt: skip
        values = made.distinct().frame.to_series() if len(made.columns) == 1 else None
        if values is None or len(values) > MOST:
            raise PlanError(f"{CALL}: {shown(query)}: IN takes one column of {MOST:,} values or fewer; JOIN the table.")
        return exp.In(this=node.this, expressions=[_literal(value) for value in values])

    def placed(self, node: Any) -> Any:
        """An expression over group keys and aggregates by their place: `key 0`, `count 0`, `number 0`.

        Raises:
            PlanError: It holds a column that is neither.
        """
        from sqlglot import exp

        def place(one: exp.Expression) -> exp.Expression:
            if one in self.groups:
                return exp.column(f"key {self.groups.index(one)}", quoted=True)
            kind = type(one).__name__
            if kind == "Grouping" and self.sets:
                return grouping(one, self.groups, exp.column(f"key {len(self.groups)}", quoted=True))
            if kind == "Anonymous":
                raise PlanError(f"{CALL}: {plainly(one)}: {unknown_function(one)}.")
            if kind == "Count" or kind in NUMBERS:
                what, result = ("count", self.counts) if kind == "Count" else ("number", self.numbers)
                if one not in result:
                    result.append(one)
                return exp.column(f"{what} {result.index(one)}", quoted=True)
            if isinstance(one, (exp.AggFunc, exp.Filter, exp.Window)):
                raise PlanError(f"{CALL}: {plainly(one)}: {LISTED}; other aggregates are not, and windows look at "
                                "other records.")  # fmt: skip
            if kind == "Column":
                raise PlanError(f"{CALL}: {plainly(one)} is neither in GROUP BY nor counted, so it would show records.")
            return one

        return self.canonical(node).transform(place)

    def kept(self) -> Rows:
        """The records that pass WHERE."""
        where = self.select.args.get("where")
        if not where:
            return self.tables.base
        return self.tables.base.filter(self.tables.translator.condition(self.canonical(where.this)).value)

    def names(self) -> tuple[str, ...]:
        """What the group keys are called."""
        found = [group.name if type(group).__name__ == "Column" else None for group in self.groups]
        return uniquely([*found, NAME] if self.sets else found)

    def keys(self, names: tuple[str, ...]) -> list[pl.Expr]:
        """The group keys of a record."""
        return [term.value.alias(name) for term, name in zip(self._terms(), names, strict=False)]

    def rows(self, kept: Rows, names: tuple[str, ...], *more: pl.Expr) -> Rows:
        """The group keys of each record, once for each set of them, or a constant without keys; then more columns."""
        if not self.sets:
            return kept.map([*(self.keys(names) or [pl.lit(0).alias("all")]), *more])
        terms, found = self._terms(), []
        if any(term.kind in (Kind.ANY, None) for term in terms):
            raise PlanError(
                f"{CALL}: several sets of keys need the types of their columns; declare them with columns=."
            )
        for chosen in self.sets:
            values = [
                term.value if key in chosen else pl.lit(None, polars_type(term.kind or Kind.ANY))
                for key, term in zip(self.groups, terms, strict=True)
            ]
            values.append(pl.lit(missing(self.groups, chosen), pl.Int64))
            named = [value.alias(name) for value, name in zip(values, names, strict=True)]
            found.append(kept.map([*named, *more]))
        return reduce(lambda one, other: one.concat(other), found)

    def _terms(self) -> list[Term]:
        return [self.tables.bare(node) if type(node).__name__ == "Column" else self.tables.translator.term(node)
                for node in self.groups]  # fmt: skip


def _literal(value: Any) -> Any:
    """A value of a public table, as a query would write it."""
    from sqlglot import exp

    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, (int, float)):
        number = exp.Literal.number(abs(value))
        return number if value >= 0 else exp.Neg(this=number)
    return exp.Literal.string(str(value))


def aggregates(items: Iterable[Any]) -> bool:
    """Whether there is an aggregate among expressions."""
    from sqlglot import exp

    return any(item.find(exp.AggFunc, exp.WithinGroup) is not None for item in items)
