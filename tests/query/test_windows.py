"""Windows within a person: the values of DuckDB, and what they cost."""

import random
from unittest.mock import patch

import duck
import polars as pl
import pytest
from depth import deeper, often, thin

import wpinq
from wpinq.errors import PlanError
from wpinq.query.select import frames

ENDS = frames._ends

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
    "LAG(n, 1, u + 40) OVER (PARTITION BY id ORDER BY u)",
    "LEAD(t, 2, NULL) OVER (PARTITION BY id ORDER BY u)",
    "LEAD(t, 3, 'none') OVER (PARTITION BY t, id ORDER BY u)",
    "SUM(n) FILTER (WHERE x > 0) OVER (PARTITION BY id ORDER BY u ROWS 2 PRECEDING)",
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
    with duck.over(v=FRAME) as connection:
        connection.execute("SET default_null_order='postgres'")
        return sorted(connection.execute(query).fetchall(), key=repr)


@thin(2)
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


BETWEEN = ("1 PRECEDING AND 1 FOLLOWING", "3 PRECEDING AND 2 PRECEDING", "1 FOLLOWING AND UNBOUNDED FOLLOWING",
           "2 FOLLOWING AND 1 FOLLOWING")  # fmt: skip
FRAMES = [
    f"{kind} {frame}"
    for kind in ("ROWS", "GROUPS")
    for frame in ("2 PRECEDING", "CURRENT ROW", *(f"BETWEEN {ends}" for ends in BETWEEN))
] + ["RANGE CURRENT ROW", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS UNBOUNDED PRECEDING",
     "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"]  # fmt: skip
FRAMED = (
    "SUM(n)", "COUNT(*)", "COUNT(t)", "MIN(t)", "MAX(x)", "AVG(n)", "FIRST_VALUE(t)", "LAST_VALUE(x)",
    "NTH_VALUE(n, 2)",
)  # fmt: skip


def random_windows(seed, many):
    """Windows with frames. Ties decide nothing where the frame has them all, and are broken by u elsewhere."""
    draw = random.Random(seed)
    for _ in range(many):
        frame, what = draw.choice(FRAMES), draw.choice(FRAMED)
        ties = "ROWS" not in frame and "VALUE" not in what
        order = ", ".join(f"{name}{draw.choice(['', ' DESC', ' NULLS FIRST'])}" for name in draw.sample("tnx", 2))
        people = draw.choice(["id", "id", "t, id"])
        yield f"{what} OVER (PARTITION BY {people} ORDER BY {order if ties else order + ', u'} {frame})"


def rows_of(windows):
    """A query of rows with the windows behind them, each of which is there once."""
    columns = ", ".join(f"{window} AS k{number}" for number, window in enumerate(windows))
    names = ", ".join(f"k{number}" for number in range(len(windows)))
    inner = f"SELECT id, u, {columns} FROM v WHERE u > 2"
    return f"SELECT id, u, {names}, COUNT(*) FROM ({inner}) AS s GROUP BY id, u, {names}"


def differences(seed, many):
    """Rows in which a random window has another value here than in DuckDB."""
    query = rows_of(list(random_windows(seed, many)))
    expected = exact(query)
    return [row for row in answered(query, [row[:-1] for row in expected]) if row[-1] != 1]


@deeper
def test_random_windows_with_frames_are_those_of_duckdb():
    for seed in range(often(40, 2)):
        assert not differences(seed, 12)


def one_more(frame, index, run, peers):
    begins, stops = ENDS(frame, index, run, peers)
    return max(begins - 1, 0), stops


def rows_for_groups(frame, index, run, peers):
    return ENDS(("ROWS", *frame[1:]), index, run, peers)


def not_beyond_the_end(frame, index, run, peers):
    """An empty frame behind the last row has the last row."""
    begins, stops = ENDS(frame, index, run, peers)
    return min(begins, peers[-1][1] - 1), max(stops, begins)


@pytest.mark.parametrize("wrong", [one_more, rows_for_groups, not_beyond_the_end])
def test_wrong_frames_are_found(wrong):
    with patch.object(frames, "_ends", wrong):
        assert differences(2, 12)


def made(query, rows, keys):
    """The rows that a query makes, as often as they are there, of rows of which all are among keys."""
    table = wpinq.protect(rows, budget=10**12, name="v", unit=wpinq.users("id", at_most=30))
    found = {row[:-1]: row[-1] for row in wpinq.sql(query, {"v": table}, epsilon=10**9, keys=keys).rows}
    assert sum(found.values()) == rows.height
    return found


