"""Subqueries in FROM and WITH: against DuckDB where the noise is as good as none, and as far as one unit moves them."""

import duck
import polars as pl
import pytest
from depth import thin

import wpinq
from wpinq.core.plan.stability import sensitivities
from wpinq.errors import PlanError
from wpinq.query import prepare
from wpinq.testing import audit, check_stability

LOUD = 3000
VIEWS = pl.DataFrame(
    {
        "user": [f"u{i % 60}" if i % 17 else None for i in range(3000)],
        "page": [["Home", "News", "", None][i % 4 if i % 5 else 0] for i in range(3000)],
        "age": [i % 50 if i % 7 else None for i in range(3000)],
    }
)
PAGES = pl.DataFrame({"page": ["Home", "News", "About"], "topic": ["front", "press", None], "weight": [1, 2, 3]})
BOUNDS = {"age": (0, 50), "s": (0, 3000), "t.age": (0, 100)}
COLUMNS = {"user": "text", "page": "text", "age": "number"}


@pytest.fixture(scope="module", name="duck")
def over_frames():
    return duck.over(views=VIEWS, pages=PAGES)


def asked(query, tables=None, **more):
    tables = tables or {"views": wpinq.protect(VIEWS, budget=10**9, delta="1/2"), "pages": PAGES}
    bounds = {name: ends for name, ends in BOUNDS.items() if f"({name})" in query}
    return wpinq.sql(query, tables, **{"epsilon": LOUD, "delta": "1e-6", "bounds": bounds, **more})


QUERIES = [
    "SELECT c, COUNT(*) AS n FROM (SELECT age, COUNT(*) AS c FROM views GROUP BY age) GROUP BY c HAVING c < 400 "
    "ORDER BY c",
    "SELECT COUNT(*) FROM (SELECT age, COUNT(*) AS c FROM views GROUP BY age HAVING COUNT(*) > 51) t",
    "SELECT COUNT(*) FROM (SELECT age, COUNT(*) AS c FROM views GROUP BY age) t WHERE t.c > 51",
    "SELECT COUNT(*), COUNT(m), COUNT(s) FROM (SELECT page, user, SUM(age) AS s, MAX(page) AS m FROM views "
    "GROUP BY 1, 2) t",
    "SELECT AVG(s) FROM (SELECT age, SUM(age) AS s FROM views WHERE age > 0 GROUP BY age) t",
    "SELECT AVG(age) FROM (SELECT user, MAX(age) AS age FROM views GROUP BY user) t",
    "SELECT SUM(age) FROM (SELECT age * 2 AS age FROM views) t",
    "SELECT COUNT(*) FROM (SELECT user, MIN(age) AS lo, AVG(age) AS mean, COUNT(DISTINCT page) AS p, MEDIAN(age) AS m, "
    "STDDEV(age) AS sd, VAR_POP(age) AS v, SUM(DISTINCT age) AS d, COUNT(page) FILTER (WHERE age > 9) AS f FROM views "
    "GROUP BY user) t WHERE lo < 9 AND mean > 24 AND p > 1 AND m >= 24 AND sd > 14.4 AND v < 209 AND d > 9 AND f > 4",
    "WITH t AS (SELECT user, page FROM views WHERE age > 30), u AS (SELECT page, COUNT(*) AS n FROM t GROUP BY page) "
    "SELECT COUNT(*) FROM u WHERE n > 3",
    "WITH views AS (SELECT age FROM views WHERE age < 10) SELECT COUNT(*) FROM views",
    "WITH t (x, y) AS (SELECT page, age FROM views) SELECT x, COUNT(y) FROM t GROUP BY x ORDER BY x",
    "SELECT COUNT(*) FROM (SELECT DISTINCT user, page FROM views) x",
    "SELECT COUNT(*) FROM (SELECT user FROM views UNION ALL SELECT page FROM views) x",
    "SELECT COUNT(*) FROM (SELECT user FROM views UNION SELECT page FROM views) x",
    "SELECT topic, COUNT(*) FROM (SELECT * FROM views JOIN pages USING (page)) x GROUP BY topic ORDER BY topic",
    "SELECT topic, COUNT(*) FROM views JOIN (SELECT page, upper(topic) AS topic FROM pages WHERE weight < 3) p "
    "USING (page) GROUP BY topic ORDER BY topic",
    "SELECT COUNT(*) FROM views v JOIN (SELECT topic, MAX(weight) AS w FROM pages GROUP BY topic) p ON v.age = p.w",
    "SELECT COUNT(*) FROM pages JOIN views USING (page) WHERE weight = 2",
    "SELECT COUNT(*) FROM main.views WHERE views.age > 3",
    "SELECT COUNT(*) FROM (views JOIN pages USING (page)) AS q WHERE topic = 'front'",
    "WITH d AS (SELECT age, page, COUNT(*) AS c FROM views GROUP BY age, page) SELECT page, c, COUNT(*) FROM d "
    "GROUP BY page, c HAVING COUNT(*) > 2 AND c < 60 ORDER BY page, c",
    "SELECT COUNT(*) FROM views WHERE page IN (SELECT page FROM pages WHERE weight < 3) "
    "AND age NOT IN (SELECT weight FROM pages)",
    "SELECT COUNT(*) FROM views WHERE page NOT IN (SELECT topic FROM pages)",
    "SELECT x, COUNT(*) FROM (SELECT v.page AS x FROM views AS v) t GROUP BY x ORDER BY x",
    "SELECT big, COUNT(*) FROM (SELECT age, CASE WHEN COUNT(*) > 51 THEN 'big' ELSE 'small' END AS big FROM views "
    "GROUP BY age) t GROUP BY big ORDER BY big",
    "SELECT COUNT(*) FROM (SELECT user FROM views GROUP BY user ORDER BY user) t",
    "SELECT COUNT(*) FROM (SELECT page FROM views) AS age WHERE age.page = 'Home'",
    "SELECT COUNT(*) FROM (SELECT user, 100 / NULLIF(COUNT(*) - 47, 0) AS q FROM views GROUP BY user) t "
    "WHERE q IS NULL",
]  # fmt: skip


