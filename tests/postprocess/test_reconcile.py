"""The face of reconciling: what it takes, what it refuses, how far it looks, and what a fit tells."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.errors import PlanError
from wpinq.postprocess.degrees import distance
from wpinq.postprocess.degrees.path import conjugate
from wpinq.postprocess.degrees.posterior import evidence, horizon
from wpinq.postprocess.degrees.posterior.curves import quantiles
from wpinq.postprocess.degrees.reconcile import reconcile
from wpinq.testing import protected

METHODS = ["posterior", "path", "squares"]


class Release:
    """A measurement as post-processing sees it; each bin's noise is the same whenever it is asked."""

    def __init__(self, truth, scale, seed):
        self.truth, self.scale, self.seed, self.asked = truth, Fraction(scale), seed, 0

    def observe_many(self, bins):
        bins = np.asarray(bins)
        self.asked = max(self.asked, int(bins[-1]))
        p = 1 - math.exp(-1 / self.scale)
        rng = np.random.default_rng((self.seed, int(bins[0])))
        noise = rng.geometric(p, len(bins)) - rng.geometric(p, len(bins))
        known = np.where(bins <= len(self.truth), self.truth[np.minimum(bins, len(self.truth)) - 1], 0)
        return known + noise


def releases(degrees, scales=(10, 10), seed=0):
    degrees = np.sort(np.asarray(degrees, np.int64))[::-1]
    cdf = conjugate(np.append(degrees, 0), int(degrees.max(initial=0)) + 1)
    return Release(np.append(cdf, 0), scales[0], 2 * seed), Release(np.append(degrees, 0), scales[1], 2 * seed + 1)


curves = st.lists(st.integers(-(2**40), 2**40) | st.integers(-5, 30), min_size=1, max_size=25)


@given(curves, curves, st.sampled_from(METHODS), st.sampled_from([(1, 1), (1, 4), ("0.5", 0.25)]))
@settings(max_examples=often(150), deadline=None)
def test_answers_are_conjugate_partitions(v, h, method, scales):
    try:
        answer = reconcile(v, h, scales=scales, method=method)
    except PlanError as error:
        assert "more than 33,554,432 items" in str(error) and max(v) > 2**24
        return
    for curve in (answer.cdf, answer.sequence):
        assert curve.dtype == np.int64
        assert np.all(np.diff(curve) <= 0)
        assert np.all(curve > 0)
    told = np.minimum(answer.sequence, max(len(v), horizon.MOST_COLUMNS))
    assert np.array_equal(conjugate(told, int(told.max(initial=0))), answer.cdf)
    assert answer.method == "posterior" or answer.records == answer.sequence.sum()
    again = reconcile(v, h, scales=scales, method=method)
    assert np.array_equal(answer.cdf, again.cdf)


@pytest.fixture(scope="module")
def tailed():
    """Four thousand items, one of 893: as many as 66 reach beyond 30, and 30 columns hold more than 66."""
    degrees = np.sort(np.minimum(np.random.default_rng(1).pareto(1.2, 4_000) + 1, 900).astype(int))[::-1]
    rng, p = np.random.default_rng(2), 1 - math.exp(-0.1)
    curves = conjugate(degrees, 1_000), np.append(degrees, np.zeros(300, int))
    return degrees, [curve + rng.geometric(p, len(curve)) - rng.geometric(p, len(curve)) for curve in curves]


@pytest.mark.parametrize(("columns", "ranks"), [(1_000, 3), (1_000, 100), (3, 4_300), (100, 4_300), (200, 200)])
def test_a_side_that_is_cut_short_costs_accuracy_and_no_more(tailed, columns, ranks):
    """Whole arrays err by 400 or so here, isotonic regression of the sequence alone by 2,400. Every bin that was given
    must be met within 8 scales (false-alarm rate below 10^-3 each time; seeds fixed), beyond what the other side says.
    """
    degrees, (v, h) = tailed
    fit = reconcile(v[:columns], h[:ranks], scales=(10, 10))
    long = np.zeros((2, 4_500))
    long[0, : len(fit.sequence)], long[1, :4_000] = fit.sequence, degrees
    assert np.abs(long[0] - long[1]).sum() < 1_200
    assert abs(fit.cdf[0] - v[0]) < 80 and abs(fit.sequence[0] - h[0]) < 80
    assert np.array_equal(conjugate(fit.sequence), fit.cdf)
    low, high = fit.band(0.9)
    assert np.mean(low[:800] <= conjugate(degrees, 1_000)[:800]) > 0.8 and len(high) > 800
    least, most = fit.interval("records", 0.999)
    assert least <= len(degrees) * degrees.mean() <= most


