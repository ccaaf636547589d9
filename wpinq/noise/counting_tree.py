"""The counting tree of continual release: which nodes, with which signs, sum to the count at an epoch.

It needs no last epoch.


A node of level l covers base^(l-1) consecutive epochs. Each epoch lies in one node of each level, so a record changes
one node of each level by its weight. If level l spends epsilon / (l (l + 1)), all levels together, however many there
will be, spend epsilon. The sum up to an epoch is a signed sum of nodes, given by the digits of the epoch's number in
the base.

With base 2 this is the binary tree. With an odd base and digits from -(base - 1) / 2 to (base - 1) / 2, a large digit
is written as one node of the next level minus a few nodes of this one. That needs few levels and few nodes; under pure
differential privacy no smaller error is known. A subtracted node ends after the epoch, but its count cancels against
the larger node that holds it, and only its noise stays.

Source: Dwork, Naor, Pitassi, Rothblum, STOC 2010, and Chan, Shi, Song, ICALP 2010 (the tree); Andersson, Pagh, Steiner,
Torkamani, "Count on Your Elders", arXiv 2408.07021 (base 19, negative digits); privacy rule 36 (levels for ever).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

TreeNode: TypeAlias = tuple[int, int, int]
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
        """The tree's parameters as text, to which the key of a release is bound."""
        return f"tree of base {self.base}{', signed' if self.signed else ''}"

    def parts(self, epoch: int) -> list[TreeNode]:
        """The nodes whose signed sum is the sum of the epochs 1 to this one."""
        result, position = [], 0
        for level, digit in reversed(list(enumerate(self._digits(epoch), 1))):
            size = self.base ** (level - 1)
            first = position // size
            if digit > 0:
                result += [(level, first + i, 1) for i in range(digit)]
            else:
                result += [(level, first - 1 - i, -1) for i in range(-digit)]
            position += digit * size
        return result

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
