"""A keyed digest of a measured histogram: order-free, additive over shards, never shown.

The key of the noise depends on it, as a second line of defence: a changed histogram never gets the old noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.core.noise.words import Words, checked, pieces
from wpinq.errors import InternalError

MODULUS = 2**256


def histogram_digest(key: bytes, identities: NDArray[Any], weights: NDArray[Any]) -> int:
    """Sum a pseudorandom function of (identity, weight) over all rows of non-zero weight, mod 2^256.

    The function is a CBC-MAC of two blocks, the identity and then the weight, under two independent keys
    of 128 bits each; at a fixed length that is pseudorandom (Bellare, Kilian and Rogaway, 2000). Each
    identity must be in one row only, or the digest would be that of another histogram.

    Args:
        key: 32 bytes, derived for this purpose alone.
        identities: Shape (n, 2), uint64.
        weights: Exact weights in units of 1/resolution: shape (n,), int64, or (n, 2), uint64,
            128-bit two's complement, the low word first.

    Returns:
        The digest, below 2^256. Of an empty histogram it is 0.

    Raises:
        InternalError: Another shape or type.

    Source: privacy rule 7.
    """
    words, total = Words(key), 0
    if len(identities) != len(weights):
        raise InternalError("histogram_digest: identities and weights differ in number.")
    for piece in pieces(max(len(identities), 1)):  # a copy of all would be as large as the histogram
        blocks, masks = checked(identities[piece]), _limbs(weights[piece])
        nonzero = (masks[:, 0] | masks[:, 1]) != 0
        if not nonzero.all():
            blocks, masks = blocks[nonzero], masks[nonzero]
        for half in (0, 1):
            tags = words.pair(words.pair(blocks, half) ^ masks, half)
            total += _sum(tags) << (128 * half)
    return total % MODULUS


def _limbs(weights: NDArray[Any]) -> NDArray[np.uint64]:
    if weights.dtype == np.int64 and weights.ndim == 1:
        return np.stack([weights, weights >> 63], axis=1).astype("<i8", copy=False).view("<u8")
    return checked(weights)


def _sum(tags: NDArray[np.uint64]) -> int:
    """Sum rows of two words as 128-bit numbers, exactly: 32-bit halves of a piece cannot overflow 64 bits."""
    whole = len(tags) // 64 * 64  # rows of 64 numbers are added at once, several times as fast as one by one
    parts = tags[:whole].view("<u4").reshape(-1, 256).sum(axis=0, dtype=np.uint64).reshape(64, 4)
    halves = (parts.sum(axis=0) + tags[whole:].view("<u4").sum(axis=0, dtype=np.uint64)).tolist()
    return sum(int(half) << (32 * index) for index, half in enumerate(halves))
