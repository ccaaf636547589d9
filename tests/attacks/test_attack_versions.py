"""Attacks by asking again after the data changed: whether that is refused must not depend on what is asked.

The same question on the same version is free, so an answer that stays and a refusal that comes would together tell,
exactly and for nothing, whether what is asked for changed. Each test asks one question about alice, changes the records
of somebody else or hers, and asks again: both must end alike.
"""

import os
import sqlite3
from contextlib import closing
from fractions import Fraction

import duckdb
import pandas as pd
import polars as pl
import pytest
from depth import thin
from servers import postgres

import wpinq
from wpinq.core.ledger import Ledger
from wpinq.errors import ChangedError, SourceError

ROWS = [("alice", "a"), ("bob", "a"), ("cat", "b")]
WHO = ("bob", "alice")


def ask(views):
    return views.filter("user = 'alice'").map("page").measure(0.01).observe("a")


def refused(views, match, *, charged=0):
    """Whatever is asked is refused, and costs nothing; of what no file shows in a ledger of this process, once."""
    before = views.left
    with pytest.raises(ChangedError, match=match):
        ask(views)
    with pytest.raises(ChangedError, match=match):
        views.map("user").measure(1, name="of something else").observe("x")
    assert before - views.left == charged


@pytest.fixture
def database(tmp_path):
    def make(name, mode="delete"):
        path = tmp_path / f"{name}.db"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"PRAGMA journal_mode={mode}")
            connection.execute("CREATE TABLE views (user TEXT, page TEXT)")
            connection.executemany("INSERT INTO views VALUES (?, ?)", ROWS)
        return path

    return make


def write(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_sqlite_that_was_written_to(database, who, mode):
    path = database("shop", mode)
    keeps = sqlite3.connect(path)  # who keeps a database open keeps its log of writes
    keeps.execute("SELECT * FROM views").fetchall()
    views = wpinq.protect(wpinq.sqlite(path, table="views"), budget=10)
    ask(views)
    write(path, ("INSERT INTO views VALUES (?, 'a')", (who,)))
    refused(views, "changed after it was opened")
    with pytest.raises(ChangedError, match="holds other records"):
        wpinq.protect(wpinq.sqlite(path, table="views"), budget=10)
    assert Ledger.existing(path.with_name("shop.db.ledger")).spent()[0] == Fraction(1, 100), "nothing was charged"
    ask(wpinq.protect(wpinq.sqlite(path, table="views"), budget=10, version="next"))
    assert Ledger.existing(path.with_name("shop.db.ledger")).spent()[0] == Fraction(2, 100)
    keeps.close()


def test_sqlite_that_was_written_to_within_one_tick_of_the_clock(database):
    path = database("shop")
    views = wpinq.protect(wpinq.sqlite(path, table="views"), budget=10)
    before = path.stat()
    write(path, "UPDATE views SET page = 'c' WHERE user = 'bob'")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    with pytest.raises(SourceError, match="changed after it was opened"):
        ask(views)


def test_sqlite_is_compared_with_what_is_read_and_not_with_what_was_there_before(database, monkeypatch):
    """Somebody writes after the file was looked at and before it is read."""
    path = database("shop", "wal")
    keeps = sqlite3.connect(path)
    keeps.execute("SELECT * FROM views").fetchall()
    views = wpinq.protect(wpinq.sqlite(path, table="views"), budget=10)
    true, seen = sqlite3.connect, []

    class Late(sqlite3.Cursor):
        def execute(self, text, *more):
            found = super().execute(text, *more)
            if text == "BEGIN" and not seen:
                seen.append(text)
                with closing(true(path)) as other, other:
                    other.execute("INSERT INTO views VALUES ('bob', 'a')")
            return found

    class Connection(sqlite3.Connection):
        def cursor(self):
            return super().cursor(Late)

    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: true(*given, **named, factory=Connection)
                        if str(given[0]).startswith("file:") and "mode=ro" in str(given[0])
                        else true(*given, **named))  # fmt: skip
    with pytest.raises(SourceError, match="changed after it was opened"):
        ask(views)
    assert seen
    keeps.close()


