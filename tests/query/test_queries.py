"""SELECT over protected tables: against DuckDB where the noise is as good as none, and what must be refused."""

import datetime as dt
from collections import Counter
from fractions import Fraction

import duck
import polars as pl
import pytest
from depth import DEEP, deep, deeper, often, thin
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import distance, evaluate, leaves

import wpinq
from wpinq.core.plan.node import sources
from wpinq.core.plan.stability import sensitivities
from wpinq.errors import BinError, BudgetError, ExactnessError, PlanError, SourceError, WpinqError
from wpinq.query import prepare

SECRET = "marker-of-a-record"
ASK = {"epsilon": 1, "bounds": {"age": (0, 90)}}
LOUD = 900  # noise of scale 1/300 or less: zero but for a chance below exp(-300)
VIEWS = pl.DataFrame(
    {
        "user": [f"u{i % 200}" if i % 17 else None for i in range(6000)],
        "page": [["Home", "News", "Faq", None][i % 4 if i % 5 else 0] for i in range(6000)],
        "age": [i % 90 for i in range(6000)],
    }
)
PAGES = pl.DataFrame({"page": ["Home", "News", "About"], "topic": ["front", "press", None], "weight": [1, 2, 3]})
TOPICS = pl.DataFrame({"topic": ["front", "press"], "owner": ["ann", "bob"]})
TWICE = pl.DataFrame({"page": ["Home", "Home"], "x": [1, 2]})


@pytest.fixture(scope="module", name="duck")
def over_frames():
    return duck.over(views=VIEWS, pages=PAGES, topics=TOPICS)


@pytest.fixture
def tables():
    views = wpinq.protect(VIEWS, budget=10**9, delta=Fraction(1, 2))
    return {"views": views, "pages": PAGES, "topics": TOPICS, "twice": TWICE}


QUERIES = [
    "SELECT page, COUNT(*) AS c FROM views GROUP BY page ORDER BY c DESC, page",
    "SELECT page, COUNT(*) AS c FROM views GROUP BY page HAVING c >= 1500 ORDER BY page",
    "SELECT page, COUNT(DISTINCT user) AS c FROM views WHERE age > 30 GROUP BY page ORDER BY page NULLS FIRST",
    "SELECT COUNT(*), COUNT(user), COUNT(DISTINCT user) FROM views WHERE page <> 'Home'",
    "SELECT COUNT(*) FROM views v WHERE v.page IS NULL OR NOT (v.age < 45)",
    "SELECT lower(page) AS p, COUNT(*) FROM views GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 2",
    "SELECT age % 3 AS third, page, COUNT(*) c FROM views GROUP BY third, page "
    "ORDER BY c, third, page LIMIT 7 OFFSET 2",
    "SELECT COUNT(*) * 2 + 1 AS z, COUNT(*) - COUNT(user) AS nobody FROM views",
    "SELECT topic, COUNT(*) AS c FROM views JOIN pages ON views.page = pages.page GROUP BY topic ORDER BY c, topic",
    "SELECT topic, COUNT(*) AS c FROM views LEFT JOIN pages USING (page) GROUP BY topic ORDER BY c, topic",
    "SELECT p.topic, COUNT(*) AS c FROM views AS v JOIN pages AS p ON p.page = v.page WHERE p.weight > 1 "
    "GROUP BY p.topic",
    "SELECT owner, COUNT(*) AS c FROM views JOIN pages USING (page) JOIN topics ON topics.topic = pages.topic "
    "GROUP BY owner ORDER BY owner",
    "SELECT COALESCE(owner, 'nobody') AS o, COUNT(*) AS c FROM views LEFT JOIN pages USING (page) "
    "LEFT JOIN topics ON pages.topic = topics.topic GROUP BY o ORDER BY o",
    "SELECT weight, upper(topic) AS t, COUNT(DISTINCT user) AS c FROM views JOIN pages USING (page) "
    "GROUP BY weight, topic ORDER BY weight",
    "SELECT CASE WHEN age < 30 THEN 'young' ELSE 'old' END AS g, COUNT(*) FROM views GROUP BY g ORDER BY g",
    "SELECT page, COUNT(*) FROM views WHERE page LIKE '%o%' GROUP BY page "
    "HAVING COUNT(*) BETWEEN 1 AND 5000 ORDER BY page",
    "SELECT COUNT(*) AS c FROM views HAVING COUNT(*) > 10000",
    "SELECT DISTINCT page FROM views ORDER BY page",
    "SELECT page, user IS NULL AS u FROM views GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT DISTINCT CASE WHEN COUNT(*) > 1500 THEN 'big' ELSE 'small' END AS x FROM views GROUP BY page ORDER BY x",
    "SELECT topic, COUNT(*) AS c FROM views, pages WHERE views.page = pages.page AND age > 3 GROUP BY topic ORDER BY c",
    "SELECT COUNT(*) FROM pages, views WHERE pages.page = views.page AND weight = 2",
    "SELECT COUNT_IF(age > 3) FROM views",
    "SELECT COUNT(*) FROM views JOIN pages ON views.page = pages.page AND TRUE",
    "SELECT page, COUNT(*), GROUPING(page) AS g FROM views GROUP BY ROLLUP (page) ORDER BY g, page",
    "SELECT page, age % 2 AS a, COUNT(*) FROM views GROUP BY GROUPING SETS ((page, age % 2), (), page) "
    "ORDER BY 1, 2, 3",
    "SELECT page, age % 2 AS a, COUNT(DISTINCT user), GROUPING(page), GROUPING(age % 2) FROM views "
    "GROUP BY CUBE (page, age % 2) HAVING COUNT(*) > 10 ORDER BY 1, 2, 4, 5",
    "SELECT page, age % 2 AS a, COUNT(*) FROM views GROUP BY page, ROLLUP (a) ORDER BY 1, 2, 3",
]  # fmt: skip


@thin(2)
@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_duckdb(query, duck, tables):
    answer = wpinq.sql(query, tables, epsilon=LOUD, delta=Fraction(1, 10**6))
    relation = duck.sql(query)
    assert list(answer.rows) == relation.fetchall()
    assert answer.cost["epsilon"] == LOUD
    assert answer.cost["delta"] == (1e-6 if "GROUP BY" in query or "SELECT DISTINCT" in query else 0.0)


def test_given_keys_are_answered_in_their_order_present_or_not(tables):
    query = "SELECT page, COUNT(*) AS c FROM views GROUP BY page"
    answer = wpinq.sql(query, tables, epsilon=LOUD, keys=["News", "nowhere", None, "Home", "News"])
    counts = Counter(VIEWS["page"])
    assert answer.rows == (("News", counts["News"]), ("nowhere", 0), (None, counts[None]), ("Home", counts["Home"]))
    assert answer.cost == {"epsilon": LOUD, "delta": 0.0}
    assert len(answer) == len(list(answer)) == 4
    pairs = wpinq.sql(
        "SELECT page, age, COUNT(*) FROM views GROUP BY page, age", tables, epsilon=LOUD, keys=[("Faq", 2)]
    )
    assert pairs.rows == (("Faq", 2, VIEWS.filter(page="Faq", age=2).height),)
    with pytest.raises(BinError, match="of the type text"):
        wpinq.sql(query, tables, epsilon=1, keys=[7])


