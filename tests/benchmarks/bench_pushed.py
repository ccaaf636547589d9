"""What it takes to count where records lie, in SQLite and DuckDB, and to read them: CPU of this process, in one run.

    python tests/benchmarks/bench_pushed.py
    python tests/benchmarks/bench_pushed.py --smoke

Each plan is computed with rows that are counted or left out by the database, and with rows that are read one by one, in
turn; the histograms must be equal. The least CPU seconds of some rounds, and their ratio. A table has columns of 20, 4,
1,000, 100,000 and of all different values. What the ledger, the digest and the noise take is left out: it is the same.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
from flags import flags

import wpinq
from wpinq.core.plan.dataset import DataSet
from wpinq.core.runs import run

MADE = """SELECT 'u' || (hash(i) % 100000) AS user, '/page/' || (hash(i * 7) % 1000) AS page, (hash(i * 3) % 20)::BIGINT
AS k, ['NL', 'DE', 'FR', 'BE'][1 + (hash(i * 11) % 4)::BIGINT] AS country, i AS id FROM range({}) AS r(i)"""
PLANS: dict[str, Callable[[Any], Any]] = {
    "count by page": lambda views: views.map("page"),
    "count by number": lambda views: views.map("k"),
    "count by country and page": lambda views: views.map("country, page"),
    "count by user": lambda views: views.map("user"),
    "count by id": lambda views: views.map("id"),
    "by page, of one country": lambda views: views.filter("country = 'NL'").map("page"),
    "by page, of one user": lambda views: views.filter("user = 'u77'").map("page"),
    "by page, of some countries": lambda views: views.filter("k <> 3 AND country IN ('DE', 'FR')").map("page"),
}
PEOPLE = ("by page, of one country", "count by page")
"""Those that are asked of people too, of whom rows are left out and never counted."""


def files(folder: Path, rows: int) -> Iterator[tuple[str, int, Any]]:
    """The same table in both databases; SQLite, which is slower, has a quarter of the rows."""
    with closing(duckdb.connect(str(folder / "t.duckdb"))) as made:
        made.execute(f"CREATE TABLE t AS {MADE.format(rows)}")
        few = made.execute(f"SELECT * FROM t LIMIT {rows // 4}").fetchall()
    with closing(sqlite3.connect(folder / "t.db")) as lite, lite:
        lite.execute("CREATE TABLE t (user TEXT, page TEXT, k INTEGER, country TEXT, id INTEGER)")
        lite.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", few)
    yield "duckdb", rows, f"duckdb:{folder / 't.duckdb'}?table=t"
    yield "sqlite", rows // 4, f"sqlite:{folder / 't.db'}?table=t"


def read(data: DataSet, names: Any, anyone: Any, **words: Any) -> Any:
    """Rows one by one."""
    return data.batches(names, **words)


def computed(plan: Any, *, counted: bool) -> tuple[float, list[Any]]:
    """CPU seconds of a histogram, and what it holds, in order."""
    with patch.object(DataSet, "counted", DataSet.counted if counted else read), patch.object(run, "indexed", list):
        start = time.process_time()
        (histogram,) = run.compute([plan._node])
        taken = time.process_time() - start
    ids, weights = histogram.content()
    return taken, sorted(zip(ids.tolist(), weights.tolist(), strict=True))


def compared(plan: Any, rounds: int) -> tuple[float, float]:
    """The least CPU seconds of both ways."""
    taken: dict[bool, float] = {}
    contents = []
    for _ in range(rounds):
        for counted in (True, False):
            seconds, content = computed(plan, counted=counted)
            taken[counted] = min(taken.get(counted, seconds), seconds)
            contents.append(content)
    if any(content != contents[0] for content in contents):
        raise SystemExit("histograms differ")
    return taken[True], taken[False]


def main() -> None:
    """Print a table."""
    smoke = flags(__doc__, "few rows, once").parse_args().smoke
    print("| database | rows | unit | plan | there, s | read, s | ratio |\n|---|--:|---|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as place:
        for name, rows, source in files(Path(place), 40_000 if smoke else 4_000_000):
            for unit, plans in ((None, PLANS), (wpinq.users("user", at_most=20), dict.fromkeys(PEOPLE))):
                ledger = Path(place) / f"{name}-{unit is None}"
                views = wpinq.protect(source, unit=unit, budget=1, ledger=ledger)
                for plan in plans:
                    there, here = compared(PLANS[plan](views), 1 if smoke else 3)
                    of = "record" if unit is None else "person"
                    print(f"| {name} | {rows:,} | {of} | {plan} | {there:.3f} | {here:.3f} | {there / here:.2f} |")


if __name__ == "__main__":
    main()
