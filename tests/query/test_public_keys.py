"""Joins with public tables on keys of several columns, and with other conditions in ON, against DuckDB."""

import duck
import polars as pl
import pytest
from depth import thin

import wpinq
from wpinq.core.functions.sql.bind import statement
from wpinq.core.plan.stability import Survey
from wpinq.errors import PlanError
from wpinq.query import prepare
from wpinq.query.select.bounds import Limits
from wpinq.query.select.subquery import Scope

LOUD = 3000  # noise that is zero but for a chance below exp(-300)
PEOPLE = pl.DataFrame({
    "id": [f"u{i}" for i in range(40)], "x": list(range(40)),
    "town": [["Rome", "Oslo", None][i % 7 % 3] for i in range(40)], "sex": ["mf"[i % 3 > 0] for i in range(40)],
    "y": [None if i % 7 == 0 else i % 3 for i in range(40)],
})  # fmt: skip
VISITS = pl.DataFrame({"id": [f"u{i % 20}" for i in range(40)], "page": ["HN"[i % 2] for i in range(40)]})
PUBLIC = {
    "t": pl.DataFrame({"town": ["Rome", "Oslo"], "region": ["s", "n"]}),
    "rates": pl.DataFrame({"town": ["Rome", "Rome", "Oslo"], "sex": ["m", "f", "m"], "w": [1, 2, 3]}),
    "odd": pl.DataFrame({"town": ["Rome", "Rome", "Oslo", None, "Oslo"], "y": [0.0, 1.0, 2.0, 1.0, None],
                         "z": ["a", "b", None, "d", "e"]}),
    "lands": pl.DataFrame({"region": ["s", "n"], "land": ["I", "N"]}),
    "none": pl.DataFrame({"town": [], "y": [], "z": []}, {"town": str, "y": float, "z": str}),
}  # fmt: skip
ANSWERED = """
region FROM t JOIN rates r ON t.town = r.town JOIN p ON p.town = r.town AND p.sex = r.sex
land FROM lands l JOIN t ON l.region = t.region JOIN p ON p.town = t.town
land FROM lands l, t, p WHERE l.region = t.region AND p.town = t.town AND x > 3
land FROM lands l JOIN t ON l.land = 'I', p WHERE l.region = t.region AND p.town = t.town
land FROM lands AS l, t, p, visits v WHERE l.region = t.region AND p.town = t.town AND p.x > 3 AND v.id = p.id
page FROM lands l JOIN t ON l.region = t.region JOIN visits v ON v.page < 'Z' JOIN p ON p.town = t.town AND v.id = p.id
land FROM lands l JOIN t ON l.region = t.region AND l.land = 'I' JOIN p ON p.town = t.town AND p.x > 5
w FROM p JOIN rates r ON p.town = r.town AND p.sex = r.sex
w FROM p JOIN rates USING (town, sex)
w FROM p NATURAL JOIN rates
w FROM p, rates r WHERE p.town = r.town AND p.sex = r.sex AND x > 3
w FROM p LEFT JOIN rates r ON p.town = r.town AND r.sex = p.sex AND p.x > 10
w FROM p LEFT JOIN rates r ON (p.town = r.town) AND (r.sex = p.sex AND r.w > 1)
region FROM p JOIN t USING (town) LEFT JOIN rates USING (town, sex)
region FROM p LEFT JOIN rates r ON p.town = r.town AND p.sex = r.sex LEFT JOIN t ON t.town = r.town AND r.w > 2
z FROM p LEFT JOIN odd ON p.town = odd.town AND odd.y = p.y
z FROM p JOIN odd ON p.town = odd.town AND odd.y = p.y
z FROM p JOIN odd ON p.town = odd.town AND odd.y = p.y WHERE p.x > 4
z FROM p LEFT JOIN odd ON p.town = odd.town AND odd.z = 'b'
z FROM p LEFT JOIN odd ON p.town = odd.town AND odd.z < 'c' AND odd.y = 0 AND (p.x > 3 OR p.x IS NULL)
z FROM p JOIN odd ON p.town = odd.town AND odd.y = p.y AND odd.z < p.town
z FROM p JOIN odd ON p.town = odd.town AND odd.y = p.y AND lower(odd.z) < lower(p.town)
z FROM p JOIN odd ON lower(p.town) = lower(odd.town) AND odd.y = p.x % 3 AND p.y <> 1
z FROM p JOIN odd ON p.town = odd.town AND odd.y = p.y AND p.x = 2
z FROM p LEFT JOIN odd ON p.town = odd.town AND odd.y = p.y AND FALSE
z FROM p LEFT JOIN none ON p.town = none.town AND none.y = p.y
z FROM p JOIN none ON p.town = none.town AND none.y = p.y
z FROM p JOIN (SELECT town, MAX(y) AS y, MIN(z) AS z FROM odd GROUP BY town) o ON p.town = o.town AND o.y = p.y
""".strip().splitlines()