@thin(2)
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("declared", [None, "july"])
def test_postgres_that_was_written_to(server, tmp_path, who, declared):
    url, execute = server

    def opened():
        return wpinq.protect(f"{url}?table=views", budget=10, ledger=tmp_path / "L", version=declared)

    views = opened()
    first = ask(views)
    views.map("page").measure(1).observe("a")
    execute(f"INSERT INTO views VALUES ('{who}', 'a')")
    refused(views, "holds other records")
    with pytest.raises(ChangedError, match=f"first read as '{declared or 'views'}'"):
        opened()
    execute(f"DELETE FROM views WHERE ctid = (SELECT max(ctid) FROM views WHERE \"user\" = '{who}')")
    assert ask(opened()) == first, "a session of its own, and the same rows"
    assert opened().left == Fraction(899, 100)


@pytest.mark.parametrize("change", ["DELETE FROM views WHERE user = 'bob'", "UPDATE views SET page = 'b'",
                                    "UPDATE views SET user = CASE user WHEN 'bob' THEN 'cat' ELSE user END",
                                    "INSERT INTO views SELECT * FROM views"])  # fmt: skip
def test_any_other_records_are_another_version(server, tmp_path, change):
    url, execute = server
    views = wpinq.protect(f"{url}?table=views", budget=10, ledger=tmp_path / "L")
    ask(views)
    execute("CREATE TABLE other AS SELECT * FROM views ORDER BY 2, 1", "DROP TABLE views",
            "ALTER TABLE other RENAME TO views")  # fmt: skip
    views.map("user").measure(1).observe("x")  # the same records in another order are the same records
    execute(change.replace("user ", '"user" '))
    refused(views, "holds other records")


@pytest.fixture(scope="module")
def url():
    with postgres() as found:
        yield found


@pytest.fixture
def server(url):
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:

        def run(*statements):
            for one in statements:
                cursor.execute(one)

        run("DROP TABLE IF EXISTS views", 'CREATE TABLE views ("user" text, page text)',
            "INSERT INTO views VALUES " + ", ".join(map(str, ROWS)))  # fmt: skip
        yield url, run


@pytest.mark.parametrize("who", WHO)
def test_a_pandas_frame_that_is_changed_in_place_stays_what_it_was(who):
    frame = pd.DataFrame({"user": [one for one, _ in ROWS], "page": [one for _, one in ROWS], "n": [1, 2, 3]})
    views = wpinq.protect(frame, budget=2000)
    first = ask(views)
    frame.loc[len(frame)] = [who, "a", 4]
    frame.loc[0, "user"] = "eve"
    frame["n"] = 0
    assert ask(views) == first
    assert views.map("user").measure(900).observe_many(["alice", "eve"]).tolist() == [1, 0]
    assert views.map("n").measure(900).observe_many([0, 1]).tolist() == [0, 1]


def test_what_a_pandas_cell_holds_stays_what_it_was():
    cells = [[1], [2]]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object), "n": [0, 0]})
    views = wpinq.protect(frame, budget=1000)
    cells[0].append(5)
    assert views.measure(900).observe_many([((1,), 0), ((1, 5), 0)]).tolist() == [1, 0]


