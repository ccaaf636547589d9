"""One process and several on the same Parquet files: processor seconds of each, wall, and the memory of the largest.

    python tests/benchmarks/bench_processes.py --rows 20000000 --processes 1 2 --runs 3 --json processes.json
    python tests/benchmarks/bench_processes.py --smoke

Each work is a whole `wpinq` command, from spawn to exit, over files made from a seed: text ids with a heavy tail. One
process is bound to one core; of several each has one thread. `first` is the processor time of the first process, which
charges, adds histograms up and answers, `largest` that of the largest of the others, which start with it and read files
for damage before the charge. `first + largest` is what a run takes at the most where each process has its own core,
and the ratio is that of one process to it; `others` leaves the first process out: the ratio to the busiest one. Figures
are medians of runs that take turns.

Measured on 2026-11-25, 20 million rows, two cores that did nothing else, three runs each (the first three works with
the shards as they are; the others before these were made larger):

| work | processes | wall s | first CPU s | largest other CPU s | all CPU s | peak MB | ratio | others |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
| people at most 20 | 1 | 10.1 | 10.0 | | 10.0 | 897 | | |
| people at most 20 | 2 | 7.6 | 0.8 | 6.7 | 14.2 | 437 | 1.33 | 1.50 |
| group sizes | 1 | 9.5 | 9.5 | | 9.5 | 958 | | |
| group sizes | 2 | 7.1 | 1.1 | 6.0 | 13.0 | 427 | 1.34 | 1.58 |
| counts of records | 1 | 2.7 | 2.7 | | 2.7 | 236 | | |
| counts of records | 2 | 2.3 | 0.8 | 1.6 | 4.0 | 242 | 1.14 | 1.68 |
| self join | 1 | 22.5 | 22.4 | | 22.4 | 1126 | | |
| self join | 2 | 16.4 | 0.9 | 15.2 | 31.1 | 518 | 1.40 | 1.48 |
| COUNT(DISTINCT) | 1 | 11.6 | 11.6 | | 11.6 | 1134 | | |
| COUNT(DISTINCT) | 2 | 9.4 | 1.0 | 8.3 | 17.4 | 475 | 1.26 | 1.41 |
"""

from __future__ import annotations

import compileall
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
from typing import TypeAlias

from flags import flags

from wpinq.core import kernels

CHUNK = 2_000_000
"""Rows of a file."""
PEOPLE = ["--unit", "user", "--at-most", "20"]
SCRIPTS = {
    "people at most 20": ("views.map('page').measure('0.1')", PEOPLE),
    "group sizes": ("views.group_by('user', len).measure('0.1')", []),
    "self join": ("views.limit('user', 4).join_rows(views.limit('user', 4), left='user', right='user')"
                  ".map('page').measure('0.1')", []),
    "counts of records": ("views.map('page').measure('0.1')", []),
    "CDF of users": ("views.map('user').shave().map('index').measure('0.1')", []),
}  # fmt: skip
COUNTED = "SELECT COUNT(DISTINCT user) AS people FROM views WHERE page <> 'page/1'"
WORKS = (*SCRIPTS, "COUNT(DISTINCT)")
SMOKE = ("people at most 20",)
Found: TypeAlias = "dict[str, dict[str, dict[str, float]]]"
TICKS = os.sysconf("SC_CLK_TCK")


