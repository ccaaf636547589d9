"""What a name means in each clause, against a real PostgreSQL."""

import random

import polars as pl
import pytest
from depth import deeper, often
from servers import postgres

import wpinq
from wpinq.errors import PlanError, WpinqError

PEOPLE = pl.DataFrame(
    {
        "educ": [i % 7 for i in range(4000)],
        "sex": [i * i % 2 for i in range(4000)],
        "age": [i % 5 * 20 for i in range(4000)],
    }
)
LOUD = 900  # noise of scale 1/300 or less: zero but for a chance below exp(-300)
KNOWN = [
    "SELECT educ AS sex, sex AS educ, COUNT(*) AS n FROM people GROUP BY sex, educ HAVING educ > 2 ORDER BY 1, 2",
    "SELECT age * 1000 AS age, COUNT(*) FROM people GROUP BY age HAVING age < 30 OR age > 60 ORDER BY 1",
    "SELECT -educ AS educ, COUNT(*) AS n FROM people GROUP BY people.educ ORDER BY educ + 0 LIMIT 2",
    "SELECT -educ AS educ, COUNT(*) AS n FROM people GROUP BY people.educ ORDER BY educ LIMIT 2",
    "SELECT -educ AS Educ, COUNT(*) AS n FROM people GROUP BY people.educ ORDER BY (EDUC) LIMIT 2",
    "SELECT educ, COUNT(*) FROM people GROUP BY (1) ORDER BY count DESC, educ LIMIT 3",
    "SELECT sex, COUNT(*) AS educ FROM people GROUP BY sex ORDER BY educ, sex",
]


@pytest.fixture(scope="module")
def database():
    from adbc_driver_postgresql import dbapi

    with postgres() as url, dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("people", PEOPLE.to_arrow())
        yield cursor


@pytest.fixture(scope="module")
def people():
    return wpinq.protect(PEOPLE, budget=10**9, delta="1/2")


def answers(cursor, query):
    """The rows, or None where PostgreSQL refuses the query."""
    from adbc_driver_manager import Error

    try:
        cursor.execute(query)
        return cursor.fetchall()
    except Error:
        return None


def random_query(rng):
    """A query whose output names are often those of columns."""
    names = ["educ", "sex", "age", "n", "Educ", '"Sex"', "people.educ"]
    part = ["educ", "people.educ", "sex", "-age", "age / 20", "-people.educ", "sex + educ"]
    chosen = [(rng.choice(part), rng.choice(names[:6])) for _ in range(rng.randint(1, 3))]
    select = ", ".join(f"{what} AS {name}" for what, name in chosen)
    group = rng.sample([str(place + 1) for place in range(len(chosen))] + names + part, rng.randint(1, 4))
    name = lambda: rng.choice([*names, *part])  # noqa: E731
    having = f" HAVING {name()} {rng.choice('<>=')} {rng.randint(-3, 5)}" if rng.random() < 0.6 else ""
    wraps = ("{}", "({})", "{} + 0", "-{}")
    order = [rng.choice(wraps).format(name()) for _ in range(rng.randint(0, 2))]
    order = ", ".join([*order, *(str(place + 1) for place in range(len(chosen) + 1))])
    return f"SELECT {select}, COUNT(*) AS c FROM people GROUP BY {', '.join(group)}{having} ORDER BY {order}"


@pytest.mark.parametrize("query", KNOWN)
def test_names_mean_what_postgresql_says(query, database, people):
    expected = answers(database, query)
    assert expected
    assert list(wpinq.sql(query, {"people": people}, epsilon=LOUD, delta="1e-6").rows) == expected


@deeper
def test_random_names_mean_what_postgresql_says(database, people):
    rng = random.Random(7)
    answered = 0
    for _ in range(often(1200)):
        query = random_query(rng)
        expected = answers(database, query)
        if expected is None:
            continue
        try:
            found = list(wpinq.sql(query, {"people": people}, epsilon=LOUD, delta="1e-6").rows)
        except PlanError:
            continue  # refused is never wrong
        answered += 1
        assert found == expected, query
    assert answered > often(60)


def test_an_output_name_that_hides_no_column_can_be_used_in_having(people):
    answer = wpinq.sql(
        "SELECT educ, COUNT(*) AS n FROM people GROUP BY educ HAVING n > 571", {"people": people}, epsilon=LOUD,
        delta="1e-6",
    )  # fmt: skip
    assert sorted(answer.rows) == [(0, 572), (1, 572), (2, 572)]


def test_an_output_name_of_two_columns_is_refused(people):
    with pytest.raises(PlanError, match="names several columns of the answer"):
        wpinq.sql("SELECT educ AS x, sex AS x, COUNT(*) FROM people GROUP BY 1, 2 ORDER BY x", {"people": people},
                  epsilon=1, delta="1e-6")  # fmt: skip


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT COUNT(*) FROM people LIMIT {'9' * 5000}",
        f"SELECT COUNT(*) FROM people ORDER BY {'9' * 5000}",
        f"SELECT COUNT(*) FROM people WHERE age > {'9' * 5000}",
        f"SELECT COUNT(*) FROM people WHERE age > -{'9' * 66}",
        f"SELECT COUNT(*) FROM people WHERE TIMESTAMP '2020-01-01' + INTERVAL '{'9' * 5000}' DAY > '2020-01-01'",
    ],
)
def test_numbers_of_many_digits_are_refused(query, people):
    with pytest.raises(WpinqError):
        wpinq.sql(query, {"people": people}, epsilon=1)
