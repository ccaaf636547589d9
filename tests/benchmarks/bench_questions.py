"""New questions about people, one after another, beside the same SELECT without privacy by DuckDB and Polars.

    python tests/benchmarks/bench_questions.py --rows 20000000 --runs 3
    python tests/benchmarks/bench_questions.py --rows 2000000 --runs 1 --folder /tmp/questions

Each kind of work is a process of its own, on one core with one thread, that of a server on all. What is told are CPU
seconds without the start of the process, medians of runs that take turns. DuckDB and Polars read the file for each
question, add no noise and know no people. Data come from a seed: a tenth as many users, a fortieth as many pages, with
heavy tails, and a number.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from unittest.mock import patch

from flags import flags

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

FIRST = ("page", "", 20)
SECOND = {
    "another WHERE": ("page", "page <> 'page/1'", 20),
    "another column": ("size", "", 20),
    "another bound": ("page", "", 5),
    "WHERE of a number": ("page", "size < 40", 20),
}
"""New questions: a column, a condition, and how many records of a person."""
TWENTY = [
    (column, where, bound)
    for column in ("page", "size")
    for where in ("size < 40", "size >= 30", "page <> 'page/7'", "page like '%1'", "size > 3 and page <> 'page/2'")
    for bound in (20, 3)
]
ANALYSTS = 10
CONFIG = """
[server]
port = 0