@thin(2)
@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_duckdb(query, duck):
    """The noise moves nothing but for a chance below exp(-300); a sum of 3,000 numbers to 3,000 by less than 40."""
    truth = duck.sql(query).fetchall()
    found = asked(query)
    assert len(found.rows) == len(truth)
    for one, other in zip(found.rows, truth, strict=True):
        assert one == pytest.approx(other, rel=1e-2) if isinstance(one[-1], float) else one == other


MOVES = [
    ("SELECT COUNT(*) FROM (SELECT user, age AS a FROM views WHERE age > 1) t WHERE a < 3", 1),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT page FROM views) t", 1),
    ("SELECT COUNT(*) FROM (SELECT page FROM views GROUP BY page) t", 1),
    ("SELECT c, COUNT(*) FROM (SELECT page, COUNT(*) AS c FROM views GROUP BY page) t GROUP BY c", 1),
    ("WITH t AS (SELECT user AS u, page, COUNT(*) AS c FROM views GROUP BY 1, 2) "
     "SELECT c, u, COUNT(*) FROM t GROUP BY c, u", 1),
    ("SELECT c, COUNT(*) FROM (SELECT page, COUNT(*) AS c FROM views GROUP BY page HAVING COUNT(*) > 1) GROUP BY c", 2),
    ("SELECT c, COUNT(DISTINCT page) FROM (SELECT page, COUNT(*) AS c FROM views GROUP BY page) GROUP BY c", 2),
    ("SELECT c, COUNT(*) FROM (SELECT page, COUNT(*) * 2 AS c FROM views GROUP BY page) t GROUP BY c", 2),
    ("SELECT COUNT(*) FROM (SELECT page, SUM(age) AS s FROM views GROUP BY page HAVING AVG(age) > 1) t WHERE s > 0", 2),
    ("WITH t AS (SELECT page, MAX(user) AS u, COUNT(DISTINCT user) AS n FROM views GROUP BY page) "
     "SELECT u, COUNT(*) FROM t WHERE n > 1 GROUP BY u", 2),
    ("SELECT n, COUNT(*) FROM (SELECT c, COUNT(*) AS n FROM (SELECT page, COUNT(*) AS c FROM views GROUP BY page) "
     "GROUP BY c) GROUP BY n", 2),
    ("WITH t AS (SELECT page, COUNT(*) AS c FROM views GROUP BY page) SELECT c, COUNT(*) FROM "
     "(SELECT c FROM t UNION ALL SELECT c FROM t WHERE c > 1) GROUP BY c", 4),
    ("SELECT s, COUNT(*) FROM (SELECT user, 1 / COUNT(age) + SUM(age) AS s FROM views GROUP BY user) t GROUP BY s",
     0.5),
]  # fmt: skip


