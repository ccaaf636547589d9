"""Subqueries in FROM and WITH: tables that are made of other tables, record by record or group by group.

Without groups a subquery is `filter` and `map`, which cost nothing. With groups it is `group_by(whole=True)`: of the
records of a key one is left, with what is computed from them, exactly. Who adds a record takes away one such record and
adds another, so such a table moves twice as far. All that is done with it later, with HAVING too, looks at one of these
records alone. SELECT DISTINCT is `distinct`, UNION ALL `concat`, INTERSECT ALL `intersect`, and EXCEPT ALL `antijoin`
on all columns; without ALL both sides are `distinct` first. A table that is read twice is paid for twice.

Aggregates of a group's records are computed exactly: they are columns of a subquery, and no answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from wpinq.collection import Collection
from wpinq.core.functions.sql.bind import translator
from wpinq.core.functions.sql.terms import NUMBERS, Term, shown
from wpinq.core.functions.sql.translator import Translator
from wpinq.core.functions.tree import Node, col, lit
from wpinq.core.operators.group_columns import RULES, GroupColumn, group_columns
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.query.select.bounds import Declared, Limits
from wpinq.query.select.clauses import label, refuse_unread
from wpinq.query.select.derived import CALL, Degrees, Derived, Reach, Rows, plainly, schema_of
from wpinq.query.select.public_rows import PublicRows
from wpinq.query.select.select_context import Reads, aggregates
from wpinq.query.select.tables import WINDOWS, Tables
from wpinq.query.select.windows import WITHIN as WITHIN_A_PERSON
from wpinq.query.select.windows import computed

WITHIN = ("Avg", "Min", "Max", "Median")
FIRST = (
    "which rows come first depends on all the others, so one record would change many; leave it out, or put it at the "
    "end of the whole query, where it is done with released numbers"
)


@dataclass(frozen=True)
class Scope:
    """What the names of tables stand for, in a query or a subquery of it.

    Attributes:
        known: Tables by name: protected, public, or made by WITH.
        limits: The declared bounds, of all tables.
    """

    known: Mapping[str, Any]
    limits: Limits

    def within(self, clause: Any) -> Scope:
        """The names inside of a SELECT with a WITH, each of which the later ones may use.

        Raises:
            PlanError: A table cannot be made, or is made of itself.
        """
        scope = self
        if clause is not None and clause.args.get("recursive"):
            raise PlanError(f"{CALL}: WITH RECURSIVE has no end that is known beforehand; write the steps out.")
        for table in clause.expressions if clause is not None else ():
            made = scope.derived(table.this).renamed(table.args["alias"])
            scope = replace(scope, known={**_without(scope.known, table.args["alias"].this), table.alias: made})
        return scope

    def tables(self, select: Any) -> Tables:
        """The tables that a SELECT names.

        Raises:
            PlanError: There are none, or they cannot be read.
        """
        if not select.args.get("from_"):
            raise PlanError(f"{CALL}: FROM is missing; there are {', '.join(self.known)}.")
        first, joins = select.args["from_"].this, select.args.get("joins") or []
        where = select.args.get("where")
        tables = Tables(self.known, first, joins, self.derived, where=where)
        before = tables.movable
        return Tables(self.known, first, joins, self.derived, where=where, before=before) if before else tables

    def declared(self, tables: Tables, canonical: Any) -> Declared:
        """The bounds of their columns."""
        return Declared(self.limits, canonical, tables)

    def derived(self, node: Any) -> Derived:
        """The table that a subquery makes.

        Raises:
            PlanError: It cannot be read, or would let one record change many.
        """
        from sqlglot import exp

        kind = type(node).__name__
        if kind == "Subquery":
            _only(node, {"this", "alias", "with_"})
            return self.within(node.args.get("with_")).derived(node.this)
        if kind == "Table":
            joins = node.args.get("joins") or []
            alone = node.copy()
            alone.set("joins", None)
            whole = exp.Select(expressions=[exp.Star()], from_=exp.From(this=alone), joins=joins)
            return _Subquery.of(whole, self)
        if kind in ("Union", "Intersect", "Except"):
            _only(node, {"this", "expression", "distinct", "with_"})
            inner = self.within(node.args.get("with_"))
            return inner.derived(node.this).combined(inner.derived(node.expression), node)
        if kind != "Select":
            raise PlanError(f"{CALL}: {shown(node)} is no SELECT.")
        return _Subquery.of(node, self.within(node.args.get("with_")))


def _without(tables: Mapping[str, Any], identifier: Any) -> dict[str, Any]:
    """Tables that a table of WITH does not hide."""
    folded = identifier.name if identifier.args.get("quoted") else identifier.name.lower()
    return {name: table for name, table in tables.items() if name.lower() != folded and name != identifier.name}


def _only(node: Any, known: set[str]) -> None:
    unread = {name for name, value in node.args.items() if value} - known
    if unread & {"limit", "offset"}:
        raise PlanError(f"{CALL}: LIMIT in {shown(node)}: {FIRST}.")
    if unread - {"order"}:
        raise PlanError(f"{CALL}: {shown(node)}: {min(unread).strip('_').upper()} is not answered in a subquery.")


@dataclass
class _Subquery(Reads):
    """Reads one SELECT that makes a table."""

    @classmethod
    def of(cls, select: Any, scope: Scope) -> Derived:
        refuse_unread(select, "qualify")
        if select.args.get("limit") or select.args.get("offset"):
            raise PlanError(f"{CALL}: LIMIT in {shown(select)}: {FIRST}.")
        return cls(select, scope.tables(select), scope).table()

    def table(self) -> Derived:
        """Its rows, and what is known of their columns."""
        select = self.select.copy()
        select.set("expressions", [entry for item in select.expressions for entry in self._expanded(item)])
        self.select = select
        self.outputs = type(self.outputs)(select.expressions, self.tables.canonical)
        names = self._labels()
        self._windowed()
        self.group(self.selected)
        if self.sets:
            raise PlanError(f"{CALL}: {shown(self.select)}: a subquery groups by one set of keys; unite one SELECT for "
                            "each, UNION ALL.")  # fmt: skip
        having = self.select.args.get("having")
        items = [self.canonical(item) for item in self.selected]
        grouped = bool(self.groups) or having is not None or aggregates(items)
        rows = self._grouped(names, having) if grouped else self._each(names, items)
        if self.select.args.get("distinct"):
            rows = rows.distinct()
        reach = {name: self._reach(item, grouped=grouped) for name, item in zip(names, items, strict=True)}
        computed = [name for name, item in zip(names, items, strict=True) if not _passed(item, name, self.tables)]
        return Derived(rows, reach, frozenset(computed), self._degrees(names, having) if grouped else None)

    def _windowed(self) -> None:
        """Compute windows, as columns of the rows; keep the rows that QUALIFY takes.

        Raises:
            PlanError: They look beyond a person, or at groups.
        """
        from sqlglot import exp

        qualify = self.select.args.get("qualify")
        items = [self.outputs.in_expression(qualify.this)] if qualify is not None else []
        items = [self.canonical(item) for item in (*self.selected, *items)]
        windows = [part for item in items for part in item.find_all(exp.Window)]
        if not windows and qualify is None:
            return
        rows = self.filtered()
        if not windows or self.select.args.get("group") or not isinstance(rows, Collection):
            raise PlanError(f"{CALL}: {shown(self.select)}: {WITHIN_A_PERSON}, of records and not of groups.")
        rows, columns = computed(rows, windows, self.tables.translator.term)
        self.tables.windowed(rows, dict(columns.values()))

        def named(part: Any) -> Any:
            return exp.column(columns[part][0], table=WINDOWS, quoted=True) if part in columns else part

        items = [item.transform(named) for item in items]
        if qualify is not None:
            self.tables.base = rows.filter(self.tables.translator.condition(items.pop()).value)
        self.select.set("where", None)
        self.select.set("expressions", [
            exp.alias_(item, label(old, whole=True), quoted=True)
            for item, old in zip(items, self.select.expressions, strict=True)
        ])  # fmt: skip
        self.outputs = type(self.outputs)(self.select.expressions, self.tables.canonical)

    def _reach(self, item: Any, *, grouped: bool) -> Reach | None:
        """The range of a column: a group's mean and extremes are within that of its records."""
        inner = type(item.this).__name__ not in ("Distinct", "Star", "Case")
        if grouped and item not in self.groups:
            return self.declared.reach(item.this) if type(item).__name__ in WITHIN and inner else None
        return self.declared.reach(item)

    def _expanded(self, item: Any) -> list[Any]:
        """A star as the columns that it stands for."""
        kind = type(item).__name__
        if kind == "Star" or (kind == "Column" and type(item.this).__name__ == "Star"):
            if any(item.args.get(name) for name in ("except_", "replace", "rename")):
                raise PlanError(f"{CALL}: {shown(item)}: name the columns.")
            return self.tables.all_columns(item.args.get("table"))
        return [item]

    def _labels(self) -> list[str]:
        names = [label(item, whole=True) for item in self.select.expressions]
        folded = [name.lower() for name in names]
        twice = [name for index, name in enumerate(names) if folded[index] in folded[:index]]
        if twice:
            raise PlanError(f"{CALL}: two columns of a subquery are called {twice[0]}; name one with AS.")
        odd = [name for name in names if name == "*" or name.startswith("^")]
        if odd:
            raise PlanError(
                f"{CALL}: a column of a subquery is called {shown(odd[0])}, which Polars reads as a pattern."
            )
        return names

    def _each(self, names: Sequence[str], items: Sequence[Any]) -> Rows:
        """One record of each record."""
        terms = [self.tables.bare(item) if type(item).__name__ == "Column" else self.tables.translator.term(item)
                 for item in items]  # fmt: skip
        return self.filtered().map([_typed(term).alias(name) for term, name in zip(terms, names, strict=True)])

    def _grouped(self, names: Sequence[str], having: Any) -> Rows:
        """One record of each group."""
        items = [self.by_position(item) for item in self.selected]
        test = self.outputs.in_expression(having.this, self.groups) if having is not None else None
        condition = None if test is None else self.by_position(test)
        known = isinstance(self.tables.base, PublicRows) and bool(self.counts or self.numbers)
        if not self.groups and not known:
            raise PlanError(
                f"{CALL}: {shown(self.select)} is one row about all records; aggregate in the query itself, GROUP BY, "
                "or ask for a number first and write the one that was released."
            )
        keys = tuple(f"key {index}" for index in range(len(self.groups)))
        aggregated = {f"count {index}": node for index, node in enumerate(self.counts)}
        aggregated |= {f"number {index}": node for index, node in enumerate(self.numbers)}
        rows = self._gathered(keys, aggregated) if aggregated else self.filtered().map(self.keys(keys)).distinct()
        translate = self._translator(rows)
        if condition is not None:
            rows = rows.filter(translate.condition(condition).value)
        terms = [translate.term(item) if type(item).__name__ != "Column" else translate.resolve(item) for item in items]
        return rows.map([_typed(term).alias(name) for term, name in zip(terms, names, strict=True)])

    def _degrees(self, names: Sequence[str], having: Any) -> Degrees | None:
        """How records are counted by key, if that is all that is done."""
        alone = [type(count.this).__name__ for count in self.counts] == ["Star"] and not self.numbers
        if not alone or having is not None or self.select.args.get("distinct"):
            return None
        rows = self.filtered()
        if not isinstance(rows, Collection):
            return None
        selected = dict(zip(names, [self.by_position(item) for item in self.selected], strict=True))
        columns = {name: item.name for name, item in selected.items() if type(item).__name__ == "Column"}
        keys = tuple(f"key {position}" for position in range(len(self.groups)))
        counts = frozenset(name for name, position in columns.items() if position == "count 0")
        return Degrees(rows.map(self.keys(keys)), {name: columns[name] for name in columns.keys() - counts}, counts)

    def _gathered(self, keys: tuple[str, ...], aggregated: Mapping[str, Any]) -> Rows:
        """The keys of groups with their aggregates, each under its name."""
        rules = {name: group_value(node, self.tables.translator.term) for name, node in aggregated.items()}
        operands = list(dict.fromkeys(item for _, of, _ in rules.values() for item in of))
        terms = [_typed(self.tables.translator.term(item)) for item in operands]
        values = [term.alias(f"value {index}") for index, term in enumerate(terms)]
        read = self.filtered().map([*self.keys(keys), *values] or [lit(0).alias("all")])
        columns = [
            GroupColumn(name, rule, tuple(f"value {operands.index(item)}" for item in of), distinct)
            for name, (rule, of, distinct) in rules.items()
        ]
        if not isinstance(read, Collection):
            return read.aggregated(keys, columns)
        try:
            if [column.rule for column in columns] == ["Rows"]:
                return read.group_by(list(keys), len, {columns[0].name: Kind.INT}, whole=True)
            return read._then(group_columns(read._node, keys, columns))
        except PlanError as error:
            raise PlanError(
                f"{CALL}: GROUP BY in a subquery is of whole records, and weights are fractions here; protect with "
                "users(COLUMN, at_most=...), or ask without a subquery."
            ) from error

    def _translator(self, rows: Rows) -> Translator:
        """Translates what is computed from keys and aggregates of one group."""
        kinds = {item.name: item.kind for item in schema_of(rows)}

        def resolve(node: Any) -> Term:
            return Term(col(node.name), kinds[node.name], shown(node))

        return translator(resolve, CALL, spelled=plainly)


