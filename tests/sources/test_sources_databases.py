"""PostgreSQL, in a real server, and SQLite: types, snapshots, odd cells, and what must never be shown."""

import datetime as dt
import sqlite3
from collections import Counter
from contextlib import closing
from decimal import Decimal

import polars as pl
import pytest
from depth import deep, often
from hypothesis import given, settings
from hypothesis import strategies as st
from servers import PASSWORD, postgres

import wpinq
from wpinq.core.records.schema import Kind, polars_type
from wpinq.errors import ChangedError, PlanError, SourceError, WpinqError
from wpinq.sources import open_source
from wpinq.sources.databases.postgres import Postgres
from wpinq.sources.databases.sqlite import Sqlite

SECRET = "marker-of-a-record"


def rows(source, columns=None, names=None, shares=1):
    reader = open_source(source, columns=columns)
    found = Counter()
    for part in range(shares):
        for frame in reader.batches(names or reader.schema.names, share=(part, shares)):
            assert frame.dtypes == [polars_type(reader.schema[name].kind) for name in frame.columns]
            found.update(frame.rows())
    return found


@pytest.fixture(scope="module")
def url():
    with postgres() as found:
        yield found


@pytest.fixture
def execute(url):
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:

        def run(*statements):
            for statement in statements:
                cursor.execute(statement)

        yield run
        run("DROP SCHEMA IF EXISTS shop CASCADE", "DROP TABLE IF EXISTS views CASCADE")


def test_a_numeric_of_postgresql_names_nobody_unless_it_is_declared(tmp_path, url, execute):
    execute(
        'CREATE TABLE views ("user" numeric(20, 0))',
        "INSERT INTO views VALUES (12345678901234567890), (12345678901234567891)",
    )
    unit, place = wpinq.users("user", at_most=1), tmp_path / "ledger"
    with pytest.raises(PlanError, match="two people may be one"):
        wpinq.protect(Postgres(url, "views"), budget=10**7, unit=unit, ledger=place)
    views = wpinq.protect(Postgres(url, "views"), budget=10**7, unit=unit, ledger=place, columns={"user": str})
    assert round(views.map(lambda user: 1).measure(10**6).observe(1)) == 2


@deep
def test_what_is_computed_is_run_before_anything_is_charged(tmp_path, url, execute):
    execute(
        'CREATE TABLE views ("user" text, n bigint)',
        f"INSERT INTO views VALUES ('bob', 1), ('{SECRET}', 2)",
        "CREATE SCHEMA shop",
        'CREATE VIEW shop.ratios AS SELECT "user", 10 / (n - 2) AS n FROM views',
        "CREATE TYPE shop.mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE shop.own (m shop.mood)",
        "CREATE TABLE shop.guarded (n int)",
        "ALTER TABLE shop.guarded ENABLE ROW LEVEL SECURITY",
        "CREATE MATERIALIZED VIEW shop.kept AS SELECT n FROM views",
        "CREATE TABLE shop.parted (n int) PARTITION BY RANGE (n)",
    )
    names = ("views", "public.views", "shop.kept", "shop.parted", "shop.ratios", "shop.own", "shop.guarded")
    found = {name: open_source(Postgres(url, name)).stored for name in names}
    assert found == dict.fromkeys(names[:4], True) | dict.fromkeys(names[4:], False)
    query = 'SELECT "user", 10 / (n - {}) AS n FROM views'
    for source in (Postgres(url, "shop.ratios"), Postgres(url, query=query.format(2))):
        with pytest.raises(SourceError, match="run once, before anything is charged") as refused:
            wpinq.protect(source, budget=1, ledger=tmp_path / "ledger")
        assert SECRET not in str(refused.value)
    assert not (tmp_path / "ledger").exists()
    for source in (Postgres(url, "views"), Postgres(url, query=query.format(3))):
        wpinq.protect(source, budget=1, ledger=tmp_path / f"{source.where}.ledger").map("n").measure(1).observe(1)


@pytest.fixture
def server(url, execute):
    execute("CREATE TABLE views (id serial, \"user\" text, page varchar(20), secret text)",
            f"INSERT INTO views (\"user\", page, secret) SELECT 'u' || g % 7, 'p' || g % 3, '{SECRET}' "
            "FROM generate_series(1, 300) g",
            "INSERT INTO views (\"user\") VALUES (NULL)")  # fmt: skip
    return url