@thin(3)
@pytest.mark.parametrize(("query", "stability"), MOVES)
def test_one_unit_moves_a_subquery_no_further_than_it_is_paid_for(query, stability):
    """Between neighbours with nulls, NaN, empty text, and persons with more records than their bound."""
    views = wpinq.protect([], budget=1, unit=wpinq.users("user", at_most=2), columns=COLUMNS)
    groups = prepare(query, {"views": views}).groups
    assert set(sensitivities(groups._node).values()) == {2 * stability}
    check_stability(groups, examples=15)


@pytest.mark.parametrize("query", [MOVES[3][0], MOVES[11][0]])
def test_no_answer_loses_more_than_is_charged(query):
    """Joint loss between neighbours, in all engines, with the publication of groups."""
    unit = wpinq.users("user", at_most=2)
    found = audit(
        lambda views: wpinq.sql(query, {"views": views}, epsilon=1, delta="1e-6"), COLUMNS, unit=unit, cases=3
    )
    assert found, str(found)


def test_a_table_that_is_read_twice_is_paid_for_twice():
    unit = wpinq.users("user", at_most=3)
    views = wpinq.protect(VIEWS, budget=10, unit=unit)
    query = "WITH t AS (SELECT user, page FROM views) SELECT COUNT(*) FROM t JOIN t AS u USING (user)"
    assert list(sensitivities(prepare(query, {"views": views}).groups._node).values()) == [9], "the pairs of one person"
    both = prepare("SELECT COUNT(*) FROM views JOIN views AS u USING (user)", {"views": views})
    assert list(sensitivities(both.groups._node).values()) == [9]


@pytest.mark.parametrize(("query", "moves"), [
    ("SELECT c, town, COUNT(*) FROM (SELECT user, COUNT(*) AS c FROM views GROUP BY user) t JOIN people USING (user) "
     "GROUP BY c, town", {"views": 1, "people": 1}),
    ("SELECT c, COUNT(*) FROM (SELECT page, COUNT(*) AS c FROM views GROUP BY page) t JOIN (SELECT page, COUNT(*) AS d "
     "FROM views GROUP BY page) s USING (page) WHERE d > 1 GROUP BY c", {"views": 8}),
])  # fmt: skip
def test_groups_of_a_subquery_are_joined_for_each_key_has_one(query, moves):
    views = wpinq.protect([], budget=1, unit=wpinq.users("user", at_most=2), columns=COLUMNS, name="views")
    words = {"columns": {"user": "text", "town": "text"}, "name": "people"}
    people = wpinq.protect([], budget=1, unit=wpinq.users("user", at_most=1), **words)
    groups = prepare(query, {"views": views, "people": people}).groups
    assert {data.name: move for data, move in sensitivities(groups._node).items()} == moves
    check_stability(groups, examples=25)


LONG = "SELECT topic FROM pages"
for place in range(20):
    LONG = f"SELECT concat(topic, topic) AS topic FROM ({LONG}) AS p{place}"
