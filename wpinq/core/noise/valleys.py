"""The exponential mechanism over very many places whose losses rise to both sides of a least one, exactly.

Of places 0, 1, 2, ... one is taken with probability proportional to exp(-rate * loss). There may be 2^60 of them, so
none is looked at by itself. Those with a loss up to some edge are next to each other, and are counted. Between two
edges they make a block, which is chosen as if all its places had the lower edge as loss; a place of it is drawn evenly,
and taken with probability exp(-rate * (loss - edge)), else all is drawn anew. What is taken has the law above.

No float is used, and nothing is rounded or cut off. A block is found by an endless pseudorandom number below 1: it is
the first whose cumulated share is above that. The shares are irrational, so they are bounded from below and above by
integers, with more and more bits, until both bounds agree on the block.

Source: McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007; von Neumann, "Various techniques
used in connection with random digits", 1951, for the rejection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, count
from typing import Any, Protocol

from numpy.typing import NDArray

from wpinq.core.noise.words import WORD, Threshold, WordSource, checked
from wpinq.exact import exp_bounds

FINE = 4
"""Blocks are a quarter of a nat wide up to one nat, and from there on a quarter of their loss."""
BITS = 2 * WORD
"""Bits of bounds, and of the number below 1, before more are needed."""


class Valley(Protocol):
    """Losses of the places from `first` to `last`, whole numbers that rise to both sides of a least one."""

    @property
    def first(self) -> int:
        """The first place."""

    @property
    def last(self) -> int:
        """The last place, not before the first."""

    @property
    def least(self) -> int:
        """The least loss."""

    def loss(self, position: int) -> int:
        """The loss of a place."""

    def within(self, loss: int) -> tuple[int, int]:
        """The first and the last place whose loss is at most this, which is the least or more."""


class Draws:
    """Endless pseudorandom bits of one identity, for one choice."""

    def __init__(self, words: WordSource, identity: NDArray[Any], turn: int) -> None:
        row = checked(identity)

        def blocks() -> Iterator[int]:
            for depth in count():
                low, high = words.pair(row, turn << WORD | depth)[0].tolist()
                yield high << WORD | low

        self._blocks, self._held, self._size = blocks(), 0, 0

    def bits(self, size: int) -> int:
        """So many bits, as a number."""
        while self._size < size:
            self._held, self._size = self._held << BITS | next(self._blocks), self._size + BITS
        self._size -= size
        result = self._held >> self._size
        self._held &= (1 << self._size) - 1
        return result

    def below(self, limit: int) -> int:
        """A whole number from 0 to limit - 1, each alike."""
        size = (limit - 1).bit_length()
        while (number := self.bits(size)) >= limit:
            pass
        return number

    def chance(self, x: Fraction) -> bool:
        """True with probability exp(-x), for x >= 0."""
        if not x:
            return True
        probability, depth = Threshold(x, odds=False), 0
        while (drawn := self.bits(WORD)) == (wanted := probability.word(depth)):
            depth += 1
        return drawn < wanted


@dataclass(frozen=True)
class ValleyChoice:
    """Chooses a place.

    Attributes:
        rate: Of the losses, above zero; if a unit moves two losses apart by s at the most, its epsilon is rate * s,
            for movements alike, and 2 rate s where each loss moves by s in either direction.
    """

    rate: Fraction

    def choose(self, draws: Draws, valley: Valley) -> int:
        """Choose a place by these draws."""
        blocks = self._blocks(valley)
        sizes = [inner[0] - outer[0] + outer[1] - inner[1] for outer, inner in zip(blocks[1:], blocks, strict=False)]
        edges = self.edges(len(sizes))
        while True:
            block = self._block(draws, sizes)
            (start, _), (inner, end) = blocks[block + 1], blocks[block]
            before = inner - start
            position = draws.below(sizes[block])
            position = start + position if position < before else end + 1 + position - before
            if draws.chance(self.rate * (valley.loss(position) - valley.least - edges[block])):
                return position

    def _blocks(self, valley: Valley) -> list[tuple[int, int]]:
        """What is within each edge: first nothing, last all."""
        first, last, least = valley.first, valley.last, valley.least
        start, _ = valley.within(least)
        result = [(start, start - 1)]
        for number in count(1):
            edges = valley.within(least + self.edges(number + 1)[number] - 1)
            result.append((max(edges[0], first), min(edges[1], last)))
            if result[-1] == (first, last):
                return result
        raise AssertionError

    def edges(self, size: int) -> tuple[int, ...]:
        """Where the first blocks begin, in losses above the least."""
        return _edges(self.rate, -(-size // 64) * 64)

    def _block(self, draws: Draws, sizes: list[int]) -> int:
        """The number of a block, each in proportion to its size times exp(-rate * edge)."""
        bits, drawn, number = BITS, 0, 0
        while True:
            number, drawn = number << BITS | draws.bits(BITS), drawn + BITS
            bounds = _bounds(self.rate, bits, -(-len(sizes) // 64) * 64)
            low = list(accumulate(size * bound for size, (bound, _) in zip(sizes, bounds, strict=False)))
            high = list(accumulate(size * bound for size, (_, bound) in zip(sizes, bounds, strict=False)))
            for index in range(len(sizes)):
                last = index == len(sizes) - 1
                if last or (number + 1) * high[-1] <= low[index] << drawn:
                    break
            if not index or number * low[-1] >= high[index - 1] << drawn:
                return index
            bits *= 2


@lru_cache(maxsize=256)
def _edges(rate: Fraction, size: int) -> tuple[int, ...]:
    """The edges of so many blocks.

    >>> _edges(Fraction(1, 100), 8), _edges(Fraction(9), 8)
    ((0, 25, 50, 75, 100, 125, 156, 195), (0, 1, 2, 3, 4, 5, 6, 7))
    """
    width = max(1, int(1 / (FINE * rate)))
    result = [0]
    while len(result) < size:
        result.append(result[-1] + max(width, result[-1] // FINE))
    return tuple(result)


@lru_cache(maxsize=256)
def _bounds(rate: Fraction, bits: int, size: int) -> list[tuple[int, int]]:
    """2^bits * exp(-rate * edge) from below and above, for the edges of so many blocks."""
    return [exp_bounds(rate * edge, bits) for edge in _edges(rate, size)]
