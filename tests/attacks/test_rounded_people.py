"""People whose numbers are rounded to one double would share one bound, and each would move twice what is paid for."""

import sqlite3
from contextlib import closing
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wpinq
from wpinq.errors import PlanError

PEOPLE = [Decimal(12345678901234567890 + number) for number in range(3)]
ROWS = [(person, f"page {place}") for person in PEOPLE for place in range(2)]
NAMES = ("user", "page")


def table():
    users = pa.array([user for user, _ in ROWS], pa.decimal128(38, 0))
    return pa.table({"user": users, "page": [page for _, page in ROWS]})


def in_duckdb(path):
    file = path / "views.duckdb"
    if not file.exists():
        with duckdb.connect(str(file)) as connection:
            connection.execute('CREATE TABLE t ("user" HUGEINT, page VARCHAR)')
            connection.executemany("INSERT INTO t VALUES (CAST(? AS HUGEINT), ?)", [(str(u), page) for u, page in ROWS])
    return f"duckdb:{file}?table=t"


def in_parquet(path):
    pq.write_table(table(), path / "views.parquet")
    return path / "views.parquet"


def in_csv(path):
    file = path / "views.csv"
    file.write_text("user,page\n" + "".join(f"{user},{page}\n" for user, page in ROWS))
    return file


SOURCES = {
    "DuckDB": in_duckdb, "Parquet": in_parquet, "Arrow": lambda _: table(),
    "Polars": lambda _: pl.DataFrame(table()), "pandas": lambda _: table().to_pandas(types_mapper=pd.ArrowDtype),
    "csv": in_csv,
}  # fmt: skip


def people(source, tmp_path, kind):
    columns = None if kind is None else dict(zip(NAMES, (kind, "text"), strict=True))
    unit = wpinq.users("user", at_most=1)
    return wpinq.protect(source, budget=10**7, unit=unit, columns=columns, ledger=tmp_path / "ledger")


@pytest.mark.parametrize("name", SOURCES)
def test_people_are_not_told_apart_by_what_is_rounded(tmp_path, name):
    source = SOURCES[name](tmp_path)
    with pytest.raises(
        PlanError, match=r"^protect\(unit=...\): the column 'user' is read as rounded numbers, .*'text'"
    ):
        people(source, tmp_path, "float" if name == "csv" else None)
    assert not (tmp_path / "ledger").exists()
    as_text = people(source, tmp_path, "text")
    assert round(as_text.map("user").measure(10**6).observe(str(PEOPLE[1]))) == 1


def test_doubles_and_short_decimals_are_exact_and_name_people():
    users = {
        "double": pa.array([1.5, 2.5]),
        "decimal": pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal128(15, 2)),
    }
    for column in users.values():
        views = wpinq.protect(pa.table({"user": column}), budget=10**7, unit=wpinq.users("user", at_most=1))
        assert round(views.map("user").measure(10**6).observe(2.5)) == 1


@pytest.mark.parametrize("type_", ["NUMERIC", "DECIMAL(20)", "REAL"])
def test_a_number_of_sqlite_names_people_only_where_its_double_is_in_the_file(tmp_path, type_):
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute(f'CREATE TABLE t ("user" {type_})')
        connection.executemany("INSERT INTO t VALUES (?)", [(2**53,), (2**53 + 1,), (1.5,), ("text",)])
        connection.commit()
    source, unit = f"sqlite:{tmp_path / 'x.db'}?table=t", wpinq.users("user", at_most=9)
    if type_ != "REAL":
        with pytest.raises(PlanError, match="two people may be one"):
            wpinq.protect(source, budget=10**7, unit=unit)
    exact = type_ != "REAL"
    views = wpinq.protect(source, budget=10**7, unit=unit, columns={"user": int} if exact else None)
    found = views.map("user").measure(10**6).observe_many([2**53, None, *[2**53 + 1] * exact])
    assert [round(one) for one in found] == ([1, 2, 1] if exact else [2, 1])


def test_columns_in_paths_and_zones_keep_what_is_rounded(tmp_path):
    (tmp_path / "year=2026").mkdir()
    pq.write_table(table(), tmp_path / "year=2026" / "a.parquet")
    timed = table().append_column("at", pa.array([0] * len(ROWS), pa.timestamp("us", "UTC")))
    for source, more in ((tmp_path, {}), (timed, {"tz": "Europe/Paris"})):
        with pytest.raises(PlanError, match="two people may be one"):
            wpinq.protect(source, budget=1, unit=wpinq.users("user", at_most=1), ledger=tmp_path / "ledger", **more)


@pytest.mark.parametrize("type_", [pa.decimal128(38, 0), pa.decimal256(40, 0), pa.decimal128(38, 2)], ids=str)
def test_a_decimal_that_is_declared_whole_keeps_all_its_digits(type_):
    whole = [2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, None]
    users = pa.array([None if one is None else Decimal(one) for one in whole], type_)
    views = wpinq.protect(pa.table({"user": users}), budget=10**7, columns={"user": int})
    numbers = views.map("user").measure(10**6)
    assert [round(numbers.observe(one)) for one in (*whole[:4], None)] == [1, 1, 1, 1, 2]
