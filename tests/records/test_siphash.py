"""SipHash against the authors' vectors and against a plain scalar implementation."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wpinq.core.records.identity import siphash_bytes

KEY = bytes(range(16))
MASK = 2**64 - 1

# vectors_sip128 of the authors' reference implementation: message of length n is 00 01 02 ..., key is 00 .. 0f
VECTORS = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    2: "8177228da4a45dc7fca38bdef60affe4",
    3: "9c70b60c5267a94e5f33b6b02985ed51",
}


def rotate(x, b):
    return ((x << b) | (x >> (64 - b))) & MASK


def rounds(v, count):
    for _ in range(count):
        v[0] = (v[0] + v[1]) & MASK
        v[1] = rotate(v[1], 13) ^ v[0]
        v[0] = rotate(v[0], 32)
        v[2] = (v[2] + v[3]) & MASK
        v[3] = rotate(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & MASK
        v[3] = rotate(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & MASK
        v[1] = rotate(v[1], 17) ^ v[2]
        v[2] = rotate(v[2], 32)


def scalar(message):
    k0, k1 = int.from_bytes(KEY[:8], "little"), int.from_bytes(KEY[8:], "little")
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    padded = message + b"\0" * (7 - len(message) % 8) + bytes([len(message) % 256])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= word
        rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(v, 4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(v, 4)
    return first.to_bytes(8, "little") + (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")


def hashed(messages):
    offsets = np.cumsum([0, *map(len, messages)])
    return [row.tobytes() for row in siphash_bytes(KEY, np.frombuffer(b"".join(messages), np.uint8), offsets)]


def test_authors_vectors():
    found = hashed([bytes(range(n)) for n in VECTORS])
    assert [row.hex() for row in found] == list(VECTORS.values())


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_many_messages_at_once_are_each_hashed_alone(messages):
    assert hashed(messages) == [scalar(message) for message in messages]
