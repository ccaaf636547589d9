"""Which Polars expressions are functions of one record: an allow-list of element-wise nodes (privacy rule 15).

`pl.col("x") == pl.col("x").max()`, ranks, windows, shifts, samples and Python callbacks see other records, or the batch
that a record happens to be in, so one record could change the output for many. An expression that is not listed here is
refused. So are expressions that raise on a value (strict casts, strict parsing) or guess a format from the first
values.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import polars as pl

from wpinq.core.functions.polars.elementwise import FAMILIES, FUNCTIONS, OPERATORS, TAKES_COLUMNS
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError, UntraceableError

INSTEAD = "write a Python function of one record, or use group_by, distinct or shave for what looks at other records"
CHOOSING = ("Coalesce", "FillNull", "Replace", "ReplaceStrict")
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


def tree(expression: pl.Expr, call: str) -> Any:
    """An expression as plain data.

    Raises:
        UntraceableError: It holds a Python function.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = expression.meta.serialize(format="json")
        return json.loads(text)
    except Exception:  # noqa: BLE001  Polars raises many types
        raise UntraceableError(
            f"{call}: the expression cannot be read; if it calls Python (map_elements, map_batches), pass the Python "
            "function itself."
        ) from None


def admit(node: Any, schema: Schema, call: str) -> None:
    """Check that a whole tree is element-wise.

    Raises:
        UntraceableError: Some node is not, or is not known to be.
        PlanError: It names a column that is not there, or one that expressions cannot read.
    """
    for inner in inside(node, schema, call):
        admit(inner, schema, call)


def inside(node: Any, schema: Schema, call: str) -> list[Any]:
    """The parts of an expression, if it is one that is element-wise.

    Raises:
        UntraceableError, PlanError: See `admit`.
    """
    (name, body), *more = node.items() if isinstance(node, dict) else [(node, None)]
    if more or name not in _INSIDE:
        raise UntraceableError(
            f"{call}: the Polars expression {_word(name)} is not known to be element-wise; {INSTEAD}."
        )
    result: list[Any] = _INSIDE[name](body, schema, call)
    return result


def columns(node: Any) -> Iterator[str]:
    """The columns that an admitted tree reads."""
    if isinstance(node, dict):
        for name, body in node.items():
            if name == "Column" and isinstance(body, str):
                yield body
            elif name != "Literal":
                yield from columns(body)
    elif isinstance(node, list):
        for item in node:
            yield from columns(item)


def constant(node: Any) -> bool:
    """Whether an admitted tree reads no column, whatever the columns are called."""
    return next(columns(node), None) is None


def bare(node: Any) -> str | None:
    """The column that a tree passes on as it is, if that is all it does."""
    while isinstance(node, dict) and "Alias" in node:
        node = node["Alias"][0]
    column = node.get("Column") if isinstance(node, dict) else None
    return column if isinstance(column, str) else None


def _column(body: Any, schema: Schema, call: str) -> list[Any]:
    if not isinstance(body, str) or body not in schema:
        raise PlanError(f"{call}: no column {_word(body)}; there are {schema.listed}.")
    if schema[body].kind is Kind.ANY:
        raise PlanError(
            f"{call}: column {body!r} may hold values of any type, so Polars cannot compute with it; declare its type "
            "with columns= where it is made, or write a Python function."
        )
    return []


def _literal(body: Any, schema: Schema, call: str) -> list[Any]:
    if not isinstance(body, dict) or not body.keys() <= {"Scalar", "Dyn"}:
        raise UntraceableError(f"{call}: a Series in an expression is as long as a batch; write a list or one value.")
    return []


def _binary(body: Any, schema: Schema, call: str) -> list[Any]:
    if body["op"] not in OPERATORS:
        raise UntraceableError(
            f"{call}: the Polars operator {_word(body['op'])} is not known to be element-wise; {INSTEAD}."
        )
    reads = not constant([body["left"], body["right"]])
    if body["op"] in ("TrueDivide", "Divide") and reads and not _varies(body["right"]):
        raise UntraceableError(
            f"{call}: Polars divides by a constant in another way where a record is alone in its batch, and the last "
            "digits differ; multiply by its inverse, write the quotient as SQL text, or write a Python function."
        )
    return [body["left"], body["right"]]


