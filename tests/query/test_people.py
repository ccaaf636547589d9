"""Queries about people: who counts once moves an answer once, whatever the bound, and the answers are those of DuckDB.

Kinds: what EXPLAIN says one person moves, answers without noise to speak of, neighbours by whole persons. Found: a
constant column and expressions of columns lost the person, so COUNT(DISTINCT user) moved by 20.
"""

import duck
import polars as pl
import pytest
from depth import thin

import wpinq
from wpinq.core.plan.stability import sensitivities
from wpinq.errors import PlanError
from wpinq.query import prepare
from wpinq.testing import check_stability

VIEWS = pl.DataFrame({
    "user": [f"u{i % 300}" if i % 41 else None for i in range(4000)],
    "page": [["Home", "News", "About"][i % 3 if i % 5 else 0] for i in range(4000)],
    "n": [i % 11 if i % 7 else None for i in range(4000)],
})  # fmt: skip
COLUMNS = {"user": "text", "page": "text", "n": "number"}
BY_USER = "(SELECT user, COUNT(*) AS c, SUM(n) AS s FROM v GROUP BY user) t"
MOVES = [
    ("SELECT COUNT(DISTINCT user) FROM v", 1),
    ("SELECT COUNT(DISTINCT user) FROM v WHERE n > 3 AND page <> 'News'", 1),
    ("SELECT page, COUNT(DISTINCT user) FROM v GROUP BY page ORDER BY page", 20),
    ("SELECT c, COUNT(*) FROM (SELECT user, COUNT(*) AS c FROM v GROUP BY user) t GROUP BY c ORDER BY c", 1),
    (f"SELECT COUNT(*) FROM {BY_USER}", 1),
    (f"SELECT COUNT(*) FROM {BY_USER} WHERE c > 12 AND s > 3", 1),
    ("SELECT COUNT(*) FROM (SELECT user, page FROM v GROUP BY user, page HAVING COUNT(*) > 3) t", 20),
    ("SELECT COUNT(*) FROM (SELECT user FROM v GROUP BY user HAVING COUNT(*) > 13) t", 1),
    ("SELECT page, COUNT(*) FROM v GROUP BY page ORDER BY page", 20),
    ("SELECT COUNT(*) FROM v WHERE user IN (SELECT user FROM v GROUP BY user HAVING COUNT(*) > 13)", 20),
    ("SELECT page, COUNT(*) FROM (SELECT user, MIN(page) AS page FROM v GROUP BY user) t GROUP BY page ORDER BY 1", 1),
    ("SELECT c, COUNT(*) FROM (SELECT page, COUNT(*) AS c FROM v GROUP BY page) t GROUP BY c ORDER BY c", 20),
]


def moved(query, **more):
    views = wpinq.protect([], 10**6, unit=wpinq.users("user", at_most=20), columns=COLUMNS, delta="0.1")
    return (
        wpinq.sql(f"EXPLAIN {query}", {"v": views}, epsilon=1, delta="1e-6", **more).frame["one unit moves"].to_list()
    )


@pytest.mark.parametrize(("query", "moves"), MOVES)
def test_one_person_moves(query, moves):
    assert moved(query) == [moves]


def test_a_value_of_each_person_moves_by_its_clamp():
    assert moved(f"SELECT SUM(c) FROM {BY_USER}", bounds={"c": (0, 30)}) == [30], "the largest number"
    assert moved(f"SELECT AVG(c) FROM {BY_USER}", bounds={"c": (0, 30)}) == [2], "the numbers and how many there are"


@pytest.mark.parametrize(("query", "moves"), MOVES)
def test_answers_are_those_of_duckdb(query, moves):
    known = duck.rows(query, v=VIEWS)
    keys = [row[0] for row in known] if len(known[0]) > 1 else None
    views = wpinq.protect(VIEWS, 10**9, unit=wpinq.users("user", at_most=200))
    assert sorted(wpinq.sql(query, {"v": views}, epsilon=10**6, keys=keys).rows) == sorted(known)


@thin(2)
@pytest.mark.parametrize(("query", "moves"), MOVES)
def test_nobody_moves_further(query, moves):
    views = wpinq.protect([], 1, unit=wpinq.users("user", at_most=2), columns=COLUMNS, name="v")
    check_stability(prepare(query, {"v": views}).groups, examples=15)


