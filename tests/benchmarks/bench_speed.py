"""The private answer against the same count without privacy: whole processes, from spawn to exit, interleaved.

    python tests/benchmarks/bench_speed.py --rows 20000000 --runs 5 --json speed.json
    python tests/benchmarks/bench_speed.py --smoke

Each piece of work runs once with every engine in turn, the order reversed from run to run; medians are shown, and
ratios to the first engine of the work. CPU seconds count user and system time of all threads: on a busy machine they
say more than the wall. Data come from a seed. Polars is used lazily, DuckDB as it is installed; both add insecure
NumPy noise and keep no ledger. `--large` adds the same file ten times over. The engine's share and the noise are
measured inside one process each (`bench_speed_inside.py`).
"""

from __future__ import annotations

import argparse
import compileall
import datetime as dt
import importlib.util
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from wpinq import kernels

OURS = """
import sys, tempfile, wpinq
ledger = tempfile.mkdtemp() + "/ledger"
pages = wpinq.protect(sys.argv[1], budget=10, ledger=ledger, {columns}).map(lambda user, page: page)
"""
CDF = "cdf = pages.shave().map(lambda page, index: index).measure(0.1)\n"
SEQUENCE = """
sequence = pages.shave().map(lambda page, index: index).shave().map(lambda index, rank: rank).measure(0.1)
views = pages.measure(0.1)
"""
ASK_CDF = "assert len(cdf.observe_many(range(1, 1001))) == 1000\n"
NAMES = "import polars as pl\nnames = pl.read_parquet(sys.argv[2])['page']\n"
ASK_ALL = NAMES + ASK_CDF + "sequence.observe_many(range(1, 1001)); views.observe_many(names[:1000])\n"
ASK_GIVEN = NAMES + "views = pages.measure(0.1); assert len(views.observe_many(names)) == len(names)\n"

TAIL = """
counts = np.bincount(np.minimum(found, 1001), weights=times, minlength=1002)
answer = counts[::-1].cumsum()[::-1][1:1001] + np.random.laplace(0, 10, 1000)
"""
POLARS = """
import sys, numpy as np, polars as pl
found = pl.{scan}(sys.argv[1]).group_by("page").agg(pl.len()).select("len").collect()["len"].to_numpy()
times = None
"""
POLARS_GIVEN = """
import sys, numpy as np, polars as pl
counts = pl.scan_parquet(sys.argv[1]).group_by("page").agg(pl.len())
found = pl.scan_parquet(sys.argv[2]).join(counts, on="page", how="left").select(pl.col("len").fill_null(0)).collect()
answer = found.to_series().to_numpy() + np.random.laplace(0, 10, len(found))
"""
DUCKDB = """
import sys, duckdb, numpy as np
query = "with c as (select count(*) n from {table} group by page) select least(n, 1001) n, count(*) k from c group by 1"
found, times = duckdb.sql(query.replace("$1", sys.argv[1])).fetchnumpy().values()
"""


def ours(*parts: str, columns: str = "") -> str:
    """A script of ours."""
    return OURS.format(columns=columns) + "".join(parts)


def works(folder: Path, large: bool) -> dict[str, tuple[str, dict[str, str]]]:
    """For each piece of work the file that it reads and its script by engine; the first is what others are held to."""
    cdf = ours(CDF, ASK_CDF)
    parquet = {
        "polars": POLARS.format(scan="scan_parquet") + TAIL,
        "wpinq": cdf,
        "duckdb": DUCKDB.format(table="'$1'") + TAIL,
    }
    csv = {
        "polars": POLARS.format(scan="scan_csv") + TAIL,
        "wpinq": cdf,
        "duckdb": DUCKDB.format(table="read_csv('$1')") + TAIL,
    }
    found = {
        "CDF, text ids, Parquet": ("text.parquet", parquet),
        "CDF, integer ids, Parquet": ("int.parquet", parquet),
        "CDF, text ids, CSV": ("text.csv", csv),
        "CDF, sequence and views together": ("text.parquet", {"CDF alone": cdf, "wpinq": ours(CDF, SEQUENCE, ASK_ALL)}),
        "all given pages": ("text.parquet", {"polars": POLARS_GIVEN, "wpinq": ours(ASK_GIVEN)}),
        "CDF, 10,000 rows": ("small.parquet", parquet),
        "import": ("small.parquet", {"python": "", "wpinq": "import wpinq"}),
    }
    if large:
        found["CDF, the file ten times over"] = (str(folder / "ten" / "*.parquet"), {"wpinq": cdf})
    if importlib.util.find_spec("duckdb") is None:
        print("duckdb is left out: it is not installed")
        for _, scripts in found.values():
            scripts.pop("duckdb", None)
    return found


