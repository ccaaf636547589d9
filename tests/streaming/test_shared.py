"""Streams that several processes read, kept in the database of their ledger. Attacks 13, 38 and 42; rules 5 and 38.

Kinds: answers compared with those of one process; edits and copies of the database by its administrator; leases that
end while their holder is frozen; and processes that are killed and frozen at random, counted exactly in the end.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import signal
import socket
import threading
import time
import urllib.request
from contextlib import closing, suppress

import psycopg
import pytest
from depth import deep, thin
from streaming.breaking import Broken, broken, running_server

import wpinq
from wpinq.apps.cli import main
from wpinq.core.ledger.rows.secret import Secret
from wpinq.streaming import journal as files
from wpinq.streaming.shared.crew import Workers
from wpinq.streaming.shared.home import Home
from wpinq.streaming.shared.keeper import HeldError
from wpinq.streaming.shared.leases import Holder, LostError
from wpinq.streaming.shared.sources import OfFiles
from wpinq.streaming.shared.worker import Worker

COLUMNS = {"user": "text", "page": "text"}
EXACT = 500
SECRET = Secret(bytes(range(32)))


class Shared:
    """A stream with one worker in this process, over one file."""

    def __init__(self, ledger, path, columns=None, **more):
        self.ledger, self.path, self.columns, self.more = ledger, path, columns or COLUMNS, more
        self.views = self.open()
        self.home = self.views._journal.parts.home
        self.holder, self.connected = Holder(self.home, 3600), self.home.connected()
        self.source = OfFiles(str(path), self.home.columns, {})
        self.connection = self.connected.__enter__()
        self.worker = Worker(self.home, self.source, self.holder, self.connection)

    def open(self):
        more = {"budget": 10**7, "secret": SECRET, **self.more}
        return wpinq.live(self.columns, ledger=self.ledger, recover=self.ledger, **more)

    def reopened(self):
        self.views.close()
        self.views = self.open()
        return self.views

    def write(self, *lines):
        with self.path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        self.worker.look()

    def epoch(self, *lines):
        if lines:
            self.write(*lines)
        self.views.follow(self.path, workers=0)
        return self.views.advance()

    def run(self, statement, *values):
        done = self.connection.execute(self.home.sql(statement), values)
        return done.fetchall() if done.description else []

    def close(self):
        self.views.close()
        self.holder.close()
        self.connected.__exit__(None, None, None)
        self.source.close()


def pages(views, **more):
    return views.map("page").measure(EXACT, continual=True, **more)


def test_parts_are_counted_once_over_restarts_of_the_keeper(shared):
    m = pages(shared.views)
    shared.epoch("ann,a", "bob,b", "ann,a")
    assert m.observe_many(["a", "b"]).tolist() == [2, 1]
    shared.write("eve,b")  # waits as a part
    m = pages(shared.reopened())
    shared.epoch("eve,b")
    shared.epoch()
    assert m.observe_many(["a", "b"]).tolist() == [2, 3]
    assert shared.run("SELECT count(*) FROM {parts}") == [(0,)]
    assert shared.views._received.offered == 2, "of this process, by what its parts say"


def test_answers_are_those_of_one_process(shared_ledger, tmp_path):
    """People, of random lines in random parts, epoch by epoch."""
    draw, person, path = random.Random(37), wpinq.users("user", at_most=2), tmp_path / "views.csv"
    path.write_text("user,page\n")
    shared = Shared(shared_ledger, path, unit=person)
    alone = wpinq.live(COLUMNS, 10**7, unit=person, secret=SECRET)
    mine, theirs = pages(shared.views), pages(alone)
    degrees = [v.map("page").shave().map(lambda page, index: index).measure(EXACT) for v in (shared.views, alone)]
    for _ in range(4):
        for _ in range(3):
            lines = [(f"u{draw.randrange(5)}", draw.choice("abc")) for _ in range(draw.randrange(6))]
            shared.write(*[",".join(line) for line in lines])
            alone.send(lines)
        shared.epoch()
        alone.advance()
        assert mine.observe_many(["a", "b", "c"]).tolist() == theirs.observe_many(["a", "b", "c"]).tolist()
    assert degrees[0].observe_many(range(4)).tolist() == degrees[1].observe_many(range(4)).tolist()
    alone.close()
    shared.close()


def test_windows_wait_for_whoever_reads_last(shared_ledger, tmp_path):
    """A worker that is away makes no record late: its partition holds windows back."""
    path = tmp_path / "views.csv"
    path.write_text("user,at\n")
    columns = {"user": "text", "at": "timestamp"}
    with closing(Shared(shared_ledger, path, columns, lateness=dt.timedelta(0))) as shared:
        m = shared.views.window("1s", at="at").map("user").measure(EXACT)
        other = Holder(shared.home, 3600)  # before the window begins: a slow machine closes it within any two lines
        with shared.home.connected() as connection:
            assert other.balance(connection, ["kafka t 0-t"], moving=True), "a partition that was never read"
        (begin,) = shared.run("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0]
        window = dt.datetime.fromtimestamp(begin // 10**6, dt.UTC).replace(tzinfo=None)
        shared.epoch(f"ann,{window}")
        time.sleep(1.5)
        shared.write(f"bob,{window}")
        shared.epoch()
        with pytest.raises(wpinq.NotReadyError):
            m.observe("ann", window=window)
        shared.run("DELETE FROM {leases} WHERE name = %s", "kafka t 0-t")
        shared.write("nobody,")
        shared.epoch()
        assert m.observe_many(["ann", "bob"], window=window).tolist() == [1, 1]
        other.close()


def test_attack_42_a_worker_that_was_frozen_is_refused_whatever_its_clock_says(shared):
    shared.epoch("ann,a")
    shared.run("UPDATE {leases} SET ends = '-infinity'")
    late = shared.worker
    other = Holder(shared.home, 3600)
    with shared.home.connected() as connection, closing(OfFiles(str(shared.path), shared.home.columns, {})) as source:
        worker = Worker(shared.home, source, other, connection)
        worker._balance()
        with shared.path.open("a") as file:
            file.write("bob,b\n")
        with pytest.raises(LostError, match="another process has taken over"):
            late.look()
        worker.look()
    m = pages(shared.views)
    shared.epoch()
    assert m.observe_many(["a", "b"]).tolist() == [1, 1]
    other.close()


def test_attack_42_a_keeper_that_was_frozen_closes_no_epoch(shared):
    late = shared.views
    shared.epoch("ann,a")
    shared.run("UPDATE {leases} SET ends = '-infinity' WHERE name = 'keeper'")
    shared.views = shared.open()
    m = pages(shared.views)
    shared.write("bob,b")
    late.follow(shared.path, workers=0)
    with pytest.raises(wpinq.EngineError, match=r"another process has taken over.*Nothing was written"):
        late.advance()
    with pytest.raises(wpinq.EngineError, match="did not take in an epoch"):
        late.advance()
    shared.epoch()
    assert m.observe_many(["a", "b"]).tolist() == [1, 1]
    late.close()


def test_a_second_keeper_is_refused_until_the_first_ends(shared):
    with pytest.raises(HeldError, match="another process keeps it"):
        shared.open()
    shared.views.close()
    shared.views = shared.open()


EDITS = {
    "a part is gone": "DELETE FROM {parts}",
    "a part is there again": "INSERT INTO {parts} (stream, frame) SELECT stream, frame FROM wpinq_views.kept",
    "a part is another's": "UPDATE {parts} SET frame = (SELECT frame FROM {epochs} WHERE number = 1)",
    "a part is an older one": "UPDATE {parts} SET frame = (SELECT frame FROM wpinq_views.kept)",
    "a part is gone with its position": "WITH gone AS (DELETE FROM {parts}) UPDATE {leases} SET position = NULL",
    "all leases are gone": "DELETE FROM {leases}",
    "fences are put back": "UPDATE {leases} SET fence = 0",
    "a lease is another's": "UPDATE {leases} SET holder = 'nobody', ends = 'infinity' WHERE name = 'keeper'",
    "a position is put back": "UPDATE {leases} SET position = NULL WHERE name LIKE 'files%%'",
    "an epoch is gone": "DELETE FROM {epochs} WHERE number = 2",
    "the last epoch is gone": "DELETE FROM {epochs} WHERE number = (SELECT max(number) FROM {epochs})",
    "epochs change places": "UPDATE {epochs} AS t SET frame = s.frame FROM {epochs} AS s"
                            " WHERE t.number IN (1, 2) AND s.number = 3 - t.number",
    "an epoch is another's": "UPDATE {epochs} AS t SET frame = s.frame FROM {epochs} AS s"
                             " WHERE t.number = 1 AND s.number = 2",
    "the version is gone": "DELETE FROM {epochs} WHERE number = 0",
    "all is gone": "DELETE FROM {epochs}",
}  # fmt: skip


@thin(3)
@pytest.mark.parametrize("edit", EDITS)
def test_attack_38_an_administrator_who_edits_a_stream_is_noticed_or_changes_nothing(shared, edit):
    """No record is left out or counted twice: it is refused, or the answers are the right ones."""
    m = pages(shared.views)
    shared.write("ann,a")
    shared.run("CREATE TABLE wpinq_views.kept AS SELECT * FROM {parts}")
    shared.epoch()
    shared.epoch("bob,b")
    shared.epoch("ann,a")
    shared.write("eve,a")
    shared.run(EDITS[edit])
    shared.run("DROP TABLE wpinq_views.kept")
    try:
        m = pages(shared.reopened())
        shared.worker._balanced = float("-inf")
        shared.epoch("eve,a")
        shared.epoch()
    except wpinq.SourceError as error:
        assert "edited" in str(error) or "damaged" in str(error) or "put back" in str(error)
        return
    assert m.observe_many(["a", "b"]).tolist() == [4, 1]


def test_attack_38_a_database_that_was_put_back_by_an_epoch_is_refused(shared, stream_server):
    """Nothing was charged since; but the epoch would be closed again, with other records under the same noise."""
    shared.epoch("ann,a")
    names = [name for (name,) in shared.run("SELECT tablename FROM pg_tables WHERE schemaname = 'wpinq_views'")]
    with psycopg.connect(stream_server, autocommit=True) as connection:
        for name in names:
            connection.execute(f"CREATE TABLE copy_{name} AS SELECT * FROM wpinq_views.{name}")
        shared.epoch("bob,b")
        shared.views.close()
        for name in names:
            overriding = "OVERRIDING SYSTEM VALUE " if name == "stream_parts" else ""
            connection.execute(f"DELETE FROM wpinq_views.{name}")
            connection.execute(f"INSERT INTO wpinq_views.{name} {overriding}SELECT * FROM copy_{name}")
            connection.execute(f"DROP TABLE copy_{name}")
    with pytest.raises(wpinq.LedgerError, match="was restored"):
        shared.open()


def test_what_the_database_holds_says_nothing_of_records(shared):
    shared.epoch("marker-user,marker-page")
    shared.write("marker-user,marker-page")
    shared.views._journal.notes.write("note", b"marker-note")
    for table in ("epochs", "parts", "leases", "notes"):
        rows = shared.run(f"SELECT * FROM {{{table}}}")
        assert rows
        assert (
            b"marker"
            not in repr([[bytes(c) if isinstance(c, memoryview) else c for c in row] for row in rows]).encode()
        )
    assert shared.views._journal.notes.read("note") == b"marker-note"
    assert repr(shared.home).find(shared.home.key.hex()) < 0


def test_epochs_are_merged_in_the_database_with_the_same_answers(shared_ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "EVERY", 4)
    path = tmp_path / "views.csv"
    path.write_text("user,page\n")
    with closing(Shared(shared_ledger, path, keep=1)) as shared:
        m = pages(shared.views)
        for number in range(1, 30):
            shared.epoch(*["ann,a"] * 40, f"bob,b{number % 2}")
            assert m.observe("a") == 40 * number
        kept = shared.run("SELECT count(*) FROM {epochs}")[0][0]
        assert kept < 20
        m = pages(shared.reopened())
        shared.epoch("ann,a")
        assert m.observe_many(["a", "b0", "b1"]).tolist() == [40 * 29 + 1, 14, 15]


def test_workers_share_partitions_and_pass_them_on(shared):
    names = [f"kafka t {number}-t" for number in range(5)]
    holders = [Holder(shared.home, 3600) for _ in range(3)]
    with shared.home.connected() as connection:
        for _ in range(3):
            shares = [set(holder.balance(connection, names, moving=True)) for holder in holders]
        shares = [set(holder.balance(connection, names, moving=True)) for holder in holders]
        assert sorted(map(len, shares)) == [1, 2, 2]
        assert set.union(*shares) == set(names)
        holders[0].close()
        for _ in range(3):
            shares = [set(holder.balance(connection, names, moving=True)) for holder in holders[1:]]
        assert set.union(*shares) == set(names)
        more = [*names, "kafka t 5-t"]
        for _ in range(3):
            shares = [set(holder.balance(connection, more, moving=True)) for holder in holders[1:]]
        assert sorted(map(len, shares)) == [3, 3], "partitions are added while it runs"
    for holder in holders[1:]:
        holder.close()


def test_two_workers_read_a_topic_of_four_partitions(shared_ledger):
    confluent = pytest.importorskip("confluent_kafka")
    producer = confluent.Producer({"test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0})
    brokers = [f"{one.host}:{one.port}" for one in producer.list_topics(timeout=10).brokers.values()]
    for number in range(400):
        producer.produce("views", json.dumps({"user": f"u{number}", "page": "ab"[number % 2]}), partition=number % 4)
    assert producer.flush(10) == 0
    with closing(wpinq.live(COLUMNS, 10**7, ledger=shared_ledger, recover=shared_ledger, secret=SECRET)) as views:
        m, end = pages(views), time.monotonic() + 60
        while time.monotonic() < end and (views.epoch == 0 or m.observe("b") < 200 or m.observe("a") < 200):
            views.follow(wpinq.kafka(brokers, "views"), workers=2)
            views.advance()
            time.sleep(0.2)
        assert m.observe_many(["a", "b"]).tolist() == [200, 200]
        assert len(views._journal.parts.positions()) == 4


def test_what_cannot_be_shared_is_refused_before_anything_is_charged(shared_ledger, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WPINQ_SECRET", "ab" * 32)
    script = tmp_path / "flow.py"
    script.write_text('def dataflow(views):\n    return {"total": views.measure(1, continual=True)}\n')
    path = tmp_path / "views.csv"
    path.write_text("user,page\n")
    begin = ["run", str(script), str(path), "--follow", "--budget", "1", "--workers", "2"]
    for more, why in (
        ([], "--ledger the URL"),
        (["--ledger", str(tmp_path / "ledger")], "--ledger the URL"),
        (["--ledger", shared_ledger, "--recover", str(tmp_path / "keep")], "leave it out beside --workers"),
    ):
        assert main([*begin, *more]) == 2
        assert why in capsys.readouterr().err
    with pytest.raises(wpinq.PlanError, match="another database"):
        wpinq.live(COLUMNS, 1, ledger=shared_ledger, recover=shared_ledger.replace("=views", "=other"), secret=SECRET)
    with closing(wpinq.live(COLUMNS, 1)) as views, pytest.raises(wpinq.PlanError, match=r"follow\(workers=\.\.\.\)"):
        views.follow(path, workers=2)
    with closing(wpinq.live(COLUMNS, 1, ledger=shared_ledger, recover=shared_ledger, secret=SECRET)) as views:
        for number in (-1, 257):
            with pytest.raises(wpinq.PlanError, match="from 1 to 256"):
                views.follow(path, workers=number)


def terminate(port, seen):
    """Send SIGTERM to this process, once it answers a scraper."""
    end = time.monotonic() + 60
    while time.monotonic() < end and "_keeps{" not in "".join(seen):
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            seen.append(answer.read().decode())
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_process_that_waits_answers_a_scraper_and_ends_well(shared_ledger, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WPINQ_SECRET", bytes(range(32)).hex())
    script, path, seen = tmp_path / "flow.py", tmp_path / "views.csv", []
    script.write_text('def dataflow(views):\n    return {"total": views.measure(1, continual=True)}\n')
    path.write_text("user,page\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    more = {"ledger": shared_ledger, "recover": shared_ledger, "name": "live"}
    with closing(wpinq.live(COLUMNS, 1, secret=SECRET, **more)):
        threading.Thread(target=terminate, args=(port, seen)).start()
        words = ["--follow", "--budget", "1", "--workers", "1", "--name", "live", "--ledger", shared_ledger]
        assert main(["run", str(script), str(path), *words, "--metrics", str(port)]) == 0
    said, name = capsys.readouterr().err, socket.gethostname()
    assert f"Another process keeps this stream, on {name}; this one reads for it, and takes over when it ends" in said
    assert "it passes on" not in said
    assert {line for line in seen[-1].splitlines() if line[0] != "#"} == {f'wpinq_stream_keeps{{keeper="{name}"}} 0.0'}


def test_attack_13_killed_frozen_and_cut_at_random_each_line_is_counted_once(shared_ledger, stream_server, tmp_path):
    with closing(Broken(stream_server, tmp_path, 1)) as stream:
        assert broken(stream, 8) == ""


@deep("more moments, and a server that is killed")
@pytest.mark.parametrize("seed", range(3))
def test_attack_13_a_server_that_is_killed_too(tmp_path, seed):
    with running_server() as cluster, closing(Broken(cluster.url, tmp_path, seed, cluster)) as stream:
        assert broken(stream, 30) == ""
        assert set(stream.did) >= {"kill", "freeze", "server"}


def test_a_worker_says_what_fails_and_quotes_nothing(shared, tmp_path, capfd):
    shared.write("marker-user,marker-page")
    shared.holder.close()
    gone = Home(shared.home.address, shared.home.stream, shared.home.columns, bytes(32))
    source = {"pattern": str(tmp_path / "views.csv"), "form": {}, "history": False}
    said, end = "", time.monotonic() + 60
    with closing(Workers(1, {"home": gone.told(), "source": source, "every": 0.1, "seconds": 1.0})):
        while "\n" not in said and time.monotonic() < end:
            time.sleep(0.2)
            said += capfd.readouterr().err
        time.sleep(1)
    said += capfd.readouterr().err
    assert "is damaged" in said
    assert "marker" not in said