@pytest.mark.parametrize(
    ("budget", "delta", "left"), [(1, 1e-3, "costs epsilon"), (10, 1e-3, "costs delta"), (10, 1e-6, None)]
)
def test_all_that_a_query_asks_is_charged_or_nothing(budget, delta, left):
    """Three parts of 1/2 each: the third does not fit into 1; or the delta was spent before."""
    views = wpinq.protect(VIEWS, budget=budget, delta=1e-3)
    ledger = views._node.data.ledger
    if left == "costs delta":
        views.map("page").measure(2).release(delta=1e-3)
    before = ledger.spent()
    query = "SELECT page, COUNT(*), SUM(age), STDDEV(age), VARIANCE(age) FROM views GROUP BY page"
    ask = {"epsilon": Fraction(3, 2), "delta": delta, "bounds": {"age": (0, 90)}}
    if left is None:
        answer = wpinq.sql(query, {"views": views}, **ask)
        assert ledger.spent() == (Fraction(3, 2), Fraction(1, 10**6))
        assert wpinq.sql(query, {"views": views}, **ask).rows == answer.rows
        assert ledger.spent() == (Fraction(3, 2), Fraction(1, 10**6))
        return
    with pytest.raises(BudgetError, match=f"{left}.*nothing was charged"):
        wpinq.sql(query, {"views": views}, **ask)
    assert ledger.spent() == before


def test_what_cannot_be_fingerprinted_is_charged_once():
    views = wpinq.protect(VIEWS, budget=10).filter(lambda page: page in {"Home", SECRET, object()})
    wpinq.sql("SELECT COUNT(*), COUNT(user) FROM views", {"views": views}, epsilon=2)
    assert sources(views._node)[0].ledger.spent() == (2, 0)


def test_rare_groups_are_not_published():
    rows = [("ann", "secret page")] + [(f"u{i}", "home") for i in range(500)]
    views = wpinq.protect(rows, budget=1, delta=1e-6, columns={"user": str, "page": str})
    query = "SELECT page, COUNT(*) AS c FROM views GROUP BY page HAVING c >= 1"
    answer = wpinq.sql(query, {"views": views}, epsilon=1, delta=1e-6)
    assert [row[0] for row in answer] == ["home"]
    again = wpinq.sql(query, {"views": views}, epsilon=1, delta=1e-6)  # the same question is free, delta too
    assert again.rows == answer.rows
    with pytest.raises(BudgetError):
        wpinq.sql(query, {"views": views}, epsilon=1, delta=1e-6, name="again")


def test_people_are_counted_under_their_unit():
    rows = [(f"u{i % 40}", f"p{i % 3}") for i in range(2400)]
    views = wpinq.protect(rows, budget=400, unit=wpinq.users("user", at_most=20), columns={"user": str, "page": str})
    answer = wpinq.sql("SELECT COUNT(DISTINCT user) AS people FROM views", {"views": views}, epsilon=400)
    assert answer.rows == ((40,),)  # each of the sample's 20 records is one of three pages
    assert answer.measurements[0].scale == Fraction(1, 400), "a person is there once or not"


def test_weights_that_people_share_are_numbers():
    rows = [(f"u{i % 40}", f"p{i % 4}") for i in range(160)] + [("ann", "p0"), ("ann", "p1"), ("ann", "p2")]
    views = wpinq.protect(rows, budget=900, unit=wpinq.users("user", shared=True), columns={"user": str, "page": str})
    query = "SELECT page, COUNT(*) * 2 AS twice FROM views GROUP BY page HAVING COUNT(*) > 10.2"
    answer = wpinq.sql(query, {"views": views}, epsilon=900, keys=["p0", "p3"])
    assert [page for page, _ in answer.rows] == ["p0"]
    assert answer.rows[0][1] == pytest.approx(2 * (10 + 1 / 3), abs=0.1)


def test_intervals_and_shares_of_epsilon(tables):
    query = "SELECT page, COUNT(*) AS c, COUNT(user) AS u, COUNT(*) + 1 AS d FROM views GROUP BY page"
    answer = wpinq.sql(query, tables, epsilon=1, keys=["Home"])
    assert [one.epsilon for one in answer.measurements] == [Fraction(1, 2)] * 2
    ((page, count, users, _),), ((none, c, u, d),) = answer.rows, answer.intervals
    half = answer.measurements[0].interval()
    assert (page, none, d) == ("Home", None, None)
    assert (c, u) == ((count - half, count + half), (users - half, users + half))
    assert sum(tables["views"]._node.data.ledger.spent()[:1]) == 1


SUMS = [
    "SELECT SUM(age), AVG(age), COUNT(*) FROM views",
    "SELECT SUM(views.age) / COUNT(*) AS each FROM views WHERE user IS NOT NULL",
    "SELECT SUM(v.age) AS s FROM views v WHERE age >= 80 HAVING SUM(age) > 10",
    "SELECT SUM(weight), AVG(weight) FROM views LEFT JOIN pages USING (page)",
    "SELECT page, SUM(age) AS s, AVG(age) AS a, COUNT(*) AS c FROM views GROUP BY page ORDER BY c, page",
    "SELECT lower(page) AS p, AVG(age) FROM views GROUP BY 1 HAVING AVG(age) < 44.6 ORDER BY SUM(age)",
    "SELECT age, SUM(age) AS s, COUNT(*) FROM views WHERE age >= 80 GROUP BY age ORDER BY s DESC",
    "SELECT topic, SUM(weight) AS w FROM views JOIN pages USING (page) GROUP BY topic ORDER BY w",
]


@pytest.mark.parametrize("query", SUMS)
def test_sums_and_means_are_those_of_duckdb(query, duck, tables):
    """The noise of a sum has a scale of 90 * 3 / 900 or less: an error of 9 has a chance below exp(-29)."""
    truth = duck.sql(query).fetchall()
    keys = [row[0] for row in duck.sql(query.split(" HAVING")[0].split(" ORDER")[0]).fetchall()]
    name, top = ("weight", 3) if "weight" in query else ("age", 90)
    keys = keys if "GROUP BY" in query else None
    answer = wpinq.sql(query, tables, epsilon=LOUD, keys=keys, bounds={name: (0, top)})
    assert [len(row) for row in answer.rows] == [len(row) for row in truth]
    for found, row in zip(answer.rows, truth, strict=True):
        for one, other in zip(found, row, strict=True):
            exact = other is None or isinstance(other, str)
            near = top / 1000 if not exact and other <= top else top / 10  # means, and sums of thousands
            assert one == other if exact else one == pytest.approx(other, abs=near)
    assert answer.cost == {"epsilon": LOUD, "delta": 0.0}
    assert tables["views"]._node.data.ledger.spent() == (LOUD, 0)


