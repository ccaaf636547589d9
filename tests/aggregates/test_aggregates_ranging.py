"""The charged guess of a column's bounds: it holds the numbers, is charged, and never fails."""

import math

import pytest

import wpinq
from wpinq.aggregates import suggest_bounds

NAN, INF = math.nan, math.inf


def protected(numbers, kind=float, budget=100):
    return wpinq.protect([(number,) for number in numbers], budget=budget, columns={"x": kind})


@pytest.mark.parametrize(
    ("numbers", "bounds"),
    [
        ([3.0, 5.0, 100.0], (2, 128)),
        ([-3.0, 5.0], (-4, 8)),
        ([-100.0, -3.0], (-128, -2)),
        ([-4.0, -2.5], (-4, -2)),
        ([4.0], (2, 4)),
        ([0.0, 7.0], (0, 8)),
        ([0.0, -7.0], (-8, 0)),
        ([0.0], (0, 1)),
        ([0.3], (0.25, 0.5)),
        ([1e-30, 1e300], (0, 2.0**63)),
        ([5.0, NAN, INF, -INF, None], (4, 8)),
    ],
)
def test_bounds_are_the_powers_of_two_around_the_numbers(numbers, bounds):
    """At this epsilon noise is 0 but for a chance of 1e-40."""
    found = suggest_bounds(protected(numbers), "x", 100)
    assert (found, math.copysign(1, found[0]) == -1) == (bounds, bounds[0] < 0)


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