def test_tables_are_streamed_as_they_are(server):
    expected = Counter((f"u{g % 7}", f"p{g % 3}") for g in range(1, 301)) + Counter([(None, None)])
    for source in (Postgres(server, "views"), Postgres(server, "public.views"), f"{server}?table=views",
                   wpinq.postgres(server, query='SELECT "user", page FROM views -- all')):  # fmt: skip
        assert rows(source, names=["user", "page"], shares=3) == expected
    reader = open_source(Postgres(server, "views"))
    assert str(reader.schema) == "(id: integer, user: text, page: text, secret: text)"
    assert (reader.name, reader.path, reader.version(), reader.content()) == ("views", None, None, None)
    assert rows(Postgres(server, "views"), ["page", "user"]).total() == 301


def test_only_needed_columns_are_selected_in_a_reading_transaction(server, execute):
    reader = open_source(Postgres(server, "views"))
    execute("ALTER TABLE views DROP COLUMN secret")
    assert sum(frame.height for frame in reader.batches(["page"])) == 301
    with pytest.raises(SourceError, match="no such column"):
        list(reader.batches(["secret"]))
    execute("CREATE FUNCTION write() RETURNS int AS 'INSERT INTO views DEFAULT VALUES RETURNING 1' LANGUAGE sql")
    with pytest.raises(SourceError):
        rows(Postgres(server, query="SELECT write() AS x"))
    assert rows(Postgres(server, "views")).total() == 301


def test_one_pass_sees_one_snapshot(server, execute, monkeypatch):
    execute("INSERT INTO views (page) SELECT repeat('x', 20) FROM generate_series(1, 100000)")
    monkeypatch.setattr("wpinq.sources.databases.postgres.CHUNK", 1 << 16)
    batches = open_source(Postgres(server, "views")).batches(["page", "user"])
    first = next(batches).height
    assert first < 100_301
    execute("DELETE FROM views")
    assert first + sum(frame.height for frame in batches) == 100_301


def test_types(url, execute):
    execute(
        "CREATE SCHEMA shop",
        "CREATE TYPE shop.mood AS ENUM ('sad', 'glad')",
        'CREATE TABLE shop."odd ""names" (i2 smallint, i8 bigint, f real, n numeric, b bool, d date, t timestamp, '
        "z timestamptz, y bytea, u uuid, j jsonb, a int[], v interval, m shop.mood, c char(3), h time)",
        'INSERT INTO shop."odd ""names" VALUES (1, 9223372036854775807, 1.5, 1.25, true, \'2026-01-31\', '
        "'2026-01-31 12:00', '2026-01-31 12:00+01', 'x', '00000000-0000-0000-0000-000000000001', "
        "'{\"a\": 1}', '{1,2}', '1 day', 'glad', 'ab', '01:00')",
        "INSERT INTO shop.\"odd \"\"names\" (n, d, t, z) VALUES ('NaN', 'infinity', '-infinity', 'infinity')",
        'INSERT INTO shop."odd ""names" (n) VALUES (1e400)',
    )
    reader = open_source(Postgres(url, 'shop.odd "names'))
    words = "int int float float bool date time instant bytes text text text text text text span"
    assert [column.kind for column in reader.schema] == [Kind[word.upper()] for word in words.split()]
    (frame,) = reader.batches(reader.schema.names)
    one, two, three = frame.rows()
    noon = dt.datetime(2026, 1, 31, 12)
    assert one == (
        1, 2**63 - 1, 1.5, 1.25, True, noon.date(), noon, noon.replace(hour=11, tzinfo=dt.UTC), b"x",
        "00000000-0000-0000-0000-000000000001", '{"a": 1}', "{1,2}", "1 day", "glad", "ab ", dt.timedelta(hours=1),
    )  # fmt: skip
    assert two[3] != two[3]  # NaN
    assert two[5:8] == (None, None, None)
    assert three[3] in (None, float("inf"))
    assert rows(Postgres(url, 'shop.odd "names'), {"n": str}, ["n"]) == Counter(
        [("1.25",), ("NaN",), ("1" + "0" * 400,)]
    )