def test_three_columns_and_three_ranks_are_met_and_the_rest_stays_empty(tailed):
    _, (v, h) = tailed
    fit = reconcile(v[:3], h[:3], scales=(10, 10))
    assert np.abs(fit.cdf[:3] - v[:3]).max() < 80 and np.abs(fit.sequence[:3] - h[:3]).max() < 80
    assert fit.cdf[3] == 3 and fit.sequence[3] == 3


def test_longer_arrays_that_hold_noise_only_change_nothing_but_noise(tailed):
    """Given all ranks, the fit that is not limited by them is the one that the posterior of the columns has."""
    _, (v, h) = tailed
    fit = reconcile(v, h, scales=(10, 10))
    heights = quantiles(v, h, (Fraction(10), Fraction(10)), (0.5,))[0]
    assert heights[-1] == 0 and heights[0] < len(h)
    assert np.array_equal(fit.cdf, heights[heights > 0])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("degrees", [[], [1], [8, 8, 8, 7, 6, 4, 4, 3, 14, 12, 5, 6, 3, 3, 4, 2, 3, 2]], ids=len)
def test_tiny_and_empty_collections(degrees, method):
    answer = reconcile(*releases(degrees), method=method)
    assert answer.distinct <= len(degrees) + 100
    assert np.array_equal(conjugate(answer.cdf, len(answer.sequence)), answer.sequence)
    low, high = answer.band()
    assert np.all(low <= high)


@pytest.mark.parametrize("method", METHODS)
def test_with_almost_no_noise_the_truth_comes_back(method):
    degrees = np.array([50_000, 900, 900, 30, 7, 7, 7, 2] + [1] * 500)
    answer = reconcile(*releases(degrees, scales=("0.02", "0.02")), method=method)
    assert np.array_equal(answer.sequence, degrees)
    assert (answer.distinct, answer.largest, answer.records) == (508, 50_000, int(degrees.sum()))


def test_a_heavy_item_is_reached_and_little_more_is_observed():
    degrees = np.concatenate([[50_675, 20_000, 3_000], np.arange(1, 400)])
    cdf, sequence = releases(degrees)
    columns, rows = horizon.observe_enough(cdf, sequence)
    assert 50_675 < len(columns) == cdf.asked < 50_675 + 500
    assert len(degrees) < len(rows) == sequence.asked < len(degrees) + 500


def test_a_sequence_that_is_nearly_noise_does_not_set_the_horizon():
    cdf, sequence = releases(np.arange(1, 400), scales=(1, 10**6))
    columns, _ = horizon.observe_enough(cdf, sequence)
    assert 400 < len(columns) <= 1_024


def test_the_stop_rule_does_not_stop_before_a_lone_heavy_item():
    stops = []
    for seed in range(200):
        cdf, _ = releases([9_000], scales=(4, 10**9), seed=seed)
        stops.append(len(horizon.observe_columns(cdf, 10**6)))
    assert min(stops) >= 9_000


def test_an_item_beyond_every_horizon_bounds_the_work(monkeypatch):
    monkeypatch.setattr(horizon, "MOST_COLUMNS", 1_000)
    monkeypatch.setattr(evidence, "MOST_COLUMNS", 1_000)
    cdf, sequence = releases([10**6, 5_000] + [5] * 300)
    answer = reconcile(cdf, sequence)
    assert cdf.asked == 1_000
    assert abs(answer.largest - 10**6) < 300
    assert abs(answer.records - 1_006_500) < 2_000