def make(folder: Path, rows: int, each: tuple[int, int] = (10, 40)) -> None:
    """Zipf's pages and users, by seed, in files of `CHUNK` rows; so many rows for each user, and for each page."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(7)
    chances = {"user": _zipf(max(rows // each[0], 1), 0.8), "page": _zipf(max(rows // each[1], 1), 1.0)}
    names = {
        column: pl.select(pl.format(f"{column}/{{}}", pl.lit(pl.Series(rng.permutation(len(chance)))))).to_series()
        for column, chance in chances.items()
    }
    for number, start in enumerate(range(0, rows, CHUNK)):
        size = min(CHUNK, rows - start)
        drawn = {column: np.searchsorted(chance, np.sort(rng.random(size))) for column, chance in chances.items()}
        columns = {column: names[column].gather(rng.permutation(one)) for column, one in drawn.items()}
        pl.DataFrame(columns).write_parquet(folder / f"{number:03}.parquet", row_group_size=122_700)


def _zipf(distinct: int, power: float):
    import numpy as np

    share = np.cumsum(1 / np.arange(1, distinct + 1) ** power)
    return share / share[-1]


def command(work: str, folder: Path, place: Path, processes: int) -> list[str]:
    """The words of a run with a ledger of its own."""
    ledger = ["--ledger", str(place / "ledger"), "--budget", "9"]
    several = [] if processes == 1 else ["--processes", str(processes)]
    if work not in SCRIPTS:
        words = ["sql", COUNTED, "--from", f"views={folder}/*.parquet", "--epsilon", "1", *PEOPLE]
        return [*words, *ledger, *several]
    plan, unit = SCRIPTS[work]
    (place / "flow.py").write_text(f"def dataflow(views):\n    return {{'m': {plan}}}\n")
    asked = {"group sizes": "m=user/1:1", "CDF of users": "m=1..9"}.get(work, "m=page/1")
    return ["run", str(place / "flow.py"), f"{folder}/*.parquet", "--observe", asked, *unit, *ledger, *several]


def timed(words: list[str], processes: int) -> dict[str, float]:
    """Wall and processor seconds of a command and of the processes that it starts, and the peak of the largest."""
    seen: dict[int, tuple[float, float]] = {}
    core = min(os.sched_getaffinity(0))
    bound = ["taskset", "-c", str(core)] if processes == 1 else []
    begun = time.monotonic()
    run = subprocess.Popen([*bound, sys.executable, "-m", "wpinq", *words], stdout=subprocess.DEVNULL)
    while True:
        for one in (run.pid, *children(run.pid)):
            seen[one] = used(one) or seen.get(one, (0.0, 0.0))
        if os.waitid(os.P_PID, run.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            seen[run.pid] = used(run.pid) or seen[run.pid]  # it is not reaped yet, so its times are whole
            break
        time.sleep(0.02)
    wall = time.monotonic() - begun
    if run.wait():
        raise SystemExit(f"failed: {words}")
    first, first_peak = seen.pop(run.pid)
    others = list(seen.values()) or [(0.0, 0.0)]
    return {
        "wall": wall, "first": first, "largest": max(cpu for cpu, _ in others),
        "all": first + sum(cpu for cpu, _ in others), "peak": max(first_peak, *(peak for _, peak in others)),
    }  # fmt: skip


def children(process: int) -> list[int]:
    """Those that any of its threads started, as a JVM's do."""
    try:
        return [
            int(one) for file in Path(f"/proc/{process}/task").glob("*/children") for one in file.read_text().split()
        ]
    except OSError:
        return []


def used(process: int) -> tuple[float, float] | None:
    """Processor seconds and the peak in MB so far; None where it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        peak = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmHWM")]
    except OSError:
        return None
    cpu = (int(fields[11]) + int(fields[12])) / TICKS
    PEAKS[process] = int(peak[0].split()[1]) / 1000 if peak else PEAKS.get(process, 0.0)
    return cpu, PEAKS[process]


PEAKS: dict[int, float] = {}


def measure(
    folder: Path, several: list[int], runs: int, works: tuple[str, ...]
) -> dict[str, dict[str, dict[str, float]]]:
    """Medians for each work and number of processes, which take turns."""
    found: dict[str, dict[int, list[dict[str, float]]]] = {work: {n: [] for n in several} for work in works}
    for work in works:
        for _ in range(runs):
            for processes in several:
                with tempfile.TemporaryDirectory() as place:
                    found[work][processes].append(timed(command(work, folder, Path(place), processes), processes))
    return {
        work: {
            str(processes): {key: statistics.median(one[key] for one in made) for key in made[0]}
            for processes, made in by.items()
        }
        for work, by in found.items()
    }


def show(found: Found) -> None:
    print("| work | processes | wall s | first CPU s | largest other CPU s | all CPU s | peak MB | ratio | others |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for work, by in found.items():
        one = by.get("1")
        for processes, made in by.items():
            whole = made["first"] + made["largest"]
            ratio = f"{one['first'] / whole:.2f}" if one else ""
            others = f"{one['first'] / made['largest']:.2f}" if one and made["largest"] else ""
            cells = [f"{made[key]:.1f}" for key in ("wall", "first", "largest", "all")]
            print(f"| {work} | {processes} | {' | '.join(cells)} | {made['peak']:.0f} | {ratio} | {others} |")


def main() -> None:
    parser = flags(__doc__, "200,000 rows, one work, once")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--keep", type=Path, help="make the data here, or take what an earlier run made")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows, runs = (200_000, 1) if options.smoke else (options.rows, options.runs)
    compileall.compile_dir(Path(kernels.__file__).parents[1], quiet=1)  # as an installation does
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or Path(made)
        folder.mkdir(exist_ok=True)
        if not list(folder.glob("*.parquet")):
            # in another process, because a child's peak memory begins at that of its parent
            maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder, rows))
            maker.start()
            maker.join()
        found = measure(folder, options.processes, runs, SMOKE if options.smoke else tuple(options.works))
    print(f"{rows:,} rows; {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}")
    show(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
