"""Several processes: the same answers, no keys but one, failures that stop everything. Attacks 25, 44; rule 37."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import bytewax.operators as op
import numpy as np
import polars as pl
import pytest
import strategies
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import TestingSource, cluster_main

import wpinq
from wpinq.apps.cli import main
from wpinq.apps.cluster import launch as cluster
from wpinq.core.engines.bytewax.placement import labels, worker
from wpinq.core.engines.shards import split
from wpinq.core.ledger import Ledger
from wpinq.core.plan.node import sources
from wpinq.core.records.batch import Batch
from wpinq.core.records.schema import Kind, Schema

SCRIPT = """
def dataflow(views):
    pages = views.map(lambda page: page)
    print("marker")
    return {
        "pages": pages.measure("0.1"),
        "cdf": pages.shave().map(lambda page, index: index).measure("0.1"),
        "pairs": views.join(views, on="user").map(lambda page: page).measure("0.1"),
        "groups": views.group_by("user", len).measure("0.1"),
        "people": views.map(lambda user: user).distinct().measure("0.1", mechanism="laplace"),
    }
"""
ASKED = ["pages=p1,p4,none", "cdf=1..40", "pairs=p1,p4", "people=u1,u2,nobody"]


@pytest.fixture
def place(tmp_path):
    lines = "".join(f"u{i % 97},p{i * i % 1009 % (i % 50 + 1)}\n" for i in range(5000))
    (tmp_path / "views.csv").write_text("user,page\n" + lines)
    (tmp_path / "flow.py").write_text(SCRIPT)
    return tmp_path


def command(place, *more, asked=ASKED):
    observed = [word for one in asked for word in ("--observe", one)]
    return ["run", str(place / "flow.py"), str(place / "views.csv"), "--budget", "1", *observed, *more]


def answers(place, *more):
    out = place / "out.json"
    assert main(command(place, "--json", str(out), *more)) == 0
    found = {name: one["values"] for name, one in json.loads(out.read_text()).items()}
    out.unlink()
    return found


class Passing(StatefulBatchLogic):
    def on_batch(self, values):
        return values, False

    def snapshot(self):
        return None


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_shards_lie_on_the_workers_that_are_foretold(workers):
    seen = {}

    class Seeing(DynamicSink):
        def build(self, step_id, worker_index, worker_count):
            class Part(StatelessSinkPartition):
                def write_batch(self, items):
                    seen.update((key, worker_index) for key, _ in items)

            return Part()

    keys = [*map(str, range(30)), "exactly8", "more than eight bytes", *labels(workers)]
    flow = Dataflow("placement")
    stream = op.input("in", flow, TestingSource([(key, 1) for key in keys]))
    op.output("out", op.stateful_batch("step", stream, lambda _: Passing()), Seeing())
    cluster_main(flow, [], 0, worker_count_per_proc=workers)
    assert seen == {key: worker(key, workers) for key in keys}
    assert [seen[label] for label in labels(workers)] == list(range(workers))


def test_attack_44_which_shard_holds_a_record_is_secret_and_even():
    """Records chosen to collide under one key lie evenly under another; labels tell nothing of a record."""
    schema = Schema.of(user=Kind.TEXT)
    users = pl.DataFrame({"user": [f"user{i}" for i in range(20_000)]})
    chosen = dict(split(Batch.of(users, schema), ["user"], bytes(16), 4))[labels(4)[0]]
    again = split(Batch.of(chosen.frame, schema), ["user"], bytes(range(16)), 4)
    sizes = np.array([len(batch) for _, batch in again])
    assert abs(sizes - len(chosen) / 4).max() < 6 * np.sqrt(len(chosen) / 4)
    assert {label for label, _ in again} == set(labels(4))


@pytest.mark.parametrize("processes", [2, 3])
def test_attack_25_the_answers_are_bit_for_bit_those_of_one_process(place, processes, capfd):
    """The seals compare the digests of all five histograms: another histogram would be refused, not answered."""
    alone = answers(place) if processes == 2 else None
    capfd.readouterr()
    together = answers(place, "--processes", str(processes))
    out, err = capfd.readouterr()
    assert out.count("marker") == 1, "the script's words are said once"
    assert err == ""
    assert together == (alone or answers(place)), "whichever runs first"


def test_a_file_that_was_touched_is_the_same_for_all_processes(place):
    alone = answers(place)
    (place / "views.csv").touch()
    assert answers(place, "--processes", "2") == alone
    assert Ledger.existing(place / "views.csv.ledger").spent()[0] == Fraction(1, 2)


def test_rule_37_other_processes_are_told_no_secret(place, monkeypatch):
    told = []
    tell = cluster._tell
    monkeypatch.setattr(cluster, "_tell", lambda child, text: (told.append(text), tell(child, text)))
    monkeypatch.setenv("WPINQ_SECRET", "ab" * 32)
    answers(place, "--processes", "2")
    (text,) = told
    ledger = Ledger.existing(place / "views.csv.ledger")
    secret = ledger.secret
    assert secret._key.hex() == "ab" * 32
    assert "WPINQ_SECRET" not in cluster._environment()
    assert (b"ab" * 16) not in text
    content = json.loads(text)
    allowed = {secret.derive(use, content["name"], size=16).hex() for use in ("identity", "sampling")} | {""}
    assert set(content["keys"]) == allowed
    task = cluster.read_task(text)
    assert not any(key in repr(task) for key in content["keys"] if key)
    (one, *_) = cluster.rebuilt(task).values()
    assert one.key_owner.identity_key.hex() == content["keys"][0]
    assert one.key_owner.ledger.secret._key != secret._key, "nothing that it could draw would be the noise"


def test_only_the_loopback_interface_is_used(place, monkeypatch):
    monkeypatch.setenv("BYTEWAX_DATAFLOW_API_ENABLED", "1")
    seen = []
    plain = cluster.Host
    monkeypatch.setattr(cluster, "Host", lambda addresses, *more: (seen.extend(addresses), plain(addresses, *more))[1])
    answers(place, "--processes", "2")
    assert len(seen) == 2
    assert all(one.startswith("127.0.0.1:") for one in seen)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", 3030)) != 0


SLOW = "import time\n" + SCRIPT.replace("lambda page: page)", "slow)", 1).replace(
    "def dataflow", "def slow(page):\n    time.sleep(0.05)\n    return page\n\ndef dataflow"
)


def test_a_process_that_dies_stops_everything_and_nothing_is_answered(place):
    (place / "flow.py").write_text(SLOW)
    words = [sys.executable, "-m", "wpinq", *command(place, "--processes", "2", "--json", str(place / "out.json"))]
    run = subprocess.Popen(words, cwd=Path(wpinq.__file__).parents[1], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        child = _child_of(run.pid)
        _wait(lambda: charged(place))
        time.sleep(0.5)
        os.kill(child, signal.SIGKILL)
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 2, (out, err)
    assert re.fullmatch(rb"wpinq: process 1 \(127.0.0.1:\d+\) went away. Nothing was answered.\n", err), err
    assert b"cdf:" not in out
    assert not (place / "out.json").exists()
    entries = Ledger.existing(place / "views.csv.ledger").entries()
    assert all(entry.question == "content" for entry in entries if entry.kind == "seal"), "no histogram"


HEAVY = SCRIPT.replace("lambda page: page)", "heavy)", 1).replace(
    "def dataflow", "def heavy(page):\n    return page if sum(range(200_000)) else None\n\ndef dataflow"
)


def test_attack_42_a_cluster_that_is_killed_goes_on_where_it_was(place):
    """Processes keep what each has read in one directory; a run of another number of processes goes on from it."""
    (place / "flow.py").write_text(HEAVY)
    kept = place / "kept"
    words = [sys.executable, "-m", "wpinq", *command(place, "--processes", "2", "--recover", str(kept))]
    root = Path(wpinq.__file__).parents[1]
    run = subprocess.Popen(words, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(lambda: len(list(kept.glob("*.part"))) >= 4 or run.poll() is not None)
    finally:
        run.kill()
        run.wait()
    parts = list(kept.glob("*.part"))
    assert run.returncode == -signal.SIGKILL
    assert parts
    assert all(one.stat().st_mode & 0o077 == 0 and b"user" not in one.read_bytes() for one in parts)
    together = answers(place, "--processes", "3", "--recover", str(kept))
    assert not list(kept.iterdir())
    assert together == answers(place), "the seals compare the digests"


def _child_of(process):
    children = Path(f"/proc/{process}/task/{process}/children")
    _wait(lambda: children.read_text().split())
    return int(children.read_text().split()[0])


def _wait(condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never happened")


def charged(place):
    book = place / "views.csv.ledger"
    return book.exists() and any(entry.kind == "charge" for entry in Ledger.existing(book).entries())


def test_a_process_that_cannot_begin_is_not_waited_for(place, monkeypatch, capfd):
    plain = cluster.asdict
    monkeypatch.setattr(cluster, "asdict", lambda told: plain(told) | {"source": str(place / "none.csv")})
    assert main(command(place, "--processes", "2")) == 2
    assert "could not begin" in capfd.readouterr().err


def test_several_machines_share_a_file_of_keys(place, tmp_path):
    """Two commands, as on two machines, each with a copy of the input in a place of its own."""
    alone = answers(place, "--data-version", "1")
    other = tmp_path / "other machine"
    other.mkdir()
    for name in ("views.csv", "flow.py"):
        (other / name).write_text((place / name).read_text())
    ports = cluster._free_ports(2)
    both = ["--addresses", ",".join(f"127.0.0.1:{port}" for port in ports), "--data-version", "1"]
    keys = place / "keys"
    joined = [*command(other, *both, asked=[]), "--keys", str(keys), "--process-id", "1"]
    waiting = (
        "import sys, time, pathlib\nfrom wpinq.apps.cli import main\n"
        "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)\ntime.sleep(0.2)\nsys.exit(main(sys.argv[2:]))"
    )
    root = Path(wpinq.__file__).parents[1]
    second = subprocess.Popen([sys.executable, "-c", waiting, str(keys), *joined], cwd=root, stdout=subprocess.DEVNULL)
    try:
        assert answers(place, *both, "--keys", str(keys)) == alone
        assert second.wait(60) == 0
    finally:
        second.kill()
    assert keys.stat().st_mode & 0o777 == 0o600
    assert not (other / "views.csv.ledger").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--addresses", "a:1,b:2"], "go together"),
        (["--addresses", "a,b", "--keys", "k"], "host:port"),
        (["--addresses", "a:1,b:2", "--keys", "k", "--process-id", "2"], "counts the addresses"),
        (["--addresses", "a:1,a:1", "--keys", "k"], "each of another process"),
        (["--addresses", "a:1", "--keys", "k"], "two or more"),
        (["--addresses", "a:1,b:2", "--keys", "none", "--process-id", "1"], "process 0 writes it"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_any_charge(place, options, why, capfd):
    assert main(command(place, *options)) == 2
    assert why in capfd.readouterr().err
    assert not (place / "views.csv.ledger").exists()


def test_other_sources_and_windows_stay_in_one_process(place, capfd):
    (place / "flow.py").write_text(
        "import wpinq\n"
        "def dataflow(views):\n"
        "    topics = wpinq.protect([('p1', 'a')], budget=9, columns=('page', 'topic'))\n"
        "    return {'m': views.join(topics, on='page').measure('0.1')}\n"
    )
    assert main(command(place, "--processes", "2", asked=[])) == 2
    assert "other sources" in capfd.readouterr().err


@pytest.mark.parametrize("most", [1, 1 << 27])
@pytest.mark.parametrize("shards", [1, 2, 5])
def test_gathered_shards_are_the_histogram(shards, most, monkeypatch):
    """However often a process sends what it has added up, and in however small pieces."""
    from wpinq.core.engines.bytewax import exchange, flow

    monkeypatch.setattr(exchange, "MAX_HELD_IDENTITIES", most)
    monkeypatch.setattr(exchange, "IDENTITIES_PER_MESSAGE", min(most, 3))
    records = [(i % 7, i % 3) for i in range(100)]
    plan = strategies.protected(records, user="integer", page="integer").map(lambda page: page).shave()
    key = sources(plan._node)[0].identity_key
    found = [flow.run(flow.Job([plan._node], key, shards=n, process=p))[0] for n, p in ((1, None), (shards, 0))]
    assert [one.tolist() for one in found[0].content()] == [one.tolist() for one in found[1].content()]
