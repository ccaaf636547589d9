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


class UnwritableError(Exception):
    """A value cannot be told to another process."""


def to_json(value: object, other: Callable[[object], Json]) -> Json:
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
        return {"tuple": [to_json(item, other) for item in value]}
    if isinstance(value, bytes):
        return {"bytes": b64encode(value).decode()}
    if PLAIN.get(type(value).__name__) == type(value).__module__:
        return {"of": type(value).__name__, **members(value, other)}
    return other(value)


def members(value: Any, other: Callable[[object], Json]) -> dict[str, Json]:
    """The fields of a value of a class, as JSON."""
    return {
        "fields": {field_.name: to_json(getattr(value, field_.name), other) for field_ in fields(value) if field_.init}
    }


def record(value: object) -> Json:
    """A value of a record.

    Raises:
        UntoldError: No record holds such a value.
    """
    try:
        return {"record": b64encode(values.encode(value)).decode()}
    except Exception:  # noqa: BLE001  whatever is no value of a record
        raise UnwritableError from None


def from_json(data: Json, other: Callable[[Mapping[str, Json]], object]) -> Any:
    """The value that was told.

    Raises:
        InternalError: It is none.
    """
    if data is None or type(data) in (bool, int, str):
        return data
    if not isinstance(data, dict):
        raise InternalError("a plan holds what no plan can hold; please report this.")
    if "kind" in data:
        return Kind(data["kind"])
    if "fraction" in data:
        return Fraction(data["fraction"])
    if "tuple" in data:
        return tuple(from_json(item, other) for item in data["tuple"])
    if "bytes" in data:
        return b64decode(data["bytes"])
    if "record" in data:
        return values.decode(b64decode(data["record"]))
    if "of" in data and data["of"] in PLAIN:
        made = getattr(import_module(PLAIN[data["of"]]), data["of"])
        return made(**{name: from_json(item, other) for name, item in data["fields"].items()})
    return other(data)
