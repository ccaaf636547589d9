"""The posterior against enumeration of every staircase of a small grid, and its long way against its short one."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from wpinq.errors import PlanError
from wpinq.postprocess.degrees.path import conjugate
from wpinq.postprocess.degrees.posterior import curves as posterior
from wpinq.postprocess.degrees.reconcile import reconcile

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def enumerate_quantiles(v, h, scales, tallest, pull):
    """The definition: weigh every nonincreasing sequence of heights by the likelihood of the noise, and the prior."""
    every = np.array(list(itertools.product(range(tallest, -1, -1), repeat=len(v))))
    every = every[np.all(np.diff(every, axis=1) <= 0, axis=1)]
    lengths = (every[:, :, None] > np.arange(len(h))).sum(axis=1)
    logs = -np.abs(v - every).sum(axis=1) / scales[0] - np.abs(h - lengths).sum(axis=1) / scales[1]
    logs -= pull * every.sum(axis=1)
    weights = np.exp(logs - logs.max())
    answers = np.zeros((len(LEVELS), len(v)), int)
    gap = np.inf
    for c in range(len(v)):
        chances = np.array([weights[every[:, c] <= y].sum() for y in range(tallest + 1)]) / weights.sum()
        answers[:, c] = np.searchsorted(chances, LEVELS)
        gap = min(gap, np.abs(chances[:, None] - LEVELS).min())
    return answers, gap


@pytest.mark.parametrize("pull", [0.0, 0.7])
@pytest.mark.parametrize("scales", [(0.25, 0.25), (0.25, 0.75), (0.5, 0.25)], ids=str)
def test_equals_enumeration(scales, pull, monkeypatch):
    monkeypatch.setattr(posterior, "settle", lambda start, look: look(pull)[1])
    rng, exact = np.random.default_rng(1), tuple(Fraction(scale) for scale in scales)
    checked = 0
    for _ in range(40):
        columns, rows = rng.integers(1, 5), rng.integers(1, 6)
        v, h = rng.integers(-1, rows + 2, columns), rng.integers(-1, columns + 2, rows)
        expected, gap = enumerate_quantiles(v, h, scales, rows + 7, pull)
        if gap > 1e-5:
            checked += 1
            assert np.array_equal(posterior.quantiles(v, h, exact, LEVELS), expected)
    assert checked >= 30


def test_the_size_is_where_prior_and_posterior_agree():
    """Of a chain whose size answers the pull as 1000 / (1 + 40 pull), found from far below and far above."""
    for start in (1.0, 10.0**6):
        sizes = []
        posterior.settle(start, lambda pull, sizes=sizes: (sizes.append(1_000 / (1 + 40 * pull)) or sizes[-1], None))
        pull = math.pi / math.sqrt(6 * sizes[-1])
        assert 1_000 / (1 + 40 * pull) == pytest.approx(sizes[-1], rel=0.25)


def test_pull_is_the_growth_of_the_number_of_staircases():
    """Partitions of n, counted by Euler's recurrence: one record more multiplies their number by exp(pull), roughly."""
    counts = [1] + [0] * 400
    for part in range(1, 401):
        for n in range(part, 401):
            counts[n] += counts[n - part]
    pulls = []
    posterior.settle(400.0, lambda pull: (pulls.append(pull) or 400.0, None))
    assert math.log(counts[400] / counts[399]) == pytest.approx(pulls[0], rel=0.06)


