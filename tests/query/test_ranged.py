"""Counts of ranges in one query: they are what each count is by itself, cost what one does, and are nearer."""

import datetime as dt
import math
import random
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import deeper, often
from scipy.stats import binom
from strategies import evaluate

import wpinq
from wpinq.aggregates import range_counts
from wpinq.apps.remote.pricing import priced_sql
from wpinq.core.plan.stability import sensitivities
from wpinq.query import prepare, quoted
from wpinq.query.select.ranged import FARTHEST

NOON = dt.datetime(2026, 3, 1, 12)
ROWS = pl.DataFrame({
    "u": ["ann", "bob", "cy", "dee", "eve", "fay", "gus", "hal"],
    "x": [1, 2, 2, 3, 5, None, -7, 2**62],
    "f": [0.1, 0.1 + 2**-56, math.inf, -math.inf, None, math.nan, -0.0, 0.3],
    "d": [dt.date(2026, 3, day) for day in (1, 1, 2, 3, 5, 8, 13)] + [None],
    "t": [NOON + dt.timedelta(microseconds=step) for step in (-1, 0, 1, 2, 10**6, 10**9, -(10**9))] + [None],
})  # fmt: skip
ENDS = {
    "x": ["1", "2", "2.5", "-7", "5", "-100"], "f": ["0.1", "0.3", "0", "-1e300", "1e300", "2"],
    "d": [f"'2026-03-{day:02}'" for day in (1, 2, 3, 4, 13)],
    "t": ["'2026-03-01 12:00:00'", "'2026-03-01 12:00:00.000001'", "'2026-03-01 12:00:01'", "'2026-02-28'"],
}  # fmt: skip


def table(budget=10**9, rows=ROWS, **more):
    return wpinq.protect(rows, budget=budget, version="1", **more)


def written(draw, column):
    """A condition that is a range of a column, somehow written."""
    low, high = draw.sample(ENDS[column], 2)
    return draw.choice([
        f"{column} BETWEEN {low} AND {high}", f"{column} >= {low} AND {column} < {high}", f"{column} < {low}",
        f"{low} < {column}", f"({column} > {low}) AND {high} >= {column}", f"{column} = {low}", f"{column} <= {low}",
    ])  # fmt: skip


def texts(conditions):
    return "SELECT " + ", ".join(f"COUNT(*) FILTER (WHERE {each})" for each in conditions) + " FROM t"


@pytest.mark.parametrize("column", ENDS)
def test_each_is_what_it_is_alone(column):
    """At so large an epsilon that noise is none; alone a count is measured by its own filter."""
    rows, draw = table(), random.Random(column)
    conditions = [written(draw, column) for _ in range(24)]
    together = prepare(texts(conditions), {"t": rows}).ranged
    assert len(together) == 1 and len(together[0].spans) > 12
    found = wpinq.sql(texts(conditions), {"t": rows}, epsilon=10**6).rows[0]
    distinct = list(dict.fromkeys(conditions))
    alone = {each: wpinq.sql(texts([each]), {"t": rows}, epsilon=10**4).value for each in distinct}
    assert [alone[each] for each in conditions] == list(found)


def test_they_cost_what_one_does_and_others_share_the_rest():
    rows = table()
    query = "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE x < 2) AS a, COUNT_IF(x BETWEEN 2 AND 4) AS b, SUM(x) FROM t"
    answer = wpinq.sql(query, {"t": rows}, epsilon=3, bounds={"x": (0, 5)})
    assert answer.cost["epsilon"] == 3 and rows.budget.spent == 3
    assert [made.epsilon for made in answer.measurements] == [1, 1, 1]
    assert wpinq.sql(query, {"t": rows}, epsilon=3, bounds={"x": (0, 5)}).rows == answer.rows and rows.budget.spent == 3
    assert all(type(answer.frame[name][0]) is int for name in "ab")


