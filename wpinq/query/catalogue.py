"""Which table an entry of FROM means: one that was given, one of WITH, or a subquery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wpinq.collection import Collection
from wpinq.core.functions.sql.bind import named
from wpinq.core.functions.sql.terms import shown
from wpinq.errors import PlanError
from wpinq.query.derived import CALL, Derived
from wpinq.query.joins import conjuncts

TABLE = {"this", "alias", "db", "catalog"}


@dataclass(frozen=True)
class Catalogue:
    """The tables of one SELECT.

    Attributes:
        given: What names of tables stand for.
        derive: Reads a subquery.
        schemas: The schema of each table whose schema was named, in small letters.
    """

    given: Mapping[str, Any]
    derive: Callable[[Any], Derived]
    schemas: dict[str, str] = field(default_factory=dict)

    def table(self, node: Any, place: int) -> tuple[str, Any]:
        """The name by which columns refer to an entry of FROM, and what it stands for.

        Raises:
            PlanError: It is no table and no subquery, or there is none of its name.
        """
        args = {name for name, value in node.args.items() if value}
        if type(node).__name__ == "Subquery" and args <= {"this", "alias", "with_"}:
            own, found = f"subquery {place}", self.derive(node)
        elif type(node).__name__ == "Table" and type(node.this).__name__ == "Identifier" and args <= TABLE:
            own, found = self._given(node)
        else:
            raise PlanError(
                f"{CALL}: {shown(node)} is no plain table and no subquery; functions of tables, samples and LATERAL "
                "look at many records. Filter, map and join in Python, and give the result as a table."
            )
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns") and not isinstance(found, Derived):
            raise PlanError(f"{CALL}: {shown(node)}: columns cannot be renamed here; use AS in the SELECT.")
        return node.alias or own, found.renamed(alias) if isinstance(found, Derived) else found

    def protected_first(self, first: Any, joins: list[Any], where: Any = None) -> tuple[Any, list[Any]]:
        """FROM and JOIN, with a protected table first: the order of tables changes no row of an inner join.

        RIGHT JOIN of two tables is LEFT JOIN in the other order.
        """
        if len(joins) == 1 and joins[0].text("side") == "RIGHT" and not joins[0].text("method"):
            other = joins[0].copy()
            other.set("this", first.copy())
            other.set("side", "LEFT")
            return joins[0].this, [other]
        if self._protected(first) or not any(self._protected(one.this) for one in joins):
            return first, joins
        if any(one.text("side") or one.text("method") or one.text("kind") == "CROSS" for one in joins):
            return first, joins
        if len(joins) > 1:
            return self._reordered([first, *(one.this for one in joins)], joins, where) or (first, joins)
        other = joins[0].copy()
        other.set("this", first.copy())
        return joins[0].this, [other]

    def _reordered(self, entries: list[Any], joins: list[Any], where: Any) -> tuple[Any, list[Any]] | None:
        """The first protected table, and joins of the others, each with the conditions that can be asked by then.

        Of inner joins ON says what WHERE would. A table comes once an equality of columns, that name their tables,
        leads to it; None where none does, or USING does not tell whose columns it means.
        """
        from sqlglot import exp

        asked = [part for one in joins if one.args.get("on") for part in conjuncts(one.args["on"])]
        led = [*asked, *(conjuncts(where.this) if where is not None else [])]
        reads = {id(part): {column.text("table").lower() for column in part.find_all(exp.Column)} for part in led}
        names = [_name(one) for one in entries]
        if (
            "" in names
            or any(one.args.get("using") for one in joins)
            or "" in {name for part in asked for name in reads[id(part)]}
        ):
            return None
        start = next(one for one in entries if self._protected(one))
        left, known, result = [one for one in entries if one is not start], {_name(start)}, []
        while left:
            found = next((one for one in left if any(_leads(part, known, _name(one)) for part in led)), None)
            if found is None:
                return None
            parts = [part for part in led if _leads(part, known, _name(found))]
            left.remove(found)
            known.add(_name(found))
            parts += [part for part in asked if reads[id(part)] <= known and part not in parts]
            asked = [part for part in asked if part not in parts]
            result.append(exp.Join(this=found.copy(), on=exp.and_(*parts, copy=True)))
        return None if asked else (start, result)

    def _protected(self, node: Any) -> bool:
        """Whether a table is protected, as far as its name says."""
        if type(node).__name__ != "Table" or type(node.this).__name__ != "Identifier":
            return True
        found = self._given(node)[1]
        return isinstance(found.rows if isinstance(found, Derived) else found, Collection)

    def _given(self, node: Any) -> tuple[str, Any]:
        """A table by its name. There is one of a name, whatever its schema, unless whole names were given."""
        schema = ".".join(part.name for part in (node.args.get("catalog"), node.args.get("db")) if part)
        whole = [name for name in self.given if schema and name.lower() == f"{schema}.{node.name}".lower()]
        if whole:
            own = node.name
        else:
            known = [name for name, one in self.given.items() if not (schema and isinstance(one, Derived))]
            own = named(node.this, known, CALL, "table")
        if schema and self.schemas.setdefault(own.lower(), schema.lower()) != schema.lower() and not whole:
            raise PlanError(
                f"{CALL}: {shown(node)}: two schemas have a table {own}, and one is given; give both by their whole "
                "names, as 'schema.table'."
            )
        return own, self.given[whole[0] if whole else own]


def _name(entry: Any) -> str:
    """What conditions call an entry of FROM."""
    return str(entry.alias_or_name).lower()


def _leads(part: Any, known: set[str], name: str) -> bool:
    """Whether a condition is an equality of what tables that are known hold and what another one holds."""
    from sqlglot import exp

    if type(part).__name__ != "EQ":
        return False
    one, other = (
        {column.text("table").lower() for column in side.find_all(exp.Column)} for side in (part.this, part.expression)
    )
    return ({name} in (one, other)) and bool(one and other) and (one | other) - {name} <= known and one != other
