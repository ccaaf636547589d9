"""The keyed pseudorandom function behind all noise: a bin's identity in, 64-bit words out.

Each (release key, word number) has its own AES key, and the block is the 128-bit identity alone, so
two different bins or numbers never have the same cipher input (privacy rule 6). Words are computed for
observed bins only, and every process that holds the key computes the same words in any order.

AES is a permutation; for n bins its advantage over a random function is at most n^2 / 2^129.

Exact probabilities of binary digits: the thresholds that a sampler compares pseudorandom words with.

A geometric variable with ratio r = exp(-1/scale) has independent binary digits; digit j is 1 with
probability r^(2^j) / (1 + r^(2^j)), and some digit from J on is 1 with probability r^(2^J). These are
irrational, so integer bounds from below and above, computed with more and more guard bits, in the end
agree on any number of binary places: nothing is ever rounded. Source: privacy rules 33 and 34.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import blake2b
from struct import unpack
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wpinq.errors import InternalError
from wpinq.exact import exp_bounds

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext


IDENTITIES_PER_PIECE = 4096
"""Identities in a piece: 64 kB of blocks and as much of words stay in the second-level cache."""

_PERSON = b"wpinq word key 1"


class WordSource(Protocol):
    """Gives words for identities: `Words`, or in tests a source of chosen words."""

    def pair(self, identities: NDArray[np.uint64], number: int) -> NDArray[np.uint64]:
        """Give two words for each identity: shape (n, 2) in, shape (n, 2) out."""
        ...


class Words:
    """Pseudorandom words for identities, under one release key. Safe under threads; never pickled.

    Args:
        key: The release key, 32 bytes.

    Raises:
        InternalError: The key has another length.
    """

    __slots__ = ("_ciphers", "_first", "_key", "_lock")

    def __init__(self, key: bytes) -> None:
        if len(key) != 32:
            raise InternalError(f"Words: a release key has 32 bytes, not {len(key)}.")
        self._key = bytes(key)
        self._ciphers: dict[int, CipherContext] = {}
        self._first: list[Callable[[bytes], bytes]] = []
        self._lock = Lock()

    def pair(self, identities: NDArray[np.uint64], number: int) -> NDArray[np.uint64]:
        """Give the two words of each identity under one word number.

        Args:
            identities: Shape (n, 2), as `checked` returns them.
            number: The word number, from 0 to 2^128 - 1.

        Returns:
            Shape (n, 2): the encrypted block as two little-endian words.
        """
        words = np.empty(2 * len(identities) + 2, dtype="<u8")  # update_into wants a block to spare
        with self._lock:
            self._cipher(number).update_into(identities.view(np.uint8).reshape(-1).data, words.view(np.uint8).data)
        return words[:-2].reshape(-1, 2)

    def first(self, identity: bytes, count: int) -> tuple[int, ...]:
        """The two words of one identity, given as its block, under each of the word numbers below `count`."""
        with self._lock:
            for number in range(len(self._first), count):
                self._first.append(self._cipher(number).update)
            blocks = [update(identity) for update in self._first[:count]]
        return unpack(f"<{2 * count}Q", b"".join(blocks))

    def _cipher(self, number: int) -> CipherContext:
        if number not in self._ciphers:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

            block = number.to_bytes(16, "big")
            key = blake2b(block, key=self._key, digest_size=16, person=_PERSON).digest()
            self._ciphers[number] = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
        return self._ciphers[number]


def checked(identities: NDArray[Any]) -> NDArray[np.uint64]:
    """Check the shape of identities and lay them out as blocks: rows of two little-endian words.

    Raises:
        InternalError: Not a uint64 array of shape (n, 2).
    """
    if identities.dtype != np.uint64 or identities.ndim != 2 or identities.shape[1] != 2:
        raise InternalError(
            f"identities: uint64 of shape (n, 2) is needed; {identities.ndim}-d {identities.dtype} was given."
        )
    return np.ascontiguousarray(identities, dtype="<u8")


def pieces(length: int) -> Iterator[slice]:
    """Cut `length` rows into slices of at most `IDENTITIES_PER_PIECE`."""
    return (slice(start, start + IDENTITIES_PER_PIECE) for start in range(0, length, IDENTITIES_PER_PIECE))


WORD = 64
_GUARD = 64


@dataclass(frozen=True)
class Threshold:
    """The binary expansion of exp(-x), or with `odds` of exp(-x) / (1 + exp(-x)), as an endless sequence of words."""

    x: Fraction
    odds: bool

    def word(self, depth: int) -> int:
        """Give 64 binary places of the probability: places 64 * depth + 1 and after."""
        return binary_places(self.x, self.odds, WORD * (depth + 1)) & ((1 << WORD) - 1)

    @cached_property
    def first(self) -> int:
        """The first word, which decides almost always."""
        return self.word(0)


@lru_cache(maxsize=4096)
def binary_places(x: Fraction, odds: bool, places: int) -> int:
    """Give floor(2^places * p): the two bounds agree on it, so it is right."""
    guard = _GUARD
    while True:
        bits = places + guard
        low, high = exp_bounds(x, bits)
        if odds:  # e / (1 + e) grows with e
            low, high = (low << bits) // ((1 << bits) + low), -(-(high << bits) // ((1 << bits) + high))
        if low >> guard == high >> guard:
            return low >> guard
        guard *= 2


@lru_cache(maxsize=256)
def thresholds(scale: Fraction) -> tuple[Threshold, ...]:
    """Give the thresholds of a geometric variable: digits 0 to J - 1, and last the tail r^(2^J).

    J is the least with 2^J >= 45 * scale, so the tail is below 2^-64.
    """
    digits = max(0, (-(-45 * scale.numerator // scale.denominator) - 1).bit_length())
    low = tuple(Threshold((1 << j) / scale, odds=True) for j in range(digits))
    return (*low, Threshold((1 << digits) / scale, odds=False))
