"""Clauses of a SELECT: which ones are read, and those that are no expressions."""

from __future__ import annotations

import re
from typing import Any

from wpinq.core.functions.sql.bind import statement
from wpinq.core.functions.sql.terms import shown, whole_number
from wpinq.core.functions.tree import copied
from wpinq.errors import PlanError
from wpinq.exact import exact
from wpinq.query.select.derived import CALL
from wpinq.query.select.frames import RANKS, SHIFTED, VALUES
from wpinq.query.select.google import google

KNOWN = frozenset(
    ["expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_", "distinct"]
)
SAME = {
    **dict.fromkeys(("VAR", "ANON_VAR", "ANON_VAR_WITH_BOUNDS"), "Variance"),
    **dict.fromkeys(("VARP", "ANON_VAR_POP"), "VariancePop"),
    **dict.fromkeys(("STD", "SD", "STDEV", "ANON_STDDEV", "ANON_STDDEV_WITH_BOUNDS"), "Stddev"),
    **dict.fromkeys(("STDEVP", "ANON_STDDEV_POP"), "StddevPop"),
    "ANON_MEDIAN": "Median",
    **dict.fromkeys(("MEAN", "AVERAGE", "ANON_AVG", "ANON_AVG_WITH_BOUNDS"), "Avg"),
    "ANON_COUNT": "Count",
    **dict.fromkeys(("ANON_SUM", "ANON_SUM_WITH_BOUNDS"), "Sum"),
}
"""Aggregates by the names that other databases and libraries give them."""
ROW = "row"
"""What a DISTINCT of a row is marked with, and how many of its first values are no part of it.

A row counts, whatever it holds; what is no part of it must not be NULL.
"""
SAFE = {"SafeAdd": "Add", "SafeSubtract": "Sub", "SafeMultiply": "Mul", "SafeDivide": "Div"}
"""Operations that give NULL where others raise, as all do here."""
MINUS = re.compile(r"\bMINUS\b(?=[\s(]+SELECT\b)", re.IGNORECASE)
"""EXCEPT, as Oracle and Snowflake call it."""
UNION = re.compile(r"\bUNION\s+ALL\b", re.IGNORECASE)
SELECTS = 64
"""Of one UNION ALL of answers, each of which is planned by itself."""
ALONE = (
    "keys=, loss= and at_most='auto' are of one SELECT, and not of a UNION ALL of answers: ask its SELECTs one by "
    "one, or give delta= instead of keys="
)
TOP = re.compile(
    r"\s*SELECT\s+(?:(?:ALL|DISTINCT)\s+)?(TOP\s*(?:(\d+)|\(\s*(\d+)\s*\)))\s+(PERCENT\b|WITH\b)?", re.IGNORECASE
)
"""TOP 10 of a query, which is LIMIT 10."""
INSTEAD = {
    "windows": "a window looks at other records",
    "qualify": "QUALIFY takes rows by a window, which looks at others; HAVING, or ORDER BY with LIMIT, is done with "
    "released numbers",
}


def branches(query: str) -> list[str] | None:
    """The SELECTs of a UNION ALL, each with the WITH of all; None where the query is none.

    Raises:
        PlanError: It has ORDER BY or LIMIT of all rows, or very many SELECTs.

    >>> branches("SELECT COUNT(*) FROM a UNION ALL SELECT COUNT(*) FROM b")
    ['SELECT COUNT(*) FROM a', 'SELECT COUNT(*) FROM b']
    """
    if not UNION.search(query):
        return None
    tree = statement(google(query).text, CALL)
    try:
        parts = _parts(tree)
    except RecursionError:
        parts = [tree] * (SELECTS + 1)
    if parts is None or len(parts) == 1:  # a UNION ALL in a subquery, for example
        return None
    if len(parts) > SELECTS:
        raise PlanError(f"{CALL}: a UNION ALL of answers has at most {SELECTS} SELECTs; ask for less at a time.")
    if tree.args.get("order") or tree.args.get("limit") or tree.args.get("offset"):
        raise PlanError(f"{CALL}: {shown(tree)}: order the rows of a UNION ALL that you were given; leave it out.")
    for part in parts:
        if tree.args.get("with_") is not None and part.args.get("with_") is None:
            part.set("with_", tree.args["with_"].copy())
    return [part.sql(dialect="postgres") for part in parts]