NUMBERS = [
    ("SELECT SUM(age * 2 - weight), AVG((age + 1) / 7.0) FROM views LEFT JOIN pages USING (page)", (10, 0.1)),
    ("SELECT SUM(CASE WHEN age < 30 THEN 1 ELSE 0 END), AVG(ABS(age - 40)), SUM(1) FROM views", (0.1, 0.1, 0.1)),
    ("SELECT SUM(COALESCE(weight, -1)), AVG(-age), SUM(age * age) FROM views LEFT JOIN pages USING (page)",
     (1, 1, 800)),
    ("SELECT MIN(age), MAX(age), MEDIAN(age), MAX(DISTINCT age) FROM views WHERE user IS NOT NULL", (0, 0, 1, 0)),
    ("SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age), PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age DESC), "
     "MAX(age % 7) FROM views", (1, 1, 0)),
    ("SELECT VAR_POP(age), VARIANCE(age), STDDEV(age), STDDEV_POP(age), STDDEV_SAMP(age), VAR_SAMP(age) FROM views",
     (1, 1, 0.1, 0.1, 0.1, 1)),
    ("SELECT LN(COUNT(*)), LOG(COUNT(*)), SQRT(COUNT(*)), COUNT(*) ^ 2, COUNT(*) ^ (1.0 / COUNT(*)), PI(), ATANH(0.5), "
     "COS(COUNT(*)), DEGREES(PI() / 4), CBRT(COUNT(*)), EXP(1.0 / COUNT(*)) FROM views", (1e-9,) * 11),
    ("SELECT SUM(DISTINCT age), AVG(DISTINCT age), STDDEV(DISTINCT age), MEDIAN(DISTINCT age) FROM views",
     (10, 0.1, 0.1, 1)),
    ("SELECT page, SUM(DISTINCT age) AS s, SUM(age) AS t FROM views GROUP BY page ORDER BY page", (0, 10, 10)),
    ("SELECT VARIANCE(age), STDDEV(age), VAR_POP(age) FROM views WHERE age = 30 OR age = 33", (0.6, 0.2, 0.6)),
    ("SELECT COUNT(*) FILTER (WHERE age > 80), SUM(age) FILTER (WHERE page = 'Home'), "
     "COUNT(DISTINCT user) FILTER (WHERE age < 3), MAX(age) FILTER (WHERE age < 50) FROM views", (0, 10, 0, 0)),
    ("SELECT page, SUM(age) AS s, MAX(age) AS m FROM views GROUP BY page ORDER BY page", (0, 10, 0)),
    ("SELECT page, COUNT(*) FILTER (WHERE age > 80) AS c, MEDIAN(age) FROM views GROUP BY page ORDER BY page",
     (0, 0, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("query", "near"), NUMBERS)
def test_expressions_spreads_and_ranks_are_those_of_duckdb(query, near, duck, tables):
    """Bounds of expressions follow from those of columns; groups are published by a count where none are given."""
    bounds = {name: top for name, top in (("age", (0, 90)), ("weight", (0, 3))) if name in query.split(" FROM")[0]}
    answer = wpinq.sql(query, tables, epsilon=LOUD, delta=1e-6, bounds=bounds)
    truth = duck.sql(query).fetchall()
    assert len(answer.rows) == len(truth)
    for found, row, ends in zip(answer.rows, truth, answer.intervals, strict=True):
        for one, other, slack, interval in zip(found, row, near, ends, strict=True):
            text = other is None or isinstance(other, str)
            assert one == other if text else one == pytest.approx(other, abs=slack + 1e-9)
            assert interval is None or interval[0] <= one <= interval[1]
    assert tables["views"]._node.data.ledger.spent()[0] <= LOUD


def test_what_is_measured_alike_is_measured_once_and_all_share_epsilon(tables):
    query = "SELECT VARIANCE(age), STDDEV(age), STDDEV_POP(age), MEDIAN(age), QUANTILE(age, 0.5), SUM(age) FROM views"
    answer = wpinq.sql(query, tables, epsilon=3, bounds={"age": (0, 90)})
    assert {one.epsilon for one in answer.measurements} == {1}
    assert len({one.question for one in answer.measurements}) == 3
    assert tables["views"]._node.data.ledger.spent() == (3, 0)


def test_bounds_are_declared_for_expressions_as_the_query_or_a_person_writes_them(tables):
    query = "SELECT SUM(age * 2), AVG(v.age*2) FROM views AS v"
    for key in ("age * 2", "AGE*2", "(v.age * 2)"):
        answer = wpinq.sql(query, tables, epsilon=LOUD, bounds={key: (0, 100)}, name=key)
        ages = [min(2 * age, 100) for age in VIEWS["age"]]
        assert answer.rows[0] == (pytest.approx(sum(ages), abs=10), pytest.approx(sum(ages) / len(ages), abs=0.01))
    assert "SUM(age * 2), clamped to 0..100, epsilon 0.5" in prepare(query, tables, {"age * 2": (0, 100)}).explain(1)


def expressions():
    """Arithmetic over two columns, as text: whole numbers and others, divisions that are cut off, signs, branches."""
    leaf = st.sampled_from(["a", "x", "3", "-2", "0.5", "7"])
    pair = (
        "({} + {})",
        "({} - {})",
        "({} * {})",
        "({} / {})",
        "(a % {1})",
        "COALESCE({}, {})",
        "ABS({} - {})",
        ("CASE WHEN {0} > 0 THEN {0} ELSE {1} END"),
    )
    return st.recursive(leaf, lambda inner: st.builds(str.format, st.sampled_from(pair), inner, inner), max_leaves=6)


@example("(a + 7) / 3")
@example("(a - 7) / 3")
@example("a % 3")
@example("ABS(a - 1)")
@given(expressions())
@settings(max_examples=often(60))
def test_no_number_is_beyond_the_bounds_that_follow(text):
    frame = pl.DataFrame(
        [(a, x) for a in range(-3, 6) for x in (-1.25, 0.0, 0.4, 2.0)], schema=["a", "x"], orient="row"
    )
    rows = wpinq.protect(frame, budget=1)
    bounds = {name: ends for name, ends in {"a": (-3, 5), "x": (-1.25, 2)}.items() if name in text}
    try:
        number = prepare(f"SELECT SUM({text}) FROM t", {"t": rows}, bounds).numbers[0]
    except PlanError as refused:
        assert "declared bounds" in str(refused) or "% takes integers" in str(refused)
        return
    low, high = map(float, number.bounds)
    values = [value for (value,) in evaluate(number.collection, frame.rows()) if value is not None]
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in values)


@pytest.mark.parametrize("number", ["SUM(age)", "AVG(age)", "MIN(age)", "MAX(age)", "MEDIAN(age)", "VARIANCE(age)"])
def test_of_no_records_there_is_a_noisy_answer_and_never_null(number, tables):
    query = f"SELECT {number} AS x FROM views WHERE age > 1000"
    answer = wpinq.sql(query, tables, epsilon=1, bounds={"age": (0, 90)})
    assert isinstance(answer.rows[0][0], float)
    low, high = answer.intervals[0][0]
    assert low <= answer.rows[0][0] <= high


def test_groups_are_published_from_a_count_of_their_own_where_none_is_asked_for(tables):
    query = "SELECT page, SUM(age) AS s FROM views GROUP BY page"
    answer = wpinq.sql(query, tables, epsilon=2, delta=1e-6, bounds={"age": (0, 90)})
    assert {row[0] for row in answer.rows} == {"Home", "News", "Faq", None}
    assert [one.epsilon for one in answer.measurements] == [1, 1]
    assert answer.cost == {"epsilon": 2.0, "delta": 1e-6}
    assert tables["views"]._node.data.ledger.spent() == (2, Fraction(1, 10**6))


def test_numbers_are_clamped_to_their_bounds_and_absent_groups_are_answered(tables):
    query = "SELECT page, SUM(age), AVG(age) FROM views GROUP BY page"
    answer = wpinq.sql(query, tables, epsilon=LOUD, keys=["Faq", "nowhere"], bounds={"views.age": (10, 20)})
    ages = [min(max(age, 10), 20) for age in VIEWS.filter(page="Faq")["age"]]
    (_, total, mean), (_, none, middle) = answer.rows
    assert (total, mean) == (pytest.approx(sum(ages), abs=1.5), pytest.approx(sum(ages) / len(ages), abs=0.01))
    assert none == pytest.approx(0, abs=1.5)
    assert 10 <= middle <= 20


@deep
def test_intervals_of_sums_hold_and_noise_follows_bounds_and_unit():
    """Of 300 intervals of 95% fewer than 265 hold in fewer than 1 of 100,000 runs (binomial tail)."""
    rows = [(f"u{i % 40}", i % 7) for i in range(2400)]
    people = wpinq.protect(rows, budget=10**6, columns={"user": str, "age": int})
    query, held = "SELECT SUM(age) FROM people", 0
    for run in range(300):
        answer = wpinq.sql(query, {"people": people}, epsilon="0.1", bounds={"age": (0, 50)}, name=f"run {run}")
        ((low, high),) = answer.intervals[0]
        held += low <= sum(age for _, age in rows) <= high
    assert held >= 265
    assert 1200 < high - low < 3600  # a scale of 50 / 0.1 = 500, and twice its logarithm of 20
    unit = wpinq.users("user", at_most=20)
    users = wpinq.protect(rows, budget=1, unit=unit, columns={"user": str, "age": int})
    assert wpinq.sql(query, {"people": users}, epsilon=1, bounds={"age": (0, 50)}).measurements[0].scale == 20


DAYS = pl.DataFrame(
    {
        "day": [dt.date(1995, 1, 1) + dt.timedelta(i % 800) for i in range(4000)],
        "time": [dt.datetime(1995, 1, 31) + dt.timedelta(hours=i % 5000) for i in range(4000)],
        "name": [["Ann Lee", "Bob", "", None][i % 4] for i in range(4000)],
        "x": [i % 97 / 8 - 3 for i in range(4000)],
        "n": [i % 7 if i % 5 else None for i in range(4000)],
    }
)  # fmt: skip
WRITTEN = [
    "SELECT COUNT(*) FROM days WHERE day <= date '1996-12-01' - interval '90' day",
    "SELECT COUNT(*) FROM days WHERE day >= '1995-01-31'::date + INTERVAL '1 month' AND time < date '1995-03-31'",
    "SELECT COUNT(*) FROM days WHERE day - INTERVAL '3' MONTH > time + INTERVAL '36 hours'",
    "SELECT COUNT(*) FROM days WHERE time + INTERVAL '1 year' <= TIMESTAMP '1996-02-29 12:00:00'",
    "SELECT ROUND(x, 1) AS r, COUNT(*) AS c FROM days GROUP BY r ORDER BY r",
    "SELECT left(name, 2) AS l, right(name, 1) AS r, right(name, -2) AS m, COUNT(*) FROM days GROUP BY 1, 2, 3 "
    "ORDER BY l, r, m",
    "SELECT GREATEST(n, 3) AS g, LEAST(n, 5, 2 * n) AS l, COUNT(*) FROM days GROUP BY g, l ORDER BY g, l",
    "SELECT ROUND(100.0 * COUNT(*) FILTER (WHERE n > 3) / COUNT(*), 2) FROM days",
]


@pytest.mark.parametrize("query", WRITTEN)
def test_what_analysts_write_is_answered_as_by_duckdb(query, duck):
    duck.register("days", DAYS.to_arrow())
    days = wpinq.protect(DAYS, budget=LOUD, delta=Fraction(1, 2))
    answer = wpinq.sql(query, {"days": days}, epsilon=LOUD, delta=Fraction(1, 10**6))
    assert list(answer.rows) == duck.sql(query).fetchall()


def test_columns_are_named_as_postgresql_names_them(tables):
    query = "SELECT COUNT(*), SUM(age), PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age), STDDEV_POP(age) FROM views"
    answer = wpinq.sql(query, tables, epsilon=1, bounds={"age": (0, 90)})
    assert answer.columns == ("count", "sum", "percentile_cont", "stddev_pop")


@pytest.mark.parametrize(
    ("query", "more", "reason"),
    [
        ("SELECT page, SUM(age) FROM views GROUP BY page", {}, "which groups there are is private too"),
        ("SELECT SUM(age + weight) FROM views JOIN pages USING (page)", {}, "or those of its columns"),
        ("SELECT SUM(age / (age - 3)) FROM views", {}, r"'age / \(age - 3\)': \(low, high\)"),
        ("SELECT MEDIAN(user) FROM views", {"bounds": {"user": (0, 1)}}, "'user' is of the type text"),
        ("SELECT SUM(age) FROM views", {"bounds": {"age": (0, 10**299)}}, "beyond 10.100"),
        ("SELECT SUM(1e300) FROM views", {"bounds": None}, "beyond 10.100"),
        ("SELECT SUM(age) FROM views", {"bounds": [("age", (0, 90))]}, "maps columns or expressions to pairs"),
        ("SELECT SUM(age) FROM views", {"bounds": {1: (0, 90)}}, "need declared bounds"),
        (
            "SELECT MIN(age + 1) FROM views",
            {"bounds": {"age": (0, 1), "age + 2": (0, 1)}},
            "'age . 2', which is no column",
        ),
        ("SELECT SUM(user) FROM views", {"bounds": {"user": (0, 1)}}, "of the type text"),
        ("SELECT COUNT(*), SUM(age) FROM views", {"bounds": {"age": (5, 5)}}, "not below the upper one"),
        ("SELECT COUNT(*), SUM(age) FROM views", {"bounds": {"age": 5}}, "bounds= are two numbers"),
        ("SELECT AVG(age) FROM views", {"bounds": {"age": (0, 90), "wage": (0, 1)}}, "'wage', which is no column"),
        ("SELECT COUNT(*) FROM views", {"bounds": {"age + 2": (0, 1)}}, "'age . 2', which is no column"),
    ],
)
def test_sums_are_refused_before_anything_is_charged(query, more, reason, tables):
    with pytest.raises(PlanError, match=reason):
        wpinq.sql(query, tables, **{"epsilon": 1, "bounds": {"age": (0, 90)}, **more})
    assert tables["views"]._node.data.ledger.spent() == (0, 0)


def test_one_set_of_bounds_serves_all_queries(tables):
    bounds = {"age": (0, 90), "views.age": (0, 90)}
    assert wpinq.sql("SELECT COUNT(*) FROM views", tables, epsilon=LOUD, bounds=bounds).rows == ((6000,),)


def test_a_public_csv_file_is_joined_by_declared_or_cast_types(duck, tables, tmp_path):
    path = tmp_path / "ages.csv"
    path.write_text("age,label\n" + "".join(f"{age},{'young' if age < 30 else 'old'}\n" for age in range(90)))
    expected = [("old", 3990), ("young", 2010)]
    query = "SELECT label, COUNT(*) AS c FROM views JOIN ages ON {} GROUP BY label ORDER BY label"
    typed = {**tables, "ages": (path, {"age": int})}
    assert list(wpinq.sql(query.format("views.age = ages.age"), typed, epsilon=LOUD, delta=1e-6)) == expected
    as_text = {**tables, "ages": path}
    for on in (
        "views.age = CAST(ages.age AS INTEGER)",
        "CAST(views.age AS TEXT) = ages.age",
        "0 + views.age = ages.age::int",
    ):
        assert list(wpinq.sql(query.format(on), as_text, epsilon=LOUD, delta=1e-6)) == expected
    with pytest.raises(PlanError, match="is not unique in ages"):
        wpinq.sql(query.format("views.page = upper(ages.label)"), as_text, epsilon=1, delta=1e-6)


def test_limit_without_an_order_takes_rows_as_they_are_published(tables):
    query = "SELECT page, COUNT(*) FROM views GROUP BY page LIMIT 2"
    assert wpinq.sql(query, tables, epsilon=LOUD, delta=1e-6).rows == (("Home", 2400), (None, 1200))


def test_explain_prices_each_measurement_and_charges_nothing(tables):
    query = "SELECT page, COUNT(*), MAX(age) FROM (SELECT page, MAX(age) AS age FROM views GROUP BY page) GROUP BY page"
    ask = {"epsilon": 1, "delta": 1e-6, "bounds": {"age": (0, 90)}}
    ledger = tables["views"]._node.data.ledger
    told = wpinq.sql(f"explain {query}", tables, **ask)
    assert ledger.spent() == (0, 0)
    assert told.cost == {"epsilon": 0.0, "delta": 0.0}
    assert told.columns[:4] == ("measurement", "one unit moves", "in one bin", "bins")
    assert told.columns[4:6] == ("scale of noise", "95% of noise within")
    assert [row[:5] for row in told.rows] == [
        ("COUNT(*)", 2.0, 2.0, 2.0, 4.0), ("MAX(age), clamped to 0..90", 2.0, 2.0, 2.0, 4.0),
    ]  # fmt: skip
    answer = wpinq.sql(query, tables, **ask)
    assert ledger.spent() == (sum(Fraction(row[6]) for row in told.rows), Fraction(1, 10**6))
    assert [float(one.scale) for one in answer.measurements] == [row[4] for row in told.rows]
    for odd in ("EXPLAIN ANALYZE SELECT COUNT(*) FROM views", "EXPLAIN (COSTS) SELECT COUNT(*) FROM views"):
        with pytest.raises(PlanError, match="EXPLAIN has no options"):
            wpinq.sql(odd, tables, epsilon=1)


def test_keys_of_several_sets_are_given_with_the_number_of_their_set(tables):
    query = "SELECT page, COUNT(*) FROM views GROUP BY ROLLUP (page)"
    given = [("Home", 0), (None, 0), (None, 1), ("nowhere", 0)]
    assert [count for _, count in wpinq.sql(query, tables, epsilon=LOUD, keys=given)] == [2400, 1200, 6000, 0]
    assert prepare(query, tables).schema.names == ("page", "grouping")


@pytest.mark.parametrize("key", [("Home", None, 2), (None, 3, 2), ("Home", 3, 1), (None, None, 7), (None, None, None)])
def test_a_key_of_no_set_is_refused(tables, key):
    """It was shown as a group in which nobody is: `,f,2` of a ROLLUP reads as the number of all who are f."""
    query = "SELECT page, age, COUNT(*) FROM views GROUP BY ROLLUP (page, age)"
    with pytest.raises(
        PlanError, match=r"no group of the query: a key ends in GROUPING\(page, age\), here one of 0, 1, 3"
    ):
        wpinq.sql(query, tables, epsilon=1, keys=[("Home", 3, 0), key])
    assert tables["views"]._node.data.ledger.spent() == (0, 0)


CUBED = "SELECT page, age % 2 AS a, COUNT(*) AS n FROM views GROUP BY CUBE (page, age % 2)"


def cubed(tables):
    """All groups of a cube, and their true counts by DuckDB."""
    import duckdb

    views = VIEWS  # noqa: F841  DuckDB reads it by its name
    halves = "(SELECT page, age % 2 AS a FROM views)"
    true = duckdb.sql(
        f"SELECT page, a, GROUPING(page, a) AS g, COUNT(*) AS n FROM {halves} GROUP BY CUBE (page, a)"
    ).pl()
    return true.select("page", "a", "g"), true["n"].to_numpy()


def test_counts_of_a_cube_are_made_to_add_up(tables):
    groups, true = cubed(tables)
    answer = wpinq.sql(CUBED, tables, epsilon="0.1", keys=groups)
    agreed = answer.consistent()
    before, after = (one.frame["n"].to_numpy() for one in (answer, agreed))
    assert ((after - true) ** 2).sum() < ((before - true) ** 2).sum()
    frame = groups.with_columns(n=pl.Series(after))
    (total,) = frame.filter(pl.col("g") == 3)["n"]
    for number in (0, 1, 2):
        assert frame.filter(pl.col("g") == number)["n"].sum() == pytest.approx(total)
    assert agreed.intervals == answer.intervals and agreed.cost == answer.cost  # it is no whole cube
    assert "counts were moved to add up" in " ".join(agreed.bias)
    spent = tables["views"]._node.data.ledger.spent()
    assert agreed.rows == answer.consistent().rows and tables["views"]._node.data.ledger.spent() == spent


@pytest.mark.parametrize("spent", [{"epsilon": "0.1"}, {"rho": "0.01", "mechanism": "gaussian"}])
def test_intervals_of_a_whole_cube_are_narrower_and_hold(tables, spent):
    if "rho" in spent:
        tables = {"views": wpinq.protect(VIEWS, rho=10**6)}
    groups = pl.DataFrame(
        [
            (page, odd, 2 * (page is None) + (odd is None))
            for page in (*map(str, range(40)), None)
            for odd in (0, 1, None)
        ],
        schema=["page", "odd", "grouping"],
        orient="row",
    )  # fmt: skip  nobody is in them, so what is left is noise
    query, held = CUBED.replace("FROM views", "FROM views WHERE age > 1000"), []
    for repeat in range(20):
        answer = wpinq.sql(query, tables, keys=groups, name=str(repeat), **spent)
        before, after = answer.frame, answer.consistent().frame
        assert (after["high"] - after["low"]).max() < (before["high"] - before["low"]).min()
        assert ((after["low"] + after["high"]) / 2 - after["n"]).abs().max() < 1e-6
        held += (after.filter(pl.col("page").is_not_null()).select(pl.col("low") <= 0, pl.col("high") >= 0)
                 .select(pl.all_horizontal(pl.all())).to_series().to_list())  # fmt: skip
    assert sum(held) > 0.9 * len(held)  # 2,400 of probability 0.95 or more each; rows of 40 depend on each other


def test_having_and_order_are_of_counts_that_add_up(tables):
    groups, _ = cubed(tables)
    query = f"{CUBED} HAVING COUNT(*) > 900 ORDER BY n DESC, page LIMIT 5"
    found = wpinq.sql(query, tables, epsilon="0.1", keys=groups).consistent().frame["n"]
    every = wpinq.sql(CUBED, tables, epsilon="0.1", keys=groups).consistent().frame["n"]
    assert found.to_list() == sorted(every.filter(every > 900).to_list(), reverse=True)[:5]


@pytest.mark.parametrize(
    ("query", "more", "match"),
    [
        ("SELECT page, COUNT(*) FROM views GROUP BY page", {"keys": ["Home"]}, "ROLLUP, CUBE or GROUPING SETS"),
        ("SELECT page, COUNT(*) FROM views GROUP BY ROLLUP (page)", {"delta": "0.0001"}, "below the threshold"),
        ("SELECT page, COUNT(*) / 2 AS half FROM views GROUP BY ROLLUP (page)", {"keys": [("Home", 0)]}, "is comp"),
        ("SELECT page, SUM(age) FROM views GROUP BY ROLLUP (page)",
         {"keys": [("Home", 0)], "bounds": {"age": (0, 90)}}, "only counts"),
        ("SELECT page, COUNT(DISTINCT age) FROM views GROUP BY ROLLUP (page)", {"keys": [("Home", 0)]}, "DISTINCT"),
    ],
)  # fmt: skip
def test_what_cannot_add_up_is_not_made_to(tables, query, more, match):
    answer = wpinq.sql(query, tables, epsilon=1, **more)
    with pytest.raises(PlanError, match=match):
        answer.consistent()


def test_extremes_of_times_are_times():
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i % 300) for i in range(1500)]
    frame = pl.DataFrame({"day": days, "at": [dt.datetime.combine(day, dt.time(7)) for day in days]})
    ask = {"epsilon": LOUD, "bounds": {"day": ("2023-06-01", dt.date(2025, 1, 1)), "at": ("2024-01-01", "2024-12-31")}}
    tables = {"t": wpinq.protect(frame, budget=10**9)}
    query = (
        "SELECT MIN(day), MAX(day), MEDIAN(day), MAX(at), EXTRACT(YEAR FROM MAX(day)) FROM t WHERE day > '2020-01-01'"
    )
    ((low, high, middle, last, year),) = wpinq.sql(query, tables, **ask).rows
    assert abs(low - dt.date(2024, 1, 1)).days <= 1
    assert abs(high - dt.date(2024, 10, 26)).days <= 1
    assert abs(middle - dt.date(2024, 5, 29)).days <= 2
    assert abs(last - dt.datetime(2024, 10, 26, 7)) < dt.timedelta(days=1)
    assert year == 2024
    assert "MIN(day), clamped to 2023-06-01..2025-01-01" in prepare(query, tables, ask["bounds"]).explain(1)
    for wrong in ("SELECT SUM(day) FROM t", "SELECT AVG(at) FROM t"):
        with pytest.raises(PlanError, match="compute a number from it first"):
            wpinq.sql(wrong, tables, **ask)
    with pytest.raises(PlanError, match="bounds of a time are times"):
        wpinq.sql("SELECT MAX(day) FROM t", tables, epsilon=1, bounds={"day": (0, 1)})