def test_a_person_who_leaves_takes_no_more_rows_than_they_had():
    """The bound of `group_by(whole=True)` and `flat_map`, exactly: other people's rows stay what they were."""
    query = rows_of(list(random_windows(3, 6))).replace(" WHERE u > 2", "")
    keys = [row[:-1] for row in exact(query)]
    every = made(query, FRAME, keys)
    for person in (1, 2, 3):
        others = made(query, FRAME.filter(pl.col("id").ne_missing(person)), keys)
        assert {row for row in keys if every[row] != others[row]} == {row for row in keys if row[0] == person}


def test_beyond_a_person_a_frame_moves_rows_of_others():
    """Why PARTITION BY t is refused: of DuckDB's rows others change with a person who has few."""
    query = "SELECT id, u, SUM(n) OVER (PARTITION BY t ORDER BY u ROWS 1 PRECEDING) AS k FROM v WHERE id IN (1, {})"
    both, alone = (set(exact(query.format(more))) for more in (2, 1))
    assert any(row[0] == 1 for row in both - alone)
    with pytest.raises(PlanError, match="within a person"):
        wpinq.sql(f"SELECT COUNT(*) FROM ({query.format(2)}) AS s", {"v": protected()}, epsilon=1)


@pytest.mark.parametrize(("frame", "reason"), [
    ("RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", "write ROWS or GROUPS"),
    ("ROWS BETWEEN CURRENT ROW AND 1 PRECEDING", "ends no earlier"),
    ("ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW", "ends no earlier"),
    ("ROWS 1 FOLLOWING", "ends no earlier"),
    ("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES", "leaves no row out"),
    ("ROWS BETWEEN UNBOUNDED FOLLOWING AND UNBOUNDED FOLLOWING", "begins with"),
    ("ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED PRECEDING", "begins with"),
    ("ROWS n PRECEDING", "whole number"),
    ("ROWS 99999 PRECEDING", "whole number"), ("ROWS 1.5 PRECEDING", "whole number"),
])  # fmt: skip
def test_frames_that_are_refused(frame, reason):
    with pytest.raises(PlanError, match=reason):
        query = f"SELECT COUNT(*) FROM (SELECT SUM(n) OVER (PARTITION BY id ORDER BY u {frame}) AS k FROM v) AS s"
        wpinq.sql(query, {"v": protected()}, epsilon=1)


def test_a_default_has_the_type_of_its_column():
    with pytest.raises(PlanError, match="gives two types"):
        query = "SELECT COUNT(*) FROM (SELECT LAG(n, 1, 'none') OVER (PARTITION BY id) AS k FROM v) AS s"
        wpinq.sql(query, {"v": protected()}, epsilon=1)


def test_groups_need_an_order():
    with pytest.raises(PlanError, match="needs ORDER BY"):
        query = "SELECT COUNT(*) FROM (SELECT SUM(n) OVER (PARTITION BY id GROUPS 1 PRECEDING) AS k FROM v) AS s"
        wpinq.sql(query, {"v": protected()}, epsilon=1)


def test_rows_of_a_frame_are_counted_from_one():
    with pytest.raises(PlanError, match="counted from 1"):
        query = "SELECT COUNT(*) FROM (SELECT NTH_VALUE(n, 0) OVER (PARTITION BY id) AS k FROM v) AS s"
        wpinq.sql(query, {"v": protected()}, epsilon=1)


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
    "SELECT *, SUM(n) OVER (ORDER BY u ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS k FROM v",
    "SELECT *, NTILE(4) OVER (PARTITION BY id ORDER BY u) AS k FROM v",
    "SELECT *, FIRST_VALUE(n) FILTER (WHERE n > 1) OVER (PARTITION BY id ORDER BY u) AS k FROM v",
    "SELECT *, LAG(n) FILTER (WHERE n > 1) OVER (PARTITION BY id ORDER BY u) AS k FROM v",
    "SELECT *, MAX(n, 1) OVER (PARTITION BY id) AS k FROM v",
])  # fmt: skip
def test_what_looks_further_is_refused(inner):
    with pytest.raises(PlanError, match="within a person"):
        wpinq.sql(f"SELECT COUNT(*) FROM ({inner}) AS s", {"v": protected()}, epsilon=1)


def test_of_records_no_partition_is_bounded():
    with pytest.raises(PlanError, match="within a person"):
        query = f"SELECT COUNT(*) FROM (SELECT {WINDOWS[0]} AS k FROM v) AS s"
        wpinq.sql(query, {"v": wpinq.protect(FRAME, budget=1, name="v")}, epsilon=1)
