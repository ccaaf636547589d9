"""The keyed pseudorandom function behind all noise: a bin's identity in, 64-bit words out.

Each (release key, word number) has its own AES key, and the block is the 128-bit identity alone, so
two different bins or numbers never have the same cipher input (privacy rule 6). Words are computed for
observed bins only, and every process that holds the key computes the same words in any order.

AES is a permutation; for n bins its advantage over a random function is at most n^2 / 2^129.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from struct import unpack
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wpinq.errors import InternalError

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
