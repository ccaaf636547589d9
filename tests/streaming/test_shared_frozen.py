"""Shared streams beside processes that freeze, end or are told to end at the worst moment. Attacks 13 and 42.

Kinds: sessions that hold locks and say nothing more; a race between a worker that ends and the keeper; and signals.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from dataclasses import replace

import processes
import pytest
from streaming.test_shared import EXACT, Shared

import wpinq
from wpinq.errors import SourceError
from wpinq.streaming import journal as files
from wpinq.streaming.shared import home as homes
from wpinq.streaming.shared import journal as journals
from wpinq.streaming.shared.home import Home
from wpinq.streaming.shared.keeper import HeldError
from wpinq.streaming.shared.leases import Holder

AT = {"user": "text", "at": "timestamp"}


def test_attack_42_a_worker_that_freezes_while_it_writes_stops_the_others_for_no_longer_than_a_lease(
    shared, monkeypatch
):
    """It holds the locks of its leases then. The server ends its transaction, and what it writes later is refused."""
    monkeypatch.setattr(homes, "FROZEN", 0.5)
    shared.epoch("ann,a")
    other = Holder(shared.home, 3600)
    with shared.home.connected() as frozen, shared.home.connected() as connection, closing(other):
        frozen.execute("BEGIN")
        shared.holder.check(frozen, shared.worker._leases)
        began = time.monotonic()
        other.balance(connection, ["kafka t 0-t"], moving=True)
        assert time.monotonic() - began < 10
        with pytest.raises(SourceError), shared.home.trouble():
            frozen.execute("COMMIT")


def test_attack_42_a_keeper_that_freezes_while_it_closes_an_epoch_frees_its_ledger(shared, monkeypatch):
    monkeypatch.setattr(homes, "FROZEN", 0.5)
    journal = shared.views._journal
    with pytest.raises(wpinq.LedgerError), journal._keeper.act("1 ") as database:
        (limit,) = database.execute("SHOW idle_in_transaction_session_timeout").fetchone()
        assert limit == "500ms"
        time.sleep(1.5)


def test_a_merge_may_take_longer_than_any_transaction_may_wait(shared_ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "EVERY", 4)
    path = tmp_path / "views.csv"
    path.write_text("user,page\n")
    with closing(Shared(shared_ledger, path, keep=1)) as shared:
        m = shared.views.map("page").measure(EXACT, continual=True)
        for _ in range(11):
            shared.epoch(*["ann,a"] * 40)
        monkeypatch.setattr(homes, "FROZEN", 0.3)
        written = journals.rewritten

        def slow(*words):
            for frame in written(*words):
                time.sleep(0.7)
                yield frame

        monkeypatch.setattr(journals, "rewritten", slow)
        shared.epoch("ann,a")
        assert shared.views._journal.merged is not None
        assert m.observe("a") == 441
        assert shared.run("SELECT count(DISTINCT stream) FROM {epochs}") == [(1,)]


class Meddling:
    """A connection after whose last look for parts something happens."""

    def __init__(self, connection, then):
        self.connection, self.then = connection, then

    def execute(self, query, values=()):
        done = self.connection.execute(query, values)
        if "stream_parts" in query and not done.rowcount:
            self.then()
        return done


def test_attack_13_the_last_part_of_a_host_that_ends_makes_no_record_late(shared_ledger, tmp_path, monkeypatch):
    """It comes after the keeper has looked for parts, and then nobody waits for the host any more."""
    path = tmp_path / "views.csv"
    path.write_text("user,at\n")
    with closing(Shared(shared_ledger, path, AT, lateness=dt.timedelta(0))) as shared:
        m = shared.views.window("1s", at="at").map("user").measure(EXACT)
        other = Holder(shared.home, 3600)  # before the window begins: a slow machine closes it within any two lines
        with shared.home.connected() as connection:
            other.balance(connection, ["kafka t 0-t"], "t", moving=True)
        ((begin,),) = shared.run("SELECT extract(epoch FROM clock_timestamp())::bigint")
        window = dt.datetime.fromtimestamp(begin, dt.UTC).replace(tzinfo=None)
        parts = shared.views._journal.parts
        shared.epoch(f"ann,{window}")
        time.sleep(2)
        parts._looked["kafka t 0-t"] = (begin + 5) * 10**6  # read by another worker up to after the window
        connected = Home.connected

        def ends():
            monkeypatch.setattr(Home, "connected", connected)
            shared.write(f"bob,{window}")
            shared.holder.close()

        @contextmanager
        def meddling(home):
            with connected(home) as connection:
                yield Meddling(connection, ends)

        monkeypatch.setattr(Home, "connected", meddling)
        for _ in range(2):
            shared.epoch()
        assert m.observe_many(["ann", "bob"], window=window).tolist() == [1, 1]
        other.close()


def test_a_worker_that_a_service_manager_ends_gives_its_files_back(shared, tmp_path):
    """SIGTERM reaches all processes of a service; the one that started the workers ends them after its last epoch."""
    shared.holder.close()
    source = {"pattern": str(shared.path), "form": {}, "history": False}
    words = {"home": shared.home.told(), "source": source, "every": 0.05, "seconds": 15.0}
    command = [sys.executable, "-m", "wpinq.streaming.shared"]
    worker = processes.Popen(command, stdin=subprocess.PIPE, text=True)
    worker.stdin.write(json.dumps(words) + "\n")
    worker.stdin.flush()
    held = "SELECT count(*) FROM {leases} WHERE name LIKE 'files%%' AND awaited AND holder <> ''"
    end = time.monotonic() + 60
    while shared.run(held) == [(0,)] and time.monotonic() < end:
        time.sleep(0.1)
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(worker.pid, number)
    time.sleep(0.5)
    assert worker.poll() is None
    worker.stdin.close()
    assert worker.wait(30) == 0
    assert shared.run("SELECT awaited, holder FROM {leases} WHERE name LIKE 'files%%'") == [(False, "")]


def test_a_process_of_another_version_does_not_read_for_the_keeper(shared, monkeypatch):
    """Its workers would write parts that the keeper cannot read."""
    with pytest.raises(HeldError):
        shared.open()
    monkeypatch.setattr(journals, "FORMAT", journals.FORMAT + 1)
    with pytest.raises(SourceError, match="another version of wpinq"):
        shared.open()


def test_what_does_not_open_is_told_of_a_database(shared):
    shared.epoch("ann,a")
    wrong = replace(shared.home, key=bytes(32))
    with pytest.raises(SourceError, match="the database was edited") as caught:
        wrong.opened("note x", b"x" * 60)
    assert "directory" not in str(caught.value)
    shared.run("UPDATE {epochs} SET frame = (SELECT frame FROM {epochs} WHERE number = 0) WHERE number = 1")
    with pytest.raises(SourceError, match="the database was edited") as caught:
        list(shared.views._journal.read())
    assert "directory" not in str(caught.value)


def test_records_are_sent_and_taken_back_beside_those_that_workers_read(shared_ledger, tmp_path):
    path = tmp_path / "views.csv"
    path.write_text("user,page\n")
    with closing(Shared(shared_ledger, path, retractions=True)) as shared:
        m = shared.views.map("page").measure(EXACT)
        shared.write("ann,a", "bob,a")
        shared.views.send([("eve", "a"), ("eve", "b")])
        shared.views.send([("ann", "a")], weight=-1)
        shared.epoch()
        assert m.observe_many(["a", "b"]).tolist() == [2, 1], "what was sent beside, and taken back of what was read"
