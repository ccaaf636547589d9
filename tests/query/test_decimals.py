"""DECIMAL is a number, wherever it comes from: in sums, bounds, quantiles, filters, and SQL beside constants."""

import sqlite3
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wpinq
from wpinq.core.records.schema import Kind

CENTS = [5, 6, 7, 8] * 300
ROWS = pa.table({
    "price": pa.array([Decimal(100 + place) / 4 for place in range(1200)], pa.decimal128(15, 2)),
    "discount": pa.array([Decimal(cents) / 100 for cents in CENTS], pa.decimal128(15, 2)),
    "key": pa.array([Decimal(place) for place in range(1200)], pa.decimal128(12, 0)),
})  # fmt: skip
REVENUE = sum((100 + place) / 4 * cents / 100 for place, cents in enumerate(CENTS) if cents < 8)


def parquet(path):
    pq.write_table(ROWS, path / "lines.parquet")
    return str(path / "lines.parquet")


def duckdb(path):
    module = pytest.importorskip("duckdb")
    file = parquet(path)
    return module.connect().sql(f"SELECT * FROM read_parquet('{file}')")


def sqlite(path):
    connection = sqlite3.connect(path / "lines.db")
    connection.execute("CREATE TABLE lines (price DECIMAL(15, 2), discount DECIMAL(15, 2), key DECIMAL(12, 0))")
    rows = [tuple(float(value) for value in row.values()) for row in ROWS.to_pylist()]
    connection.executemany("INSERT INTO lines VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return wpinq.sqlite(path / "lines.db", table="lines")


SOURCES = {
    "arrow": lambda _: ROWS, "polars": lambda _: pl.DataFrame(pl.from_arrow(ROWS)), "parquet": parquet,
    "duckdb": duckdb, "sqlite": sqlite,
}  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_tpch_6_over_decimals(source, tmp_path):
    """BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 holds 0.05, 0.06 and 0.07, and SUM multiplies; noise is below 0.1."""
    lines = wpinq.protect(SOURCES[source](tmp_path), budget=10**6, ledger=tmp_path / "ledger")
    assert [one.kind for one in lines._node.schema][:2] == [Kind.FLOAT, Kind.FLOAT]
    where = "discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01"
    query = f"SELECT SUM(price * discount) AS revenue, COUNT(*) AS n FROM lines WHERE {where}"
    bounds = {"price": (0, 400), "discount": (0, "0.1")}
    ((revenue, count),) = wpinq.sql(query, {"lines": lines}, epsilon=20_000, bounds=bounds).rows
    assert count == 900
    assert revenue == pytest.approx(REVENUE, abs=1)


def test_python_takes_decimals_as_numbers(tmp_path):
    lines = wpinq.protect(ROWS, budget=10**6)
    assert lines.sum("price", (0, 400), 10_000).value == pytest.approx(
        sum(map(float, ROWS["price"].to_pylist())), abs=1
    )
    assert lines.quantiles("price", [0.5], (0, 400), epsilon=1000).frame["value"][0] == pytest.approx(174.8, abs=0.5)
    assert lines.filter(pl.col("discount") == 0.07).count(1000).value == 300
    assert lines.filter(lambda discount: discount == 0.07).count(1000).value == 300
    assert lines.map("discount").measure(1000).observe(0.07) == 300
    assert lines.map("key").measure(1000).observe(7) == 1
    low, high = wpinq.suggest_bounds(lines, "price", 100)
    assert low <= 25 and 324.75 <= high <= 700
    found = wpinq.sql(
        "SELECT discount, COUNT(*) FROM lines GROUP BY discount", {"lines": lines}, epsilon=1000, keys=[0.06]
    )
    assert found.rows == ((0.06, 300),)


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("0.06 + 0.01", 0.07),
        ("0.1 + 0.2", 0.3),
        ("1 - 0.9", 0.1),
        ("3 * 0.1", 0.3),
        ("-0.1 - 0.2", -0.3),
        ("0.1 * 0.7", 0.07),
    ],
)
def test_constants_are_computed_exactly(written, number):
    records = wpinq.protect(pl.DataFrame({"x": [number] * 50}), budget=1000)
    found = wpinq.sql(f"SELECT COUNT(*) FROM records WHERE x = {written}", {"records": records}, epsilon=1000)
    assert found.value == 50
