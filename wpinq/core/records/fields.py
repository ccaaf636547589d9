"""An injective encoding of tuples, from which keys and fingerprints are derived.

No two different tuples have the same encoding, so two queries, or two purposes of one, never share a key.
Source: privacy rules 3 and 6.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from wpinq.errors import InternalError

Field: TypeAlias = "bool | int | str | bytes | Fraction | tuple[Field, ...] | None"
"""What a key can be bound to. `1`, `True` and `Fraction(1)` are three different fields."""

SHOWN = {"only shown": True}
"""Metadata of a field of a dataclass that no fingerprint covers: `length: str = field(metadata=SHOWN)`."""


def encode(*fields: Field) -> bytes:
    """Encode fields as bytes, injectively: no two different tuples of fields have the same encoding.

    Every value is a letter for its type and, where its length can vary, its length in eight bytes.

    Raises:
        InternalError: A field of another type (a float, say, or a NumPy integer).

    Source: privacy rules 3 and 6.

    >>> encode(1) == encode(True), encode("a", "b") == encode("ab"), encode(()) == encode()
    (False, False, False)
    """
    return b"".join([_encode(field) for field in fields])


def _encode(field: object) -> bytes:
    """One field; a type's own test is asked before `Fraction`'s, which takes as long as all others."""
    if isinstance(field, str):
        return _sized(b"s", field.encode("utf-8", "surrogatepass"))
    if isinstance(field, tuple):
        return b"t" + len(field).to_bytes(8, "big") + b"".join([_encode(item) for item in field])
    if field is None:
        return b"n"
    if isinstance(field, bool):
        return b"b1" if field else b"b0"
    if isinstance(field, int):
        return _sized(b"i", field.to_bytes(field.bit_length() // 8 + 1, "big", signed=True))
    if isinstance(field, bytes):
        return _sized(b"y", field)
    if isinstance(field, Fraction):
        return b"q" + _encode(field.numerator) + _encode(field.denominator)
    raise InternalError(f"fields.encode: a field of type {type(field).__name__} has no canonical encoding.")


def _sized(tag: bytes, body: bytes) -> bytes:
    return tag + len(body).to_bytes(8, "big") + body
