"""UNION ALL of answers: each SELECT is measured by itself, and the rows stand one below the other.

Epsilon, rho and delta are shared equally, and all SELECTs are charged together or none. Rows that are counted
afterwards belong in a subquery with UNION ALL, which costs no more than its tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import polars as pl

from wpinq.core.functions.sql.bind import statement
from wpinq.core.functions.sql.terms import shown
from wpinq.core.measurements.answer import Answer, Released
from wpinq.core.measurements.provenance import About
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.query.derived import CALL
from wpinq.query.google import google
from wpinq.query.statement import Statement

UNION = re.compile(r"\bUNION\s+ALL\b", re.IGNORECASE)
NUMBERS = {Kind.INT, Kind.FLOAT}


def branches(query: str) -> list[str] | None:
    """The SELECTs of a UNION ALL, each with the WITH of all; None where the query is none.

    Raises:
        PlanError: It has ORDER BY or LIMIT of all rows.

    >>> branches("SELECT COUNT(*) FROM a UNION ALL SELECT COUNT(*) FROM b")
    ['SELECT COUNT(*) FROM a', 'SELECT COUNT(*) FROM b']
    """
    if not UNION.search(query):
        return None
    tree = statement(google(query).text, CALL)
    parts = _parts(tree)
    if parts is None:
        return None
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


def check_columns(statements: Sequence[Statement]) -> None:
    """Refuse SELECTs whose columns do not fit, before anything is charged.

    Raises:
        PlanError: They are more or fewer, or of other types.
    """
    kinds = [[each.translator().term(item.node).kind for item in each.items] for each in statements]
    for number, other in enumerate(kinds[1:], 2):
        same = len(other) == len(kinds[0]) and all(
            one is two or None in (one, two) or {one, two} <= NUMBERS for one, two in zip(kinds[0], other, strict=True)
        )
        if not same:
            texts = [", ".join("NULL" if kind is None else kind.value for kind in row) for row in (kinds[0], other)]
            raise PlanError(f"{CALL}: the columns of the first SELECT are {texts[0]}, and those of SELECT number "
                            f"{number} are {texts[1]}; a UNION ALL has as many, of the same types.")  # fmt: skip


def stacked(query: str, answers: Sequence[Answer], charged: Sequence[Any], delta: Fraction) -> Answer:
    """The rows of all answers, under the names of the first one."""
    bias = tuple(dict.fromkeys(clause for answer in answers for clause in answer._about.bias or ()))

    def released_at(level: Fraction, simultaneous: bool) -> Released:
        released = [answer._find(level, simultaneous) for answer in answers]
        names = released[0][0].columns
        frames = [frame.rename(dict(zip(frame.columns, names, strict=True))) for frame, _ in released]
        ends = {}
        for index, name in enumerate(names):
            parts = [ends_of.get(frame.columns[index]) for frame, ends_of in released]
            if any(parts):
                rows = [frame.height for frame, _ in released]
                blank = [pl.Series([None] * many, dtype=pl.Float64) for many in rows]
                ends[name] = (
                    pl.concat(
                        [blank[at] if part is None else part[0].cast(pl.Float64) for at, part in enumerate(parts)]
                    ),
                    pl.concat(
                        [blank[at] if part is None else part[1].cast(pl.Float64) for at, part in enumerate(parts)]
                    ),
                )
        return pl.concat(frames, how="vertical_relaxed"), ends

    return Answer(About(" ".join(query.split()), list(charged), delta, bias=bias), released_at)
