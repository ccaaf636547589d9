"""What a fingerprint covers: every field of a step, by one rule, so that a new operator cannot omit one.

The fingerprint of a plan decides whether two queries are the same, so that the second is free and answered from the
histogram of the first. If two plans with different answers had the same fingerprint, the second would be answered
wrongly, or refused exactly where the answers differ, which reveals something about records at no charge. So it covers

- of a step: its type, all its fields, its columns (names, kinds, which are ranged), its resolution, and its inputs;
- of a data set: its ledger, name, version and unit, and the way in which its records are read (see `DataSet.covered`);
- of a function: what it is and all that it captured (see `functions.capture`), its columns, and what the platform adds.

A step with any other value has no fingerprint, and is a new query every time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any

from wpinq.core.records.fields import SHOWN, Field, encode


class Uncovered(Exception):  # noqa: N818
    """A fingerprint cannot cover something."""


def covered_fields(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass, but for those that are only shown."""
    kind: Any = type(thing)
    return {name: getattr(thing, name) for name in _names(kind)}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.metadata != SHOWN)


_PLAIN = frozenset({type(None), bool, int, str, bytes, Fraction})


def covered(value: Any, node: Callable[[Any], bytes | None], *, portable: bool = False) -> Field:
    """A value as a field of an injective encoding.

    Args:
        value: Text, bytes, a number, a member of an enumeration, a tuple or a dataclass of such, a step, or an object
            with a property `covered` that returns such a value.
        node: Gives the fingerprint of a step, and None for other values.
        portable: Cover what people take for one question, on whatever version of the data and of Python: the property
            `portable` of what has one, instead of `covered`.

    Raises:
        Uncovered: It is a value of another kind, or its `covered` is None.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[no-any-return]
    if kind is float:
        return ("float", value.hex())
    if kind is tuple:
        return tuple([covered(item, node, portable=portable) for item in value])
    if isinstance(value, Enum):
        return (kind.__qualname__, value.name)
    if hasattr(value, "covered"):
        form = value.portable if portable and hasattr(value, "portable") else value.covered
        if form is None:
            raise Uncovered
        return covered(form, node, portable=portable)
    known = node(value)
    if known is not None:
        return ("step", known)
    if is_dataclass(value) and not isinstance(value, type):
        return (
            kind.__qualname__,
            *[(name, covered(entry, node, portable=portable)) for name, entry in covered_fields(value).items()],
        )
    raise Uncovered


def digest(values: Iterable[object], node: Callable[[Any], bytes | None]) -> bytes:
    """A digest of values; all values that a fingerprint cannot cover count as equal."""

    def known_or_none(value: object) -> Field:
        try:
            return covered(value, node)
        except Uncovered:
            return None

    return hashlib.blake2b(encode(*map(known_or_none, values)), digest_size=32).digest()
