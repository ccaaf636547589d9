"""Sums, means and medians in cross tables: those that DuckDB has, sums that add up, intervals that hold, refusals."""

from itertools import product

import duckdb
import numpy as np
import polars as pl
import pytest
from depth import deeper, often

import wpinq
from wpinq.core.plan.node import sources
from wpinq.errors import PlanError

LOUD = 10**9
RNG = np.random.default_rng(7)
PEOPLE = pl.DataFrame({
    "person": [f"p{i}" for i in range(900)],
    "region": RNG.choice(list("abcdefg"), 900),
    "sex": RNG.choice(["f", "m", None], 900),
    "income": [None if number < 20 else number for number in RNG.integers(10, 140, 900).tolist()],
    "share": RNG.random(900),
})  # fmt: skip
CATEGORIES = {"region": list("abcdefg"), "sex": ["f", "m"]}
BOUNDS = {"income": (0, 120), "share": (-1, 1)}
ALL = {"sum": ["income", "share"], "mean": "income", "median": "share", "bounds": BOUNDS}


def protected(**more):
    return wpinq.protect(PEOPLE, **{"budget": 10**12, **more})


def asked(**more):
    return wpinq.table(protected(), "region", "sex", **{"categories": CATEGORIES, "other": "none", **ALL, **more})


def truth():
    """A cube that DuckDB computes, of labels and clamped numbers."""
    people = PEOPLE.with_columns(pl.col("sex").fill_null("none"), pl.col("income").clip(0, 120))  # noqa: F841  by name
    return duckdb.sql(
        "SELECT region, sex, COUNT(*) AS count, SUM(income) AS income_sum, SUM(share) AS share_sum,"
        " AVG(income) AS income_mean, MEDIAN(share) AS share_median FROM people GROUP BY CUBE (region, sex)"
    ).pl().with_columns(pl.col("region", "sex").fill_null("all"))  # fmt: skip


def test_without_noise_it_is_what_duckdb_has():
    cells = asked(epsilon=LOUD).frame.join(truth(), ["region", "sex"], validate="1:1", suffix="_true")
    assert cells.height == 9 * 4 - 4  # nobody is under "none" of region
    for name, near in (("count", 0), ("income_sum", 0), ("share_sum", 1e-3), ("income_mean", 1e-2)):
        assert (cells[name] - cells[f"{name}_true"]).abs().max() <= near
    held = [low <= true <= high for low, true, high in cells.select(
        "share_median_low", "share_median_true", "share_median_high").rows()]  # fmt: skip
    assert all(held)


@pytest.mark.parametrize("spent", [{"epsilon": "0.2"}, {"rho": "0.01", "mechanism": "gaussian"}])
def test_sums_add_up_exactly(spent):
    people = wpinq.protect(PEOPLE, rho=10**6) if "rho" in spent else protected()
    told = wpinq.table(people, ["region", "sex"], categories=CATEGORIES, other="none", **ALL, **spent)
    for number in told.numbers[:2]:
        assert number.step is not None
        for axis in range(2):
            parts, totals = np.split(number.parts, [-1], axis=axis)
            assert (parts.sum(axis=axis, keepdims=True) == totals).all()
        assert (number.values == number.parts * np.float64(number.step)).all() or number.step < 1


@pytest.mark.parametrize("spent", [{"epsilon": 3}, {"rho": 1, "mechanism": "gaussian"}])
@pytest.mark.parametrize("wanted", [{"sum": "income", "mean": "income"}, {"sum": ["income", "share"]}])
@deeper
def test_intervals_hold_as_often_as_they_say(wanted, spent):
    people = wpinq.protect(PEOPLE, **({"rho": 10**6} if "rho" in spent else {"budget": 10**6}))
    held, many, times = {}, {}, often(60, 2)
    for repeat in range(times):
        told = wpinq.table(people, "region", "sex", categories=CATEGORIES, other="none", bounds=BOUNDS,
                           name=str(repeat), **wanted, **spent)  # fmt: skip
        cells = told.frame.join(truth(), ["region", "sex"], suffix="_true")
        for number, corner in product(told.numbers, ("all", "cell")):
            some = cells.filter((pl.col("sex") == "all") == (corner == "all"))
            inside = some[f"{number.name}_true"].is_between(some[f"{number.name}_low"], some[f"{number.name}_high"])
            key = number.name, corner
            held[key], many[key] = held.get(key, 0) + inside.sum(), many.get(key, 0) + inside.len()
    for key, inside in held.items():  # below by chance with less than 1e-4 each
        assert inside >= 0.95 * many[key] - 4 * (0.0475 * many[key]) ** 0.5 - 2, (key, inside, many[key])


def test_a_mean_of_few_says_that_nothing_is_known_and_of_many_is_near():
    told = asked(epsilon=4)
    mean = told.numbers[2]
    assert (mean.low[-2, 0], mean.high[-2, 0]) == (0, 120)  # nobody
    assert mean.high[-1, -1] - mean.low[-1, -1] < 10
    counts = told.counts[-1, -1]
    assert abs(counts - 900) < 100  # who has no income is counted


def test_the_split_is_what_the_price_says():
    told = asked(epsilon=4)
    assert [float(one.epsilon) for one in told.answer.measurements] == [1, 1, 1, 1]
    assert told.answer.cost == {"epsilon": 4.0, "delta": 0.0}
    people = protected(budget=4)
    wpinq.table(people, "sex", categories={"sex": ["f"]}, epsilon=4, median="share", bounds=BOUNDS)
    assert sources(people._node)[0].ledger.remaining() == 0


def test_a_page_has_a_column_for_each_number():
    page = asked(epsilon=4, categories={**CATEGORIES, "region": ["a", "b"]}).html()
    assert page.count(">sum of income</th>") == page.count(">median of share</th>") == 4
    assert 'colspan="5">sex: f</th>' not in page and 'colspan="5">f</th>' in page


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"sum": "income"}, "numbers need declared bounds"),
        ({"sum": "person", "bounds": {"person": (0, 1)}}, "holds text, no numbers"),
        ({"mean": ["income", "income"]}, "is there twice"),
        ({"median": 5}, "name of a column"),
        ({"sum": "nope"}, "nope"),
        ({"sum": "income", "bounds": {"income": (5, 5)}}, "low"),
        ({"sum": "income", "bounds": {"other": (0, 5)}}, "'other' is no column"),
    ],
)
def test_what_is_no_number_is_refused_and_free(words, match):
    people = protected(budget=1)
    with pytest.raises(PlanError, match=match):
        wpinq.table(people, "sex", categories={"sex": ["f"]}, epsilon=1, **words)
    assert sources(people._node)[0].ledger.remaining() == 1
