"""Read the tree of an expression of Polars, which Polars tells as JSON alone."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Mapping
from typing import Any

import polars as pl

from wpinq.core.functions.admit import word
from wpinq.core.functions.operations import FAMILIES, FUNCTIONS, OPERATORS
from wpinq.core.functions.tree import Node
from wpinq.errors import UntraceableError

ONLY = {"ListExpr.Get": "null_on_oob", "StringExpr.HexDecode": "strict", "StringExpr.Base64Decode": "strict"}
"""What the one option is of functions that have no names for them."""


class Read(Node):
    """A part of an expression that somebody made."""

    @property
    def expr(self) -> pl.Expr:  # noqa: D102
        self._expr = self._made() if self._expr is None else self._expr
        return self._expr

    def _made(self) -> pl.Expr:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pl.Expr.deserialize(io.StringIO(json.dumps(self.serialised)), format="json")


def tree(expression: pl.Expr | Node, call: str) -> Node:
    """The tree of an expression.

    Raises:
        UntraceableError: It holds a Python function, or a Series.
    """
    if isinstance(expression, Node):
        return expression
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = expression.meta.serialize(format="json")
        made = _read(json.loads(text))
    except Exception:  # noqa: BLE001  Polars raises many types
        raise UntraceableError(
            f"{call}: the expression cannot be read; if it calls Python (map_elements, map_batches), pass the Python "
            "function itself."
        ) from None
    made._expr = expression
    return made


def _read(serialised: Any) -> Read:
    """The node, whose name is no operation where it is not known."""
    body: Any
    (name, body), *more = serialised.items() if isinstance(serialised, dict) else [(serialised, None)]
    inputs: list[Any] = []
    options: Mapping[str, Any] = {}
    if more or name not in ("Column", "Literal", "Alias", "BinaryExpr", "Cast", "Ternary", "Function"):
        name = f"expression {word(name)}"
    elif name == "Column":
        options = {"name": body}
    elif name == "Literal":
        name, options = _literal(body)
    elif name == "Alias":
        inputs, options = [body[0]], {"name": body[1]}
    elif name == "BinaryExpr":
        name = body["op"] if body["op"] in OPERATORS else f"operator {word(body['op'])}"
        inputs = [body["left"], body["right"]]
    elif name == "Cast":
        plain = isinstance(body["dtype"], dict) and "Literal" in body["dtype"]
        strict = body["options"] != "NonStrict" or not plain
        inputs, options = [body["expr"]], {"dtype": body["dtype"], "strict": strict}
    elif name == "Ternary":
        inputs = [body["predicate"], body["truthy"], body["falsy"]]
    else:
        name, arguments = _named(body["function"])
        inputs, options = body["input"], _options(name, arguments, body["input"])
        name = name if name in FUNCTIONS else f"function {word(name)}"
    node = Read(name, tuple(map(_read, inputs)), options)
    node.serialised = serialised
    return node


def _literal(body: Any) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(body, dict) or not body.keys() <= {"Scalar", "Dyn"}:
        return "Series", {}
    (held,) = body.values()
    return "Literal", {"value": next(iter(held.values())) if isinstance(held, dict) else held, "dtype": body}


def _named(function: Any) -> tuple[str, Any]:
    """The name of a function, `Abs` or `StringExpr.Lowercase`, and its options."""
    if isinstance(function, str):
        return function, None
    ((name, body),) = function.items() if isinstance(function, dict) and len(function) == 1 else [("?", None)]
    if name not in FAMILIES:
        return str(name), body
    inner, options = _named(body)
    return f"{name}.{inner}", options


def _options(name: str, arguments: Any, inputs: list[Any]) -> Mapping[str, Any]:
    """The options of a function by their names, as they are written in Python."""
    if name == "StringExpr.Strptime":
        return {"dtype": arguments[0], **arguments[1]}
    if name == "TemporalExpr.ReplaceTimeZone":
        ambiguous = inputs[1].get("Literal", {}).get("Scalar", {}).get("String")
        zone = arguments[0] and arguments[0]["inner"]
        return {"time_zone": zone, "non_existent": str(arguments[1]).lower(), "ambiguous": ambiguous}
    if name == "TemporalExpr.ConvertTimeZone":
        return {"time_zone": arguments["inner"]}
    return arguments if isinstance(arguments, dict) else {ONLY.get(name, "option"): arguments}
