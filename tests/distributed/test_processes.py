"""Other processes: the same histograms and ledger, whatever dies; no secret, no pickle, nothing left behind."""

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import duckdb
import polars as pl
import processes
import pytest
from depth import deep

import wpinq
from wpinq.core.engines.shuffle import processes as crews
from wpinq.core.engines.shuffle.crew import Crew, Worker, cores, environment, failed, share
from wpinq.core.engines.shuffle.tasks import Tasks
from wpinq.core.engines.shuffle.worker import Lines
from wpinq.core.ledger import Ledger
from wpinq.core.plan.node import sources
from wpinq.core.runs.run import settle
from wpinq.core.state.memory import LIMIT, MEMORY
from wpinq.core.state.spill import Spill
from wpinq.sources.tables import parquet

LINES = "".join(f"u{i % 97},p{i * i % 1009 % (i % 50 + 1)}\n" for i in range(4000))


@pytest.fixture
def place(tmp_path):
    (tmp_path / "views.csv").write_text("user,page\n" + LINES)
    return tmp_path


def measured(views):
    pages = views.map("page")
    return [
        pages.measure("0.1"),
        wpinq.degrees.cdf(pages).measure("0.1"),
        views.join(views, on="user").map("page").measure("0.1"),
        views.group_by("user", len).measure("0.1"),
        views.map(lambda user: user).distinct().measure("0.1", mechanism="laplace"),
    ]


def content(measurements):
    for one in measurements:
        settle(one)
    return [array.tolist() for one in measurements for array in one._histogram.content()]


def protected(place, **more):
    return wpinq.protect(place / "views.csv", budget=9, **more)


def rows(place):
    return [(one.kind, one.question) for one in Ledger.existing(place / "views.csv.ledger").entries()]


@pytest.fixture
def alone(place):
    """What one process counts, and its ledger."""
    unit = wpinq.users("user", at_most=20)
    return content(measured(protected(place, unit=unit))), rows(place), unit


def test_two_processes_count_the_same_and_the_ledger_is_the_same(place, alone, monkeypatch):
    found, ledger, unit = alone
    places = []
    made = Spill.made
    monkeypatch.setattr(Spill, "made", lambda beside: (places.append(made(beside)), places[-1])[1])
    monkeypatch.setattr(crews, "BYTES_PER_PART", 10_000)  # four parts
    views = protected(place, unit=unit, engine=wpinq.processes(2))
    assert content(measured(views)) == found
    assert rows(place) == ledger, "nothing is charged or sealed anew"
    assert [one.folder.parent for one in places] == [place], "it lay beside the ledger"
    assert not places[0].folder.exists()


def killing(monkeypatch, kills):
    """Kill each of the first processes right after it was given a task."""
    write, killed = Worker._write, []

    def written(self, text):
        write(self, text)
        if '"step"' in text and len(killed) < kills:
            killed.append(self.process.pid)
            os.kill(self.process.pid, signal.SIGKILL)

    monkeypatch.setattr(Worker, "_write", written)
    return killed


def test_a_task_whose_process_is_killed_is_given_out_again(place, alone, monkeypatch):
    found, ledger, unit = alone
    killed = killing(monkeypatch, 3)
    monkeypatch.setattr(crews, "BYTES_PER_PART", 10_000)
    assert content(measured(protected(place, unit=unit, engine=wpinq.processes(2)))) == found
    assert len(set(killed)) == 3
    assert rows(place) == ledger


@deep
def test_a_task_that_ends_process_after_process_ends_the_run_and_the_same_again_is_free(place, monkeypatch):
    with monkeypatch.context() as patched:
        killing(patched, 10**9)
        (first, *_) = made = measured(protected(place, engine=wpinq.processes(1)))
        with pytest.raises(wpinq.EngineError, match=r"processes died one after another.*stays charged"):
            first.observe("p1")
    spent = Ledger.existing(place / "views.csv.ledger").spent()
    assert content(made) == content(measured(protected(place)))
    assert Ledger.existing(place / "views.csv.ledger").spent() == spent
    assert not list(place.glob(".wpinq-run-*"))


