"""Clauses of a SELECT: which ones are read, and those that are no expressions."""

from __future__ import annotations

from typing import Any

from wpinq.errors import PlanError
from wpinq.functions.sql.bind import statement
from wpinq.functions.sql.terms import shown, whole_number
from wpinq.query.tables import CALL

KNOWN = frozenset(["expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_"])
INSTEAD = {
    "distinct": "SELECT DISTINCT names records; write GROUP BY with COUNT(*)",
    "windows": "a window looks at other records",
    "qualify": "a window looks at other records",
}


def plain_select(query: str) -> Any:
    """Parse one SELECT.

    Raises:
        PlanError: It is something else, or has a clause that is not answered.
    """
    select = statement(query, CALL)
    if type(select).__name__ != "Select":
        raise PlanError(f"{CALL}: {type(select).__name__.upper()} is not answered; write one SELECT.")
    refuse_unread(select)
    return select.transform(_unfiltered)


def refuse_unread(select: Any, *, subquery: bool = False) -> None:
    """Refuse a clause that is not read.

    Raises:
        PlanError: There is one.
    """
    known = KNOWN | {"distinct"} if subquery else KNOWN
    for name in (name for name, value in select.args.items() if value and name not in known):
        clause = name.strip("_").upper()
        raise PlanError(f"{CALL}: {INSTEAD.get(name, f'{clause} is not answered here')}.")
    if subquery and (select.args.get("distinct") or select).args.get("on"):
        raise PlanError(f"{CALL}: DISTINCT ON takes a first record of many; write GROUP BY with MIN or MAX.")


def _unfiltered(node: Any) -> Any:
    """COUNT(x) FILTER (WHERE test) is COUNT(CASE WHEN test THEN x END), and so is every aggregate that skips NULL."""
    from sqlglot import exp

    if type(node).__name__ != "Filter" or node.find(exp.Window):
        return node
    aggregate, test = node.this.copy(), node.expression.this
    operand = next((entry for entry in aggregate.find_all(exp.Ordered, exp.Distinct)), aggregate)
    for item in operand.expressions or [operand.this]:
        value = exp.Literal.number(1) if type(item).__name__ == "Star" else item.copy()
        item.replace(exp.Case(ifs=[exp.If(this=test.copy(), true=value)]))
    return aggregate


def label(node: Any, *, whole: bool) -> str:
    """What PostgreSQL would call a column of the answer; a count of weights that are no whole numbers is none."""
    from sqlglot import exp

    if type(node).__name__ in ("Alias", "Column"):
        return str(node.alias_or_name)
    if type(node).__name__ == "Count" and not whole:
        return "weighted_sum"
    inner = node.this if isinstance(node, exp.WithinGroup) else node
    return str(inner.sql_name()).lower() if isinstance(inner, exp.AggFunc) else type(inner).__name__.lower()


def limits_of(select: Any, ordered: bool) -> tuple[int, int | None]:
    """How many rows, after how many.

    Raises:
        PlanError: There is no order, or they are no whole numbers.
    """
    limit, offset = select.args.get("limit"), select.args.get("offset")
    if (limit or offset) and not ordered:
        raise PlanError(
            f"{CALL}: {shown(limit or offset)}: without an order these would be any rows; write ORDER BY before "
            "it, such as ORDER BY 2 DESC. It is done with released numbers and costs nothing."
        )
    return _whole(offset) or 0, _whole(limit)


def _whole(clause: Any) -> int | None:
    if clause is None:
        return None
    node = clause.args.get("count" if type(clause).__name__ == "Fetch" else "expression")
    how = clause.args.get("limit_options")
    if how is not None and (how.args.get("percent") or how.args.get("with_ties")):
        raise PlanError(f"{CALL}: {shown(clause)}: write FETCH FIRST 10 ROWS ONLY, or LIMIT 10.")
    if type(clause).__name__ == "Fetch" and node is None:
        return 1
    if type(node).__name__ == "Var" and node.name.upper() == "ALL":
        return None
    written = type(node).__name__ == "Literal" and not node.is_string
    number = whole_number(node.this, 2**31) if written else None
    if number is None:
        raise PlanError(f"{CALL}: {shown(clause)}: write a whole number.")
    return number
