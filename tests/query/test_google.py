"""Queries in the words of Google's databases are those of PostgreSQL, with arguments in the text."""

import polars as pl
import pytest

import wpinq
from wpinq.errors import PlanError
from wpinq.query import quoted
from wpinq.query.select.google import google

FRAME = pl.DataFrame({"id": [1, 2, 3, 4] * 10, "item": ["pen", "cup"] * 20, "n": range(40), "the x": range(40)})
BIG = 10**9


def visits(**unit):
    unit = unit or {"unit": wpinq.users("id", at_most=10)}
    return wpinq.protect(FRAME, budget=BIG, delta="0.5", name="visits", **unit)


@pytest.mark.parametrize(("theirs", "ours"), [
    ("SUM(n, contribution_bounds_per_row => (0, 5))", "SUM(n)"),
    ("SUM(n CLAMPED BETWEEN 0 AND 5)", "SUM(n)"),
    ("ANON_SUM(n CLAMPED BETWEEN 0 AND 5)", "SUM(n)"),
    ("ANON_SUM_WITH_BOUNDS(n, 0, 5)", "SUM(n)"),
    ("ANON_AVG(CAST(n AS FLOAT64) CLAMPED BETWEEN 0 AND 5)", "AVG(CAST(n AS DOUBLE PRECISION))"),
    ("SUM(n, contribution_bounds_per_group => (0, 5), report_format => `PROTO`)".replace("`", '"'), "SUM(n)"),
    ("ANON_NTILE(n, 0.5, 0, 5)", "MEDIAN(n)"),
    ("APPROX_QUANTILES(n, 4, contribution_bounds_per_row => (0, 5))[OFFSET(2)]", "MEDIAN(n)"),
    ("COUNT(`the x`, contribution_bounds_per_group => (0, 9))", 'COUNT("the x")'),
    ("SUM(SAFE_DIVIDE(SAFE_ADD(n, 1), 2) CLAMPED BETWEEN 0 AND 5)", "SUM((n + 1) / 2.0)"),
])  # fmt: skip
def test_an_aggregate_is_that_of_postgresql(theirs, ours):
    bounds = dict.fromkeys(("n", "CAST(n AS DOUBLE PRECISION)", "(n + 1) / 2.0"), (0, 5))
    bounds = {key: pair for key, pair in bounds.items() if f"({key})" in ours}
    one, two = (
        wpinq.sql(f"SELECT {what} AS r FROM visits", {"visits": visits()}, epsilon=BIG, bounds=ends).rows[0][0]
        for what, ends in ((theirs, None), (ours, bounds))
    )
    assert one == pytest.approx(two, abs=0.01)


def test_the_clause_says_epsilon_and_delta_and_they_are_charged():
    table = visits()
    answer = wpinq.sql(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e3, delta=1e-4, max_groups_contributed=2, "
        "privacy_unit_column=visits.id) item, COUNT(*) AS `how often` FROM visits GROUP BY item ORDER BY item",
        {"visits": table},
    )
    assert answer.columns == ("item", "how often")
    assert [row[0] for row in answer.rows] == ["cup", "pen"]
    assert wpinq.sql("SELECT COUNT(*) FROM visits", {"visits": table}, epsilon=1).rows
    assert "max_groups_contributed=2 is not applied" in str(answer.bias)
    spent = table._node.data.ledger.spent()
    assert spent[0] == 1001
    assert float(spent[1]) == pytest.approx(1e-4)


@pytest.mark.parametrize(("query", "reason"), [
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) FROM visits", "the call epsilon=2; say it once"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column=item) COUNT(*) FROM visits", "its column id"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(noise=none) COUNT(*) FROM visits", "there are epsilon, delta"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2, epsilon=2) COUNT(*) FROM visits", "is not read"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2 COUNT(*) FROM visits", "a parenthesis is open"),
    ("SELECT SUM(n CLAMPED BETWEEN 0 AND 5), AVG(n CLAMPED BETWEEN 0 AND 6) FROM visits", "clamped in two ways"),
    ("SELECT SUM(n CLAMPED BETWEEN 5 AND 0) FROM visits", "below"),
])  # fmt: skip
def test_what_it_cannot_do_is_refused_for_nothing(query, reason):
    table = visits()
    with pytest.raises(PlanError, match=reason):
        wpinq.sql(query, {"visits": table}, epsilon=2)
    assert table._node.data.ledger.spent() == (0, 0)


def test_a_table_of_records_protects_no_column():
    query = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, privacy_unit_column=id) COUNT(*) FROM visits"
    with pytest.raises(PlanError, match="protects each record"):
        quoted(query, {"visits": wpinq.protect(FRAME, budget=1, name="visits")})


@pytest.mark.parametrize("query", [
    "SELECT COUNT(*) FROM t WHERE x = 'a `b` CLAMPED BETWEEN 0 AND 1'",
    "SELECT COUNT(*) FROM t WHERE x LIKE '%`%' AND \"y z\" = 'contribution_bounds_per_row => (0, 1)'",
    "SELECT SUM(n) FROM t",
    "SELECT SUM(x CLAMPED BETWEEN 0 AND 1" + ")" * 30_000,
])  # fmt: skip
def test_a_text_in_quotes_and_one_that_is_too_long_are_left_alone(query):
    assert google(query).text == query
    assert not google(query).bounds
