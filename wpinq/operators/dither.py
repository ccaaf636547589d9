"""Keyed dither: rounding that is fixed for each record, the same for every data set, and right on average.

No deterministic rounding of single weights to a coarser resolution is stable, because some smallest step must jump a
whole coarse one. With a dither that depends on the record alone, each record moves by a constant and a coin,
independent of all others', with the mean of its ideal movement. Let a unit move the input by at most B in weight, B >=
1, which is S = 2^40 B units. Then the sum over all records has a mean and a variance of at most S, and by Bernstein's
inequality P(sum > S + 2^-16 S) < exp(-(2^-16 S)^2 / (2 S (1 + 2^-17))) < exp(-127 B) < 2^-180. So what holds is
additive: 2^-16 of B for all records together, however little each of them, or each part of a partition, moves. Coins of
different plans are independent too, so it holds for the sum over parts; asked one after the other, each plan has fresh
coins whatever was answered before, and the same bound holds for the martingale (Freedman). What is asked of one plan n
times, or of plans whose keys coincide (`dither_key`), is charged n times, and fails in one of n with less than n
2^-180.
"""

from __future__ import annotations

import numpy as np

from wpinq.records.siphash import siphash
from wpinq.state.table import Ids, Weights

GRID = 2**40
"""Dithered weights are whole numbers of 1/GRID."""


def draws(key: bytes, *ids: Ids) -> Weights:
    """64 pseudorandom bits for each row, as Python integers, from the row's identities."""
    words = [np.ascontiguousarray(item[:, i]) for item in ids for i in (0, 1)]
    closed = np.full(len(ids[0]), np.uint64((16 * len(ids)) << 56))
    return siphash(key, [*words, closed])[:, 0].astype(object)


def rounded(numerators: Weights, denominators: Weights | int, draw: Weights) -> Weights:
    """Round fractions down or up by their dither; 0 stays 0, and a sign changes nothing else."""
    size = abs(numerators.astype(object))
    whole = (size + ((draw * denominators) >> 64)) // denominators
    return np.where(numerators < 0, -whole, whole)