def test_names_of_other_databases_mean_the_same(tables):
    query = "SELECT {}(age), {}(age), {}(age), {} FROM views"
    other = wpinq.sql(query.format("AVG", "VARIANCE", "STDDEV", "COUNT(*)"), tables, **ASK)
    for names in (("MEAN", "VAR", "STDEV"), ("ANON_AVG", "ANON_VAR", "STD"), ("AVERAGE", "VAR_SAMP", "SD")):
        assert wpinq.sql(query.format(*names, "ANON_COUNT(*)"), tables, **ASK).rows == other.rows
    population = "SELECT {}(age), {}(age), {} FROM views"
    one = population.format("ANON_VAR_POP", "ANON_STDDEV_POP", "ANON_PERCENTILE_CONT(age, 0.9)")
    other = population.format("VAR_POP", "STDDEV_POP", "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age)")
    assert wpinq.sql(one, tables, **ASK).rows == wpinq.sql(other, tables, **ASK).rows


def test_names_inside_of_names_mean_the_same(tables):
    one = ("SELECT ANON_COUNT(IF(age > 3, IF(age < 9, 1, NULL), NULL)), "
           "PERCENTILE_CONT(IF(age > 9, age, 9), 0.5) FROM views")  # fmt: skip
    other = ("SELECT COUNT(CASE WHEN age > 3 THEN CASE WHEN age < 9 THEN 1 END END), "
             "MEDIAN(CASE WHEN age > 9 THEN age ELSE 9 END) FROM views")  # fmt: skip
    ask = {"epsilon": LOUD, "bounds": {"age": (0, 90)}}
    found, wanted = (wpinq.sql(query, tables, **ask).rows[0] for query in (one, other))
    assert found[0] == wanted[0] == VIEWS.filter(pl.col("age").is_between(4, 8)).height
    assert abs(found[1] - wanted[1]) <= 1


