"""SQL over two protected tables of the same people: rows are counted, as DuckDB counts them."""

import duck
import polars as pl
import pytest

import wpinq

LOUD = 4000
VISITS = pl.DataFrame({
    "user": [f"u{i % 600}" if i % 401 else None for i in range(5000)],
    "clinic": [f"clinic {i % 7}" for i in range(5000)],
    "day": [i % 3 for i in range(5000)],
})  # fmt: skip
PEOPLE = pl.DataFrame({
    "user": [*(f"u{i}" for i in range(500)), None, None],
    "town": ["north" if i % 3 else "south" for i in range(502)],
    "day": [i % 3 for i in range(502)],
})  # fmt: skip
CLINICS = pl.DataFrame({"clinic": [f"clinic {i}" for i in range(5)], "kind": list("aabbb")})


@pytest.fixture
def tables():
    visits = wpinq.protect(VISITS, budget=10**6, delta=0.1, unit=wpinq.users("user", at_most=20), name="visits")
    people = wpinq.protect(PEOPLE, budget=10**6, delta=0.1, unit=wpinq.users("user", at_most=2), name="people")
    return {"visits": visits, "people": people, "clinics": CLINICS}


@pytest.mark.parametrize("query", [
    "SELECT COUNT(*) AS n FROM visits JOIN people USING (user)",
    "SELECT COUNT(*) AS n, COUNT(DISTINCT v.user) AS people FROM visits v JOIN people p ON p.user = v.user",
    "SELECT clinic, town, COUNT(*) AS n FROM visits v JOIN people p ON v.user = p.user GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT p.day, COUNT(*) AS n FROM people p JOIN visits v ON (v.user = p.user AND v.day = p.day) GROUP BY 1"
    " ORDER BY 1",
    "SELECT town, kind, COUNT(*) AS n FROM visits JOIN people USING (user) JOIN clinics USING (clinic) "
    "WHERE visits.day < people.day GROUP BY town, kind ORDER BY town, kind",
    "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.user = b.user AND a.clinic = b.clinic",
    "SELECT COUNT(*) AS n, COUNT(p.user) AS m FROM visits v LEFT JOIN people p ON v.user = p.user AND p.town = 'north'",
    "SELECT COUNT(*) AS n FROM visits v JOIN people p ON v.user = p.user AND v.day > 1",
    "SELECT town, COUNT(*) AS n, COUNT(p.user) AS m, COUNT(v.user) AS k FROM visits v LEFT JOIN people p "
    "ON v.user = p.user GROUP BY 1 ORDER BY 1",
    "SELECT COUNT(*) AS n, COUNT(town) AS m FROM people p LEFT OUTER JOIN visits v USING (user) WHERE v.user IS NULL",
    "SELECT COUNT(*) AS n, COUNT(b.user) AS k FROM visits a LEFT JOIN people b ON a.user = b.user AND b.day = a.day "
    "LEFT JOIN people c ON c.user = a.user WHERE c.town <> 'x' OR b.day IS NULL",
])  # fmt: skip
def test_rows_are_counted_as_in_sql(query, tables):
    answer = wpinq.sql(query, tables, epsilon=LOUD, delta="1e-6")
    assert list(answer.rows) == duck.rows(query, visits=VISITS, people=PEOPLE, clinics=CLINICS)


def test_each_table_pays_and_the_answer_says_what_is_not_in_it(tables):
    query = "SELECT town, COUNT(*) FROM visits JOIN people USING (user) GROUP BY town"
    answer = wpinq.sql(query, tables, epsilon=1, keys=["north", "south"])
    assert answer.measurements[0].scale == 40
    for name in ("visits", "people"):
        assert tables[name]._node.data.ledger.spent()[0] == 1
    assert answer.bias == ("records beyond 20 of one user are not in it", "records beyond 2 of one user are not in it")
    assert answer.about["data set"] == "visits, people"


