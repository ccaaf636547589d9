"""Labels of shards, chosen so that every worker gets one shard.

bytewax routes an item by the SipHash-1-3 of its key, so the keys `"0"` and `"1"` may go to the same worker and leave
the other idle. Here the keys are labels of shards, chosen so that shard i goes to worker i. A label holds nothing of a
record; which shard a record belongs to follows from its keyed identity, which nobody can choose without the secret.
Source: bytewax 0.21.1, src/operators.rs and src/timely.rs; Rust's DefaultHasher.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count

MASK = 2**64 - 1


def worker(key: str, workers: int) -> int:
    """The worker to which bytewax sends a key."""
    return _siphash13(key.encode() + b"\xff") % workers


@lru_cache
def labels(shards: int) -> tuple[str, ...]:
    """For each shard a label that bytewax routes to the worker of the same number, of as many workers.

    >>> [worker(label, 3) for label in labels(3)]
    [0, 1, 2]
    """
    names = (f"{number:03d}" for number in count())
    result: dict[int, str] = {}
    while len(result) < shards:
        name = next(names)
        result.setdefault(worker(name, shards), name)
    return tuple(result[shard] for shard in range(shards))


def _siphash13(message: bytes) -> int:
    """SipHash-1-3 under a key of zeros."""
    v = [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573]
    last = message[len(message) // 8 * 8 :].ljust(7, b"\0") + bytes([len(message) % 256])
    for start in range(0, len(message) // 8 * 8 + 1, 8):
        block = message[start : start + 8] if start + 8 <= len(message) else last
        word = int.from_bytes(block, "little")
        v[3] ^= word
        _round(v)
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        _round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _round(v: list[int]) -> None:
    for a, b, turn, c, d, other in ((0, 1, 13, 2, 3, 16), (2, 1, 17, 0, 3, 21)):
        v[a] = (v[a] + v[b]) & MASK
        v[c] = (v[c] + v[d]) & MASK
        v[b] = _rotate(v[b], turn) ^ v[a]
        v[d] = _rotate(v[d], other) ^ v[c]
        v[a] = _rotate(v[a], 32)


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & MASK
