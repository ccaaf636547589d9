"""A counting tree without a last epoch: which of its nodes make up an epoch, with which sign.

Level l has nodes of base^(l-1) epochs, side by side. An epoch lies in one node of each level, so a record moves one
node of each level by its weight, and if level l spends epsilon / (l (l + 1)), all levels that there will ever be spend
epsilon together. The sum up to an epoch is a signed sum of nodes: of the digits of the epoch's number in the base.

With base 2 this is the binary tree. With an odd base and digits from -(base - 1) / 2 on, a large digit is one node
more on the next level less a few: so few levels and few nodes are needed, and with pure differential privacy the error
is the smallest that is known. The nodes that are subtracted end later than the epoch, but what is counted in them
cancels, and what is left of them is their noise.

Source: Dwork, Naor, Pitassi, Rothblum, STOC 2010, and Chan, Shi, Song, ICALP 2010 (the tree); Andersson, Pagh, Steiner,
Torkamani, "Count on Your Elders", arXiv 2408.07021 (base 19, negative digits); privacy rule 36 (levels for ever).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Part: TypeAlias = tuple[int, int, int]
"""A node and how it counts: level (from 1), index (from 0), sign."""


@dataclass(frozen=True)
class Tree:
    """A counting tree.

    Attributes:
        base: How many nodes of a level make one of the next.
        signed: Whether digits may be negative; then the base is odd.

    >>> Tree(2, signed=False).parts(6)
    [(3, 0, 1), (2, 2, 1)]
    >>> Tree(9, signed=True).parts(8)
    [(2, 0, 1), (1, 8, -1)]
    """

    base: int
    signed: bool

    @property
    def text(self) -> str:
        """What the key of a release is bound to."""
        return f"tree of base {self.base}{', signed' if self.signed else ''}"

    def parts(self, epoch: int) -> list[Part]:
        """The nodes whose signed sum is the sum of the epochs 1 to this one."""
        found, position = [], 0
        for level, digit in reversed(list(enumerate(self._digits(epoch), 1))):
            size = self.base ** (level - 1)
            first = position // size
            if digit > 0:
                found += [(level, first + i, 1) for i in range(digit)]
            else:
                found += [(level, first - 1 - i, -1) for i in range(-digit)]
            position += digit * size
        return found

    def share(self, level: int) -> int:
        """A level spends 1/share of epsilon; these sum to 1 over all levels."""
        return level * (level + 1)

    def _digits(self, number: int) -> list[int]:
        """The digits, the lowest first."""
        digits = []
        while number:
            digit = number % self.base
            if self.signed and digit > self.base // 2:
                digit -= self.base
            digits.append(digit)
            number = (number - digit) // self.base
        return digits


BINARY = Tree(2, signed=False)
ELDERS = Tree(19, signed=True)
"""What `measure(continual=True)` uses."""
