"""The 128-bit identity of a record, and by the same function that of an observed bin.

State, shards, tables and noise know a record by its identity alone, so one bin cannot get two different noises.
The identity of a value is SipHash-2-4-128 of its canonical encoding (`values.py`); that of a record of one column is
its value's, that of a longer record is the hash of its columns' identities. Two records that collide are one bin, which
costs accuracy, never privacy. Source: privacy rules 6 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from wpinq.core.kernels import LIB, Words, hash_views
from wpinq.core.kernels.views import Views
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.records.siphash import hash_message, siphash, siphash_bytes
from wpinq.core.records.values import NULL, items

_CLOSE = np.uint64(9 << 56)  # eight bytes and a family byte: the second and last word of a fixed-size value


def identities(frame: pl.DataFrame, schema: Schema, key: bytes) -> Words:
    """Identities of the records in a frame's columns.

    Args:
        frame: Holds the schema's columns in their canonical types; other columns are ignored.
        schema: The columns that make a record, none of them ranged.
        key: 16 secret bytes of the data set.

    Returns:
        An array of shape (rows, 2).
    """
    columns = column_identities(frame, schema, key)
    return columns[0] if len(columns) == 1 else tuple_identities(columns, key)


def column_identities(frame: pl.DataFrame, schema: Schema, key: bytes) -> list[Words]:
    """The identities of the values in each of a frame's columns, as `identities` takes them."""
    return [_column(frame[column.name], column.kind, key) for column in schema]


def identity(codes: Sequence[bytes], key: bytes) -> bytes:
    """The identity of one record, from the encodings of its columns: the same words as those of `identities`."""
    words = [_identity(code, key) for code in codes]
    return words[0] if len(words) == 1 else hash_message(key, b"".join(words) + b"c")


def _identity(code: bytes, key: bytes) -> bytes:
    """Of a tuple that of its items' identities, of anything else that of its encoding."""
    if code.endswith(b"c"):
        code = b"".join(_identity(item, key) for item in items(code)) + b"c"
    return hash_message(key, code)


def integer_identities(numbers: np.ndarray, key: bytes) -> Words:
    """Identities of one column of integers, without a frame."""
    return _fixed(np.asarray(numbers, np.int64).view(np.uint64), np.uint64(ord("i")), key)


def tuple_identities(columns: Sequence[Words], key: bytes) -> Words:
    """Identities of records of several columns, from those of their values."""
    words = [column[:, i] for column in columns for i in (0, 1)]
    size = words[0].shape[0]
    length = (16 * len(columns) + 1) % 256
    words.append(np.full(size, np.uint64((length << 56) | ord("c"))))
    return siphash(key, words)


def _column(series: pl.Series, kind: Kind, key: bytes) -> Words:
    if kind is Kind.ANY:
        return _any(series.fill_null(NULL), key)
    family = _FAMILIES.get(kind)
    result = _messages(series, family, key) if family else _fixed(*_PAYLOADS[kind](series), key)
    if series.null_count():
        result[series.is_null().to_numpy()] = _messages(pl.Series([NULL]), b"", key)
    return result


def _fixed(payload: Words, family: Words | np.uint64, key: bytes) -> Words:
    """Hash eight bytes and a family byte."""
    return siphash(key, [payload, np.broadcast_to(family | _CLOSE, payload.shape)])


def _messages(series: pl.Series, family: bytes, key: bytes) -> Words:
    """Hash texts or bytes, each followed by its family byte, where they lie; what is null does not matter."""
    if series.is_empty():
        return np.empty((0, 2), np.uint64)
    text = series.dtype == pl.String
    if series.null_count():
        series = series.fill_null("" if text else b"")
    if LIB is not None:
        return hash_views(LIB, key, Views(series.rechunk()), family[0] if family else -1)
    import pyarrow as pa

    closed = series + family.decode() if text else pl.Series([column + family for column in series], dtype=pl.Binary)
    array = closed.to_arrow().cast(pa.large_binary())
    _, offsets, data = array.buffers()
    start = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return siphash_bytes(key, np.frombuffer(data or b"", np.uint8), start)


def _any(series: pl.Series, key: bytes) -> Words:
    """Canonical bytes are hashed as they are; the few nested tuples among them item by item."""
    result = _messages(series, b"", key)
    for row in series.bin.ends_with(b"c").arg_true():
        parts = [_any(pl.Series([item], dtype=pl.Binary), key) for item in items(series[row])]
        empty = [np.array([1 << 56 | ord("c")], np.uint64)]
        result[row] = tuple_identities(parts, key) if parts else siphash(key, empty)
    return result


def _integers(series: pl.Series) -> tuple[Words, np.uint64]:
    return _bits(series.cast(pl.Int64)), np.uint64(ord("i"))


def _numbers(series: pl.Series) -> tuple[Words, Words]:
    """Integral floats are integers."""
    number = (series.fill_null(0.0) if series.null_count() else series).to_numpy()
    whole = (number == np.floor(number)) & (number >= -(2.0**63)) & (number < 2.0**63)
    integer = np.where(whole, number, 0.0).astype(np.int64).view(np.uint64)
    bits = number.view(np.uint64)
    return np.where(whole, integer, bits), np.where(whole, np.uint64(ord("i")), np.uint64(ord("f")))


def _times(family: str) -> Callable[[pl.Series], tuple[Words, np.uint64]]:
    return lambda series: (_bits(series.cast(pl.Int64)), np.uint64(ord(family)))


def _bits(series: pl.Series) -> Words:
    whole = series.fill_null(0) if series.null_count() else series  # to fill costs a query of Polars
    return whole.to_numpy().view(np.uint64)


_FAMILIES = {Kind.TEXT: b"s", Kind.BYTES: b"b"}
_PAYLOADS: dict[Kind, Callable[[pl.Series], tuple[Words, Words | np.uint64]]] = {
    Kind.INT: _integers,
    Kind.BOOL: _integers,
    Kind.FLOAT: _numbers,
    Kind.DATE: _times("d"),
    Kind.TIME: _times("t"),
    Kind.INSTANT: _times("u"),
    Kind.SPAN: _times("l"),
}