def _varies(node: Any) -> bool:
    """Whether Polars holds a value for each record, and not one for all: no constant, and none that is chosen."""
    body: Any
    ((name, body),) = node.items() if isinstance(node, dict) and len(node) == 1 else [("?", None)]
    if name == "BinaryExpr":
        return _varies(body["left"]) or _varies(body["right"])
    if name == "Function":
        return function_name(body["function"])[0] not in CHOOSING and any(map(_varies, body["input"]))
    return name == "Column" or (name in ("Alias", "Cast") and _varies(body[0] if name == "Alias" else body["expr"]))


def _cast(body: Any, schema: Schema, call: str) -> list[Any]:
    if body["options"] != "NonStrict" or not isinstance(body["dtype"], dict) or "Literal" not in body["dtype"]:
        raise _raises("Cast", call)
    return [body["expr"]]


def _function(body: Any, schema: Schema, call: str) -> list[Any]:
    name, options = function_name(body["function"])
    if name not in FUNCTIONS:
        raise UntraceableError(f"{call}: the Polars function {_word(name)} is not known to be element-wise; {INSTEAD}.")
    if _can_raise(name, options, body["input"]):
        raise _raises(name, call)
    if name == "Pow.Generic" and not constant(body["input"][1]):
        raise UntraceableError(
            f"{call}: Polars raises to the power of a column in another way where a record is alone in its batch, and "
            "the last digits differ; write a constant exponent, (y * x.log()).exp(), or a Python function."
        )
    if name not in TAKES_COLUMNS and not constant(body["input"][1:]):
        raise UntraceableError(
            f"{call}: the Polars function {name} takes constants as its arguments here, not columns."
        )
    return list(body["input"])


def function_name(function: Any) -> tuple[str, Any]:
    """The name of a function in the tree, `Abs` or `StringExpr.Lowercase`, and its options."""
    if isinstance(function, str):
        return function, None
    ((name, body),) = function.items() if isinstance(function, dict) and len(function) == 1 else [("?", None)]
    if name not in FAMILIES:
        return str(name), body
    inner, options = function_name(body)
    return f"{name}.{inner}", options


def _can_raise(name: str, options: Any, inputs: list[Any]) -> bool:
    if name == "StringExpr.Strptime":
        return options[1]["strict"] is not False or not options[1]["format"]
    if name == "StringExpr.ToInteger":
        return options["strict"] is not False
    if name in ("StringExpr.HexDecode", "StringExpr.Base64Decode"):
        return options is not False
    if name == "ListExpr.Get":
        return options is not True
    if name == "ReplaceStrict":
        return len(inputs) != 4
    if name == "TemporalExpr.ReplaceTimeZone":
        settled = [{"Literal": {"Scalar": {"String": word}}} for word in ("earliest", "latest", "null")]
        return options[0] not in (None, {"inner": "UTC"}) and (options[1] != "Null" or inputs[1] not in settled)
    return name == "StringExpr.Contains" and not constant(inputs[1:]) and options["literal"] is not True


def _raises(name: str, call: str) -> UntraceableError:
    need = OPTIONS.get(name, "constant arguments")
    return UntraceableError(f"{call}: the Polars expression {name} may raise on a value; it needs {need}.")


def _word(name: Any) -> str:
    return str(name) if isinstance(name, str) and name.replace(".", "").isidentifier() else "found"


_INSIDE: dict[str, Any] = {
    "Column": _column,
    "Literal": _literal,
    "Alias": lambda body, schema, call: [body[0]],
    "BinaryExpr": _binary,
    "Cast": _cast,
    "Ternary": lambda body, schema, call: [body["predicate"], body["truthy"], body["falsy"]],
    "Function": _function,
}
