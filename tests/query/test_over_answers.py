"""INTERSECT and EXCEPT of protected tables, and a SELECT over the answer of another, against DuckDB."""

import duck
import polars as pl
import pytest
from depth import thin

import wpinq
from wpinq.errors import PlanError

NAN = float("nan")
A = pl.DataFrame({"id": [1, 1, 2, 3, 3, None, 4], "x": [None, 1.0, 2.0, NAN, 0.0, 1.0, -0.0]})
B = pl.DataFrame({"id": [1, 2, 3, 3, 3, None, 5], "x": [None, 2.0, NAN, -0.0, -0.0, 1.0, 1.0]})
MANY = pl.DataFrame({"id": range(60), "page": ["a", "b", "c"] * 20, "n": [1, 2, 3] * 20})
FAR = 10**9


def protected(frame, name, **unit):
    return wpinq.protect(frame, budget=10**12, delta="0.5", name=name, **unit)


@thin(2)
@pytest.mark.parametrize("operator", ["INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
@pytest.mark.parametrize("columns", ["id", "id, x"])
@pytest.mark.parametrize("unit", [{}, {"unit": wpinq.users("id", at_most=3)}], ids=["records", "people"])
def test_a_record_is_there_as_often_as_in_sql(operator, columns, unit):
    query = f"SELECT COUNT(*) FROM (SELECT {columns} FROM a {operator} SELECT {columns} FROM b) AS t"
    tables = {"a": protected(A, "a", **unit), "b": protected(B, "b", **unit)}
    assert list(wpinq.sql(query, tables, epsilon=FAR).rows) == duck.rows(query, a=A, b=B)


def test_people_of_both_tables_count_once():
    unit = {"unit": wpinq.users("id", at_most=3)}
    tables = {"a": protected(A, "a", **unit), "b": protected(B, "b", **unit)}
    for operator in ("INTERSECT", "EXCEPT"):
        query = f"SELECT COUNT(*) FROM (SELECT id FROM a {operator} SELECT id FROM b) AS t"
        assert wpinq.sql(f"EXPLAIN {query}", tables, epsilon=1).frame["one unit moves"][0] == 1


@pytest.mark.parametrize("query", [
    "SELECT c FROM (SELECT COUNT(*) AS c FROM v) AS t",
    "WITH t AS (SELECT COUNT(*) AS c FROM v) SELECT c + 1 AS d FROM t",
    "WITH z AS (SELECT * FROM v WHERE n > 1), t AS (SELECT page, COUNT(*) AS c FROM z GROUP BY 1) "
    "SELECT page, c * 2 AS d FROM t WHERE c > 5 AND page <> 'a' ORDER BY page DESC LIMIT 1",
    "SELECT * FROM (SELECT page AS p, COUNT(*) AS s FROM v GROUP BY p HAVING COUNT(*) > 3) AS q ORDER BY p",
    "SELECT q.p, q.s - 1 AS m FROM (SELECT page AS p, COUNT(*) AS s FROM v GROUP BY p) AS q WHERE q.s > 5 ORDER BY 1",
    "SELECT c AS n FROM (SELECT n, COUNT(*) AS c FROM v GROUP BY n) AS t ORDER BY n, 1",
    "SELECT COUNT(*) AS c FROM (SELECT page, ANY_VALUE(id) AS i FROM v GROUP BY page) AS t",
])  # fmt: skip
def test_a_select_over_an_answer_costs_nothing_more(query):
    table = protected(MANY, "v")
    answer = wpinq.sql(query, {"v": table}, epsilon=FAR, delta="1e-9")
    assert list(answer.rows) == duck.rows(query, v=MANY)
    assert table._node.data.ledger.spent()[0] == FAR


@pytest.mark.parametrize(("query", "reason"), [
    ("SELECT t.x FROM (SELECT COUNT(*) AS c FROM v) AS t", "no table 't'"),
    ("SELECT c FROM (SELECT COUNT(*) AS c FROM v) AS t, v", "one row about all records"),
    ("SELECT COUNT(*) FROM (SELECT id FROM v INTERSECT SELECT 1 AS id FROM p) AS t", "IN \\(SELECT"),
    ("SELECT DP_INTERVAL_LOW(n) FROM v", "neither in GROUP BY"),
    ("SELECT COUNT(*) AS c, DP_INTERVAL_LOW(c + 1) FROM v", "by itself, or of its name"),
])  # fmt: skip
def test_what_is_no_answer_is_refused(query, reason):
    with pytest.raises(PlanError, match=reason):
        wpinq.sql(query, {"v": protected(MANY, "v"), "p": MANY}, epsilon=1)


def test_having_takes_a_name_that_hides_a_column_only_where_postgresql_would_take_none():
    query = "SELECT page, COUNT(*) AS n FROM v GROUP BY page HAVING n > 30"
    assert wpinq.sql(query, {"v": protected(MANY, "v")}, epsilon=FAR, keys=["a", "b"]).rows == ()
    query = "SELECT n, COUNT(*) AS id FROM v GROUP BY n HAVING n > 2"
    assert wpinq.sql(query, {"v": protected(MANY, "v")}, epsilon=FAR, keys=[1, 2, 3]).rows == ((3, 20),)


def test_the_ends_of_an_interval_are_columns():
    query = "SELECT page, COUNT(*) AS c, DP_INTERVAL_LOW(c) AS low, DP_INTERVAL_HIGH(c) AS high FROM v GROUP BY page"
    answer = wpinq.sql(query, {"v": protected(MANY, "v")}, epsilon=1, keys=["a"])
    table = answer.table(0.95)
    assert answer.frame.select("low", "high").row(0) == table.select("low_", "high_").row(0)


@pytest.mark.parametrize(("counted", "many"), [
    ("COUNT(DISTINCT (id, x))", 7), ("COUNT(DISTINCT (id, x)) FILTER (WHERE id < 3)", 3), ("COUNT(DISTINCT id)", 4),
])  # fmt: skip
def test_a_row_counts_whatever_it_holds(counted, many):
    rows = A.with_columns(pl.col("x").fill_nan(None))
    assert duck.rows(f"SELECT {counted} FROM a", a=rows) == [(many,)]
    assert wpinq.sql(f"SELECT {counted} FROM a", {"a": protected(rows, "a")}, epsilon=FAR).rows == ((many,),)


def united(query, **words):
    table = protected(MANY, "v", unit=wpinq.users("id", at_most=1))
    return table._node.data.ledger.spent, lambda: wpinq.sql(query, {"v": table}, bounds={"n": (0, 3)}, **words)


@pytest.mark.parametrize("query", [
    "SELECT page, COUNT(*) AS c FROM v GROUP BY page UNION ALL SELECT 'all', COUNT(*) FROM v",
    "WITH z AS (SELECT * FROM v WHERE n > 1) SELECT COUNT(*) AS c, 1.5 FROM z UNION ALL SELECT SUM(n), 2 FROM z "
    "UNION ALL (SELECT COUNT(DISTINCT page), 3 FROM z)",
])  # fmt: skip
def test_union_all_puts_answers_one_below_the_other_and_charges_what_was_asked(query):
    spent, ask = united(query, epsilon=3000, delta="1e-4")
    answer = ask()
    rounded = [tuple(round(x) if isinstance(x, float) and x > 2 else x for x in row) for row in answer.rows]
    assert sorted(rounded) == sorted(duck.rows(query, v=MANY))
    assert spent()[0] == 3000
    assert spent()[1] <= 1e-4
    assert any(ends is not None for ends in answer.intervals[0])


@pytest.mark.parametrize(("query", "reason", "words"), [
    ("SELECT COUNT(*), 1 FROM v UNION ALL SELECT COUNT(*), 'a' FROM v", "of the same types", {}),
    ("SELECT COUNT(*) FROM v UNION ALL SELECT COUNT(*), 1 FROM v", "has as many", {}),
    ("SELECT COUNT(*) FROM v UNION ALL SELECT page, COUNT(*) FROM v GROUP BY 1", "delta", {}),
    ("SELECT COUNT(*) FROM v UNION ALL SELECT COUNT(*) FROM v ORDER BY 1", "order the rows", {}),
    ("SELECT COUNT(*) FROM v UNION ALL SELECT COUNT(*) FROM v", "are of one SELECT", {"keys": {"page": ["a"]}}),
])  # fmt: skip
def test_union_all_that_is_refused_charges_nothing(query, reason, words):
    spent, ask = united(query, epsilon=1, **words)
    with pytest.raises(PlanError, match=reason):
        ask()
    assert spent() == (0, 0)
