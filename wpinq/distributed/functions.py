"""Functions of plans as JSON and back: expressions of Polars and SQL, traced functions, public tables. No code travels.

An expression travels as Polars writes it in JSON, and is admitted once more where it arrives: what is not element-wise
is refused there too. A traced function travels as its expressions, and what arrives must trace to the very same.
Whatever is plain Python does not travel.
"""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from base64 import b64decode, b64encode
from dataclasses import fields
from typing import Any

import polars as pl

from wpinq.core.functions.admit import admit, bare
from wpinq.core.functions.bind import bind
from wpinq.core.functions.expressions import Expressions
from wpinq.core.functions.function import Function
from wpinq.core.functions.polars_tree import tree
from wpinq.core.functions.rows import Rows
from wpinq.core.functions.traced.columnar import Columnar
from wpinq.core.functions.traced.trace import Formula
from wpinq.distributed.values import Json, UnwritableError, from_json, members, record, to_json
from wpinq.errors import InternalError, PlanError

CALL = "a plan"
CORNER = ("wpinq.degrees.pipelines", "CornerBin")
"""The one kind of expressions that does more than they say, which few plans have."""
FIELDS = tuple(field.name for field in fields(Function))
"""What all functions have."""


def function_to_json(function: Function) -> Json:
    """A function as JSON.

    Raises:
        UntoldError: It is plain Python.
    """
    if isinstance(function, Expressions):
        corner = (type(function).__module__, type(function).__name__) == CORNER
        if type(function) is not Expressions and not corner:
            raise UnwritableError
        return {
            "expressions": [_expression(expression) for expression in function.expressions],
            "corner": corner, "growth": function.growth, **_common(function),
        }  # fmt: skip
    if isinstance(function, Columnar):
        if not function.whole:
            raise UnwritableError
        return {"traced": to_json(function.nodes, record), **_common(function)}
    if isinstance(function, Rows):
        file = io.BytesIO()
        function.table.write_ipc(file)
        return {"rows": b64encode(file.getvalue()).decode(), "outer": function.outer, **_common(function)}
    raise UnwritableError


def function_from_json(message: Json) -> Function:
    """The function that was told.

    Raises:
        InternalError: It means something else here.
    """
    common = {name: from_json(entry, _nothing) for name, entry in message["fields"].items()}
    if "rows" in message:
        table = pl.read_ipc(io.BytesIO(b64decode(message["rows"])))
        return Rows(**common, table=table, outer=message["outer"])
    if "expressions" in message:
        made = tuple(_admitted(entry, common) for entry in message["expressions"])
        if message["corner"]:
            from wpinq.degrees.pipelines import CornerBin

            return CornerBin(**common, expressions=made, growth=message["growth"])
        return Expressions(**common, expressions=made, growth=message["growth"])
    formula = Formula(from_json(message["traced"], _nothing), common["reads"])
    with contextlib.suppress(PlanError):
        bound = bind(formula, common["schema"], CALL, columns=list(common["output"].names))
        if bound.fingerprint == common["fingerprint"]:
            return bound
    raise InternalError(f"the function {common['note']} means something else in another process; please report it.")


def _common(function: Function) -> dict[str, Json]:
    every = members(function, _refuse)["fields"] if type(function) is Function else {
        name: to_json(getattr(function, name), _refuse) for name in FIELDS
    }  # fmt: skip
    return {"fields": every}


def _expression(value: pl.Expr) -> Json:
    """An expression in JSON, where that says all: it has one word for all numbers that are not finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = value.meta.serialize(format="json")
        try:
            again = pl.Expr.deserialize(io.StringIO(text), format="json")
        except pl.exceptions.PolarsError:
            raise UnwritableError from None
        if again.meta.serialize(format="binary") != value.meta.serialize(format="binary"):
            raise UnwritableError
    return json.loads(text)


def _admitted(text: Json, common: dict[str, Any]) -> pl.Expr:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = pl.Expr.deserialize(io.StringIO(json.dumps(text)), format="json")
    node = tree(value, CALL)
    if bare(node) not in common["schema"].names:
        admit(node, common["schema"], CALL)
    return value


def _refuse(value: object) -> Json:
    raise UnwritableError


def _nothing(value: object) -> object:
    raise InternalError("a plan holds a function that no plan holds; please report this.")
