"""The smooth prior against enumeration of every staircase of a small grid, and on real and lumpy curves."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from depth import deep, deeper, often

from wpinq.errors import PlanError
from wpinq.postprocess.degrees.distance import volume
from wpinq.postprocess.degrees.path import conjugate
from wpinq.postprocess.degrees.posterior import smooth
from wpinq.postprocess.degrees.posterior.smooth import SmoothPosterior, Trend
from wpinq.postprocess.degrees.reconcile import reconcile

MICO = Path(__file__).parents[3] / "shared" / "data" / "mico-ccdf.csv"
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
TENS = Fraction(10), Fraction(10)


def enumerate_chances(v, h, scales, tallest, means):
    """The definition: weigh every nonincreasing sequence of heights by the noise and by the gaps' probabilities."""
    every = np.array(list(itertools.product(range(tallest, -1, -1), repeat=len(v))))
    every = every[np.all(np.diff(every, axis=1) <= 0, axis=1)]
    lengths = (every[:, :, None] > np.arange(len(h))).sum(axis=1)
    logs = -np.abs(v - every).sum(axis=1) / scales[0] - np.abs(h - lengths).sum(axis=1) / scales[1]
    size = 1 / 0.15**2
    for c, mean in enumerate(means):
        gaps = every[:, c] - every[:, c + 1]
        orders = np.array([math.lgamma(g + size) - math.lgamma(size) - math.lgamma(g + 1) for g in gaps])
        logs += orders + gaps * math.log(mean / (size + mean))
    weights = np.exp(logs - logs.max())
    return (
        np.array([[weights[every[:, c] == y].sum() for y in range(tallest + 1)] for c in range(len(v))]) / weights.sum()
    )


def test_equals_enumeration():
    """Under the fitted prior, and under one that pulls hard: both scales, columns and rows of every small size."""
    rng, checked = np.random.default_rng(1), 0
    for trial in range(40):
        scales = [(0.25, 0.25), (0.25, 0.75), (0.5, 0.25)][trial % 3]
        columns, rows = rng.integers(1, 5), rng.integers(1, 6)
        v, h = rng.integers(-1, rows + 2, columns), rng.integers(-1, columns + 2, rows)
        fitted = SmoothPosterior(v, h, (Fraction(scales[0]), Fraction(scales[1])))
        if trial % 2:
            fitted.means = rng.uniform(0.01, 6, columns - 1)
        chances = enumerate_chances(v, h, scales, rows + 7, fitted.means).cumsum(axis=1)
        if np.abs(chances[:, :, None] - LEVELS).min() > 1e-5:
            checked += 1
            expected = [[int(np.searchsorted(column, level)) for column in chances] for level in LEVELS]
            assert fitted.quantiles(LEVELS).tolist() == expected
    assert checked >= 30


def test_the_prior_is_where_it_is_likeliest():
    """Data of a power law: the fitted means are a fixed point of the rounds, and near those that made the data."""
    rng = np.random.default_rng(2)
    means = 20_000 / np.arange(1.0, 200) ** 1.5
    heights = np.append(np.cumsum(rng.poisson(means)[::-1])[::-1], 0)
    h = conjugate(heights, int(heights[0]))
    v = heights + np.rint(rng.laplace(0, 10, len(heights)))
    fitted = SmoothPosterior(v, h + np.rint(rng.laplace(0, 10, len(h))), TENS)
    assert np.abs(np.log(fitted.means[:100] / means[:100])).max() < 0.3
    sums = np.add.reduceat(fitted.marginals(fitted.means) * fitted._heights, fitted._starts[:-1])
    again = Trend(len(means)).fit(-np.diff(sums), fitted.means)
    assert np.allclose(again[:100], fitted.means[:100], rtol=0.01)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 400])
def test_trend_follows_a_power_law(count):
    gaps = 1_000 / np.arange(1.0, count + 1)
    assert np.allclose(Trend(count).fit(gaps, gaps + 0.5), gaps, rtol=0.01)


