"""Plain values of plans as JSON and back: a closed list of types, of which none runs anything."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from importlib import import_module
from typing import Any, TypeAlias

from wpinq.core.records import values
from wpinq.core.records.schema import Kind
from wpinq.errors import InternalError

Json: TypeAlias = Any
"""None, text, numbers, lists and mappings."""
PLAIN: dict[str, str] = {
    **dict.fromkeys(("Column", "Schema"), "wpinq.core.records.schema"),
    **dict.fromkeys(("Choice", "Unit"), "wpinq.core.plan.unit"),
    "Edges": "wpinq.aggregates.buckets",
    "Expression": "wpinq.core.functions.traced.expression",
    "GroupColumn": "wpinq.core.operators.group_columns",
    "Periods": "wpinq.core.operators.periods",
    "Scale": "wpinq.aggregates.scale",
}
"""Classes of values, whose fields are values, and their homes."""


class UntoldError(Exception):
    """A value cannot be told to another process."""


def told(value: object, other: Callable[[object], Json]) -> Json:
    """A value as JSON.

    Args:
        value: It.
        other: Does the same for what is none of these values, or raises `UntoldError`.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, Kind):
        return {"kind": value.value}
    if isinstance(value, Fraction):
        return {"fraction": f"{value.numerator}/{value.denominator}"}
    if isinstance(value, (tuple, list)):
        return {"tuple": [told(one, other) for one in value]}
    if isinstance(value, bytes):
        return {"bytes": b64encode(value).decode()}
    if PLAIN.get(type(value).__name__) == type(value).__module__:
        return {"of": type(value).__name__, **members(value, other)}
    return other(value)


def members(value: Any, other: Callable[[object], Json]) -> dict[str, Json]:
    """The fields of a value of a class, as JSON."""
    return {"fields": {one.name: told(getattr(value, one.name), other) for one in fields(value) if one.init}}


def record(value: object) -> Json:
    """A value of a record.

    Raises:
        UntoldError: No record holds such a value.
    """
    try:
        return {"record": b64encode(values.encode(value)).decode()}
    except Exception:  # noqa: BLE001  whatever is no value of a record
        raise UntoldError from None


def untold(given: Json, other: Callable[[Mapping[str, Json]], object]) -> Any:
    """The value that was told.

    Raises:
        InternalError: It is none.
    """
    if given is None or type(given) in (bool, int, str):
        return given
    if not isinstance(given, dict):
        raise InternalError("a plan holds what no plan can hold; please report this.")
    if "kind" in given:
        return Kind(given["kind"])
    if "fraction" in given:
        return Fraction(given["fraction"])
    if "tuple" in given:
        return tuple(untold(one, other) for one in given["tuple"])
    if "bytes" in given:
        return b64decode(given["bytes"])
    if "record" in given:
        return values.decode(b64decode(given["record"]))
    if "of" in given and given["of"] in PLAIN:
        made = getattr(import_module(PLAIN[given["of"]]), given["of"])
        return made(**{name: untold(one, other) for name, one in given["fields"].items()})
    return other(given)
