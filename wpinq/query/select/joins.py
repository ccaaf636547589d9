"""Joins of protected tables in a query: rows are counted where both sides bound how many a person has.

JOIN and LEFT JOIN are `join_rows`, whose docstring has the proof. A NULL equals nothing in SQL, and None equals None in
a join, so keys that are NULL are taken out of one side before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wpinq.collection import Collection
from wpinq.core.functions.sql.terms import shown
from wpinq.core.functions.tree import none_null
from wpinq.core.operators.join_rows import JoinRows
from wpinq.core.operators.keys import owners_met
from wpinq.core.plan.node import sources
from wpinq.errors import PlanError
from wpinq.query.select.derived import CALL

WHY = (
    "joins two protected tables, and one record could be in any number of rows. Join ON the column of the people that "
    "both protect with unit=wpinq.users(COLUMN, at_most=...), of people in one period on the column of the time too, "
    "and as many others as you like; or weigh pairs, with collection.join in Python, and give the result as a table"
)

UNBOUNDED = (
    "joins protected tables, and {0!r} keeps any number of records of each person; at_most='auto' chooses none for a "
    "join. Give a number: at_most={{{0!r}: 10}}, on a command line --at-most"
)


def bare(node: Any) -> Any:
    """An expression without the parentheses around it."""
    while type(node).__name__ == "Paren":
        node = node.this
    return node


def conjuncts(condition: Any) -> list[Any]:
    """The conditions that all must be true."""
    condition = bare(condition)
    if type(condition).__name__ != "And":
        return [condition]
    return [part for operand in condition.flatten() for part in conjuncts(operand)]


def required(condition: Any) -> list[Any]:
    """The same, and of an alternative (`a AND b OR a AND c`) what all of its cases ask for."""
    result = conjuncts(condition)
    for part in list(result):
        if type(part).__name__ == "Or":
            first, *others = [conjuncts(case) for case in part.flatten()]
            result += [common for common in first if all(common in case for case in others)]
    return result


def equalities(node: Any) -> list[tuple[Any, Any]]:
    """The sides of the equalities of columns that a condition is made of; nothing where it is another condition."""
    node = bare(node)
    if type(node).__name__ == "And":
        left, right = equalities(node.this), equalities(node.expression)
        return [*left, *right] if left and right else []
    if type(node).__name__ != "EQ" or {type(side).__name__ for side in (node.this, node.expression)} != {"Column"}:
        return []
    return [(node.this, node.expression)]


def implied(where: Any, tables: Callable[[Any], set[str]], alias: str, join: Any) -> Any:
    """The equalities in WHERE by which FROM a, b is a join.

    Args:
        where: The clause.
        tables: Which tables an expression reads.
        alias: The table that is joined.
        join: How it is written.

    Raises:
        PlanError: There are none, so each row would meet every other.
    """
    from sqlglot import exp

    equal = []
    for part in [] if where is None else required(where.this):
        if type(part).__name__ != "EQ":
            continue
        try:
            sides = [tables(side) for side in (part.this, part.expression)]
        except PlanError:  # of a table that comes later
            continue
        if sorted(map(len, sides)) == [1, 1] and sides.count({alias}) == 1:
            equal.append(part)
    if not equal:
        raise PlanError(
            f"{CALL}: {shown(join)}: only JOIN and LEFT JOIN, each ON an equality, make no row that no record stands "
            "for; write the equality in ON, or in WHERE with AND."
        )
    return exp.and_(*equal)


def paired(
    ours: Collection, theirs: Collection, keys: Sequence[tuple[str, str]], join: Any
) -> tuple[Collection, dict[str, str]]:
    """The rows of a join of two protected tables, and what the columns of the second are called in them.

    Args:
        ours: What the query read so far.
        theirs: The other table.
        keys: The columns that are equal, here and there.
        join: How it is written.

    Raises:
        PlanError: Nothing bounds the rows of one person, or types of keys differ.
    """
    left, right = ([pair[side] for pair in keys] for side in (0, 1))
    for left_key, right_key in keys:
        kinds = [table._node.schema[name].kind.value for table, name in ((ours, left_key), (theirs, right_key))]
        if kinds[0] != kinds[1]:
            raise PlanError(
                f"{CALL}: {shown(join)}: {left_key} is {kinds[0]} and {right_key} is {kinds[1]}; declare one type."
            )
    known = [none_null(side) for side in (left, right)]
    keys = [*keys, *owners_met(ours._node, theirs._node, left, right)]
    left, right = ([pair[side] for pair in keys] for side in (0, 1))
    outer = join.text("side") == "LEFT"
    try:
        ours, how = (ours, "left") if outer else (ours.filter(known[0]), "inner")
        rows = ours.join_rows(theirs.filter(known[1]), left=left, right=right, how=how)
    except PlanError as error:
        many = [data for side in (ours, theirs) for data in sources(side._node) if data.unit.whole]
        why = UNBOUNDED.format(many[0].name) if many else WHY
        raise PlanError(f"{CALL}: {shown(join)} {why}.") from error
    assert isinstance(rows._node, JoinRows)  # noqa: S101  what `join_rows` makes without a result
    names = {column.name: name for name, (side, column) in rows._node.places.items() if side == 1}
    return rows, names if outer else {**names, **{right_key: left_key for left_key, right_key in keys}}
