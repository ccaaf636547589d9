"""The laws of noise, computed anew and apart from the samplers, and tests of draws against them.

The floats here judge draws; none of them is released.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ALARM = 1e-7
"""The probability, at the most, that draws of the law fail one of the tests below."""
TESTS = 4
"""How many there are."""
CELLS = 64
EXPECTED = 100
"""Draws in a cell, at the least: below that the law of Pearson's statistic is too far from its limit."""

Floats = NDArray[np.float64]


class Law(NamedTuple):
    """A symmetric law.

    Attributes:
        name: As people call it.
        below: The probability of a value or less.
        above: The probability of a value or more, precise in the far tail too.
        whole: Whether it draws whole numbers.
        width: About its standard deviation.
    """

    name: str
    below: Callable[[Floats], Floats]
    above: Callable[[Floats], Floats]
    whole: bool
    width: float


def discrete_laplace(scale: float) -> Law:
    """P(N = k) = (1 - r) / (1 + r) r^|k|, with r = exp(-1 / scale)."""
    rest = 1 + math.exp(-1 / scale)

    def above(k: Floats) -> Floats:
        tail = np.exp(-np.maximum(k, 1 - k) / scale) / rest
        return np.where(k > 0, tail, 1 - tail)

    return Law(f"discrete Laplace of scale {scale:g}", lambda k: above(-k), above, True, 1.5 * scale)


def laplace(scale: float) -> Law:
    """The density exp(-|x| / scale) / (2 scale)."""

    def above(x: Floats) -> Floats:
        tail = np.exp(-np.abs(x) / scale) / 2
        return np.where(x > 0, tail, 1 - tail)

    return Law(f"Laplace of scale {scale:g}", lambda x: above(-x), above, False, 1.5 * scale)


def discrete_gaussian(square: float) -> Law:
    """P(N = k) proportional to exp(-k^2 / (2 square))."""
    most = math.ceil(40 * math.sqrt(square)) + 2
    numbers = np.arange(-most, most + 1)
    weights = np.exp(-(numbers.astype(float) ** 2) / (2 * square))
    tails = np.cumsum((weights / weights.sum())[::-1])[::-1]  # the least first, so that the far tail loses no digits

    def above(k: Floats) -> Floats:
        return np.asarray(tails[np.clip(k.astype(np.int64) + most, 0, 2 * most)], dtype=np.float64)

    return Law(f"discrete Gaussian of variance {square:g}", lambda k: above(-k), above, True, math.sqrt(square))


def wrong(draws: NDArray[Any], law: Law) -> list[str]:
    """What speaks against draws being independent draws of a law; a right sampler fails with `TESTS * ALARM`.

    The largest distance of the two distribution functions (Dvoretzky, Kiefer, Wolfowitz; Massart's constant, Annals of
    Probability 18(3), 1990), Pearson's statistic over cells, the sign, and the largest draw.
    """
    cuts = _cuts(law, len(draws))
    counts = np.diff(np.searchsorted(np.sort(draws), cuts, side="right"), prepend=0, append=len(draws)).astype(float)
    below = law.below(cuts)
    chances = np.diff(below, prepend=0.0, append=1.0)
    problems = []
    apart, limit = float(np.abs(np.cumsum(counts)[:-1] / len(draws) - below).max()), distance(len(draws))
    if apart > limit:
        problems.append(f"{law.name}: distribution functions are {apart:.4f} apart, and at most {limit:.4f} by chance")
    statistic = float(((counts - chances * len(draws)) ** 2 / (chances * len(draws))).sum())
    if pearson(statistic, len(cuts)) < ALARM:
        problems.append(f"{law.name}: Pearson's statistic over {len(cuts) + 1} cells is {statistic:.0f}")
    moved = np.count_nonzero(draws)
    if abs(int(np.sign(draws).sum())) > math.sqrt(2 * moved * math.log(2 / ALARM)):  # Hoeffding
        problems.append(f"{law.name}: one sign is more frequent than the other")
    top = float(np.abs(draws).max())
    outside = np.array([top + law.whole, top])
    beyond = 2 * len(draws) * law.above(outside)
    if beyond[1] < ALARM / 2 or beyond[0] > math.log(2 / ALARM):
        problems.append(f"{law.name}: the largest of {len(draws):,} draws is {top:g}")
    return problems


def distance(draws: int, alarm: float = ALARM) -> float:
    """How far the distribution function of so many draws is from their law, but for a probability of `alarm`."""
    return math.sqrt(math.log(2 / alarm) / (2 * draws))


def pearson(statistic: float, freedom: int) -> float:
    """The probability of as large a statistic with an even number of degrees of freedom, in the limit.

    >>> round(pearson(18.307, 10), 4)
    0.05
    """
    half, term = statistic / 2, 1.0
    total = term
    for k in range(1, freedom // 2):
        term *= half / k
        total += term
    return math.exp(min(0.0, math.log(total) - half)) if half < 700 else 0.0


def _cuts(law: Law, draws: int) -> Floats:
    """Ends of cells, an even number of them, from the law alone; each cell expects enough draws."""
    reach = np.linspace(-9 * law.width - 2, 9 * law.width + 2, 40 * CELLS + 1)
    ends = np.unique(np.floor(reach)) if law.whole else reach
    cuts: list[float] = []
    step, last, below = max(EXPECTED / draws, 1 / CELLS), 0.0, law.below(ends)
    for end, chance in zip(ends.tolist(), below.tolist(), strict=True):
        near = max(min(chance, 1 - chance) / 8, EXPECTED / draws)  # cells are narrower in the tails
        if chance - last >= min(step, near) and 1 - chance >= EXPECTED / draws:
            cuts.append(end)
            last = chance
    return np.array(cuts[: len(cuts) // 2 * 2])
