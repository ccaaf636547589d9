"""Pieces of work of `bench_speed.py` about memory: as many distinct values as there are, in memory that is bounded."""

from __future__ import annotations

BOUNDED = """
import sys, duckdb, numpy as np
duckdb.sql("set memory_limit = '2GB'")
duckdb.sql(f"set temp_directory = '{sys.argv[3]}'")
ask = lambda text: duckdb.sql(text.replace('$1', sys.argv[1]))
"""
LIMIT = "import sys, wpinq\nwpinq.limit_memory('1GB', spill=sys.argv[3])\n"
VIEWS = "assert len(pages.measure(0.1).observe_many(range(1000))) == 1000\n"


def within(cdf: dict[str, str], duck: str, ours: str) -> tuple[dict[str, str], dict[str, str]]:
    """A CDF, and counts of 1,000 pages, where DuckDB may hold 2 GB and we 1 GB of what is counted.

    Args:
        cdf: The scripts of a CDF without a bound.
        duck: How DuckDB's begins.
        ours: How ours begins.
    """
    bounded = {"duckdb, 2 GB": BOUNDED + cdf["duckdb"].removeprefix(duck), "wpinq, 1 GB": LIMIT + cdf["wpinq"]}
    counts = {
        "duckdb": duck
        + """
found = ask('''with c as (select page, count(*) n from '$1' group by page)
select n from range(1000) left join c on c.page = range''').fetchnumpy()['n']
""",
        "wpinq": ours + VIEWS,
        "wpinq, 1 GB": LIMIT + ours + VIEWS,
    }
    return bounded, counts
