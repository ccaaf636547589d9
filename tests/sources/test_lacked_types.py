"""Types that Arrow lacks, or has other values for: no wrong value is read, and the columns beside them are."""

import datetime as dt
import json
import uuid
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wpinq
from wpinq.apps.cli import main
from wpinq.apps.publish import keys
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import PlanError, SourceError
from wpinq.sources import open_source
from wpinq.sources.check import check

IDS = [uuid.UUID(int=1), uuid.UUID(int=2**100)]
USERS = ["ann", "bob"]
VARIANT = [pa.array([b"m", b"n"]), pa.array([b"1", b"1"])]
TWINS = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([3, 4])], ["a", "a"])
ALTERED = {
    "UHUGEINT": "340282366920938463463374607431768211455::UHUGEINT", "UHUGEINT[]": "[1::UHUGEINT]",
    "TIME WITH TIME ZONE": "'01:02:03+05'::TIMETZ", "VARIANT": "1::BIGINT::VARIANT",
    "BIT": "'0101'::BIT", "BIGNUM": "5::BIGNUM",
}  # fmt: skip
LACKED = {
    "Object": lambda: pl.DataFrame({"user": USERS, "x": pl.Series([object(), object()], dtype=pl.Object)}),
    "List\\(Int128\\)": lambda: pl.DataFrame({"user": USERS, "x": pl.Series([[1], [2**99]], dtype=pl.List(pl.Int128))}),
    "complex128": lambda: pd.DataFrame({"user": USERS, "x": [1j, 2j]}),
    "struct<metadata: binary, value: binary>": lambda: pa.table(
        {"user": USERS, "x": pa.StructArray.from_arrays(VARIANT, ["metadata", "value"])}
    ),
    "struct<a: int64, a: int64>": lambda: pa.table({"user": USERS, "x": TWINS}),
    "list<item: struct<a: int64, a: int64>>": lambda: pa.table(
        {"user": USERS, "x": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), TWINS)}
    ),
}


def counted(source, bins, columns=None):
    records = wpinq.protect(source, budget=10**7, columns=columns).map(lambda x: x)
    return [round(one) for one in records.measure(10**6).observe_many(bins)]


@pytest.mark.parametrize("type_", LACKED)
def test_a_column_that_nothing_reads_is_left_out_and_refused_by_name(type_):
    assert open_source(LACKED[type_]()).schema.names == ("user",)
    with pytest.raises(SourceError, match=rf"the column 'x' is of type {type_}, which cannot be read"):
        open_source(LACKED[type_](), columns={"x": "text"})


@pytest.mark.parametrize("type_", ALTERED)
def test_what_duckdb_gives_another_value_of_is_not_read(tmp_path, type_):
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT 'ann' AS \"user\", {ALTERED[type_]} AS x, 'a'::ENUM('VARIANT', 'a') e"
        )
        relation = connection.table("t")
        assert open_source(relation).schema.names == ("user", "e")
    source = f"duckdb:{tmp_path / 'x.duckdb'}?table=t"
    assert open_source(source).schema.names == ("user", "e")
    with pytest.raises(SourceError, match=r"the column 'x' is of type .*, which cannot be read"):
        open_source(source, columns=("x",))


LEFT_OUT = r"there are {}'?user'? \(left out: 'x', of type {}\)\."


@pytest.mark.parametrize("type_", LACKED)
def test_who_asks_for_a_column_that_is_left_out_is_told_so(type_):
    source = LACKED[type_]()
    views = wpinq.protect(source, budget=1)
    people = wpinq.users("x", at_most=1)
    for ask in (lambda: views.map("x"), lambda: views.filter("x = 1"), lambda: views.group_by("x"),
                lambda: wpinq.protect(source, budget=1, unit=people)):  # fmt: skip
        with pytest.raises(PlanError, match=LEFT_OUT.format("", type_)):
            ask()
    with pytest.raises(PlanError, match=LEFT_OUT.format("t.", type_)):
        wpinq.sql("SELECT COUNT(x) FROM t", {"t": views})
    report = check(source)
    assert not report.clean, "a column is left out in silence"
    assert any("'x' is left out: it is of type" in hint for hint in report.hints)
    assert check(source, ("user",)).clean, "who names columns knows which"