def lost(quotes, records, more):
    """What some quotes lose of more records, by the definitions, at the scale of each."""
    total = Fraction(0)
    for quote in quotes:
        root = wpinq.Collection(quote.node)
        moved = [evaluate(root, rows) for rows in (records, [*records, *more])]
        both = {*moved[0], *moved[1]}
        total += sum(abs(Fraction(moved[1].get(key, 0)) - moved[0].get(key, 0)) for key in both) / quote.scale
    return total


PEOPLE = wpinq.users("u", at_most=3)
SMALL = pl.DataFrame({"u": ["ann", "bob"], "x": [3, 9]})
FEW = texts(["x < 5", "x BETWEEN 2 AND 20", "x > 7"])
MANY = texts([f"x BETWEEN {low} AND {low + 37}" for low in range(0, 60)])


@pytest.mark.parametrize("query", [FEW, MANY])
@pytest.mark.parametrize(("unit", "more"), [(wpinq.Unit(), [("cy", 6)]), (PEOPLE, [("cy", x) for x in (6, 6, 40)])])
def test_one_unit_loses_epsilon(query, unit, more):
    rows = table(rows=SMALL, unit=unit)
    quote = quoted(query, {"t": rows}, epsilon=2)
    assert len(quote.quotes) == (1 if query is FEW else 2)
    assert lost(quote.quotes, SMALL.rows(), more) == 2 == sum(each.epsilon for each in quote.quotes)
    assert {max(sensitivities(each.node).values()) for each in quote.quotes} == {len(more)}


def test_levels_that_each_cost_all_of_epsilon_are_found(monkeypatch):
    true = range_counts.ask_count
    monkeypatch.setattr(
        range_counts, "ask_count", lambda self, plan, epsilon, more: true(self, plan, Fraction(2), more)
    )
    quote = quoted(MANY, {"t": table(rows=SMALL)}, epsilon=2)
    assert lost(quote.quotes, SMALL.rows(), [("cy", 6)]) > 2


def test_a_price_tells_the_noise_of_each():
    rows = table(budget=9)
    query = texts(["x < 2", "x >= 2 AND x < 5", "x < 5"])
    quote = quoted(query, {"t": rows}, epsilon=1)
    halves = [each.half_width for each in quote.expected]
    shown = wpinq.sql(f"EXPLAIN {query}", {"t": rows}, epsilon=1).frame
    assert rows.budget.spent == 0
    assert shown["epsilon"].to_list() == [1.0, None, None, None]
    assert shown["95% of noise within"].to_list() == [None, *halves]
    ends = wpinq.sql(query, {"t": rows}, epsilon=1).intervals[0]
    assert [(high - low) / 2 for low, high in ends] == halves
    assert halves[0] == halves[1] == 3 < halves[2] < 6, "each by itself has noise within 9"
    assert "3 buckets" in prepare(query, {"t": rows}).explain(1)


ALONE = [
    texts(["x < 2"]), texts(["x < 2", "d < '2026-03-02'"]), texts(["x < 2 OR x > 5", "x < 3"]),
    texts(["x BETWEEN 5 AND 2", "x < 3"]), texts(["x IN (1, 2)", "x < 3"]), texts([f"x < {FARTHEST + 1}", "x < 3"]),
    texts(["u < 'b'", "u < 'c'"]), texts(["x < f", "x < 3"]), texts(["x < 3", "NOT x < 5"]),
    "SELECT COUNT(DISTINCT u) FILTER (WHERE x < 3), COUNT(DISTINCT u) FILTER (WHERE x < 5) FROM t",
    "SELECT COUNT(u) FILTER (WHERE x < 3), COUNT(u) FILTER (WHERE x < 5) FROM t",
    "SELECT x, COUNT(*) FILTER (WHERE x < 3), COUNT(*) FILTER (WHERE x < 5) FROM t GROUP BY x",
]  # fmt: skip


@pytest.mark.parametrize("query", ALONE)
def test_what_is_no_range_of_one_column_is_measured_alone(query):
    assert not prepare(query, {"t": table()}).ranged