def make(folder: Path, rows: int, large: bool) -> None:
    """Zipf's pages and users, by seed."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(7)

    def zipf(distinct: int, power: float) -> np.ndarray:
        share = np.cumsum(1 / np.arange(1, distinct + 1) ** power)
        return rng.permutation(distinct)[np.searchsorted(share / share[-1], rng.random(rows))]

    numbers = pl.DataFrame({"user": zipf(max(rows // 10, 1), 0.8), "page": zipf(max(rows // 40, 1), 1.0)})
    text = numbers.select(pl.format("user{}", "user").alias("user"), pl.format("page/{}", "page").alias("page"))
    numbers.write_parquet(folder / "int.parquet", row_group_size=122_700)
    text.write_parquet(folder / "text.parquet", row_group_size=122_700)
    text.write_csv(folder / "text.csv")
    text.head(10_000).write_parquet(folder / "small.parquet")
    text.select("page").unique(maintain_order=True).write_parquet(folder / "names.parquet")
    if large:
        (folder / "ten").mkdir()
        for number in range(10):
            os.link(folder / "text.parquet", folder / "ten" / f"{number}.parquet")


def timed(script: str, *arguments: str) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak megabytes of a process."""
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", script, *arguments])
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit("a benchmark failed")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measure(folder: Path, runs: int, large: bool) -> list[dict[str, object]]:
    """Every piece of work with every engine."""
    rows: list[dict[str, object]] = []
    for title, (file, scripts) in works(folder, large).items():
        seen: dict[str, list[tuple[float, float, float]]] = {engine: [] for engine in scripts}
        for run in range(runs):
            for engine in list(scripts)[:: 1 if run % 2 else -1]:
                seen[engine].append(timed(scripts[engine], str(folder / file), str(folder / "names.parquet")))
        middle = {
            engine: [statistics.median(part) for part in zip(*each, strict=True)] for engine, each in seen.items()
        }
        first = next(iter(middle.values()))
        for engine, (wall, cpu, peak) in middle.items():
            ratios = {"wall ratio": wall / first[0], "cpu ratio": cpu / first[1]}
            rows.append({"work": title, "engine": engine, "wall": wall, "cpu": cpu, **ratios, "peak MB": peak})
    return rows


def show(rows: list[dict[str, object]]) -> None:
    """One table."""
    now, load = dt.datetime.now().astimezone().date(), os.getloadavg()[0]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    compiled = "compiled kernels" if kernels.LIB is not None else "no compiled kernels"
    print(f"\n{now}, {machine}, load {load:.1f}, {compiled}\n")
    print("| work | engine | wall s | ratio | CPU s | ratio | peak MB |\n|---|---|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row['work']} | {row['engine']} | {row['wall']:.3f} | {row['wall ratio']:.2f} "
            f"| {row['cpu']:.3f} | {row['cpu ratio']:.2f} | {row['peak MB']:.0f} |"
        )


def main() -> None:
    """Make the data, measure, and show one table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="also the same file ten times over")
    parser.add_argument("--smoke", action="store_true", help="200,000 rows, once")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows, runs = (200_000, 1) if options.smoke else (options.rows, options.runs)
    compileall.compile_dir(Path(kernels.__file__).parents[1], quiet=1)  # as an installation does
    with tempfile.TemporaryDirectory() as folder:
        # in another process, because a child's peak memory begins at that of its parent
        maker = multiprocessing.get_context("spawn").Process(target=make, args=(Path(folder), rows, options.large))
        maker.start()
        maker.join()
        found = measure(Path(folder), runs, options.large)
    show(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
