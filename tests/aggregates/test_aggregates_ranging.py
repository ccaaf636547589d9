"""The charged guess of a column's bounds: it holds the numbers, is charged, and never fails."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import deeper, often

import wpinq
from wpinq.aggregates import ranging, suggest_bounds
from wpinq.aggregates.heap import Heap
from wpinq.aggregates.ranging import CENTRE, IDENTITIES, bounds_of
from wpinq.aggregates.scale import SIZE, Magnitudes, points
from wpinq.core.noise import DiscreteLaplace, Words

NAN, INF = math.nan, math.inf


def protected(numbers, kind=float, budget=100):
    return wpinq.protect([(number,) for number in numbers], budget=budget, columns={"x": kind})


@pytest.mark.parametrize(
    ("numbers", "widest"),
    [
        ([3.0, 5.0, 100.0], 200), ([-3.0, 5.0], 16), ([-100.0, -3.0], 200), ([-4.0, -2.5], 4), ([4.0], 4), ([-4.0], 4),
        ([0.0, 7.0], 8.1), ([0.0, -7.0], 8.1), ([0.0], 1), ([0.3], 0.25), ([1e-30, 2e300], 2.0**63),
        ([5.0, NAN, INF, -INF, None], 4), ([1e6, 1e6 + 1], 8), ([-1e6, -1e6 + 1], 8), ([0.1, 0.2, 0.4], 0.7),
    ],
)  # fmt: skip
def test_bounds_hold_the_numbers_and_little_more(numbers, widest):
    """Each number 100 times; at this epsilon noise is 0 but for a chance of 1e-20."""
    low, high = suggest_bounds(protected(numbers * 100), "x", 100)
    held = [min(number, 2.0**63) for number in numbers if number is not None and math.isfinite(number)]
    assert low <= min(held) and max(held) <= high and high - low <= widest


CALLS = 3334


@deeper
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize(
    ("values", "most"),
    [
        (np.arange(50, 151), 100),
        (1e6 + np.random.default_rng(1).normal(size=2000), 10),
        (np.tile([3.0, 900.0], 500), 100),
    ],
)
def test_bounds_are_never_wild(values, most, epsilon):
    """10,000 calls at each epsilon in the deep run: none is wider than so many times what 98% of the numbers take.

    That noise makes one a hundred times as wide has a chance of 10^-12, and ten times one of 10^-6.
    """
    values = np.tile(values, max(1, 1000 // len(values)))
    places, weights = np.unique(points(values.astype(float)), return_counts=True)
    heap, rng = Heap(SIZE, places, weights), np.random.default_rng(9)
    spread, ids = np.ptp(np.quantile(values, [0.01, 0.99])), np.arange(2 * IDENTITIES, dtype=np.uint64).reshape(-1, 2)
    for _ in range(often(CALLS, 60)):
        low, high = bounds_of(heap, epsilon, 1, Words(rng.bytes(32)), ids)
        assert (high - low) / spread < most
        assert np.mean((values >= low) & (values <= high)) > 0.9


def test_what_it_loses_is_what_is_paid():
    """The centre by its law (`test_splitting.py`), the counts by the scale of their noise: its parts sum to epsilon."""
    values = np.array([3.0, 70.0, -2.0])
    places, weights = np.unique(points(values), return_counts=True)
    drawn = []

    class Seen(DiscreteLaplace):
        def draw(self, words, identities):
            drawn.append((self.scale, len(identities)))
            return super().draw(words, identities)

    ids = np.arange(2 * IDENTITIES, dtype=np.uint64).reshape(-1, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranging, "DiscreteLaplace", Seen)
        bounds_of(Heap(SIZE, places, weights), Fraction(3), 4, Words(bytes(32)), ids)
    ((scale, count),) = drawn
    assert Fraction(4) / scale == 3 * (1 - CENTRE) and count < IDENTITIES


def test_points_rise_with_numbers_and_hold_them():
    rng = np.random.default_rng(2)
    odd = [0.0, -0.0, 1, -1, 2.0**63, -1e300]
    numbers = np.sort([*(rng.normal(size=300) * 10.0 ** rng.integers(-12, 22, 300)), *odd])
    places = points(numbers)
    grid = Magnitudes("x")
    assert (np.diff(places) >= 0).all() and places.min() >= 0 and places.max() < SIZE
    clamped = np.clip(numbers, -(2.0**63), 2.0**63)
    low, high = (np.array(grid.ends(places.tolist(), upper=upper)) for upper in (False, True))
    assert (low <= clamped).all() and (clamped <= high).all()
    shown = np.array(grid.points(places.tolist()))
    assert (np.abs(shown - clamped) <= np.maximum(np.abs(clamped) * 2.0**-30, 2.0**-30)).all()
    assert points(shown).tolist() == places.tolist()
    rows = [*numbers.tolist(), None, math.nan]
    frame = pl.DataFrame({"x": rows}).select(grid.steps())["x"].to_list()
    assert frame == [grid.steps_of(one) for one in rows] and frame[-2:] == [None, None]


def test_it_is_charged_once_and_its_bounds_can_be_used():
    people = protected(range(18, 66), int, budget=3)
    bounds = suggest_bounds(people, "x", 1)
    assert suggest_bounds(people, "x", 1) == bounds, "free, and the same"
    assert people.mean("x", bounds, 2).interval()[0] <= bounds[1]
    with pytest.raises(wpinq.BudgetError):
        suggest_bounds(people, "x", 1, name="another")


def test_a_few_records_are_not_followed_and_many_are():
    """One record beyond is hidden by noise of scale 10, 10,000 are not; chance of either failing below 1e-6."""
    few = suggest_bounds(protected([50.0] * 10_000 + [1e9]), "x", "0.1")
    assert few[1] <= 2**30
    many = suggest_bounds(protected([50.0] * 10_000 + [1e9] * 10_000), "x", "0.1")
    assert many[0] <= 50 < 1e9 <= many[1]


@pytest.mark.parametrize("numbers", [[], [NAN], [None], [1.0]])
@pytest.mark.parametrize("epsilon", ["0.001", 1])
def test_of_no_records_it_is_a_guess_and_no_error(numbers, epsilon):
    low, high = suggest_bounds(protected(numbers), "x", epsilon)
    assert -(2.0**63) <= low < high <= 2.0**63


def test_refusals_cost_nothing():
    people = wpinq.protect([("ann", 1, 5)], budget=1, columns={"user": str, "hour": int, "x": int})
    for collection, column in ((people, "user"), (people, "age"), (people.window(1, at="hour"), "x")):
        with pytest.raises(wpinq.PlanError):
            suggest_bounds(collection, column, 1)
    live = wpinq.live(columns={"x": int}, budget=1)
    with pytest.raises(wpinq.PlanError, match="suggest_bounds"):
        suggest_bounds(live, "x", 1)
    live.close()
    suggest_bounds(people, "x", 1)  # nothing had been charged
