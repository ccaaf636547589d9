"""Words just below and just above a probability: whoever compares them with it exactly tells them apart.

What is drawn by comparing an endless word with a probability has exactly that probability where it does: of all
strings of n words floor(2^(64 n) p) are below. So some words say of a comparison what no number of draws would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

WORD = 64
DEPTH = 2
"""Words of a string; the border is in the last of them, so the first are equal."""
PRECISION = Context(prec=120)


class Strings:
    """Words that are the same for all bins, or those of each bin: a list of pairs under each number.

    Attributes:
        words: Of each number the words of all bins.
    """

    def __init__(self, words: Mapping[int, NDArray[np.uint64]]) -> None:
        self.words = words

    def pair(self, identities: NDArray[np.uint64], number: int) -> NDArray[np.uint64]:
        """The words of bins, which are known by their identities: 0, 1, 2, ..."""
        return np.ascontiguousarray(self.words[number][identities[:, 0].astype(np.int64)])


def bins(many: int) -> NDArray[np.uint64]:
    """So many identities, as `Strings` knows them."""
    return np.stack([np.arange(many), np.zeros(many)], axis=1).astype(np.uint64)


def column(word: int, second: int = 0) -> NDArray[np.uint64]:
    """The words of a single bin."""
    return np.array([[word, second]], np.uint64)


def exponential(x: Fraction) -> Decimal:
    """exp(-x), by decimal's correctly rounded function, which is not ours."""
    return PRECISION.exp(PRECISION.divide(Decimal(-x.numerator), Decimal(x.denominator)))


def misplaced(chance: Decimal, drawn: Callable[[list[int]], bool]) -> bool:
    """Whether a comparison with a chance is wrong for the string just below it, or for the next above.

    Args:
        chance: Between 0 and 1, to more places than the strings have.
        drawn: Whether a string of words is taken for one below the chance.
    """
    border = int(PRECISION.multiply(chance, Decimal(1 << WORD * DEPTH)))
    if not 0 < border < (1 << WORD * DEPTH) - 1:
        return False
    strings = [[number >> WORD, number % (1 << WORD)] for number in (border - 1, border + 1)]
    return [drawn(words) for words in strings] != [True, False]
