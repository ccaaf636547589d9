"""A host that died for good: windows wait for its files until somebody says so. Attacks 13 and 42.

Kinds: a worker with another host's name, killed by SIGKILL; one that was frozen only, and comes back; what is refused.
"""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import time
from contextlib import closing

import processes
import pytest
from streaming.test_shared import EXACT, SECRET, Shared

from wpinq.apps.cli import main
from wpinq.errors import NotReadyError
from wpinq.streaming.shared import sources
from wpinq.streaming.shared.leases import Holder, LostError
from wpinq.streaming.shared.worker import Worker

AT = {"user": "text", "at": "timestamp"}
OTHER = "import socket, sys; socket.gethostname = lambda: 'other'; " \
        "from wpinq.streaming.shared.worker import main; sys.exit(main())"  # fmt: skip
SECONDS = 1.0


@pytest.fixture
def stream(shared_ledger, tmp_path, monkeypatch):
    """A stream over a file of this host, with windows of a second, and a file of the other host."""
    monkeypatch.setenv("WPINQ_SECRET", bytes(range(32)).hex())
    for name in ("views.csv", "others.csv"):
        (tmp_path / name).write_text("user,at\n")
    with closing(Shared(shared_ledger, tmp_path / "views.csv", AT, lateness=dt.timedelta(0))) as shared:
        shared.others = tmp_path / "others.csv"
        yield shared


def started(shared):
    """A worker of the other host, which reads its file."""
    worker = processes.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, text=True)
    told = {
        "home": shared.home.told(),
        "source": sources.told(str(shared.others), {}),
        "every": 0.05,
        "seconds": SECONDS,
    }
    worker.stdin.write(json.dumps(told) + "\n")
    worker.stdin.flush()
    return worker


def kill(worker):
    worker.kill()
    worker.wait()
    worker.stdin.close()


def append(path, *lines):
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def until(condition, patience=30):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def now(shared):
    """The second that it is by the database's clock."""
    ((moment,),) = shared.run("SELECT extract(epoch FROM clock_timestamp())::bigint")
    return dt.datetime.fromtimestamp(moment, dt.UTC).replace(tzinfo=None)


def place(shared):
    """Up to where the other host's file was read, sealed; it changes when more was."""
    return shared.run("SELECT position FROM {leases} WHERE name LIKE 'files other%%'")


@pytest.mark.slow
def test_attack_13_windows_go_on_without_a_host_that_died_and_wait_again_when_it_comes_back(stream, capsys):
    total = stream.views.map("user").measure(EXACT, continual=True)
    m = stream.views.window("1s", at="at").map("user").measure(EXACT)
    worker = started(stream)
    until(lambda: place(stream) not in ([], [(None,)]))
    window = now(stream) + dt.timedelta(seconds=8)
    for user in ("bob", "eve"):  # that one is in its last part, which no epoch has taken in yet
        stream.epoch()
        before = place(stream)
        append(stream.others, f"{user},{window}")
        until(lambda before=before: place(stream) != before)
    kill(worker)
    assert main(["ledger", "without", stream.ledger, "files other"]) == 2, "its lease has not ended"
    assert "somebody reads it still" in capsys.readouterr().err
    stream.write(f"ann,{window}")
    until(lambda: now(stream) > window + dt.timedelta(seconds=2))
    stream.epoch("nobody,")
    with pytest.raises(NotReadyError):
        m.observe("ann", window=window)
    assert main(["ledger", "without", stream.ledger, "files other"]) == 0
    assert capsys.readouterr().out == f"Windows wait no more for files other {stream.others}.\n"
    stream.epoch("nobody,")
    assert m.observe_many(["ann", "bob", "eve"], window=window).tolist() == [1, 1, 1]
    assert all("other" not in name for name in stream.views._journal.parts.read_at)

    before = place(stream)
    append(stream.others, f"late,{window}")
    worker = started(stream)
    until(lambda: place(stream) != before)
    assert stream.run("SELECT awaited FROM {leases} WHERE name LIKE 'files other%%'") == [(True,)]
    stream.epoch()
    kill(worker)
    assert total.observe_many(["ann", "bob", "eve", "late"]).tolist() == [1, 1, 1, 1]
    assert m.observe_many(["bob", "late"], window=window).tolist() == [1, 0]
    assert any("other" in name for name in stream.views._journal.parts.read_at)


def test_attack_42_a_host_that_was_only_frozen_is_refused_and_waited_for_again(stream, monkeypatch):
    m = stream.views.map("user").measure(EXACT, continual=True)
    stream.epoch("ann,2026-01-01")
    frozen, name = stream.worker, stream.source.name
    stream.run("UPDATE {leases} SET ends = '-infinity' WHERE name LIKE 'files%%'")
    assert main(["ledger", "without", stream.ledger, name]) == 0
    assert stream.run("SELECT awaited FROM {leases} WHERE name = %s", name) == [(False,)]
    append(stream.path, "bob,2026-01-01")
    with pytest.raises(LostError):
        frozen.look()
    with stream.home.connected() as connection:
        Worker(stream.home, stream.source, stream.holder, connection).look()
    assert stream.run("SELECT awaited FROM {leases} WHERE name = %s", name) == [(True,)]
    stream.epoch()
    assert m.observe_many(["ann", "bob"]).tolist() == [1, 1]


def test_what_is_read_or_unknown_is_refused(stream, tmp_path, capsys):
    stream.epoch("ann,2026-01-01")
    stream.run("UPDATE {leases} SET ends = clock_timestamp() + interval '10 seconds' WHERE name LIKE 'files%%'")
    other = Holder(stream.home, 3600)
    with stream.home.connected() as connection:
        other.balance(connection, ["kafka old 0-old"], "kafka old", moving=True)
    before = stream.run("SELECT * FROM {leases} WHERE name NOT LIKE 'worker%%' ORDER BY name")
    for name, why in (
        ("files", "somebody reads it still"), ("keeper", "no partition"), ("worker", "no partition"),
        ("kafka ol", "There are: files"), ("%", "no partition"), ("", "no partition"),
    ):  # fmt: skip
        assert main(["ledger", "without", stream.ledger, name]) == 2
        assert why in capsys.readouterr().err
    assert stream.run("SELECT * FROM {leases} WHERE name NOT LIKE 'worker%%' ORDER BY name") == before
    other.close()
    assert main(["ledger", "without", stream.ledger, "kafka old"]) == 0
    assert stream.run("SELECT awaited FROM {leases} WHERE name LIKE 'kafka%%'") == [(False,)]
    path = tmp_path / "file.ledger"
    import wpinq

    wpinq.protect([("a",)], 1, columns={"n": "text"}, ledger=path, secret=SECRET)
    assert main(["ledger", "without", str(path), "files other"]) == 2
    assert "give the URL" in capsys.readouterr().err