def test_check_says_which_columns_are_left_out(tmp_path, capsys):
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'ann' AS \"user\", '0101'::BIT AS x, 'a'::VARIANT AS y")
    command = ["check", f"duckdb:{tmp_path / 'x.duckdb'}?table=t"]
    assert main(command) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "2 columns are left out. the column 'x' is left out: it is of type BIT, which cannot be read" in shown
    assert main([*command, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["left out"] == {"x": "BIT", "y": "VARIANT"}
    assert main([*command, "--columns", "user"]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    assert main(["degrees", command[1], "--of", "x", "--epsilon", "1"]) == 2
    assert "(left out: 'x', of type BIT, 'y', of type VARIANT)" in capsys.readouterr().err


def test_one_column_that_is_left_out_is_named_on_one_line(tmp_path, capsys):
    """It said "1 columns", and wrote a type's line breaks and what moves a cursor to the terminal."""
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute('CREATE TABLE t ("user" VARCHAR, w UNION(n INTEGER, "a\n\x1b[31mb" VARCHAR))')
        connection.execute("CREATE TABLE none AS SELECT '0101'::BIT AS x")
    assert main(["check", f"duckdb:{tmp_path / 'x.duckdb'}?table=t"]) == 1
    shown = capsys.readouterr().out
    assert "; a column is left out." in " ".join(shown.split())
    assert shown.splitlines()[-1].startswith("the column 'w' is left out")
    assert "\x1b" not in shown
    for command in (["check"], ["degrees", "--of", "x", "--epsilon", "1"]):
        assert main([command[0], f"duckdb:{tmp_path / 'x.duckdb'}?table=none", *command[1:]]) == 2
        assert "x.duckdb: no column can be read; 'x' is of type BIT." in capsys.readouterr().err


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("type_", [pl.Int128, pl.UInt128])
def test_integers_of_128_bits_are_texts_or_what_is_declared(type_, lazy):
    frame = pl.DataFrame({"user": USERS, "x": pl.Series([7, 2**126 + 1], dtype=type_)})
    source = frame.lazy() if lazy else frame
    assert counted(source, ["7", str(2**126 + 1), str(2**126)]) == [1, 1, 0]
    assert counted(source, [7, None], {"x": int}) == [1, 1]


def test_sparse_columns_and_signalling_nans_of_pandas_are_read():
    sparse = pd.DataFrame({"user": USERS, "x": pd.Series([5, 0], dtype="Sparse[int]")})
    assert counted(sparse, [5, 0]) == [1, 1]
    odd = pd.DataFrame({"user": USERS, "x": np.array([Decimal("sNaN"), Decimal(1)], dtype=object)})
    assert counted(odd, [None, 1]) == [1, 1]
    assert check(odd).counts.total() == 1


def inside(ids):
    """Lists of UUIDs."""
    return pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), ids)


def test_a_uuid_is_its_text_through_every_door(tmp_path):
    texts = [str(one) for one in IDS]
    ids = pa.array([one.bytes for one in IDS], pa.uuid())
    table = pa.table({"x": ids, "inside": inside(ids)})
    pq.write_table(table, tmp_path / "x.parquet")
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t (x UUID)")
        connection.executemany("INSERT INTO t VALUES (?)", [(text,) for text in texts])
    objects = {"records": [(one,) for one in IDS], "pandas": pd.DataFrame({"x": IDS})}
    files = {"parquet": tmp_path / "x.parquet", "duckdb": f"duckdb:{tmp_path / 'x.duckdb'}?table=t"}
    for name, source in {**objects, **files, "arrow": table}.items():
        columns = ("x",) if name == "records" else None
        for bins in (IDS, texts):
            assert counted(source, [*bins, None], columns) == [1, 1, 0], name
    nested = wpinq.protect(table, budget=10**7).map(lambda inside: inside).measure(10**6)
    assert [round(nested.observe((one,))) for one in (IDS[0], texts[1])] == [1, 1]


def test_keys_of_a_parquet_file_are_the_same_texts(tmp_path):
    texts = [str(one) for one in IDS]
    pq.write_table(pa.table({"id": pa.array([one.bytes for one in IDS], pa.uuid())}), tmp_path / "keys.parquet")
    found = keys.declared("keys.parquet", Schema((Column("x", Kind.TEXT),)), tmp_path, "[question.a]")
    assert found.collect().to_dict(as_series=False) == {"x": texts}


def test_slices_and_dictionaries_of_uuids_are_read():
    ids = pa.array([*(one.bytes for one in IDS), None], pa.uuid())
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, None]), ids[:2])
    assert counted(pa.table({"x": coded}), [*IDS, None]) == [1, 2, 1]
    assert counted(pa.table({"x": ids[1:]}), [*IDS, None]) == [0, 1, 1]


def test_a_time_of_day_is_a_duration_through_every_door():
    times = [dt.time(1, 2, 3), dt.time(23, 59, 59, 999999)]
    spans = [dt.timedelta(hours=1, minutes=2, seconds=3), dt.timedelta(1) - dt.timedelta.resolution]
    tables = {"pandas": pd.DataFrame({"x": times}), "polars": pl.DataFrame({"x": times})}
    sources = {"records": [(one,) for one in times], **tables}
    for name, source in sources.items():
        for bins in (times, spans):
            assert counted(source, bins, ("x",) if name == "records" else None) == [1, 1], name
    nested = counted(pa.table({"x": [[one] for one in times]}), [(one,) for one in spans])
    assert nested == [1, 1]
    assert counted([(dt.time(1, tzinfo=dt.UTC),)], [None], ("x",)) == [1], "an instant of no day"
