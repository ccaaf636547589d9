"""IN (SELECT ...), EXISTS and numbers of public tables: against DuckDB, and as far as one unit moves them."""

import duck
import polars as pl
import pytest
from depth import thin

import wpinq
from wpinq.core.plan.stability import sensitivities
from wpinq.errors import PlanError
from wpinq.query import prepare
from wpinq.testing import audit, check_stability

VISITS = pl.DataFrame({
    "user": [f"u{i % 60}" if i % 17 else None for i in range(300)],
    "page": [["a", "b", None][i % 3] for i in range(300)],
    "n": [i % 7 if i % 5 else None for i in range(300)],
})  # fmt: skip
PEOPLE = pl.DataFrame({
    "user": [*(f"u{i}" for i in range(90)), None], "town": [["x", "y", None][i % 3] for i in range(91)],
    "page": [["a", None][i % 2] for i in range(91)],
})  # fmt: skip
TOWNS = pl.DataFrame({"town": ["x", "z", None], "size": [3, 5, None]})
FRAMES = {"visits": VISITS, "people": PEOPLE, "towns": TOWNS}
QUERIES = [
    "people WHERE user IN (SELECT user FROM visits WHERE n > 4)",
    "visits WHERE visits.user IN (SELECT p.user FROM people p WHERE p.town = 'x') AND n > 2",
    "people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.user = p.user AND v.page = 'a')",
    "people p WHERE EXISTS (SELECT * FROM visits v WHERE p.user = v.user AND v.page = p.page)",
    "people WHERE NOT EXISTS (SELECT user FROM visits WHERE visits.user = people.user AND n > 5)",
    "people p WHERE p.page IN (SELECT v.page FROM visits v WHERE v.user = p.user AND n < 6)",
    "people WHERE user IN (SELECT user FROM visits GROUP BY user HAVING COUNT(*) > 4)",
    "people WHERE user IN (SELECT user FROM visits) AND NOT EXISTS (SELECT 1 FROM visits v WHERE v.user = people.user "
    "AND v.page = 'b') AND town = 'x'",
    "(SELECT user, SUM(n) AS s FROM visits GROUP BY user) t WHERE s > 12 AND user IN (SELECT user FROM people)",
    "(SELECT user FROM visits WHERE user IN (SELECT user FROM people WHERE town = 'y')) t",
    "people WHERE EXISTS (SELECT 1 FROM towns t WHERE t.town = people.town AND size < 4)",
    "people WHERE NOT EXISTS (SELECT 1 FROM towns t WHERE t.town = people.town)",
    "people WHERE town NOT IN (SELECT town FROM towns WHERE size = 3) OR page = 'a'",
    "people WHERE town NOT IN (SELECT town FROM towns)",
    "people WHERE town IN (SELECT town FROM towns WHERE size > 9)",
    "people WHERE EXISTS (SELECT 1 FROM towns WHERE size > 9) OR town = 'y'",
    "visits WHERE n > (SELECT MIN(size) FROM towns)",
    "visits WHERE n = (SELECT size FROM towns WHERE town = 'x') OR n < (SELECT COUNT(*) FROM towns WHERE size > 9)",
    "visits WHERE n > (SELECT size FROM towns WHERE town = 'nowhere')",
    '(SELECT user AS "sought 0", town FROM people) t WHERE "sought 0" IN (SELECT user FROM visits WHERE n = 3)',
    "people WHERE user = ANY (SELECT user FROM visits WHERE n = 6)",
    "people NATURAL JOIN (SELECT user, COUNT(*) AS n FROM visits WHERE user IS NOT NULL GROUP BY user) t WHERE n > 3",
    "visits RIGHT JOIN people ON visits.user = people.user WHERE visits.user IS NULL OR n > 3",
    "people WHERE town = (SELECT MAX(town) FROM towns WHERE size < 4)",
]


def tables(**more):
    unit = {"visits": wpinq.users("user", at_most=20), "people": wpinq.users("user", at_most=1)}
    made = {name: wpinq.protect(FRAMES[name], budget=10**9, unit=one, name=name) for name, one in unit.items()}
    return {**made, "towns": TOWNS, **more}


@thin(4)
@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_duckdb(query):
    known = duck.rows(f"SELECT COUNT(*) FROM {query}", **FRAMES)
    assert list(wpinq.sql(f"SELECT COUNT(*) FROM {query}", tables(), epsilon=10**5).rows) == known


