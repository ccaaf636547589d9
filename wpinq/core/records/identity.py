"""The 128-bit identity of a record, and by the same function that of an observed bin.

State, shards, tables and noise know a record by its identity alone, so one bin cannot get two different noises.
The identity of a value is SipHash-2-4-128 of its canonical encoding (`values.py`); that of a record of one column is
its value's, that of a longer record is the hash of its columns' identities. Two records that collide are one bin, which
costs accuracy, never privacy. Source: privacy rules 6 and 10.

SipHash-2-4 with 128 bits of output, over many messages at once.

Source: Aumasson and Bernstein, SipHash: a fast short-input PRF (2012), and the authors' 128-bit variant. It is a keyed
pseudorandom function: without the key nobody can choose records that collide, or predict the shard of a record.
The compiled kernel does the same, bit for bit, several times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.core.kernels import LIB, Views, Words, hash_bytes, hash_views, hash_words
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.records.values import NULL, items

MESSAGES_PER_PASS = 16384
"""Messages that NumPy hashes at a time: six arrays of that length stay in the cache."""


def siphash(key: bytes, words: Sequence[Words]) -> Words:
    """Hash n messages of the same number of words, already padded and closed by their length.

    Args:
        key: 16 bytes.
        words: One array of n little-endian words for each position; the last holds the length in its top byte.

    Returns:
        An array of shape (n, 2).
    """
    if LIB is not None:
        return hash_words(LIB, key, words)
    out = np.empty((len(words[0]), 2), np.uint64)
    for start in range(0, len(out), MESSAGES_PER_PASS):
        _siphash(
            key, [word[start : start + MESSAGES_PER_PASS] for word in words], out[start : start + MESSAGES_PER_PASS]
        )
    return out


def hash_message(key: bytes, message: bytes) -> bytes:
    """Hash one message: the two words of `siphash_bytes`, as bytes."""
    if LIB is not None:
        return hash_bytes(LIB, key, message)
    return siphash_bytes(key, np.frombuffer(message, np.uint8), np.array([0, len(message)], np.int64)).tobytes()


def siphash_bytes(key: bytes, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Words:
    """Hash n messages that lie one after another in a buffer: message i is `data[offsets[i]:offsets[i + 1]]`.

    Messages of the same number of words are hashed together, in lock step.

    Returns:
        An array of shape (n, 2).
    """
    lengths = np.diff(offsets)
    out = np.empty((lengths.shape[0], 2), np.uint64)
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    # the eight bytes from every position, read in place
    window = np.ndarray((data.shape[0] + 1,), np.dtype("<u8"), padded, strides=(1,))
    counts = lengths >> 3
    for count in np.unique(counts):
        rows = np.flatnonzero(counts == count)
        start, length = offsets[:-1][rows], lengths[rows]
        words = [window[start + 8 * i] for i in range(count)]
        rest = (length & 7).astype(np.uint64)
        mask = (np.uint64(1) << (rest * np.uint64(8))) - np.uint64(1)
        words.append((window[start + 8 * count] & mask) | (length.astype(np.uint64) << np.uint64(56)))
        out[rows] = siphash(key, words)
    return out


def _siphash(key: bytes, words: Sequence[Words], out: Words) -> None:
    k0, k1 = (np.uint64(int.from_bytes(key[i : i + 8], "little")) for i in (0, 8))
    size = len(out)
    initial = (0x736F6D6570736575, 0x646F72616E646F6D ^ 0xEE, 0x6C7967656E657261, 0x7465646279746573)
    v = [np.full(size, np.uint64(c) ^ k) for c, k in zip(initial, (k0, k1, k0, k1), strict=True)]
    spare = np.empty(size, np.uint64)
    for word in words:
        v[3] ^= word
        _rounds(v, 2, spare)
        v[0] ^= word
    v[2] ^= np.uint64(0xEE)
    _rounds(v, 4, spare)
    out[:, 0] = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= np.uint64(0xDD)
    _rounds(v, 4, spare)
    out[:, 1] = v[0] ^ v[1] ^ v[2] ^ v[3]


def _rounds(v: list[Words], count: int, spare: Words) -> None:
    for _ in range(count):
        v[0] += v[1]
        _rotate(v[1], 13, spare)
        v[1] ^= v[0]
        _rotate(v[0], 32, spare)
        v[2] += v[3]
        _rotate(v[3], 16, spare)
        v[3] ^= v[2]
        v[0] += v[3]
        _rotate(v[3], 21, spare)
        v[3] ^= v[0]
        v[2] += v[1]
        _rotate(v[1], 17, spare)
        v[1] ^= v[2]
        _rotate(v[2], 32, spare)


def _rotate(word: Words, bits: int, spare: Words) -> None:
    np.right_shift(word, np.uint64(64 - bits), out=spare)
    np.left_shift(word, np.uint64(bits), out=word)
    word |= spare


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