def test_nothing_secret_is_ever_shown(server, tmp_path):
    host = server.rpartition("@")[2]
    cases = [
        (Postgres(server, "nothing"), "there is no such table or view"),
        (Postgres(server.replace(PASSWORD, "wrong-" + PASSWORD), "views"), "user or password"),
        (Postgres(f"postgresql://ann:{PASSWORD}@127.0.0.1:1/x", "views"), "cannot be reached"),
        (Postgres(server, 'views"; DROP TABLE views; --'), "there is no such table"),
        (
            Postgres(server, query=f"SELECT CAST(secret AS int) FROM views WHERE secret <> '{PASSWORD}'"),
            "or its driver refused",
        ),
        (Postgres(server, query="SELECT 1 AS x; DROP TABLE views"), "does not understand"),
        (f"{server}?table=views&query=x", "name the table"),
        (f"postgresql://ann:{PASSWORD}@{host}", "name the table"),
    ]
    for source, reason in cases:
        with pytest.raises(SourceError, match=reason) as caught:
            rows(source)
        for text in (str(caught.value), repr(source) if isinstance(source, Postgres) else ""):
            assert PASSWORD not in text
            assert SECRET not in text
            assert "\n" not in text
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None or caught.value.__suppress_context__
    place = tmp_path / "ledger"
    views = wpinq.protect(f"{server}?table=views", budget=1, ledger=place)
    views.map("page").measure(0.5).observe("p1")
    shown = repr(views) + views.explain() + repr(open_source(Postgres(server, "views")))
    assert PASSWORD not in shown
    assert all(PASSWORD.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    assert rows(Postgres(server, "views")).total() == 301


def test_protect_counts_a_table(server, tmp_path, execute):
    with pytest.raises(PlanError, match="outlives this process"):
        wpinq.protect(wpinq.postgres(server, table="views"), budget=1)
    source = wpinq.postgres(server, table="views")
    views = wpinq.protect(source, budget=1000, ledger=tmp_path / "ledger", version="monday")
    assert views.filter("page = 'p1'").map("page").measure(400, name="one").observe("p1") == 100
    again = wpinq.protect(source, ledger=tmp_path / "ledger", version="monday")
    asked = again.filter("page = 'p1'").map("page").measure(400, name="one")  # the same question: free
    assert asked.key_owner.ledger.remaining() == 600
    execute("DELETE FROM views")
    with pytest.raises(ChangedError):
        asked.observe("p1")


def test_a_table_of_a_server_is_one_version_in_every_session(server, tmp_path):
    for _ in range(2):
        views = wpinq.protect(Postgres(server, "views"), budget=3, ledger=tmp_path / "ledger")
        assert views.map("page").measure(1).key_owner.ledger.remaining() == 2


cells = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
)


@settings(max_examples=often(40))
@given(st.lists(st.tuples(cells, cells, cells, cells), max_size=6))
def test_odd_cells_of_sqlite_are_null_and_move_nothing_else(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("sqlite") / "x.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (i INTEGER, f DOUBLE PRECISION, s TEXT, x)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", records)
        kept = connection.execute("SELECT i, f, s, x FROM t").fetchall()
    connection.close()
    together = rows(Sqlite(path, "t"))
    alone = Counter()
    for number in range(len(records)):
        alone += rows(Sqlite(path, query=f"SELECT * FROM t LIMIT 1 OFFSET {number}"))
    assert together == alone
    types = (int, (int, float), str)
    fits = [
        tuple(one if isinstance(one, type_) else None for one, type_ in zip(row[:3], types, strict=True))
        for row in kept
    ]
    assert Counter(row[:3] for row in together.elements()) == Counter(fits)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            'CREATE TABLE "odd ""table" (zip TEXT, day DATE, at TIMESTAMP, ok BOOLEAN, price DECIMAL(5,2), raw BLOB)'
        )
        connection.executemany(
            'INSERT INTO "odd ""table" VALUES (?, ?, ?, ?, ?, ?)',
            [("80127", "2026-01-31", "2026-01-31 12:00:00", 1, 1.5, b"x"), ("x", "soon", "never", 7, "cheap", "text"),
             (b"\xff", 5, 5, "true", 2, None)],
        )  # fmt: skip
        connection.execute('INSERT INTO "odd ""table" (zip) VALUES (CAST(x\'ff\' AS TEXT))')
    connection.close()
    return path