@pytest.mark.parametrize("degrees", [[], [8, 8, 8, 7, 6, 4, 4, 3, 14, 12, 5, 6, 3, 3, 4, 2, 3, 2]], ids=["none", "few"])
def test_ground_that_noise_covers_is_not_filled(degrees):
    """With every staircase alike, an empty collection was given 137 records on average, these 18 items 144 too many."""
    rng, p, errors = np.random.default_rng(3), 1 - math.exp(-0.1), []
    truth = np.array([sum(degree > c for degree in degrees) for c in range(100)])
    for _ in range(20):
        noise = [rng.geometric(p, size) - rng.geometric(p, size) for size in (100, 100 + len(degrees))]
        h = np.concatenate([np.sort(degrees)[::-1], np.zeros(100)]).astype(int) + noise[1]
        answer = posterior.quantiles(truth + noise[0], h, (Fraction(10), Fraction(10)), (0.5,))[0]
        errors.append(np.abs(answer - truth).sum())
    assert np.mean(errors) < (10 if not degrees else 60)


@pytest.fixture
def noisy():
    rng = np.random.default_rng(2)
    degrees = np.sort(np.minimum(rng.pareto(1.2, 4_000) + 1, 900).astype(int))[::-1]
    truth = conjugate(degrees, 900)
    noise = [rng.geometric(0.1, size) - rng.geometric(0.1, size) for size in (900, 4_200)]
    h = np.concatenate([degrees, np.zeros(200, int)]) + noise[1]
    return truth, truth + noise[0], h


def test_the_long_way_answers_as_the_short_one(noisy, monkeypatch):
    _, v, h = noisy
    scales = (Fraction(10), Fraction(10))
    short = posterior.quantiles(v, h, scales, LEVELS)
    monkeypatch.setattr(posterior, "SHORT", 0)
    long = posterior.quantiles(v, h, scales, LEVELS)
    assert np.abs(short - long).max() <= 1
    assert np.mean(short != long) < 0.002


def test_quantiles_are_staircases_in_order(noisy):
    _, v, h = noisy
    answers = posterior.quantiles(v, h, (Fraction(10), Fraction(5)), LEVELS)
    assert np.all(np.diff(answers, axis=1) <= 0)
    assert np.all(np.diff(answers, axis=0) >= 0)
    assert answers.min() >= 0


def test_ranks_that_are_missing_carry_no_weight(noisy):
    truth, v, h = noisy
    scales = (Fraction(10), Fraction(10))
    whole, part = (posterior.quantiles(v, ranks, scales, (0.5,))[0] for ranks in (h, h[:1_500]))
    errors = [np.abs(answer - truth)[1:].sum() for answer in (whole, part)]
    assert errors[1] < 1.2 * errors[0] + 100


@pytest.mark.parametrize(
    ("v", "h"),
    [([10**9] * 5, [0] * 5), ([0] * 5, [10**18] * 9), (range(0, 5_000, 50), [0] * 9), ([-(10**12)], [3]), ([5], [-5])],
    ids=["tall", "long", "increasing", "negative", "one"],
)
def test_contradictions_end_in_numbers(v, h):
    answers = posterior.quantiles(v, h, (Fraction(1), Fraction(1)), (0.1, 0.5, 0.9))
    assert np.all(np.diff(answers, axis=1) <= 0) and np.all(np.diff(answers, axis=0) >= 0)


def test_too_wide_a_band_is_refused(monkeypatch):
    monkeypatch.setattr(posterior, "MOST_CELLS", 100)
    with pytest.raises(PlanError, match="memory"):
        posterior.quantiles([5] * 10, [5] * 10, (Fraction(10), Fraction(10)), (0.5,))


@pytest.mark.parametrize("degrees", [[2, 1], [1] * 10], ids=str)
def test_the_interval_of_records_holds_what_noise_hides(degrees):
    """It was 0 to 0 wherever the fit was empty, and held the truth in 14 to 31 of 60 runs."""
    held = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        ranks, columns = np.pad(degrees, (0, 60)), np.pad(conjugate(np.array(degrees)), (0, 60))
        v, h = (np.rint(curve + rng.laplace(0, 10, len(curve))) for curve in (columns, ranks))
        low, high = reconcile(v, h, scales=(10, 10)).interval("records")
        held += low <= sum(degrees) <= high
    assert held >= 13  # at 90%, fewer come once in 2,000 tests
