"""Answers of many plans over fixed secrets, as they were once: a change of the code alone must not change one of them.

Whoever changes what noise depends on, on purpose, records them anew (`python tests/contracts/test_recorded_answers.py`)
and says under Privacy in the changes that older questions are new ones. Fingerprints of functions cover the versions of
Python and of Polars, so on others there is nothing to compare.
"""

import datetime as dt
import json
import os
import sys
from pathlib import Path

import polars as pl
import pytest
from depth import thin

import wpinq
from wpinq.core.kernels import partitions, sums
from wpinq.core.ledger.rows.secret import Secret

RECORDED = Path(__file__).with_name("recorded_answers.json")
VERSIONS = {"python": sys.version.split()[0], "polars": pl.__version__}
SECRET = Secret(bytes(range(32)))
DAY = dt.datetime(2026, 11, 1)
ROWS = [
    (f"u{i * i % 37}", f"p{i % 11 * (i % 3 > 0)}", i % 7 if i % 13 else None, i % 50 / 4,
     DAY + dt.timedelta(0, 420 * i))
    for i in range(400)
]  # fmt: skip
COLUMNS = {"user": str, "page": str, "n": int, "x": float, "at": dt.datetime}
PAGES = [f"p{i}" for i in range(12)]


def views(unit=None, **more):
    """The same records under the same secret, every time."""
    return wpinq.protect(ROWS, budget=1000, delta="1/100", columns=COLUMNS, unit=unit, secret=SECRET, name="views",
                         version="v", **more)  # fmt: skip


def people(**bounds):
    return views(wpinq.users("user", **bounds))


def observed(collection, bins, epsilon=1, **more):
    return [float(one) for one in collection.measure(epsilon, **more).observe_many(bins)]


def live(unit=None):
    return wpinq.live(COLUMNS, budget=1000, delta="1/100", unit=unit, secret=SECRET, name="live")


def released(release):
    return [release.threshold, *([str(one) for one in row] for row in release.rows)]


def at_epochs(unit=None):
    source = live(unit)
    one = source.map("page").shave().map("index").measure(1)
    continual = source.map("page").measure(1, continual=True)
    windows = source.window("1h", at="at").map("page").measure(1)
    found = []
    for part in range(4):
        source.send(ROWS[part * 100 : part * 100 + 100])
        source.advance(until=ROWS[part * 100 + 99][4])
        found.append([float(one) for one in continual.observe_many(PAGES)])
    found.append([float(one) for one in one.observe_many(range(1, 40))])
    found.append([float(one) for one in windows.observe_many(PAGES, window=DAY)])
    source.close()
    return found


def fit(one):
    return [float(value) for value in (*one.cdf, *one.sequence)]


def answered(query, source=None, **more):
    answer = wpinq.sql(query, {"views": source or views()}, epsilon=5, bounds={"x": (0, 15), "n": (0, 10)}, **more)
    return [[str(cell) for cell in row] for row in answer.rows]


