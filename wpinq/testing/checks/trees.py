"""Counting trees of streams: what an epoch adds up, what a unit costs in all nodes, and the noise of public answers.

Source: Dwork, Naor, Pitassi and Rothblum, STOC 2010, and Chan, Shi and Song, ICALP 2010.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.core.noise.counting_tree import TreeNode, parts, segment, segment_of
from wpinq.streaming.source import live
from wpinq.testing.checks.result import Result, judged

BINS = 100_000
FAR = 7.0
"""Deviations of a mean product that are too many: that of so many products is nearly normal."""
EPOCHS = 300
"""Of which the nodes are counted one by one: six segments."""
ASKED = (1, 2, 3, 4, 7, 8, 9, 12, 17, 26, 27, 30, 40, 52, 53)
"""Epochs at which bins are observed: their nodes are shared in many ways, and some are subtracted."""
EPSILON = Fraction(1, 2)
SENT = 9
"""Epochs in which records are sent, for exact counts."""


def trees(effort: float) -> Result:
    """Nodes of an epoch make its count, all nodes of a unit cost epsilon, and each has its noise once."""
    problems = structure()
    many = max(round(BINS * effort), 100)
    drawn, spent = _answers(many)
    problems += correlations(drawn)
    if spent != EPSILON:
        problems.append(f"epsilon {EPSILON} was asked for at every epoch, and {spent} was charged in all")
    problems += _counts()
    pairs = len(ASKED) * (len(ASKED) + 1) // 2
    looked = f"nodes of {EPOCHS} epochs, and {pairs} products of answers at {len(ASKED)} epochs"
    return judged(many * len(ASKED), "answers", problems, looked, 1e-10 * pairs)


def _covered(node: TreeNode) -> range:
    """The epochs that a node counts, as the sizes of its tree have it."""
    tree = segment(node.segment)
    size = tree.sizes[node.level]
    begin = 3**node.segment + size * node.position
    return range(begin, min(begin + size, 3 ** (node.segment + 1)))


def structure() -> list[str]:
    """What is wrong with the nodes themselves, in exact numbers."""
    problems = []
    for epoch in range(1, EPOCHS + 1):
        counted = np.zeros(3 * EPOCHS + 1, np.int64)
        for node in parts(epoch):
            covered = _covered(node)
            counted[covered.start : covered.stop] += node.sign
        if not (np.all(counted[1 : epoch + 1] == 1) and np.all(counted[epoch + 1 :] == 0)):
            problems.append(f"the nodes of epoch {epoch} do not make the count of all epochs until then")
        tree = segment_of(epoch)
        if not 3**tree.number <= epoch < 3 ** (tree.number + 1):
            problems.append(f"epoch {epoch} is in another segment")
        if sum(tree.shares) > 1 or min(tree.shares) <= 0 or len(tree.shares) != len(tree.sizes):
            problems.append(f"the nodes of a unit in segment {tree.number} cost {sum(tree.shares)} of epsilon")
    return list(dict.fromkeys(problems))


def _answers(many: int) -> tuple[NDArray[np.float64], Fraction]:
    """What so many empty bins are answered at each epoch, and what was spent in all."""
    stream = live(columns={"bin": int}, budget=10, name="nobody")
    counts: Any = stream.measure(epsilon=EPSILON, continual=True)
    for _ in range(ASKED[-1]):
        stream.advance()
    drawn = [counts.observe_many(range(many), epoch=epoch) for epoch in ASKED]
    return np.array(drawn, dtype=np.float64), Fraction(stream.budget.spent)


def variance(scale: float) -> float:
    """Of discrete Laplace noise: 2 r / (1 - r)^2, r = exp(-1 / scale)."""
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


def correlations(drawn: NDArray[np.float64]) -> list[str]:
    """Products of answers at two epochs that are not what the nodes have in common makes of them."""
    problems, signs = [], [{node[:3]: node.sign for node in parts(epoch)} for epoch in ASKED]
    for i, first in enumerate(signs):
        for j, second in enumerate(signs[: i + 1]):
            expected = sum(sign * second[node] * variance(float(1 / (EPSILON * segment(node[0]).shares[node[1]])))
                           for node, sign in first.items() if node in second)  # fmt: skip
            products = drawn[i] * drawn[j]
            apart = abs(float(products.mean()) - expected) / (float(products.std()) or 1.0)
            if apart * math.sqrt(len(products)) > FAR:
                problems.append(f"noise at epochs {ASKED[j]} and {ASKED[i]} has the mean product "
                                f"{products.mean():.1f}, and nodes make it {expected:.1f}")  # fmt: skip
    return problems


def _counts() -> list[str]:
    """Counts at each epoch, with next to no noise, that are not those of what was sent until then."""
    stream = live(columns={"bin": int}, budget=10**7, name="sent")
    counts = stream.measure(epsilon=10**6, continual=True)
    problems = []
    for epoch in range(1, SENT + 1):
        stream.send([(epoch % 2,)] * epoch)
        stream.advance()
        sent = sum(number for number in range(1, epoch + 1) if number % 2)
        if (told := counts.observe(1)) != sent:
            problems.append(f"at epoch {epoch} {told} are counted, and {sent} were sent")
    return problems