def test_more_items_than_can_be_observed_are_refused(monkeypatch):
    monkeypatch.setattr(horizon, "MOST_ROWS", 100)
    with pytest.raises(PlanError, match="more than 100 items"):
        reconcile(*releases([1] * 400))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"cdf": [1, 2], "sequence": [1]}, "need scales"),
        ({"cdf": [1, math.nan], "sequence": [1], "scales": (1, 1)}, "nan or inf"),
        ({"cdf": [1], "sequence": [math.inf], "scales": (1, 1)}, "nan or inf"),
        ({"cdf": [], "sequence": [1], "scales": (1, 1)}, "cdf="),
        ({"cdf": [1], "sequence": [[1]], "scales": (1, 1)}, "sequence="),
        ({"cdf": [1], "sequence": [[1], [1, 2]], "scales": (1, 1)}, "sequence="),
        ({"cdf": ["a"], "sequence": [1], "scales": (1, 1)}, "cdf="),
        ({"cdf": None, "sequence": [1], "scales": (1, 1)}, "cdf="),
        ({"cdf": [1], "sequence": [1], "scales": (1, 0)}, "above zero"),
        ({"cdf": [1], "sequence": [1], "scales": (-1, 1)}, "above zero"),
        ({"cdf": [1], "sequence": [1], "scales": (math.nan, 1)}, "finite"),
        ({"cdf": [1], "sequence": [1], "scales": (1, "1e-10")}, "between 10"),
        ({"cdf": [1], "sequence": [1], "scales": (1, Fraction(10**200))}, "between 1e-100"),
        ({"cdf": [1e18] * 3, "sequence": [1], "scales": (1, 1)}, "more than 33,554,432 items"),
        ({"cdf": [10**30], "sequence": [1], "scales": (1, 1)}, "cdf="),
        ({"cdf": [True], "sequence": [1], "scales": (1, 1)}, "cdf="),
        ({"cdf": [1], "sequence": [1], "scales": 3}, "scales"),
        ({"cdf": [1], "sequence": [1], "scales": (1, 1, 1)}, "scales"),
        ({"cdf": [1], "sequence": [1], "scales": (1, 1), "method": "best"}, "method='best'"),
        ({"cdf": Release(np.zeros(1), 1, 0), "sequence": [1], "scales": (1, 1)}, "two of a kind"),
        ({"cdf": Release(np.zeros(1), 1, 0), "sequence": Release(np.zeros(1), 1, 1), "scales": (1, 1)}, "leave it out"),
    ],
)
def test_refuses_clearly(arguments, match):
    with pytest.raises(PlanError, match=match):
        reconcile(**arguments)


def test_two_measurements_the_other_way_round_are_refused():
    """They were fitted: the first page had as many views as there are pages."""
    views = protected(user="text", page="text").map("page")
    cdf, sequence = wpinq.degrees.cdf(views).measure(1), wpinq.degrees.sequence(views).measure(1)
    with pytest.raises(PlanError, match="the other way round; swap them"):
        reconcile(sequence, cdf)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scales", [(1, 1), ("1e-9", 10**12), (10**12, Fraction(1, 3))], ids=str)
@pytest.mark.parametrize(
    "curve",
    [[-5, -7], [0] * 50, [2**40, 1], [-(2**63)] * 4, [1, 50, 3, 40, 2], [1e18, -1e18, 5, 0.5], [1e-300], [1e300, 3]],
    ids=lambda curve: str(curve[:2]),
)
def test_wild_numbers_are_answered_or_refused(curve, scales, method):
    """Either a staircase with its band and intervals, or one error; nothing else is raised, nothing hangs."""
    plain = [30, 10, 3, 1, 0, 2, -1]
    for pair in ((curve, plain), (plain, curve)):
        try:
            fit = reconcile(*pair, scales=scales, method=method)
            low, high = fit.band()
            assert fit.interval("records")[0] <= fit.interval("records")[1]
        except PlanError as error:
            assert "items" in str(error) or "memory" in str(error)
            continue
        assert np.all(low <= high) and np.all(np.diff(fit.cdf) <= 0)
        assert fit.records >= 0 and (method == "posterior" or fit.records == sum(fit.sequence.tolist()))