MOVES = [
    (QUERIES[0], {"people": 1, "visits": 1}),
    ("visits WHERE user IN (SELECT user FROM people)", {"visits": 2, "people": 2}),
    (QUERIES[3], {"people": 1, "visits": 1}),
    (QUERIES[4], {"people": 1, "visits": 2}),
    (QUERIES[6], {"people": 1, "visits": 1}),
    (QUERIES[8], {"visits": 1, "people": 1}),
    ("visits WHERE user IN (SELECT user FROM visits WHERE n > 1)", {"visits": 2}),
    ("visits v WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.user = v.user AND w.n > 1)", {"visits": 2}),
]


def empty(name, most, **columns):
    return wpinq.protect([], budget=1, unit=wpinq.users("user", at_most=most), columns=columns, name=name)


@thin(3)
@pytest.mark.parametrize(("query", "moves"), MOVES)
def test_one_unit_moves_no_more_than_it_is_paid_for(query, moves):
    """Between neighbours with nulls and copies, in either table."""
    given = {"visits": empty("visits", 2, user="text", page="text", n="number"),
             "people": empty("people", 1, user="text", town="text", page="text")}  # fmt: skip
    groups = prepare(f"SELECT COUNT(*) FROM {query}", given).groups
    assert {data.name: move for data, move in sensitivities(groups._node).items()} == moves
    check_stability(groups, examples=15)


def test_no_answer_loses_more_than_is_charged():
    query = "SELECT COUNT(*) FROM v WHERE user IN (SELECT user FROM v WHERE n > 1)"
    found = audit(lambda v: wpinq.sql(query, {"v": v}, epsilon=1), {"user": "text", "n": "number"},
                  unit=wpinq.users("user", at_most=2), cases=3)  # fmt: skip
    assert found, str(found)


REFUSED = [
    (
        "people WHERE town IN (SELECT page FROM visits)",
        "could decide on any number here. Compare the column of the peop",
    ),
    ("people WHERE EXISTS (SELECT 1 FROM visits)", "could decide on any number"),
    ("people WHERE user NOT IN (SELECT user FROM visits)", "one NULL there would leave out all .* write NOT EXISTS"),
    ("people WHERE user IN (SELECT user FROM visits) OR town = 'x'", "a condition of WHERE by itself or with AND"),
    ("people WHERE lower(user) IN (SELECT user FROM visits)", "could decide on any number"),
    ("people WHERE user IN (SELECT n FROM visits)", "compares text with integer"),
    ("people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.user = p.user AND v.page < p.page)", "by = alone; JOIN"),
    ("people p WHERE EXISTS (SELECT COUNT(*) FROM visits v WHERE v.user = p.user)", "without groups and LIMIT"),
    ("people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.user = p.user LIMIT 0)", "without groups and LIMIT"),
    ("people p WHERE p.user IN (SELECT q.user FROM visits v)", "no table 'q'"),
    ("people WHERE user IN (SELECT user, page FROM visits)", "could decide on any number"),
    ("visits WHERE n > (SELECT AVG(n) FROM visits)", "ask for a number first and write"),
    ("visits WHERE n > (SELECT n FROM visits)", "ask for a number first, and write"),
    ("visits WHERE n > (SELECT size FROM towns)", "one value is taken"),
    ("records WHERE user IN (SELECT user FROM people)", "could decide on any number"),
]


@pytest.mark.parametrize(("query", "reason"), REFUSED)
def test_refused_before_anything_is_charged(query, reason):
    given = tables(records=wpinq.protect(PEOPLE, budget=1, name="records"))
    with pytest.raises(PlanError, match=reason) as caught:
        wpinq.sql(f"SELECT COUNT(*) FROM {query}", given, epsilon=1)
    assert len(str(caught.value)) < 500
    assert all(given[name]._node.data.ledger.spent() == (0, 0) for name in ("visits", "people", "records"))


def test_a_live_table_inside_of_a_condition_is_refused():
    live = wpinq.live({"user": str}, budget=1, unit=wpinq.users("user", at_most=1))
    with pytest.raises(PlanError, match=r"answered at once|one ledger|live"):
        wpinq.sql("SELECT COUNT(*) FROM people WHERE user IN (SELECT user FROM live)", tables(live=live), epsilon=1)
