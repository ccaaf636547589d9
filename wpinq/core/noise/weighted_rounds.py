"""Which names exist, where people have many: each of a person's k names weighs 1 / sqrt(k), and noise is Gaussian.

A round adds up the weights of each name, adds noise, and publishes the names that reach a threshold. In the next round
people share their weight among the names that were not published yet, so what they had on popular names helps others.

**What it costs.** Let a person more have names R, of which `names` is the most. (People's names must not depend on
other people: `core/measurements/select.py` says for which plans that holds.)

1. Given what was published, the weights of all names that somebody else has move by a vector of length 1 at most: the
   sum of 1 / |R| over R. So the noisy weights of all rounds are a course of Gaussian mechanisms with shifts m_1, m_2,
   ... in standard deviations, fixed beforehand. They lose what one of the shift sqrt(m_1^2 + m_2^2 + ...) does (Dong,
   Roth and Su, "Gaussian differential privacy", JRSS B 2022, corollary 3.3): (epsilon, delta / 2) by
   `gaussian_curve.py`, where each of the person's names counts as a bin once a round. Weights are whole numbers of
   1 / UNIT, rounded down, so the length is less than 1 if anything; noise has the same grid.
2. A name that nobody else has is published in round i with the probability that noise reaches its threshold from
   1 / sqrt(k) where k names are left, and of these k at most. The threshold makes that at most the round's part of
   delta / 2 for all k, by a union bound over k names.
3. Let E be that no such name is published in any round, so P(not E) <= t = delta / 2; r(S) the probability of an answer
   in S where such names are left out, with the person, p(S) the same without the person, and m(S) with the person as it
   is published. The noises are independent, so m >= (1 - t) r; and m <= r + t. By 1, r <= exp(epsilon) p + t and
   p <= exp(epsilon) r + t. So m <= exp(epsilon) p + 2 t. And p <= exp(epsilon) m + 2 t: where exp(epsilon) r <= 1
   because exp(epsilon) r <= exp(epsilon) m + t, and else because exp(epsilon) m >= 1 - t. So it is (epsilon, delta).

Source: Gopi, Gulhane, Kulkarni, Shen, Shokouhi and Yekhanin, "Differentially private set union", ICML 2020 (arXiv
2002.09745), for weighted Gaussian noise; Swanberg, Desfontaines and Haney, "DP-SIPS", PoPETs 2023 (arXiv 2301.01998),
for rounds of growing budgets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wpinq.core.noise.gaussian import DiscreteGaussian
from wpinq.core.noise.gaussian_curve import shift_of, square_of
from wpinq.core.noise.gaussian_tails import half_width
from wpinq.core.noise.words import WordSource

UNIT = 1 << 20
"""Steps in a weight of 1."""
MANY = 10
"""From so many names of a person on there are several rounds."""
SHARES = (Fraction(1, 10), Fraction(9, 10))
"""What each of several rounds has of the square of the shift, and of delta: as good as any on Zipf's law."""


@dataclass(frozen=True)
class Round:
    """One round.

    Attributes:
        noise: Of a name, in steps.
        threshold: The least noisy weight that is published, in steps.
    """

    noise: DiscreteGaussian
    threshold: int


@dataclass(frozen=True)
class WeightedRounds:
    """All rounds.

    Attributes:
        names: The most that one person has.
        rounds: In their order.
    """

    names: int
    rounds: tuple[Round, ...]
    name: ClassVar[str] = "weighted gaussian"

    @property
    def people(self) -> Fraction:
        """How many people who have most names it takes for one of them to be published with probability 1/2."""
        last = self.rounds[-1]
        return Fraction(last.threshold, math.isqrt(UNIT**2 // self.names))


@dataclass(frozen=True)
class OfRound:
    """The words of a round: those of the query, under numbers that no other round has."""

    words: WordSource
    round_number: int

    def pair(self, identities: NDArray[np.uint64], number: int) -> NDArray[np.uint64]:
        """Give two words for each identity, as `Words` does."""
        return self.words.pair(identities, number + (self.round_number << 100))


def weights(names: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each name of people with so many names weighs, in steps.

    >>> weights(np.array([1, 4, 7])) / UNIT
    array([1.        , 0.5       , 0.37796402])
    """
    many, index = np.unique(names, return_inverse=True)
    each = np.array([math.isqrt(UNIT**2 // count) for count in many.tolist()], np.int64)
    result: NDArray[np.int64] = each[index]
    return result


def weighted_rounds(epsilon: Fraction, delta: Fraction, names: int) -> WeightedRounds:
    """The rounds that are (epsilon, delta) for people of so many names at most.

    Raises:
        PlanError: They are too small.
    """
    shares = SHARES if names >= MANY else (Fraction(1),)
    shift, bins = shift_of(epsilon, delta / 2), names * len(shares)
    wider = square_of(Fraction(1), bins, epsilon, delta / 2) - 1 / shift**2  # what rounding takes
    squares = [UNIT**2 / (shift**2 * share) + wider for share in shares]
    rounds = (Round(DiscreteGaussian(square), threshold(square, delta / 2 * share, names))
             for square, share in zip(squares, shares, strict=True))  # fmt: skip
    return WeightedRounds(names, tuple(rounds))


def threshold(square: Fraction, delta: Fraction, names: int) -> int:
    """The least threshold known to hide k names that weigh 1 / sqrt(k) each but with probability delta, for all k.

    Numbers of names are taken in stretches: each has the weight of its first and as many as its last.
    """
    firsts = [1]
    while firsts[-1] < names:
        firsts.append(min(names, 2 * firsts[-1]))
    lasts = [*(first - 1 for first in firsts[1:]), names]
    return max(
        math.isqrt(UNIT**2 // first) + half_width(square, 1 - 2 * delta / last) + 1
        for first, last in zip(firsts, lasts, strict=True)
    )