def test_records_in_memory_and_tables_of_a_database_are_sent(place):
    records = [tuple(line.split(",")) for line in LINES.splitlines()]
    how = {"budget": 9, "columns": {"user": str, "page": str}, "ledger": place / "memory"}
    assert content(measured(wpinq.protect(records, **how, engine=wpinq.processes(2)))) == content(
        measured(wpinq.protect(records, **how))
    )


@pytest.mark.parametrize(("scheme", "folder"), [("sqlite", "."), ("duckdb", "."), ("sqlite", "what?")])
def test_files_of_databases_that_a_url_names_are_opened_by_other_processes(scheme, folder, place, monkeypatch):
    """A path was made of the whole URL, after the charge."""
    (place / folder).mkdir(exist_ok=True)
    monkeypatch.chdir(place / folder)
    rows = [("ann", "home"), ("bob", "home"), ("ann", "news")]
    if scheme == "sqlite":
        with closing(sqlite3.connect("v.db")) as made:
            made.execute("CREATE TABLE v (user TEXT, page TEXT)")
            made.executemany("INSERT INTO v VALUES (?, ?)", rows)
            made.commit()
    else:
        with duckdb.connect("v.db") as made:
            made.execute("CREATE TABLE v AS SELECT * FROM (VALUES " + ", ".join(map(str, rows)) + ") AS v (user, page)")
    views = wpinq.protect(f"{scheme}:v.db?table=v", budget=10**6, engine=wpinq.processes(1))
    assert views.map("page").measure(1000).observe_many(["home", "news"]).tolist() == [2, 1]


def test_what_cannot_travel_is_refused_before_it_is_charged(place):
    views = protected(place, engine=wpinq.processes(2))
    with pytest.raises(wpinq.PlanError, match=r"map\(plain Python.*cannot be told to another process"):
        views.map(lambda user, page: page if len(user) > 1 else None).measure("0.1")
    assert views.budget.spent == 0


@deep
def test_two_bounds_of_records_in_memory_are_two_steps_of_one_reader(tmp_path):
    records = [tuple(line.split(",")) for line in LINES.splitlines()]

    def ask(**more):
        unit = wpinq.users("user", at_most=20)
        how = {"columns": {"user": str, "page": str}, "ledger": tmp_path / "ledger"}
        views = wpinq.protect(records, budget=9, unit=unit, **how, **more)
        return [v.map("page").measure("0.1") for v in (views.at_most(2), views.at_most(2), views, views.at_most(1))]

    plain = [sum(one[1]) for one in (m._histogram.content() for m in settled(ask()))]
    found = [sum(one[1]) for one in (m._histogram.content() for m in settled(ask(engine=wpinq.processes(2))))]
    assert found == plain


def settled(measurements):
    content(measurements)
    return measurements


@deep
def test_processes_that_number_steps_otherwise_answer_nothing(place, monkeypatch):
    monkeypatch.setattr(Tasks, "outline", [["other"]])
    with pytest.raises(wpinq.EngineError, match="the plans have other steps in another process"):
        content(measured(protected(place, engine=wpinq.processes(1))))


def test_names_of_groups_are_found_here(place):
    how = {"epsilon": 1, "delta": "1e-6"}
    ask = lambda views: wpinq.sql("SELECT page, COUNT(*) AS c FROM v GROUP BY page", {"v": views}, **how).table()  # noqa: E731
    alone = ask(protected(place, delta="1e-5"))
    assert ask(protected(place, engine=wpinq.processes(2))).equals(alone)
    assert alone.height


def test_a_file_that_changes_meanwhile_is_refused(place, monkeypatch):
    measurements = measured(protected(place, engine=wpinq.processes(1)))
    plain = Crew.perform

    def performed(self, tasks):
        (place / "views.csv").write_text("user,page\nother,other\n")
        return plain(self, tasks)

    monkeypatch.setattr(Crew, "perform", performed)
    with pytest.raises(wpinq.SourceError, match=r"views.csv: is not the same for all processes"):
        measurements[0].observe("p1")


