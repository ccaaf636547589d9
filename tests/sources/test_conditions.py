"""Conditions that a database is asked: they keep what is kept here, of awkward values too, and skip nothing."""

import re
import sqlite3
from collections import Counter
from contextlib import closing

import polars as pl
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.core.engines.job import Job, Lowered
from wpinq.core.functions.bind import bind
from wpinq.core.functions.tree import col
from wpinq.core.plan.shapes import Read
from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.schema import Kind
from wpinq.sources import open_source
from wpinq.sources.databases import conditions, sqlite
from wpinq.sources.databases import duckdb as duckdb_files

duck = pytest.importorskip("duckdb")
TEXTS = ["", " ", "a", "A", "a ", "a\0", "é", "e\u0301", "e", "ß", "ss", "'", "''", "1", "1.0", "a'b", "🙂", "%", "\\"]
INTEGERS = [0, 1, -1, 127, 128, 255, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
ODD = [b"a", b"\xff", 1.0, 1.5, 2.0**63, "x", 7]
TYPES = {"sqlite": "s TEXT COLLATE NOCASE, r TEXT COLLATE RTRIM, i INTEGER, f REAL, x",
         "duckdb": "s VARCHAR COLLATE NOCASE, r VARCHAR COLLATE NOACCENT, i BIGINT, f DOUBLE, x TINYINT"}  # fmt: skip
WRONG = {"Eq": "({} >= {})", "NotEq": "({} < {})", "Boolean.IsIn": "({} NOT IN ({}))", "And": "({1})",
         "LogicalAnd": "({1})", "Or": "({} AND {})", "LogicalOr": "({} AND {})", "Boolean.Not": "({})"}  # fmt: skip

texts, integers = st.sampled_from(TEXTS), st.sampled_from(INTEGERS)
rows_of = {
    "sqlite": st.tuples(*[st.sampled_from([None, *TEXTS, *INTEGERS, *ODD])] * 5),
    "duckdb": st.tuples(
        *[st.none() | texts] * 2, st.none() | integers, st.none() | st.just(1.5), st.none() | st.just(7)
    ),
}


def quoted(value):
    return str(value) if isinstance(value, int) else conditions.text(value.replace("\0", ""))


def compared(name, values):
    constants = st.lists(values.map(quoted), min_size=1, max_size=3)
    return st.tuples(st.sampled_from(["=", "<>", "IN", "NOT IN"]), constants).map(
        lambda pair: f"{name} {pair[0]} " + (f"({', '.join(pair[1])})" if "IN" in pair[0] else pair[1][0])
    )


asked = st.recursive(
    st.one_of(compared("s", texts), compared("r", texts), compared("i", integers), st.just("s = r")),
    lambda inner: inner.map("NOT ({})".format)
    | st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map("({0[0]} {0[1]} {0[2]})".format),
    max_leaves=5,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("asked")


def made(folder, engine, rows):
    path = folder / f"t.{engine}"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path) if engine == "sqlite" else duck.connect(str(path))) as connection:
        connection.execute(f"CREATE TABLE t ({TYPES[engine]})")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
        connection.commit()
    return open_source((wpinq.sqlite if engine == "sqlite" else duckdb_files.duckdb)(path, table="t"))


def tree(text, reader):
    return bind(text, reader.schema, "filter", condition=True).condition


def rows(reader, frames, mask=None):
    found = Counter()
    for frame in frames:
        held = canonical.frame(frame, reader.schema.select([name for name in frame.columns if name != WEIGHT]))
        held = held if mask is None else held.filter(mask(held))
        counts = held[WEIGHT].to_list() if WEIGHT in held.columns else [1] * held.height
        for row, number in zip(held.drop(WEIGHT, strict=False).rows(), counts, strict=True):
            found[row] += number
    return found


NAMES = ["s", "r", "i"]


def kept_here(reader, text):
    function = bind(text, reader.schema, "filter", condition=True)
    return rows(reader, reader.batches(NAMES), lambda frame: function.predicate(frame.select(function.reads)))


