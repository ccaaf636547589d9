"""Rows that are counted in the database: the same records as those that are read, of awkward values too."""

import sqlite3
from collections import Counter
from contextlib import closing

import polars as pl
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.core.functions.bind import bind
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import sources
from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT
from wpinq.core.runs import run
from wpinq.core.runs.run import compute
from wpinq.sources import open_source
from wpinq.sources.databases import counting, sqlite
from wpinq.sources.databases import duckdb as duckdb_files

duck = pytest.importorskip("duckdb")
TEXTS = ["", " ", "a", "A", "a ", "a\0", "a\0b", "é", "e\u0301", "e", "ß", "ss", "SS", "i", "İ", "1", "1.0", "🙂"]
INTEGERS = [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, float("nan"), float("inf"), 2.0**53, 1e308, 5e-324]
BLOBS = [b"", b"a", b"\xff", b"a\0", b"1"]
SQLITE = """CREATE TABLE t (s TEXT COLLATE NOCASE, trimmed TEXT COLLATE RTRIM, i INTEGER, f REAL, x,
y ANY COLLATE NOCASE, b BLOB, k BOOLEAN, d DATE, at TIMESTAMP, n NUMERIC)"""
DUCKDB = """CREATE TABLE t (s VARCHAR COLLATE NOCASE, accents VARCHAR COLLATE NOACCENT, i BIGINT, u UBIGINT, f DOUBLE,
b BLOB, k BOOLEAN, d DATE, m TIMESTAMP, z TIMESTAMPTZ, h HUGEINT, n DECIMAL(18, 2))"""
TIMES = ["2026-01-31 12:00:00", "2026-01-31", "0001-01-01", "9999-12-31", "soon", "290000-01-01", "infinity"]

anything = st.sampled_from([None, *TEXTS, *INTEGERS, *FLOATS, *BLOBS, True, *TIMES])


def of(*values):
    return st.sampled_from([None, *values])


