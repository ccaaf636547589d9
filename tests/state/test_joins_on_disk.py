"""Joins beyond memory: both sides are cut by their keys, wait on disk, and are joined part by part, bit for bit."""

import os
import subprocess
import sys

import numpy as np
import polars as pl
import processes
import pytest
from depth import often, thin
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.core.engines import local, select, shards, threads
from wpinq.core.engines.job import Job
from wpinq.core.engines.shuffle import stages, tasks
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.node import sources
from wpinq.core.state import memory, spill
from wpinq.errors import EngineError


@pytest.fixture(autouse=True, scope="module")
def folder():
    """Rows wait in the system's directory: that beside the ledger of a test before this one is gone."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory.LIMIT, "_beside", None)
        yield


TOWNS = pl.DataFrame({"page": [f"page {n}" for n in range(5)], "town": ["Rome", "Oslo", "Rome", "Bern", "Oslo"]})
PEOPLE = wpinq.users("user", at_most=3)
SQL = [
    "SELECT COUNT(*) AS n FROM views JOIN people USING (user) WHERE weekday = 2",
    "SELECT COUNT(*) AS n FROM views LEFT JOIN people USING (user) WHERE weekday IS NULL",
    "SELECT COUNT(DISTINCT a.user) AS n FROM views a JOIN views b ON a.user = b.user WHERE a.page <> b.page",
]
PLANS = {
    "join": lambda one, two: one.join(two, on="user").map("page"),
    "join, at most": lambda one, two: one.join(two, on="user", at_most=9),
    "join, function": lambda one, two: one.join(two, on=lambda user: user[-1:], result=lambda page, weekday: page),
    "join, dithered": lambda one, two: one.flat_map(lambda user, page: [(user, page)] * 2, columns=["user", "x"])
    .join(two, on="user"),
    "join, key alone": lambda one, two: one.join(two.map("user"), on="user"),
    "join, then distinct": lambda one, two: one.join(two, on="user", result=lambda page, weekday: page).distinct(),
    "join of a join": lambda one, two: one.join(two, on="user").join(one, on="user").map("weekday"),
    "join with itself": lambda one, two: one.join(one, on="page"),
    "join_rows": lambda one, two: one.limit("user", 3).join_rows(two.limit("user", 2), on="user"),
    "join_rows, left": lambda one, two: one.limit("user", 3).join_rows(two.limit("user"), on="user", how="left"),
    "join_rows, itself": lambda one, two: one.limit("user", 3).join_rows(one.limit("user", 3), on="user"),
    "semijoin": lambda one, two: one.semijoin(two, on="user"),
    "antijoin": lambda one, two: one.antijoin(two, on="user"),
    "subtracted": lambda one, two: one.subtract(one.limit("page")).join(two.concat(two).subtract(two), on="user"),
    "look up": lambda one, two: one.join(TOWNS, on="page").join(two, on="user").map(lambda town, weekday: town),
    "group": lambda one, two: one.group_by("user", len).join(two, on="user"),
}  # fmt: skip
names = st.sampled_from(["a person with a long name", "", "ann", "bob", None, "eve"])
views = st.lists(st.tuples(names, st.sampled_from([f"page {n}" for n in range(6)])), max_size=40)
weekdays = st.lists(st.tuples(names, st.integers(0, 3)), max_size=30)


def protected(rows, name, columns, unit=None):
    frame = pl.DataFrame(rows, columns, orient="row")
    return wpinq.protect(frame, budget=99, secret=Secret(bytes(range(32))), name=name, version="v", unit=unit)


def of_records(rows, others):
    return [
        protected(rows, "views", {"user": str, "page": str}),
        protected(others, "days", {"user": str, "weekday": int}),
    ]


def of_people(rows, others):
    return [
        protected(rows, "views", {"user": str, "page": str}, PEOPLE),
        protected(others, "days", {"user": str, "weekday": int}, PEOPLE),
    ]


class Limit:
    """So little memory that what comes to a step with a state waits on disk, from its first record or soon after."""

    def __init__(self, most):
        self.most, self.written = most, []

    def __enter__(self):
        self.patch = patch = pytest.MonkeyPatch()
        for name, value in {"FEW": -1, "WORTH": 1, "LOT": 1, "PARTS": 4}.items():
            patch.setattr(threads, name, value)
        patch.setattr(shards, "PIECE", 7)
        patch.setattr(tasks, "TOGETHER", 9)
        patch.setenv(memory.MEMORY, str(self.most))
        write = spill.Disk.write

        def noted(disk, batch):
            extent = write(disk, batch)
            self.written.append((disk, *extent))
            return extent

        patch.setattr(spill.Disk, "write", noted)
        return self

    def __exit__(self, *_):
        self.patch.undo()


def run(plan, how=local.run):
    root = fit_noise(plan._node)
    return how(Job([root], sources(root)[0].identity_key))[0].content()


def alike(one, other):
    return all(np.array_equal(*pair) for pair in zip(one, other, strict=True))


@thin(5)
@pytest.mark.parametrize("kind", [of_records, of_people])
@pytest.mark.parametrize("name", PLANS)
@settings(deadline=None, max_examples=often(8, 3))
@given(rows=views, others=weekdays, most=st.sampled_from([1, 2000, 20_000]), count=st.sampled_from([1, 3]))
def test_joins_say_the_same_with_little_memory(kind, name, rows, others, most, count):
    plan = PLANS[name](*kind(rows, others))
    expected = run(plan)
    with Limit(most):
        assert alike(run(plan, lambda job: local.run(job, threads=count)), expected)
        assert alike(run(plan, lambda job: stages.run_in_loop(job, 2)), expected)
    assert alike(run(plan, select.large if select.installed() else local.run), expected)


ROWS = [(f"person {n * 7919 % 60}", f"page {n % 7}") for n in range(180)]
DAYS = [(f"person {n}", n % 4) for n in range(0, 60, 2)]


@thin(3)
@pytest.mark.parametrize("name", [name for name in PLANS if name != "look up"])
def test_they_wait_on_disk_and_nobody_reads_them_there(name):
    with Limit(1) as limit:
        run(PLANS[name](*of_records(ROWS, DAYS)))
    assert limit.written
    for disk, start, size in limit.written:
        assert b"person" not in os.pread(disk._scratch._file, size, start)


def zeros(disk, start, size, _):
    disk._scratch.write([memoryview(bytes(size))], start)


def another(disk, start, size, first):
    piece = bytearray(size)
    disk._scratch.read([memoryview(piece)], first)
    disk._scratch.write([memoryview(piece)], start)


@pytest.mark.parametrize("change", [zeros, another])
def test_what_waits_and_is_changed_or_given_for_another_ends_the_run(change):
    """Every record is as long as every other, so that one piece fits where another lay."""
    rows = [(f"person {n % 9}", "page") for n in range(100)]
    with Limit(1) as limit, pytest.MonkeyPatch.context() as patch:
        read = spill.Disk.read

        def changed(disk, start, size):
            alike = [at for other, at, length in limit.written if other is disk and length == size and at != start]
            if alike:
                change(disk, start, size, alike[0])
            return read(disk, start, size)

        patch.setattr(spill.Disk, "read", changed)
        with pytest.raises(EngineError, match="what waited there cannot be read; nothing was answered"):
            run(PLANS["join with itself"](*of_records(rows, [])), lambda job: local.run(job, threads=1))


@pytest.mark.parametrize("query", SQL)
def test_sql_answers_the_same_with_little_memory(query, monkeypatch):
    monkeypatch.setattr(os, "urandom", bytes)  # ledgers of one name, so that both have the same noise
    answers = []
    for most in (None, 1):
        one, two = of_people(ROWS, DAYS)
        with Limit(most or 10**9) as limit:
            answers.append(str(wpinq.sql(query, {"views": one, "people": two}, epsilon=1)))
        assert bool(limit.written) == (most == 1)
    assert answers[0] == answers[1]


def test_nothing_is_left_of_a_join_that_is_killed(tmp_path):
    code = f"""
import polars as pl, wpinq
from wpinq.core.engines import shards, threads
from wpinq.core.state import memory, spill
threads.FEW, threads.WORTH, threads.LOT, shards.PIECE = -1, 1, 1, 99
wpinq.limit_memory("100MB", spill={str(tmp_path)!r})
memory.Memory.take = lambda self, size: False
write = spill.Disk.write
def noted(self, batch):
    found = write(self, batch)
    print("written", flush=True)
    input()
spill.Disk.write = noted
views = wpinq.protect(pl.DataFrame({{"user": [f"person {{n}}" for n in range(900)]}}), budget=9)
views.join(views, on="user").measure(1).observe("person 1")
"""
    with processes.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"written\n"
        child.kill()
    assert not list(tmp_path.iterdir())