def test_the_band_is_of_the_same_prior():
    v, h = [40, 12, 22, 3] + [0] * 60, [3, 2, 1, 1]
    fits = [reconcile(v, h, scales=(4, 4), prior=prior) for prior in ("uniform", "smooth")]
    quantiles = SmoothPosterior(v, h, (Fraction(4), Fraction(4))).quantiles((0.05, 0.5, 0.95))
    low, high = fits[1].band(0.9)
    for mine, its in zip((low, fits[1].cdf, high), quantiles, strict=True):
        assert np.array_equal(np.trim_zeros(mine, "b"), its[its > 0])
    assert not np.array_equal(fits[0].band(0.9)[1], high)
    assert np.array_equal(fits[0].cdf, reconcile(v, h, scales=(4, 4)).cdf)


@pytest.mark.parametrize(
    ("v", "h", "scale"),
    [([5], [1, 1], 1), ([-3, -2], [0], 1), ([100_000, 0, 0, 90_000, 0], [0, 1_000], "0.1"), ([10**6, 0, 0], [0], 1)],
)
def test_contradictions_end_in_a_staircase(v, h, scale):
    fit = reconcile(v, h, scales=(scale, scale), prior="smooth")
    assert (np.diff(fit.cdf) <= 0).all() and (np.diff(np.array(fit.band(0.9))) <= 0).all()


def test_refusals(monkeypatch):
    with pytest.raises(PlanError, match="expected 'uniform' or 'smooth'"):
        reconcile([1], [1], scales=(1, 1), prior="flat")
    for method in ("path", "squares"):
        with pytest.raises(PlanError, match="only method='posterior'"):
            reconcile([1], [1], scales=(1, 1), method=method, prior="smooth")
    for bound in ("SHORT", "MOST_PAIRS", "MOST_GAP"):
        with monkeypatch.context() as patch, pytest.raises(PlanError, match="use prior='uniform'"):
            patch.setattr(smooth, bound, 1)
            reconcile([9, 5, 2], [3, 2], scales=(1, 1), prior="smooth")


@pytest.fixture(scope="module")
def mico():
    if not MICO.exists():
        pytest.skip("needs the shared data: mico-ccdf.csv")
    column = np.loadtxt(MICO, delimiter=",", skiprows=1, dtype=np.int64)[:, 1]
    return np.pad(column, (0, 1_000 - len(column)))


def lumpy(truth):
    """Half of the degrees rounded to multiples of five."""
    degrees = conjugate(truth, int(truth[0]))
    degrees[::2] = np.maximum(5 * np.rint(degrees[::2] / 5), 1)
    return conjugate(np.sort(degrees)[::-1], len(truth))


def risk(truth, prior, runs):
    """Return the mean volume error, and the share of columns 31 to 100 that the 90% band covers."""
    rng, errors, covered = np.random.default_rng(2029), [], []
    p = 1 - math.exp(-1 / 10)
    h = np.pad(conjugate(truth, int(truth[0])), (0, 136))
    for _ in range(runs):
        v, rows = (curve + rng.geometric(p, len(curve)) - rng.geometric(p, len(curve)) for curve in (truth, h))
        fit = reconcile(v, rows, scales=(10, 10), prior=prior)
        low, high = (curve[30:100] for curve in fit.band(0.9))
        errors.append(volume(fit.cdf, truth))
        covered.append(np.mean((low <= truth[30:100]) & (truth[30:100] <= high)))
    return float(np.mean(errors)), float(np.mean(covered))


@deep
@pytest.mark.slow
def test_mico_error_and_coverage(mico):
    """Measured over 30 runs: 1,378 and 93%; the goal is 1,400, and the seed is fixed."""
    error, coverage = risk(mico, "smooth", 12)
    assert error <= 1_400 and 0.85 <= coverage <= 0.97, (error, coverage)


@deeper
@pytest.mark.slow
def test_the_risk_is_as_the_docstring_says(mico):
    """On lumpy data it errs half as much again, and its bands miss: if this fails, the warning is out of date."""
    error, coverage = risk(lumpy(mico), "smooth", often(6, 2))
    plain, covered = risk(lumpy(mico), "uniform", often(6, 2))
    assert error > 1.3 * plain and coverage < 0.6 < 0.85 < covered, (error, plain, coverage, covered)
