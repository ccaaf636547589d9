"""Discrete Gaussian noise: every outcome against the exact law, ties and tails with fed words, and broken samplers.

Keys are fixed, so nothing flakes; a stated rate is the chance that a right sampler under a fresh key would fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from depth import thin
from scipy import stats

from wpinq.core.kernels.bell import MARGIN
from wpinq.core.noise import Words, gaussian
from wpinq.core.noise.blocks import Blocks
from wpinq.core.noise.gaussian import DiscreteGaussian, tables_of
from wpinq.core.noise.gaussian_tails import tail_bounds
from wpinq.core.noise.threshold import least_threshold
from wpinq.core.noise.words import binary_places
from wpinq.errors import PlanError

N = 10**6
ONES = 2**64 - 1
IDENTITIES = np.stack([np.arange(N, dtype=np.uint64), np.zeros(N, dtype=np.uint64)], axis=1)
SQUARES = [Fraction(1, 3), Fraction(1), Fraction(355, 113), Fraction(1023), Fraction(1024), Fraction(1750**2, 7)]
LARGE = [Fraction(10**12), Fraction(2**114)]
KEY = bytes(range(32))


def curve(square: Fraction, x: int) -> Decimal:
    return (-Decimal(x * x) * square.denominator / (2 * square.numerator)).exp()


def law(square: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Integers within 9 sigma, and their probabilities."""
    most = math.ceil(9 * math.sqrt(square)) + 2
    x = np.arange(-most, most + 1)
    weights = np.exp(-(x.astype(float) ** 2) / (2 * float(square)))
    return x, weights / weights.sum()


# ------------------------------------------------------------------ every outcome, exactly


@pytest.mark.parametrize("square", SQUARES, ids=str)
def test_what_a_round_gives_has_exactly_the_law(square: Fraction) -> None:
    """All outcomes of the decision tree, in 80 digits: block, place, sign, acceptance; then what the tables make of it.

    The cumulated probabilities are compared in 32, 96 and 160 binary places, the acceptance in 96, as they are.
    """
    blocks, context = Blocks(square), Context(prec=80)
    with localcontext(context):
        width, tables = 1 << blocks.shift, tables_of(blocks)
        weights = [curve(square, k * width) for k in range(len(blocks.limits) + 400)]
        weights[0] /= 1 if blocks.shift else 2
        whole, cumulated, total = sum(weights), Decimal(0), Decimal(0)
        for k in range(len(blocks.limits)):
            cumulated += weights[k] / whole
            for places in (32, 96, 160):
                assert blocks._places(k, places) == int(cumulated * 2**places)
            assert int(blocks.limits[k]) == int(cumulated * 2**32)
            assert int(tables.start[blocks.limits[k] >> 24]) <= k
            for place in range(width):
                size = k * width + place
                rate = Fraction(size**2 - (k * width) ** 2) / (2 * square)
                stays = binary_places(rate, False, 96) if place else 2**96
                found = weights[k] / width * Decimal(stays) / 2**96
                assert abs(found - curve(square, size) / (2 if not size and not blocks.shift else 1) / width) < 1e-27
                total += found * (1 if size or not blocks.shift else Decimal("0.5"))
        accepted = sum(curve(square, x) for x in range(1, len(blocks.limits) * width)) + Decimal("0.5")
        assert abs(total * width / accepted - 1) < 1e-20, "and 0 counts once, of two signs"