def _parts(node: Any) -> list[Any] | None:
    """The SELECTs that UNION ALL puts together; None where something else does."""
    kind = type(node).__name__
    if kind == "Subquery" and not ({name for name, value in node.args.items() if value} - {"this"}):
        return _parts(node.this)
    if kind == "Select":
        return [node.copy()]
    if kind != "Union" or node.args.get("distinct"):
        return None
    sides = [_parts(node.this), _parts(node.expression)]
    return None if sides[0] is None or sides[1] is None else [*sides[0], *sides[1]]


def plain_select(query: str) -> Any:
    """Parse one SELECT.

    Raises:
        PlanError: It is something else, or has a clause that is not answered.
    """
    query = MINUS.sub("EXCEPT", google(query).text)
    top = TOP.match(query)
    if top is not None:
        if top[4]:
            raise PlanError(f"{CALL}: {top[1]} {top[4]} is of other databases; write TOP 10, or LIMIT 10 at the end.")
        query = query[: top.start(1)] + " " * len(top[1]) + query[top.end(1) :]
    select = statement(query, CALL)
    if type(select).__name__ != "Select":
        kind = type(select).__name__
        word = str(select.name if kind == "Command" else kind).upper()
        if kind == "Union" and not select.args.get("distinct") and _parts(select) is not None:
            raise PlanError(f"{CALL}: {ALONE}.")
        if kind == "Union":
            raise PlanError(
                f"{CALL}: UNION of answers drops rows, and charges for each SELECT: ask them one by one, as UNION ALL "
                "does, or write UNION in a subquery and count that; totals beside their parts are GROUP BY ROLLUP."
            )
        raise PlanError(f"{CALL}: {word} is not answered here; write one SELECT.")
    refuse_unread(select)
    if top is not None:
        _limited(select, top[2] or top[3])
    return select.transform(meant).transform(_unfiltered)


def _limited(select: Any, most: str) -> None:
    """Show so many rows alone."""
    from sqlglot import exp

    if select.args.get("limit") is not None:
        raise PlanError(f"{CALL}: TOP and {shown(select.args['limit'])} both say how many rows; write one.")
    select.set("limit", exp.Limit(expression=exp.Literal.number(most)))


def named_tables(query: str) -> frozenset[str]:
    """What a query calls tables, anywhere in it, in small letters and without schemas.

    Raises:
        PlanError: See `plain_select`.

    >>> sorted(named_tables("SELECT COUNT(*) FROM a.Views JOIN (SELECT x FROM b) AS c ON Views.x = c.x"))
    ['b', 'views']
    """
    from sqlglot import exp

    selects = map(plain_select, branches(query) or [query])
    return frozenset(table.name.lower() for select in selects for table in select.find_all(exp.Table))


def refuse_unread(select: Any, *more: str) -> None:
    """Refuse a clause that is not read, beside those that are named.

    Raises:
        PlanError: There is one.
    """
    for name in (name for name, value in select.args.items() if value and name not in {*KNOWN, *more}):
        clause = name.strip("_").upper()
        raise PlanError(f"{CALL}: {INSTEAD.get(name, f'{clause} is not answered here')}.")
    if (select.args.get("distinct") or select).args.get("on"):
        raise PlanError(f"{CALL}: DISTINCT ON takes a first record of many; write GROUP BY with MIN or MAX.")


def meant(node: Any) -> Any:
    """An expression with the names that it has in PostgreSQL, down to its parts."""
    made = _renamed(node)
    return node if made is node else made.transform(meant, copy=False)


