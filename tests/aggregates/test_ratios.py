"""Intervals of means and variances: the law of weighted noises, and that they hold the truth without being too wide."""

import numpy as np
import pytest
from depth import thin
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from wpinq.aggregates.ratios import BinNoise, farthest, mean, spread


def discrete(rng, scale, shape, gaussian=False):
    if gaussian:
        return np.round(rng.normal(0, scale, shape))  # of a wide one a step is far below what these tests see
    p = 1 - np.exp(-1 / scale)
    return rng.geometric(p, shape) - rng.geometric(p, shape)


@pytest.mark.parametrize("factors", [(1, 0.3), (1, 1), (0.5, 0.5, 0.5), (0.5, 1.2, 0.2), (1, 0), (0.5, 0, 0)])
@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
def test_the_law_of_a_sum_of_noises_is_a_bound(factors, scale):
    """100,000 sums: as large as said at most as often as said. Binomial tail, false alarm 1e-7 for each of 54.

    And of fine steps it is no loose one: less than 5% too much.
    """
    rng, size = np.random.default_rng(3), 100_000
    sums = np.abs(sum(f * discrete(rng, scale, size) for f in factors))
    noise = BinNoise(scale, 1.0, 0.05, 0.0)
    for miss in (0.3, 0.05, 0.005):
        at = float(np.quantile(sums, 1 - miss))
        said = float(noise.exceeds(np.array([at]), *factors)[0])
        assert binom.sf(int((sums >= at).sum()) - 1, size, min(said, 1)) > 1e-7
        fine = float(BinNoise(scale, 1e-6, 0.05, 0.0).exceeds(np.array([at]), *factors)[0])
        assert scale < 10 or fine < 1.1 * miss


@pytest.mark.parametrize("factors", [(1, 0.3), (0.5, 1.2, 0.2), (1, 0)])
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_the_law_of_a_sum_of_gaussian_noises_is_a_bound(factors, scale):
    """Discrete Gaussian noise by its definition; 100,000 sums. Binomial tail, false alarm 1e-7 for each of 18."""
    rng, size, values = np.random.default_rng(4), 100_000, np.arange(-400, 401)
    chances = np.exp(-(values**2) / (2 * scale**2))
    sums = np.abs(sum(f * rng.choice(values, size, p=chances / chances.sum()) for f in factors))
    for miss in (0.3, 0.05, 0.005):
        noise = BinNoise(scale, 1.0, miss, 0.0, gaussian=True)
        beyond = int((~noise.plausible(sums, *factors)).sum())
        assert binom.sf(beyond - 1, size, miss) > 1e-7
        assert scale < 10 or beyond > 0.7 * miss * size


@given(st.floats(0, 1), st.floats(-1, 1), st.floats(-1, 1))
def test_farthest_finds_the_edge(edge, start, end):
    found = farthest(lambda at: np.abs(at - start) <= edge * abs(end - start), np.array([start]), np.array([end]))
    assert abs(float(found[0]) - (start + edge * (end - start))) < 1e-9 or edge == 1


SHAPES = {
    "skewed": np.exp(np.random.default_rng(1).normal(-3, 1, 1000)).clip(0, 2) - 1,
    "even": np.linspace(-1, 1, 400),
    "ends": np.repeat([-1.0, 1.0], 100),
    "alike": np.full(300, 0.4),
    "few": np.array([-0.2, 0.1, 0.9]),
}


@thin(12)
@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [2.0, 30.0])
def test_intervals_hold_the_truth(shape, scale, gaussian):
    """1,500 answers each. Binomial tail, false alarm 1e-7 for each of 60."""
    y, size, fine = SHAPES[shape], 1500, 1000
    exact = np.array([len(y), y.sum(), (2 * y**2 - 1).sum()])[:, None]
    noisy = exact + discrete(np.random.default_rng(5), scale * fine, (3, size), gaussian) / fine
    noise = BinNoise(scale, 1 / fine, 0.05, 0.0, gaussian)
    truths = [np.mean(y), np.var(y), np.var(y, ddof=1)]
    rules = [mean(noisy[:2], noise), spread(noisy, noise, sample=False), spread(noisy, noise, sample=True)]
    values = [mean(noisy[:2], None), spread(noisy, None, sample=False), spread(noisy, None, sample=True)]
    for truth, (low, high), (value, _) in zip(truths, rules, values, strict=True):
        assert ((low <= value) & (value <= high)).all()
        held = int(((low <= truth + 1e-9) & (truth - 1e-9 <= high)).sum())
        assert binom.cdf(held, size, 0.95) > 1e-7, held / size
        if len(y) >= 100 * scale and np.var(y) > 0.01:
            error = np.sqrt(np.mean((value - truth) ** 2))
            assert np.mean(high - low) / 2 < 2.7 * error, "boxes took 3.3 to 6.4; 2 would do"
            assert held < 0.99 * size
