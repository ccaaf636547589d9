"""Mistakes that people make at the command line, as they write them, and a piece of what they are told.

`$D` stands for `degrees`, `$S` for `sql`, `$R` for `run`, each with what it needs. What is read lies in a directory
that `made` fills; a record of it holds MARK.
"""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl

MARK = "zqxmarker"
RELEASE = """
[data]
source = "views/{date}.csv"
ledger = "ledger"
[budget]
epsilon = 5
[[question]]
name = "views"
counts = ["page"]
keys = ["home"]
epsilon = 1
plot = false
[[sink]]
directory = "out/{date}"
"""
SERVER = """
[server]
tokens = "tokens"
[data.views]
source = "v.csv"
ledger = "ledger"
budget = 2
"""


def made(home: Path) -> None:
    """Fill a directory with files, good and bad."""
    rows = f"{MARK},home,1\nbob,news,2\n"
    texts = {
        "v.csv": f"user,page,n\n{rows}",
        "spaces.csv": f"user, page\n{MARK}, home\n",
        "semi.csv": "user;page\na;b\n",
        "cr.csv": f"user,page\r{MARK},home\r",
        "empty.csv": "",
        "twice.csv": f"user,page,user\n{MARK},a,b\n",
        "nameless.csv": f"user,,page\n{MARK},a,b\n",
        "quote.csv": f'user,"page\n{MARK},b\n',
        "e.tsv": f"user page\n{MARK}\n",
        "v.txt": f"{MARK} home\n",
        "v.jsonl": f'{{"user": "{MARK}"}}\n',
        "v.xlsx": "PK\x03\x04",
        "v.dat": rows,
        "a.log": f"{MARK}\n",
        "fake.parquet": rows,
        "fake.arrow": rows,
        "fake.db": rows,
        "keys.csv": "home\n",
        "nokeys.csv": "",
        "wide.csv": "a,b\n",
        "badkeys.json": '["home"',
        "nokeys.json": "[]",
        "sp ace.csv": f"user,page\n{MARK},b\n",
        "other/w.csv": f"user,site\n{MARK},b\n",
        "mixed/a.csv": "user,page\n",
        "mixed/b.jsonl": "{}",
        "hidden/_a.csv": "user\n",
        "differ/a.csv": "user,page\n",
        "differ/b.csv": "user,site\n",
        "public.csv": "page,town\nhome,Rome\n",
        "views/2026-11-21.csv": f"user,page\n{MARK},home\n",
        "good.py": "def dataflow(views):\n    return {'m': views.map('page').measure(1)}\n",
        "syntax.py": "def dataflow(views)\n    return {}\n",
        "lacks.py": "import nosuchmodule\n",
        "nothing.py": "x = 1\n",
        "none.py": "def dataflow(views):\n    return None\n",
        "empty.py": "",
        "odd.py": "def dataflow(views):\n    return {1: 2}\n",
        "column.py": "def dataflow(views):\n    return {'m': views.map('site').measure(1)}\n",
        "raises.py": "def dataflow(views):\n    return 1 / 0\n",
        "free.py": "def dataflow(views):\n    return {'m': views.measure(0)}\n",
        "site.toml": RELEASE,
        "broken.toml": "[data",
        "noledger.toml": RELEASE.replace('"ledger"', '""'),
        "nul.toml": RELEASE.replace('"out/', '"out\\u0000/'),
        "nulserve.toml": SERVER.replace('"tokens"', '"tok\\u0000ens"'),
        "empty.toml": "",
        "serve.toml": SERVER,
        "unknown.toml": RELEASE.replace("ledger =", "ledgers ="),
        "nosink.toml": RELEASE.partition("[[sink]]")[0],
        "columns.toml": RELEASE.replace('["page"]', '["site"]'),
        "negative.toml": RELEASE.replace("= 5", "= -5"),
        "serves.toml": SERVER.replace("budget", "budgets"),
        "gone.toml": SERVER.replace("v.csv", "gone.csv"),
    }
    for name, text in texts.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_bytes(text.encode())
    (home / "void").mkdir()
    (home / "zip.csv").write_bytes(gzip.compress((home / "v.csv").read_bytes()))
    (home / "cut.csv.gz").write_bytes(gzip.compress((home / "v.csv").read_bytes() * 999)[:-40])
    (home / "plain.csv.gz").write_bytes((home / "v.csv").read_bytes())
    (home / "marked.csv").write_text((home / "v.csv").read_text(), "utf-16")
    (home / "unmarked.csv").write_text((home / "v.csv").read_text(), "utf-16-le")
    (home / "latin.csv").write_bytes(f"user,straße\n{MARK},b\n".encode("latin-1"))
    pl.DataFrame({"user": [MARK], "page": ["a"]}).write_parquet(home / "v.parquet")
    (home / "parquet.csv").write_bytes((home / "v.parquet").read_bytes())
    (home / "cut.parquet").write_bytes((home / "v.parquet").read_bytes()[:-9])
    (home / "loop.csv").symlink_to("loop.csv")
    with closing(sqlite3.connect(home / "shop.db")) as base, base:
        base.execute("CREATE TABLE views (user TEXT, page TEXT)")
        base.execute("INSERT INTO views VALUES (?, 'a')", (MARK,))
    base.close()


SHORT = {
    "$D": "degrees v.csv --of page --budget 1",
    "$d": "--of page --budget 1",
    "$S": "sql 'SELECT page, COUNT(*) AS c FROM v GROUP BY page' --from v=v.csv",
    "$s": "--from v=v.csv --epsilon 1 --budget 2",
    "$R": "run good.py v.csv --budget 2",
    "$G": "'SELECT page, COUNT(*) AS c FROM v GROUP BY page'",
}