def test_top_is_limit(duck, tables):
    query = "SELECT {} page, COUNT(*) AS c FROM views GROUP BY page ORDER BY c DESC, page {}"
    truth = duck.sql(query.format("", "LIMIT 2")).fetchall()
    for top in ("TOP 2", "top (2)", "ALL TOP( 2 )", "DISTINCT TOP 2"):
        answer = wpinq.sql(query.format(top, ""), tables, epsilon=LOUD, delta=Fraction(1, 10**6))
        assert list(answer.rows) == truth
    fetched = wpinq.sql(query.format("", "FETCH FIRST 2 ROWS ONLY"), tables, epsilon=LOUD, delta=Fraction(1, 10**6))
    assert list(fetched.rows) == truth


def test_a_column_may_be_called_top():
    rows = wpinq.protect(pl.DataFrame({"top": [1, 1, 2], "percent": [1, 2, 2]}), budget=10**4)
    answer = wpinq.sql("SELECT top, COUNT(*) FROM t GROUP BY top", {"t": rows}, epsilon=LOUD, keys=[1, 2])
    assert answer.rows == ((1, 2), (2, 1))


def test_explain_shows_sums(tables, capsys):
    text = prepare("SELECT COUNT(*), AVG(age) FROM views", tables, {"age": (0, 90)}).explain(epsilon=1)
    assert "AVG(age), clamped to 0..90, epsilon 0.5" in text
    assert "AVG(age)" in capsys.readouterr().out
    assert tables["views"]._node.data.ledger.spent() == (0, 0)


