"""The pieces of work of `bench_speed.py`: for each what is read, and one script by engine.

A script is a whole process. Its arguments are the file, a second file, and an empty folder of its own. It may print one
line of JSON, of figures that are seen only inside: they are shown beside the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from speed_memory import within

SMALL = 1_000_000
"""Rows of the file for work that is also done on few."""


@dataclass(frozen=True)
class Work:
    """One piece of work.

    Attributes:
        title: What is done.
        file: The file that it reads.
        scripts: The script of each engine; the others are held to the first.
        other: The second file.
    """

    title: str
    file: str
    scripts: dict[str, str]
    other: str = "pages.parquet"


OPEN = """
import sys, wpinq
views = wpinq.protect(sys.argv[1], budget=10**6, delta=1e-3, ledger=sys.argv[3] + "/ledger"{unit})
"""
OURS = OPEN.format(unit="") + "pages = views.map('page')\n"
PEOPLE = OPEN.format(unit=", unit=wpinq.users('user', at_most=20)")
NAMES = "import polars as pl\nnames = pl.read_parquet(sys.argv[2])['page']\n"
LAZY = "import sys, numpy as np, polars as pl\nviews = pl.scan_{form}(sys.argv[1])\n"
DUCK = """
import sys, duckdb, numpy as np
ask = lambda text: duckdb.sql(text.replace('$1', sys.argv[1]).replace('$2', sys.argv[2]))
"""
CLI = "import sys\nfrom wpinq.apps.cli import main\nfolder = sys.argv[3]\nsys.argv[:] = ['wpinq', {command}]\nmain()\n"
LEDGER = "'--budget', '1', '--ledger', folder + '/ledger'"

CDF = OURS + "cdf = pages.shave().map('index').measure(0.1)\n"
SEQUENCE = """
sequence = pages.shave().map('index').shave().map(lambda index, rank: rank).measure(0.1)
shown = pages.measure(0.1)
"""
ASK_CDF = "assert len(cdf.observe_many(range(1, 1001))) == 1000\n"
ASK_ALL = NAMES + ASK_CDF + "sequence.observe_many(range(1, 1001)); shown.observe_many(names[:1000])\n"
TAIL = """
counts = np.bincount(np.minimum(found, 1001), weights=times, minlength=1002)
answer = counts[::-1].cumsum()[::-1][1:1001] + np.random.laplace(0, 10, 1000)
"""
POLARS_CDF = LAZY + "found = views.group_by('page').len().select('len').collect()['len'].to_numpy()\ntimes = None\n"
DUCK_CDF = (
    DUCK
    + """
found, times = ask('''with c as (select count(*) n from {table} group by page)
select least(n, 1001) n, count(*) k from c group by 1''').fetchnumpy().values()
"""
)


def cdf(form: str) -> dict[str, str]:
    """1,000 values of a degree CDF."""
    table = "'$1'" if form == "parquet" else f"read_{form}('$1')"
    return {
        "polars": POLARS_CDF.format(form=form) + TAIL,
        "duckdb": DUCK_CDF.replace("{table}", table) + TAIL,
        "wpinq": CDF + ASK_CDF,
    }


PARQUET = LAZY.format(form="parquet")
LOOK_UP = "table = pl.scan_parquet(sys.argv[2])\n"
NOISE = "answer = found.to_numpy() + np.random.laplace(0, 10, len(found))\n"
GIVEN = {
    "polars": PARQUET
    + LOOK_UP
    + "found = table.select('page').join(views.group_by('page').len(), on='page', how='left').collect()['len']\n"
    + "found = found.fill_null(0)\n"
    + NOISE,
    "duckdb": DUCK
    + """
found = ask('''with c as (select page, count(*) n from '$1' group by page)
select coalesce(n, 0) n from '$2' left join c using (page)''').fetchnumpy()['n']
answer = found + np.random.laplace(0, 10, len(found))
""",
    "wpinq": OURS + NAMES + "assert len(pages.measure(0.1).observe_many(names)) == len(names)\n",
}
BOUNDED = {
    "polars": PARQUET
    + "kept = views.filter(pl.int_range(pl.len()).shuffle().over('user') < 20)\n"
    + "found = kept.group_by('page').len().collect()['len']\n"
    + NOISE,
    "duckdb": DUCK
    + """