def test_rule_37_other_processes_are_told_no_secret_and_have_their_part_of_the_machine(place, monkeypatch):
    monkeypatch.setenv("WPINQ_SECRET", "ab" * 32)
    written = []
    write = Worker._write
    monkeypatch.setattr(Worker, "_write", lambda self, text: (written.append(text), write(self, text))[1])
    views = protected(place, engine=wpinq.processes(2))
    content(measured(views))
    (data,) = sources(views._node)
    assert data.ledger.secret._key.hex() == "ab" * 32
    proof, hello, task = (json.loads(text) for text in (written[0], written[2], written[-1]))
    assert not any("ab" * 32 in text for text in written)
    assert hello["job"]["told"]["plans"]["data"][0]["keys"] == [data.identity_key.hex(), data.sampling_key.hex()]
    assert proof["prove"]["keys"] == hello["job"]["told"]["plans"]["data"][0]["keys"]
    assert set(task) == {"step", "part", "items", "file"}
    own = environment(share(2))
    assert "WPINQ_SECRET" not in own
    assert own["WPINQ_THREADS"] == own["POLARS_MAX_THREADS"] == str(max(1, cores() // 2))
    assert int(own[MEMORY]) == LIMIT.most // 2


def test_what_lies_on_disk_is_encrypted_and_bound_to_its_place(tmp_path):
    spill = Spill.made(str(tmp_path))
    assert spill.folder.stat().st_mode & 0o777 == 0o700
    writer = spill.writer("1")
    first, second = writer.write(memoryview(b"a secret name")), writer.write(memoryview(b"another"))
    writer.close()
    assert (spill.folder / "1").stat().st_mode & 0o777 == 0o600
    assert b"secret" not in (spill.folder / "1").read_bytes()
    assert spill.read(second) == b"another"
    (spill.folder / "2").write_bytes((spill.folder / "1").read_bytes())
    moved = first._replace(file="2")
    for wrong in (first._replace(start=1), first._replace(size=first.size - 1), moved, first._replace(file="3")):
        with pytest.raises(wpinq.EngineError, match="cannot be read; nothing was answered"):
            spill.read(wrong)
    spill.remove()
    with pytest.raises(wpinq.EngineError, match=r"cannot be written there.*--spill"):
        Spill.made(str(tmp_path / "none"))


def test_a_directory_that_nobody_holds_is_removed_by_who_makes_the_next(tmp_path):
    """All processes of a run were killed at once, or the machine died: it lay there for ever."""
    killed, running, others = Spill.made(str(tmp_path)), Spill.made(str(tmp_path)), tmp_path / ".wpinq-else"
    others.mkdir()
    (killed.folder / "1").write_bytes(b"sealed")
    os.close(killed.held._descriptor)
    last = Spill.made(str(tmp_path))
    assert {*tmp_path.iterdir()} == {running.folder, others, last.folder}
    running.remove()
    last.remove()
    assert [*tmp_path.iterdir()] == [others]


def test_a_process_that_has_not_begun_its_job_removes_the_directory_too(tmp_path, monkeypatch):
    """It knew where it is with its first task only, and half of the runs that were killed left theirs."""
    job = {"place": str(tmp_path / "run"), "key": "00" * 32}
    (tmp_path / "run").mkdir()
    ended = threading.Event()
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({"job": job}) + "\n"))
    monkeypatch.setattr(os, "_exit", lambda code: ended.set())
    Lines()
    assert ended.wait(10)
    assert not [*tmp_path.iterdir()]


