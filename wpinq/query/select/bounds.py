"""Bounds of the numbers in aggregates: declared for a column or expression, or derived from those of its parts.

Constants of the query are as public as declared bounds, so `SUM(CASE WHEN late THEN 1 ELSE 0 END)` needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import ceil, exp, floor, log, log10, sqrt, trunc
from typing import Any, Protocol

from wpinq.aggregates.scale import Bounds, ends
from wpinq.core.functions.sql.bind import parsed
from wpinq.errors import PlanError
from wpinq.exact import exact
from wpinq.query.select.clauses import meant
from wpinq.query.select.datetimes import is_time
from wpinq.query.select.derived import CALL, Reach, plainly


class Limits:
    """The bounds that were declared for a query, and which of them its tables have a use for.

    Raises:
        PlanError: They are not given by name.
    """

    def __init__(self, bounds: Mapping[str, Bounds] | None) -> None:
        if bounds is not None and not isinstance(bounds, Mapping):
            raise PlanError(f"{CALL}: bounds= maps columns or expressions to pairs, for example {{'age': (0, 120)}}.")
        self.bounds = dict(bounds or {})
        self.used: set[str] = set()
        self.columns: set[str] = set()
        self.table_columns: set[str] = set()  # of columns that a subquery did not compute

    def check(self) -> None:
        """Refuse bounds of an unknown column, or of an expression that the query does not use: most likely a typo.

        Bounds of columns that this query does not use are allowed, so that one set serves all queries.

        Raises:
            PlanError: There are such.
        """
        unknown = [key for key in self.bounds if key not in self.used | self.columns]
        if unknown:
            raise PlanError(f"{CALL}: bounds are given of {', '.join(map(repr, unknown))}, which is no column, and "
                            "which no SUM, AVG, MIN or the like is of.")  # fmt: skip


class Columns(Protocol):
    """What is known of the columns of a query by their canonical names; `Tables` knows it."""

    def computed(self, node: Any) -> bool:
        """Whether a column is what a subquery computed."""

    def reach(self, node: Any) -> Reach | None:
        """The bounds of a column that a subquery made, where it says them."""


class Declared:
    """Bounds by column, `table.column` or expression, as the query or a subquery would write them.

    Args:
        limits: All that were given.
        canonical: Writes an expression's columns in one way, so that equal ones are equal.
        columns: What is known of the columns.
    """

    def __init__(self, limits: Limits, canonical: Callable[[Any], Any], columns: Columns) -> None:
        self._limits, self._bounds, self._columns = limits, limits.bounds, columns
        read = [(node, key) for key in self._bounds for node in _read(key, canonical)]
        self._written = dict(read)
        names = [(node, key) for node, key in read if type(node).__name__ == "Column"]
        limits.columns |= {key for _, key in names}
        limits.table_columns |= {key for node, key in names if not self._columns.computed(node)}

    def of(self, node: Any, what: Any) -> Bounds:
        """The bounds of what an aggregate takes.

        Raises:
            PlanError: There are none.
        """
        declared = self._declared(what)
        if declared is not None:
            return declared
        result = self.reach(what)
        if result is None:
            name = plainly(what)
            others = "" if type(what).__name__ == "Column" else ", or those of its columns"
            raise PlanError(f"{CALL}: {plainly(node)}: numbers need declared bounds, which do not depend on the data: "
                            f"bounds={{{name!r}: (low, high)}}{others}.")  # fmt: skip
        low, high = result
        return result if low < high else (min(low, Fraction(0)), max(high, Fraction(0 if low else 1)))

    def _declared(self, node: Any) -> Bounds | None:
        column = type(node).__name__ == "Column"
        keys = [f"{node.text('table')}.{node.name}", node.name] if column else []
        for key in (*keys, self._written.get(node)):
            if key in self._bounds:
                if column and key == node.name and key in self._limits.table_columns and self._columns.computed(node):
                    if self._columns.reach(node) is not None:
                        continue
                    raise PlanError(f"{CALL}: bounds of {key!r} are those of a table's column, and a subquery computes "
                                    "another one by that name; give it another name.")  # fmt: skip
                self._limits.used.add(key)
                return self._bounds[key]
        return None

    def reach(self, node: Any) -> Reach | None:
        """The range of an expression, or None where that is not known."""
        declared = self._declared(node)
        if declared is not None:
            return None if any(map(is_time, declared)) else ends(declared, CALL)
        kind = type(node).__name__
        if kind == "Column":
            return self._columns.reach(node)
        if kind == "Literal" and not node.is_string:
            number = exact(node.this, CALL)
            return number, number
        if kind in MANY:
            return self._hull(MANY[kind](node))
        if kind not in RULES:
            return None
        parts = [self.reach(part) for part in (node.this, node.args.get("expression")) if part is not None]
        known = [part for part in parts if part is not None]
        return RULES[kind](*known) if len(known) == len(parts) else None

    def _hull(self, nodes: Iterable[Any]) -> Reach | None:
        result = [self.reach(node) for node in nodes if type(node).__name__ != "Null"]
        known = [item for item in result if item is not None]
        if not known or len(known) < len(result):
            return None
        return min(low for low, _ in known), max(high for _, high in known)


def _read(key: str, canonical: Callable[[Any], Any]) -> list[Any]:
    """A key as the expressions that it could be: one, or none where it does not read as such."""
    if not isinstance(key, str):
        return []
    try:
        return [canonical(item.transform(meant)) for item in parsed(key, CALL)[:1]]
    except PlanError:
        return []


def _corners(first: Reach, second: Reach) -> Reach:
    result = [left * right for left in first for right in second]
    return min(result), max(result)


def _quotient(first: Reach, second: Reach) -> Reach | None:
    """Of doubles, or of integers, whose quotient is cut off."""
    if second[0] <= 0 <= second[1]:
        return None
    result = [left / right for left in first for right in second]
    result += [Fraction(trunc(quotient)) for quotient in result]
    return min(result), max(result)


def _remainder(first: Reach, second: Reach) -> Reach:
    """Of the sign of the first, and smaller than the other."""
    _, size = _size(second)
    return Fraction(-size if first[0] < 0 else 0), Fraction(size if first[1] > 0 else 0)


def _whole(interval: Reach) -> Reach:
    return Fraction(floor(interval[0])), Fraction(ceil(interval[1]))


def _size(interval: Reach) -> Reach:
    low, high = sorted(map(abs, interval))
    return (Fraction(0) if interval[0] <= 0 <= interval[1] else low), high


def _rising(function: Callable[[float], float], above: float) -> Callable[..., Reach | None]:
    """Of a function that rises, and is defined above a number."""

    def reach(first: Reach, second: Reach | None = None) -> Reach | None:
        if second is not None or first[0] <= above:
            return None
        try:
            low, high = (Fraction(function(float(end))) for end in first)
        except (OverflowError, ValueError):
            return None
        return low - ROOM, high + ROOM

    return reach


def _branches(node: Any) -> list[Any]:
    """The results of CASE; without ELSE there is NULL, which is no number."""
    default = node.args.get("default")
    return [*(arg.args["true"] for arg in node.args["ifs"]), *([] if default is None else [default])]


ROOM = Fraction(1, 10**6)
"""What rounding may add to the ends of a range."""
RULES: dict[str, Callable[..., Reach | None]] = {
    "Paren": lambda first: first,
    "Neg": lambda first: (-first[1], -first[0]),
    "Add": lambda first, second: (first[0] + second[0], first[1] + second[1]),
    "Sub": lambda first, second: (first[0] - second[1], first[1] - second[0]),
    "Mul": _corners,
    "Div": _quotient,
    "Mod": _remainder,
    "Abs": _size,
    "Ln": _rising(log, 0),
    "Log": _rising(log10, 0),
    "Sqrt": _rising(sqrt, -1e-300),
    "Exp": _rising(exp, float("-inf")),
    **dict.fromkeys(("Floor", "Ceil", "Round", "Cast"), _whole),
}
MANY: dict[str, Callable[[Any], list[Any]]] = {
    "Case": _branches,
    **dict.fromkeys(("Coalesce", "Greatest", "Least"), lambda node: [node.this, *node.expressions]),
}
