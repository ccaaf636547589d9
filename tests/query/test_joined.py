"""Several counts of a query with Gaussian noise: one measurement, one epsilon and one delta."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom
from strategies import evaluate

import wpinq
from wpinq.core.noise.gaussian_curve import square_of
from wpinq.core.plan.node import sources
from wpinq.core.pricing import privacy_cost
from wpinq.query import prepare, quoted

PERSON = wpinq.users("user", at_most=3)
ROWS = [("ann", "a", 1), ("ann", "b", 5), ("bob", "a", 2), ("cy", None, 9)]
COLUMNS = {"user": str, "page": str, "n": int}
BELL = {"epsilon": 1, "delta": "1e-6", "mechanism": "gaussian"}


def many(count):
    return "SELECT " + ", ".join(f"COUNT(*) FILTER (WHERE n <> {each}) AS c{each}" for each in range(count)) + " FROM v"


MANY, SOME = many(100), many(12)
GROUPED = (
    "SELECT page, COUNT(*) AS n, COUNT(*) FILTER (WHERE n < 4) AS few, COUNT(DISTINCT user) AS users"
    " FROM v WHERE n < 9 GROUP BY page"
)


def table(rows=ROWS, unit=PERSON, budget=10**7, delta="1/10", **more):
    return wpinq.protect(list(rows), budget, columns=COLUMNS, unit=unit, version="1", delta=delta, **more)


def moved(quote, rows, unit):
    """The sum of the squares of what one unit moves, in bins, by the definitions."""
    root = wpinq.Collection(quote.node)
    both = evaluate(root, rows), evaluate(root, [*rows, *unit])
    return sum(Fraction(both[1].get(key, 0) - both[0].get(key, 0)) ** 2 for key in {**both[0], **both[1]})


def allowed(quote):
    """The largest such sum for which noise as wide as quoted is known to hold epsilon and delta."""
    square = (quote.mechanism.square, Fraction(1), Fraction(1, 10**6))
    return max(most for most in range(1, 300) if square_of(Fraction(most), most, *square[1:]) <= square[0])


UNITS = [
    (SOME, wpinq.Unit(), [("dee", "a", 200)], 12),
    (SOME, PERSON, [("dee", "a", 200), ("dee", "b", 300), ("dee", "b", 300)], 108),
    (GROUPED, wpinq.Unit(), [("dee", "a", 1)], 3),
    (GROUPED, PERSON, [("dee", "a", 1)] * 3, 19),
]  # fmt: skip


@pytest.mark.parametrize(("query", "unit", "more", "most"), UNITS)
def test_noise_is_for_the_length_of_what_one_unit_moves(query, unit, more, most):
    (quote,) = quoted(query, {"v": table(unit=unit)}, keys=["a"] if query is GROUPED else None, **BELL).quotes
    assert moved(quote, ROWS, more) == most <= allowed(quote)
    assert (quote.epsilon, quote.delta, quote.rho) == (1, Fraction(1, 10**6), 0)


def test_noise_for_one_count_alone_is_found(monkeypatch):
    true = privacy_cost.moved_squared
    monkeypatch.setattr(privacy_cost, "moved_squared", lambda survey: true(survey) / 12)
    (quote,) = quoted(SOME, {"v": table(unit=wpinq.Unit())}, **BELL).quotes
    assert moved(quote, ROWS, [("dee", "a", 200)]) > allowed(quote)


def test_a_hundred_counts_err_by_43_and_cost_what_was_asked():
    views = table(unit=wpinq.Unit(), budget=1, delta="1e-6")
    before = quoted(MANY, {"v": views}, **BELL)
    assert before.quotes[0].query.stddev() < 43 and len(before.expected) == 100
    assert {each.half_width for each in before.expected} == {83.0}
    answer = wpinq.sql(MANY, {"v": views}, **BELL)
    assert answer.cost == {"epsilon": 1.0, "delta": 1e-6}
    assert sources(views._node)[0].ledger.spent() == (1, Fraction(1, 10**6))
    assert wpinq.sql(MANY, {"v": views}, **BELL).rows == answer.rows, "free, and the same"
    true = np.array([sum(row[2] != each for row in ROWS) for each in range(100)])
    ends = np.array(answer.intervals[0])
    held = int(((ends[:, 0] <= true) & (true <= ends[:, 1])).sum())
    assert binom.cdf(held, 100, 0.95) > 1e-6
    assert 25 < np.std(np.array(answer.rows[0]) - true) < 60


def test_counts_are_those_that_are_asked_one_by_one():
    """Discrete Gaussian noise is never less than some steps, so each record is there a thousand times."""
    views, asked = table(ROWS * 1000, unit=wpinq.Unit()), {"epsilon": 10**4, "delta": "1e-6"}
    order = GROUPED.replace("COUNT(DISTINCT user)", "COUNT(user)") + " ORDER BY page"
    found = wpinq.sql(order, {"v": views}, keys=["a", "b", "c"], mechanism="gaussian", **asked)
    plain = wpinq.sql(order, {"v": views}, keys=["a", "b", "c"], epsilon=10**5)
    assert plain.rows == (("a", 2000, 2000, 2000), ("b", 1000, 0, 1000), ("c", 0, 0, 0))
    assert all(abs(one - other) < 20 for pair in zip(found.rows, plain.rows, strict=True)
               for one, other in zip(pair[0][1:], pair[1][1:], strict=True))  # fmt: skip
    assert len(found.measurements) == 1 and len(plain.measurements) == 3
    several = "SELECT page, user, COUNT(*) AS n, COUNT(n) AS m FROM v GROUP BY page, user HAVING n > 500 ORDER BY 2"
    keys = [("a", "ann"), ("a", "bob"), ("b", "bob"), ("a", "ann")]
    shown = wpinq.sql(several, {"v": views}, keys=keys, mechanism="gaussian", **asked).frame
    assert shown["user"].to_list() == ["ann", "bob"] and shown["m"].min() > 900


def test_the_best_noise_is_that_of_all_counts_together():
    for accounting, wide in (("pure", 43), ("renyi", 46)):
        views = table(unit=wpinq.Unit(), accounting=accounting)
        (quote,) = quoted(MANY, {"v": views}, **BELL | {"mechanism": "best"}).quotes
        assert quote.gaussian and quote.query.stddev() < wide
        both = "SELECT COUNT(*), COUNT(n) FROM v"
        assert not quoted(both, {"v": views}, **BELL | {"mechanism": "best"}).quotes[0].gaussian
    assert len(quoted(MANY, {"v": views}, **BELL).quotes) == 100, "each at a part of rho, which is the same"


def test_sets_that_add_up_are_asked_one_by_one():
    query = "SELECT page, COUNT(*) AS n, COUNT(n) AS m FROM v GROUP BY ROLLUP (page)"
    assert prepare(query, {"v": table()}, mechanism="gaussian").joined is None
    assert prepare(GROUPED, {"v": table()}, mechanism="gaussian").joined is not None
    assert prepare(GROUPED, {"v": table()}).joined is None
    assert "data set" in prepare(GROUPED, {"v": table()}, mechanism="gaussian").explain(1, listed=True)