def _renamed(node: Any) -> Any:
    """An aggregate by the name that it has in PostgreSQL."""
    from sqlglot import exp

    kind = type(node).__name__
    if kind == "If" and type(node.parent).__name__ != "Case":
        return exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=node.args.get("false"))
    if kind == "Distinct" and [type(part).__name__ for part in node.expressions] == ["Tuple"]:
        row = exp.Distinct(expressions=node.expressions[0].expressions)
        row.meta[ROW] = 0
        return row
    if kind == "EQ" and type(node.expression).__name__ == "Any":
        query = node.expression.this
        return exp.In(this=node.this, query=query) if isinstance(query, exp.Query) else node
    if kind == "ApproxDistinct" and not node.args.get("accuracy"):
        return exp.Count(this=exp.Distinct(expressions=[node.this]))
    if kind == "AnyValue" and node.find_ancestor(exp.Subquery, exp.CTE) is not None:
        return exp.Min(this=node.this)  # which is one of them, and the same whatever the order of records
    if kind == "CountIf":
        return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=exp.Literal.number(1))]))
    called = str(node.name).upper() if kind == "Anonymous" else ""
    if called in SAME and len(node.expressions) == 1:
        return getattr(exp, SAME[called])(this=node.expressions[0])
    if called in ("ANON_PERCENTILE_CONT", "ANON_NTILE") and len(node.expressions) == 2:
        return _percentile(*node.expressions)
    if called in ("FORMAT_DATE", "FORMAT_DATETIME", "FORMAT_TIMESTAMP") and len(node.expressions) == 2:
        return exp.Anonymous(this="strftime", expressions=node.expressions[::-1])
    if kind == "DataType" and str(node.args.get("kind") or "").upper() == "FLOAT64":
        return exp.DataType.build("double")
    if kind in SAFE:
        first = exp.Cast(this=node.this, to=exp.DataType.build("double")) if kind == "SafeDivide" else node.this
        return getattr(exp, SAFE[kind])(this=exp.Paren(this=first), expression=exp.Paren(this=node.expression))
    if kind == "Bracket" and type(node.this).__name__ == "ApproxQuantiles":
        return _boundary(node)
    if kind == "PercentileCont" and node.expression is not None:
        return _percentile(node.this, node.expression)
    return node


def _boundary(node: Any) -> Any:
    """APPROX_QUANTILES(x, 4)[OFFSET(1)] is PERCENTILE_CONT(x, 0.25); without a place it is a list."""
    from sqlglot import exp

    place, many = node.expressions[0], node.this.args.get("expression")
    start = {"OFFSET": 0, "ORDINAL": 1}.get(str(place.name).upper()) if type(place).__name__ == "Anonymous" else None
    numbers = [many, *(place.expressions if start is not None else ())]
    if start is None or [type(number).__name__ for number in numbers] != ["Literal", "Literal"]:
        return node
    whole, index = (whole_number(number.this, 10**6) for number in numbers)
    if not whole or index is None or not 0 <= index - start <= whole:
        return node
    return _percentile(node.this.this, exp.Literal.number(str(exact(f"{index - start}/{whole}", CALL))))


def _percentile(what: Any, share: Any) -> Any:
    """PERCENTILE_CONT(x, 0.9) as PostgreSQL writes it."""
    from sqlglot import exp

    order = exp.Order(expressions=[exp.Ordered(this=what.copy())])
    return exp.WithinGroup(this=exp.PercentileCont(this=share.copy()), expression=order)


def _unfiltered(node: Any) -> Any:
    """COUNT(x) FILTER (WHERE test) is COUNT(CASE WHEN test THEN x END), and so is every aggregate that skips NULL.

    FIRST_VALUE, LAG and the like do not skip it: of these it is left, and refused.
    """
    from sqlglot import exp

    filtered = type(node).__name__ == "Filter" and type(node.this).__name__ not in (*RANKS, *SHIFTED, *VALUES)
    if not filtered or node.find(exp.Window):
        return node
    aggregate, test = node.this.copy(), node.expression.this
    operand = next((entry for entry in aggregate.find_all(exp.Ordered, exp.Distinct)), aggregate)
    if ROW in operand.meta:
        operand.set("expressions", [exp.Literal.number(1), *operand.expressions])
        operand.meta[ROW] = 1
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
