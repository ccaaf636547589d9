"""Which Polars expressions are functions of one record: an allow-list of element-wise nodes (privacy rule 15).

`pl.col("x") == pl.col("x").max()`, ranks, windows, shifts, samples and Python callbacks see other records, or the batch
that a record happens to be in, so one record could change the output for many. An expression that is not listed here is
refused. So are expressions that raise on a value (strict casts, strict parsing) or guess a format from the first
values.

What is element-wise may still be something that Polars cannot compute for all values: far times and long texts. Polars
reads times of 262,000 years. On a time beyond them it panics, and prints a message that would reveal the record
to everyone who sees the process's output. Columns hold no such time, but adding to a time or casting a number may give
one. Such a value may only be compared, bounded by `clip`, or be the result, where it becomes null.

A text may grow by a factor that the plan determines, so that no record makes a process run out of memory.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import polars as pl

from wpinq.core.functions.operations import FUNCTIONS, TABLE
from wpinq.core.functions.tree import Node, walk
from wpinq.core.records.canonical import BOUNDS
from wpinq.core.records.schema import Kind, Schema, polars_type
from wpinq.errors import PlanError, UntraceableError

INSTEAD = "write a Python function of one record, or use group_by, distinct or shave for what looks at other records"
OPTIONS = {
    "Cast": "cast(..., strict=False)",
    "StringExpr.Strptime": "a format, and strict=False",
    "StringExpr.ToInteger": "strict=False",
    "StringExpr.HexDecode": "strict=False",
    "StringExpr.Base64Decode": "strict=False",
    "ListExpr.Get": "null_on_oob=True",
    "ReplaceStrict": "default=",
    "TemporalExpr.ReplaceTimeZone": 'the zone "UTC" or None, or non_existent="null" and ambiguous= no "raise"',
}
SETTLED = ("earliest", "latest", "null")
"""What may be done with a time that a clock shows twice."""
GROWTH = 2**16
"""Characters that one character may become, or that a text is padded to."""


def admit(root: Node, schema: Schema, call: str) -> None:
    """Check that a whole tree is element-wise.

    Raises:
        UntraceableError: Some node is not, or is not known to be.
        PlanError: It names a column that is not there, or one that expressions cannot read.
    """
    pending, checked = [root], set()
    while pending:
        node = pending.pop()
        if id(node) not in checked:
            checked.add(id(node))
            _check(node, schema, call)
            pending += reversed(node.inputs)


def bare(node: Node) -> str | None:
    """The column that a tree passes on as it is, if that is all it does."""
    while node.name == "Alias":
        (node,) = node.inputs
    return node.options["name"] if node.name == "Column" else None


def _check(node: Node, schema: Schema, call: str) -> None:
    name = node.name
    if name == "Column":
        _column(node.options["name"], schema, call)
    elif name in ("Divide", "TrueDivide"):
        if node.columns and not _varies(node.inputs[1]):
            raise UntraceableError(
                f"{call}: Polars divides by a constant in another way where a record is alone in its batch, and the "
                "last digits differ; multiply by its inverse, write the quotient as SQL text, or write a Python "
                "function."
            )
    elif name == "Cast":
        if node.options["strict"]:
            raise _raises("Cast", call)
    elif name in FUNCTIONS:
        _function(node, call)
    elif name == "Series":
        raise UntraceableError(f"{call}: a Series in an expression is as long as a batch; write a list or one value.")
    elif name not in TABLE:
        raise UntraceableError(f"{call}: the Polars {name} is not known to be element-wise; {INSTEAD}.")


def _column(name: str, schema: Schema, call: str) -> None:
    if name not in schema:
        raise PlanError(f"{call}: no column {word(name)}; there are {schema.listed}.")
    if schema[name].kind is Kind.ANY:
        raise PlanError(
            f"{call}: column {name!r} may hold values of any type, so Polars cannot compute with it; declare its type "
            "with columns= where it is made, or write a Python function."
        )


def _varies(node: Node) -> bool:
    """Whether Polars holds a value for each record, and not one for all: no constant, and none that is chosen."""
    name = node.name
    chosen = name == "Ternary" or name not in TABLE or "chooses" in TABLE[name].marks
    return name == "Column" or (not chosen and any(map(_varies, node.inputs)))


def _function(node: Node, call: str) -> None:
    name = node.name
    if _can_raise(node):
        raise _raises(name, call)
    if name == "Pow.Generic" and node.inputs[1].columns:
        raise UntraceableError(
            f"{call}: Polars raises to the power of a column in another way where a record is alone in its batch, and "
            "the last digits differ; write a constant exponent, (y * x.log()).exp(), or a Python function."
        )
    if "columns" not in TABLE[name].marks and any(argument.columns for argument in node.inputs[1:]):
        raise UntraceableError(
            f"{call}: the Polars function {name} takes constants as its arguments here, not columns."
        )


def _can_raise(node: Node) -> bool:
    name, options = node.name, node.options
    if name == "StringExpr.Strptime":
        return options["strict"] is not False or not options["format"]
    if name in ("StringExpr.ToInteger", "StringExpr.HexDecode", "StringExpr.Base64Decode"):
        return options["strict"] is not False
    if name == "ListExpr.Get":
        return options["null_on_oob"] is not True
    if name == "ReplaceStrict":
        return len(node.inputs) != 4
    if name == "TemporalExpr.ReplaceTimeZone":
        settled = options.get("non_existent") == "null" and options.get("ambiguous") in SETTLED
        return options["time_zone"] not in (None, "UTC") and not settled
    return name == "StringExpr.Contains" and bool(node.inputs[1].columns) and options.get("literal") is not True


def _raises(name: str, call: str) -> UntraceableError:
    need = OPTIONS.get(name, "constant arguments")
    return UntraceableError(f"{call}: the Polars expression {name} may raise on a value; it needs {need}.")


def word(name: Any) -> str:
    """A name as a message shows it."""
    return str(name) if isinstance(name, str) and name.replace(".", "").isidentifier() else "found"


def bounded(root: Node, schema: Schema, call: str) -> int:
    """Check that an admitted tree computes something for all values.

    Returns:
        How many characters come of one, at the most.

    Raises:
        UntraceableError: A time in it may lie too far away, or a text become too long.
    """
    nodes = list(walk(root))
    timed = any(schema[name].kind in BOUNDS for name in root.columns)
    if timed or any("date" in _described(node).lower() for node in nodes):
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


def _described(node: Node) -> str:
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
    return len(str(node.serialised or {"Literal": {"Scalar": {"String": node.options["value"]}}}))
