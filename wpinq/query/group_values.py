"""Aggregates of the records of one group, computed exactly: columns of a subquery, which are no answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wpinq.core.functions.sql.terms import NUMBERS, Term
from wpinq.core.operators.group_columns import RULES
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.query.derived import CALL, plainly


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
