"""The drawn noise against the exact distribution (scipy's dlaplace), on a million draws a scale.

Keys are fixed, so nothing flakes: the stated rate is the chance that a right sampler under a fresh key
would fail. The checkers below are themselves tested on broken samplers, which they must refuse.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from depth import thin
from scipy import stats

from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.noise import DiscreteLaplace, GridLaplace, Words

N = 10**6
IDENTITIES = np.stack([np.arange(N, dtype=np.uint64), np.zeros(N, dtype=np.uint64)], axis=1)
SCALES = [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(10**12 + 39, 3 * 10**11 + 7), Fraction(10**4)]
FALSE_ALARM = 1e-6
SECRET = Secret(bytes(range(32)))


def key(*context: object) -> bytes:
    return SECRET.derive("test", *context)  # type: ignore[arg-type]


def drawn(scale: Fraction, *context: object) -> np.ndarray:
    return DiscreteLaplace(scale).draw(Words(key(scale, *context)), IDENTITIES)


# ------------------------------------------------------------------ checkers


def edges(scale: Fraction) -> np.ndarray:
    """Cut the integers into at most about 140 cells, each expecting 50 of N draws or more, the outer two 1000."""
    law = stats.dlaplace(float(1 / scale))
    ticks = np.unique(np.arange(-12 * scale - 2, 12 * scale + 2, max(Fraction(1), scale / 10)).astype(np.int64))
    ticks = ticks[(N * law.cdf(ticks) >= 1000) & (N * law.sf(ticks) >= 1000)]
    assert (N * np.diff(law.cdf(ticks)) >= 50).all()
    return ticks


def chi_squared(noise: np.ndarray, scale: Fraction) -> float:
    """Give the p-value of Pearson's test; cells are (.., e0], (e0, e1], ..., (e_last, ..)."""
    law, cuts = stats.dlaplace(float(1 / scale)), edges(scale)
    counts = np.bincount(np.searchsorted(cuts, noise, side="left"), minlength=len(cuts) + 1)
    chances = np.concatenate([[law.cdf(cuts[0])], np.diff(law.cdf(cuts)), [law.sf(cuts[-1])]])
    return float(stats.chisquare(counts, chances / chances.sum() * len(noise)).pvalue)


def log_ratios(noise: np.ndarray, scale: Fraction) -> np.ndarray:
    """Standardise what privacy is about: log P(k <= |N| < k+w) / P(k+w <= |N| < k+2w) is w / scale, exactly."""
    width = max(1, int(scale / 4))
    size = np.abs(noise)
    counts = np.bincount((size[size > 0] - 1) // width).astype(float)
    counts = counts[: int(np.argmax(counts < 200)) or None]
    ratios = np.log(counts[:-1] / counts[1:]) - float(width / scale)
    return ratios / np.sqrt(1 / counts[:-1] + 1 / counts[1:])


def passes(noise: np.ndarray, scale: Fraction) -> bool:
    """Judge draws of that scale: shape, log-ratios, symmetry and largest value.

    False alarm below 1e-5: chi-squared 1e-6, some 40 ratios at 5.5 deviations 2e-6, sign 6e-7, maximum 1e-6.
    """
    law = stats.dlaplace(float(1 / scale))
    signs = np.sign(noise).sum() / np.sqrt(max(1, np.count_nonzero(noise)))
    return bool(
        chi_squared(noise, scale) > FALSE_ALARM
        and np.abs(log_ratios(noise, scale)).max(initial=0) < 5.5
        and abs(signs) < 5
        and N * 2 * law.sf(np.abs(noise).max() - 1) > FALSE_ALARM
        and N * 2 * law.sf(np.abs(noise).max()) < 14
    )


# ------------------------------------------------------------------ the sampler


@thin(3)
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("release", range(2))
def test_a_million_draws_follow_the_law(scale: Fraction, release: int) -> None:
    assert passes(drawn(scale, release), scale)


def test_the_least_scale_is_almost_always_zero() -> None:
    assert not drawn(Fraction(1, 1000)).any()  # P(not 0) = 2 exp(-1000)


def test_the_largest_scale_fills_its_digits() -> None:
    """Scale 2^57, against the continuous law: Kolmogorov and Smirnov at 1e-6."""
    noise = drawn(Fraction(2**57))[:200_000]
    assert stats.kstest(noise.astype(float) / 2.0**57, stats.laplace.cdf).pvalue > FALSE_ALARM
    assert len(np.unique(noise & 0xFFFF)) > 60_000  # low digits move too: 65,536 values, 200,000 draws


@thin(2)
@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1, 3), Fraction(10), Fraction(10**9)], ids=str)
def test_grid_laplace_follows_the_continuous_law(scale: Fraction) -> None:
    """Kolmogorov and Smirnov at 1e-6; the grid is far below what 10^6 draws can tell."""
    law = GridLaplace(scale)
    assert law.grid == 2**20
    values = law.draw(Words(key("laplace", scale)), IDENTITIES) / law.grid
    assert stats.kstest(values / float(scale), stats.laplace.cdf).pvalue > (FALSE_ALARM if scale > 1 else 1e-9)
    assert passes(law.draw(Words(key("laplace", scale)), IDENTITIES), scale * law.grid)


