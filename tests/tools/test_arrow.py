"""Answers and frames where other libraries meet them: Polars' namespace, the Arrow stream, DuckDB, ADBC."""

import json

import adbc_driver_sqlite.dbapi
import duckdb
import polars as pl
import pyarrow as pa
import pytest

import wpinq
import wpinq.tools.polars

VISITS = pl.DataFrame({"user": [f"u{number % 40}" for number in range(120)], "page": ["a", "b", "c"] * 40})
KEYS = ["a", "b", "absent"]


@pytest.fixture
def answer():
    views = wpinq.protect(VISITS, budget=10)
    return wpinq.sql("SELECT page, COUNT(*) AS n FROM v GROUP BY page", {"v": views}, epsilon=1, keys=KEYS)


@pytest.mark.parametrize("frame", [VISITS, VISITS.lazy()], ids=["data", "lazy"])
def test_a_frame_protects_itself_as_protect_does(frame, tmp_path):
    person, place = wpinq.users("user", at_most=2), tmp_path / "ledger"
    options = {"unit": person, "ledger": place, "version": "1", "name": "visits"}
    pages = frame.wpinq.protect(4, **options).map("page").measure(epsilon=1)
    same = wpinq.protect(frame, 4, **options).map("page").measure(epsilon=1)
    assert pages.observe_many(KEYS).tolist() == same.observe_many(KEYS).tolist()
    assert wpinq.budget(place).left == 3
    with pytest.raises(wpinq.PlanError, match="need a budget"):
        frame.wpinq.protect()


def test_an_answer_is_an_arrow_stream_that_describes_itself(answer):
    table = answer.to_arrow()
    assert pl.DataFrame(answer).equals(answer.frame) and pa.table(answer).equals(table)
    assert json.loads(table.schema.metadata[b"wpinq"])["cost"] == {"epsilon": 1.0, "delta": 0.0}
    ((total,),) = duckdb.sql("SELECT sum(n) FROM answer").fetchall()
    assert total == answer.frame["n"].sum()


def test_any_values_are_text_in_arrow():
    found = wpinq.protect([(("a", 1),), (None,)], budget=1, columns=("key",)).measure(1).release(keys=[("a", 1)])
    assert found.to_arrow()["key"].to_pylist() == ["('a', 1)"]


def test_adbc_takes_answers_and_gives_records(answer):
    with adbc_driver_sqlite.dbapi.connect() as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("published", answer)
        cursor.adbc_ingest("visits", VISITS)
        cursor.execute("SELECT n FROM published")
        assert [n for (n,) in cursor.fetchall()] == answer.frame["n"].to_list()
        cursor.execute("SELECT user, page FROM visits")
        views = wpinq.protect(cursor.fetch_record_batch(), budget=1000)
        assert [round(n) for n in views.map("page").measure(epsilon=900).observe_many(KEYS)] == [40, 40, 0]
