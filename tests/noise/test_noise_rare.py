"""What no million draws would show: ties, the tail, constant words. The words are fed."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from depth import deep
from scipy import stats

from wpinq.core.noise import DiscreteLaplace, GridLaplace, Words, mechanism
from wpinq.errors import PlanError

ONES = 2**64 - 1
KEY = bytes(range(32))
SCALES = [
    Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(10), Fraction(22, 7), Fraction(10**9), Fraction(2**57),
]  # fmt: skip


def bins(n: int) -> np.ndarray:
    return np.stack([np.arange(n, dtype=np.uint64), np.zeros(n, dtype=np.uint64)], axis=1)


def digits_of(scale: Fraction) -> int:
    return next(j for j in range(200) if 2**j >= 45 * scale)


def wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


class Constant:
    """The same two words for every bin and number."""

    def __init__(self, first: int, second: int) -> None:
        self.row = np.array([first, second], dtype=np.uint64)

    def pair(self, identities: np.ndarray, number: int) -> np.ndarray:
        return np.tile(self.row, (len(identities), 1))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_constant_words_neither_crash_nor_hang(scale: Fraction) -> None:
    """All zeros hit every digit and every trial of the tail (64 count); all ones hit nothing."""
    law, most = DiscreteLaplace(scale), 65 * 2 ** digits_of(scale) - 1
    for words, expected in (((0, 0), 0), ((ONES, ONES), 0), ((0, ONES), most), ((ONES, 0), -most)):
        assert law.draw(Constant(*words), bins(3)).tolist() == [wrapped(expected)] * 3
        assert law.draw(Constant(*words), bins(0)).tolist() == []


class Fed:
    """True words, except where a rule for (digit or trial, depth) gives others."""

    def __init__(self, rule) -> None:
        self.rule, self.words, self.asked = rule, Words(KEY), []

    def pair(self, identities: np.ndarray, number: int) -> np.ndarray:
        index, depth = number % 2**32, number >> 32
        self.asked.append((index, depth))
        drawn = self.words.pair(identities, number).copy()
        fed = self.rule(index, depth, drawn, identities)
        return drawn if fed is None else np.ascontiguousarray(fed, dtype=np.uint64)


# ------------------------------------------------------------------ ties


@cache
def probability(scale: Fraction, j: int) -> Fraction:
    """Digit j's p = 1 / (1 + exp(2^j / scale)), by decimal's exp."""
    context = Context(prec=400)
    power = context.exp(context.divide(Decimal(2**j * scale.denominator), Decimal(scale.numerator)))
    return Fraction(context.divide(Decimal(1), context.add(1, power)))


@cache
def places(p: Fraction, size: int, depth: int) -> int:
    return math.floor(p * 2 ** (size * (depth + 1))) % 2**size


class Nibbles:
    """Words of four fair bits, dressed as 64: below, above or equal to the threshold's word, as they are
    below, above or equal to the threshold's own four bits. One in 16 ties, and the law must stay exact.
    """

    def __init__(self, scale: Fraction) -> None:
        self.words, self.scale, self.ties = Words(KEY), scale, 0

    def pair(self, identities: np.ndarray, number: int) -> np.ndarray:
        drawn = self.words.pair(identities, number)
        index, depth = number % 2**32, number >> 32
        if index >= digits_of(self.scale):
            return drawn
        p = probability(self.scale, index)
        nibble, word = places(p, 4, depth), places(p, 64, depth)
        low = drawn & np.uint64(15)
        self.ties += int(np.count_nonzero(low == nibble))
        return np.where(low < nibble, np.uint64(0), np.where(low > nibble, np.uint64(ONES), np.uint64(word)))


@deep
def test_ties_keep_the_law_exact() -> None:
    """Chi-squared at 1e-6 on 30,000 draws of which most meet ties, some of them many deep."""
    scale, n = Fraction(7, 3), 30_000
    words = Nibbles(scale)
    noise = DiscreteLaplace(scale).draw(words, bins(n))
    cells = np.arange(-14, 15)
    law = stats.dlaplace(float(1 / scale))
    counts = np.bincount(np.searchsorted(cells, noise), minlength=30)
    chances = np.concatenate([[law.cdf(-14)], np.diff(law.cdf(cells)), [law.sf(14)]])
    assert words.ties > n / 2
    assert stats.chisquare(counts, chances * n).pvalue > 1e-6


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("side", [0, 1])
def test_a_tie_is_settled_by_the_first_word_that_differs(depth: int, side: int) -> None:
    """Digit 2 ties down to `depth`, for one bin and side; one more or less there decides it, nothing else moves."""
    scale, row = Fraction(10), 3
    p = probability(scale, 2)

    def ties(step: int):
        def rule(index: int, level: int, drawn: np.ndarray, identities: np.ndarray):
            drawn[:, :] = ONES
            if index == 2 and level <= depth:
                drawn[identities[:, 0] == row, side] = places(p, 64, level) + (step if level == depth else 0)
            return drawn

        return Fed(rule)

    below, above = ties(-1), ties(+1)
    assert DiscreteLaplace(scale).draw(below, bins(6)).tolist() == [0, 0, 0, 4 - 8 * side, 0, 0]
    assert DiscreteLaplace(scale).draw(above, bins(6)).tolist() == [0] * 6
    assert {(2, level) for level in range(depth + 1)} <= set(below.asked)
    assert (2, depth + 1) not in below.asked


# ------------------------------------------------------------------ the tail


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1, 3), Fraction(10), Fraction(10**4)], ids=str)
def test_the_tail_counts_its_hits(scale: Fraction) -> None:
    """Tail trials hit by fair coins instead: the noise gains 2^J for each hit in a row, on either side."""
    digits, n = digits_of(scale), 500
    coins = Words(b"c" * 32)

    def hit(index: int, identities: np.ndarray) -> np.ndarray:
        return (coins.pair(identities, index) & np.uint64(1)).astype(bool)

    def rule(index: int, depth: int, drawn: np.ndarray, identities: np.ndarray):
        return np.where(hit(index, identities), np.uint64(0), np.uint64(ONES)) if index >= digits else drawn

    runs = np.cumprod([hit(digits + trial, bins(n)) for trial in range(64)], axis=0).sum(axis=0)
    noise = DiscreteLaplace(scale).draw(Fed(rule), bins(n))
    base = DiscreteLaplace(scale).draw(Words(KEY), bins(n))
    assert np.array_equal(noise, base + (runs[:, 0] - runs[:, 1]) * 2**digits)
    assert runs.max() >= 5


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1, 3), Fraction(10), Fraction(2**57)], ids=str)
def test_the_tail_is_compared_with_its_exact_probability(scale: Fraction) -> None:
    """The tail hits just below exp(-2^J / scale) and not just above it, though its first words are zeros."""
    digits = digits_of(scale)
    context = Context(prec=900)
    x = Fraction(2**digits) / scale
    tail = Fraction(context.exp(context.divide(Decimal(-x.numerator), Decimal(x.denominator))))
    last = next(depth for depth in range(40) if places(tail, 64, depth) > 0)
    for step, hits in ((-1, 1), (+1, 0)):

        def rule(index: int, depth: int, drawn: np.ndarray, identities: np.ndarray, step: int = step):
            drawn[:, :] = ONES
            if index == digits and depth <= last:
                drawn[:, 0] = places(tail, 64, depth) + (step if depth == last else 0)
            return drawn

        assert DiscreteLaplace(scale).draw(Fed(rule), bins(2)).tolist() == [wrapped(hits * 2**digits)] * 2


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10), Fraction(10**4)], ids=str)
def test_the_far_tail_follows_the_law(scale: Fraction) -> None:
    """Feed hits of the three highest digits, so every draw is beyond 36 scales, and most reach past 40.

    What is left is the law given those digits: geometric below 2^(J-3), minus a geometric. Chi-squared at 1e-6.
    """
    digits, n = digits_of(scale), 200_000

    def rule(index: int, depth: int, drawn: np.ndarray, identities: np.ndarray):
        if digits - 3 <= index < digits:
            drawn[:, 0] = 0
        if index < digits:
            drawn[:, 1] = ONES
        return drawn

    noise = DiscreteLaplace(scale).draw(Fed(rule), bins(n))
    low, high = 7 * 2 ** (digits - 3), 2**digits
    assert low <= noise.min()
    assert noise.max() < high
    assert noise.max() > 40 * scale
    cuts = np.unique(np.linspace(low, high, 9).astype(np.int64))
    rate = float(1 / scale)
    chances = np.exp(-rate * (cuts[:-1] - low)) - np.exp(-rate * (cuts[1:] - low))
    expected = chances / chances.sum() * n
    counts, _ = np.histogram(noise, bins=cuts)
    kept = expected > 20
    assert kept.sum() >= 2
    counts, expected = (np.append(x[kept], x[~kept].sum()) for x in (counts, expected))
    assert stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-6


# ------------------------------------------------------------------ work


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_work_does_not_depend_on_the_values(scale: Fraction) -> None:
    """Every bin takes the words 0 to J once, in order, whatever is drawn."""
    fed = Fed(lambda *_: None)
    DiscreteLaplace(scale).draw(fed, bins(1000))
    assert fed.asked == [(index, 0) for index in range(digits_of(scale) + 1)]


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**57 + 1)])
@pytest.mark.parametrize("name", ["geometric", "laplace"])
def test_scales_out_of_range_are_refused(name: str, scale: Fraction) -> None:
    with pytest.raises(PlanError, match="epsilon"):
        mechanism(name, scale)


@pytest.mark.parametrize("scale", [Fraction(1, 1001), Fraction(1, 10**9), Fraction(1, 10**30)], ids=str)
def test_a_scale_below_a_thousandth_draws_the_noise_of_a_thousandth(scale: Fraction) -> None:
    """No less noise than asked, so a large epsilon is no error: and it answers, at all-zero words as well."""
    law, least = DiscreteLaplace(scale), DiscreteLaplace(Fraction(1, 1000))
    assert law == least
    assert law.draw(Constant(0, ONES), bins(1)).tolist() == least.draw(Constant(0, ONES), bins(1)).tolist() == [64]
    assert mechanism("geometric", scale).half_width(Fraction(999_999, 10**6)) == 0
    fine = mechanism("laplace", scale)
    assert not fine.draw(Constant(ONES, ONES), bins(3)).any()
    assert 0 <= fine.half_width(Fraction(99, 100)) <= 5000 < fine.grid


@pytest.mark.parametrize("name", ["gaussian", "", "Laplace", None])
def test_unknown_mechanisms_are_refused_with_the_choices(name: str) -> None:
    with pytest.raises(PlanError, match="'geometric', 'laplace', 'gaussian' or 'best'"):
        mechanism(name, Fraction(1))


def test_names_and_grids() -> None:
    geometric, laplace = mechanism("geometric", Fraction(10)), mechanism("laplace", Fraction(10))
    assert (geometric.name, geometric.grid, geometric.scale) == ("geometric", 1, 10)
    assert (laplace.name, laplace.grid, laplace.scale) == ("laplace", 2**20, 10)
    grids = {scale: GridLaplace(scale).grid for scale in (Fraction(2**37), Fraction(2**37 + 1), Fraction(2**57))}
    assert list(grids.values()) == [2**20, 2**19, 1]
    assert geometric == mechanism("geometric", Fraction(10)) != mechanism("geometric", Fraction(11))