def _typed(term: Term) -> Node:
    """Its value; the bare word NULL is a text that is missing."""
    return term.value if term.kind is not None else lit(None, pl.String)


def _passed(item: Any, name: str, tables: Tables) -> bool:
    """Whether a column of a subquery is one of a given table, under its own name."""
    return type(item).__name__ == "Column" and item.name == name and not tables.computed(item)


def group_value(node: Any, term: Callable[[Any], Term]) -> tuple[str, tuple[Any, ...], bool]:
    """Read an aggregate: its rule, what it is of, as expressions over one record, and whether equal ones count once.

    Args:
        node: It, with canonical columns.
        term: Translates an expression over one record.

    Raises:
        PlanError: It is none that is computed of a group, or of values that it is not for.
    """
    rule, what = type(node).__name__, node.this
    if type(what).__name__ == "Star" and rule == "Count" and not node.expressions:
        return "Rows", (), False
    distinct = type(what).__name__ == "Distinct"
    operands = tuple(what.expressions) if distinct else (what,)
    more = {name for name, value in node.args.items() if value} - {"this", "big_int"}
    many = len(operands) != 1 and not (distinct and rule == "Count")
    if rule not in (*RULES, "Count") or more or many or (distinct and what.args.get("on")) or None in operands:
        raise PlanError(
            f"{CALL}: {plainly(node)} in a subquery: COUNT, SUM, AVG, MIN, MAX, MEDIAN, VARIANCE and STDDEV of one "
            "value are computed there, with DISTINCT or FILTER."
        )
    kind, ordered = term(operands[0]).kind, rule in ("Min", "Max")
    if rule != "Count" and (kind in (Kind.ANY, Kind.BOOL, None) or (not ordered and kind not in NUMBERS)):
        raise PlanError(f"{CALL}: {plainly(node)} takes numbers{', texts or times' if ordered else ''}; cast them.")
    return rule, operands, distinct