found = ask('''with r as (select user, page, random() as r from '$1'),
k as (select page, row_number() over (partition by user order by r) as place from r)
select page, count(*) n from k where place <= 20 group by page''').fetchnumpy()['n']
answer = found + np.random.laplace(0, 10, len(found))
""",
    "wpinq": PEOPLE
    + NAMES
    + "assert len(views.map('page').measure(0.1).observe_many(names[:1000])) == len(names[:1000])\n",
}
TOP = "SELECT page, COUNT(DISTINCT user) AS people FROM views GROUP BY page ORDER BY people DESC LIMIT 5"
DISTINCT = {
    "polars": PARQUET + "found = views.group_by('page').agg(pl.n_unique('user')).top_k(5, by='user').collect()\n",
    "duckdb": DUCK + f"ask('''{TOP.replace('views', chr(39) + '$1' + chr(39))}''').fetchall()\n",
    "wpinq sql": PEOPLE + f"assert len(wpinq.sql('{TOP}', {{'views': views}}, epsilon=1, delta=1e-6)) <= 5\n",
}
SIZES = {
    "polars": PARQUET + "found = views.group_by('user').len().group_by('len').len('n').collect()['n']\n" + NOISE,
    "duckdb": DUCK
    + """
found = ask('''with c as (select user, count(*) n from '$1' group by user)
select n, count(*) k from c group by n''').fetchnumpy()['k']
answer = found + np.random.laplace(0, 10, len(found))
""",
    "wpinq": OPEN.format(unit="")
    + "sizes = views.group_by('user', len).map('value').measure(0.1)\nsizes.observe_many(range(1, 101))\n",
}
COUNTS = {engine: script.split("counts =")[0] for engine, script in cdf("parquet").items() if engine != "wpinq"}
RELEASE = COUNTS | {"wpinq": OURS + "wpinq.degrees.release(pages, epsilon=0.2)\n"}
CATEGORIES = "SELECT category, COUNT(*) AS n FROM views JOIN pages ON views.page = pages.page GROUP BY category"
ASK_CATEGORIES = "joined.observe_many(range(100))\n"
JOIN = {
    "polars": PARQUET
    + LOOK_UP
    + "found = views.join(table, on='page').group_by('category').len().collect()['len']\n"
    + NOISE,
    "duckdb": DUCK
    + """
found = ask('''select category, count(*) n from '$1' join '$2' using (page) group by category''').fetchnumpy()['n']
answer = found + np.random.laplace(0, 10, len(found))
""",
    "wpinq join": OPEN.format(unit="")
    + "pages = wpinq.protect(sys.argv[2], budget=10**6, ledger=sys.argv[3] + '/pages')\n"
    + "joined = views.join(pages, on='page', result='category').measure(0.1)\n"
    + ASK_CATEGORIES,
    "wpinq sql": OPEN.format(unit="")
    + f"""
tables = {{'views': views, 'pages': (sys.argv[2], {{'page': str, 'category': int}})}}
assert len(wpinq.sql('{CATEGORIES}', tables, epsilon=1, keys=list(range(100)))) == 100
""",
}
SMALL_CSV = {
    "polars": LAZY.format(form="csv") + "found = views.group_by('page').len().collect()['len']\n" + NOISE,
    "duckdb": DUCK + "ask('''select count(*) n from read_csv('$1') group by page''').fetchnumpy()\n",
    "wpinq degrees": CLI.format(command=f"'degrees', sys.argv[1], '--of', 'page', {LEDGER}"),
    "wpinq degrees --json --plot": CLI.format(
        command=f"'degrees', sys.argv[1], '--of', 'page', {LEDGER}, '--json', folder + '/a', "
        "'--plot', folder + '/a.png'"
    ),
    "wpinq sql": CLI.format(
        command="'sql', 'SELECT page, COUNT(*) FROM views GROUP BY page', '--from', 'views=' + sys.argv[1], "
        f"'--epsilon', '1', '--delta', '1e-6', {LEDGER}"
    ),
    "wpinq --help": "import sys\nfrom wpinq.apps.cli import main\nsys.argv[:] = ['wpinq', '--help']\nmain()\n",
    "import wpinq": "import wpinq\n",
}
CHARGES = """
import json, shutil, subprocess, sys, time, wpinq
shutil.copytree(sys.argv[1], sys.argv[3] + "/ledger")
shutil.copytree(sys.argv[1], sys.argv[3] + "/copied")
wpinq.protect(sys.argv[2], budget=1, ledger=sys.argv[3] + "/first").map("page").measure(1)  # loads what is needed
OPEN = "import sys, wpinq; views = wpinq.protect(sys.argv[1], budget=10**9, ledger=sys.argv[2])"
used = time.process_time()
wpinq.protect(sys.argv[2], budget=10**9, ledger=sys.argv[3] + "/copied/of")  # a copy: each row is verified
copied = time.process_time() - used
subprocess.run([sys.executable, "-c", OPEN, sys.argv[2], sys.argv[3] + "/ledger/of"], check=True)
used = time.process_time()
views = wpinq.protect(sys.argv[2], budget=10**9, ledger=sys.argv[3] + "/ledger/of")  # as a process has left it
opened = time.process_time() - used
pages, used = views.map("page"), time.process_time()
for number in range(20):
    pages.measure(1, name=f"one more {number}")