[data.views]
source = "views.parquet"
ledger = "ledger"
budget = 100000
unit = { column = "user", at_most = 20 }
"""


def make(path: Path, rows: int) -> None:
    """The file."""
    import polars as pl
    from speed_data import numbers

    found = numbers(rows)
    text = [pl.format("user{}", "user").alias("user"), pl.format("page/{}", "page").alias("page")]
    found.select(*text, (pl.col("page") * 31 % 97).alias("size")).write_parquet(path, row_group_size=122_700)


@contextmanager
def timed(found: dict[str, float], name: str):
    """CPU seconds of all threads, and by the clock."""
    clock, cpu = time.perf_counter(), time.process_time()
    yield
    found[name] = time.process_time() - cpu
    found[f"{name} (clock)"] = time.perf_counter() - clock


def wpinq_asks(path: Path, own: Path, index: str) -> dict[str, float]:
    """A first question, new ones, twenty, and the size of the index; each question is answered before the next."""
    import wpinq
    from wpinq.core.plan.node import sources

    told = {"memory": None, "file": True, "none": False}[index]
    found: dict[str, float] = {}
    views = wpinq.protect(path, 10**6, unit=wpinq.users("user", at_most=20), ledger=own / "ledger", index=told)

    def ask(column: str, where: str, bound: int, name: str) -> None:
        asked = views.at_most(bound)
        asked = asked.filter(where) if where else asked
        asked.map(column).measure(1, name=name).observe(40 if column == "size" else "page/1")

    views.filter("size > 0").quote(1)  # loads what reads SQL
    with timed(found, "first question"):
        ask(*FIRST, "first")
    if index == "memory":
        with timed(found, "question that makes the index"):
            ask(*FIRST, "makes")
    for name, question in SECOND.items():
        with timed(found, name):
            ask(*question, name)
    if index != "none":
        with timed(found, "twenty"):
            for number, question in enumerate(TWENTY):
                ask(*question, f"{number}")
        found |= sizes(next(iter(sources(views._node)[0].made["people"].indexes.values())))
    if index == "file":
        found["bytes a record, file"] = sum(one.stat().st_size for one in own.iterdir() if ".people-" in one.name)
        found["bytes a record, file"] = (found["bytes a record, file"] - found.pop("dictionary")) / found.pop("rows")
        views = wpinq.protect(path, unit=wpinq.users("user", at_most=20), ledger=own / "ledger", index=True)
        with timed(found, "first of the next process"):
            ask("page", "page <> 'page/3'", 20, "next")
    return found


def sizes(index: object) -> dict[str, float]:
    """What an index takes in memory, beside its different values."""
    parts = list(index.parts())
    rows = sum(map(len, parts))
    columns = [column for part in parts for column in part.columns.values()]
    dictionary = sum(column.values.estimated_size() for column in columns if column.numbers is not None)
    return {"bytes a record": (index.size - dictionary) / rows, "dictionary": dictionary, "rows": rows}


def other_asks(path: Path, ask) -> dict[str, float]:
    """The same questions without privacy; a bound changes nothing of them."""
    found: dict[str, float] = {}
    for name, question in {"first question": FIRST, **SECOND}.items():
        with timed(found, name):
            ask(*question[:2])
    with timed(found, "twenty"):
        for column, where, _ in TWENTY:
            ask(column, where)
    return found


def duckdb_asks(path: Path, own: Path, _: str) -> dict[str, float]:
    """By DuckDB, in one thread."""
    import duckdb

    link = duckdb.connect(config={"threads": 1})
    link.sql("select 1").arrow()

    def ask(column: str, where: str) -> None:
        condition = f"where {where}" if where else ""
        link.sql(f"select {column}, count(*) from '{path}' {condition} group by {column}").arrow().read_all()

    return other_asks(path, ask)


def polars_asks(path: Path, own: Path, _: str) -> dict[str, float]:
    """By Polars, in one thread."""
    import polars as pl

    pl.LazyFrame({"a": [1]}).collect()

    def ask(column: str, where: str) -> None:
        asked = pl.scan_parquet(path)
        asked = asked.filter(pl.sql_expr(where)) if where else asked
        asked.group_by(column).len().collect()

    return other_asks(path, ask)


def analysts(path: Path, own: Path, index: str) -> dict[str, float]:
    """Ten analysts of a server who ask new questions at once, after one who asked alone."""
    from serving import serving

    from wpinq.core.runs import people_index

    (own / "site.toml").write_text(CONFIG)
    os.link(path, own / "views.parquet")
    found: dict[str, float] = {}
    waits: list[float] = []

    def query(number: int) -> dict[str, object]:
        column, where, _ = TWENTY[2 * number]
        text = f"SELECT {column}, COUNT(*) AS c FROM views WHERE {where} GROUP BY {column}"
        return {"query": text, "keys": [40] if column == "size" else ["page/1"], "epsilon": "1", "dry": False}

    def ask(token: str, body: dict[str, object]) -> None:
        begun = time.perf_counter()
        link = HTTPConnection("127.0.0.1", site.port, timeout=3600)
        link.request("POST", "/api/sql", json.dumps(body), {"Authorization": f"Bearer {token}"})
        answer = link.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        link.close()
        waits.append(time.perf_counter() - begun)

    second = 10**9 if index == "none" else 2
    with patch.object(people_index, "SECOND", second), serving(own) as site:
        tokens = [site.token(f"analyst{number}", cap=100) for number in range(ANALYSTS)]
        for number in range(2):
            ask(
                tokens[0],
                {**query(0), "query": f"SELECT page, COUNT(*) AS c FROM views WHERE size > {number} GROUP BY page"},
            )
        with timed(found, "one alone"):
            ask(tokens[0], {**query(0), "query": "SELECT page, COUNT(*) AS c FROM views WHERE size < 90 GROUP BY page"})
        waits.clear()
        threads = [threading.Thread(target=ask, args=(token, query(number))) for number, token in enumerate(tokens)]
        with timed(found, "ten analysts, each question"):
            for one in threads:
                one.start()
            for one in threads:
                one.join()
        assert len(waits) == ANALYSTS
        found["ten analysts, each question"] /= ANALYSTS
        found["worst wait"] = max(waits)
    return found


WORKS = {
    "wpinq": (wpinq_asks, "memory"),
    "wpinq --index": (wpinq_asks, "file"),
    "wpinq, none": (wpinq_asks, "none"),
    "duckdb": (duckdb_asks, ""),
    "polars": (polars_asks, ""),
    "analysts": (analysts, "memory"),
    "analysts, none": (analysts, "none"),
}


def measured(name: str, path: Path) -> dict[str, float]:
    """The figures of one kind of work, from a process of its own."""
    with tempfile.TemporaryDirectory(dir=path.parent) as own:
        command = [sys.executable, __file__, "--work", name, "--file", str(path), "--own", own]
        several = name.startswith("analysts")
        cores = os.sched_getaffinity(0) if several else {max(os.sched_getaffinity(0))}
        one = {} if several else {"POLARS_MAX_THREADS": "1", "WPINQ_THREADS": "1"}
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, cores),
            env={**os.environ, **one},
        )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def bars(found: dict[str, dict[str, float]]) -> list[tuple[str, float, float]]:
    """What is asked for: a name, what was measured, and what it may be."""
    ours, filed, none = found["wpinq"], found["wpinq --index"], found["wpinq, none"]
    duck, many, alone = found["duckdb"], found["analysts"], found["analysts, none"]
    return [
        *((f"second question, {name}: x DuckDB", ours[name] / duck[name], 1.0) for name in SECOND),
        ("twenty questions: x DuckDB's twenty", ours["twenty"] / duck["twenty"], 1.5),
        ("ten analysts, CPU a question: x without the index one by one",
         many["ten analysts, each question"] / alone["one alone"], 0.2),
        ("ten analysts, worst wait: x one question alone", many["worst wait"] / many["one alone (clock)"], 3.0),
        ("ten analysts, worst wait: x one question alone without the index",
         many["worst wait"] / alone["one alone (clock)"], 3.0),
        ("index in memory, bytes a record beside the values", ours["bytes a record"], 12.0),
        ("index in its file, bytes a record beside the values", filed["bytes a record, file"], 12.0),
        ("first question with --index: x without", filed["first question"] / none["first question"], 1.1),
    ]  # fmt: skip


def main() -> None:
    """Measure, and print seconds, ratios and bars."""
    parser = flags(__doc__, "20,000 rows, once")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the file is kept for the next time, for one number of rows")
    parser.add_argument("--json", type=Path, help="keep the figures here")
    parser.add_argument("--work", choices=WORKS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--own", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        asks, index = WORKS[options.work]
        print(json.dumps(asks(options.file, options.own, index)))
        return
    rows, runs = (20_000, 1) if options.smoke else (options.rows, options.runs)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(exist_ok=True)
        path = folder / f"questions{rows}.parquet"
        if not path.exists():
            make(path, rows)
        seen: dict[str, list[dict[str, float]]] = {name: [] for name in WORKS}
        for run in range(runs):
            for name in list(WORKS)[:: 1 if run % 2 else -1]:
                seen[name].append(measured(name, path))
    found = {name: {key: statistics.median(one[key] for one in some) for key in some[0]} for name, some in seen.items()}
    show(found, rows)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "works": found}, indent=1))


def show(found: dict[str, dict[str, float]], rows: int) -> None:
    """Seconds of each kind of work, and the bars."""
    print(f"{platform.machine()}, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}; {rows:,} rows")
    for work, figures in found.items():
        print(f"\n{work}")
        for name, value in figures.items():
            if name not in ("dictionary", "rows"):
                print(f"  {name:38} {value:10.3f}")
    print(f"\n{'bar':66} {'is':>8} {'may be':>8}")
    for name, value, most in bars(found):
        print(f"{name:66} {value:8.2f} {most:8.2f}{'' if value <= most else '  no'}")


if __name__ == "__main__":
    main()
