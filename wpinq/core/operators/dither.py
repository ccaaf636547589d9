"""Keyed dither: pseudorandom rounding that depends on the record and a key alone, and is right on average.

No deterministic rounding of single weights to a coarser resolution is stable, because some smallest change must jump a
whole coarse step. With a dither that depends on the record alone, the rounded weight of each record that keeps its sign
changes by a constant and a coin; the coins are independent, and the mean is the change without rounding (but for 2^-64,
since a draw has 64 bits). Let the sensitivity of the input be B >= 1, which is S = 2^40 B coarse steps. Then the sum
over all records has a mean and a variance of at most S, and by Bernstein's inequality P(sum > S + 2^-16 S) <
exp(-(2^-16 S)^2 / (2 S (1 + 2^-17))) < exp(-127 B) < 2^-180. So the guarantee is additive: 2^-16 of B for all records
together, however small the change of each of them, or of each part of a partition, is. A weight that changes its sign
has two coins, which fall alike. By the Cauchy-Schwarz inequality E exp(t (X + Y)) is at most the root of E exp(2 t X) E
exp(2 t Y), so where weights below zero become weights above zero the probability is at most the root of that bound,
below 2^-90. Coins of different plans are independent too, so it holds for the sum over parts. Of plans that are
measured one after the other each has fresh coins, whatever was answered before, and the same bound holds for the
martingale (Freedman). n measurements of one plan, or of plans whose keys coincide (`dither_key`), are charged n times,
and one of them fails with at most n times that probability.
"""

from __future__ import annotations

import numpy as np

from wpinq.core.records.siphash import siphash
from wpinq.core.state.table import Ids, Weights

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