charge = (time.process_time() - used) / 20
figures = {"open": opened, "open a copy": copied, "a charge": charge}
print(json.dumps({f"{name}, CPU ms": 1e3 * seconds for name, seconds in figures.items()}))
"""
OBSERVE = (
    OURS
    + NAMES
    + """
import json, time
shown, names = pages.measure(0.1), names.to_list()
shown.observe(names[0])
used = time.process_time()
for name in names[:10_000]:
    shown.observe(name)
print(json.dumps({"observe, CPU us": 1e6 * (time.process_time() - used) / len(names[:10_000])}))
"""
)
FUNCTIONS = (
    OURS
    + """
import json, time
pages.measure(0.1).observe("x")  # loads what is needed
figures = {}
for name, made in {
    "filter": views.filter(lambda user, page: len(set(page)) + len(user) > 6).map("page"),
    "map": views.map(lambda user, page: user[: int(page[5:]) % 3 + 5], columns={"x": str}),
    "flat_map": views.flat_map(lambda user, page: [user, page], columns={"x": str}),
}.items():
    used = time.process_time()
    made.measure(0.1).observe("x")
    figures[f"{name}, CPU s"] = time.process_time() - used
print(json.dumps(figures))
"""
)
"""Functions that no expression stands for: each is called for every different record."""
LIVE = """
import json, sys, time, polars as pl, wpinq
table = pl.read_parquet(sys.argv[1])
places = {"ledger": sys.argv[3] + "/ledger", "recover": sys.argv[3] + "/journal"}
live = wpinq.live({"user": str, "page": str}, budget=10, **places)
live.map("page").shave().map("index").measure(0.1)
lots = [table[at : at + 1000] for at in range(0, table.height, 1000)]
start, used = time.perf_counter(), time.process_time()
for lot in lots:
    live.send(lot)
    live.advance()
wall, cpu = time.perf_counter() - start, time.process_time() - used
live.close()
print(json.dumps({"rows a second": table.height / wall, "rows a CPU second": table.height / cpu}))
"""
WITHIN, COUNTED = within(cdf("parquet"), DUCK, OURS)

WORKS = [
    *(
        Work(f"CDF, {kind} ids, Parquet by {writer}", f"{kind}_{writer}.parquet", cdf("parquet"))
        for kind in ("text", "integer")
        for writer in ("polars", "pyarrow", "duckdb")
    ),
    Work("CDF, text ids, CSV", "text.csv", cdf("csv")),
    Work("CDF, distinct integers, five times the rows", "distinct.parquet", cdf("parquet")),
    Work("CDF, the same in bounded memory", "distinct.parquet", WITHIN),
    Work("counts of 1,000 of these integers", "distinct.parquet", COUNTED),
    Work("counts of all given pages", "text_polars.parquet", GIVEN),
    Work("people, at most 20: counts of 1,000 pages", "text_polars.parquet", BOUNDED),
    Work(f"people, at most 20, {SMALL:,} rows", "few.parquet", BOUNDED),
    Work("COUNT(DISTINCT user) by page, of people", "text_polars.parquet", DISTINCT),
    Work("group_by(user, len), counts of sizes", "text_polars.parquet", SIZES),
    Work("degrees.release", "text_polars.parquet", RELEASE),
    Work("join with a table of pages", "text_polars.parquet", JOIN),
    Work("CDF, 10,000 rows", "small.parquet", cdf("parquet")),
    Work("command line, 10,000 rows of CSV", "small.csv", SMALL_CSV),
    Work(
        "CDF, sequence and views together",
        "text_polars.parquet",
        {"CDF alone": CDF + ASK_CDF, "wpinq": CDF + SEQUENCE + ASK_ALL},
    ),
    Work("a ledger of many charges", "ledger", {"wpinq": CHARGES}, "small.csv"),
    Work("observe one by one", "small.parquet", {"wpinq": OBSERVE}),
    Work(f"Python functions, {SMALL:,} rows", "few.parquet", {"wpinq": FUNCTIONS}),
    Work("live, 1,000 rows an epoch, journal on", "live.parquet", {"wpinq": LIVE}),
]
LARGE = Work("CDF, the file ten times over", "ten/*.parquet", cdf("parquet"))