def test_a_join_on_columns_of_other_names_keeps_the_person(tmp_path):
    people, seen = (
        wpinq.protect([], 10**6 if name == "people" else None, columns=columns, name=name, version="1",
                      ledger=tmp_path / "L", unit=wpinq.users(who, at_most=most), delta="0.1")
        for name, columns, who, most in (("people", {"id": str, "town": str}, "id", 1),
                                         ("seen", {"uid": str, "page": str}, "uid", 20))
    )  # fmt: skip
    tables = {"people": people, "seen": seen}
    joined = "people p JOIN seen s ON p.id = s.uid"
    asked = [
        (f"SELECT town, COUNT(DISTINCT s.uid) FROM {joined} GROUP BY town", 20),
        (f"SELECT COUNT(DISTINCT p.id) FROM {joined} WHERE page = 'a'", 1),
        (f"SELECT COUNT(*) FROM {joined}", 20),
        ("SELECT COUNT(*) FROM people p LEFT JOIN (SELECT uid, COUNT(*) AS n FROM seen GROUP BY uid) t ON p.id = t.uid"
         " WHERE n > 3", 1),
    ]  # fmt: skip
    for query, moves in asked:
        made = wpinq.sql(f"EXPLAIN {query}", tables, epsilon=1, delta="1e-6")
        (row,) = made.frame.select("one unit moves", "scale of noise", "epsilon").rows()
        assert row[1] * row[2] == row[0]
        one = prepare(query, tables).counts[0]
        assert sum(sensitivities(one._node).values()) == moves
        check_stability(one, examples=15)


@pytest.mark.parametrize("asked", [
    {"keys": ["Rome"]}, {"delta": "1e-6"}, {"mechanism": "gaussian", "keys": ["Rome"], "delta": "1e-6"},
])  # fmt: skip
def test_who_is_in_both_tables_is_told_what_both_cost(tmp_path, asked):
    """EXPLAIN showed what one table pays, half of it, and an answer with Gaussian noise twice what was charged."""
    people, seen = (
        wpinq.protect([("a", "b")], 10 if name == "people" else None, columns={who: str, what: str}, name=name,
                      version="1", ledger=tmp_path / "L", unit=wpinq.users(who, at_most=most), delta="0.1")
        for name, who, what, most in (("people", "id", "town", 1), ("seen", "uid", "page", 20))
    )  # fmt: skip
    tables = {"people": people, "seen": seen}
    query = "SELECT town, COUNT(*) AS n, COUNT(DISTINCT id) AS d FROM people JOIN seen ON id = uid GROUP BY town"
    told = wpinq.sql(f"EXPLAIN {query}", tables, epsilon=1, **asked).frame
    answer = wpinq.sql(query, tables, epsilon=1, **asked)
    spent = tuple(map(float, people._node.data.ledger.spent()))
    assert (told["epsilon"].sum(), told["delta"].sum()) == pytest.approx(spent)
    assert tuple(answer.cost.values()) == pytest.approx(spent)


@pytest.mark.parametrize("asked", [{}, {"at_most": "auto"}])
def test_a_join_of_a_table_without_a_bound_says_what_to_give(tmp_path, asked):
    """It told to join on the column of the people, as the query did."""
    tables = {
        name: wpinq.protect([], 10 if name == "people" else None, columns={"id": str}, name=name, version="1",
                            ledger=tmp_path / "L", unit=wpinq.users("id", at_most=most))
        for name, most in (("people", 1), ("seen", None))
    }  # fmt: skip
    query = "SELECT COUNT(*) FROM people p JOIN seen s ON p.id = s.id"
    with pytest.raises(PlanError, match=r"keeps any number of records.* Give a number: at_most={'\w+': 10}"):
        wpinq.sql(query, tables, epsilon=1, **asked)
    assert wpinq.sql(query, tables, epsilon=1, at_most={"seen": 3}).cost["epsilon"] == 1


def test_the_noise_of_a_sum_is_told_in_the_unit_of_its_numbers():
    """Its scale was told in parts of the largest number, beside an interval in numbers, and as bins all steps of it."""
    views = wpinq.protect([], 10, unit=wpinq.users("user", at_most=20), columns=COLUMNS)
    told = wpinq.sql("EXPLAIN SELECT SUM(n) AS s, COUNT(*) AS c FROM v", {"v": views}, epsilon=1, bounds={"n": (0, 50)})
    counted, summed = (row[1:5] for row in told.rows)
    assert (counted, summed) == ((20, 20, 20, 40), (1000, 1000, None, 2000))
