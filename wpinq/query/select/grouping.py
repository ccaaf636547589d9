"""ROLLUP, CUBE and GROUPING SETS: groups by several sets of keys at once.

Each record is counted once for each set, with NULL for the keys that are not in the set, beside a number that tells
sets apart. So a query of n sets is a `concat` of n maps: one record moves n times as much, and the noise is that of n
queries which share epsilon. In one bin it moves no more than in one set, since sets differ in their number
(`core/plan/person_bound.py`); Gaussian noise grows with the square root of n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING, Any

from wpinq.core.functions.sql.terms import shown
from wpinq.errors import PlanError
from wpinq.query.select.derived import CALL

if TYPE_CHECKING:
    import polars as pl
    from sqlglot import exp

MOST = 64
"""Sets of one query."""
NAME = "grouping"
"""The column of the number that tells sets apart, as PostgreSQL's GROUPING of all keys: a bit for each, from the left,
that is 1 where the set lacks the key."""


def sets_of(clause: Any, key: Callable[[Any], Any]) -> tuple[list[Any], list[frozenset[Any]]]:
    """The keys of a GROUP BY, and the sets of them that are grouped by; no sets where there is one of all keys.

    Args:
        clause: The GROUP BY.
        key: Reads one key.

    Raises:
        PlanError: There are too many sets, two alike, or the clause has other parts.
    """
    if {name for name, value in clause.args.items() if value} != {"expressions"}:
        raise PlanError(
            f"{CALL}: {shown(clause)}: write GROUP BY with keys, ROLLUP (...), CUBE (...) or GROUPING SETS."
        )
    parts = [_sets(part, key) for part in clause.expressions]
    keys = list(dict.fromkeys(key for sets in parts for each in sets for key in each))
    if not any(_several(part) for part in clause.expressions):
        return keys, []
    many = prod(map(len, parts))
    if many > MOST:
        raise PlanError(f"{CALL}: {shown(clause)}: there are {many:,} sets of keys, and {MOST} are the most.")
    grouped_sets = [frozenset(key for each in chosen for key in each) for chosen in product(*parts)]
    if len(set(grouped_sets)) < len(grouped_sets):
        raise PlanError(f"{CALL}: {shown(clause)}: there are two sets of keys alike.")
    return keys, grouped_sets


def missing(keys: Sequence[Any], chosen: Iterable[Any]) -> int:
    """The number of a set: a bit for each key that it lacks, from the left."""
    return sum((key not in chosen) << (len(keys) - 1 - index) for index, key in enumerate(keys))


def insist_on_sets(keys: pl.DataFrame, sets: Sequence[int]) -> None:
    """Refuse keys that are in no set: they would be shown as groups in which nobody is.

    Raises:
        PlanError: The last value of a key is the number of no set, or a column that its set lacks is not NULL.
    """
    *columns, numbers = keys.get_columns()
    wrong = ~numbers.is_in(list(sets)).fill_null(False)
    for index, column in enumerate(columns):
        wrong |= column.is_not_null() & (numbers // (1 << (len(columns) - 1 - index)) % 2 == 1)
    if wrong.any():
        row = ", ".join("NULL" if value is None else str(value) for value in keys.filter(wrong).row(0))
        names = ", ".join(column.name for column in columns)
        raise PlanError(
            f"{CALL}(keys=...): ({row}) is no group of the query: a key ends in GROUPING({names}), here one of"
            f" {', '.join(map(str, sorted(sets)))}, and a column that is summed over is NULL."
        )


def grouping(node: Any, keys: Sequence[Any], column: exp.Expression) -> exp.Expression:
    """GROUPING(a, b), as PostgreSQL computes it: from the number of the set.

    Raises:
        PlanError: It is of something that is no key.
    """
    from sqlglot import exp

    result: exp.Expression = exp.Literal.number(0)
    for key in node.expressions:
        if key not in keys:
            raise PlanError(f"{CALL}: {shown(node)} is of keys of GROUP BY.")
        bit_value = exp.Literal.number(1 << (len(keys) - 1 - keys.index(key)))
        bit = exp.Mod(this=exp.Div(this=column.copy(), expression=bit_value), expression=exp.Literal.number(2))
        result = exp.Add(this=exp.Mul(this=result, expression=exp.Literal.number(2)), expression=bit)
    return result


def _several(part: Any) -> bool:
    return type(part).__name__ in ("Rollup", "Cube", "GroupingSets")


def _sets(part: Any, key: Callable[[Any], Any]) -> list[tuple[Any, ...]]:
    """The sets that one part of GROUP BY stands for."""
    kind, inner = type(part).__name__, part.expressions
    if kind == "GroupingSets":
        return [each for part in inner for each in (_sets(part, key) if _several(part) else [_together(part, key)])]
    if kind not in ("Rollup", "Cube"):
        return [(key(part),)]
    if len(inner) > (MOST.bit_length() if kind == "Cube" else MOST):
        raise PlanError(f"{CALL}: {shown(part)}: {MOST} sets of keys are the most.")
    units = [_together(unit, key) for unit in inner]
    if kind == "Rollup":
        chosen: Iterable[Sequence[tuple[Any, ...]]] = (units[:size] for size in range(len(units), -1, -1))
    else:
        chosen = (some for size in range(len(units), -1, -1) for some in combinations(units, size))
    return [tuple(key for unit in some for key in unit) for some in chosen]


def _together(part: Any, key: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Keys in one pair of parentheses."""
    if type(part).__name__ == "Tuple":
        return tuple(key(item) for item in part.expressions)
    return (key(part.this if type(part).__name__ == "Paren" else part),)