def test_sqlite_types_and_odd_cells(file):
    source = wpinq.sqlite(file, table='odd "table')
    assert [column.kind.name for column in open_source(source).schema] == [
        "TEXT",
        "DATE",
        "TIME",
        "BOOL",
        "FLOAT",
        "BYTES",
    ]
    noon = dt.datetime(2026, 1, 31, 12)
    nothing = (None,) * 6
    assert rows(source) == Counter([("80127", noon.date(), noon, True, 1.5, b"x"), ("x", *nothing[1:]),
                                    (None, None, None, None, 2.0, None), nothing])  # fmt: skip
    typed = {"zip": int, "ok": int, "price": int}
    assert rows(source, typed, ["zip", "ok", "price"]) == Counter(
        [(80127, 1, None), (None,) * 3, (None, None, 2), (None,) * 3]
    )
    assert rows(wpinq.sqlite(file, query='SELECT zip || 1 AS z FROM "odd ""table"'), {"z": str})[("801271",)] == 1


def test_sqlite_is_read_only_and_says_nothing(file, tmp_path):
    before = file.read_bytes()
    cases = [
        (f"sqlite:{file}?table=nothing", "no such table"),
        (f"sqlite:{file}", "name the file and its table"),
        (f"sqlite:{file}?table=x&query=y", "name the file and its table"),
        (wpinq.sqlite(file, query="SELECT 1; DROP TABLE x"), "it cannot be read"),
        (wpinq.sqlite(file, query="DELETE FROM x"), "it cannot be read"),
        (wpinq.sqlite(file, query=f"SELECT json_extract('{SECRET}', '$') AS x"), "it cannot be read"),
        (wpinq.sqlite(tmp_path / "no.db", table="x"), "no such file"),
    ]
    for source, reason in cases:
        with pytest.raises(SourceError, match=reason) as caught:
            rows(source)
        assert SECRET not in str(caught.value)
    (tmp_path / "bad.db").write_text("x" * 5000)
    with pytest.raises(SourceError, match="is it an SQLite file"):
        rows(wpinq.sqlite(tmp_path / "bad.db", table="x"))
    with pytest.raises(SourceError, match="cannot be read as date"):
        open_source(wpinq.sqlite(file, table='odd "table'), columns={"ok": dt.date})
    assert file.read_bytes() == before


def test_sqlite_versions_follow_the_file(file):
    source = wpinq.sqlite(file, table='odd "table')
    first = open_source(source).version()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute('DELETE FROM "odd ""table"')
    connection.close()
    assert open_source(source).version() != first
    views = wpinq.protect(f"sqlite:{file}?table=odd%20%22table", budget=100)
    assert views.map("zip").measure(50).observe("80127") == 0
    assert file.with_name("shop.db.ledger").exists()


def test_protect_of_sqlite_equals_protect_of_its_rows(tmp_path):
    path = tmp_path / "views.db"
    frame = pl.DataFrame({"user": [f"u{i % 50}" for i in range(2000)], "page": [i % 9 for i in range(2000)]})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE views (user TEXT, page INTEGER)")
        connection.executemany("INSERT INTO views VALUES (?, ?)", frame.rows())
    connection.close()
    assert rows(wpinq.sqlite(path, table="views")) == Counter(frame.rows())
    with pytest.raises(WpinqError):
        wpinq.sqlite(path)


def test_numbers_of_the_two_databases_agree(server, execute, tmp_path):
    execute(
        "CREATE SCHEMA IF NOT EXISTS shop", "CREATE TABLE shop.n (x numeric)", "INSERT INTO shop.n VALUES (0.1), (2.5)"
    )
    path = tmp_path / "n.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE n (x NUMERIC)")
        connection.executemany("INSERT INTO n VALUES (?)", [(float(Decimal("0.1")),), (2.5,)])
    connection.close()
    assert rows(Postgres(server, "shop.n")) == rows(Sqlite(path, "n"))
