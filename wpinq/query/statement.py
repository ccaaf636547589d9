"""Reads a SELECT, clause by clause, into what it asks for.

Group keys, WHERE and public joins are functions of one record. Everything else, HAVING, ORDER BY, LIMIT and what is
computed from counts, is done with released numbers, so it costs nothing and can tell nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.errors import PlanError
from wpinq.functions.outputs import named as uniquely
from wpinq.functions.sql.terms import shown, whole_number
from wpinq.measurements.timeline import answerable
from wpinq.query.asked import Item, Statement, check
from wpinq.query.bounds import Declared
from wpinq.query.clauses import label, limits, plain_select
from wpinq.query.names import OutputNames, bare
from wpinq.query.numbers import LISTED, NUMBERS, Number, read, unknown_function
from wpinq.query.tables import CALL, Tables, plainly, reader

if TYPE_CHECKING:
    from sqlglot import exp

    from wpinq.aggregates.options import Bounds
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
        found = Tables(dict(tables), select.args["from_"].this, select.args.get("joins") or [])
        if answerable(found.base._node, CALL) is not found.base._node:
            raise PlanError(
                f"{CALL}: a query is answered at once, and a live source when an epoch closes; measure(...)."
            )
        return _Select(select, found, bounds).read()
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
        given = [one.this if type(one).__name__ == "Alias" else one for one in self.select.expressions]
        for one in given:
            if type(one).__name__ == "Star" or (type(one).__name__ == "Column" and type(one.this).__name__ == "Star"):
                raise PlanError(f"{CALL}: SELECT * would show records; select GROUP BY columns and counts.")
        self.groups = self._groups(given)
        labels = uniquely([label(one) for one in self.select.expressions])
        items = tuple(Item(title, self._released(one)) for title, one in zip(labels, given, strict=True))
        having = self.select.args.get("having")
        condition = self._released(self.outputs.in_expression(having.this)) if having else None
        order = tuple(self._order(one, given) for one in getattr(self.select.args.get("order"), "expressions", ()))
        if not self.asked and not self.summed:
            raise PlanError(f"{CALL}: the query counts nothing, so it would show records; {LISTED}.")
        names = uniquely([one.name if type(one).__name__ == "Column" else None for one in self.groups])
        kept = self._kept()
        groups = kept.map(self._keyed(names))
        counts = tuple(self._counted(kept, groups, names, one) for one in self.asked)
        numbers = tuple(self._summed(kept, names, one) for one in self.summed)
        self.declared.check()
        found = Statement(
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
        check(found)
        return found

    def _groups(self, given: list[Any]) -> list[Any]:
        from sqlglot import exp

        clause = self.select.args.get("group")
        if clause is None:
            return []
        if {name for name, value in clause.args.items() if value} != {"expressions"}:
            raise PlanError(f"{CALL}: {shown(clause)}: {NO_SETS}.")
        found = []
        for one in clause.expressions:
            if type(one).__name__ in ("Rollup", "Cube", "GroupingSets"):
                raise PlanError(f"{CALL}: {shown(one)}: {NO_SETS}.")
            found.append(self._canonical(self.outputs.in_group_by(self._numbered(one, given))))
            if found[-1].find(exp.AggFunc):
                raise PlanError(f"{CALL}: GROUP BY {shown(found[-1])} groups by an aggregate; group by columns.")
        return list(dict.fromkeys(found))

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
            found = self.tables.canonical(one)
            if found is None:
                raise PlanError(f"{CALL}: no column {shown(one)}; there are {self.tables.names}.")
            return found

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
                what, found = ("count", self.asked) if kind == "Count" else ("number", self.summed)
                if one not in found:
                    found.append(one)
                return exp.column(f"{what} {found.index(one)}", quoted=True)
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
        """The records that have partners and pass WHERE."""
        where = self.select.args.get("where")
        tests = list(self.tables.present)
        if where:
            tests.append(reader(self.tables).condition(self._canonical(where.this)).value)
        return self.tables.base.filter(reduce(and_, tests)) if tests else self.tables.base

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
        terms = [reader(self.tables).term(self._canonical(one)).value for one in asked]
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
        term = reader(self.tables).term(what)
        records = kept.map([*self._keys(names), term.value.alias(name)])
        return Number(records, (measured, what), ask, self.declared.of(number, what), plainly(number))

    def _keyed(self, names: tuple[str, ...]) -> list[pl.Expr]:
        """The group keys, or one constant for the group of all records."""
        return self._keys(names) or [pl.lit(0).alias("all")]

    def _keys(self, names: tuple[str, ...]) -> list[pl.Expr]:
        terms = [self.tables.bare(node) if type(node).__name__ == "Column" else reader(self.tables).term(node)
                 for node in self.groups]  # fmt: skip
        return [term.value.alias(name) for term, name in zip(terms, names, strict=True)]