REFUSED = [
    (f"SELECT COUNT(*) FROM views WHERE page IN (SELECT topic FROM ({LONG}) AS p)", "65,536 times as long"),
    ("SELECT COUNT(*) FROM (SELECT user FROM views ORDER BY user LIMIT 3) t", "which rows come first"),
    ("SELECT COUNT(*) FROM (SELECT age FROM views UNION ALL SELECT age FROM views LIMIT 3) t", "which rows come first"),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT ON (user) user, page FROM views) t", "DISTINCT ON takes a first record"),
    ("SELECT AVG(c) FROM (SELECT COUNT(*) AS c FROM views) t", "one row about all records; aggregate"),
    ("SELECT COUNT(*) FROM (SELECT 1 AS x FROM views HAVING COUNT(*) > 3) t", "one row about all records"),
    ("SELECT COUNT(*) FROM views x JOIN (SELECT x.age) t ON x.age = t.age", "FROM is missing"),
    ("SELECT COUNT(*) FROM views x JOIN (SELECT page FROM pages WHERE page = x.page) t USING (page)", "no table 'x'"),
    ("SELECT COUNT(*) FROM views x, LATERAL (SELECT x.age AS a) t", "LATERAL look at many records"),
    ("SELECT COUNT(*) FROM views x JOIN LATERAL (SELECT 1 AS age) t USING (age)", "LATERAL look at many records"),
    ("WITH RECURSIVE t AS (SELECT page FROM views) SELECT COUNT(*) FROM t", "no end that is known"),
    ("SELECT COUNT(*) FROM (SELECT page, RANK() OVER (ORDER BY age) AS r FROM views) t", "within a person"),
    ("SELECT COUNT(*) FROM (SELECT page, user FROM views GROUP BY page) t", "neither in GROUP BY nor counted"),
    ("SELECT COUNT(*) FROM (SELECT age FROM views UNION ALL SELECT page FROM views) t", "on the other; cast them"),
    ("SELECT COUNT(*) FROM (SELECT age, age FROM views) t", "two columns of a subquery are called age"),
    ("SELECT COUNT(*) FROM (SELECT age, page AS AGE FROM views) t", "two columns of a subquery are called AGE"),
    ('WITH t (a) AS (SELECT age AS "^a.*$" FROM views) SELECT COUNT(*) FROM t', "which Polars reads as a pattern"),
    ("SELECT COUNT(*) FROM (SELECT age FROM views) t (a, b)", "no more columns than there are"),
    ("SELECT age, COUNT(*) FROM (SELECT page FROM views) t GROUP BY age", "no column age; there are t.page"),
    ("SELECT SUM(c) FROM (SELECT page, COUNT(*) AS c FROM views GROUP BY page) t", "need declared bounds"),
    ("SELECT COUNT(*) FROM (SELECT page, QUANTILE(age, 0.5) AS c FROM views GROUP BY page)", "in a subquery: COUNT"),
    ("SELECT COUNT(*) FROM views WHERE page IN (SELECT page FROM views WHERE age > 3)", "could decide on any"),
    ("SELECT COUNT(*) FROM views WHERE page IN (SELECT page, topic FROM pages)", "one column of 100,000 values"),
    ("SELECT COUNT(*) FROM views WHERE page IN (SELECT page FROM pages WHERE weight = age)", "one column of 100,000"),
    ("SELECT COUNT(*) FROM views WHERE age > (SELECT AVG(age) FROM views)", "ask for a number first"),
    ("SELECT COUNT(*) FROM (SELECT page, COUNT(*) AS c FROM views GROUP BY page) t JOIN views USING (page)",
     "joins two protected tables"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "reason"), REFUSED)
def test_refused_before_anything_is_charged(query, reason):
    views = wpinq.protect(VIEWS, budget=1, delta="1e-6")
    with pytest.raises(PlanError, match=reason) as caught:
        asked(query, {"views": views, "pages": PAGES}, epsilon=1)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert views._node.data.ledger.spent() == (0, 0)


DEGREES = "SELECT c, COUNT(*) AS n FROM (SELECT age, COUNT(*) AS c FROM views GROUP BY age) GROUP BY c"


def test_a_degree_distribution_has_half_of_the_variance_that_grouping_would_give_it():
    """Differences of two Laplace noises of scale 1 have a variance of 3.68; 4,000 are within 0.7 of it but for 1e-6."""
    keys = list(range(100, 4100))
    counts = asked(DEGREES, epsilon=1, keys=keys).frame
    assert counts["n"].var() == pytest.approx(3.68, abs=0.7)
    missed = counts.filter((pl.col("low") > 0) | (pl.col("high") < 0)).height
    assert missed < 0.05 * len(keys)
    ((*_, half, _, _, _),) = asked(f"EXPLAIN {DEGREES}", epsilon=1, keys=keys).rows
    assert half == (counts["high"] - counts["low"])[0] / 2


def test_a_degree_distribution_of_odd_numbers_is_nothing_but_noise():
    """No page has 0 records or fewer: nothing is taken away of what none has."""
    frame = asked(DEGREES, keys=[None, -1, 0, 1, 2**63 - 1]).frame
    assert frame["n"].to_list() == [0] * 5
    for more in ({"epsilon": None, "within": 5}, {"loss": 1, "keys": None, "epsilon": 1}):
        assert asked(DEGREES, **{"keys": [1], **more}).measurements[0].quote.scale > 1


def test_bounds_of_a_name_that_a_subquery_gives_to_something_else_are_refused():
    query = "SELECT SUM(age) FROM (SELECT user, SUM(age) AS age FROM views GROUP BY user) t"
    with pytest.raises(PlanError, match="a subquery computes another one by that name"):
        asked(query)
    assert asked(query, bounds={"t.age": (0, 2000)}).value > 50_000


def test_records_that_share_a_weight_are_grouped_by_no_subquery():
    views = wpinq.protect(VIEWS, budget=1, unit=wpinq.users("user", shared=True))
    with pytest.raises(PlanError, match="GROUP BY in a subquery is of whole records"):
        asked("SELECT COUNT(*) FROM (SELECT page, COUNT(*) AS c FROM views GROUP BY page) t", {"views": views})
