"""A SELECT over the answer of another: `SELECT n FROM (SELECT page, COUNT(*) AS n ... GROUP BY page) WHERE n > 50`.

Where it counts nothing itself, it looks at released numbers alone: its WHERE is HAVING of the inner one, and its
columns are expressions over the columns of that. So both are read as one query. A subquery that is counted again is
another matter: its rows are never released.
"""

from __future__ import annotations

from typing import Any

from wpinq.query.select.clauses import label

OUTER = frozenset(["expressions", "from_", "where", "order", "limit", "offset", "with_"])
INNER = frozenset(["expressions", "from_", "joins", "where", "group", "having", "with_", "distinct"])


def inner_of(select: Any) -> tuple[Any, Any] | None:
    """The SELECT whose answer another one is over, and the WITH that is left; None where it is not of that kind."""
    from sqlglot import exp

    if {name for name, value in select.args.items() if value} - OUTER or not select.args.get("from_"):
        return None
    first, clause = select.args["from_"].this, select.args.get("with_")
    last = clause.expressions[-1] if clause is not None else None
    if isinstance(first, exp.Table) and last is not None and last.alias.lower() == first.name.lower():
        inner, aliases, clause = last.this, [last.args["alias"], first.args.get("alias")], _shorter(clause)
    elif isinstance(first, exp.Subquery):
        inner, aliases = first.this, [first.args.get("alias")]
    else:
        return None
    if not isinstance(inner, exp.Select) or any(alias.args.get("columns") for alias in aliases if alias is not None):
        return None
    if {name for name, value in inner.args.items() if value} - INNER or not _counts(inner) or first.args.get("joins"):
        return None
    parts = [item for name in ("expressions", "where", "order") for item in _parts(select, name)]
    if any(part.find(exp.AggFunc, exp.Window, exp.Query) is not None for part in parts) or not _named(inner):
        return None
    return inner, clause


def _shorter(clause: Any) -> Any:
    """A WITH without its last table; None where it has no other."""
    rest = clause.copy()
    rest.set("expressions", rest.expressions[:-1])
    return rest if rest.expressions else None


def over(select: Any, inner: Any) -> Any:
    """The expressions, HAVING, ORDER BY and LIMIT of both in one, over the tables of the inner one.

    Args:
        select: The outer SELECT.
        inner: The inner one, whose groups are read already.
    """
    from sqlglot import exp

    meant = {label(item, whole=True).lower(): item.unalias() for item in inner.expressions}
    alias = str(select.args["from_"].this.alias_or_name).lower()

    def replaced(node: Any) -> Any:
        known = type(node).__name__ == "Column" and node.text("table").lower() in ("", alias)
        part = meant.get(node.name.lower()) if known else None
        return node if part is None else exp.Paren(this=part.copy())

    shown: list[Any] = []
    for item in select.expressions:
        if type(item).__name__ == "Star":
            shown += [exp.alias_(part.copy(), name, quoted=True) for name, part in
                      ((label(entry, whole=True), entry.unalias()) for entry in inner.expressions)]  # fmt: skip
        else:
            name = item.alias_or_name
            part = item.unalias().transform(replaced)
            shown.append(exp.alias_(part, name, quoted=True) if name else part)
    result = inner.copy()
    result.set("expressions", shown)
    conditions = [clause.this for clause in (inner.args.get("having"),) if clause]
    conditions += [clause.this.transform(replaced) for clause in (select.args.get("where"),) if clause]
    result.set("having", exp.Having(this=exp.and_(*conditions, copy=True)) if conditions else None)
    result.set("order", _ordered(select.args.get("order"), {name.lower() for name in select.named_selects}, replaced))
    for name in ("limit", "offset"):
        result.set(name, select.args.get(name))
    return result


def _ordered(order: Any, names: set[str], replaced: Any) -> Any:
    """ORDER BY, in which a name of the answer is left as it is."""
    if order is None:
        return None
    result = order.copy()
    for item in result.expressions:
        if type(item.this).__name__ != "Column" or item.this.name.lower() not in names:
            item.set("this", item.this.transform(replaced))
    return result


def _parts(select: Any, name: str) -> list[Any]:
    clause = select.args.get(name)
    return clause if isinstance(clause, list) else [] if clause is None else [clause]


def _counts(inner: Any) -> bool:
    """Whether a SELECT has an aggregate, of which its rows are made."""
    from sqlglot import exp

    return any(item.find(exp.AggFunc, exp.WithinGroup) is not None for item in inner.expressions) and not any(
        item.find(exp.Window) for item in inner.expressions
    )


def _named(inner: Any) -> bool:
    """Whether all of its columns have names, each its own."""
    names = [label(item, whole=True).lower() for item in inner.expressions]
    return all(names) and "*" not in names and len(set(names)) == len(names)