@pytest.fixture
def tables():
    unit = wpinq.users("id", at_most=1)
    visits = wpinq.protect(VISITS, budget=10**6, delta="1e-3", unit=wpinq.users("id", at_most=2), name="visits")
    return {"p": wpinq.protect(PEOPLE, budget=10**6, delta="1e-3", unit=unit, name="p"), "visits": visits, **PUBLIC}


@pytest.fixture(scope="module", name="duck")
def over_frames():
    return duck.over(p=PEOPLE, visits=VISITS, **PUBLIC)


def asked(text):
    key, rest = text.split(" FROM ", 1)
    return f"SELECT {key}, COUNT(*) AS c, COUNT(p.town) FROM {rest} GROUP BY 1 ORDER BY 1"


@thin(3)
@pytest.mark.parametrize("text", ANSWERED)
def test_a_join_on_several_columns_or_conditions_is_that_of_duckdb(text, tables, duck):
    query = asked(text)
    assert list(wpinq.sql(query, tables, epsilon=LOUD, delta="1e-6").rows) == duck.sql(query).fetchall()


@pytest.mark.parametrize("text", ANSWERED)
def test_such_a_join_moves_no_further_than_a_record(text, tables):
    moved = Survey.of(prepare(asked(text), tables).groups._node).scale(1)
    assert moved == (2 if "visits" in text else 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("z FROM p LEFT JOIN odd ON p.town = odd.town AND odd.y = p.y AND odd.z < p.town", "go to WHERE, or to CASE"),
        ("z FROM p LEFT JOIN odd ON p.town = odd.town AND p.x > 3", "town is not unique in odd"),
        ("w FROM p JOIN twice r ON p.town = r.town AND p.sex = r.sex",
         "town, sex together are not unique in r"),
        ("z FROM p JOIN odd ON p.x > 3", "join ON an equality"),
        ("land FROM lands l JOIN t ON l.region = t.region AND l.land = nobody.x JOIN p ON p.town = t.town",
         "name the protected table in FROM"),
        ("land FROM lands l LEFT JOIN t ON l.region = t.region JOIN p ON p.town = t.town", "name the protected table"),
        ("t.town FROM lands, t, p WHERE p.town = t.town", "name the protected table"),
        ("z FROM p JOIN odd ON p.town = odd.town OR odd.y = p.y", "join ON an equality"),
        ("z FROM p JOIN odd ON p.town = odd.town AND odd.y = p.town", "do not compare"),
        ("w FROM p JOIN rates USING (town, nothing)", "join ON an equality"),
    ],
)  # fmt: skip
def test_other_joins_are_refused(text, reason, tables):
    with pytest.raises(PlanError) as caught:
        wpinq.sql(asked(text), {**tables, "twice": pl.concat([PUBLIC["rates"]] * 2)}, epsilon=1, delta="1e-6")
    assert reason in str(caught.value)
    assert tables["p"]._node.data.ledger.spent() == (0, 0)


def test_values_that_one_number_does_not_tell_apart_are_refused(tables):
    many = pl.DataFrame({f"k{i}": list(range(3000)) for i in range(6)} | {"w": list(range(3000))})
    ours = " AND ".join(f"p.x = many.k{i}" for i in range(6))
    query = "SELECT COUNT(*) FROM p JOIN many ON {}"
    with pytest.raises(PlanError, match="too many values to tell apart"):
        wpinq.sql(query.format(ours), {**tables, "many": many}, epsilon=LOUD)
    few = wpinq.sql(query.format(ours.rpartition(" AND ")[0]), {**tables, "many": many}, epsilon=LOUD)
    assert few.rows == ((40,),)


STARS = {
    "p JOIN t USING (town)": ("town", "id", "x", "sex", "y", "region"),
    "t JOIN p USING (town)": ("town", "region", "id", "x", "sex", "y"),
    "t RIGHT JOIN p USING (town)": ("town", "region", "id", "x", "sex", "y"),
    "p JOIN rates USING (sex, town)": ("sex", "town", "id", "x", "y", "w"),
    "p NATURAL JOIN rates": ("town", "sex", "id", "x", "y", "w"),
    "p JOIN t USING (town) JOIN lands USING (region)": ("region", "town", "id", "x", "sex", "y", "land"),
    "lands l JOIN p ON p.town = l.land": ("region", "land", "id", "x", "town", "sex", "y"),
}
"""The columns of a star: what PostgreSQL 15 answered."""


@pytest.mark.parametrize("tables_of", STARS)
def test_a_star_has_its_columns_in_the_order_of_postgresql(tables_of, tables):
    """Of public tables that stand first it had them last, and columns that were renamed by place were others."""
    shown = Scope(tables, Limits(None)).derived(statement(f"SELECT * FROM {tables_of}", "sql")).rows.columns
    assert tuple(shown) == STARS[tables_of]