def test_equal_counts_are_measured_once(tables):
    query = 'SELECT COUNT(*), COUNT(*) AS again, count ( * ) FROM views WHERE "age" > 3 HAVING COUNT(*) > 0'
    assert len(prepare(query, tables).counts) == 1


@thin(3)
@deeper
@pytest.mark.parametrize("query", QUERIES)
def test_one_record_moves_each_count_by_one_at_most(query, tables):
    """By the reference engine, on the plans as translated: what the noise is paid for, once for each set of keys."""
    rows = VIEWS.rows()[:60]
    sets = {"ROLLUP (page)": 2, "GROUPING SETS": 3, "CUBE": 4, "ROLLUP (a)": 2}
    most = next((many for words, many in sets.items() if words in query), 1)
    for count in prepare(query, tables).counts:
        assert set(sensitivities(count._node).values()) == {most}
        assert len(leaves(count)) == 1
        whole = evaluate(count, rows)
        for gone in range(0, 60, 7 if DEEP else 19):
            assert distance(whole, evaluate(count, rows[:gone] + rows[gone + 1 :])) <= most


REFUSED = [
    ("SELECT page, COUNT(*) FROM views GROUP BY page", "which groups there are is private too"),
    ("SELECT page FROM views GROUP BY page", "which groups there are is private too"),
    ("SELECT page FROM views", "neither in GROUP BY nor counted"),
    ("SELECT user, COUNT(*) FROM views GROUP BY page", "user is neither in GROUP BY nor counted"),
    ("SELECT page, COUNT(*) FROM views", "neither in GROUP BY nor counted"),
    ("SELECT COUNT(*) FROM views ORDER BY user", "neither in GROUP BY nor counted"),
    ("SELECT COUNT(*) FROM views HAVING age > 3", "neither in GROUP BY nor counted"),
    ("SELECT * FROM views", "would show records"),
    ("SELECT views.* FROM views", "would show records"),
    ("SELECT DISTINCT page FROM views", "which groups there are is private too"),
    ("SELECT DISTINCT ON (page) page FROM views", "DISTINCT ON takes a first record"),
    ("SELECT COUNT(*) FROM views ORDER BY random()", "another value every time"),
    ("SELECT COUNT(*) FROM views LIMIT (SELECT 1)", "LIMIT"),
    ("SELECT COUNT(*) FROM views WHERE page IN (SELECT page FROM views)", "could decide on any number here"),
    ("SELECT COUNT(*) FROM views HAVING COUNT(*) > (SELECT 1)", "FROM is missing"),
    ("SELECT ROUND(COUNT(*), 99) FROM views", "0 to 15 digits"),
    ("SELECT COUNT(*) FROM views WHERE DATE '2026-01-01' + INTERVAL '1 year 2 moons' > DATE '2026-01-01'", "INTERVAL"),
    ("SELECT COUNT(*) FROM views WHERE LEFT(page, age) = 'x'", "as whole numbers"),
    ("SELECT COUNT(*) FROM views WHERE COUNT(*) > 3", "is an aggregate"),
    ("SELECT COUNT(*) FROM generate_series(1, 9) x", "no plain table"),
    ("SELECT COUNT(*) FROM views, pages", "only JOIN and LEFT JOIN"),
    ("SELECT COUNT(*) FROM views CROSS JOIN pages", "only JOIN and LEFT JOIN"),
    ("SELECT COUNT(*) FROM views FULL JOIN pages USING (page)", "only JOIN and LEFT JOIN"),
    ("SELECT COUNT(*) FROM views JOIN pages ON views.age > pages.weight", "ON an equality"),
    ("SELECT COUNT(*) FROM views JOIN pages ON views.page = views.user", "ON an equality"),
    ("SELECT COUNT(*) FROM views JOIN pages ON views.age = pages.page", "do not compare"),
    ("SELECT COUNT(*) FROM views JOIN twice USING (page)", "not unique in twice, so a record would count many times"),
    ("SELECT COUNT(*) FROM views JOIN views AS w USING (page)", "joins two protected tables"),
    ("SELECT COUNT(*) FROM pages LEFT JOIN views USING (page)", "name the protected table in FROM"),
    ("SELECT COUNT(*) FROM pages", "public tables alone"),
    ("SELECT COUNT(*) FROM views JOIN pages p ON views.page = p.page WHERE page = 'x'", "is a column of views and p;"),
    ("SELECT COUNT(*) FROM views JOIN pages AS views USING (page)", "two tables are called"),
    ("SELECT SUM(age) FROM views", "need declared bounds"),
    ("SELECT MAX(age) FROM views", "need declared bounds"),
    ("SELECT COUNT(*) OVER () FROM views", "windows look at other records"),
    ("SELECT SUM(age + 1) FROM views", "need declared bounds"),
    ("SELECT MAX(age, 3) FROM views", "takes one number of each record"),
    ("SELECT SUM(SUM(age)) FROM views", "is an aggregate"),
    ("SELECT MODE() WITHIN GROUP (ORDER BY age) FROM views", "write PERCENTILE_CONT"),
    ("SELECT PERCENTILE_CONT(age) WITHIN GROUP (ORDER BY age) FROM views", "with one number"),
    ("SELECT PERCENTILE_CONT(1.5) WITHIN GROUP (ORDER BY age) FROM views", "between 0 and 1"),
    ("SELECT SUM(age) FILTER (WHERE COUNT(*) > 3) FROM views", "is an aggregate"),
    ("SELECT SUM(age) OVER () FROM views", "windows look at other records"),
    ("SELECT COUNT(*) FILTER (WHERE COUNT(*) > 3) FROM views", "is an aggregate"),
    ("SELECT COUNT(*) FILTER (WHERE age > 3) OVER () FROM views", "windows look at other records"),
    ("SELECT array_agg(user) FROM views", "other aggregates are not"),
    ("SELECT CORR(age, age) FROM views", "other aggregates are not"),
    ("SELECT COUNT(*) FROM views GROUP BY ROLLUP (page), ROLLUP (page)", "two sets of keys alike"),
    ("SELECT COUNT(*) FROM views GROUP BY CUBE (user, page, age, 1, 2, 3, 4, 5)", "64 sets of keys are the most"),
    ("SELECT COUNT(*) FROM views GROUP BY ALL", "write GROUP BY with keys"),
    ("SELECT GROUPING(user), COUNT(*) FROM views GROUP BY ROLLUP (page)", "is of keys of GROUP BY"),
    ("SELECT ANON_COUNT(*, 1) FROM views", r"write COUNT\(x\) alone, whose noise epsilon= pays for"),
    ("SELECT COUNT(*, 1) FROM views", r"COUNT\(\*, 1\): "),
    ("SELECT MAX(c) FROM (SELECT user, COUNT(*, 1) AS c FROM views GROUP BY user) AS t", r"COUNT\(\*, 1\) in a subq"),
    ("SELECT TOP 2 page, COUNT(*) FROM views GROUP BY page LIMIT 3", "TOP and LIMIT 3 both say how many rows"),
    ("SELECT TOP 2 PERCENT page, COUNT(*) FROM views GROUP BY page", "TOP 2 PERCENT is of other databases; write"),
    ("SELECT TOP (2) WITH TIES page, COUNT(*) FROM views GROUP BY page", "WITH is of other databases; write TOP 10"),
    ("SELECT COUNT(*) FROM views WHERE page SIMILAR TO 'a\\'", "escape character is followed by nothing"),
    ("SELECT MD5(COUNT(*)) FROM views", r"MD5\(COUNT\(\*\)\) is not .* computed from released numbers"),
    ("SELECT COUNT(*) FROM views GROUP BY COS(age)", r"COS\(age\) is not .* computed from one record alone"),
    ("SELECT COUNT(*) FROM views, pages WHERE views.page = pages.page OR TRUE", "write the equality in ON, or"),
    ("SELECT COUNT(*) || 'x' FROM views", r"COUNT\(\*\) \|\| 'x': \|\| joins texts"),
    ("SELECT age, COUNT(*) FROM views GROUP BY age HAVING age", "age is of type integer and not a condition"),
    ("SELECT COUNT(*) FROM views GROUP BY 5", "no column number 5"),
    ("SELECT COUNT(*) FROM nothing", "no table 'nothing'; there are 'views'"),
    ("SELECT COUNT(*) FROM one.views JOIN two.views AS v USING (user)", "two schemas have a table views"),
    ("SELECT COUNT(*) FROM views AS v (a, b)", "columns cannot be renamed"),
    ("SELECT COUNT(*) FROM views TABLESAMPLE BERNOULLI (10)", "no plain table"),
    ("SELECT COUNT(*)", "FROM is missing"),
    ("SELECT COUNT(*) FROM views WHERE page = 'it", "not SQL"),
    ("SELECT COUNT(*) FROM views; DROP TABLE views", "without a semicolon"),
    ("SELECT COUNT(*) FROM views UNION SELECT COUNT(*) FROM views", "each SELECT: ask them one by one"),
    ("WITH x AS (SELECT 1) SELECT COUNT(*) FROM x", "FROM is missing"),
    ("SELECT COUNT(*) INTO x FROM views", "INTO is not answered"),
    ("SELECT COUNT(*) FROM views FOR UPDATE", "LOCKS is not answered"),
    ("DROP TABLE views", "DROP is not answered"),
    ("INSERT INTO views VALUES (1)", "INSERT is not answered"),
    ("COPY views TO '/tmp/x'", "not answered"),
    ("", "give one SQL statement"),
    ("SELECT COUNT(*) FROM views WHERE " + "(" * 300 + "TRUE" + ")" * 300, "nested too deeply"),
    ("SELECT COUNT(*) FROM views WHERE age" + " + 1" * 2000 + " = 1", "nested too deeply"),
    ("SELECT COUNT(*) AS a FROM views GROUP BY a", "groups by an aggregate"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "reason"), REFUSED)
