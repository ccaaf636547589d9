"""Aggregates of the records of one group, computed exactly: columns of a subquery, which are no answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import fsum, sqrt
from typing import Any

from wpinq.errors import PlanError
from wpinq.functions.sql.terms import NUMBERS, Term
from wpinq.query.derived import CALL, plainly
from wpinq.records.schema import Kind

LARGEST = 2**63 - 1


@dataclass(frozen=True)
class GroupColumn:
    """An aggregate in a subquery.

    Attributes:
        rule: What is computed; a name in `RULES`.
        operands: What it is of, as expressions over one record; none for COUNT(*).
        distinct: Whether equal values count once.
        kind: The type of the result.
    """

    rule: str
    operands: tuple[Any, ...]
    distinct: bool
    kind: Kind


def group_column(node: Any, term: Callable[[Any], Term]) -> GroupColumn:
    """Read an aggregate.

    Args:
        node: It, with canonical columns.
        term: Translates an expression over one record.

    Raises:
        PlanError: It is none that is computed of a group, or of values that it is not for.
    """
    rule, what = type(node).__name__, node.this
    if type(what).__name__ == "Star" and rule == "Count":
        return GroupColumn("Rows", (), False, Kind.INT)
    distinct = type(what).__name__ == "Distinct"
    operands = tuple(what.expressions) if distinct else (what,)
    more = {name for name, value in node.args.items() if value} - {"this", "big_int"}
    many = len(operands) != 1 and not (distinct and rule == "Count")
    if rule not in RULES or more or many or (distinct and what.args.get("on")) or None in operands:
        raise PlanError(
            f"{CALL}: {plainly(node)} in a subquery: COUNT, SUM, AVG, MIN, MAX, MEDIAN, VARIANCE and STDDEV of one "
            "value are computed there, with DISTINCT or FILTER."
        )
    kind = term(operands[0]).kind
    if rule == "Count":
        return GroupColumn(rule, operands, distinct, Kind.INT)
    ordered = rule in ("Min", "Max")
    if kind in (Kind.ANY, Kind.BOOL, None) or (not ordered and kind not in NUMBERS):
        raise PlanError(f"{CALL}: {plainly(node)} takes numbers{', texts or times' if ordered else ''}; cast them.")
    return GroupColumn(rule, operands, distinct, kind if ordered or rule == "Sum" else Kind.FLOAT)


def reducer(columns: Sequence[GroupColumn], places: Sequence[tuple[int, ...]]) -> Callable[[Any], Any]:
    """A function of a group, a tuple of records: the values of these columns, of which it reads these places."""
    if [one.rule for one in columns] == ["Rows"]:
        return len
    asked = tuple((one.rule, one.distinct, at) for one, at in zip(columns, places, strict=True))

    def reduce(group: tuple[tuple[Any, ...], ...]) -> Any:
        found = tuple(of_group(group, *one) for one in asked)
        return found[0] if len(found) == 1 else found

    return reduce


def of_group(group: Sequence[tuple[Any, ...]], rule: str, distinct: bool, at: tuple[int, ...]) -> Any:
    """One aggregate of a group; NULL where there is nothing to compute it of, or the result is no number."""
    if rule == "Rows":
        return len(group)
    rows = [tuple(record[place] for place in at) for record in group]
    rows = [row for row in rows if None not in row]
    if distinct:
        rows = sorted(set(rows))
    try:
        found = RULES[rule]([row[0] for row in rows])
    except (ArithmeticError, ValueError):
        return None
    return None if isinstance(found, int) and abs(found) > LARGEST else found


def _sum(values: Sequence[Any]) -> Any:
    if not values:
        return None
    return sum(values) if all(isinstance(value, int) for value in values) else fsum(values)


def _mean(values: Sequence[Any]) -> Any:
    return fsum(values) / len(values) if values else None


def _median(values: Sequence[Any]) -> Any:
    ordered, half = sorted(values), len(values) // 2
    return (
        None if not ordered else _mean(ordered[half : half + 1] if len(ordered) % 2 else ordered[half - 1 : half + 1])
    )


def _spread(values: Sequence[Any], *, sample: bool) -> Any:
    count = len(values) - sample
    if count < 1:
        return None
    mean = _mean(values)
    return fsum((value - mean) ** 2 for value in values) / count


def _root(values: Sequence[Any], *, sample: bool) -> Any:
    found = _spread(values, sample=sample)
    return None if found is None else sqrt(found)


def _least(values: Sequence[Any]) -> Any:
    return min(values, default=None)


def _largest(values: Sequence[Any]) -> Any:
    return max(values, default=None)


RULES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "Rows": len,
    "Count": len,
    "Sum": _sum,
    "Avg": _mean,
    "Min": _least,
    "Max": _largest,
    "Median": _median,
    "Variance": partial(_spread, sample=True),
    "VariancePop": partial(_spread, sample=False),
    "Stddev": partial(_root, sample=True),
    "StddevSamp": partial(_root, sample=True),
    "StddevPop": partial(_root, sample=False),
}
