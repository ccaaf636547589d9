"""A ledger in PostgreSQL whose server is killed, restored, followed by a standby and failed over."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from depth import deep, deeper, often
from servers import Cluster, memory, programs

from wpinq.core.ledger import Ledger
from wpinq.core.ledger.stores.address import ledger_path
from wpinq.errors import LedgerError

psycopg = pytest.importorskip("psycopg")
Open = Callable[..., Ledger]
Spend = Callable[..., bool]
QUICK = {"synchronous_commit": "on", "shared_buffers": "16MB"}


@pytest.fixture
def room() -> Iterator[Path]:
    """A directory that a server's user may use."""
    programs()
    place = Path(tempfile.mkdtemp(prefix="wpinq-postgres-", dir=memory()))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def primary(room: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cluster]:
    monkeypatch.setenv("WPINQ_SECRET", bytes(range(32)).hex())
    monkeypatch.setenv("WPINQ_STATE", str(tmp_path / "client"))
    server = Cluster(room / "primary")
    server.start(**QUICK)
    yield server
    ended(server)


def ended(server: Cluster) -> None:
    if (server.data / "postmaster.pid").exists():
        server.stop()


def settings(server: Cluster, *statements: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.execute("SELECT pg_reload_conf()")
    time.sleep(0.1)


def awaited(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def standby(room: Path, primary: Cluster) -> Iterator[Cluster]:
    """One that follows the primary, and is called "standby"."""
    server = Cluster(room / "standby", primary, "-R")
    server.start(**QUICK)
    awaited(lambda: states(primary))
    yield server
    ended(server)


def states(primary: Cluster) -> list[str]:
    with psycopg.connect(primary.url) as connection:
        return [state for (state,) in connection.execute(
            "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'")]  # fmt: skip


def synchronous(primary: Cluster) -> None:
    settings(primary, "ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    awaited(lambda: states(primary) == ["sync"])


def both(primary: Cluster, standby: Cluster) -> str:
    """The URL of whichever of them takes writes."""
    return primary.url.replace(f":{primary.port}/", f":{primary.port},127.0.0.1:{standby.port}/") + (
        "?target_session_attrs=read-write"
    )


def test_a_server_that_may_lose_what_it_confirms_is_refused_at_each_use(
    primary: Cluster, opened: Open, spend: Spend
) -> None:
    running = opened(ledger_path(primary.url))
    settings(primary, "ALTER SYSTEM SET full_page_writes = off", "ALTER SYSTEM SET synchronous_commit = off")
    for use in (lambda: spend(running, 1), lambda: opened(ledger_path(primary.url))):
        with pytest.raises(LedgerError, match="full_page_writes=off, so a crash loses charges that were answered"):
            use()
    with pytest.raises(LedgerError, match="full_page_writes=off"):
        opened(ledger_path(f"{primary.url}?may_lose=failover"))
    assert opened(ledger_path(f"{primary.url}?may_lose=crash")).remaining() == 1
    settings(primary, "ALTER SYSTEM RESET full_page_writes")
    assert spend(running, 1), "a commit that is not waited for is each session's choice, and is chosen here"


@deeper
def test_a_server_that_is_killed_while_many_charge_loses_and_doubles_nothing(
    primary: Cluster, opened: Open, spend: Spend
) -> None:
    path, granted = ledger_path(primary.url), list[int]()
    opened(path)
    for turn in range(often(20, 2)):
        stopped = threading.Event()

        def work(who: int, turn: int = turn, stopped: threading.Event = stopped) -> tuple[Ledger, int, str]:
            ledger, number, trouble = opened(path), 0, ""
            for number in range(turn * 100_000 + who * 10_000, (turn + 1) * 100_000):
                try:
                    assert spend(ledger, number, Fraction(1, 1_000_000))
                except LedgerError as error:
                    trouble = str(error)
                    break
                granted.append(number)
                if len(granted) % 20 == 10:
                    stopped.set()
            return ledger, number, trouble

        with ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(work, who) for who in range(3)]
            stopped.wait(60)
            primary.kill()
            done = [each.result() for each in waiting]
        primary.start(**QUICK)
        charged = [entry.question for entry in opened(path).entries() if entry.kind == "charge"]
        assert len(charged) == len(set(charged))
        assert {f"{number:08x}" for number in granted} <= set(charged)
        for ledger, number, trouble in done:
            assert "\n" not in trouble
            assert any(words in trouble for words in ("did not confirm a commit", "was lost", "cannot be reached"))
            landed = f"{number:08x}" in charged
            assert not landed or "did not confirm" in trouble
            assert spend(ledger, number, Fraction(1, 1_000_000)) != landed, "it is free if, and only if, it landed"
            granted.append(number)
    assert opened(path).spent()[0] == len(granted) * Fraction(1, 1_000_000)


def test_a_backup_that_is_restored_is_refused_by_who_saw_more(
    primary: Cluster, room: Path, opened: Open, spend: Spend, tmp_path: Path
) -> None:
    path, other = ledger_path(primary.url), ledger_path(f"{primary.url}?state={tmp_path / 'other'}")
    running = opened(path)
    spend(running, 1)
    with pytest.warns(RuntimeWarning, match="begins"):
        opened(other)
    backup = Cluster(room / "backup", primary)
    spend(running, 2, "1/2")
    primary.stop()
    backup.port = primary.port
    backup.start(**QUICK)
    try:
        for use in (running.remaining, lambda: spend(running, 3), lambda: opened(path)):
            with pytest.raises(LedgerError, match="restored, or failed over, to a moment before rows that this client"):
                use()
        assert opened(other).remaining() == Fraction(9, 10), "it saw nothing of what was lost"
    finally:
        backup.stop()
    primary.start(**QUICK)
    assert running.remaining() == opened(other).remaining() == Fraction(4, 10), "the newest state is put back"


def test_a_standby_that_confirms_loses_nothing_at_a_failover(
    primary: Cluster, standby: Cluster, opened: Open, spend: Spend
) -> None:
    synchronous(primary)
    path = ledger_path(both(primary, standby))
    running = opened(path)
    for number in range(5):
        spend(running, number)
    primary.kill()
    standby.promote()
    assert running.remaining() == Fraction(1, 2)
    assert not spend(running, 4)
    assert spend(opened(path), 5)


def test_a_standby_that_does_not_confirm_is_refused_or_accepted_and_its_loss_is_noticed(
    primary: Cluster, standby: Cluster, opened: Open, spend: Spend
) -> None:
    url = both(primary, standby)
    with pytest.raises(LedgerError, match=r"failover loses charges that were answered\. .*may_lose=failover"):
        opened(ledger_path(url))
    path = ledger_path(f"{url}&may_lose=failover")
    running = opened(path)
    spend(running, 1)
    with psycopg.connect(primary.url, autocommit=True) as connection:
        (end,) = connection.execute("SELECT pg_current_wal_flush_lsn()").fetchone() or ("",)
        awaited(lambda: (connection.execute("SELECT count(*) FROM pg_stat_replication WHERE flush_lsn >= %s", [end])
                         .fetchone() or [0])[0])  # fmt: skip
    standby.stop()
    spend(running, 2)
    primary.kill()
    standby.start(**QUICK)
    standby.promote()
    for use in (running.remaining, lambda: spend(running, 2), lambda: opened(path)):
        with pytest.raises(LedgerError, match="restored, or failed over, to a moment before rows that this client"):
            use()


@deep
def test_a_standby_itself_is_refused(primary: Cluster, standby: Cluster, opened: Open) -> None:
    synchronous(primary)
    opened(ledger_path(primary.url))
    with pytest.raises(LedgerError, match="read-only; give the primary"):
        opened(ledger_path(standby.url))


def test_a_commit_that_a_standby_has_not_confirmed_answers_nothing_until_it_has(
    primary: Cluster, standby: Cluster, opened: Open, spend: Spend
) -> None:
    """An administrator who cancels the wait has it committed here alone, which the server says as a warning."""
    synchronous(primary)
    running = opened(ledger_path(primary.url))
    standby.stop()
    with ThreadPoolExecutor(1) as pool, psycopg.connect(primary.url, autocommit=True) as administrator:
        waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'wpinq'"
        for _ in range(2):  # the second one would be free, and reads what is nowhere else yet
            charge = pool.submit(spend, running, 1)
            awaited(lambda: administrator.execute(waiting).fetchone())
            assert not charge.done()
            administrator.execute(f"SELECT pg_cancel_backend(pid) FROM ({waiting}) AS w")
            with pytest.raises(LedgerError, match="did not confirm a commit, so nothing was answered"):
                charge.result()
    standby.start(**QUICK)
    awaited(lambda: states(primary) == ["sync"])
    assert not spend(running, 1), "it landed"
    assert running.spent()[0] == Fraction(1, 10)


@deep
def test_a_user_who_does_not_see_standbys_counts_them_as_not_confirming(
    primary: Cluster, standby: Cluster, opened: Open
) -> None:
    synchronous(primary)
    opened(ledger_path(primary.url))
    settings(primary, "CREATE ROLE plain LOGIN PASSWORD 'plain'", "GRANT CREATE ON DATABASE postgres TO plain")
    url = f"postgresql://plain:plain@127.0.0.1:{primary.port}/postgres?ledger=theirs"
    with pytest.raises(LedgerError, match=r"does not show this user whether it does.*grant this user pg_monitor"):
        opened(ledger_path(url))
    settings(primary, "GRANT pg_monitor TO plain")
    assert opened(ledger_path(url)).remaining() == 1
