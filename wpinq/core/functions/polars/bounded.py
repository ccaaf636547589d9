"""Refuse admitted expressions that Polars cannot compute for all values: far times and long texts.

Polars reads times of 262,000 years. On a time beyond them it panics, and prints a message that would reveal the record
to everyone who sees the process's output. Columns hold no such time, but adding to a time or casting a number may give
one. Such a value may only be compared, bounded by `clip`, or be the result, where it becomes null.

A text may grow by a factor that the plan determines, so that no record makes a process run out of memory.
"""

from __future__ import annotations

from functools import lru_cache

import polars as pl

from wpinq.core.functions.operations import TABLE
from wpinq.core.functions.polars.read import Read
from wpinq.core.functions.tree import Node, walk
from wpinq.core.records.canonical import BOUNDS
from wpinq.core.records.schema import Schema, polars_type
from wpinq.errors import UntraceableError

GROWTH = 2**16
"""Characters that one character may become, or that a text is padded to."""


def bounded(root: Node, schema: Schema, call: str) -> int:
    """Check that an admitted tree computes something for all values.

    Returns:
        How many characters come of one, at the most.

    Raises:
        UntraceableError: A time in it may lie too far away, or a text become too long.
    """
    nodes = list(walk(root))
    timed = any(schema[name].kind in BOUNDS for name in root.columns)
    if timed or any("date" in _told(node).lower() for node in nodes):
        far: dict[int, bool] = {}
        for node in nodes:
            far[id(node)] = _far(node, any(far[id(part)] for part in node.inputs), schema, call)
    growth: dict[int, int] = {}
    for node in nodes:
        growth[id(node)] = _growth(node, [growth[id(part)] for part in node.inputs])
    if growth[id(root)] > GROWTH:
        raise UntraceableError(f"{call}: a text may become {GROWTH:,} times as long, or be padded to as much; make its "
                               "constants shorter.")  # fmt: skip
    return growth[id(root)]


def _told(node: Node) -> str:
    """All that a node says itself."""
    return f"{node.name} {node.method} {node.options}" if node.name != "Column" else ""


def _far(node: Node, far: bool, schema: Schema, call: str) -> bool:
    """Whether the value may be a time that Polars cannot read, where that of a part may be one."""
    name, marks = node.name, TABLE[node.name].marks
    copied = name == "Cast" and not isinstance(_type(node, schema), pl.String)
    if far and not marks & {"keeps", "bears"} and not copied:
        raise UntraceableError(
            f"{call}: {name} may raise on a time that lies far away, and its argument may be one, whatever columns "
            "hold; put .clip(first, last) around the time, or compute it in a map of its own, where it is null then."
        )
    if "keeps" in marks:
        return far and not (name == "Clip" and len(node.inputs) == 3)
    if "makes" not in marks or not node.columns or not _is_time(node, schema):
        return False
    part = node.inputs[0]
    return far or name != "Cast" or not (_is_time(part, schema) or isinstance(_type(part, schema), pl.String))


def _is_time(node: Node, schema: Schema) -> bool:
    return isinstance(_type(node, schema), (pl.Date, pl.Datetime))


def _type(node: Node, schema: Schema) -> pl.DataType | None:
    """The type of a part of an expression; None where it does not fit the columns, which is said elsewhere."""
    try:
        return empty(schema).select(node.expr).collect_schema().dtypes()[0]
    except pl.exceptions.PolarsError:
        return None


@lru_cache
def empty(schema: Schema) -> pl.LazyFrame:
    """A frame of these columns without rows: what Polars says of its types is what it says of any rows."""
    return pl.LazyFrame(schema={column.name: polars_type(column.kind) for column in schema})


def _growth(node: Node, each: list[int]) -> int:
    """How many characters come of one, at the most; constants that are joined to a text add what the query is long."""
    if not each:
        return 1
    operation, parts = TABLE[node.name], node.inputs
    if "replaces" in operation.marks:
        return each[0] * (1 + _written(parts[-1]))
    if "pads" in operation.marks:
        length = parts[-1].options.get("value")
        return max(each[0], length if isinstance(length, int) else GROWTH + 1)
    if "joins" in operation.marks:
        return max(1, sum(grown for grown, part in zip(each, parts, strict=True) if part.columns))
    return max(each) * operation.factor


def _written(node: Node) -> int:
    """At least how many characters a text is that is written out."""
    told = node.told if isinstance(node, Read) else {"Literal": {"Scalar": {"String": node.options["value"]}}}
    return len(str(told))