@pytest.mark.parametrize("who", WHO)
def test_a_polars_frame_that_is_changed_in_place_stays_what_it_was(who):
    frame = pl.DataFrame(ROWS, schema=["user", "page"], orient="row")
    views = wpinq.protect(frame, budget=1000)
    first = ask(views)
    frame.extend(pl.DataFrame([(who, "a")], schema=["user", "page"], orient="row"))
    frame[0, "user"] = "eve"
    frame.insert_column(0, pl.Series("z", range(4)))
    assert ask(views) == first
    assert views.map("user").measure(900).observe_many(["alice", "eve"]).tolist() == [1, 0]


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("kind", ["duckdb", "lazy"])
def test_what_is_computed_anew_for_each_run(tmp_path, who, kind):
    connection = duckdb.connect()
    connection.execute('CREATE TABLE views ("user" TEXT, page TEXT)')
    connection.executemany("INSERT INTO views VALUES (?, ?)", ROWS)
    path = tmp_path / "views.csv"
    frame = pl.DataFrame(ROWS, schema=["user", "page"], orient="row")
    frame.write_csv(path)
    views = wpinq.protect(connection.table("views") if kind == "duckdb" else pl.scan_csv(path), budget=10)
    ask(views)
    views.map("page").measure(1).observe("a")
    connection.execute("INSERT INTO views VALUES (?, 'a')", [who])
    pl.concat([frame, pl.DataFrame([(who, "a")], schema=["user", "page"], orient="row")]).write_csv(path)
    refused(views, "holds other records", charged=1)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("form", ["tuples", "polars", "pandas", "arrow"])
def test_other_records_in_memory_under_one_declared_version(tmp_path, who, form):
    def given(rows):
        frame = pl.DataFrame(rows, schema=["user", "page"], orient="row")
        return {"tuples": rows, "polars": frame, "pandas": frame.to_pandas(), "arrow": frame.to_arrow()}[form]

    def protect(rows):
        named = {"columns": {"user": str, "page": str}} if form == "tuples" else {}
        return wpinq.protect(given(rows), budget=10, ledger=tmp_path / "L", version="july", name="views", **named)

    ask(protect(ROWS))
    ask(protect(list(reversed(ROWS))))
    with pytest.raises(ChangedError, match="first read as 'july'"):
        protect([*ROWS, (who, "a")])


@pytest.mark.parametrize("who", WHO)
def test_a_file_of_the_same_size_under_one_declared_version(tmp_path, who):
    path = tmp_path / "views.csv"

    def protect(rows):
        path.write_text("user,page\n" + "".join(f"{user},{page}\n" for user, page in rows))
        os.utime(path, (1, 1))
        return wpinq.protect(path, budget=10, version="july")

    ask(protect(ROWS))
    with pytest.raises(ChangedError, match="first read as 'july'"):
        protect([(user, "c" if user == who else page) for user, page in ROWS])


def test_a_table_beside_a_live_source_under_one_declared_version(tmp_path):
    """What a live source is joined with is compared too, before anything is answered."""
    path = tmp_path / "people.csv"

    def answer(text):
        path.write_text(text)
        views = wpinq.live({"user": "text"}, budget=10)
        try:
            people = wpinq.protect(path, budget=10, version="july")
            found = views.join(people, on="user").map("town").measure(1)
            views.send([("ann",)])
            views.advance()
            found.observe("rome")
        finally:
            views.close()

    answer("user,town\nann,rome\n")
    with pytest.raises(ChangedError, match="first read as 'july'"):
        answer("user,town\nann,oslo\n")


@pytest.mark.parametrize("columns", [("user",), ("page", "user"), {"user": None, "page": None, "n": float}])
def test_other_columns_of_one_declared_version_are_no_other_records(tmp_path, columns):
    """A digest is of the records as they are read; it must not close a version for whoever reads other columns."""
    table = pl.DataFrame({"user": ["ann", "bob"], "page": ["x", "y"], "n": [1, 2]})

    def asked(**more):
        views = wpinq.protect(table, budget=10, ledger=tmp_path / "ledger", version="1", name="views", **more)
        return views.map(pl.col("user")).measure(epsilon=1).observe("ann")

    first = asked()
    asked(columns=columns)
    assert asked() == first
    table[0, "page"] = "z"
    with pytest.raises(ChangedError, match="first read as '1'"):
        asked(columns=columns) if "page" in columns else asked()
