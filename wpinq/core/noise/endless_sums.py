"""Gaussian noise of a running count that has no last epoch: factored sums of segments, and one number for each segment.

Epochs are cut into segments of 16, 256, 4096, 65,536 and then always 2^20 epochs. The count at an epoch is the sum of
the segments that have ended, each with noise of its own, and of its own segment so far, whose noise is that of factored
sums with the segment's length as horizon (`core/noise/factored_sums.py`).

**Proof that all answers together cost what one Gaussian answer costs.** Let v be the variance at which one answer,
which a unit moves by its most, is (epsilon, delta). In segment g the factors L R have s_g as the longest column of R.
What is released of it is R x + w, where w has the variance v s_g^2 / q in each place, and, once it has ended, its sum
with noise of the variance v / (1 - q), for q = `SHARE`. All else is post-processing.

1. A change by 1 of a bin at one epoch moves, in deviations, R x by no more than sqrt(q / v) in length and the segment's
   sum by sqrt((1 - q) / v), and nothing of other segments: sqrt(1 / v) in all.
2. So a unit that changes bin b at epochs e by c_b(e) moves all that is released of b, in deviations, by no more than
   sqrt(1 / v) times the sum of |c_b(e)| over e, by the triangle inequality; and all bins together, squared, by 1 / v
   times the sum over b of the squares of these sums. That is at most S B / v, for they are B at most and S together: as
   with one answer, and however the unit's records lie in segments.
3. Segments follow one another, and L is triangular: what is released at an epoch depends on no later change. So step 2
   holds for streams that somebody chooses by earlier answers, and with it the price: Gaussian noise that moves by no
   more than a length that is fixed beforehand costs what one shift of that length costs, whoever chooses (Denisov,
   McMahan, Rush, Smith and Thakurta, NeurIPS 2022, arXiv 2202.08312, theorem 2.1).

A segment's sum has discrete Gaussian noise, whose variance has the room that `square_of` leaves for it; a unit moves
no more of these sums than it moves weights of 1/resolution.

**Choice.** A longer first segment or a faster growth makes fewer sums of ended segments, and each epoch's factors are
those of a longer horizon. At (1, 1e-6) the deviation is 25.3 at epoch 10^4, 29.4 at 10^5 and 31.7 at 10^6; a binary
tree that knows its last epoch, with equal noise at each level, has 49 on average up to 10^5 and 59 up to 10^6. After
2^20 epochs variance grows by that of one sum for each 2^20 epochs: 39 at 10^7.

Source of segments: Chan, Shi, Song, ICALP 2010 (their hybrid mechanism); privacy rule 36.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from wpinq.core.noise.factored_sums import factors

FIRST, GROWTH, LONGEST = 16, 16, 1 << 20
"""How many epochs the first segment has, how many times as many the next one, and how many none exceeds."""
SHARE = Fraction(7, 10)
"""What the epochs of a segment spend of the inverse variance; its sum spends the rest."""
ROOM = 16
"""No variance that is drawn is so many times as large as that of one answer."""
FORM = f"factored sums of segments from {FIRST} by {GROWTH} to {LONGEST}, share {SHARE}, format 1"
"""What the key of a release is bound to."""


class Place(NamedTuple):
    """Where an epoch lies: in which segment, from 0, of how many epochs, and the how many-th of it, from 1."""

    segment: int
    length: int
    epoch: int


def located(epoch: int) -> Place:
    """The segment of an epoch.

    >>> located(16), located(17)
    (Place(segment=0, length=16, epoch=16), Place(segment=1, length=256, epoch=1))
    """
    segment, length = 0, FIRST
    while epoch > length and length < LONGEST:
        segment, epoch, length = segment + 1, epoch - length, min(length * GROWTH, LONGEST)
    more = (epoch - 1) // length
    return Place(segment + more, length, epoch - more * length)


def running_square(square: Fraction, length: int) -> Fraction:
    """The variance of w in a segment of so many epochs, where one answer would have `square`."""
    return square * factors(length).square / SHARE


def sum_square(square: Fraction, spare: int = 0) -> Fraction:
    """The variance of the sum of a segment that has ended; `spare` is what discrete noise needs more of it."""
    return square / (1 - SHARE) + spare


def variance(square: Fraction, epoch: int, spare: int = 0) -> float:
    """The variance of an answer, with that of its rounding."""
    at = located(epoch)
    running = float(running_square(square, at.length)) * factors(at.length).deviation(at.epoch) ** 2
    return running + at.segment * float(sum_square(square, spare)) + 1 / 12


def deviation(square: Fraction, epoch: int, spare: int = 0) -> float:
    """The standard deviation of an answer.

    >>> round(deviation(Fraction(18), 1000), 1)
    20.6
    """
    return math.sqrt(variance(square, epoch, spare))
