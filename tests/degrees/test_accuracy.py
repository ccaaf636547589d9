"""Accuracy on real and on lumpy curves, with seeded noise: the goals of the issue, not of one lucky draw.

Errors: thirty runs; the goals lie two standard errors above the means of forty other simulated releases. Coverage: 150
runs, so the narrowest range (ten columns, nearly independent) has a standard error of 0.8%, and 88% is 2.5 below 90%.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from depth import thin

import wpinq
from wpinq.postprocess.degrees.distance import volume
from wpinq.postprocess.degrees.path import conjugate
from wpinq.postprocess.degrees.posterior.curves import quantiles
from wpinq.postprocess.degrees.posterior.evidence import Cornered
from wpinq.postprocess.degrees.reconcile import reconcile

MICO = Path(__file__).parents[3] / "shared" / "data" / "mico-ccdf.csv"
RANGES = [(0, 10), (10, 30), (30, 100), (100, 300), (300, 1_000)]
RUNS = 30


@pytest.fixture(scope="module")
def mico():
    if not MICO.exists():
        pytest.skip("needs the shared data: mico-ccdf.csv")
    truth = np.zeros(1_000, np.int64)
    column = np.loadtxt(MICO, delimiter=",", skiprows=1, dtype=np.int64)[:, 1]
    truth[: len(column)] = column
    return truth


def lumpy(truth):
    """Half of the degrees rounded to multiples of five: the set that breaks smooth priors."""
    degrees = conjugate(truth, int(truth[0]))
    degrees[::2] = np.maximum(5 * np.rint(degrees[::2] / 5), 1)
    return conjugate(np.sort(degrees)[::-1], len(truth))


def draw(truth, rng, scale=10, slack=136):
    p = 1 - math.exp(-1 / scale)
    h = np.concatenate([conjugate(truth, int(truth[0])), np.zeros(slack, np.int64)])
    return tuple(curve + rng.geometric(p, len(curve)) - rng.geometric(p, len(curve)) for curve in (truth, h))


@pytest.mark.parametrize(("method", "goal"), [("path", 2_320), ("posterior", 1_670)])
def test_mico_error(mico, method, goal):
    rng = np.random.default_rng(2026)
    errors = [volume(reconcile(*draw(mico, rng), scales=(10, 10), method=method).cdf, mico) for _ in range(RUNS)]
    assert np.mean(errors) <= goal, np.mean(errors)


def test_posterior_at_the_best_split(mico):
    rng = np.random.default_rng(2027)
    scales = (Fraction(1000, 195), Fraction(200))
    errors = []
    for _ in range(10):
        v, h = draw(mico, rng, float(scales[0]))[0], draw(mico, rng, float(scales[1]))[1]
        errors.append(volume(reconcile(v, h, scales=scales).cdf, mico))
    assert np.mean(errors) <= 1_320, np.mean(errors)


@thin(3)
@pytest.mark.slow
@pytest.mark.parametrize("shape", [lambda truth: truth, lumpy], ids=["mico", "lumpy"])
def test_bands_cover(mico, shape):
    """Ends are randomised: an interval of whole numbers else covers more than its level near zero."""
    rng = np.random.default_rng(2028)
    truth, tail = shape(mico), np.arange(0.01, 0.105, 0.01)
    levels = np.concatenate([tail, np.arange(0.15, 0.9, 0.05), 1 - tail])
    covered = []
    for _ in range(150):
        answers = quantiles(*draw(truth, rng), (Fraction(10), Fraction(10)), tuple(levels))
        below, upto = ((held * levels[:, None]).max(axis=0) for held in (answers < truth, answers <= truth))
        position = below + rng.random(len(truth)) * (upto - below)
        covered.append((position >= 0.05) & (position <= 0.95))
    shares = [float(np.mean(np.array(covered)[:, a:b])) for a, b in RANGES]
    assert min(shares) >= 0.88 and max(shares) <= 0.97, shares


@pytest.mark.slow
def test_release_through_the_engine(tmp_path):
    """Eight runs of the whole pipeline at 0.2: their mean was 1,124 over thirty, with a standard deviation of 76."""
    source = MICO.with_name("mico.parquet")
    if not source.exists():
        pytest.skip("needs the shared data: mico.parquet")
    pages = wpinq.protect(source, budget=2, ledger=tmp_path / "ledger").map(pl.col("page"))
    truth = np.loadtxt(MICO, delimiter=",", skiprows=1, dtype=np.int64)[:, 1]
    errors = [volume(wpinq.degrees.release(pages, 0.2, name=f"run {run}").cdf, truth) for run in range(8)]
    assert np.mean(errors) <= 1_220, np.mean(errors)


@thin(3)
@pytest.mark.slow
@pytest.mark.parametrize("shape", [lambda truth: truth, lumpy], ids=["mico", "lumpy"])
def test_bands_of_a_corner_cover(mico, shape):
    """As above, at scale 5, of both curves; columns that are zero are left out, since their bands are exact.

    Sixty runs. Of the top ten ranks, two of them tied, the prior under which ties are rare had 87.5%.
    """
    rng, p = np.random.default_rng(2029), 1 - math.exp(-0.2)
    cdf = shape(mico)[: int(np.count_nonzero(shape(mico)))]
    curves, tail = (cdf, conjugate(cdf)), np.arange(0.01, 0.105, 0.01)
    levels = np.concatenate([tail, np.arange(0.15, 0.9, 0.05), 1 - tail])
    bins = [np.maximum(curve[:512] - np.arange(512) - 1 + side, 0) for side, curve in enumerate(curves)]
    covered = [], []
    for _ in range(60):
        noisy = tuple(one + rng.geometric(p, 512) - rng.geometric(p, 512) for one in bins)
        stairs = Cornered(noisy, Fraction(5)).staircases(tuple(levels))
        for side, truth in enumerate(curves):
            size = min(len(truth), 1_000)
            answers = np.array([np.pad(stair[side][:size], (0, max(size - len(stair[side]), 0))) for stair in stairs])
            below, upto = ((h * levels[:, None]).max(axis=0) for h in (answers < truth[:size], answers <= truth[:size]))
            position = below + rng.random(size) * (upto - below)
            covered[side].append((position >= 0.05) & (position <= 0.95))
    shares = [float(np.mean(np.array(side)[:, a:b])) for side in covered for a, b in RANGES]
    assert min(shares) >= 0.88 and max(shares) <= 0.97, shares
