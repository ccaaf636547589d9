"""One canonical encoding of every value that a record or a bin may hold.

The rule of equality, which decides what "the same bin" means:

- Numbers are equal as in Python: `1`, `1.0`, `True`, `Decimal(1)`, `numpy.int64(1)` are one value, `0.0` and
  `-0.0` are one value. `"1"` is text and another value. NaN is `None`: it equals nothing, not even itself.
- Text is equal code point by code point: composed and decomposed accents (NFC, NFD) are two values.
- Dates, timestamps without a zone, timestamps with a zone (by instant) and durations are four families; times are
  counted in microseconds.
- A UUID is its text, a time of day without a zone the duration since midnight.
- A list is read as a tuple; tuples are equal when their items are. `None` equals itself only.

Anything else is not a value: sets, dictionaries, objects, times outside of the years 1 to 9999 (in UTC, where there is
a zone), tuples nested more than `DEEPEST` levels. In a source it is null; a function that returns it drops the record.

The encoding is injective and ends in one byte for the family, so a text's bytes can be hashed where they lie.
This is a format: the identities of records are computed from it, so a change needs a new FORMAT number.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import numbers
import struct
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from wpinq.errors import BinError

FORMAT = 2
KEY_SIZE = 16
"""Bytes of the key that identities are computed with."""

EPOCH = dt.datetime(1970, 1, 1)
EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)
DAY = dt.timedelta(days=1)
NULL = b"n"
DEEPEST = 32
"""Levels of tuples in tuples, however deep the caller's own stack is."""
FIRST, LAST = ((edge - EPOCH) // MICROSECOND for edge in (dt.datetime.min, dt.datetime.max))
"""The first and the last time that Python has, in microseconds."""


def encode(value: Any) -> bytes:
    """Encode a value canonically: equal values, and only those, give equal bytes.

    Raises:
        BinError: It is not a value; the message names its type only.

    >>> encode(1) == encode(1.0) == encode(True) != encode("1")
    True
    >>> encode(float("nan")) == encode(None)
    True
    """
    return _encode(value, DEEPEST)


def _encode(value: Any, levels: int) -> bytes:
    if isinstance(value, str):
        return _text(value)
    if value is None:
        return NULL
    if isinstance(value, (bool, int)):
        return _integer(int(value))
    if hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return _encode_numpy(value)
    if isinstance(value, (float, Decimal, numbers.Rational)):
        return _number(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value) + b"b"
    if isinstance(value, (tuple, list)):
        if not levels:
            raise BinError(f"a tuple that is nested more than {DEEPEST} levels is not a value; make it flatter.")
        return joined([_encode(item, levels - 1) for item in value])
    return _time(value)


def decode(code: bytes) -> Any:
    """The value of an encoding, in its canonical form (`1.0` comes back as `1`)."""
    family, body = code[-1:], code[:-1]
    if family == b"s":
        return body.decode()
    if family == b"i":
        return int.from_bytes(body, "little", signed=True)
    if family == b"n":
        return None
    if family == b"f":
        return struct.unpack("<d", body)[0]
    if family == b"q":
        return _rational(Fraction(body.decode()))
    if family == b"b":
        return body
    if family == b"c":
        return tuple(decode(item) for item in items(code))
    span = int.from_bytes(body, "little", signed=True) * (DAY if family == b"d" else MICROSECOND)
    if family == b"l":
        return span
    return EPOCH_UTC + span if family == b"u" else EPOCH + span if family == b"t" else (EPOCH + span).date()


def joined(codes: Iterable[bytes]) -> bytes:
    """The encoding of a tuple, from the encodings of its items."""
    return b"".join(len(code).to_bytes(4, "little") + code for code in codes) + b"c"


def items(code: bytes) -> list[bytes]:
    """The encodings of a tuple's items, from the tuple's encoding."""
    result, position, end = [], 0, len(code) - 1
    while position < end:
        size = int.from_bytes(code[position : position + 4], "little")
        result.append(code[position + 4 : position + 4 + size])
        position += 4 + size
    return result


def _text(value: str) -> bytes:
    try:
        return str.encode(value) + b"s"
    except UnicodeEncodeError:
        raise BinError("a text with lone surrogates is not a value; decode it first.") from None


def _integer(value: int) -> bytes:
    if -(2**63) <= value < 2**63:
        return value.to_bytes(8, "little", signed=True) + b"i"
    return _number(value)


def _number(value: Any) -> bytes:
    """Integers first, then what a double holds exactly, then an exact fraction."""
    if value != value:  # noqa: PLR0124  NaN is the value that differs from itself
        return NULL
    if isinstance(value, (float, Decimal)) and math.isinf(value):
        return struct.pack("<d", float(value)) + b"f"
    number = Fraction(value)
    if number.denominator == 1 and -(2**63) <= number.numerator < 2**63:
        return number.numerator.to_bytes(8, "little", signed=True) + b"i"
    try:
        nearest = float(number)
    except OverflowError:
        nearest = math.inf
    if math.isfinite(nearest) and Fraction(nearest) == number:
        return struct.pack("<d", nearest) + b"f"
    return str(number).encode() + b"q"


def _rational(number: Fraction) -> int | Decimal | Fraction:
    if number.denominator == 1:
        return number.numerator
    odd = number.denominator
    for prime in (2, 5):
        while odd % prime == 0:
            odd //= prime
    if odd == 1:
        exact = Decimal(number.numerator) / Decimal(number.denominator)
        if Fraction(exact) == number:
            return exact
    return number


def _encode_numpy(value: Any) -> bytes:
    item = value.item()
    if value.dtype.kind in "mM":
        return _numpy_time(value)
    if isinstance(item, type(value)):
        raise BinError(f"{type(value).__name__} is not a value; convert it to a plain Python number.")
    return encode(item)


def _numpy_time(value: Any) -> bytes:
    import numpy as np

    moment = value.dtype.kind == "M"
    exact = value.astype("datetime64[us]" if moment else "timedelta64[us]")
    if np.isnat(value):
        return NULL
    finer = np.datetime_data(value.dtype)[0] in ("ns", "ps", "fs", "as")
    if not finer and exact.astype(value.dtype) != value:  # it left 64 bits, and came back as another one
        raise _beyond()
    if value.dtype == "datetime64[D]":
        return _days(int(value.astype("int64")))
    return _micros(int(exact.astype("int64")), b"t") if moment else _span(int(exact.astype("int64")))


def _time(value: Any) -> bytes:
    """A time, or what is left that is a value: a UUID."""
    if isinstance(value, dt.datetime):
        aware = value.tzinfo is not None
        return _micros((value - (EPOCH_UTC if aware else EPOCH)) // MICROSECOND, b"u" if aware else b"t")
    if isinstance(value, dt.date):
        return _days(value.toordinal() - EPOCH.toordinal())
    if isinstance(value, dt.timedelta):
        return _span(value // MICROSECOND)
    if isinstance(value, dt.time) and value.tzinfo is None:
        return _span((dt.datetime.combine(EPOCH, value) - EPOCH) // MICROSECOND)
    if isinstance(value, UUID):
        return _text(str(value))
    raise BinError(f"{type(value).__name__} is not a value; use text, numbers, booleans, bytes, dates, None or tuples.")


def _micros(count: int, family: bytes) -> bytes:
    if not FIRST <= count <= LAST:
        raise _beyond()
    return count.to_bytes(8, "little", signed=True) + family


def _days(count: int) -> bytes:
    if not FIRST <= count * (DAY // MICROSECOND) <= LAST:
        raise _beyond()
    return count.to_bytes(8, "little", signed=True) + b"d"


def _span(count: int) -> bytes:
    if not -(2**63) <= count < 2**63:
        raise BinError("a duration beyond 64 bits of microseconds is not a value.")
    return count.to_bytes(8, "little", signed=True) + b"l"


def _beyond() -> BinError:
    return BinError("a time outside of the years 1 to 9999 is not a value.")


def digest(*parts: Any) -> bytes:
    """A hash of nested tuples of text, integers, bytes and None."""
    return hashlib.sha256(encode(parts)).digest()