def agree(reader, text, here=None):
    """Fails where a row that is kept here is left out there, or where rows without a null differ at all."""
    function = bind(text, reader.schema, "filter", condition=True)
    here = kept_here(reader, text) if here is None else here
    there = rows(reader, reader.counted(NAMES, [function.condition]))
    assert conditions.condition([function.condition], reader._compared, quoted), text
    assert here <= there, text
    more = {row for row in there - here if None not in row}
    assert not more, (text, more)


def some_of(engine):
    return given(st.lists(rows_of[engine], min_size=3, max_size=8), st.lists(asked, min_size=1, max_size=6))


@settings(max_examples=often(150))
@some_of("sqlite")
def test_conditions_keep_in_sqlite_what_they_keep_here(folder, records, texts):
    reader = made(folder, "sqlite", records)
    for text in texts:
        agree(reader, text)


@settings(max_examples=often(100))
@some_of("duckdb")
def test_conditions_keep_in_duckdb_what_they_keep_here(folder, records, texts):
    reader = made(folder, "duckdb", records)
    for text in texts:
        agree(reader, text)


EVERY = [
    (text, other, number, None, None) for text, other in zip(TEXTS, reversed(TEXTS), strict=True) for number in (1, -1)
]
EVERY += [(None, "a", None, None, None), ("a", None, 1, None, None), ("a", "a", 1, None, None)]
QUESTIONS = [
    "s = 'a'", "s <> 'a'", "NOT (s = 'a')", "i = 1", "i IN (1, 255)", "s IN ('A', '''')", "s NOT IN ('a', 'A')",
    "s = 'a' AND i = 1", "s = 'a' OR i = 1", "NOT (s = 'a' OR r = 'a')", "s = r", "s = r AND NOT i = -1",
]  # fmt: skip


def wrong_somewhere(reader, kept):
    for text, here in kept.items():
        try:
            agree(reader, text, here)
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_every_operation_is_tried_and_a_wrong_one_is_found(folder, monkeypatch, engine):
    reader = made(folder, engine, EVERY)
    kept = {text: kept_here(reader, text) for text in QUESTIONS}
    assert not wrong_somewhere(reader, kept)
    assert conditions.TABLE.keys() == WRONG.keys()
    used = conditions.TABLE.keys() - {"LogicalAnd", "LogicalOr"}  # other names of And and Or, which trees rarely have
    for name, wrong in WRONG.items():
        planted = conditions.TABLE[name]._replace(sql=wrong)
        with monkeypatch.context() as patch:
            patch.setattr(conditions, "TABLE", {**conditions.TABLE, name: planted})
            assert wrong_somewhere(reader, kept) == (name in used), name
    with monkeypatch.context() as patch, pytest.raises(AssertionError):
        patch.setattr(sqlite if engine == "sqlite" else duckdb_files, "BYTEWISE", "COLLATE NOCASE")
        agree(reader, "s <> 'a'")


def test_what_is_not_proved_is_asked_here_alone(folder):
    reader = made(folder, "sqlite", EVERY)

    def written(text):
        return conditions.condition([tree(text, reader)], reader._compared, quoted)

    assert written("s = 'a'")
    refused = ["f = 1", "f = 1.5", "i = 1.5", "i > 1", "s < 'a'", "s IS NULL", "s IS NOT NULL", "i IN (1, NULL)",
               "s IS DISTINCT FROM 'a'", "i + 1 = 2", "s LIKE 'a%'", "upper(s) = 'A'", "s = 'a' OR s IS NULL",
               "i = " + " OR i = ".join(map(str, range(300)))]  # fmt: skip
    for text in refused:
        assert written(text) is None, text
    for odd in (pl.col("s") == "a\0", pl.col("i").is_in([]), pl.col("i").is_in([1, None], nulls_equal=True),
                pl.col("i") == 2**64 - 1, pl.col("i") == pl.lit(1.0), pl.col("f").is_in([1.0])):  # fmt: skip
        assert written(odd) is None, odd
    typed = open_source(reader.rows_of, columns={"i": str})
    assert conditions.condition([tree("i = '1'", typed)], typed._compared, quoted) is None


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_column_may_have_a_name_that_is_a_pattern(folder, engine):
    reader = made(folder, engine, EVERY)
    for name in ("*", "^s$", "^s"):
        assert conditions.condition([col(name) == "a"], lambda _: ("s", Kind.TEXT), quoted) is None
    assert conditions.condition([col("s") == "a"], reader._compared, quoted)


