"""`wpinq publish follow --workers`: real workers, two commands, what a scraper and standard error are told."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress

import polars as pl
import processes
import pytest
from depth import deep

from wpinq.apps.cli import main
from wpinq.apps.publish import Release

KEYS = ["/a", "/b"]
RELEASE = """
[data]
source = "{source}"
ledger = "{ledger}"
unit = {{ column = "user", at_most = 1 }}
columns = {{ user = "text", page = "text", time = "timestamp" }}
[stream]
at = "time"
lateness = 0
every = 0.3
[period]
every = "hour"
first = "{first}"
[budget]
epsilon = 20000
[[question]]
name = "exact"
counts = ["page"]
keys = ["/a", "/b"]
epsilon = 1000
plot = false
[[sink]]
directory = "out/{{date}}"
[checks]
totals = false
keys = false
"""


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("WPINQ_SECRET", bytes(range(32)).hex())


def written(place, source, ledger, hours=3):
    """A release file of some hours that are over by now; the begin of each."""
    now = dt.datetime.now(dt.UTC).replace(minute=0, second=0, microsecond=0, tzinfo=None)
    begins = [now - dt.timedelta(hours=number) for number in range(hours, 0, -1)]
    text = RELEASE.format(source=source, ledger=ledger, first=begins[0].isoformat()[:13])
    (place / "site.toml").write_text(text)
    return begins


def asked(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode()


@pytest.mark.slow
def test_the_command_waits_for_its_turn_answers_a_scraper_and_goes_on(shared_ledger, tmp_path, capsys):
    """In this process: it is told to end (SIGTERM) once it has published what its worker has read."""
    begins = written(tmp_path, "views.csv", shared_ledger)
    (tmp_path / "views.csv").write_text("user,page,time\n" + "".join(f"u{n},/a,{at}\n" for n, at in enumerate(begins)))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    first, seen, name = Release.read(tmp_path / "site.toml").follow(workers=0), {}, socket.gethostname()
    list(first.step())

    def watches():
        end = time.monotonic() + 60
        while time.monotonic() < end and not (name in seen.get("before", "") and "ready" in seen):
            with suppress(OSError):
                seen["before"] = asked(port, "/metrics")
                seen["ready"] = asked(port, "/ready")
            time.sleep(0.1)
        first.close()
        while time.monotonic() < end and len(list(tmp_path.glob("out/2*"))) < len(begins):
            time.sleep(0.1)
        seen["after"] = asked(port, "/metrics")
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=watches)
    thread.start()
    assert main(["publish", "follow", str(tmp_path / "site.toml"), "--workers", "1", "--metrics", str(port)]) == 0
    thread.join()
    assert f'wpinq_stream_keeps{{keeper="{name}"}} 0.0' in seen["before"]
    assert seen["ready"] == "ok\n"
    assert f'wpinq_stream_keeps{{keeper="{name}"}} 1.0' in seen["after"]
    assert "wpinq_stream_partition_read_seconds{" in seen["after"]
    assert f"Another process keeps this stream, on {name}" in capsys.readouterr().err
    assert [pl.read_csv(path)["count"].to_list() for path in sorted(tmp_path.glob("out/*/exact.csv"))] == [[1, 0]] * 3


@deep("two real commands over a topic, one of which is killed")
def test_the_rest_of_a_topic_is_published_by_the_other_host(shared_ledger, tmp_path):
    """Its partitions pass on with it; each record is in its hour, though both were away when that ended."""
    confluent = pytest.importorskip("confluent_kafka")
    producer = confluent.Producer({"test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0})
    broker = next(f"{one.host}:{one.port}" for one in producer.list_topics(timeout=10).brokers.values())
    begins = written(tmp_path, f"kafka://{broker}/views", "LEDGER")
    toml, running = (tmp_path / "site.toml").read_text(), {}

    def sent(hour, users):
        for user in users:
            words = {"user": f"u{user}", "page": KEYS[user % 2], "time": str(begins[hour])}
            producer.produce("views", json.dumps(words), partition=user % 4)
        assert producer.flush(10) == 0

    def published(host):
        return {path.parent.name: pl.read_csv(path).sort("page")["count"].to_list()
                for path in sorted((tmp_path / host).glob("out/*/exact.csv"))}  # fmt: skip

    def waits(until):
        end = time.monotonic() + 120
        while not until() and time.monotonic() < end:
            time.sleep(0.2)

    for hour in range(3):
        sent(hour, range(100 * hour, 100 * hour + 40))
    try:
        for host in ("one", "two"):
            (tmp_path / host).mkdir()
            place = shared_ledger.replace("/state", f"/{host}/state")
            (tmp_path / host / "site.toml").write_text(toml.replace("LEDGER", place))
            command = [sys.executable, "-m", "wpinq", "publish", "follow", str(tmp_path / host / "site.toml")]
            running[host] = processes.Popen([*command, "--workers", "2"], stderr=subprocess.DEVNULL)
            waits(lambda: len(published("one")) == 3)
        assert set(map(tuple, published("one").values())) == {(20, 20)}
        running["one"].kill()
        past = dt.datetime.now(dt.UTC).replace(tzinfo=None)
        words = {"user": "late", "page": "/a", "time": str(past)}
        producer.produce("views", json.dumps(words), partition=1)
        assert producer.flush(10) == 0
        home = Release.read(tmp_path / "one" / "site.toml").follow(workers=0).host.home
        kept = "SELECT count(*) FROM {epochs} WHERE stream LIKE %s"
        name = f"{home.stream} {past.isoformat()[:13]}"

        def held():
            with home.connected() as connection:
                return connection.execute(home.sql(kept), [name]).fetchone()[0]

        waits(held)
        assert held() == 1, "the other host took it in"
    finally:
        for process in running.values():
            process.kill()
            process.wait()