@pytest.mark.parametrize("degrees", [[1], [3, 1], [3, 2, 2, 1] * 5], ids=len)
def test_an_interval_of_a_quantile_holds_the_fit_where_there_may_be_no_items(degrees):
    """It was 0 to 0 where the band allowed no items at all, and held the truth in 3 of 100 runs."""
    truth, held = np.sort(degrees), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        ranks, columns = np.pad(truth[::-1], (0, 60)), np.pad(conjugate(truth), (0, 60))
        v, h = (np.rint(curve + rng.laplace(0, 3, len(curve))) for curve in (columns, ranks))
        fit = reconcile(v, h, scales=(3, 3))
        low, high = fit.interval(0.5)
        assert low <= fit.quantile(0.5) <= high
        held += low <= truth[(len(truth) - 1) // 2] <= high
    assert held >= 30  # at 90%, fewer come once in 1,500 tests


def test_an_interval_holds_the_fit_and_what_was_released():
    """The fit of CA-GrQc said that the largest has 96, between 70 and 94: its first rank had come out low."""
    fit = reconcile([9, 8] + [5] * 30, [12] + [32] * 5, scales=(1, 1))
    low, high = fit.interval("largest")
    assert low <= 12 and high == fit.largest > 25
    assert reconcile([0], [-90], scales=(1, 1)).interval("largest") == (0, 0)


def test_a_measurement_of_another_shape_is_refused():
    class Wrong(Release):
        def observe_many(self, bins):
            return np.zeros(3)

    with pytest.raises(PlanError, match="whole numbers from 1"):
        reconcile(Wrong(np.zeros(1), 1, 0), Wrong(np.zeros(1), 1, 1))


def test_quantiles_and_repr():
    answer = reconcile([4, 2, 1], [3, 2, 1, 1], scales=("0.01", "0.01"), method="path")
    assert [answer.quantile(q) for q in (0, 0.5, 0.75, 0.76, 1)] == [1, 1, 2, 3, 3]
    assert repr(answer) == "<Fit of 4 items, 7 records, largest 3; method 'path', scales 0.01 and 0.01>"
    empty = reconcile([-50], [-50], scales=(1, 1))
    assert (empty.quantile(0.5), empty.largest, empty.records, empty.distinct) == (0, 0, 0, 0)
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(PlanError, match="quantile"):
            answer.quantile(bad)
    for bad in (0, 1, math.nan):
        with pytest.raises(PlanError, match="band"):
            answer.band(bad)


def test_bands_of_a_wider_level_hold_the_narrower_and_the_median():
    answer = reconcile(*releases(np.arange(1, 300)))
    low, high = answer.band(0.5)
    lower, higher = answer.band(0.9)
    assert len(answer.cdf) <= len(high) <= len(higher)
    assert np.all(lower[: len(low)] <= low) and np.all(high <= higher[: len(high)])
    inside = answer.cdf - low[: len(answer.cdf)], high[: len(answer.cdf)] - answer.cdf
    assert min(inside[0].min(), inside[1].min()) >= 0


@given(*[st.lists(st.integers(1, 30), min_size=1, max_size=20)] * 3)
@settings(max_examples=often(100), deadline=None)
def test_distances_are_metrics_and_agree_with_scipy(a, b, c):
    from scipy.stats import ks_2samp, wasserstein_distance

    curves = [conjugate(np.array(degrees), 30) for degrees in (a, b, c)]
    for measure in (distance.volume, distance.earth_movers, distance.kolmogorov_smirnov):
        assert measure(curves[0], curves[0]) == 0
        assert measure(curves[0], curves[1]) == measure(curves[1], curves[0])
        triangle = measure(curves[0], curves[1]) + measure(curves[1], curves[2])
        assert measure(curves[0], curves[2]) <= triangle + 1e-12
    assert distance.earth_movers(curves[0], curves[1]) == pytest.approx(wasserstein_distance(a, b))
    with warnings.catch_warnings(action="ignore"):  # its p-value divides by a distance of zero
        statistic = ks_2samp(a, b, method="asymp").statistic
    assert distance.kolmogorov_smirnov(curves[0], curves[1]) == pytest.approx(statistic)
    ranked = [np.pad(-np.sort(-np.array(one)), (0, 20 - len(one))) for one in (a, b)]
    assert distance.volume(curves[0], curves[1]) == np.abs(ranked[0] - ranked[1]).sum()


def test_distances_refuse_what_is_no_staircase():
    assert distance.volume([], [2]) == 2
    assert distance.earth_movers([], []) == distance.kolmogorov_smirnov([], [0]) == 0
    for bad in ([[1]], ["a"], [math.nan]):
        with pytest.raises(PlanError, match="expected"):
            distance.volume(bad, [1])
    with pytest.raises(PlanError, match="no items"):
        distance.earth_movers([], [1])


@pytest.mark.parametrize("method", METHODS)
def test_layout_and_type_of_the_arrays_do_not_matter(method):
    v, h = np.array([30, 12, 5, 1, -2]), np.array([5, 4, 2, 2, 1, 0] + [1] * 20)
    plain = reconcile(v, h, scales=(1, 1), method=method)
    frozen = v.copy()
    frozen.flags.writeable = False
    for other in (v.astype(np.int16), v.astype(float), np.repeat(v, 2)[::2], frozen, v.tolist()):
        assert np.array_equal(reconcile(other, h, scales=(1, 1), method=method).cdf, plain.cdf)