@thin(3)
@pytest.mark.parametrize("square", [*SQUARES[3:], *LARGE], ids=str)
def test_the_tables_are_within_the_margin(square: Fraction) -> None:
    """All places of all blocks, or where these are many, some: half of the margin is left."""
    blocks, tables, worst = Blocks(square), tables_of(Blocks(square)), 0
    width, random = 1 << blocks.shift, np.random.default_rng(1)
    places = np.arange(width) if width < 200 else np.r_[0:20, width - 20 : width, random.integers(0, width, 30)]
    for block in range(0, len(blocks.limits) - 1, max(1, len(places) // 8)):
        words = np.zeros((len(places), 2), np.uint64)
        before = int(blocks.limits[block - 1]) if block else -1
        chosen = (before + int(blocks.limits[block])) // 2 + (before + 1 == int(blocks.limits[block]))
        words[:, 1] = places
        low, high = edges(tables, words, chosen << 32)
        for row, place in enumerate(places.tolist()):
            rate = Fraction(place * (2 * block * width + place)) / (2 * square)
            exact = binary_places(rate, False, 32) if place else 2**32
            assert low[row] <= exact <= high[row]
            room = min(exact - low[row], high[row] - exact if high[row] < 1 << 32 else MARGIN)
            worst = max(worst, MARGIN - room)
    assert worst < MARGIN // 2


def edges(tables: object, words: np.ndarray, first: int) -> list[np.ndarray]:
    """The least acceptance words that are open, and the first beyond: by bisection over what the tables decide."""
    noise, state, found = np.zeros(len(words), np.int64), np.zeros(len(words), np.uint8), []
    for least in (gaussian.OPEN, gaussian.REJECTED):
        low, high = np.zeros(len(words), np.int64), np.full(len(words), 1 << 32)
        for _ in range(33):
            middle = np.minimum((low + high) // 2, 2**32 - 1)
            words[:, 0] = np.uint64(first) | middle.astype(np.uint64)
            gaussian.plain(tables, words, noise, state)  # type: ignore[arg-type]
            reached = (state == gaussian.REJECTED) | (state == least)
            low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
        found.append(low)
    return found


# ------------------------------------------------------------------ a million draws


def passes(noise: np.ndarray, square: Fraction) -> bool:
    """Chi-squared in about 100 cells at 1e-6, signs and zeros at 5, variance at 5.5 deviations: false alarm 3e-6."""
    x, chances = law(square)
    kept = np.minimum(np.cumsum(chances), np.cumsum(chances[::-1])[::-1]) * len(noise) > 50
    cuts = x[kept][:: max(1, kept.sum() // 100)]
    counts = np.bincount(np.searchsorted(cuts, noise), minlength=len(cuts) + 1)
    expected = np.bincount(np.searchsorted(cuts, x), chances, minlength=len(cuts) + 1) * len(noise)
    apart = stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue
    signs = np.sign(noise).sum() / math.sqrt(max(1, np.count_nonzero(noise)))
    second, fourth = (x**2 * chances).sum(), (x.astype(float) ** 4 * chances).sum()
    spread = ((noise.astype(float) ** 2).mean() - second) / math.sqrt((fourth - second**2) / len(noise))
    zeros = (np.count_nonzero(noise == 0) - chances.max() * len(noise)) / math.sqrt(chances.max() * len(noise))
    return bool(
        apart > 1e-6 and abs(zeros) < 5 and abs(signs) < 5 and abs(spread) < 5.5 and not counts[expected == 0].any()
    )


@pytest.mark.parametrize("square", SQUARES, ids=str)
def test_a_million_draws_follow_the_law(square: Fraction) -> None:
    assert passes(DiscreteGaussian(square).draw(Words(KEY), IDENTITIES), square)


@pytest.mark.parametrize("square", LARGE, ids=str)
def test_wide_noise_fills_its_digits(square: Fraction) -> None:
    """Kolmogorov and Smirnov at 1e-6 against the continuous law; low digits move too."""
    noise = DiscreteGaussian(square).draw(Words(KEY), IDENTITIES[:200_000])
    assert stats.kstest(noise / math.sqrt(square), stats.norm.cdf).pvalue > 1e-6
    assert len(np.unique(noise & 0xFFFF)) > 60_000


class Changed:
    """True words, of which a rule changes some."""

    def __init__(self, rule) -> None:
        self.rule, self.words, self.asked = rule, Words(KEY), []

    def pair(self, identities: np.ndarray, number: int) -> np.ndarray:
        turn, depth = number % 2**32, number >> 32
        self.asked.append((turn, depth, len(identities)))
        drawn = self.words.pair(identities, number).copy()
        self.rule(turn, depth, drawn)
        return drawn


def broken() -> dict[str, np.ndarray]:
    right, words = DiscreteGaussian(Fraction(10**4)), Words(KEY)
    noise = right.draw(words, IDENTITIES)

    def all_accepted(turn: int, depth: int, drawn: np.ndarray) -> None:
        drawn[:, 0] &= np.uint64(0xFFFFFFFF00000000)

    def one_word(turn: int, depth: int, drawn: np.ndarray) -> None:
        drawn[:, 1] = drawn[:, 0] >> np.uint64(32) | drawn[:, 0] << np.uint64(32)

    def positive(turn: int, depth: int, drawn: np.ndarray) -> None:
        drawn[:, 1] &= np.uint64(2**63 - 1)

    return {
        "half sigma": DiscreteGaussian(Fraction(2500)).draw(words, IDENTITIES),
        "one percent off": DiscreteGaussian(Fraction(9900 * 99, 100)).draw(words, IDENTITIES),
        "nothing is rejected": right.draw(Changed(all_accepted), IDENTITIES),
        "place and block from one word": right.draw(Changed(one_word), IDENTITIES),
        "one sign": right.draw(Changed(positive), IDENTITIES),
        "shifted": noise + 1,
        "clamped": np.clip(noise, -300, 300),
        "rounded to even": noise // 2 * 2,
        "zero twice": np.where((noise == 1) & (np.arange(N) % 2 == 0), 0, noise),
    }


def test_the_checkers_refuse_broken_samplers_and_pass_the_right_one() -> None:
    square = Fraction(10**4)
    assert passes(DiscreteGaussian(square).draw(Words(KEY), IDENTITIES), square)
    assert [name for name, noise in broken().items() if passes(noise, square)] == []


# ------------------------------------------------------------------ a function of the bin


@pytest.mark.parametrize("square", [*SQUARES, *LARGE], ids=str)
def test_noise_depends_on_the_bin_alone(square: Fraction) -> None:
    """In any order, in any portion, one by one, and without the kernel."""
    law, words, some = DiscreteGaussian(square), Words(KEY), IDENTITIES[:20_000]
    noise, order = law.draw(words, some), np.random.default_rng(1).permutation(len(some))
    assert (law.draw(Words(KEY), some[order]) == noise[order]).all()
    assert np.array_equal(np.concatenate([law.draw(words, some[:77]), law.draw(words, some[77:])]), noise)
    assert [law.draw_one(words, some[i].tobytes()) for i in range(50)] == noise[:50].tolist()
    assert (law.draw(Words(bytes(32)), some) != noise).any()
    with patch.object(gaussian, "LIB", None):
        assert np.array_equal(law.draw(words, some), noise)
    for row in range(300):
        settled = law._settled(words, some[row : row + 1], 0)
        assert settled is None or settled == noise[row], "exact arithmetic says what the tables say"
    assert law.draw(words, some[:0]).tolist() == []


@pytest.mark.parametrize("square", [Fraction(1, 3), Fraction(10**4), Fraction(2**114)], ids=str)
def test_the_work_depends_on_the_words_alone(square: Fraction) -> None:
    """Every bin takes the words of round 0; what is rejected there, by its words, takes those of round 1, and so on."""
    fed = Changed(lambda *_: None)
    DiscreteGaussian(square).draw(fed, IDENTITIES[:4096])
    assert [turn for turn, _, _ in fed.asked] == list(range(len(fed.asked)))
    assert fed.asked[0] == (0, 0, 4096)
    assert all(count < 4096 // 20**turn + 9 for turn, _, count in fed.asked), "few are rejected"
    assert square > 1 or len(fed.asked) == 1


# ------------------------------------------------------------------ ties and tails


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("square", [Fraction(7, 3), Fraction(10**4)], ids=str)
@pytest.mark.parametrize("compiled", [True, False])
def test_a_tie_of_blocks_is_settled_by_the_first_word_that_differs(
    depth: int, square: Fraction, compiled: bool
) -> None:
    """The bits that choose are those of block 2's limit down to a depth; one less or more there decides."""
    blocks, width = Blocks(square), 1 << Blocks(square).shift

    def fed(step: int) -> Changed:
        def rule(turn: int, level: int, drawn: np.ndarray) -> None:
            places = blocks._places(2, 32 + 64 * level) + (step if level == depth else 0)
            drawn[:, 0] = (places & ONES) if level else places << 32
            drawn[:, 1] = 0  # the first place of the block, which is always accepted

        return Changed(rule)

    with patch.object(gaussian, "LIB", gaussian.LIB if compiled else None):
        below, above = fed(-1), fed(+1)
        assert DiscreteGaussian(square).draw(below, IDENTITIES[:2]).tolist() == [2 * width] * 2
        assert DiscreteGaussian(square).draw(above, IDENTITIES[:2]).tolist() == [3 * width] * 2
    assert {level for _, level, _ in below.asked} == set(range(depth + 1))


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_tie_of_acceptance_is_settled_by_the_first_word_that_differs(depth: int, compiled: bool) -> None:
    """Place 3 of block 2 at sigma = 100, with the bits of its acceptance down to a depth; then the next round."""
    square, blocks = Fraction(10**4), Blocks(Fraction(10**4))
    width, chosen = 1 << blocks.shift, int(blocks.limits[1]) + 5
    rate = Fraction(3 * (4 * width + 3)) / (2 * square)

    def fed(step: int) -> Changed:
        def rule(turn: int, level: int, drawn: np.ndarray) -> None:
            places = binary_places(rate, False, 32 + 64 * level) + (step if level == depth else 0)
            drawn[:, 0] = (chosen << 32 | places) if not level else 0
            drawn[:, 1] = (3 if not turn else 2**63 + 2) if not level else places & ONES
            if turn:
                drawn[:, 0] = chosen << 32

        return Changed(rule)

    with patch.object(gaussian, "LIB", gaussian.LIB if compiled else None):
        assert DiscreteGaussian(square).draw(fed(-1), IDENTITIES[:2]).tolist() == [2 * width + 3] * 2
        assert DiscreteGaussian(square).draw(fed(+1), IDENTITIES[:2]).tolist() == [-2 * width - 2] * 2


@pytest.mark.parametrize("square", [Fraction(7, 3), Fraction(10**4)], ids=str)
def test_the_tail_has_no_end_in_reach(square: Fraction) -> None:
    """First bits of ones mean blocks beyond the tables: further words choose among them, with the right probability."""
    blocks = Blocks(square)

    def rule(turn: int, level: int, drawn: np.ndarray) -> None:
        drawn[:, 0] = drawn[:, 0] | np.uint64(0xFFFFFFFF00000000) if not level else drawn[:, 0]
        drawn[:, 1] = 0

    noise = DiscreteGaussian(square).draw(Changed(rule), IDENTITIES[:400]) >> blocks.shift
    with localcontext(Context(prec=80)):
        weights = [curve(square, k << blocks.shift) for k in range(600)]
        weights[0] /= 1 if blocks.shift else 2
        total, beyond = sum(weights), Decimal(2) ** -32
        tails = [min(float(sum(weights[k:]) / total / beyond), 1.0) for k in range(400)]
    counts = np.array([(noise >= k).sum() for k in range(400)])
    for k in range(400):
        assert abs(counts[k] - 400 * tails[k]) < 5 * math.sqrt(400 * tails[k] * (1 - tails[k])) + 8
    assert 0 < counts[next(k for k in range(400) if tails[k] < 0.3)] < 200


@thin(3)
@pytest.mark.parametrize("square", [Fraction(1, 10**9), *SQUARES, *LARGE], ids=str)
def test_constant_words_neither_crash_nor_hang(square: Fraction) -> None:
    for first, second in ((0, 0), (ONES, ONES), (0, ONES), (ONES, 0)):

        def rule(turn: int, level: int, drawn: np.ndarray, words: tuple[int, int] = (first, second)) -> None:
            drawn[:, 0], drawn[:, 1] = words

        noise = DiscreteGaussian(square).draw(Changed(rule), IDENTITIES[:2])
        assert noise[0] == noise[1]


# ------------------------------------------------------------------ tails, half widths, moments


@pytest.mark.parametrize("square", SQUARES, ids=str)
def test_tails_are_bounded_from_above_and_nearly(square: Fraction) -> None:
    with localcontext(Context(prec=60)):
        sigma = math.isqrt(int(square)) + 1
        most = 30 * sigma + 40
        weights = [curve(square, x) for x in range(most)]
        whole = 2 * sum(weights) - 1
        for k in (1, 2, sigma, 2 * sigma, 5 * sigma, 12 * sigma):
            exact = sum(weights[k:]) / whole
            bound = Decimal(tail_bounds(square, k, 400)[1]) / 2**400
            assert exact - Decimal("1e-50") <= bound <= exact * Decimal("1.03") + Decimal("1e-50")
            low = Decimal(tail_bounds(square, 1 - k, 400)[0]) / 2**400
            assert 1 - exact * Decimal("1.03") <= low <= 1 - exact + Decimal("1e-50")


@thin(6)
@pytest.mark.parametrize("square", SQUARES, ids=str)
@pytest.mark.parametrize(("l1", "linf"), [(1, 1), (20, 20), (20, 3), (20, 1)])
def test_thresholds_are_the_least_that_hold(square: Fraction, l1: int, linf: int) -> None:
    """Against all ways to spread a unit over its own bins, by the exact law; one less would not hold, but for 3%."""
    delta = Fraction(1, 10**6)
    tau = least_threshold(square, 1, l1, delta, linf, tail=tail_bounds)
    x, chances = law(square)
    above = np.append(np.cumsum(chances[::-1])[::-1], 0)

    def seen(tau: int, every: list[tuple[int, ...]]) -> float:
        hidden = [math.log1p(-above[np.searchsorted(x, tau - w)]) for w in range(linf + 1)]
        return -math.expm1(min(sum(hidden[w] for w in spread) for spread in every))

    def spreads(rest: int, most: int) -> Iterator[tuple[int, ...]]:
        if not rest:
            yield ()
        for first in range(min(rest, most), 0, -1):
            yield from ((first, *more) for more in spreads(rest - first, first))

    every = list(spreads(l1, linf))
    assert seen(tau, every) <= float(delta) * (1 + 1e-9)
    assert seen(tau - 1, every) > float(delta) * 0.97


@pytest.mark.parametrize("square", [*SQUARES, *LARGE], ids=str)
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(19, 20), 1 - Fraction(1, 10**6)], ids=str)
def test_half_widths_hold_and_are_nearly_the_least(square: Fraction, level: Fraction) -> None:
    t = DiscreteGaussian(square).half_width(level)
    if square > 10**9:
        assert 0 <= t / math.sqrt(square) / stats.norm.ppf(float(1 + level) / 2) - 1 < 0.02
        return
    x, chances = law(square)
    assert chances[np.abs(x) <= t].sum() >= float(level) - 1e-12
    near = math.floor(t * 0.97)
    assert t == 0 or chances[np.abs(x) < min(t, near)].sum() < float(level)


@pytest.mark.parametrize("square", SQUARES, ids=str)
def test_moments(square: Fraction) -> None:
    x, chances = law(square)
    assert DiscreteGaussian(square).variance() == pytest.approx((x**2 * chances).sum(), rel=1e-9)
    assert DiscreteGaussian(square).mean() == pytest.approx((abs(x) * chances).sum(), rel=1e-4)
    assert DiscreteGaussian(square).variance() <= float(square)


def test_what_is_out_of_range_is_refused_or_widened() -> None:
    for square in (Fraction(0), Fraction(-1), Fraction(2**114 + 1)):
        with pytest.raises(PlanError, match="noise"):
            DiscreteGaussian(square)
    assert DiscreteGaussian(Fraction(1, 10**30)) == replace(DiscreteGaussian(Fraction(1)), square=Fraction(1, 10**6))
    for level in (Fraction(0), Fraction(1)):
        with pytest.raises(PlanError, match="between 0 and 1"):
            DiscreteGaussian(Fraction(1)).half_width(level)
