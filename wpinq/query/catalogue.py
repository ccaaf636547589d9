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

    def protected_first(self, first: Any, joins: list[Any]) -> tuple[Any, list[Any]]:
        """FROM and JOIN, with a protected table first: the order of two tables changes no row of an inner join.

        RIGHT JOIN of two tables is LEFT JOIN in the other order.
        """
        if len(joins) == 1 and joins[0].text("side") == "RIGHT" and not joins[0].text("method"):
            other = joins[0].copy()
            other.set("this", first.copy())
            other.set("side", "LEFT")
            return joins[0].this, [other]
        if len(joins) != 1 or joins[0].text("side") or joins[0].text("method") or joins[0].text("kind") == "CROSS":
            return first, joins
        if self._protected(first) or not self._protected(joins[0].this):
            return first, joins
        other = joins[0].copy()
        other.set("this", first.copy())
        return joins[0].this, [other]

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
