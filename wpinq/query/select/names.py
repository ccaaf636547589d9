"""Resolve names in each clause of a SELECT, by PostgreSQL's rules.

An output name is a name of a column of the answer: an alias, or the name of a column that is selected as it is.

- GROUP BY x: the column x of the tables; only where there is none, the output name x.
- ORDER BY x: the output name x; only where there is none, the column x.
- HAVING, and expressions in ORDER BY: the column x. PostgreSQL refuses an output name there; here it is taken where no
  column has the name, and in HAVING where no group key reads the column, which changes no answer that PostgreSQL gives.

Names that are not in double quotes are compared in lower case.
Source: PostgreSQL manual, SELECT, "GROUP BY clause" and "ORDER BY clause".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wpinq.core.functions.sql.terms import shown
from wpinq.core.functions.tree import copied
from wpinq.errors import PlanError
from wpinq.query.select.derived import CALL

NAMED = ("Count", "Sum", "Avg", "Min", "Max")
"""Aggregates whose column PostgreSQL names like the function."""


class OutputNames:
    """The names of a SELECT's columns, and what a name stands for in each clause.

    Args:
        selected: The columns.
        canonical: A column of the tables by its canonical name; None where they have none of the name.
    """

    def __init__(self, selected: list[Any], canonical: Callable[[Any], Any]) -> None:
        self._canonical = canonical
        self._meant: dict[str, list[Any]] = {}
        for item in selected:
            name = _output_name(item)
            meant = item.this if type(item).__name__ == "Alias" else item
            if name is not None and meant not in self._meant.setdefault(name, []):
                self._meant[name].append(meant)

    def in_group_by(self, node: Any) -> Any:
        """A part of GROUP BY, with output names replaced by what they stand for."""
        return self._output(node) if self._free(node) else node

    def in_order_by(self, node: Any) -> Any:
        """A part of ORDER BY, with output names replaced by what they stand for."""
        if _is_name(node):
            return self._output(node)
        return self.in_expression(node)

    def in_expression(self, node: Any, grouped: Sequence[Any] | None = None) -> Any:
        """HAVING, or an expression of ORDER BY, with output names that hide no column replaced.

        Args:
            node: The expression.
            grouped: Of HAVING, the group keys: a column that none of them reads means nothing there.
        """
        from sqlglot import exp

        read = [column for key in grouped or () for column in key.find_all(exp.Column)]

        def hides_none(part: Any) -> bool:
            if grouped is None or not _is_name(part) or part.find_ancestor(exp.AggFunc, exp.WithinGroup) is not None:
                return self._free(part)
            return self._canonical(part) not in read

        return node.transform(lambda part: self._output(part) if hides_none(part) else part)

    def in_ends(self, node: Any) -> Any:
        """A column of the answer, in which DP_INTERVAL_LOW(n) is of what n stands for."""

        def ended(part: Any) -> Any:
            if type(part).__name__ != "Anonymous" or not part.name.upper().startswith("DP_INTERVAL_"):
                return part
            result = part.copy()
            result.set("expressions", [self.in_order_by(item) for item in part.expressions])
            return result

        return node.transform(ended)

    def _free(self, node: Any) -> bool:
        """Whether it is a name that no column has."""
        return _is_name(node) and self._canonical(node) is None

    def _output(self, node: Any) -> Any:
        """What the output name stands for; the node itself where there is no such output name.

        Raises:
            PlanError: Several columns of the answer have the name.
        """
        meant = self._meant.get(_folded(node.this), [node])
        if len(meant) > 1:
            raise PlanError(f"{CALL}: {shown(node)} names several columns of the answer; give them different names.")
        if meant[0] is not node:
            copied(meant[0], CALL, lambda: shown(node))
        return meant[0]


def _is_name(node: Any) -> bool:
    return type(node).__name__ == "Column" and not node.args.get("table") and type(node.this).__name__ == "Identifier"


def _folded(identifier: Any) -> str:
    """A name as PostgreSQL compares it."""
    return str(identifier.name) if identifier.args.get("quoted") else str(identifier.name).lower()


def _output_name(node: Any) -> str | None:
    kind = type(node).__name__
    if kind == "Alias":
        return _folded(node.args["alias"])
    if kind == "Column" and type(node.this).__name__ == "Identifier":
        return _folded(node.this)
    return kind.lower() if kind in NAMED else None
