"""Totals of TPC-H with the customer as the privacy unit, beside R2T and the shifted inverse.

What a query of TPC-H adds up, without its groups, where each customer may have any number of records: epsilon 1 and
1/10, 200 runs a row, the median of the relative error. The mechanisms are those of bench_totals.py. Ours is what
`at_most="auto"` does: half of epsilon chooses how many records of a customer are kept, half pays for the sum of values
that are clamped to what the specification says of the columns. It is simulated, by the law of the choice and of the
noise; how many records there are is not drawn anew, and the kept ones are one sample.

R2T is taken as its authors run it (https://github.com/hkustDB/Race-to-the-Top, Code/R2T.py): powers of 5.5 up to 10^6,
beta 0.1; a sum's powers go up to 10^7. `--published` compares it at scale 1 and epsilon 0.8 with the errors that they
print for two queries over customers (Result/TPCH): 2,615 for their query 10 and 201,958 for their query 18.

Usage: python tests/benchmarks/bench_tpch.py [--smoke] [--scale 0.1] [--published]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import bench_totals as totals
import duckdb
import numpy as np
import polars as pl
from bench_totals import Numbers, laplace, race, shifted
from flags import flags

from wpinq.aggregates.automatic import part
from wpinq.aggregates.bound_choice import GRID, best_bound

TABLES = ("customer", "orders", "lineitem", "supplier", "partsupp", "part", "nation", "region")
REVENUE = "l_extendedprice * (1 - l_discount)"
KEYS = "l_orderkey = o_orderkey AND o_custkey = c_custkey"
GOODS = "orders, customer, lineitem"
RUNS = 200


@dataclass(frozen=True)
class Total:
    """What a query adds up: a value of each row, in which tables, under which condition, up to which value."""

    value: str
    tables: str
    where: str
    width: int = 1


TOTALS = {
    "1, lineitems": Total("1", GOODS, f"{KEYS} AND l_shipdate <= date '1998-09-02'"),
    "3, revenue": Total(REVENUE, GOODS, f"{KEYS} AND c_mktsegment = 'BUILDING' AND o_orderdate < date '1995-03-15' "
                        "AND l_shipdate > date '1995-03-15'", 105_000),
    "4, orders": Total("1", "orders, customer", "o_custkey = c_custkey AND o_orderdate >= date '1993-07-01' AND "
                       "o_orderdate < date '1993-10-01' AND EXISTS (SELECT * FROM lineitem WHERE "
                       "l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)"),
    "5, revenue": Total(REVENUE, f"{GOODS}, supplier, nation, region", f"{KEYS} AND l_suppkey = s_suppkey AND "
                        "c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND "
                        "r_name = 'ASIA' AND o_orderdate >= date '1994-01-01' AND o_orderdate < date '1995-01-01'",
                        105_000),
    "6, discounts": Total("l_extendedprice * l_discount", GOODS, f"{KEYS} AND l_shipdate >= date '1994-01-01' AND "
                          "l_shipdate < date '1995-01-01' AND l_discount BETWEEN .05 AND .07 AND l_quantity < 24",
                          10_500),
    "7, volume": Total(REVENUE, f"{GOODS}, supplier, nation n1, nation n2", f"{KEYS} AND s_suppkey = l_suppkey AND "
                       "s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey AND ((n1.n_name = 'FRANCE' AND "
                       "n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE')) AND l_shipdate "
                       "BETWEEN date '1995-01-01' AND date '1996-12-31'", 105_000),
    "10, revenue": Total(REVENUE, GOODS, f"{KEYS} AND o_orderdate >= date '1993-10-01' AND "
                         "o_orderdate < date '1994-01-01' AND l_returnflag = 'R'", 105_000),
    "12, lineitems": Total("1", GOODS, f"{KEYS} AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND"
                           " l_shipdate < l_commitdate AND l_receiptdate >= date '1994-01-01' AND "
                           "l_receiptdate < date '1995-01-01'"),
    "14, revenue": Total(REVENUE, GOODS, f"{KEYS} AND l_shipdate >= date '1995-09-01' AND "
                         "l_shipdate < date '1995-10-01'", 105_000),
    "18, quantity": Total("l_quantity", GOODS, KEYS, 50),
    "19, revenue": Total(REVENUE, f"{GOODS}, part", f"{KEYS} AND p_partkey = l_partkey AND l_shipinstruct = "
                         "'DELIVER IN PERSON' AND l_shipmode IN ('AIR', 'AIR REG') AND ((p_brand = 'Brand#12' AND "
                         "l_quantity BETWEEN 1 AND 11 AND p_size <= 5) OR (p_brand = 'Brand#23' AND l_quantity "
                         "BETWEEN 10 AND 20 AND p_size <= 10) OR (p_brand = 'Brand#34' AND l_quantity BETWEEN 20 AND "
                         "30 AND p_size <= 15))", 105_000),
}  # fmt: skip
PUBLISHED = {
    "10 (orders of customers)": (Total("1", "orders", "true"), 2_615),
    "18 (quantity of customers)": (Total("l_quantity", "orders, lineitem", "l_orderkey = o_orderkey"), 201_958),
}


def opened(scale: str, folder: Path) -> duckdb.DuckDBPyConnection:
    """The tables of a scale factor."""
    tool = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run([tool, "parquet", "-s", scale, f"--output-dir={folder}", "--quiet"], check=True)
    database = duckdb.connect()
    for name in TABLES:
        database.sql(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/{name}.parquet'")
    return database


def rows_of(database: duckdb.DuckDBPyConnection, total: Total) -> pl.DataFrame:
    """The values, each customer's in an order of its own: the sample that a bound keeps comes first."""
    query = f"SELECT o_custkey AS person, ({total.value})::double AS value FROM {total.tables} WHERE {total.where}"
    rows = database.sql(query).pl().sort("person", "value").sample(fraction=1, shuffle=True, seed=1)
    return rows.with_columns(rank=pl.int_range(pl.len()).over("person"))