def test_the_directory_is_removed_and_processes_end_when_the_first_one_is_killed(place):
    program = (
        "import sys, wpinq\n"
        "views = wpinq.protect(sys.argv[1], budget=9, engine=wpinq.processes(2))\n"
        "from wpinq.core.engines.shuffle.tasks import Tasks\n"
        "from wpinq.core.engines.shuffle import stages\n"
        "plain = stages.Histogram\n"
        "stages.added = lambda *_: (print('begun', flush=True), sys.stdin.read())\n"
        "views.map('page').measure(1).observe('p1')\n"
    )
    words = [sys.executable, "-c", program, str(place / "views.csv")]
    root = Path(wpinq.__file__).parents[1]
    run = processes.Popen(words, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert run.stdout.readline() == b"begun\n"
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        assert list(place.glob(".wpinq-run-*"))
        assert len(children) == 2
    finally:
        run.kill()
        run.wait()
        run.stdin.close()
        run.stdout.close()
    for _ in range(200):
        if not list(place.glob(".wpinq-run-*")) and not any(Path(f"/proc/{one}").exists() for one in children):
            return
        time.sleep(0.05)
    raise AssertionError("something stayed behind")


def test_a_worker_says_why_it_failed_and_prints_nothing(tmp_path):
    """Whatever it is told, also what is no plan."""
    one = Worker([sys.executable, "-m", "wpinq.distributed"], environment(share(1)))
    try:
        told = one.ask({"step": 0}, json.dumps({"job": {"place": "x"}}) + "\n")
    finally:
        one.end()
    assert told["failed"] == "a task failed with KeyError; please report this."
    assert isinstance(failed(told), wpinq.EngineError)
    assert isinstance(failed({**told, "source": True}), wpinq.SourceError)


def test_other_processes_find_damage_before_anything_is_charged(tmp_path, monkeypatch):
    """Each reads its share of the pages; then they wait for the question."""
    path = tmp_path / "views.parquet"
    rows = pl.DataFrame({"user": [f"u{i % 97}" for i in range(40_000)], "page": [f"p{i % 11}" for i in range(40_000)]})
    rows.write_parquet(path, row_group_size=5_000)
    whole = path.read_bytes()
    monkeypatch.setattr(parquet.ParquetReader, "prove", lambda *_: pytest.fail("this process has nothing to read"))
    for place in (len(whole) // 2, len(whole) // 3):
        path.write_bytes(whole[:place] + bytes(1000) + whole[place + 1000 :])
        with pytest.raises(wpinq.SourceError, match=r"views.parquet: .*damaged"):
            wpinq.protect(path, budget=2, engine=wpinq.processes(2)).map("page").measure(1)
        assert wpinq.budget(tmp_path / "views.parquet.ledger").spent == 0
    path.write_bytes(whole)
    engine = wpinq.processes(2)
    asked = wpinq.protect(path, budget=2, engine=engine).map("page").measure(1)
    (crew,) = engine._started
    found = asked.observe("p1")
    assert engine._started == []
    assert all(one.process.poll() is not None for one in crew.workers), "they end with the run"
    monkeypatch.undo()
    assert wpinq.protect(path, budget=2).map("page").measure(1).observe("p1") == found


def test_processes_that_nobody_asks_end_with_their_engine_and_others_start_where_memory_changed(monkeypatch):
    engine = wpinq.processes(2)
    engine.start()
    (crew,) = engine._started
    assert engine._crew() is crew
    engine._started.append(crew)
    monkeypatch.setenv(MEMORY, str(LIMIT.most // 2))
    other = engine._crew()
    assert other is not crew
    engine._started.append(other)
    workers = [*crew.workers, *other.workers]
    del engine
    assert all(one.process.poll() is not None for one in workers)


@pytest.mark.parametrize(("number", "size"), [(2, 157_000_000), (3, 0), (3, 1 << 30), (200, 1 << 40)])
def test_every_process_has_as_many_tasks_as_every_other(number, size, monkeypatch):
    monkeypatch.setattr(crews, "Tasks", lambda *_: SimpleNamespace(plan=SimpleNamespace(size=size)))
    parts, each = crews.cut(None, number)
    assert parts % number == 0
    assert parts >= number
    assert size <= parts * crews.BYTES_PER_PART or parts + number > crews.MOST_PARTS
    assert 1 <= each <= crews.MOST_EACH


@pytest.mark.parametrize("number", [0, -1, 257, "2", 1.5, True])
def test_no_number_of_processes_is_refused(number):
    with pytest.raises(wpinq.PlanError, match="takes a number of processes, from 1 to 256"):
        wpinq.processes(number)


def test_protect_takes_engines_only():
    with pytest.raises(wpinq.PlanError, match=r"takes what wpinq.processes"):
        wpinq.protect([("a",)], budget=1, columns=["x"], engine=2)


def test_a_wide_histogram_comes_home(place):
    """Weights beyond 64 bits, from several parts."""

    def ask(views):
        pairs = views.join(views.join(views, on="user", at_most=20), on="user", at_most=20)
        return [pairs.map("page").measure("0.1")]

    (one,) = ask(protected(place))
    assert one.node.held.wide
    assert content(ask(protected(place, engine=wpinq.processes(2)))) == content([one])
