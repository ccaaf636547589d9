"""Windows within a person: the values of DuckDB, and what they cost."""

import random

import duckdb
import polars as pl
import pytest

import wpinq
from wpinq.errors import PlanError

DRAW = random.Random(3)
MANY = range(30)
FRAME = pl.DataFrame({
    "id": [DRAW.choice([1, 2, 3, None]) for _ in MANY], "t": [DRAW.choice(["a", "b", None, "c"]) for _ in MANY],
    "n": [DRAW.choice([1, 2, 3, None]) for _ in MANY], "x": [DRAW.choice([0.5, -1.0, None, 2.0]) for _ in MANY],
    "u": list(MANY),
})  # fmt: skip
WINDOWS = [
    "ROW_NUMBER() OVER (PARTITION BY id ORDER BY u)",
    "RANK() OVER (PARTITION BY id ORDER BY n, x DESC NULLS LAST)",
    "DENSE_RANK() OVER (PARTITION BY id, t ORDER BY x)",
    "LAG(t) OVER (PARTITION BY id ORDER BY u)",
    "LEAD(n, 2) OVER (PARTITION BY id ORDER BY u DESC)",
    "SUM(n) OVER (PARTITION BY id ORDER BY n NULLS FIRST)",
    "COUNT(x) OVER (PARTITION BY id ORDER BY t) + COUNT(*) OVER (PARTITION BY t, id)",
    "MAX(n) OVER (PARTITION BY id ORDER BY u)",
    "AVG(n) OVER (PARTITION BY id ORDER BY u)",
    "MIN(x) OVER (PARTITION BY id)",
    "ROW_NUMBER() OVER (PARTITION BY id ORDER BY u) - SUM(u) OVER (PARTITION BY id ORDER BY u DESC)",
]


def protected(**unit):
    unit = unit or {"unit": wpinq.users("id", at_most=30)}
    return wpinq.protect(FRAME, budget=10**12, delta="0.5", name="v", **unit)


def answered(query, keys):
    return sorted(wpinq.sql(query, {"v": protected()}, epsilon=10**9, keys=keys).rows, key=repr)


def exact(query):
    with duckdb.connect() as connection:
        connection.register("v", FRAME.to_arrow())
        return sorted(connection.execute(query).fetchall(), key=repr)


@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_is_that_of_duckdb(window):
    query = f"SELECT k, COUNT(*) FROM (SELECT id, {window} AS k FROM v WHERE u > 2) AS s GROUP BY k"
    expected = exact(query)
    assert len(expected) > 1
    assert answered(query, [row[0] for row in expected]) == expected


@pytest.mark.parametrize("inner", [
    "SELECT t FROM v QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY u DESC) <= 2",
    "SELECT t, ROW_NUMBER() OVER (PARTITION BY id ORDER BY u) + 1 AS k FROM v WHERE n > 1 QUALIFY k > 3",
    "SELECT t FROM (SELECT *, LAG(t) OVER (PARTITION BY id ORDER BY u) AS before FROM v) AS q WHERE before = 'a'",
])  # fmt: skip
def test_rows_are_taken_by_a_window(inner):
    query = f"SELECT t, COUNT(*) FROM ({inner}) AS s GROUP BY t"
    expected = exact(query)
    assert answered(query, [row[0] for row in expected]) == expected


def test_a_person_moves_no_more_rows_than_before():
    explain = (
        "EXPLAIN SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY t, id ORDER BY random()) AS k FROM v)"
    )
    answer = wpinq.sql(f"{explain} AS s WHERE k <= 3", {"v": protected()}, epsilon=1)
    assert answer.frame["one unit moves"][0] == 30


@pytest.mark.parametrize("inner", [
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY t ORDER BY u) AS k FROM v",
    "SELECT *, ROW_NUMBER() OVER (ORDER BY u) AS k FROM v",
    "SELECT id, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY id) AS k FROM v GROUP BY id",
    "SELECT *, SUM(n) OVER (PARTITION BY id ORDER BY u ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS k FROM v",
    "SELECT *, NTILE(4) OVER (PARTITION BY id ORDER BY u) AS k FROM v",
    "SELECT *, LAG(n, 1, 0) OVER (PARTITION BY id ORDER BY u) AS k FROM v",
])  # fmt: skip
def test_what_looks_further_is_refused(inner):
    with pytest.raises(PlanError, match="within a person"):
        wpinq.sql(f"SELECT COUNT(*) FROM ({inner}) AS s", {"v": protected()}, epsilon=1)


def test_of_records_no_partition_is_bounded():
    with pytest.raises(PlanError, match="within a person"):
        query = f"SELECT COUNT(*) FROM (SELECT {WINDOWS[0]} AS k FROM v) AS s"
        wpinq.sql(query, {"v": wpinq.protect(FRAME, budget=1, name="v")}, epsilon=1)
