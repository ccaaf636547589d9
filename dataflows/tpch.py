"""Four counting queries of TPC-H, as McSherry stated them for wPINQ, and how far their answers are off.

The published errors (Uber's differential privacy .. probably isn't, 2018) are those of noise of scale 1/epsilon,
charged for each use. So every query here is measured at that scale, and says what it costs: uses times epsilon.

- Q1 counts shipped line items by flag and status: 1 use.
- Q4 counts orders of a quarter with a late line item by priority. A semijoin keeps a whole order where the join of
  wPINQ keeps half of it; the order's key is enforced and not trusted, for which orders are used twice, items once.
- Q13 counts customers by their number of orders without special requests: customers and the customers of those orders
  in one collection, shaved; slice k counts the customers with k - 1 orders or more. 1 use of each. McSherry measures
  these counts ("exactly like a degree-distribution CCDF") and does not say which ones his error, of one run, is of.
  At scale factor 1 and epsilon 0.1, median of 20 runs: of the counts that are measured 3.0e-4; of their differences,
  which are customers with just k - 1 orders and what SQL asks, 6.9e-3, from 4.4e-3 to 1.2e-2. So 0.0045 lies among
  the second kind, and far above the first. What is printed is the error of the measured counts.
- Q16 counts the suppliers of each (brand, type, size). The groups are too small to be counted one by one, so what is
  measured is how many groups have k suppliers or more, and every group is given the typical number: as McSherry says,
  a joke about data that are statistically dumb, and no way to learn about any one group. Suppliers with complaints are
  taken out by an antijoin, which takes as much weight as they have (one, of some eighty rows). 2 uses of partsupp, 1
  of supplier; the catalogue `part` is public.

    python -m dataflows.tpch DIR --epsilon 0.1 --runs 20 --json OUT
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

import wpinq
from wpinq import Collection, Measurement
from wpinq.core.plan.stability import sensitivities
from wpinq.exact import positive

TYPES: dict[str, dict[str, type]] = {
    "lineitem": {"l_orderkey": int, "l_returnflag": str, "l_linestatus": str, "l_shipdate": dt.date,
                 "l_commitdate": dt.date, "l_receiptdate": dt.date},
    "orders": {"o_orderkey": int, "o_custkey": int, "o_orderdate": dt.date, "o_orderpriority": str, "o_comment": str},
    "customer": {"c_custkey": int},
    "partsupp": {"ps_partkey": int, "ps_suppkey": int},
    "part": {"p_partkey": int, "p_brand": str, "p_type": str, "p_size": int},
    "supplier": {"s_suppkey": int, "s_comment": str},
}  # fmt: skip
SHIPPED = dt.date(1998, 9, 2)
QUARTER = (dt.date(1993, 7, 1), dt.date(1993, 10, 1))
SIZES = [49, 14, 23, 45, 19, 3, 36, 9]
REQUESTS = "special.*requests"
COMPLAINTS = "Customer.*Complaints"
MOST_SUPPLIERS = 40
PUBLISHED = {"q1": "6.4e-6", "q4": "8.0e-4 (PINQ), 1.9e-3 (wPINQ)", "q13": "0.0045", "q16": "0"}


@dataclass(frozen=True)
class Tables:
    """The generator's files, and a place for ledgers that the benchmark throws away.

    Attributes:
        folder: Holds TABLE.parquet or TABLE.csv.
        ledgers: A directory.
    """

    folder: Path
    ledgers: Path

    def path(self, table: str) -> Path:
        """The file of a table."""
        found = [path for end in ("parquet", "csv") if (path := self.folder / f"{table}.{end}").exists()]
        if not found:
            raise wpinq.SourceError(f"{self.folder}: no {table}.parquet or {table}.csv; make them with tpchgen-cli.")
        return found[0]

    def frame(self, table: str) -> pl.LazyFrame:
        """A table in the clear: a public one, or the truth that answers are compared with."""
        path, types = self.path(table), TYPES[table]
        read = pl.scan_parquet(path) if path.suffix == ".parquet" else pl.scan_csv(path, try_parse_dates=True)
        whole = [name for name, type_ in types.items() if type_ is int]
        return read.select(list(types)).with_columns(pl.col(whole).cast(pl.Int64))

    def protect(self, table: str, source: pl.DataFrame | None = None) -> Collection:
        """A table whose records are protected."""
        place = self.ledgers / f"{table}.ledger"
        if source is not None:
            return wpinq.protect(source, budget=10**9, ledger=place, name=table)
        protected = wpinq.protect(self.path(table), budget=10**9, ledger=place, name=table, columns=TYPES[table])
        return protected.map([pl.col(name) for name in TYPES[table]])


def q1(tables: Tables) -> Collection:
    """Line items that were shipped, by flag and status."""
    shipped = tables.protect("lineitem").filter(pl.col("l_shipdate") <= SHIPPED)
    return shipped.map(lambda l_returnflag, l_linestatus: (l_returnflag, l_linestatus))


def q4(tables: Tables) -> Collection:
    """Orders of a quarter that have a late line item, by priority."""
    late = tables.protect("lineitem").filter(lambda l_commitdate, l_receiptdate: l_commitdate < l_receiptdate)
    keys = late.map(lambda l_orderkey: l_orderkey)
    orders = tables.protect("orders").filter(pl.col("o_orderdate").is_between(*QUARTER, closed="left"))
    known = orders.map(lambda o_orderkey, o_orderpriority: (o_orderkey, o_orderpriority))
    return known.semijoin(keys, left="o_orderkey", right="l_orderkey").map(lambda o_orderpriority: o_orderpriority)


def q13(tables: Tables) -> Collection:
    """Customers with k - 1 orders or more."""
    orders = tables.protect("orders").filter(~pl.col("o_comment").str.contains(REQUESTS))
    customers = tables.protect("customer").map(lambda c_custkey: c_custkey)
    return wpinq.degrees.cdf(customers.concat(orders.map(lambda o_custkey: o_custkey)))


def q16(tables: Tables) -> Collection:
    """Groups of parts with k suppliers or more."""
    parts = tables.protect("partsupp", _stocked(tables).collect())
    complained = tables.protect("supplier").filter(pl.col("s_comment").str.contains(COMPLAINTS))
    fine = parts.antijoin(complained, left="ps_suppkey", right="s_suppkey")
    return wpinq.degrees.cdf(fine.distinct().map(lambda p_brand, p_type, p_size: (p_brand, p_type, p_size)))


def _stocked(tables: Tables) -> pl.LazyFrame:
    """The rows of partsupp, each with what the public catalogue says of its part."""
    wanted = ~pl.col("p_type").str.starts_with("MEDIUM POLISHED") & pl.col("p_size").is_in(SIZES)
    part = tables.frame("part").filter(pl.col("p_brand") != "Brand#45", wanted)
    joined = tables.frame("partsupp").join(part, left_on="ps_partkey", right_on="p_partkey")
    return joined.select("p_brand", "p_type", "p_size", "ps_suppkey")


def true_q1(tables: Tables) -> dict[object, int]:
    """The plain answer."""
    shipped = tables.frame("lineitem").filter(pl.col("l_shipdate") <= SHIPPED)
    return _counts(shipped.group_by("l_returnflag", "l_linestatus").len())


def true_q4(tables: Tables) -> dict[object, int]:
    """The plain answer."""
    late = tables.frame("lineitem").filter(pl.col("l_commitdate") < pl.col("l_receiptdate"))
    orders = tables.frame("orders").filter(pl.col("o_orderdate").is_between(*QUARTER, closed="left"))
    kept = orders.join(late, left_on="o_orderkey", right_on="l_orderkey", how="semi")
    return _counts(kept.group_by("o_orderpriority").len())


def true_q13(tables: Tables) -> dict[object, int]:
    """The plain answer, cumulated."""
    orders = tables.frame("orders").filter(~pl.col("o_comment").str.contains(REQUESTS))
    made = orders.group_by(pl.col("o_custkey").alias("c_custkey")).len()
    numbers = tables.frame("customer").join(made, on="c_custkey", how="left").select(pl.col("len").fill_null(0))
    found = numbers.collect().to_series().to_numpy()
    return {k + 1: int((found >= k).sum()) for k in range(int(found.max()) + 1)}


def true_q16(tables: Tables) -> dict[object, int]:
    """The plain answer."""
    complained = tables.frame("supplier").filter(pl.col("s_comment").str.contains(COMPLAINTS))
    fine = _stocked(tables).join(complained, left_on="ps_suppkey", right_on="s_suppkey", how="anti")
    return _counts(fine.group_by("p_brand", "p_type", "p_size").agg(pl.col("ps_suppkey").n_unique()))


def _counts(frame: pl.LazyFrame) -> dict[object, int]:
    rows = frame.collect().rows()
    return {row[0] if len(row) == 2 else row[:-1]: row[-1] for row in rows}


def each_bin(measurement: Measurement, truth: dict[object, int]) -> np.ndarray:
    """Answers of the bins that the published tables release."""
    return measurement.observe_many(list(truth))


def typical(measurement: Measurement, truth: dict[object, int]) -> np.ndarray:
    """One number for every group: the one that most groups have, by the differences of the measured sequence."""
    groups = measurement.observe_many(range(1, MOST_SUPPLIERS + 1))
    mode = 1 + int(np.argmax(groups[:-1] - groups[1:]))
    return np.full(len(truth), mode)


Answers = Callable[[Measurement, dict[object, int]], np.ndarray]
QUERIES: dict[str, tuple[Callable[[Tables], Collection], Callable[[Tables], dict[object, int]], Answers]] = {
    "q1": (q1, true_q1, each_bin),
    "q4": (q4, true_q4, each_bin),
    "q13": (q13, true_q13, each_bin),
    "q16": (q16, true_q16, typical),
}


def errors(folder: Path, name: str, epsilon: Fraction, runs: int) -> tuple[list[float], str]:
    """Median relative errors of some runs, each with noise of its own, and what one run costs."""
    query, true, answers = QUERIES[name]
    with tempfile.TemporaryDirectory() as place:
        tables = Tables(folder, Path(place))
        truth = true(tables)
        exact = np.array(list(truth.values()))
        asked = query(tables)
        uses = _uses(asked)
        cost = ", ".join(f"{table} {float(count * epsilon):g}" for table, count in uses.items())
        repeated = [asked.measure(epsilon=epsilon * max(uses.values()), name=f"run {run}") for run in range(runs)]
        found = [float(np.median(np.abs(answers(one, truth) - exact) / exact)) for one in repeated]
    return found, cost


def _uses(collection: Collection) -> dict[str, Fraction]:
    """How often a query uses each table, by what `explain` says."""
    return {data.name: count for data, count in sensitivities(collection._node).items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of errors."""
    parser = argparse.ArgumentParser(description="Relative errors of four TPC-H counting queries.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="the generator's CSV or Parquet files")
    parser.add_argument("--epsilon", default="0.1", help="the noise has scale 1/epsilon")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the errors of all runs here")
    given = parser.parse_args(arguments)
    if given.runs < 1:
        parser.error("--runs: one at least")
    if given.json and not given.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no directory {given.json.parent}")
    try:
        table = answer(given.folder, positive(given.epsilon, "--epsilon"), given.runs)
    except wpinq.WpinqError as error:
        parser.error(str(error))
    if given.json:
        given.json.write_text(json.dumps(table, indent=2))
    return 0


def answer(folder: Path, epsilon: Fraction, runs: int) -> dict[str, list[float]]:
    """Print the table, a line for each query that has its files, and return the errors of all runs.

    Raises:
        SourceError: No query has its files.
    """
    table: dict[str, list[float]] = {}
    print(f"{'query':6} {'median error':>12} {'best run':>10} {'worst run':>10}  {'published':30} cost of a run")
    for name in QUERIES:
        try:
            table[name], cost = errors(folder, name, epsilon, runs)
        except wpinq.SourceError as missing:
            if name == list(QUERIES)[-1] and not table:
                raise
            print(f"{name} is left out: {missing}", file=sys.stderr)
            continue
        low, middle, high = min(table[name]), statistics.median(table[name]), max(table[name])
        print(f"{name:6} {middle:12.2g} {low:10.2g} {high:10.2g}  {PUBLISHED[name]:30} {cost}")
    return table


if __name__ == "__main__":
    sys.exit(main())
