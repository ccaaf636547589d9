"""Which table an entry of FROM means: one that was given, one of WITH, or a subquery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wpinq.collection import Collection
from wpinq.core.functions.sql.bind import named
from wpinq.core.functions.sql.terms import shown
from wpinq.errors import PlanError
from wpinq.query.select.derived import CALL, Derived
from wpinq.query.select.joins import conjuncts, required
from wpinq.query.select.public_rows import PublicRows, public_rows

TABLE = {"this", "alias", "db", "catalog"}


@dataclass(frozen=True)
class Catalogue:
    """The tables of one SELECT.

    Attributes:
        tables: What names of tables stand for.
        derive: Reads a subquery.
        schemas: The schema of each table whose schema was named, in small letters.
    """

    tables: Mapping[str, Any]
    derive: Callable[[Any], Derived]
    schemas: dict[str, str] = field(default_factory=dict)
    _read: dict[int, tuple[Any, PublicRows]] = field(default_factory=dict)

    def table(self, node: Any, number: int) -> tuple[str, Any]:
        """The name by which columns refer to an entry of FROM, and what it stands for.

        Raises:
            PlanError: It is no table and no subquery, or there is none of its name.
        """
        args = {name for name, value in node.args.items() if value}
        if type(node).__name__ == "Subquery" and args <= {"this", "alias", "with_"}:
            name, source = f"subquery {number}", self.derive(node)
        elif type(node).__name__ == "Table" and type(node.this).__name__ == "Identifier" and args <= TABLE:
            name, source = self._by_name(node)
        else:
            raise PlanError(
                f"{CALL}: {shown(node)} is no plain table and no subquery; functions of tables, samples and LATERAL "
                "look at many records. Filter, map and join in Python, and give the result as a table."
            )
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns") and not isinstance(source, Derived):
            raise PlanError(f"{CALL}: {shown(node)}: columns cannot be renamed here; use AS in the SELECT.")
        return node.alias or name, source.renamed(alias) if isinstance(source, Derived) else source

    def public(self, table: Any, name: str) -> PublicRows:
        """The rows of a public table, which are read once; see `public_rows`."""
        if id(table) not in self._read:
            self._read[id(table)] = table, public_rows(table, name)  # held, so that no other table has its id
        return self._read[id(table)][1]

    def protected_first(self, first: Any, joins: list[Any], where: Any = None) -> tuple[Any, list[Any]]:
        """FROM and JOIN, with a protected table first: the order of tables changes no row of an inner join.

        RIGHT JOIN of two tables is LEFT JOIN in the other order.
        """
        if len(joins) == 1 and joins[0].text("side") == "RIGHT" and not joins[0].text("method"):
            other = joins[0].copy()
            other.set("this", first.copy())
            other.set("side", "LEFT")
            return joins[0].this, [other]
        if self._protected(first) or not any(self._protected(join.this) for join in joins):
            return first, joins
        if any(join.text("side") or join.text("method") or join.text("kind") == "CROSS" for join in joins):
            return first, joins
        if len(joins) > 1:
            return self._reordered([first, *(join.this for join in joins)], joins, where) or (first, joins)
        other = joins[0].copy()
        other.set("this", first.copy())
        return joins[0].this, [other]

    def _reordered(self, entries: list[Any], joins: list[Any], where: Any) -> tuple[Any, list[Any]] | None:
        """The first protected table, and joins of the others, each with the conditions that can be asked by then.

        Of inner joins ON says what WHERE would. A table comes once an equality of columns leads to it; None where none
        does, or where it is not known whose columns are meant (USING, columns of subqueries without their table).
        """
        from sqlglot import exp

        written = [part for join in joins if join.args.get("on") for part in conjuncts(join.args["on"])]
        asked = required(where.this) if where is not None else []
        if any(not column.text("table") for part in [*written, *asked] for column in part.find_all(exp.Column)):
            owners = self._owners(entries)
            written, asked = ([part.transform(_of_table, owners) for part in parts] for parts in (written, asked))
        conditions, led = written, [*written, *asked]
        reads = {id(part): {column.text("table").lower() for column in part.find_all(exp.Column)} for part in led}
        names = [_name(entry) for entry in entries]
        if (
            "" in names
            or any(join.args.get("using") for join in joins)
            or "" in {name for part in conditions for name in reads[id(part)]}
        ):
            return None
        start = next(entry for entry in entries if self._protected(entry))
        left, known, result = [entry for entry in entries if entry is not start], {_name(start)}, []
        while left:
            following = next((entry for entry in left if any(_leads(part, known, _name(entry)) for part in led)), None)
            if following is None:
                return None
            parts = [part for part in led if _leads(part, known, _name(following))]
            left.remove(following)
            known.add(_name(following))
            parts += [part for part in conditions if reads[id(part)] <= known and part not in parts]
            conditions = [part for part in conditions if part not in parts]
            result.append(exp.Join(this=following.copy(), on=exp.and_(*parts, copy=True)))
        return None if conditions else (start, result)

    def _owners(self, entries: list[Any]) -> dict[str, str]:
        """Columns that one entry of FROM has alone, and its name; none where columns of an entry are unknown."""
        if any(type(entry).__name__ != "Table" for entry in entries):
            return {}
        result: dict[str, list[str]] = {}
        for entry in entries:
            table = self._by_name(entry)[1]
            rows = table.rows if isinstance(table, Derived) else table
            led = brought(rows)
            for name in (rows if isinstance(rows, Collection) else self.public(rows, _name(entry))).columns:
                if name != led:
                    result.setdefault(name.lower(), []).append(_name(entry))
        return {name: alone[0] for name, alone in result.items() if len(alone) == 1}

    def _protected(self, node: Any) -> bool:
        """Whether a table is protected, as far as its name says."""
        if type(node).__name__ != "Table" or type(node.this).__name__ != "Identifier":
            return True
        table = self._by_name(node)[1]
        return isinstance(table.rows if isinstance(table, Derived) else table, Collection)

    def _by_name(self, node: Any) -> tuple[str, Any]:
        """A table by its name. There is one of a name, whatever its schema, unless whole names were given."""
        schema = ".".join(part.name for part in (node.args.get("catalog"), node.args.get("db")) if part)
        whole = [name for name in self.tables if schema and name.lower() == f"{schema}.{node.name}".lower()]
        if whole:
            called = node.name
        else:
            known = [name for name, table in self.tables.items() if not (schema and isinstance(table, Derived))]
            called = named(node.this, known, CALL, "table")
        if schema and self.schemas.setdefault(called.lower(), schema.lower()) != schema.lower() and not whole:
            raise PlanError(
                f"{CALL}: {shown(node)}: two schemas have a table {called}, and one is given; give both by their whole "
                "names, as 'schema.table'."
            )
        return called, self.tables[whole[0] if whole else called]


def brought(rows: Any) -> str | None:
    """The owner that a way brings to a table: without a table, such a column is meant of another."""
    people = rows._node.bounds_units if isinstance(rows, Collection) else None
    return str(people.unit.column) if people is not None and people.unit.way else None


def _name(entry: Any) -> str:
    """What conditions call an entry of FROM."""
    return str(entry.alias_or_name).lower()


def _of_table(node: Any, owners: Mapping[str, str]) -> Any:
    """A column with the table that has it alone."""
    from sqlglot import exp

    if not isinstance(node, exp.Column) or node.text("table") or node.name.lower() not in owners:
        return node
    return exp.column(node.this.copy(), table=owners[node.name.lower()])


def _leads(part: Any, known: set[str], name: str) -> bool:
    """Whether a condition is an equality of what tables that are known hold and what another one holds."""
    from sqlglot import exp

    if type(part).__name__ != "EQ":
        return False
    left, right = (
        {column.text("table").lower() for column in side.find_all(exp.Column)} for side in (part.this, part.expression)
    )
    return ({name} in (left, right)) and bool(left and right) and (left | right) - {name} <= known and left != right
