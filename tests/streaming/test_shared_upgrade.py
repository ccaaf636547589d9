"""A rolling upgrade: two hosts, of which one after the other is stopped and goes on with another version of the code.

Real processes of the command, a topic of four partitions that is written to all the time, and copies of the package:
one of another version that writes parts otherwise, one of another format.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from depth import deep

import wpinq

PACKAGE = Path(wpinq.__file__).parent
FLOW = """
def dataflow(views):
    pages = views.map("page")
    return {"total": pages.measure(500, continual=True), "noisy": pages.measure(1, continual=True)}
"""
VERSION = (
    "__init__.py",
    "from __future__ import annotations\n",
    'from __future__ import annotations\n\n__version__ = "9"\n',
)
PARTS = ("streaming/shared/parts.py", 'compression="zstd"', 'compression="lz4"')
FORMAT = ("streaming/shared/journal.py", "\nFORMAT = ", "\nFORMAT = 1000 + ")


def tree(place, *edits):
    """A copy of the package with another version, as it would be installed."""
    shutil.copytree(PACKAGE, place / "wpinq", ignore=shutil.ignore_patterns("__pycache__"))
    about = place / "wpinq-9.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wpinq\nVersion: 9.0\n")
    for name, before, after in edits:
        path = place / "wpinq" / name
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, after))
    return place


class Topic:
    """A topic of four partitions, to which is written until it is closed."""

    def __init__(self, confluent):
        self.producer = confluent.Producer({"test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0})
        self.brokers = [f"{one.host}:{one.port}" for one in self.producer.list_topics(timeout=10).brokers.values()]
        self.written, self._stop = Counter(), threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self):
        number = 0
        while not self._stop.wait(0.01):
            page = "aab"[number % 3]
            self.producer.produce("views", json.dumps({"user": "u", "page": page}), partition=number % 4)
            self.producer.poll(0)
            self.written[page] += 1
            number += 1

    def close(self):
        self._stop.set()
        self._thread.join()
        assert self.producer.flush(30) == 0


class Hosts:
    """Processes of the command, each with a file of answers, over one ledger."""

    def __init__(self, place, ledger, topic):
        self.place, self.files = place, []
        (place / "flow.py").write_text(FLOW)
        self.words = [
            "run", "flow.py", f"kafka://{','.join(topic.brokers)}/views", "--columns", "user,page", "--budget", "501",
            "--workers", "1", "--ledger", ledger, "--name", "live", "--every", "0.5", "--observe", "total=a,b",
            "--observe", "noisy=a,b",
        ]  # fmt: skip

    def start(self, tree):
        """A host that runs the code of a tree."""
        self.files.append(self.place / f"{len(self.files)}.jsonl")
        environment = {**os.environ, "PYTHONPATH": str(tree), "WPINQ_SECRET": bytes(range(32)).hex()}
        return subprocess.Popen(
            [sys.executable, "-m", "wpinq", *self.words, "--json", self.files[-1].name], cwd=self.place, text=True,
            env=environment, stderr=subprocess.PIPE,
        )  # fmt: skip

    def answers(self):
        """All answers by measurement, bin and epoch, each of which has one value; and the values of the last epoch."""
        values, last = {}, {}
        for file in self.files:
            for line in file.read_text().splitlines() if file.exists() else ():
                row = json.loads(line)
                name = row["measurement"], row["bin"], row["epoch"]
                assert values.setdefault(name, row["value"]) == row["value"], "an epoch is answered in one way"
        for name, bin_, epoch in sorted(values, key=lambda key: key[2]):
            last[name, bin_] = values[name, bin_, epoch]
        return values, last


def until(condition, patience=120):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


def stop(host):
    host.send_signal(signal.SIGTERM)
    _, said = host.communicate(timeout=120)
    assert host.returncode == 0, said


@deep("processes that begin with a Python each, for a minute")
def test_a_rolling_upgrade_loses_nothing_and_counts_nothing_twice(stream_server, shared_ledger, tmp_path):
    confluent = pytest.importorskip("confluent_kafka")
    new = tree(tmp_path / "new", VERSION, PARTS)
    shown = [sys.executable, "-c", "import wpinq; print(wpinq.__version__)"]
    environment = {**os.environ, "PYTHONPATH": str(new)}
    assert subprocess.run(shown, cwd=tmp_path, env=environment, capture_output=True, check=True).stdout == b"9\n"
    topic = Topic(confluent)
    hosts = Hosts(tmp_path, shared_ledger, topic)
    with ExitStack() as running, psycopg.connect(stream_server, autocommit=True) as connection:
        running.callback(topic.close)

        def begun(code):
            host = hosts.start(code)
            running.callback(host.kill)
            return host

        def reading():
            query = "SELECT holder, count(*) FROM wpinq_views.stream_leases WHERE name LIKE 'kafka%' GROUP BY 1"
            return sorted(connection.execute(query).fetchall())

        def both():
            return [many for holder, many in reading() if holder] == [2, 2]

        old = [begun(PACKAGE.parent)]
        until(lambda: hosts.answers()[1])
        old.append(begun(PACKAGE.parent))
        until(both)
        upgraded = []
        for host in old:
            before = reading()
            stop(host)
            upgraded.append(begun(new))
            until(both)
            assert reading() != before, "another worker reads"
        topic.close()
        until(lambda: hosts.answers()[1].get(("total", "a")) == topic.written["a"])
        for host in upgraded:
            stop(host)
        values, last = hosts.answers()
        assert {bin_: last["total", bin_] for bin_ in "ab"} == dict(topic.written)
        epochs = {epoch for *_, epoch in values}
        assert epochs == set(range(1, max(epochs) + 1)), "each is answered"
        by_new = [file for file in hosts.files[len(old) :] if file.exists() and file.read_text()]
        assert by_new and hosts.files[0].read_text(), "old and new code have closed epochs"


@deep("a process that begins with a Python")
def test_a_version_of_another_format_says_what_to_do_and_changes_nothing(shared, tmp_path):
    shared.epoch("ann,a")
    rows = [shared.run(f"SELECT * FROM {{{table}}}") for table in ("epochs", "parts", "notes")]
    code = ("import sys, wpinq; from wpinq.core.ledger.rows.secret import Secret; "
            "wpinq.live({'user': 'text', 'page': 'text'}, 10**7, ledger=sys.argv[1], recover=sys.argv[1], "
            "secret=Secret(bytes(range(32))))")  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(tree(tmp_path / "new", FORMAT))}
    said = subprocess.run([sys.executable, "-c", code, shared.ledger], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, check=False).stderr  # fmt: skip
    assert "was written by another version of wpinq" in said.splitlines()[-1]
    assert "start that one again" in said.splitlines()[-1]
    assert [shared.run(f"SELECT * FROM {{{table}}}") for table in ("epochs", "parts", "notes")] == rows
