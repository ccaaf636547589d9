"""The counting trees of continual release: which nodes, with which signs, sum to the count at an epoch.

Epochs are cut into segments that grow by 3: segment s holds the epochs 3^s to 3^(s+1) - 1, and there is no last one.
Each has a tree of its own. A node of level l (from 0) counts k^l epochs of the segment in a row, the last node of a
level perhaps fewer, and one node, of the highest level, counts the whole segment. No node counts epochs of two
segments. The count at an epoch is the whole nodes of all earlier segments plus a signed sum of nodes of its own: where
that takes fewer nodes, a larger node minus the nodes from the epoch on. A subtracted node ends after the epoch, but its
count cancels against the larger node that holds it, and only its noise stays.

The nodes of level l in segment s have noise of scale U / (epsilon w(s, l)), where U is the L1 sensitivity of the plan
and the shares w(s, l) of the levels of a segment sum to 1. Base and shares follow from the length of the segment alone.

**Proof that all answers at all epochs together cost epsilon.** Let two streams differ by one unit, and let c(e) be the
difference of what they change in the measured histogram at epoch e, over all bins.

1. The sum of |c(e)| over all epochs is at most U. A plan that is linear for each record changes at an epoch by what the
   records of that epoch give, each by itself. One record lies in one epoch and gives at most U. Of a user `First` keeps
   `at_most` records of all epochs together, takes none back, and keeps of others what it kept before; so the user's
   records, in however many epochs and segments, give at most U in all.
2. Epoch e lies in one segment s(e) and there in one node of each level. So the difference D(n) of the counts of node n
   is at most the sum of |c(e)| over its epochs, and the sum over all nodes of |D(n)| / scale(n) is at most the sum over
   all epochs of |c(e)| (epsilon / U) times the sum over the levels of w(s(e), l), which is 1: at most epsilon.
3. An answer is a signed sum of noisy nodes, of which each has one noise for ever. Suppose any sequence of answers.
   Whoever chooses the records by the answers has then chosen both streams, and so D. Noise that leads to these answers
   on one stream leads to them on the other once D is added to it. Discrete Laplace noise is then less likely by a
   factor of at most exp(the sum of |D(n)| / scale(n)), that is exp(epsilon).

Step 2 is an L1 sensitivity over all nodes, so it needs no unit that stays in one segment. For a record it says what
parallel composition says: each segment spends all of epsilon, and a record lies in one.

**Choice of the shares.** A level of noise variance 2 / w^2, of which a prefix adds up n nodes on average, is best given
a share that grows as the cube root of n (Lagrange). A digit in base k takes about k / 4 nodes. The whole node is in
half of the prefixes and in every later answer, for ever; `WHOLE` weighs that. Errors are least for k near e^3 = 20.

Source: Dwork, Naor, Pitassi, Rothblum, STOC 2010, and Chan, Shi, Song, ICALP 2010 (the tree, and segments: their hybrid
mechanism); Andersson, Pagh, Steiner, Torkamani, "Count on Your Elders", arXiv 2408.07021 (base near 19, negative
digits); privacy rule 36.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

GROWTH = 3
WHOLE = 14
"""How many quarters of a node the node of a whole segment counts for, where shares are chosen."""
BASES = range(3, 100, 2)
"""The bases to choose from; larger ones are never best."""
FORM = f"segments growing by {GROWTH}, trees of format 1"
"""These trees as text, to which the key of a release is bound."""


class TreeNode(NamedTuple):
    """A node and how it counts: its segment, its level, its place in the level, all from 0, and a sign."""

    segment: int
    level: int
    position: int
    sign: int


@dataclass(frozen=True)
class Segment:
    """The tree of one segment.

    Attributes:
        number: From 0.
        sizes: How many epochs a node of each level counts; of the last level the whole segment.
        shares: What each level spends of epsilon; they sum to 1.

    >>> segment(1)
    Segment(number=1, sizes=(1, 6), shares=(Fraction(1817, 4227), Fraction(2410, 4227)))
    >>> [(level, place, sign) for _, level, place, sign in segment(1).parts(5)]
    [(0, 5, -1), (1, 0, 1)]
    """

    number: int
    sizes: tuple[int, ...]
    shares: tuple[Fraction, ...]

    @property
    def first(self) -> int:
        """Its first epoch."""
        return int(GROWTH**self.number)

    @property
    def length(self) -> int:
        """How many epochs it has."""
        return self.sizes[-1]

    def parts(self, epochs: int) -> list[TreeNode]:
        """The nodes whose signed sum is the sum of its first epochs, so many of them."""
        result, many = [], epochs  # so many nodes of the level make the sum
        for level, (size, larger) in enumerate(pairwise(self.sizes)):
            held, group = -(-self.length // size), -(-larger // size)
            low = many - many % group
            high = min(low + group, held)
            if many - low <= high - many:
                result += [TreeNode(self.number, level, index, 1) for index in range(low, many)]
            else:
                result += [TreeNode(self.number, level, index, -1) for index in range(many, high)]
                low += group
            many = low // group
        return [*result, self.whole] if many else result

    @property
    def whole(self) -> TreeNode:
        """The node that counts the whole segment."""
        return TreeNode(self.number, len(self.sizes) - 1, 0, 1)


@lru_cache(maxsize=256)
def segment(number: int) -> Segment:
    """The tree of a segment: of all odd bases that of the least error."""
    length = (GROWTH - 1) * GROWTH**number
    return min((_tree(number, length, base) for base in BASES), key=lambda tree: tree[0])[1]


def parts(epoch: int) -> list[TreeNode]:
    """The nodes whose signed sum is the sum of the epochs 1 to this one.

    >>> [(number, level, place, sign) for number, level, place, sign in parts(4)]
    [(0, 1, 0, 1), (1, 0, 0, 1), (1, 0, 1, 1)]
    """
    last = segment_of(epoch)
    return [*(segment(number).whole for number in range(last.number)), *last.parts(epoch - last.first + 1)]


def segment_of(epoch: int) -> Segment:
    """The segment that holds an epoch."""
    number = 0
    while GROWTH ** (number + 1) <= epoch:
        number += 1
    return segment(number)


def _tree(number: int, length: int, base: int) -> tuple[int, Segment]:
    """A tree of a base, after the sum of its roots, of which the cube is its mean error."""
    sizes = [1]
    while sizes[-1] * base < length:
        sizes.append(sizes[-1] * base)
    often = [base] * (len(sizes) - 1) + [-(-length // sizes[-1]), WHOLE]
    roots = [bisect_right(range(10_000), n * 10**9, key=lambda x: x**3) - 1 for n in often]
    total = sum(roots)
    return total, Segment(number, (*sizes, length), tuple(Fraction(root, total) for root in roots))
