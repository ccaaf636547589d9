"""Parse a SELECT, clause by clause, into a `Statement`.

Group keys, WHERE and public joins are functions of one record. HAVING, ORDER BY, LIMIT and expressions over counts are
post-processing of released numbers, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.errors import PlanError
from wpinq.functions.output_columns import named as uniquely
from wpinq.functions.sql.terms import shown, whole_number
from wpinq.measurements.timeline import live_log, refuse_windows
from wpinq.plan.node import steps
from wpinq.query.bounds import Declared
from wpinq.query.clauses import label, limits, plain_select
from wpinq.query.names import OutputNames, bare
from wpinq.query.numbers import LISTED, NUMBERS, Number, read, unknown_function
from wpinq.query.statement import OutputColumn, Statement, check
from wpinq.query.tables import CALL, Tables, plainly

if TYPE_CHECKING:
    from sqlglot import exp

    from wpinq.aggregates.keywords import Bounds
    from wpinq.collection import Collection


def prepare(query: str, tables: Mapping[str, Any], bounds: Mapping[str, Bounds] | None = None) -> Statement:
    """Read a query; nothing is charged, and nothing of protected tables is read.

    Args:
        query: One SELECT over one protected table, which may join public ones.
        tables: Protected collections and public tables (what `protect` takes: frames, paths) by name.
        bounds: The least and the largest number of each column or expression that is summed or ranked.

    Raises:
        ExactnessError: A bound is no finite number.
        PlanError: It cannot be read, or cannot be private; the message says which part, and why.
    """
    select = plain_select(query)
    if not select.args.get("from_"):
        raise PlanError(f"{CALL}: FROM is missing; there are {', '.join(tables)}.")
    try:
        result = Tables(dict(tables), select.args["from_"].this, select.args.get("joins") or [])
        refuse_windows(steps(result.base._node), CALL)
        if live_log(result.base._node) is not None:
            raise PlanError(
                f"{CALL}: a query is answered at once, and a live source when an epoch closes; measure(...)."
            )
        return _Select(select, result, bounds).read()
    except RecursionError:
        raise PlanError(f"{CALL}: the query is nested too deeply.") from None


NO_SETS = "there is no ALL, CUBE, ROLLUP or GROUPING SETS here; ask one query for each set of groups"


class _Select:
    """Reads the clauses in their logical order."""

    def __init__(self, select: Any, tables: Tables, bounds: Mapping[str, Bounds] | None) -> None:
        self.select, self.tables = select, tables
        self.declared = Declared(bounds, self._canonical)
        self.outputs = OutputNames(select.expressions, tables)
        self.groups: list[Any] = []
        self.asked: list[Any] = []
        self.summed: list[Any] = []

    def read(self) -> Statement:
        given = [
            expression.this if type(expression).__name__ == "Alias" else expression
            for expression in self.select.expressions
        ]
        for item in given:
            if type(item).__name__ == "Star" or (
                type(item).__name__ == "Column" and type(item.this).__name__ == "Star"
            ):
                raise PlanError(f"{CALL}: SELECT * would show records; select GROUP BY columns and counts.")
        self.groups = self._groups(given)
        released = [self._released(entry) for entry in given]
        having = self.select.args.get("having")
        condition = self._released(self.outputs.in_expression(having.this)) if having else None
        order = tuple(self._order(item, given) for item in getattr(self.select.args.get("order"), "expressions", ()))
        if not self.asked and not self.summed:
            raise PlanError(f"{CALL}: the query counts nothing, so it would show records; {LISTED}.")
        names = uniquely([group.name if type(group).__name__ == "Column" else None for group in self.groups])
        kept = self._kept()
        groups = kept.map(self._keyed(names))
        counts = tuple(self._counted(kept, groups, names, item) for item in self.asked)
        whole = all(count._node.held.whole for count in counts)
        labels = uniquely([label(expression, whole=whole) for expression in self.select.expressions])
        items = tuple(map(OutputColumn, labels, released))
        numbers = tuple(self._summed(kept, names, item) for item in self.summed)
        self.declared.check()
        result = Statement(
            names if self.groups else (),
            groups,
            counts,
            numbers,
            items,
            condition,
            order,
            limits(self.select, bool(order)),
            {"key": tuple(self.groups), "count": tuple(self.asked), "number": tuple(self.summed)},
        )
        check(result)
        return result

    def _groups(self, given: list[Any]) -> list[Any]:
        from sqlglot import exp

        clause = self.select.args.get("group")
        if clause is None:
            return []
        if {name for name, value in clause.args.items() if value} != {"expressions"}:
            raise PlanError(f"{CALL}: {shown(clause)}: {NO_SETS}.")
        result = []
        for expression in clause.expressions:
            if type(expression).__name__ in ("Rollup", "Cube", "GroupingSets"):
                raise PlanError(f"{CALL}: {shown(expression)}: {NO_SETS}.")
            result.append(self._canonical(self.outputs.in_group_by(self._numbered(expression, given))))
            if result[-1].find(exp.AggFunc):
                raise PlanError(f"{CALL}: GROUP BY {shown(result[-1])} groups by an aggregate; group by columns.")
        return list(dict.fromkeys(result))

    def _numbered(self, node: Any, given: list[Any]) -> Any:
        """GROUP BY 1 and ORDER BY 1 mean the first column of the answer."""
        node = bare(node)
        if type(node).__name__ != "Literal" or node.is_string:
            return node
        place = whole_number(node.this, len(given))
        if not place:
            raise PlanError(f"{CALL}: there is no column number {shown(node.this)} in the SELECT.")
        return given[place - 1]

    def _canonical(self, node: Any) -> Any:
        """An expression whose columns are written in one way, so that equal ones are equal."""
        from sqlglot import exp

        def canonical(one: exp.Expression) -> exp.Expression:
            if type(one).__name__ != "Column":
                return one
            result = self.tables.canonical(one)
            if result is None:
                raise self.tables.missing(one)
            return result

        node = bare(node)
        inner = node.find(exp.Query, exp.Exists)
        if inner is not None:
            raise PlanError(f"{CALL}: {shown(inner)} is a query of its own, which would look at other records; join, "
                            "or list the values.")  # fmt: skip
        return node.transform(canonical)

    def _released(self, node: Any) -> Any:
        """An expression over released numbers: group keys and counts by their place."""
        from sqlglot import exp

        def place(one: exp.Expression) -> exp.Expression:
            if one in self.groups:
                return exp.column(f"key {self.groups.index(one)}", quoted=True)
            kind = type(one).__name__
            if kind == "Anonymous":
                raise PlanError(f"{CALL}: {plainly(one)}: {unknown_function(one)}.")
            if kind == "Count" or kind in NUMBERS:
                what, result = ("count", self.asked) if kind == "Count" else ("number", self.summed)
                if one not in result:
                    result.append(one)
                return exp.column(f"{what} {result.index(one)}", quoted=True)
            if isinstance(one, (exp.AggFunc, exp.Filter, exp.Window)):
                raise PlanError(f"{CALL}: {plainly(one)}: {LISTED}; other aggregates are not, and windows look at "
                                "other records.")  # fmt: skip
            if kind == "Column":
                raise PlanError(f"{CALL}: {plainly(one)} is neither in GROUP BY nor counted, so it would show records.")
            return one

        return self._canonical(node).transform(place)

    def _order(self, node: Any, given: list[Any]) -> tuple[Any, bool, bool]:
        inner = self._numbered(node.this, given)
        inner = inner if inner is not bare(node.this) else self.outputs.in_order_by(inner)
        descending = bool(node.args.get("desc"))
        first = node.args.get("nulls_first")
        return self._released(inner), descending, descending if first is None else bool(first)

    def _kept(self) -> Collection:
        """The records that pass WHERE."""
        where = self.select.args.get("where")
        if not where:
            return self.tables.base
        return self.tables.base.filter(self.tables.translator.condition(self._canonical(where.this)).value)

    def _counted(self, kept: Collection, groups: Collection, names: tuple[str, ...], count: Any) -> Collection:
        """The collection whose bins are the groups and whose weights are the counts."""
        keys = self._keyed(names)
        what = count.this
        if type(what).__name__ == "Star":
            return groups
        distinct = type(what).__name__ == "Distinct"
        asked = what.expressions if distinct else [what]
        if (distinct and what.args.get("on")) or count.expressions or not asked:
            raise PlanError(f"{CALL}: {shown(count)}: {LISTED}.")
        terms = [self.tables.translator.term(self._canonical(item)).value for item in asked]
        kept = kept.filter(reduce(and_, [term.is_not_null() for term in terms]))
        if not distinct:
            return kept.map(keys)
        counted = [term.alias(f"counted {place}") for place, term in enumerate(terms)]
        pairs = kept.map([*keys, *counted]).distinct()
        return pairs.map([pl.col(name) for name in pairs.columns[: len(keys)]])

    def _summed(self, kept: Collection, names: tuple[str, ...], number: Any) -> Number:
        """The group keys and the number of each record."""
        what, measured, ask = read(number)
        *_, name = uniquely([*names, what.name if type(what).__name__ == "Column" else "number"])
        term = self.tables.translator.term(what)
        records = kept.map([*self._keys(names), term.value.alias(name)])
        return Number(records, (measured, what), ask, self.declared.of(number, what), plainly(number))

    def _keyed(self, names: tuple[str, ...]) -> list[pl.Expr]:
        """The group keys, or one constant for the group of all records."""
        return self._keys(names) or [pl.lit(0).alias("all")]

    def _keys(self, names: tuple[str, ...]) -> list[pl.Expr]:
        terms = [self.tables.bare(node) if type(node).__name__ == "Column" else self.tables.translator.term(node)
                 for node in self.groups]  # fmt: skip
        return [term.value.alias(name) for term, name in zip(terms, names, strict=True)]
