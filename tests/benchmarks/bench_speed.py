"""The private answer against the same answer without privacy: whole processes, from spawn to exit, interleaved.

    python tests/benchmarks/bench_speed.py --runs 5 --json speed.json
    python tests/benchmarks/bench_speed.py --rows 2000000 --only people --folder /tmp/speed
    python tests/benchmarks/bench_speed.py --markdown speed.json

Each piece of work runs once with every engine in turn, the order reversed from run to run; medians are shown, and
ratios to the first engine of the work. CPU seconds count user and system time of all threads: on a busy machine they
say more than the wall. Data come from a seed (`speed_data.py`), and stay in `--folder` if one is given. Polars is used
lazily, DuckDB as it is installed; both add insecure NumPy noise and keep no ledger (`speed_works.py`). `--only` chooses
pieces of work, and engines with `--engine`, by a part of their name. `--large` adds the same file ten times over.
`--markdown` makes the table of README.md of what `--json` kept. The engine's share and the noise are measured
inside one process each (`bench_speed_inside.py`).
"""

from __future__ import annotations

import compileall
import datetime as dt
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
from typing import Any

from flags import flags
from speed_works import LARGE, WORKS, Work

from wpinq.core import kernels

sys.path.insert(0, str(Path(__file__).parents[1]))  # what tests share

import processes

LONGEST = 600
"""Seconds after which a piece of work is not repeated."""
SIDES = ("wall", "cpu", "peak MB")


def make(folder: Path, rows: int, wanted: set[str]) -> None:
    """The files, in a process of their own: a child's peak memory begins at that of its parent."""
    import speed_data

    speed_data.make(folder, rows, wanted)


def timed(script: str, file: Path, other: Path, begin: type[subprocess.Popen[Any]]) -> dict[str, float]:
    """Wall seconds, CPU seconds and peak megabytes of a process, and the figures that it printed."""
    with tempfile.TemporaryDirectory() as own:
        start = time.perf_counter()
        child = begin([sys.executable, "-c", script, str(file), str(other), own], stdout=subprocess.PIPE, cwd=own)
        assert child.stdout is not None
        printed = child.stdout.read().decode()
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(f"a benchmark failed:\n{script}")
    figures = json.loads(printed) if printed.startswith('{"') else {}
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak MB": used.ru_maxrss / 1024} | figures


def measure(
    work: Work, folder: Path, runs: int, engine: str, begin: type[subprocess.Popen[Any]]
) -> dict[str, dict[str, float]]:
    """A piece of work by every engine: medians."""
    scripts = {name: script for name, script in work.scripts.items() if engine in name}
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in scripts}
    start = time.perf_counter()
    for run in range(runs):
        for name in list(scripts)[:: 1 if run % 2 else -1]:
            seen[name].append(timed(scripts[name], folder / work.file, folder / work.other, begin))
        if time.perf_counter() - start > LONGEST:
            break
    return {
        name: {side: statistics.median(one[side] for one in found) for side in found[0]} for name, found in seen.items()
    }


def show(title: str, found: dict[str, dict[str, float]]) -> None:
    """The rows of one piece of work."""
    first = next(iter(found.values()), {})
    for engine, sides in found.items():
        more = ", ".join(f"{name}: {value:,.1f}" for name, value in sides.items() if name not in SIDES)
        ratios = " | ".join(f"{sides[side]:.3f} | {sides[side] / first[side]:.2f}" for side in SIDES)
        print(f"| {title} | {engine} | {ratios} | {more} |", flush=True)


def markdown(kept: dict[str, Any]) -> None:
    """The table of README.md: what ours takes, as ratios to each peer of clock, processor and memory."""
    print("| work | clock: to Polars | to DuckDB | processor: to Polars | to DuckDB | memory: to Polars | to DuckDB |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for title, found in kept["works"].items():
        peers = [found.get(peer) for peer in ("polars", "duckdb")]
        for engine, sides in found.items():
            if engine.startswith("wpinq") and any(peers):
                named = title + engine.replace("wpinq", ":" if engine != "wpinq" else "")
                ratios = [f"{sides[side] / peer[side]:.2f}" if peer else "" for side in SIDES for peer in peers]
                print(f"| {named} | {' | '.join(ratios)} |")
    print(f"\n{kept['machine']}; {kept['rows']:,} rows")


def main() -> None:
    """Make the data, measure, and show one table."""
    parser = flags(__doc__, "20,000 rows, once")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="part of the title of a piece of work")
    parser.add_argument("--engine", default="", help="part of the name of an engine")
    parser.add_argument("--folder", type=Path, help="where data are kept for the next time, for one number of rows")
    parser.add_argument("--large", action="store_true", help="also the same file ten times over")
    parser.add_argument("--json", type=Path, help="keep the figures here")
    parser.add_argument("--markdown", type=Path, help="show the table of README.md of figures that were kept")
    options = parser.parse_args()
    if options.markdown:
        return markdown(json.loads(options.markdown.read_text()))
    rows, runs = (20_000, 1) if options.smoke else (options.rows, options.runs)
    begin = processes.Popen if options.smoke else subprocess.Popen  # copies, of a smoke run, which compares nothing
    works = [work for work in [*WORKS, *[LARGE] * options.large] if options.only in work.title]
    compileall.compile_dir(Path(kernels.__file__).parents[1], quiet=1)  # as an installation does
    machine = f"{dt.datetime.now().astimezone().date()}, {os.cpu_count()} cores, {platform.machine()}, "
    machine += f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}, "
    machine += f"{'' if kernels.LIB else 'no '}compiled kernels"
    print(f"{machine}; {rows:,} rows\n\n| work | engine | wall s | ratio | CPU s | ratio | peak MB | ratio | inside |")
    print("|---|---|--:|--:|--:|--:|--:|--:|---|")
    kept: dict[str, Any] = {"machine": machine, "rows": rows, "works": {}}
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(exist_ok=True)
        for work in works:
            wanted = {work.file, work.other, "small.csv", "text_polars.parquet"}
            maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder, rows, wanted))
            maker.start()
            maker.join()
            assert maker.exitcode == 0, "the data could not be made"
            kept["works"][work.title] = measure(work, folder, runs, options.engine, begin)
            show(work.title, kept["works"][work.title])
            if options.json:
                options.json.write_text(json.dumps(kept, indent=1))
    processes.STEM_OF_THIS.end()
    return None


if __name__ == "__main__":
    main()
