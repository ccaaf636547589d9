"""Conditions that ask for rows of another table: IN (SELECT ...), EXISTS and numbers of public tables.

A public table is known, so its values become constants of the query. Rows of a protected table decide on others: their
keys, each once (`map(keys).distinct()`), are joined by `join_rows`, and a record is kept with its key, or, for NOT
EXISTS, where that join finds nothing. So a record here moves 1, and a key that comes or goes moves what it has here,
for NOT EXISTS twice as much; where nothing bounds that it is refused. `join_rows` has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from wpinq.collection import Collection
from wpinq.core.functions.sql.terms import shown
from wpinq.core.functions.tree import col, none_null
from wpinq.core.operators.keys import owners_met
from wpinq.errors import PlanError
from wpinq.query.select.derived import CALL, Derived, Rows
from wpinq.query.select.joins import bare, conjuncts
from wpinq.query.select.public_rows import PublicRows

MOST = 100_000
"""Values of a list."""
KEY = "sought {}"
PLAIN = frozenset(["expressions", "from_", "joins", "where", "with_", "distinct"])


class Around(Protocol):
    """The tables of a query, around a condition or inside of one; `Tables` is it.

    Attributes:
        base: The rows.
    """

    base: Rows

    def has(self, node: Any) -> bool:
        """Whether a column, as it is written, is one of theirs, or of several of them."""

    def base_name(self, node: Any) -> str | None:
        """What a column of a protected table is called in the rows; None for anything else."""

    def written(self, name: str) -> Any:
        """A column of the rows, as a query would write it."""


@dataclass(frozen=True)
class Sought:
    """A condition that another table has a row.

    Attributes:
        text: How it is written.
        columns: What of the query's own row is compared, as it is written; none where the table itself decides.
        rows: The rows that it is compared with: a column for each of these.
        listed: Whether it is IN, which is NULL where nothing is equal and something is NULL, and not false.
        negated: Whether there must be no such row.
        led: How many of the last columns are owners, which a way to them adds: NULL is one of them.
    """

    text: str
    columns: tuple[Any, ...]
    rows: Derived
    listed: bool
    negated: bool
    led: int = 0


def sought(node: Any, tables: Around, scope: Any) -> Sought | None:
    """Read a condition; None where it is another one.

    Args:
        node: The condition.
        tables: Those of the query that it stands in.
        scope: What names of tables stand for.

    Raises:
        PlanError: Its query cannot be read, or asks for more than equal columns.
    """
    from sqlglot import exp

    node, text, negated = bare(node), shown(node), False
    while type(node).__name__ == "Not":
        node, negated = bare(node.this), not negated
    listed = isinstance(node, exp.In) and node.args.get("query") is not None
    if not listed and not isinstance(node, exp.Exists):
        return None
    query = node.args["query"] if listed else node
    select = query.this if type(query.this).__name__ == "Select" else None
    if select is None:
        columns = (node.this,) if listed else ()
        return Sought(text, columns, scope.derived(query if listed else query.this), listed, negated)
    select, pairs = _correlated(select.copy(), tables, scope)
    owners = _owners(select, tables, scope, pairs, node.this if listed else None)
    if not pairs and not owners and (listed or not _plain(select)):
        return Sought(text, (node.this,) if listed else (), scope.derived(select), listed, negated)
    if not _plain(select) or (listed and len(select.expressions) != 1):
        raise PlanError(f"{CALL}: {text}: of a query that names columns of the one around it, columns that are equal "
                        "and other conditions are read, without groups and LIMIT; aggregate in a subquery, and JOIN "
                        "it.")  # fmt: skip
    if listed:
        pairs.append((node.this, select.expressions[0]))
    pairs += owners
    keys = [exp.alias_(inner.unalias(), KEY.format(index), quoted=True) for index, (_, inner) in enumerate(pairs)]
    select.set("expressions", keys or [exp.alias_(exp.Literal.number(1), KEY.format(0), quoted=True)])
    return Sought(text, tuple(outer for outer, _ in pairs), scope.derived(select), listed, negated, len(owners))


def _owners(
    select: Any, tables: Around, scope: Any, pairs: list[tuple[Any, Any]], listed: Any
) -> list[tuple[Any, Any]]:
    """The owners that are compared too, where a key along a way to them is (`operators/keys.py`)."""
    from sqlglot import exp

    if listed is not None and len(select.expressions) == 1:
        pairs = [*pairs, (listed, select.expressions[0].unalias())]
    if not pairs or not _plain(select) or any(not isinstance(column, exp.Column) for pair in pairs for column in pair):
        return []
    inside = scope.within(select.args.get("with_")).tables(select)
    if not isinstance(tables.base, Collection) or not isinstance(inside.base, Collection):
        return []
    held = [(tables.base_name(outer), inside.base_name(inner)) for outer, inner in pairs]
    known = [(outer, inner) for outer, inner in held if outer is not None and inner is not None]
    met = owners_met(tables.base._node, inside.base._node, *zip(*known, strict=True)) if known else ()
    return [(tables.written(here), inside.written(there)) for here, there in met]


def _plain(select: Any) -> bool:
    from sqlglot import exp

    return {name for name, value in select.args.items() if value} <= PLAIN and not any(
        expression.find(exp.AggFunc) for expression in select.expressions
    )


def _correlated(select: Any, tables: Around, scope: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    """The query without its conditions on the row of the query around it, and the columns that these compare."""
    from sqlglot import exp

    where = select.args.get("where")
    if where is None:
        return select, []
    inside = scope.within(select.args.get("with_")).tables(select)
    conditions, pairs = [], []
    for part in conjuncts(where.this):
        read = [column for column in part.find_all(exp.Column) if column.find_ancestor(exp.Query) is select]
        if all(inside.has(column) or not tables.has(column) for column in read):
            conditions.append(part)
            continue
        sides = (
            sorted((part.this, part.expression), key=lambda side: _inside(inside, side))
            if type(part).__name__ == "EQ"
            else []
        )
        if not sides or _inside(inside, sides[0]) or not _inside(inside, sides[1]):
            raise PlanError(f"{CALL}: {shown(part)}: a query inside of another one compares a column of that by = "
                            "alone; JOIN the tables, and compare the columns in WHERE.")  # fmt: skip
        pairs.append((sides[0], sides[1]))
    select.set("where", exp.Where(this=exp.and_(*conditions)) if conditions else None)
    return select, pairs


def _inside(inside: Around, node: Any) -> bool:
    from sqlglot import exp

    return all(inside.has(column) for column in node.find_all(exp.Column))


def semi_joined(rows: Collection, condition: Sought, columns: Iterable[str | None]) -> Collection:
    """The records for which a protected table has a row, or has none.

    Args:
        rows: The records.
        condition: The condition.
        columns: What its columns are called in them; None where one is no column of a protected table.

    Raises:
        PlanError: Nothing bounds how many records a row of the other table decides on.
    """
    left = [name for name in columns if name is not None]
    if condition.listed and condition.negated:
        raise PlanError(f"{CALL}: {condition.text}: one NULL there would leave out all records here; write NOT EXISTS "
                        "(SELECT ... WHERE column = column), or LEFT JOIN and IS NULL.")  # fmt: skip
    right = condition.rows.rows.columns
    if not left or not len(left) == len(condition.columns) == len(right):
        raise PlanError(f"{CALL}: {condition.text} {_WHY}.")
    named = [KEY.format(index) for index in range(len(right))]
    written = len(named) - condition.led
    keys = condition.rows.rows.map([col(old).alias(new) for old, new in zip(right, named, strict=True)])
    keys = keys.filter(none_null(named[:written])).distinct()
    types = [[table._node.schema[name].kind.value for name in names] for table, names in ((rows, left), (keys, named))]
    if types[0] != types[1]:
        raise PlanError(f"{CALL}: {condition.text}: it compares {', '.join(types[0])} with {', '.join(types[1])}; "
                        "declare one type.")  # fmt: skip
    selected = [col(name) for name in rows.columns]
    try:
        if not condition.negated:
            known = rows.filter(none_null(left[:written]))
            return known.join_rows(keys, left=left, right=named).map(selected)
        pairs = rows.join_rows(keys, left=left, right=named, how="left")
    except PlanError as error:
        raise PlanError(f"{CALL}: {condition.text} {_WHY}.") from error
    names = {column.name: name for name, (side, column) in pairs._node.places.items() if side == 1}  # type: ignore[attr-defined]
    return pairs.filter(col(names[named[0]]).is_null()).map(selected)


_WHY = (
    "is a query over a protected table, and one record there could decide on any number here. Compare the column of "
    "the people, of a table that is protected with unit=wpinq.users(COLUMN, at_most=...); or of a subquery that has "
    "one row of that key; or take semijoin in Python and give the result as a table"
)


def constant(condition: Sought) -> Any:
    """A condition on a public table as one on a list of values.

    Raises:
        PlanError: They are too many, or of several columns.
    """
    from sqlglot import exp

    frame = condition.rows.rows.distinct().frame
    if not condition.columns:
        return exp.Boolean(this=bool(frame.height) != condition.negated)
    if frame.width != len(condition.columns) or frame.width > 1 or frame.height > MOST:
        raise PlanError(f"{CALL}: {condition.text}: one column of {MOST:,} values or fewer is compared here; JOIN the "
                        "table.")  # fmt: skip
    values = frame.to_series()
    if not condition.listed:
        values = values.drop_nulls()
    result: Any = exp.Boolean(this=False)
    if len(values):
        result = exp.In(this=condition.columns[0].copy(), expressions=[literal(value) for value in values])
    if not condition.listed:
        result = exp.Coalesce(this=result, expressions=[exp.Boolean(this=False)])
    return exp.Not(this=result) if condition.negated else result


def number(node: Any, derive: Callable[[Any], Derived]) -> Any:
    """(SELECT ...) of a public table as the value that it is.

    Raises:
        PlanError: It is of a protected table, or several values.
    """
    rows = derive(node).rows
    if not isinstance(rows, PublicRows):
        raise PlanError(f"{CALL}: {shown(node)} is a query of its own over a protected table, whose records would "
                        "decide on others; ask for a number first, and write the one that was released.")  # fmt: skip
    if rows.frame.width != 1 or rows.frame.height > 1:
        raise PlanError(f"{CALL}: {shown(node)}: one value is taken, and this has more rows or columns; aggregate.")
    return literal(rows.frame.item() if rows.frame.height else None)


def literal(value: Any) -> Any:
    """A value of a public table, as a query would write it."""
    from sqlglot import exp

    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, (int, float)):
        number = exp.Literal.number(abs(value))
        return number if value >= 0 else exp.Neg(this=number)
    return exp.Literal.string(str(value))
