"""Refuse admitted expressions that Polars cannot compute for all values: far times and long texts.

Polars reads times of 262,000 years. On a time beyond them it panics, and prints a message that would reveal the record
to everyone who sees the process's output. Columns hold no such time, but adding to a time or casting a number may give
one. Such a value may only be compared, bounded by `clip`, or be the result, where it becomes null.

A text may grow by a factor that the plan determines, so that no record makes a process run out of memory.
"""

from __future__ import annotations

import io
import json
import warnings
from functools import lru_cache
from typing import Any

import polars as pl

from wpinq.core.functions.polars.admit import columns, constant, function_name, inside
from wpinq.core.records.canonical import BOUNDS
from wpinq.core.records.schema import Schema, polars_type
from wpinq.errors import UntraceableError

GROWTH = 2**16
"""Characters that one character may become, or that a text is padded to."""
PASSED = frozenset(["Alias", "Ternary", "FillNull", "Coalesce", "MinHorizontal", "MaxHorizontal", "Clip", "Replace"])
COMPARED = frozenset(
    [
        *("Eq", "NotEq", "EqValidity", "NotEqValidity", "Lt", "LtEq", "Gt", "GtEq", "Plus", "Minus", "ReplaceStrict"),
        *("Boolean.IsNull", "Boolean.IsNotNull", "Boolean.IsBetween", "Boolean.IsIn"),
    ]
)
MADE = frozenset(["Plus", "Minus", "Cast", "TemporalExpr.OffsetBy", "SumHorizontal", "MeanHorizontal"])
FACTORS = {"Uppercase": 3, "Lowercase": 3, "Titlecase": 3, "Normalize": 18, "HexEncode": 2, "Base64Encode": 2,
           "EscapeRegex": 2}  # fmt: skip
PADDED = ("StringExpr.ZFill", "StringExpr.PadStart", "StringExpr.PadEnd")
JOINED = ("StringExpr.ConcatHorizontal", "StringExpr.Format", "Plus", "SumHorizontal")
REPLACED = ("StringExpr.Replace", "StringExpr.ReplaceMany")


def bounded(node: Any, schema: Schema, call: str) -> int:
    """Check that an admitted tree computes something for all values.

    Returns:
        How many characters come of one, at the most.

    Raises:
        UntraceableError: A time in it may lie too far away, or a text become too long.
    """
    if any(schema[name].kind in BOUNDS for name in columns(node)) or "Date" in json.dumps(node):
        _far(node, schema, call)
    growth = _growth(node, schema, call)
    if growth > GROWTH:
        raise UntraceableError(f"{call}: a text may become {GROWTH:,} times as long, or be padded to as much; make its "
                               "constants shorter.")  # fmt: skip
    return growth


def _far(node: Any, schema: Schema, call: str) -> bool:
    """Whether the value may be a time that Polars cannot read."""
    name, parts = _name(node), inside(node, schema, call)
    far = sum(_far(part, schema, call) for part in parts) > 0  # of all of them: one that is refused may come last
    copied = name == "Cast" and not isinstance(_type(node, schema), pl.String)
    if far and name not in PASSED | COMPARED and not copied:
        raise UntraceableError(
            f"{call}: {name} may raise on a time that lies far away, and its argument may be one, whatever columns "
            "hold; put .clip(first, last) around the time, or compute it in a map of its own, where it is null then."
        )
    if name in PASSED:
        return far and not (name == "Clip" and all(function_name(node["Function"]["function"])[1].values()))
    if name not in MADE or constant(node) or not _is_time(node, schema):
        return False
    return far or name != "Cast" or not (_is_time(parts[0], schema) or isinstance(_type(parts[0], schema), pl.String))


def _is_time(node: Any, schema: Schema) -> bool:
    return isinstance(_type(node, schema), (pl.Date, pl.Datetime))


def _type(node: Any, schema: Schema) -> pl.DataType | None:
    """The type of a part of an expression; None where it does not fit the columns, which is said elsewhere."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            part = pl.Expr.deserialize(io.BytesIO(json.dumps(node).encode()), format="json")
        return empty(schema).select(part).collect_schema().dtypes()[0]
    except pl.exceptions.PolarsError:
        return None


@lru_cache
def empty(schema: Schema) -> pl.LazyFrame:
    """A frame of these columns without rows: what Polars says of its types is what it says of any rows."""
    return pl.LazyFrame(schema={column.name: polars_type(column.kind) for column in schema})


def _growth(node: Any, schema: Schema, call: str) -> int:
    """How many characters come of one, at the most; constants that are joined to a text add what the query is long."""
    name, parts = _name(node), inside(node, schema, call)
    each = [_growth(part, schema, call) for part in parts]
    if not each:
        return 1
    if name in REPLACED:
        return each[0] * (1 + len(str(parts[-1])))
    if name in PADDED:
        return max(each[0], *_integers(parts[-1]))
    if name in JOINED:
        return max(1, sum(grown for grown, part in zip(each, parts, strict=True) if not constant(part)))
    return max(each) * FACTORS.get(name.removeprefix("StringExpr."), 1)


def _integers(node: Any) -> list[int]:
    """The integer that a literal is; something too large where it is none."""
    result = list(next(iter(node["Literal"].values())).values()) if "Literal" in node else []
    return [item if isinstance(item, int) else GROWTH + 1 for item in result] or [GROWTH + 1]


def _name(node: Any) -> str:
    ((name, body),) = node.items()
    if name == "Function":
        return function_name(body["function"])[0]
    return str(body["op"]) if name == "BinaryExpr" else str(name)
