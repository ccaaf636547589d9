"""Draws of a fit follow the posterior that its marginals describe, and mean frequencies have no gaps."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from depth import thin

import wpinq
from wpinq.degrees import reconcile
from wpinq.errors import PlanError
from wpinq.postprocess.degrees.posterior.marginals import Chain

DATA = Path(__file__).parents[2].parent / "shared" / "data"
DRAWS = 4_000
SIGMAS = 5
"""Each of some hundred comparisons fails by chance once in a million; seeds are fixed."""


def heights(fit, columns):
    return np.array([np.sum(fit.sequence >= k) for k in range(1, columns + 1)])


@thin(2)
@pytest.mark.parametrize("split", [None, "0.5"])
def test_draws_have_the_means_of_the_marginals(split):
    """Drawing goes from the last column to the first, the marginals come from sums both ways: they agree."""
    rows = [("u", f"p{page}") for page, views in enumerate([9, 7, 7, 4, 3, 3, 2, 1, 1, 1]) for _ in range(views)]
    views = wpinq.protect(
        rows, budget=9, columns={"user": str, "page": str}, version="1", secret=wpinq.Secret(bytes(32))
    )
    fit = wpinq.degrees.release(views.map("page"), epsilon=1, split=split)
    wanted = fit.evidence.expected()[:12]
    rng = np.random.default_rng(1)
    drawn = np.array([heights(fit.draw(rng), len(wanted)) for _ in range(DRAWS)])
    error = drawn.std(axis=0) / np.sqrt(DRAWS) + 1e-4  # of heights that nearly never differ
    beyond = np.abs(drawn.mean(axis=0) - wanted) / error
    assert beyond.max() < SIGMAS


def test_a_chain_is_drawn_by_its_weights():
    """All staircases of three columns between 0 and 3, weighed: frequencies of draws against their exact shares."""
    rng = np.random.default_rng(2)
    own, band, step = rng.normal(size=12), (np.zeros(3, np.int64), np.full(3, 3)), 0.25
    weights = {}
    for a in range(4):
        for b in range(a + 1):
            for c in range(b + 1):
                steps = (a < 3) + (b < a) + (c < b)  # none is taken from above the band
                weights[a, b, c] = np.exp(own[a] + own[4 + b] + own[8 + c]) * step ** ((b < a) + (c < b)), steps
    total = sum(weight for weight, _ in weights.values())
    chain = Chain.of(own.copy(), band, step=step)
    found: dict[tuple[int, ...], int] = {}
    for _ in range(DRAWS):
        one = tuple(map(int, chain.drawn(3, rng)))
        found[one] = found.get(one, 0) + 1
    # the last column goes down to 0, which is a step where it is higher
    shares = {key: weight * (step if key[2] > 0 else 1) for key, (weight, _) in weights.items()}
    total = sum(shares.values())
    for key, weight in shares.items():
        share = weight / total
        assert abs(found.get(key, 0) / DRAWS - share) < SIGMAS * np.sqrt(share * (1 - share) / DRAWS) + 1e-3, key
    assert set(found) <= set(shares)


def test_the_same_seed_draws_the_same_and_a_draw_is_a_fit():
    fit = reconcile(np.array([30, 10, 10, 8]), np.array([4] * 10 + [1] * 20), scales=(Fraction(2), Fraction(2)))
    one, two = fit.draw(3), fit.draw(3)
    assert np.array_equal(one.sequence, two.sequence)
    assert (one.method, one.records) == ("draw", int(one.sequence.sum()))
    assert any(not np.array_equal(one.sequence, fit.draw(seed).sequence) for seed in range(9))
    assert fit.frequencies().min() >= 0
    smooth = reconcile(np.array([30, 10, 10, 8]), np.array([4] * 10), scales=(Fraction(2), Fraction(2)), prior="smooth")
    with pytest.raises(PlanError, match="smooth"):
        smooth.draw()


@pytest.mark.parametrize("name", ["facebook", "wiki-vote"])
def test_frequencies_are_near_the_truth_also_in_the_tail(name):
    """The divergence of true shares at epsilon 1/2 is at most 0.05, where the fitted counts' is 0.1 to 0.3."""
    path = DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not here: it is other people's public data")
    frame = pl.read_parquet(path)
    views = wpinq.protect(frame, budget=1, version="1", secret=wpinq.Secret(bytes(32)))
    found = wpinq.degrees.release(views.map("page"), epsilon="1/2").frequencies()
    true = np.bincount(frame.group_by("page").len()["len"].to_numpy())[1:]
    size = max(len(found), len(true))
    p, q = (np.pad(one, (0, size - len(one))) / one.sum() for one in (true, found))
    assert float((p[p > 0] * np.log(p[p > 0] / np.maximum(q[p > 0], 2e-16))).sum()) < 0.05