def test_gaussian_noise_and_within_ask_no_ranges():
    rows = table(budget=9, delta="1e-5")
    query = texts(["x < 2", "x < 5"])
    for asked in ({"within": 9}, {"epsilon": 1, "delta": "1e-6", "mechanism": "gaussian"}):
        assert not quoted(query, {"t": rows}, **asked).ranged
    assert len(quoted(query, {"t": rows}, epsilon=1, mechanism="laplace").quotes) == 1


def test_of_many_buckets_levels_are_fitted_and_answers_agree():
    values = np.random.default_rng(3).integers(0, 100, 3000)
    rows = table(rows=pl.DataFrame({"x": values}))
    ends = [(0, 50), (51, 99), (0, 99), *((low, low + 39) for low in range(60))]
    found = wpinq.sql(texts([f"x BETWEEN {low} AND {high}" for low, high in ends]), {"t": rows}, epsilon=10**4)
    true = [np.sum((values >= low) & (values <= high)) for low, high in ends]
    counts = np.array(found.rows[0])
    assert np.allclose(counts, true, atol=0.1) and counts[0] + counts[1] == pytest.approx(counts[2])


@deeper
@pytest.mark.parametrize("count", [3, 30])
def test_intervals_cover(count):
    """A right interval fails for one set of keys in a million."""
    values, runs = list(range(200)), often(200, 10)
    ends = [(low * 2, 100 + low * 3 // 2) for low in range(count)]
    rows, query = table(rows=pl.DataFrame({"x": values})), texts([f"x BETWEEN {a} AND {b}" for a, b in ends])
    inside, off = np.zeros(count), []
    true = np.array([b - a + 1 for a, b in ends])
    for turn in range(runs):
        answer = wpinq.sql(query, {"t": rows}, epsilon=1, name=str(turn))
        low, high = np.array(answer.intervals[0]).T
        inside += (low <= true) & (true <= high)
        off.append(np.array(answer.rows[0]) - true)
    assert (inside >= binom.ppf(1e-6 / count, runs, 0.95)).all()
    assert np.std(off) < 0.8 * math.sqrt(2) * count, "less than each alone has"


def test_over_a_thousand_buckets_a_count_is_off_by_13_at_most():
    """Alone each of 511 counts at epsilon 1 would be off by 720, and sums of single buckets by 25."""
    ends = np.random.default_rng(0).permutation(1023)[:1022].reshape(-1, 2)
    query = ", ".join(f"COUNT_IF(x BETWEEN {low} AND {high})" for low, high in np.sort(ends, axis=1) - [[0, 1]])
    quote = quoted(f"SELECT {query} FROM t", {"t": table()}, epsilon=1)
    ranges, spans = quote.ranged[0], quote.statement.ranged[0].spans.values()
    variances = [level.query.stddev() ** 2 for level in ranges.quotes]
    tree = quote.statement.ranged[0].tree
    assert tree.sizes == (1023, 93, 9) and sum(each.epsilon for each in ranges.quotes) == 1
    assert math.sqrt(np.mean([tree.variance(*span, variances) for span in spans])) < 13


def test_prices_name_the_column_whose_noise_they_tell():
    rows = table(budget=9)
    query = "SELECT SUM(x) AS s, COUNT(*) FILTER (WHERE x < 2) AS a, COUNT(*) AS n, COUNT_IF(x < 5) AS b FROM t"
    price = priced_sql(quoted(query, {"t": rows}, epsilon=3, bounds={"x": (0, 10)}), None)
    assert [(each.column, each.half_width) for each in price.expected] == [("n", 3), ("a", 3), ("b", 5), ("s", 30)]
    assert price.cost["epsilon"] == "3" and rows.budget.spent == 0
    text = prepare(query, {"t": rows}, {"x": (0, 10)}).explain(3)
    assert "COUNT(CASE WHEN x < 2 THEN 1 END): noise moves it by at most 3 with probability 0.95" in text


def test_the_price_of_a_median_names_what_chooses_it():
    price = quoted("SELECT MEDIAN(x) AS m FROM t", {"t": table()}, epsilon=1, bounds={"x": (0, 10)})
    assert [(each.column, each.mechanism, each.half_width) for each in price.expected] == [("m", "exponential", None)]