def test_refused_before_anything_is_charged(query, reason, tables):
    with pytest.raises(PlanError, match=reason) as caught:
        wpinq.sql(query, tables, epsilon=1)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert tables["views"]._node.data.ledger.spent() == (0, 0)


def test_bad_amounts_and_public_tables(tables, tmp_path, monkeypatch):
    query = "SELECT page, COUNT(*) FROM views GROUP BY page"
    with pytest.raises(ExactnessError):
        wpinq.sql(query, tables, epsilon=0, delta=1e-6)
    with pytest.raises(WpinqError):
        wpinq.sql(query, tables, epsilon=1, delta=0)
    poor = wpinq.protect(VIEWS, budget=1, delta=0)
    with pytest.raises(BudgetError, match="protect"):
        wpinq.sql(query, {"views": poor}, epsilon=1, delta=1e-6)
    assert poor._node.data.ledger.spent() == (0, 0)
    large = pl.DataFrame({"page": range(100_001)})
    joined = ("SELECT COUNT(*) FROM views JOIN large ON age = large.page", {**tables, "large": large})
    assert wpinq.sql(*joined, epsilon=LOUD).rows == ((sum(age is not None and age >= 0 for age in VIEWS["age"]),),)
    for name, most in (("MOST_ROWS", 100_000), ("MOST_BYTES", 1 << 19)):
        with monkeypatch.context() as patch:
            patch.setattr(f"wpinq.sources.public.{name}", most)
            with pytest.raises(SourceError, match=r"large has more than 1.*,000 rows, or takes more than .* MiB"):
                wpinq.sql(*joined, epsilon=1)
    (tmp_path / "pages.csv").write_text("page,topic\nHome,front\n")
    from_file = {**tables, "pages": tmp_path / "pages.csv"}
    joined = wpinq.sql("SELECT COUNT(*) FROM views JOIN pages USING (page)", from_file, epsilon=LOUD)
    assert joined.rows == ((Counter(VIEWS["page"])["Home"],),)
    empty = {**tables, "pages": PAGES.clear()}
    assert wpinq.sql("SELECT COUNT(*) FROM views JOIN pages USING (page)", empty, epsilon=LOUD).rows == ((0,),)


def test_columns_of_any_value_can_only_be_grouped_by():
    views = wpinq.protect([("ann", "home"), ("bob", 7)] * 50, budget=LOUD, columns=("user", "page"))
    answer = wpinq.sql(
        "SELECT page, COUNT(*) FROM views GROUP BY page", {"views": views}, epsilon=LOUD, keys=["home", 7]
    )
    assert answer.rows == (("home", 50), (7, 50))
    for query in ("SELECT COUNT(*) FROM views WHERE page = 'home'", "SELECT COUNT(DISTINCT user) FROM views"):
        with pytest.raises(PlanError, match="declare one with columns="):
            wpinq.sql(query, {"views": views}, epsilon=1)


def test_explain_shows_the_plan_and_charges_nothing(tables, capsys):
    text = prepare(QUERIES[2], tables).explain(epsilon=1)
    capsys.readouterr()
    assert "distinct" in text
    assert "measure(epsilon=1)" in text
    assert tables["views"]._node.data.ledger.spent() == (0, 0)