def each(rows: pl.DataFrame) -> Numbers:
    """What each customer adds, the largest last."""
    return np.sort(rows.group_by("person").agg(pl.col("value").sum())["value"].to_numpy().round().astype(np.int64))


class Ours:
    """A chosen bound, and the total under it."""

    def __init__(self, rows: pl.DataFrame, width: int) -> None:
        records = rows.group_by("person").len()["len"].to_numpy()
        self._cells = np.bincount(np.searchsorted(GRID, np.minimum(records, GRID[-1])), minlength=len(GRID))
        by_rank = rows.group_by("rank").agg(pl.col("value").sum()).sort("rank")["value"]
        self._under, self._width = np.concatenate([[0], by_rank.cum_sum()]), width

    def __call__(self, _: Numbers, epsilon: float, rng: np.random.Generator) -> float:
        """One answer."""
        chosen = epsilon * float(part(1))
        rest = epsilon - chosen
        cells = self._cells + laplace(1 / chosen, rng, len(GRID))
        most = int(best_bound(cells, 1 / chosen, 1 / rest))
        kept = float(self._under[min(most, len(self._under) - 1)])
        return kept + float(laplace(most * self._width / rest, rng, 1)[0])


def middle(answer: Callable[[Numbers, float, np.random.Generator], float], counts: Numbers, epsilon: float, runs: int,
           whole: float) -> float:  # fmt: skip
    """The median of the errors of some runs."""
    rng = np.random.default_rng(7)
    return float(np.median([abs(answer(counts, epsilon, rng) - whole) for _ in range(runs)]))


def compare(database: duckdb.DuckDBPyConnection, runs: int) -> None:
    """One line for each total and epsilon."""
    print("| query, total | customers | total | records of one | epsilon | R2T | shifted inverse | at_most auto |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, total in TOTALS.items():
        rows = rows_of(database, total)
        counts, whole = each(rows), float(rows["value"].sum())
        if not whole:
            continue
        totals.MOST = 2**30 if total.width == 1 else 2**40
        answers = (partial(race, most=10**6 if total.width == 1 else 10**7), shifted, Ours(rows, total.width))
        for epsilon in (1.0, 0.1):
            errors = [middle(answer, counts, epsilon, runs, whole) / whole for answer in answers]
            shown = " | ".join(f"**{error:.2%}**" if error == min(errors) else f"{error:.2%}" for error in errors)
            print(f"| {name} | {len(counts):,} | {whole:,.0f} | {rows['rank'].max() + 1} | {epsilon} | {shown} |")  # type: ignore[operator]


def check_published(database: duckdb.DuckDBPyConnection) -> None:
    """R2T beside what its authors print."""
    print("| R2T's query | total | published error | error here |")
    print("|---|--:|--:|--:|")
    for name, (total, published) in PUBLISHED.items():
        counts = each(rows_of(database, total))
        error = middle(race, counts, 0.8, 100, float(counts.sum()))
        print(f"| {name} | {counts.sum():,} | {published:,} | {error:,.0f} |")


if __name__ == "__main__":
    parser = flags(__doc__, "scale 0.01 and ten runs")
    parser.add_argument("--scale", default="0.1", help="scale factor of TPC-H")
    parser.add_argument("--published", action="store_true", help="R2T at scale 1 beside its published errors")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        scale = "1" if options.published else "0.01" if options.smoke else options.scale
        tables = opened(scale, Path(place))
        check_published(tables) if options.published else compare(tables, 10 if options.smoke else RUNS)
