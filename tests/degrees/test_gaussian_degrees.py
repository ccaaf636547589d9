"""Degree distributions under Gaussian noise: the posterior is of its law, and so are intervals; costs are rho."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import deep

import wpinq
from tests.degrees.test_corner import corner_bins, protect
from tests.degrees.test_hierarchy import COLUMNS, NODES, table
from wpinq.core.plan.node import sources
from wpinq.degrees import release, volume
from wpinq.degrees.observed import observe_corner
from wpinq.errors import BudgetError, PlanError
from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.degrees.path import conjugate
from wpinq.postprocess.degrees.posterior.evidence import Cornered
from wpinq.postprocess.degrees.posterior.law import half_width

BELL = {"mechanism": "gaussian"}


class Released:
    """A measured corner with Gaussian noise, which is the same whenever it is asked."""

    def __init__(self, degrees, scale, seed, size=1 << 12):
        self.scale, rng = Fraction(scale), np.random.default_rng(seed)
        self.bins = [one + np.rint(rng.normal(0, scale, size)).astype(np.int64) for one in corner_bins(degrees, size)]

    def observe_many(self, bins):
        return np.where(bins > 0, self.bins[0][np.abs(bins) - 1], self.bins[1][np.abs(bins) - 1])

    def fit(self, gaussian=True):
        # under the other law, a scale of the same variance
        scale = self.scale if gaussian else Fraction(float(self.scale) / 2**0.5)
        evidence = Cornered(observe_corner(self), scale, gaussian)
        return Fit(*evidence.staircases((0.5,))[0], evidence, "posterior")


POWER = np.sort(np.random.default_rng(3).zipf(1.8, 400).clip(0, 300))[::-1]


@pytest.fixture(scope="module")
def fits():
    """Forty simulated releases, each fitted under its own law and under the other one."""
    made = [Released(POWER, 8, seed) for seed in range(40)]
    return [one.fit() for one in made], [one.fit(gaussian=False) for one in made]


@deep
def test_intervals_and_bands_hold(fits):
    """40 fits: binomial tails at 0.9 and below, false alarm 1e-4 of each interval; bands as `Fit.band` says."""
    truth = {"distinct": 400, "largest": int(POWER[0]), "records": int(POWER.sum())}
    for name, value in truth.items():
        held = sum(low <= value <= high for low, high in (fit.interval(name) for fit in fits[0]))
        assert held >= 27, (name, held)
    columns, shares = conjugate(np.append(POWER, 0), int(POWER[0])), []
    for fit in fits[0]:
        low, high = fit.band(0.9)
        size = max(len(columns), len(high))
        value, below, above = (np.pad(one, (0, size - len(one))) for one in (columns, low, high))
        shares.append(((below <= value) & (value <= above))[:60].mean())
    assert 0.86 <= np.mean(shares) <= 0.995


def test_the_posterior_of_its_own_law_errs_less(fits):
    """And than that of Laplace noise of the same variance, which is another law: by volume, over 40 releases."""
    truth = conjugate(np.append(POWER, 0), int(POWER[0]))
    own, other = (np.array([volume(fit.cdf, truth) for fit in some]) for some in fits)
    assert own.mean() < other.mean()
    raw = np.mean([np.abs(fit.noisy_cdf).sum() for fit in fits[0]])
    assert own.mean() < raw / 5


def test_the_sum_of_noises_has_its_law():
    assert half_width(((10.0, 1, True),), 0.95) == 20
    mixed = half_width(((10.0, 30, True), (5.0, 1)), 0.9)
    assert mixed == pytest.approx(1.645 * (30 * 100 + 50) ** 0.5, rel=0.02)


def test_a_release_costs_its_rho_once_and_a_hierarchy_divides_it(tmp_path):
    rows = protect(tmp_path, [30, 12, 12, 7, 3, 3, 1, 1, 1])
    pages = wpinq.protect(tmp_path / "views.parquet", rho=1, ledger=tmp_path / "rho").map("page")
    fit = release(pages, rho="1/2", **BELL)
    assert np.array_equal(fit.sequence, release(pages, rho="1/2", **BELL).sequence)
    assert repr(fit).endswith("one corner, standard deviation 1>")
    assert fit.about["cost"] == {"delta": 0.0, "rho": 0.5}
    near = release(pages, within=4, **BELL)
    assert 0 < near.about["cost"]["rho"] < 0.5
    with pytest.raises(BudgetError, match="costs rho"):
        release(pages, rho="1/2", name="more", **BELL)
    ledger = sources(pages._node)[0].ledger
    before = ledger.divergence
    for asked in ({"rho": 1}, {"rho": "1/8", "split": "1/2", **BELL}, {"epsilon": 1, **BELL}):
        with pytest.raises(PlanError, match=r"^release\("):
            release(pages, **asked)
    assert ledger.divergence == before
    with pytest.raises(PlanError, match=r"^release\(mechanism='gaussian'\): no epsilon holds"):
        release(rows, rho="1/2", **BELL)
    views = wpinq.protect(table(), rho=20, columns=COLUMNS, version="1", secret=wpinq.Secret(bytes(32)))
    found = release(views, rho=18, by=("country", "region"), nodes=NODES, **BELL)
    assert {one.scales[0] for one in found.values()} == {found[()].scales[0]}
    assert float(found[()].scales[0]) == pytest.approx((2 * 6) ** -0.5)
    assert views.budget.divergence == 18
    inside = table().filter(pl.col("region") != "x")
    assert abs(found[()].records - inside.height) < 60
