"""Permute-and-flip: the exponential mechanism, sampled without replacement, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.core.noise.words import WORD, Threshold, WordSource, checked

ORDER, FIRST_COIN = 0, 1
_NEVER = 45
"""exp(-45) is below 2^-64: the first word of its expansion is 0."""


@dataclass(frozen=True)
class PermuteAndFlip:
    """Go through the candidates in random order and take each with probability exp(-rate * loss), until one is taken.

    The exponential mechanism does the same with replacement: it draws candidates until one is taken. Without
    replacement epsilon is the same and the expected loss is never larger. Candidates are ordered by 128 pseudorandom
    bits of each identity, which never agree; a candidate's coin compares an endless pseudorandom word with
    exp(-rate * loss), exactly. At least one candidate has loss 0, and such a candidate is always taken.

    Attributes:
        rate: Of the losses; if the sensitivity of every loss is at most s, epsilon is 2 rate s.

    Source: McKenna and Sheldon, "Permute-and-flip: a new mechanism for differentially private selection", NeurIPS 2020.
    McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007, for the exponential mechanism.
    """

    rate: Fraction

    def choose(self, words: WordSource, identities: NDArray[Any], losses: NDArray[Any], turn: int = 0) -> int:
        """Choose a candidate.

        Args:
            words: The query's pseudorandom words.
            identities: Shape (n, 2), uint64.
            losses: Shape (n,): whole numbers, the least of them 0.
            turn: The number of this choice, where several are made among the same candidates.

        Returns:
            The index of the chosen candidate.
        """
        rows = checked(identities)
        taken = self._flip(words, rows, losses, turn)
        order = words.pair(rows, _number(turn, ORDER))
        places = np.flatnonzero(taken)
        return int(places[np.lexsort((order[places, 1], order[places, 0]))[0]])

    def _flip(self, words: WordSource, rows: NDArray[np.uint64], losses: NDArray[Any], turn: int) -> NDArray[np.bool_]:
        """Flip the coins of all candidates."""
        levels, index = np.unique(losses, return_inverse=True)
        limits = np.array([self._word(int(level), 0) for level in levels.tolist()], np.uint64)[index]
        drawn = words.pair(rows, _number(turn, FIRST_COIN))[:, 0]
        taken: NDArray[np.bool_] = (drawn < limits) | (losses == 0)
        for row in np.flatnonzero((drawn == limits) & (losses != 0)).tolist():
            taken[row] = self._tie(words, rows[row : row + 1], int(losses[row]), turn)
        return taken

    def _word(self, loss: int, depth: int) -> int:
        """64 binary places of exp(-rate * loss) below 1."""
        if not loss or (not depth and self.rate * loss > _NEVER):
            return 0
        return Threshold(self.rate * loss, odds=False).word(depth)

    def _tie(self, words: WordSource, identity: NDArray[np.uint64], loss: int, turn: int) -> bool:
        depth = 1
        while True:
            word = int(words.pair(identity, _number(turn, FIRST_COIN + depth))[0, 0])
            if word != self._word(loss, depth):
                return word < self._word(loss, depth)
            depth += 1


def _number(turn: int, depth: int) -> int:
    """Number the words of a turn, injectively."""
    return turn << WORD | depth
