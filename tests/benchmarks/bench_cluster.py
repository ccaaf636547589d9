"""One process and several on the same Parquet files: wall, processor seconds, peak memory, bytes between them.

    python tests/benchmarks/bench_cluster.py --rows 100000000 --processes 1 2 --json cluster.json
    python tests/benchmarks/bench_cluster.py --rows 100000000 --pinned
    python tests/benchmarks/bench_cluster.py --smoke

Each work is a whole `wpinq run`, from spawn to exit, over files made from a seed: text ids with a heavy tail. CPU
seconds are those of all processes together, the peak is that of the largest. Bytes are counted by the loopback
interface, in a network namespace of the run's own where one can be made; where not, other traffic counts too.

Measured on 2026-11-21, 100 million rows (797 MB; 10 million users, 2.5 million pages), two cores that were busy with
other work, so walls say little:

| work            | processes | CPU s | peak MB | sent MB | CPU s, sent MB before processes added up first |
|-----------------|----------:|------:|--------:|--------:|-----------------------------------------------:|
| CDF of pages    |         1 |   8.1 |     400 |       0 |                                                |
| CDF of pages    |         2 |  10.9 |     440 |      55 |                                      16.2, 484 |
| CDF of users    |         1 |  11.1 |     820 |       0 |                                                |
| CDF of users    |         2 |  18.8 |     980 |     202 |                                    25.2, 1,203 |
| counts of pages |         1 |   8.9 |     470 |       0 |                                                |
| counts of pages |         2 |  11.9 |     640 |      54 |                                      15.0, 514 |

Two processes do not pay on two cores: one process decodes with two threads and already uses both. The second one costs
0.8 s to start and 0.3 to 0.9 microseconds for each identity that it sends, because most pages and users are seen by
both processes: each adds them up, and one of them adds them up again. Two machines pay: each reads half of the files.

Each process on a core of its own (`--pinned`, 2026-11-22, 100 million rows, the quicker of two runs), as on two hosts:

| work            | one: CPU s | two: CPU s of each | times as fast |
|-----------------|-----------:|-------------------:|--------------:|
| CDF of pages    |        7.1 |           4.2, 4.4 |           1.6 |
| CDF of users    |        9.9 |           7.3, 6.6 |           1.4 |
| counts of pages |        7.2 |           4.6, 3.9 |           1.6 |

What keeps it from 2: 0.5 s of start are in each process, and what both saw is added up twice. Half of the rows of one
process would take 3.8 s of pages and 5.2 of users; the rest, 0.6 and 2.1 s of 100 million rows, is that exchange. A
fifth to a quarter of a process that counts users goes into fresh memory, which the system clears.

What 100 processes and 10^11 rows would cost, by the same distributions (2.5 * 10^9 pages; 10^9 rows a process):

- Reading and adding up: 80 processor seconds a process, 100 with the exchange of the next line.
- Of a column a process sees d distinct values: sum(1 - exp(-rows * chance)), here 2.2 * 10^8. It sends 24 bytes for
  each, 5.3 GB, once; 530 GB cross the network, 43 s at 1 Gbit/s for each machine. This exchange grows with
  processes * d; the one of measured histograms with the distinct values that are measured.
- State: 24 bytes a slot, at most 7/10 full and grown fourfold. A process sends what it has added up whenever that is
  2^27 identities, so its table stays at 6.4 GB, and after the exchange it holds 2.5 * 10^7 identities. Without that
  bound the first table to break would be this one: 26 GB for 2.2 * 10^8 identities, 103 GB beyond 7 * 10^8.
- A CDF then is a step function of some thousand steps. A histogram by name is gathered in process 0: 2.5 * 10^9 pages
  are 60 GB there, and three times that while they are sorted. That breaks first, at about 10^9 measured bins.
- A declared version (`--data-version`) is sealed with a digest of all bytes that process 0 reads alone: 800 GB, a
  quarter of an hour. Files at one path on a shared file system need no declared version, and no digest.
- The engine opens 100 * 99 connections, and every process reads the footers of all Parquet files.
"""

from __future__ import annotations

import argparse
import compileall
import json
import multiprocessing
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from wpinq.core import kernels

CHUNK = 10_000_000
"""Rows of a file."""
SCRIPT = """
def dataflow(views):
    return {{"cdf": views.map(lambda {column}: {column}).shave().map(lambda index: index).measure("0.1")}}
"""
COUNTS = """
def dataflow(views):
    return {"counts": views.map(lambda page: page).measure("0.1")}
"""
SMOKE = ("CDF of pages",)
WORKS = {
    "CDF of pages": (SCRIPT.format(column="page"), "cdf=1..1000"),
    "CDF of users": (SCRIPT.format(column="user"), "cdf=1..1000"),
    "counts of pages": (COUNTS, "counts=page/1,page/2"),
}
QUIET = "ip link set lo up && exec "
"""A new network namespace begins with its loopback interface down."""


