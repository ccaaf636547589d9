"""SipHash-2-4 with 128 bits of output, over many messages at once.

Source: Aumasson and Bernstein, SipHash: a fast short-input PRF (2012), and the authors' 128-bit variant. It is a keyed
pseudorandom function: without the key nobody can choose records that collide, or predict the shard of a record.
The compiled kernel does the same, bit for bit, several times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels import LIB, Words, hash_bytes, hash_words

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
