"""Clauses of a SELECT: which ones are read, and those that are no expressions."""

from __future__ import annotations

from typing import Any

from wpinq.core.functions.sizes import copied
from wpinq.core.functions.sql.bind import statement
from wpinq.core.functions.sql.terms import shown, whole_number
from wpinq.errors import PlanError
from wpinq.query.derived import CALL

KNOWN = frozenset(
    ["expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_", "distinct"]
)
SAME = {
    **dict.fromkeys(("VAR", "ANON_VAR"), "Variance"),
    "VARP": "VariancePop",
    **dict.fromkeys(("STDEV", "ANON_STDDEV"), "Stddev"),
    "STDEVP": "StddevPop",
    **dict.fromkeys(("MEAN", "AVERAGE", "ANON_AVG"), "Avg"),
    "ANON_COUNT": "Count",
    "ANON_SUM": "Sum",
}
"""Aggregates by the names that other databases and libraries give them."""
INSTEAD = {
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
        kind = type(select).__name__
        word = str(select.name if kind == "Command" else kind).upper()
        raise PlanError(f"{CALL}: {word} is not answered here; write one SELECT.")
    refuse_unread(select)
    return select.transform(_meant).transform(_unfiltered)


def refuse_unread(select: Any) -> None:
    """Refuse a clause that is not read.

    Raises:
        PlanError: There is one.
    """
    for name in (name for name, value in select.args.items() if value and name not in KNOWN):
        clause = name.strip("_").upper()
        raise PlanError(f"{CALL}: {INSTEAD.get(name, f'{clause} is not answered here')}.")
    if (select.args.get("distinct") or select).args.get("on"):
        raise PlanError(f"{CALL}: DISTINCT ON takes a first record of many; write GROUP BY with MIN or MAX.")


def _meant(node: Any) -> Any:
    """An aggregate by the name that it has in PostgreSQL."""
    from sqlglot import exp

    kind = type(node).__name__
    if kind == "If" and type(node.parent).__name__ != "Case":
        return exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=node.args.get("false"))
    if kind == "Distinct" and [type(one).__name__ for one in node.expressions] == ["Tuple"]:
        return exp.Distinct(expressions=node.expressions[0].expressions)
    if kind == "EQ" and type(node.expression).__name__ == "Any":
        query = node.expression.this
        return exp.In(this=node.this, query=query) if isinstance(query, exp.Query) else node
    if kind == "ApproxDistinct" and not node.args.get("accuracy"):
        return exp.Count(this=exp.Distinct(expressions=[node.this]))
    if kind == "CountIf":
        return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=exp.Literal.number(1))]))
    if kind == "Anonymous" and str(node.name).upper() in SAME and len(node.expressions) == 1:
        return getattr(exp, SAME[str(node.name).upper()])(this=node.expressions[0])
    return node


def _unfiltered(node: Any) -> Any:
    """COUNT(x) FILTER (WHERE test) is COUNT(CASE WHEN test THEN x END), and so is every aggregate that skips NULL."""
    from sqlglot import exp

    if type(node).__name__ != "Filter" or node.find(exp.Window):
        return node
    aggregate, test = node.this.copy(), node.expression.this
    operand = next((entry for entry in aggregate.find_all(exp.Ordered, exp.Distinct)), aggregate)
    for item in operand.expressions or [operand.this]:
        value = exp.Literal.number(1) if type(item).__name__ == "Star" else item.copy()
        copied(test, CALL, lambda: shown(test))
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


def limits_of(select: Any) -> tuple[int, int | None]:
    """How many rows, after how many; without ORDER BY of rows in the order in which they are published.

    Raises:
        PlanError: They are no whole numbers.
    """
    return _whole(select.args.get("offset")) or 0, _whole(select.args.get("limit"))


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
