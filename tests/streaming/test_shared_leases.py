"""Leases of shared streams: who gets which partition, and that nobody who waits or freezes stops the others. Attack 42.

Kinds: random threads beside the server's own count of deadlocks; sessions that freeze between two statements; and the
numbers of statements, which do not grow with partitions.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, closing

import psycopg
import pytest

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.errors import SourceError
from wpinq.streaming.shared.keeper import HeldError
from wpinq.streaming.shared.leases import Holder

COLUMNS = {"user": "text", "page": "text"}
SECRET = Secret(bytes(range(32)))


@pytest.fixture
def home(shared_ledger):
    with closing(wpinq.live(COLUMNS, 1, ledger=shared_ledger, recover=shared_ledger, secret=SECRET)) as views:
        yield views._journal.parts.home


def deadlocks(url):
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT sum(deadlocks) FROM pg_stat_database").fetchone()[0]


def test_workers_that_balance_renew_and_write_never_wait_for_each_other_in_a_circle(home, stream_server):
    names, before, failed = [f"kafka t {number}-t" for number in range(40)], deadlocks(stream_server), []
    end = time.monotonic() + 3

    def work(holder):
        try:
            with home.connected() as connection:
                while time.monotonic() < end:
                    leases = holder.balance(connection, names, moving=True)
                    with connection.transaction():
                        holder.check(connection, leases)
                        holder.advance(connection, dict.fromkeys(leases, 1))
        except SourceError as error:
            failed.append(str(error))

    with ExitStack() as ending:
        holders = [ending.enter_context(closing(Holder(home, 0.03))) for _ in range(3)]
        threads = [threading.Thread(target=work, args=(holder,)) for holder in holders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not [why for why in failed if "taken over" not in why]
    time.sleep(1)  # the server counts a while later
    assert deadlocks(stream_server) == before


def test_workers_of_one_topic_read_all_of_it_whatever_others_read(home):
    """A share is of what a worker can read: those of another topic cannot read the rest."""
    few, many = ([f"kafka {topic} {number}-{topic}" for number in range(4)] for topic in "ab")
    with ExitStack() as ending:
        connection = ending.enter_context(home.connected())
        holders = [ending.enter_context(closing(Holder(home, 3600))) for _ in range(4)]
        for _ in range(3):
            shares = [holder.balance(connection, many, "kafka b", moving=True) for holder in holders[1:]]
            assert set(holders[0].balance(connection, few, "kafka a", moving=True)) == set(few)
        assert sorted(map(len, shares)) == [0, 2, 2]


def test_a_clock_of_the_server_that_is_put_back_keeps_no_lease_for_long(home):
    """A worker died, and then the clock was put back by an hour: its lease seems to hold for one more."""
    with home.connected() as connection, closing(Holder(home)) as dead, closing(Holder(home)) as other:
        dead._stop.set()
        dead.balance(connection, ["kafka t 0-t"], moving=True)
        assert not other.balance(connection, ["kafka t 0-t"], moving=True)
        connection.execute(home.sql("UPDATE {leases} SET ends = ends + interval '1 hour'"))
        assert other.balance(connection, ["kafka t 0-t"], moving=True)
        assert other.keep() is not None


class Counting:
    """A connection that counts its statements."""

    def __init__(self, connection):
        self.connection, self.transaction, self.count = connection, connection.transaction, 0

    def execute(self, *words):
        self.count += 1
        return self.connection.execute(*words)


def test_many_partitions_take_no_more_statements_than_few(home):
    counted = []
    for number in (2, 500):
        names = [f"kafka t {each}-t" for each in range(number)]
        with home.connected() as connection, closing(Holder(home, 3600)) as holder:
            counting = Counting(connection)
            leases = holder.balance(counting, names, moving=True)
            holder.check(counting, leases)
            holder.advance(counting, dict.fromkeys(leases, 7))
            assert len(leases) == number
            counted.append(counting.count)
            found = holder.balance(connection, names, moving=True)
            assert {lease.position for lease in found.values()} == {7}
    assert counted[0] == counted[1] < 10


def test_a_user_who_may_make_no_tables_reads_a_stream(home, shared_ledger, stream_server):
    mine = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA wpinq_views TO reads"
    with psycopg.connect(stream_server, autocommit=True) as connection:
        connection.execute("CREATE ROLE reads LOGIN PASSWORD 'reads'")
        for grant in ("USAGE ON SCHEMA wpinq_views TO reads", mine, "pg_monitor TO reads"):
            connection.execute(f"GRANT {grant}")
        place = shared_ledger.replace("//postgres:pass-word-marker@", "//reads:reads@")
        with pytest.raises(HeldError):
            wpinq.live(COLUMNS, 1, ledger=place, recover=place, secret=SECRET)
        connection.execute("DROP OWNED BY reads")
        connection.execute("DROP ROLE reads")