fitting = st.tuples(
    of(*TEXTS), of(*TEXTS), of(*INTEGERS), of(0, 1, 2**64 - 1, 2**63), of(*FLOATS),
    of(*BLOBS), of(True, False), of("2026-01-31", "infinity", "290000-01-01"),
    of("2026-01-31 12:00:00", "0001-01-01", "-infinity", "20000-01-01"), of("2026-01-31 12:00:00+01"),
    of(0, 2**64, -(2**90)), of(1.5, 2),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("counted")


@pytest.fixture(autouse=True)
def _small_lots(monkeypatch):
    monkeypatch.setattr(sqlite, "ROWS_PER_FETCH", 5)
    monkeypatch.setattr(duckdb_files, "ROWS_PER_LOT", 5)
    monkeypatch.setattr(counting, "PAUSE", 1)


def in_sqlite(path, rows, made=SQLITE):
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(made)
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return wpinq.sqlite(path, table="t")


def in_duckdb(path, rows, made=DUCKDB, *more):
    path.unlink(missing_ok=True)
    with closing(duck.connect(str(path))) as connection:
        connection.execute(made)
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
        for statement in more:
            connection.execute(statement)
    return duckdb_files.duckdb(path, table="t")


def records(reader, frames):
    """Records with their number, and how many rows had weights."""
    found, weighted = Counter(), 0
    for frame in frames:
        rows = canonical.bits(canonical.frame(frame, reader.schema.select([c for c in frame.columns if c != WEIGHT])))
        counts = rows[WEIGHT].to_list() if WEIGHT in rows.columns else [1] * rows.height
        weighted += rows.height if WEIGHT in rows.columns else 0
        names = [name for name in rows.columns if name != WEIGHT]
        for row, number in zip(rows.select(pl.col(names).to_physical()).rows(), counts, strict=True):
            assert number > 0
            found[row] += number
    return found, weighted


def agree(source, *chosen):
    """How many rows came with weights, of some columns, or of all and of each alone; fails where records differ."""
    reader, weighted = open_source(source), 0
    for names in chosen or [reader.schema.names, *([name] for name in reader.schema.names)]:
        expected, none = records(reader, reader.batches(names))
        found, some = records(reader, reader.counted(names))
        assert found == expected, names
        assert not none
        weighted += some
    return weighted


def repeated(rows):
    return st.lists(rows, min_size=1, max_size=4).map(lambda some: some * 4)


@settings(max_examples=often(60))
@given(repeated(st.tuples(*[anything] * 11)))
def test_counts_of_sqlite_are_those_of_the_rows_that_are_read(folder, rows):
    assert agree(in_sqlite(folder / "t.db", rows))


@settings(max_examples=often(40))
@given(repeated(fitting))
def test_counts_of_duckdb_are_those_of_the_rows_that_are_read(folder, rows):
    source = in_duckdb(folder / "t.duckdb", rows)
    fine = [name for name in open_source(source).schema.names if name in open_source(source).fine]
    assert len(fine) == 8
    assert agree(source, fine, fine[:2], fine[2:4], ["m"], ["s", "f"])


EVERY = [(value,) * 11 for value in [None, *TEXTS, *INTEGERS, *FLOATS, *BLOBS, *TIMES]] * 2
FITTING = [(text, text, *[None] * 10) for text in TEXTS] * 2


def test_wrong_groups_are_found(folder, monkeypatch):
    """Planted: groups by the collation of a column, which are not those of its values."""
    monkeypatch.setattr(sqlite, "ROWS_PER_FETCH", 1000)
    monkeypatch.setattr(duckdb_files, "ROWS_PER_LOT", 1000)
    file = in_sqlite(folder / "all.db", EVERY)
    assert agree(file)
    with monkeypatch.context() as patch, pytest.raises(AssertionError):
        patch.setattr(sqlite, "BYTEWISE", "")
        agree(file)
    made = in_duckdb(folder / "all.duckdb", FITTING)
    assert agree(made)
    with monkeypatch.context() as patch, pytest.raises(AssertionError):
        patch.setattr(duckdb_files, "BYTEWISE", "")
        agree(made)


@pytest.mark.parametrize("number", ["rowid", "oid", "_rowid_", "ROWID", "none"])
def test_a_column_with_the_name_of_the_numbers_of_rows_is_a_column(folder, number):
    rows = [("a", 7)] * 8 + [("b", 7)] * 8
    assert agree(in_sqlite(folder / "n.db", rows, f"CREATE TABLE t (s TEXT, {number} INTEGER)"))
    weighted = agree(in_duckdb(folder / "n.duckdb", rows, f"CREATE TABLE t (s VARCHAR, {number} BIGINT)"))
    assert bool(weighted) == (number.lower() != "rowid")


def test_a_table_whose_rows_have_no_numbers_is_read(folder):
    rows = [("a", key) for key in range(8)]
    made = "CREATE TABLE t (s TEXT, k INTEGER PRIMARY KEY) WITHOUT ROWID"
    assert not agree(in_sqlite(folder / "w.db", rows, made))
    taken = "CREATE TABLE t (rowid TEXT, oid TEXT, _rowid_ TEXT)"
    assert not agree(in_sqlite(folder / "w.db", [("a", "b", "c")] * 9, taken))


def test_numbers_of_rows_may_lie_anywhere(folder):
    numbers = [-(2**63), -(2**63) + 1, -5, 0, 3, 2**40, 2**63 - 2, 2**63 - 1]
    made = "CREATE TABLE t (k INTEGER PRIMARY KEY, s TEXT)"
    for last in range(1, len(numbers) + 1):
        agree(in_sqlite(folder / "far.db", [(number, "a") for number in numbers[:last]], made))
    deleted = "DELETE FROM t WHERE k BETWEEN 3 AND 17 OR k > 30"
    rows = [(number, "a") for number in range(40)]
    assert agree(in_duckdb(folder / "far.duckdb", rows, "CREATE TABLE t (k BIGINT, s VARCHAR)", deleted))


@pytest.mark.parametrize("rows", [0, 1, 4, 5, 6, 10, 11])
def test_every_row_is_in_one_lot(folder, rows):
    made, some = "CREATE TABLE t (s TEXT)", [("a",)] * 11
    gone = f"DELETE FROM t WHERE rowid > {rows}"
    source = in_sqlite(folder / "lots.db", some, made)
    with closing(sqlite3.connect(folder / "lots.db")) as connection, connection:
        connection.execute(gone)
    assert bool(agree(source)) == (rows > 0)
    assert bool(agree(in_duckdb(folder / "lots.duckdb", some, made, gone.replace("> ", ">= ")))) == (rows > 0)


def test_macros_of_a_file_of_duckdb_mean_nothing(folder):
    names = ["count(x)", "count_star()", "lower(x)", "max(x)", "upper(x)", "contains(x, y)", "current_schema()"]
    macros = [f"CREATE MACRO {name} AS 77" for name in names]
    tables = [f"CREATE MACRO {name}() AS TABLE SELECT 1 AS x" for name in ("duckdb_tables", "duckdb_columns")]
    source = in_duckdb(folder / "m.duckdb", [("a",)] * 9, "CREATE TABLE t (s VARCHAR)", *macros, *tables)
    assert agree(source)


def test_what_cannot_be_counted_is_read(folder, monkeypatch):
    source = in_duckdb(folder / "o.duckdb", [("a",)] * 9, "CREATE TABLE t (s VARCHAR)")
    ran = duckdb_files._Lots._ran

    def full(self, columns, first, rest):
        if rest:
            raise duck.OutOfMemoryException("full")
        return ran(self, columns, first, rest)

    monkeypatch.setattr(duckdb_files._Lots, "_ran", full)
    assert not agree(source)


def test_nothing_that_is_computed_is_counted(folder):
    in_sqlite(folder / "v.db", [("a",)] * 9, "CREATE TABLE t (s TEXT)")
    with closing(sqlite3.connect(folder / "v.db")) as connection, connection:
        connection.execute("CREATE VIEW v AS SELECT s FROM t")
    assert not agree(wpinq.sqlite(folder / "v.db", table="v"))
    assert not agree(wpinq.sqlite(folder / "v.db", query="SELECT s FROM t"))
    in_duckdb(folder / "v.duckdb", [("a",)] * 9, "CREATE TABLE t (s VARCHAR)", "CREATE VIEW v AS SELECT s FROM t")
    assert not agree(duckdb_files.duckdb(folder / "v.duckdb", table="v"))


def plans(views):
    yield views.map("s")
    yield views.filter("s <> 'a'").map("s, i")
    yield views.group_by("s").map(lambda s, group: (s, len(group)))
    yield views.map("s").union(views.map("s").filter("s = 'A'"))
    yield views.map("i")
    yield views.distinct()


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_histograms_are_those_of_the_rows(folder, tmp_path, monkeypatch, engine):
    rows = [(text, number) for text in TEXTS for number in (1, 2, 2, 3)] * 3
    typed = "CREATE TABLE t (s VARCHAR COLLATE NOCASE, i BIGINT)"
    source = (in_sqlite if engine == "sqlite" else in_duckdb)(folder / f"h.{engine}", rows, typed)
    views = wpinq.protect(source, budget=1, ledger=tmp_path / "ledger")
    asked = [plan._node for plan in plans(views)]

    def contents():
        parts = [histogram.content() for node in asked for histogram in compute([node])]
        return [sorted(zip(ids.tolist(), weights.tolist(), strict=True)) for ids, weights in parts]

    calls = []
    right = counting.counted
    module = sqlite if engine == "sqlite" else duckdb_files
    monkeypatch.setattr(module, "counted", lambda *args, **words: calls.append(1) or right(*args, **words))
    counted = contents()
    assert calls
    monkeypatch.setattr(DataSet, "counted", lambda data, names, _, **words: data.batches(names, **words))
    calls.clear()
    assert contents() == counted
    assert not calls


VIEWS = "CREATE TABLE t (user VARCHAR, page VARCHAR COLLATE NOCASE, n BIGINT, day TIMESTAMP)"
UNITS = [
    wpinq.users("user", at_most=1),
    wpinq.users("user", at_most=4, per=("page", 1)),
    wpinq.users("user", shared=True),
    wpinq.users("user", at_most=2, period="1mo", at="day"),
    wpinq.users("user", shared=True, period="1d", at="day"),
]
seen = st.tuples(
    of("ann", "bob", "Bob"), of("a", "A", "b", "a "), of(1, 2), of("2026-01-31 23:00:00", "2026-02-01 00:00:00")
)
several = st.lists(st.tuples(seen, st.integers(1, 6)), min_size=1, max_size=8).map(
    lambda some: [row for row, times in some for _ in range(times)]
)


def people(views):
    yield views.map("page")
    yield views.filter("page = 'a' OR n = 2").map("page")
    yield views.filter("NOT page IN ('a', 'b')").map("user, n")


def samples(views, counted):
    """The histograms of plans over people, as their source is read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "indexed", list)
        patch.setattr(DataSet, "counted", counted)
        parts = [histogram.content() for plan in people(views) for histogram in compute([plan._node])]
    return [sorted(zip(ids.tolist(), weights.tolist(), strict=True)) for ids, weights in parts]


def one_by_one(data, names, anyone, **words):
    return data.batches(names, **words)


def of_people(folder, engine, rows, unit, **words):
    source = (in_sqlite if engine == "sqlite" else in_duckdb)(folder / f"p.{engine}", rows, VIEWS)
    for path in folder.glob("people.ledger*"):
        path.unlink()
    return wpinq.protect(source, unit=unit, budget=1, ledger=folder / "people.ledger", secret=Secret(bytes(range(32))),
                         **words)  # fmt: skip


@settings(max_examples=often(60))
@given(several, st.sampled_from(UNITS), st.sampled_from(["sqlite", "duckdb"]), st.sampled_from([None, "n = 1"]))
def test_samples_of_people_are_those_of_the_rows_one_by_one(folder, rows, unit, engine, where):
    views = of_people(folder, engine, rows, unit, where=where)
    assert samples(views, DataSet.counted) == samples(views, one_by_one)


def test_rows_of_people_that_are_counted_by_fewer_columns_are_found(folder):
    rows = [(name, page, number, None) for name in ("ann", "bob") for page in "ab" for number in range(5)] * 2
    views = of_people(folder, "sqlite", rows, wpinq.users("user", at_most=3))

    def fewer(data, names, anyone, **words):
        for frame in data.batches(names, **words):
            number = pl.len().cast(pl.Int64).alias(WEIGHT)
            rows = frame.group_by([name for name in names if name != "n"]).agg(pl.col("n").min(), number)
            yield rows.select(*names, WEIGHT)

    assert samples(views, DataSet.counted) == samples(views, one_by_one)
    assert samples(views, fewer) != samples(views, one_by_one)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_of_people_rows_are_left_out_and_nothing_is_counted(folder, engine):
    rows = [("ann", "a", 1, None)] * 9 + [("bob", "b", 2, None)] * 9
    (data,) = sources(of_people(folder, engine, rows, wpinq.users("user", at_most=3))._node)
    asked = bind("n = 2", data.reader.schema, "filter", condition=True).condition
    frames = list(data.counted(data.reader.schema.names, [asked]))
    assert not any(WEIGHT in frame.columns for frame in frames)
    assert sum(frame.height for frame in frames) == 9
    assert sum(frame.height for frame in data.counted(data.reader.schema.names)) == 18