@pytest.mark.parametrize("query", [
    "SELECT COUNT(*) FROM visits JOIN people USING (day)",
    "SELECT COUNT(*) FROM visits v JOIN people p ON v.day = p.day",
    "SELECT COUNT(*) FROM visits v LEFT JOIN people p ON v.day = p.day",
    "SELECT COUNT(*) FROM visits v JOIN people p ON v.user = p.town",
    "SELECT COUNT(*) FROM visits v JOIN people p ON v.user = p.user OR v.day = p.day",
    "SELECT COUNT(*) FROM visits v JOIN people p ON v.user = v.user",
    "SELECT COUNT(*) FROM visits v JOIN people p ON lower(v.user) = p.user",
    "SELECT COUNT(*) FROM visits v JOIN clinics c ON v.clinic = c.clinic JOIN people p ON c.kind = p.user",
    "SELECT COUNT(*) FROM visits v JOIN records r ON v.user = r.user",
])  # fmt: skip
def test_what_nothing_bounds_is_refused_and_costs_nothing(query, tables):
    tables["records"] = wpinq.protect(PEOPLE, budget=1, name="records")
    with pytest.raises(wpinq.PlanError, match=r"joins two protected tables.*at_most.*or weigh pairs"):
        wpinq.sql(query, tables, epsilon=1)
    assert all(tables[name]._node.data.ledger.spent() == (0, 0) for name in ("visits", "people"))


def test_keys_of_two_types_are_told(tables):
    with pytest.raises(wpinq.PlanError, match="user is text and day is integer; declare one type"):
        wpinq.sql("SELECT COUNT(*) FROM visits v JOIN people p ON v.user = p.day", tables, epsilon=1)


def test_a_column_of_using_is_one_column(tables):
    """Without a table it is that of the first, as in PostgreSQL: it was refused as one of both."""
    query = "SELECT {1}, COUNT({0}) AS n FROM visits JOIN people USING (user) JOIN clinics USING (clinic) GROUP BY {1}"
    merged, told = (
        wpinq.sql(query.format(*words), tables, epsilon=LOUD, keys=["clinic 1", "clinic 2"])
        for words in (("user", "clinic"), ("visits.user", "visits.clinic"))
    )
    assert merged.rows == told.rows
    assert merged.measurements[0].question == told.measurements[0].question
    with pytest.raises(wpinq.PlanError, match=r"day is a column of visits and people; say which"):
        wpinq.sql("SELECT COUNT(*) FROM visits JOIN people USING (user) WHERE day = 1", tables, epsilon=1)


@pytest.mark.parametrize(("query", "why"), [
    ("SELECT clinic, COUNT(*) FROM visits GROUP BY 1 ORDER BY 2 FETCH FIRST 2 ROWS WITH TIES", "or LIMIT 10"),
    ("SELECT clinc, COUNT(*) FROM visits GROUP BY clinc", r"no column clinc; .*\. Did you mean clinic\?"),
    ("SELECT COUNT(*) FROM vists", "no table 'vists'.* Did you mean visits"),
    ("SELECT clinic COUNT(*) FROM visits", r"column 20: \( cannot stand here; is a comma or a word missing"),
])  # fmt: skip
def test_refusals_name_the_first_wrong_word_and_what_to_write(query, why, tables):
    with pytest.raises(wpinq.PlanError, match=why):
        wpinq.sql(query, tables, epsilon=1, delta="1e-6")


def test_all_rows_are_a_limit_too(tables):
    query = "SELECT day, COUNT(*) FROM visits GROUP BY day ORDER BY day "
    ends = ["", "LIMIT ALL", "LIMIT 9", "LIMIT 2", "FETCH FIRST ROW ONLY", "OFFSET 1 ROWS FETCH NEXT 5 ROWS ONLY"]
    rows = [wpinq.sql(query + more, tables, epsilon=LOUD, keys=[0, 1, 2]).rows for more in ends]
    assert [len(one) for one in rows] == [3, 3, 3, 2, 1, 2]
    assert tables["visits"]._node.data.ledger.spent()[0] == LOUD, "one question"
