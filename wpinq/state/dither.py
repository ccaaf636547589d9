"""Keyed dither: rounding that is fixed for each record, the same for every data set, and right on average.

No deterministic rounding of single weights to a coarser lattice is stable, because some smallest step must jump a whole
coarse one. With a dither that depends on the record alone, the movement of each record has the mean of its ideal
movement, and the sum over records is within 1 + 2^-16 of it but for a probability below 2^-180. Source: privacy rule 1.
"""

from __future__ import annotations

import numpy as np

from wpinq.siphash import siphash
from wpinq.state.table import Ids, Weights

GRID = 2**40
"""Dithered weights are whole numbers of 1/GRID."""


def draws(key: bytes, *ids: Ids) -> Weights:
    """64 pseudorandom bits for each row, as Python integers, from the row's identities."""
    words = [np.ascontiguousarray(one[:, i]) for one in ids for i in (0, 1)]
    closed = np.full(len(ids[0]), np.uint64((16 * len(ids)) << 56))
    return siphash(key, [*words, closed])[:, 0].astype(object)


def rounded(numerators: Weights, denominators: Weights | int, draw: Weights) -> Weights:
    """Round fractions down or up by their dither; 0 stays 0, and a sign changes nothing else."""
    size = abs(numerators.astype(object))
    whole = (size + ((draw * denominators) >> 64)) // denominators
    return np.where(numerators < 0, -whole, whole)