def read_of(views, *plans):
    lowered = Lowered(Job([plan._node for plan in plans], views._node.data.identity_key))
    (shape,) = [shape for shape in lowered.shapes.values() if isinstance(shape, Read)]
    return shape.anyone


def test_rows_are_left_out_where_all_who_read_leave_them_out(folder, tmp_path):
    made(folder, "sqlite", EVERY)
    views = wpinq.protect(
        wpinq.sqlite(folder / "t.sqlite", table="t"), columns=("s", "i"), budget=1, ledger=tmp_path / "l"
    )
    one, other = views.filter("s = 'a'").map("i"), views.filter("i = 1").map("s")
    assert len(read_of(views, one)) == 1
    assert len(read_of(views, one, other)) == 2
    assert not read_of(views, one, views.map("s"))
    assert not read_of(views, one, views)
    assert not read_of(views, views.filter(lambda s: s == "a"))
    assert not read_of(views, views.map("s").filter("s = 'a'"))


def test_time_does_not_tell_whether_a_value_is_there(folder, monkeypatch):
    """Blocks of DuckDB know their least and largest values, and an index knows all: neither is looked at."""
    path = folder / "blocks.duckdb"
    path.unlink(missing_ok=True)
    with closing(duck.connect(str(path))) as connection:
        connection.execute("CREATE TABLE t AS SELECT i // 1000 AS k, 'v' || (i // 100000) AS s FROM range(400000) r(i)")
        connection.execute("CREATE INDEX among ON t (s)")
    reader = open_source(duckdb_files.duckdb(path, table="t"))

    def scanned(text):
        where = conditions.condition([tree(text, reader)], reader._compared, duckdb_files._constant)
        with duckdb_files._connection(reader.source_table) as connection:
            lots = duckdb_files._Lots(connection, reader, reader.schema, where)
            queries = []
            with monkeypatch.context() as patch:
                patch.setattr(duckdb_files, "_batches", lambda _, query: queries.append(query))
                lots._ran("s, k", 0, "")
            return "\n".join(row[1] for row in connection.sql(f"EXPLAIN ANALYZE {queries[0]}").fetchall())

    for text in ("s = 'v3'", "s = 'zzz'", "s = ''", "k = 7", "k = -5", "s IN ('x', 'y')", "NOT s <> 'no'"):
        found = re.findall(r"Row Groups Scanned: (\d+) / (\d+)", scanned(text))
        assert found, text
        assert all(some == every for some, every in found), text
    with closing(sqlite3.connect(folder / "index.db")) as connection, connection:
        connection.execute("CREATE TABLE t (s TEXT, k INTEGER)")
        connection.execute("CREATE INDEX texts ON t (s)")
        connection.execute("CREATE INDEX numbers ON t (k)")
        connection.execute("ANALYZE")
        indexed = open_source(wpinq.sqlite(folder / "index.db", table="t"))
        for text in ("s = 'a'", "k = 1", "s IN ('a', 'b')"):
            where = conditions.condition([tree(text, indexed)], indexed._compared, sqlite._constant)
            (step,) = connection.execute(
                f"EXPLAIN QUERY PLAN SELECT s FROM t WHERE rowid >= 1 AND rowid < 9 AND {where}"
            )
            assert "INTEGER PRIMARY KEY" in step[3]
