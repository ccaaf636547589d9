"""WHERE below joins: conditions of one table are asked before its people are bounded; answers are those of DuckDB."""

import random

import duck
import polars as pl
import pytest
from depth import deeper, often

import wpinq
from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.operators.filter import Filter
from wpinq.core.plan.node import steps
from wpinq.errors import PlanError
from wpinq.query import prepare
from wpinq.query.select.tables import Tables

LOUD = 10**5
VISITS = pl.DataFrame({
    "user": [f"u{i % 60}" if i % 41 else None for i in range(900)],
    "page": [f"page {i % 13}" for i in range(900)],
    "day": [None if i % 17 == 0 else (i // 60) % 5 for i in range(900)],
})  # fmt: skip
PEOPLE = pl.DataFrame({
    "user": [*(f"u{i}" for i in range(45)), None],
    "town": ["north" if i % 3 else "south" for i in range(46)],
    "age": [None if i % 7 == 0 else i for i in range(46)],
})  # fmt: skip
PAGES = pl.DataFrame({"page": [f"page {i}" for i in range(9)], "kind": list("aabbbcccc")})


def tables(visits=40, people=4):
    given = {}
    for name, frame, most in (("visits", VISITS, visits), ("people", PEOPLE, people)):
        unit = wpinq.users("user", at_most=most)
        given[name] = wpinq.protect(frame, budget=10**9, delta="0.1", unit=unit, name=name)
    return {**given, "pages": PAGES}


def truth(query):
    return duck.rows(query, visits=VISITS, people=PEOPLE, pages=PAGES)


ON = ["v.user = p.user", "v.user = p.user AND p.town = 'north'", "p.age > 9 AND v.user = p.user",
      "v.user = p.user AND (p.age IS NULL OR p.age < 30)"]  # fmt: skip
WHERE = ["v.day = 1", "v.day IS NULL", "v.page <> 'page 3'", "(v.day > 1 OR v.page = 'page 2')", "p.town = 'south'",
         "p.age IS NULL", "p.user IS NULL", "coalesce(p.age, 0) < 20", "v.day < p.age", "NOT p.town = 'north'",
         "v.user IN ('u1', 'u2', 'u44')", "(p.age > 9 OR v.day = 2)"]  # fmt: skip


def drawn(draw):
    join, public = draw.choice(["JOIN", "LEFT JOIN"]), draw.choice(["", " LEFT JOIN pages g ON g.page = v.page"])
    parts = draw.sample(WHERE + (["g.kind = 'b'", "g.kind IS NULL"] if public else []), draw.randint(1, 3))
    return (
        f"SELECT COUNT(*) AS n FROM visits v {join} people p ON {draw.choice(ON)}{public} WHERE {' AND '.join(parts)}"
    )


def wrong(seed, number):
    """The first query whose answer is not that of DuckDB."""
    draw, given = random.Random(seed), tables()
    for _ in range(number):
        query = drawn(draw)
        if [tuple(map(round, row)) for row in wpinq.sql(query, given, epsilon=LOUD).rows] != truth(query):
            return query
    return None


@deeper
def test_answers_are_those_of_duckdb():
    assert wrong(1, often(40)) is None


def test_a_condition_on_the_other_side_of_a_left_join_that_is_asked_before_is_found(monkeypatch):
    whole = Tables.movable.fget

    def every(self):
        self._people |= set(self._columns)
        return whole(self)

    monkeypatch.setattr(Tables, "movable", property(every))
    assert wrong(2, 60) is not None


def bounds(query, given):
    """The tables of a plan with a filter below their bound, beside that of keys that are NULL."""
    found = [node for node in steps(prepare(query, given).groups._node) if isinstance(node, Bound)]
    asked = {node: [one.title for one in steps(node) if isinstance(one, Filter)] for node in found}
    return {node.data.name for node in found if any("all_horizontal" not in title for title in asked[node])}


@pytest.mark.parametrize(
    ("query", "before"),
    [
        ("visits v JOIN people p USING (user) WHERE v.day = 1 AND p.town = 'north'", {"visits", "people"}),
        ("visits v JOIN people p USING (user) WHERE v.day = 1 OR p.town = 'north'", set()),
        ("visits v LEFT JOIN people p USING (user) WHERE v.day = 1 AND p.town = 'north'", {"visits"}),
        ("visits v LEFT JOIN people p ON v.user = p.user AND p.town = 'north'", {"people"}),
        ("people p RIGHT JOIN visits v ON v.user = p.user WHERE day = 1 AND town = 'x'", {"visits"}),
        ("visits v JOIN pages g ON g.page = v.page WHERE v.day = 1 AND g.kind = 'a'", {"visits"}),
        ("visits v, people p WHERE v.user = p.user AND age > 3", {"people"}),
        ("visits WHERE day = 1", {"visits"}),
    ],
)
def test_where_it_is_asked(query, before):
    assert bounds(f"SELECT COUNT(*) FROM {query}", tables()) == before


def test_what_is_left_out_takes_no_places_of_the_bound():
    """Of fifteen visits each, three are of one day: within three records each all of these are found."""
    query = "SELECT COUNT(*) AS n FROM visits v JOIN people p ON v.user = p.user WHERE v.day = 1 AND p.town = 'north'"
    few = wpinq.sql(query, tables(visits=4, people=1), epsilon=LOUD)
    assert [tuple(map(round, row)) for row in few.rows] == truth(query)
    assert few.measurements[0].scale * LOUD == 4, "four visits, and one record of the other table"


def test_each_table_of_a_join_with_itself_has_its_own():
    query = "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.user = b.user WHERE a.day = 1 AND b.day = 2"
    assert [tuple(map(round, row)) for row in wpinq.sql(query, tables(), epsilon=10**7).rows] == truth(query)


def test_of_a_left_join_on_has_no_condition_on_the_preserved_side():
    with pytest.raises(PlanError, match="of a left join, ON has equalities"):
        wpinq.sql(
            "SELECT COUNT(*) FROM visits v LEFT JOIN people p ON v.user = p.user AND v.day = 1", tables(), epsilon=1
        )