# ------------------------------------------------------------------ independence


def test_other_keys_names_and_scales_are_independent() -> None:
    """All pairs of 7 streams, as they come and as magnitudes: |z| < 6, false alarm below 1e-7 in all."""
    streams = [drawn(Fraction(10)), drawn(Fraction(10), "name"), drawn(Fraction(10), 1), drawn(Fraction(10), 2)]
    streams += [drawn(Fraction(10**4)), drawn(Fraction(1)), drawn(Fraction(10 * 10**9 + 1, 10**9))]
    for transform in (lambda x: x, np.abs):
        correlations = np.corrcoef(np.array([transform(stream).astype(float) for stream in streams]))
        assert np.abs(correlations - np.eye(len(streams))).max() * np.sqrt(N) < 6


def test_neighbouring_bins_are_independent() -> None:
    noise = drawn(Fraction(10)).astype(float)
    for signal in (noise, np.abs(noise) - np.abs(noise).mean()):
        for lag in (1, 2, 3, 64, 4095, 4096, 4097, 8192):
            assert abs((signal[lag:] * signal[:-lag]).mean()) / signal.var() * np.sqrt(N - lag) < 6


class OneSide:
    """Words whose second half never hits, so that the noise is the first geometric variable alone."""

    def __init__(self, words: Words, side: int) -> None:
        self.words, self.side = words, side

    def pair(self, identities: np.ndarray, number: int) -> np.ndarray:
        drawn = self.words.pair(identities, number).copy()
        drawn[:, 1 - self.side] = 2**64 - 1
        return drawn


def test_digits_are_independent_of_each_other() -> None:
    """All 20 digits of both variables at scale 10, pairwise: |z| < 6 for 190 pairs, false alarm below 4e-7."""
    words = Words(key("digits"))
    g = [np.abs(DiscreteLaplace(Fraction(10)).draw(OneSide(words, side), IDENTITIES)) for side in (0, 1)]
    bits = np.array([variable >> j & 1 for variable in g for j in range(6)], dtype=float)
    assert np.array_equal(g[0] - g[1], DiscreteLaplace(Fraction(10)).draw(words, IDENTITIES))
    assert np.abs(np.corrcoef(bits) - np.eye(len(bits))).max() * np.sqrt(N) < 6


# ------------------------------------------------------------------ broken samplers are caught


class Reused(OneSide):
    """One word for both variables, or for two digits."""

    def __init__(self, words: Words, numbers: dict[int, int], sides: bool) -> None:
        self.words, self.numbers, self.sides = words, numbers, sides

    def pair(self, identities: np.ndarray, number: int) -> np.ndarray:
        drawn = self.words.pair(identities, self.numbers.get(number, number))
        return np.stack([drawn[:, 0], drawn[:, 0] >> np.uint64(1)], axis=1) if self.sides else drawn


class Silent(OneSide):
    """A digit that is always 0."""

    def pair(self, identities: np.ndarray, number: int) -> np.ndarray:
        drawn = self.words.pair(identities, number)
        return np.full_like(drawn, 2**64 - 1) if number == self.side else drawn


def float_laplace(scale: float) -> np.ndarray:
    return np.round(np.random.default_rng(5).laplace(0, scale, N)).astype(np.int64)


def broken() -> dict[str, np.ndarray]:
    ten, words = DiscreteLaplace(Fraction(10)), Words(key("broken"))
    right = ten.draw(words, IDENTITIES)
    return {
        "half the scale": DiscreteLaplace(Fraction(5)).draw(words, IDENTITIES),
        "one percent off": DiscreteLaplace(Fraction(99, 10)).draw(words, IDENTITIES),
        "words of two digits reused": ten.draw(Reused(words, {1: 2}, sides=False), IDENTITIES),
        "both variables from one word": ten.draw(Reused(words, {}, sides=True), IDENTITIES),
        "a digit dropped": ten.draw(Silent(words, 5), IDENTITIES),
        "a high digit dropped": ten.draw(Silent(words, 6), IDENTITIES),
        "one variable only": ten.draw(OneSide(words, 0), IDENTITIES),
        "shifted": right + 1,
        "clamped": np.clip(right, -100, 100),
    }


def test_the_checkers_refuse_broken_samplers_and_pass_the_right_one() -> None:
    scale = Fraction(10)
    assert passes(DiscreteLaplace(scale).draw(Words(key("broken")), IDENTITIES), scale)
    assert [name for name, noise in broken().items() if passes(noise, scale)] == []
    assert not passes(float_laplace(3.0), Fraction(3))  # rounded continuous Laplace has fewer zeros
