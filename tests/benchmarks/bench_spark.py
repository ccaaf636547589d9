"""Spark on this machine and one process of ours: processor seconds, with the JVM and its Python workers, and memory.

    python tests/benchmarks/bench_spark.py --rows 16000000 --runs 3 --json spark.json
    python tests/benchmarks/bench_spark.py --generated 200000000
    python tests/benchmarks/bench_spark.py --smoke

It runs where PySpark and Java are. People are bounded to 20 records and pages counted, over the files of
`bench_processes.py`, which executors read; `--dataframe` lets Spark read them. With `--generated` Spark makes the rows
itself, so no file holds them, and the peak is that of the largest process, the JVM's heap included.

What Spark takes without us is measured too: a start with a job that does nothing, and the same files handed through
Python once before and once after they are dealt by user. So is Spark with the JVM's options of `large.md`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import bench_processes as own
from flags import flags

WORK = "people at most 20"
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What large.md tells who makes a session."""
OURS = "one process"
JOB = """
import sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
import wpinq
how, source, ledger, cores, java = sys.argv[1:]
settings = {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.driver.extraJavaOptions": java,
            "spark.sql.execution.arrow.maxRecordsPerBatch": "65536"}
session = SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()
same = lambda batches: batches
if how == "start":
    session.range(int(cores)).mapInArrow(same, "id long").collect()
    sys.exit(session.stop())
if how == "handed through":
    rows = session.read.parquet(source)
    dealt = rows.mapInArrow(same, rows.schema).repartition(int(cores), "user")
    dealt.mapInArrow(same, rows.schema).write.format("noop").mode("overwrite").save()
    sys.exit(session.stop())
if how == "generated":
    def drawn(name, salt, most):
        share = f"pmod(xxhash64(id, {salt}), 1000003) / 1000003.0D"
        return f"concat('{name}/', cast(pow({share}, 3) * {most} as bigint)) AS {name}"

    rows = session.range(int(source)).selectExpr(
        drawn("user", 1, int(source) // 10), drawn("page", 2, int(source) // 40))
    source, more = rows, {"version": "generated"}
elif how == "dataframe":
    source, more = session.read.parquet(source), {"version": "made"}
else:
    source, more = source + "/*.parquet", {}
person, engine = wpinq.users("user", at_most=20), wpinq.spark(session)
views = wpinq.protect(source, budget=9, ledger=ledger, unit=person, engine=engine, **more)
print(views.map("page").measure("0.1").observe("page/1"))
session.stop()
"""


def tree(process: int) -> list[int]:
    """A process and all that it started."""
    return [process, *(one for child in own.children(process) for one in tree(child))]


def timed(words: list[str]) -> dict[str, float]:
    """Wall and processor seconds of a command and of all that it starts, and the peak of the largest."""
    seen: dict[int, tuple[float, float]] = {}
    begun = time.monotonic()
    place = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    run = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=place)
    while True:
        for one in tree(run.pid):
            seen[one] = own.used(one) or seen.get(one, (0.0, 0.0))
        if os.waitid(os.P_PID, run.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.05)
    if run.wait():
        raise SystemExit("the run failed; its output is not shown, run the command by hand")
    wall = time.monotonic() - begun
    return {"wall": wall, "all": sum(cpu for cpu, _ in seen.values()), "peak": max(peak for _, peak in seen.values())}


def spark(how: str, source: str, cores: int, java: str) -> dict[str, float]:
    """A run on Spark, with a ledger of its own."""
    with tempfile.TemporaryDirectory() as place:
        job = Path(place) / "job.py"
        job.write_text(JOB)
        return timed([str(job), how, source, str(Path(place) / "ledger"), str(cores), java])


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(one[name] for one in runs) for name in runs[0]}


def compared(folder: Path, how: str, runs: int, cores: int, java: str) -> dict[str, dict[str, float]]:
    """One process of ours and Spark, which take turns."""
    name = f"Spark local[{cores}]"
    kinds = {f"{name}, start": ("start", java), f"{name}, handed through": ("handed through", java),
             f"{name}, {how}": (how, java), f"{name}, {how}, {JAVA}": (how, JAVA)}  # fmt: skip
    found: dict[str, list[dict[str, float]]] = {OURS: [], **{kind: [] for kind in kinds}}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as place:
            found[OURS].append(own.timed(own.command(WORK, folder, Path(place), 1), 1))
        for kind, (job, options) in kinds.items():
            found[kind].append(spark(job, str(folder), cores, options))
    return {kind: medians(made) for kind, made in found.items()}


def main() -> None:
    parser = flags(__doc__, "200,000 rows, once")
    parser.add_argument("--rows", type=int, default=16_000_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--java", default="", help="options of the JVM, as --java=-XX:TieredStopAtLevel=1")
    parser.add_argument("--dataframe", action="store_true", help="Spark reads the files; else wpinq does, on executors")
    parser.add_argument("--generated", type=int, help="so many rows that Spark makes; on Spark alone")
    parser.add_argument("--keep", type=Path, help="make the data here, or take what an earlier run made")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not find_spec("pyspark") or not shutil.which("java"):
        print("there is no PySpark or no Java here; .ci/spark says how to have both")
        return
    rows, runs = (200_000, 1) if options.smoke else (options.rows, options.runs)
    if options.generated:
        found = {
            f"Spark local[{options.cores}], generated": spark(
                "generated", str(options.generated), options.cores, options.java
            )
        }
    else:
        with tempfile.TemporaryDirectory() as made:
            folder = options.keep or Path(made)
            folder.mkdir(exist_ok=True)
            if not list(folder.glob("*.parquet")):
                maker = multiprocessing.get_context("spawn").Process(target=own.make, args=(folder, rows))
                maker.start()
                maker.join()
            found = compared(folder, "dataframe" if options.dataframe else "files", runs, options.cores, options.java)
    print(f"| {options.generated or rows:,} rows, {WORK} | wall s | all CPU s | of one process | largest MB |")
    print("|---|--:|--:|--:|--:|")
    for name, one in found.items():
        ratio = f"{one['all'] / found[OURS]['all']:.1f}" if OURS in found else ""
        print(f"| {name} | {one['wall']:.1f} | {one['all']:.1f} | {ratio} | {one['peak']:.0f} |")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
