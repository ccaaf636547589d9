"""Queries, views and lazy tables, which may fail on a value: they are run before anything is charged."""

import datetime as dt
import sqlite3
from contextlib import closing

import polars as pl
import pyarrow as pa
import pytest

import wpinq
from wpinq.errors import SourceError
from wpinq.sources import open_source
from wpinq.sources.databases.duckdb import duckdb

LEAST = -(2**63)
COLUMNS = {"user": str, "n": int}
BOTH = pytest.mark.parametrize("alice", [2, LEAST])


def shop(path, number):
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE v (user TEXT, n INTEGER)")
        made.execute("CREATE VIEW w AS SELECT user, abs(n) AS n FROM v")
        made.executemany("INSERT INTO v (user, n) VALUES (?, ?)", [("bob", 1)] * 5 + [("alice", number)])
        made.execute("ALTER TABLE v ADD COLUMN g INTEGER AS (abs(n))")
    made.close()
    return path


def tried(source, ledger, **words):
    """What two questions cost, one with the column that may fail and one without it; None where it is refused."""
    try:
        views = wpinq.protect(source, budget=10, ledger=ledger, name="v", **words)
    except SourceError as refused:
        assert "run once, before anything is charged" in str(refused)
        assert "\n" not in str(refused)
        assert "alice" not in str(refused)
        assert not ledger.exists()
        return None
    views.map("user").measure(1).observe("alice")
    views.map("n").measure(1).observe(1)
    return views.budget.spent


@BOTH
def test_a_query_or_view_of_sqlite_that_fails_on_a_value_is_refused_when_it_is_protected(tmp_path, alice):
    path = shop(tmp_path / "shop.db", alice)
    expected = 2 if alice == 2 else None
    query = wpinq.sqlite(path, query="SELECT user, abs(n) AS n FROM v")
    assert tried(query, tmp_path / "a", columns=COLUMNS) == expected
    assert tried(wpinq.sqlite(path, table="w"), tmp_path / "b", columns=COLUMNS) == expected
    assert tried(wpinq.sqlite(path, table="W"), tmp_path / "c", columns=COLUMNS) == expected


def test_a_table_of_sqlite_reads_no_column_that_is_computed(tmp_path):
    path = shop(tmp_path / "shop.db", LEAST)
    assert tried(wpinq.sqlite(path, table="v"), tmp_path / "a") == 2
    with pytest.raises(SourceError, match="no column 'g'"):
        wpinq.protect(wpinq.sqlite(path, table="v"), columns=("user", "g"), budget=1, ledger=tmp_path / "b")


def test_every_pass_over_a_query_reads_the_same_columns(tmp_path):
    path = shop(tmp_path / "shop.db", LEAST)
    for source in (wpinq.sqlite(path, query="SELECT user, abs(n) AS n FROM v"), wpinq.sqlite(path, table="w")):
        reader = open_source(source)
        for names in (["user"], ["n"], ["n", "user"]):
            with pytest.raises(SourceError):
                list(reader.batches(names))
    (frame,) = open_source(wpinq.sqlite(path, table="w"), columns=("user",)).batches(["user"])
    assert frame.columns == ["user"]


@pytest.mark.parametrize("virtual", ["fts5(user)", "FTS4(user)"])
def test_a_virtual_table_is_computed(tmp_path, virtual):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as made, made:
        try:
            made.execute(f" create  virtual table t using {virtual}")
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no such tables")
    assert not open_source(wpinq.sqlite(tmp_path / "shop.db", table="t")).plain


@pytest.fixture
def stored(tmp_path):
    library = pytest.importorskip("duckdb")

    def make(number):
        path = tmp_path / "shop.duckdb"
        with library.connect(str(path)) as made:
            made.execute("CREATE TABLE v (user text, n bigint)")
            made.executemany("INSERT INTO v VALUES (?, ?)", [("bob", 1)] * 5 + [("alice", number)])
            made.execute("CREATE TABLE computed (user text, n bigint, m bigint AS (abs(n)))")
            made.execute('CREATE VIEW w AS SELECT "user", abs(n) AS n FROM v')
            made.execute("CREATE TABLE plain (user text, n bigint DEFAULT 3)")
        return path

    return make


@BOTH
def test_a_view_or_a_computed_column_of_duckdb_is_run_when_it_is_protected(tmp_path, stored, alice):
    path = stored(alice)
    stored = {name: open_source(duckdb(path, table=name)).stored for name in ("computed", "W", "plain", "V")}
    assert stored == {"computed": False, "W": False, "plain": True, "V": True}
    expected = 2 if alice == 2 else None
    assert tried(duckdb(path, table="w"), tmp_path / "a") == expected
    assert tried(duckdb(path, table="v"), tmp_path / "b") == 2


def test_a_view_of_duckdb_reads_nothing_but_its_file(tmp_path):
    library = pytest.importorskip("duckdb")
    (tmp_path / "other.csv").write_text("user\nann\n")
    with library.connect(str(tmp_path / "shop.duckdb")) as made:
        made.execute(f"CREATE VIEW w AS SELECT * FROM read_csv('{tmp_path / 'other.csv'}')")
    with pytest.raises(SourceError, match="cannot be read"):
        open_source(duckdb(tmp_path / "shop.duckdb", table="w"))


@BOTH
def test_lazy_tables_are_run_when_they_are_protected(tmp_path, alice):
    library = pytest.importorskip("duckdb")
    users = ["bob"] * 5 + ["alice"]
    table = pl.DataFrame({"user": users, "n": [1] * 5 + [alice]})
    expected = 2 if alice == 2 else None
    assert tried(table.lazy().with_columns(pl.col("n").cast(pl.Int32)), tmp_path / "a") == expected
    with library.connect() as made:
        made.register("t", table.to_arrow())
        assert tried(made.sql("SELECT user, abs(n) AS n FROM t"), tmp_path / "b") == expected
    assert tried(table, tmp_path / "c") == 2


def test_a_dataset_with_a_damaged_file_is_refused_when_it_is_protected(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    path = tmp_path / "views.arrow"
    with pa.ipc.new_file(
        path, pa.schema({"user": pa.string()}), options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as w:
        w.write_batch(pa.record_batch({"user": ["a" * 100] * 99}))
    whole = path.read_bytes()
    place = whole.rindex(b"\x28\xb5\x2f\xfd")
    path.write_bytes(whole[:place] + bytes(8) + whole[place + 8 :])
    with pytest.raises(SourceError, match="run once, before anything is charged"):
        wpinq.protect(dataset.dataset(path, format="ipc"), budget=1)


def test_instants_on_clocks_of_a_zone_are_run_too(tmp_path):
    times = [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)] * 2
    table = pl.DataFrame({"user": ["a", "b"], "n": [1, LEAST], "time": times}).lazy()
    with pytest.raises(SourceError, match="run once"):
        wpinq.protect(table.with_columns(pl.col("n").cast(pl.Int8)), tz="Europe/Paris", budget=1)