def make(folder: Path, rows: int) -> None:
    """Zipf's pages and users, by seed, in files of `CHUNK` rows."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(7)
    chances = {"user": _zipf(max(rows // 10, 1), 0.8), "page": _zipf(max(rows // 40, 1), 1.0)}
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


def timed(command: list[str]) -> dict[str, float]:
    """Wall and CPU seconds, peak and megabytes between processes of a command and all that it starts."""
    apart = ["unshare", "-n", "sh", "-c", QUIET + '"$@"; ', "sh"] if _namespaces() else []
    counting = [sys.executable, "-c", COUNTING]
    start = time.perf_counter()
    child = subprocess.Popen([*apart, *counting, *command], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    out = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit("a benchmark failed")
    wall = time.perf_counter() - start
    sent = float(out.rpartition("bytes ")[2])
    return {
        "wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak MB": used.ru_maxrss / 1024, "sent MB": sent / 1e6
    }  # fmt: skip


COUNTING = """
import subprocess, sys
def sent():
    lines = open("/proc/net/dev").read().splitlines()
    return next(int(one.split()[9]) for one in lines if one.strip().startswith("lo:"))
before = sent()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print("bytes", sent() - before)
sys.exit(done.returncode)
"""


def _namespaces() -> bool:
    try:
        words = ["unshare", "-n", "sh", "-c", QUIET + "true"]
        return subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def pinned(folder: Path, processes: list[int], runs: int, works: Sequence[str]) -> None:
    """Processes as on hosts of one core each: the processor seconds of each, its time where a core is its own.

    The quickest run of each kind counts, because other work on the machine only ever adds.
    """
    print("| work | processes | CPU s of each | times as fast |\n|---|--:|---|--:|")
    for title in works:
        script, asked = WORKS[title]
        (folder / "flow.py").write_text(script)
        words = [
            "wpinq",
            "run",
            str(folder / "flow.py"),
            str(folder / "*.parquet"),
            "--budget",
            "1",
            "--observe",
            asked,
        ]
        first = 0.0
        for number in processes:
            seen = [_each([sys.executable, "-m", *words], number) for _ in range(runs)]
            best = min(seen, key=max)
            first = first or max(best)
            times = ", ".join(f"{one:.2f}" for one in best)
            print(f"| {title} | {number} | {times} | {first / max(best):.2f} |", flush=True)


def _each(command: list[str], number: int) -> list[float]:
    """The processor seconds of each process of a run, the i-th of them on core i."""
    with tempfile.TemporaryDirectory() as place:
        started, keys = [], Path(place) / "keys"
        addresses = ",".join(f"127.0.0.1:{_port()}" for _ in range(number))
        for own in range(number):
            hosts = ["--process-id", str(own), "--addresses", addresses, "--keys", str(keys)] if number > 1 else []
            ledger = [] if own else ["--ledger", f"{place}/ledger"]
            words = ["taskset", "-c", str(own), *command, *hosts, *ledger]
            started.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
            while hosts and not keys.exists():
                time.sleep(0.05)
        ended = [os.wait4(one.pid, 0)[1:] for one in started]
        if any(status for status, _ in ended):
            raise SystemExit("a benchmark failed")
        return [used.ru_utime + used.ru_stime for _, used in ended]


def _port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def measure(folder: Path, processes: list[int], runs: int, works: Sequence[str]) -> list[dict[str, object]]:
    """Every work with every number of processes, interleaved, the order reversed from run to run."""
    rows: list[dict[str, object]] = []
    for title in works:
        script, asked = WORKS[title]
        (folder / "flow.py").write_text(script)
        seen: dict[int, list[dict[str, float]]] = {number: [] for number in processes}
        for run in range(runs):
            for number in processes[:: 1 if run % 2 else -1]:
                with tempfile.TemporaryDirectory() as place:
                    words = [str(folder / "flow.py"), str(folder / "*.parquet"), "--budget", "1", "--observe", asked]
                    more = ["--ledger", f"{place}/ledger", "--processes", str(number)]
                    seen[number].append(timed([sys.executable, "-m", "wpinq", "run", *words, *more]))
        for number, each in seen.items():
            middle = {what: statistics.median(one[what] for one in each) for what in each[0]}
            rows.append({"work": title, "processes": number, **middle})
    return rows


def show(rows: list[dict[str, object]]) -> None:
    """One table."""
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    print(f"\n{machine}, load {os.getloadavg()[0]:.1f}, {'' if kernels.LIB is not None else 'no '}compiled kernels\n")
    print("| work | processes | wall s | CPU s | peak MB | sent MB |\n|---|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row['work']} | {row['processes']} | {row['wall']:.2f} | {row['cpu']:.2f} "
            f"| {row['peak MB']:.0f} | {row['sent MB']:.1f} |"
        )


def main() -> None:
    """Make the data, measure, and show one table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--pinned", action="store_true", help="each process on a core of its own; its CPU seconds")
    parser.add_argument("--smoke", action="store_true", help="200,000 rows, one work, once")
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
        if options.pinned:
            return pinned(folder, options.processes, runs, tuple(WORKS))
        found = measure(folder, options.processes, runs, SMOKE if options.smoke else tuple(WORKS))
    show(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    return None


if __name__ == "__main__":
    main()