PLANS = {
    "measure": lambda: observed(views().map("page"), PAGES),
    "measure traced": lambda: observed(views().map(lambda page: page), PAGES),
    "measure plain": lambda: observed(views().map(lambda page: page if page != "p0" else None), [*PAGES, None]),
    "measure polars": lambda: observed(views().map(pl.col("page").str.to_uppercase()), ["P0", "P1"]),
    "measure tuple": lambda: observed(views().map("user, page"), [("u1", "p1"), ("u0", "p0"), ("no", "no")]),
    "measure number": lambda: observed(views().map("x"), [0, 0.25, 1.5]),
    "measure named": lambda: observed(views().map("page"), PAGES, name="again"),
    "measure laplace": lambda: observed(views().map("page"), PAGES, mechanism="laplace"),
    "measure within": lambda: observed(views().map("page"), PAGES, None, within=5),
    "filter sql": lambda: observed(views().filter("n > 2 AND page <> 'p0'").map("page"), PAGES),
    "filter traced": lambda: observed(views().filter(lambda n: n > 2).map("page"), PAGES),
    "flat_map": lambda: observed(views().flat_map(lambda page, n: [page] * (n or 1), columns=["page"]), PAGES),
    "shave": lambda: observed(views().map("page").shave().map("index"), range(1, 60)),
    "shave twice": lambda: observed(views().map("page").shave().map("index").shave(name="rank").map("rank"),
                                    range(1, 20)),
    "shave fine": lambda: observed(views().map("page").shave("1/3").map("index"), range(1, 60)),
    "concat": lambda: observed(views().map("page").concat(views().map("user")), ["p1", "u1"]),
    "subtract": lambda: observed(views().map("page").subtract(views().filter("n = 1").map("page")), PAGES),
    "union": lambda: observed(views().map("page").union(views().filter("n = 1").map("page")), PAGES),
    "intersect": lambda: observed(views().map("page").intersect(views().filter("n = 1").map("page")), PAGES),
    "distinct": lambda: observed(views().map("user, page").distinct().map("page"), PAGES),
    "join": lambda: observed(views().map("user, page").join(views().map("user, n"), on="user").map("page, n"),
                             [("p0", 1), ("p1", 2)]),
    "join at most": lambda: observed(views().map("user, page").join(views().map("user, n"), on="user", at_most=5)
                                     .map("page"), PAGES),
    "join of join": lambda: observed(
        views().map("user, n").join(views().map("user, n"), on="user").map("user").join(views().map("user"), on="user"),
        ["u1", "u4"]),
    "semijoin": lambda: observed(views().semijoin(views().filter("n = 3"), on="user").map("page"), PAGES),
    "antijoin": lambda: observed(views().antijoin(views().filter("n = 3"), on="page").map("page"), PAGES),
    "limit": lambda: observed(views().limit("user").map("page"), PAGES),
    "group_by": lambda: observed(views().map("user, page").group_by("user").map("user"), ["u1", "u4"]),
    "group_by whole": lambda: observed(views().group_by("user", len, columns=["size"], whole=True).map("size"),
                                       range(1, 30)),
    "partition": lambda: observed(views().partition("page", ["p1", "p2"])["p2"].map("n"), range(7)),
    "window": lambda: views().window("1h", at="at").map("page").measure(1).observe_many(PAGES, window=DAY).tolist(),
    "people": lambda: observed(people(at_most=5).map("page"), PAGES),
    "people per": lambda: observed(people(at_most=5, per=("page", 1)).map("page"), PAGES),
    "people shared": lambda: observed(people(shared=True).map("page"), PAGES),
    "weights": lambda: observed(views(weight="n", max_weight=3).map("page"), PAGES),
    "select": lambda: [str(row) for row in views().map("page").select(1, delta="1e-6").bins.rows()],
    "release": lambda: released(views().map("page").measure(1).release(delta="1e-6")),
    "release people": lambda: released(people(at_most=5).map("page").measure(1).release(delta="1e-6")),
    "count": lambda: views().count(1).value,
    "count by": lambda: views().count(1, by="page", keys=PAGES).table().rows(),
    "sum": lambda: views().sum("x", bounds=(0, 15), epsilon=1).value,
    "mean": lambda: views().mean("x", bounds=(0, 15), epsilon=1).value,
    "variance": lambda: views().variance("x", bounds=(0, 15), epsilon=1).value,
    "median": lambda: views().median("x", bounds=(0, 15), epsilon=1).value,
    "max": lambda: views().max("x", bounds=(0, 15), epsilon=1).value,
    "sql": lambda: answered("SELECT page, COUNT(*) AS c, SUM(x), AVG(n) FROM views GROUP BY page ORDER BY page",
                            keys=PAGES),
    "sql released": lambda: answered("SELECT page, COUNT(DISTINCT user) AS c FROM views GROUP BY page ORDER BY page",
                                     delta="1e-6"),
    "degrees": lambda: fit(wpinq.degrees.release(views().map("page"), 2)),
    "reconcile": lambda: fit(wpinq.degrees.reconcile(wpinq.degrees.cdf(views().map("page")).measure(1),
                                                     wpinq.degrees.sequence(views().map("page")).measure(1))),
    "epochs": at_epochs,
}  # fmt: skip


def answers(name):
    """The answers of one plan, as JSON has them."""
    return json.loads(json.dumps(PLANS[name]()))


@pytest.fixture(autouse=True)
def nothing_is_drawn(monkeypatch):
    """The identity of a ledger and the version of a live source are drawn at random; noise depends on them."""
    monkeypatch.setattr(os, "urandom", bytes)


@pytest.mark.parametrize("name", PLANS)
def test_an_answer_is_what_it_was(name):
    recorded = json.loads(RECORDED.read_text())
    if recorded["versions"] != VERSIONS:
        pytest.skip(f"recorded with {recorded['versions']}, which fingerprints cover; here are {VERSIONS}")
    assert answers(name) == recorded["answers"][name]


@thin(4)
@pytest.mark.parametrize("name", PLANS)
def test_tables_that_overflow_change_no_answer(name, monkeypatch):
    """Identities go from tables to partitions at once, and partitions are added up one by one."""
    monkeypatch.setattr(sums, "SMALL", 1)
    monkeypatch.setattr(sums, "LARGE", 2)
    monkeypatch.setattr(sums, "LARGEST", 2)
    monkeypatch.setattr(partitions, "BITS", 3)
    monkeypatch.setattr(partitions, "ARENA", 16)
    monkeypatch.setattr(partitions, "BLOCK", 4)
    test_an_answer_is_what_it_was(name)


if __name__ == "__main__":
    os.urandom = bytes
    found = {"versions": VERSIONS, "answers": {name: answers(name) for name in PLANS}}
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")
