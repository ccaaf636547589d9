"""Quantiles of a collection, one or several: near the truth, and in intervals that hold it, for what is said."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.errors import PlanError

ONE = Secret(bytes(range(32)))
TENTHS = [tenth / 10 for tenth in range(1, 10)]
SKEWED = np.exp(np.random.default_rng(5).normal(0, 1, 2000))


def protected(frame, **settings):
    return wpinq.protect(frame, budget=10**9, secret=ONE, version="1", name="people", **settings)


def ranks_off(values, numbers, shares):
    """By how many ranks each number is off, where no two numbers are equal."""
    return np.abs(np.searchsorted(np.sort(values), numbers) - np.array(shares) * len(values))


def test_little_noise_shows_the_truth():
    people = protected(pl.DataFrame({"x": SKEWED}))
    table = people.quantiles("x", [0.9, "0.5", Fraction(1, 10)], (0, 100), epsilon=5000).frame
    assert table.columns == ["share", "value", "low", "high"]
    assert table["share"].to_list() == [0.9, 0.5, 0.1], "in the order in which they were given"
    assert (ranks_off(SKEWED, table["value"].to_numpy(), table["share"].to_numpy()) <= 1).all()
    assert (table["low"] <= table["value"]).all() and (table["value"] <= table["high"]).all()


def test_without_intervals_there_are_none_and_all_of_epsilon_is_for_the_answers():
    people = protected(pl.DataFrame({"x": SKEWED}))
    ledger = people._node.data.ledger
    answer = people.quantiles("x", TENTHS, (0, 100), epsilon=1, interval=False)
    assert answer.frame.columns == ["share", "value"]
    assert "interval" not in repr(answer).lower()
    one = people.median("x", (0, 100), epsilon=1, interval=False)
    assert ranks_off(SKEWED, [one.value], [0.5]) < 30
    with pytest.raises(PlanError, match="has no interval"):
        one.interval()
    assert ledger.spent()[0] == 2
    again = people.quantiles("x", TENTHS, (0, 100), epsilon=1, interval=False)
    assert again.rows == answer.rows and ledger.spent()[0] == 2, "the same question is free"
    people.quantiles("x", TENTHS, (0, 100), epsilon=1)
    assert ledger.spent()[0] == 3, "with intervals it is another"


def test_without_bounds_the_grid_is_that_of_all_numbers():
    """20 answers near a million, at 0.5: 2,000 records are enough, and intervals hold; false alarm below 1e-6."""
    values = 1e6 + np.random.default_rng(7).normal(size=2000)
    people = protected(pl.DataFrame({"x": values, "y": -values, "n": values.astype(int)}))
    for number in range(20):
        table = people.quantiles("x", [0.25, 0.5, 0.75], epsilon="0.5", name=str(number)).frame
        assert (ranks_off(values, table["value"].to_numpy(), [0.25, 0.5, 0.75]) < 200).all()
        assert (table["low"] <= table["value"]).all() and (table["value"] <= table["high"]).all()
    below = people.quantiles("y", [0.5], epsilon=1000).frame.row(0)
    assert below[2] <= -np.median(values) <= below[3] and abs(below[1] + np.median(values)) < 0.01
    whole = people.quantiles("n", [0.5], epsilon=1000).frame.row(0)
    assert abs(whole[1] - np.median(values)) < 1.1
    for wrong in ({"by": "n", "keys": [1]}, {"step": 1}):
        with pytest.raises(PlanError, match="need bounds="):
            people.quantiles("x", [0.5], epsilon=1, **wrong)


def test_they_rise_with_their_shares_and_answer_groups_present_or_not():
    frame = pl.DataFrame({"g": ["a"] * 900 + ["b"] * 100, "x": np.arange(1000) % 50})
    table = protected(frame).quantiles("x", TENTHS, (0, 49), epsilon=1, by="g", keys=["b", "none", "a"]).frame
    assert table.columns == ["g", "share", "value", "low", "high"]
    assert table["g"].to_list() == [key for key in ("b", "none", "a") for _ in TENTHS]
    for _, values in table.group_by("g"):
        assert values["value"].is_sorted()
        assert values["value"].is_between(0, 49).all()


@pytest.mark.parametrize("size", [0, 1, 2])
def test_next_to_no_records_give_numbers(size):
    for number in range(5):
        few = protected(pl.DataFrame({"x": SKEWED[:size]}))
        table = few.quantiles("x", TENTHS, (0, 100), epsilon="0.3", name=str(number)).frame
        assert table["value"].is_sorted() and table.select(pl.all().is_finite().all()).row(0) == (True,) * 4
        assert (table["low"] >= 0).all() and (table["high"] <= 100).all()


SHAPES = {
    "skewed": SKEWED.clip(0, 50), "heaps": np.repeat([3.0, 20.0, 21.0], [900, 50, 50]),
    "two": np.repeat([7.0, 40.0], [500, 501]), "one far": np.append(np.full(900, 3.0), 49.0),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_hold_the_quantiles(shape):
    """200 answers of three shares, of each of four shapes. Binomial tail, false alarm 1e-7 for each of 12."""
    values, size = np.sort(SHAPES[shape]), 200
    frame = pl.DataFrame({"w": np.repeat(np.arange(size), len(values)), "x": np.tile(values, size)})
    shares = [0.25, 0.5, 0.9]
    table = protected(frame).quantiles("x", shares, (0, 50), epsilon=1, by="w", keys=range(size), step="0.5").frame
    for share in shares:
        lower, upper = (values[min(max(int(np.ceil(at)) - 1, 0), len(values) - 1)] for at in (
            share * len(values), share * len(values) + 1e-9))  # fmt: skip
        rows = table.filter(pl.col("share") == share)
        held = int(((rows["low"] <= lower) & (rows["high"] >= min(lower, upper))).sum())
        assert binom.cdf(held, size, 0.95) > 1e-7


def test_deciles_are_as_near_as_the_best_published_ones():
    """ApproximateQuantiles errs by 69 ranks, on average, on 2,000 lognormal numbers at epsilon 0.1; we see 63.

    60 runs, with a standard error of 2.1: that it is above 69 has a probability below 0.003, were secrets drawn.
    """
    people, errors = protected(pl.DataFrame({"x": SKEWED})), []
    for number in range(60):
        found = people.quantiles("x", TENTHS, (0, 100), epsilon="0.1", interval=False, name=str(number)).frame
        errors.append(ranks_off(SKEWED, found["value"].to_numpy(), TENTHS).mean())
    assert np.mean(errors) < 69


def test_people_pay_in_proportion_to_their_bound():
    """Somebody has 5 records, so answers are as far off as at a fifth of epsilon; and who has more loses some."""
    frame = pl.DataFrame({"user": np.arange(10_000) // 5, "x": np.exp(np.random.default_rng(6).normal(size=10_000))})
    people = protected(frame, unit=wpinq.users("user", at_most=5))
    quote = people.median("x", (0, 100), epsilon=1, interval=False).measurements[0].quote
    assert quote.scale == 5 and people._node.data.ledger.spent()[0] == 1
    errors = [
        ranks_off(frame["x"].to_numpy(), [people.median("x", (0, 100), 1, interval=False, name=str(n)).value], [0.5])
        for n in range(60)
    ]
    assert 2 < np.mean(errors) < 9, "5 are expected, 0.65 is the standard error: six of them"


@pytest.mark.parametrize("shares", [[], [0.5, 0.5], [0.5, 2], "0.5", 0.5, [-0.1]])
def test_shares_that_make_no_sense_are_refused_and_cost_nothing(shares):
    people = protected(pl.DataFrame({"x": SKEWED}))
    with pytest.raises(PlanError, match=r"quantiles\(shares=...\)"):
        people.quantiles("x", shares, (0, 100), epsilon=1)
    assert people._node.data.ledger.spent() == (0, 0)


PERCENTILE = "PERCENTILE_{}({}) WITHIN GROUP (ORDER BY x)"


def test_sql_charges_several_shares_of_one_column_once():
    people = {"people": protected(pl.DataFrame({"x": SKEWED, "g": [1, 2] * 1000}))}
    asked = ", ".join(
        [*(PERCENTILE.format("CONT", share) for share in (0.1, 0.5, 0.9)), PERCENTILE.format("DISC", 0.5)]
    )
    query = f"SELECT {asked}, MEDIAN(x), COUNT(*) FROM people"
    told = wpinq.sql(f"EXPLAIN {query}", people, epsilon=1, bounds={"x": (0, 100)})
    assert told.frame["epsilon"].to_list() == [0.5, 0.5]
    (row,) = wpinq.sql(query, people, epsilon=2000, bounds={"x": (0, 100)}).rows
    assert people["people"]._node.data.ledger.spent()[0] == 2000
    assert row[1] == row[3] == row[4]
    assert (ranks_off(SKEWED, [row[0], row[1], row[2]], [0.1, 0.5, 0.9]) <= 1).all()
    grouped = f"SELECT g, {asked} FROM people GROUP BY g"
    rows = wpinq.sql(grouped, people, epsilon=2000, bounds={"x": (0, 100)}, keys=[2, 1]).rows
    for (group, low, middle, high, again), part in zip(rows, (SKEWED[1::2], SKEWED[::2]), strict=True):
        assert group in (1, 2) and low < middle == again < high
        assert (ranks_off(part, [low, middle, high], [0.1, 0.5, 0.9]) <= 3).all()


def test_within_speaks_of_each_share_by_itself():
    people = {"people": protected(pl.DataFrame({"x": SKEWED}))}
    query = f"SELECT {PERCENTILE.format('CONT', 0.1)}, {PERCENTILE.format('CONT', 0.5)} FROM people"
    told = wpinq.sql(f"EXPLAIN {query}", people, within=100, bounds={"x": (0, 100)})
    assert len(told.rows) == 2
    wpinq.sql(query, people, within=100, bounds={"x": (0, 100)})
    assert people["people"]._node.data.ledger.spent()[0] == sum(map(Fraction, map(str, told.frame["epsilon"])))
