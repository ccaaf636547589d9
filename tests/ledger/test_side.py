"""Tables beside the rows of a ledger: what is read is what was written last, in the transaction of its charges.

Kinds: a contract over the three stores; damage, each by hand; processes that are killed between the two writes of an
act; two that decide by the same state. Found so far: nothing.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from wpinq.core.ledger import Change, Charge, Cost, Ledger, charge_all
from wpinq.errors import BudgetError, LedgerError

Open = Callable[..., Ledger]
COST = (Cost(Fraction(1, 10)),)


def make(path: Path | None) -> Ledger:
    return Ledger.open(path, name="views", unit="record", budget=Fraction(1))


@pytest.fixture(params=["file", "memory", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    """An empty one in each store."""
    if request.param == "postgres":
        return make(request.getfixturevalue("in_database"))
    return make(None if request.param == "memory" else tmp_path / "L")


def test_entries_are_replaced_and_go_and_tables_are_apart(ledger: Ledger) -> None:
    assert ledger.side("periods") == ({}, "")
    ledger.change(Change("periods", "a", "1"), Change("periods", "b", "2"), Change("alerts", "a", "low"))
    ledger.change(Change("periods", "a", "3"), Change("periods", "b", None), Change("periods", "ä\n'", "{}"))
    assert ledger.side("periods").entries == {"a": "3", "ä\n'": "{}"}
    assert ledger.side("alerts").entries == {"a": "low"}
    assert ledger.side("nothing") == ({}, "")
    ledger.change(Change("alerts", "a", None), Change("alerts", "not there", None))
    assert ledger.side("alerts").entries == {}
    assert [entry.kind for entry in ledger.entries()] == ["open"], "no row speaks of it"


def test_who_opens_it_later_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "L"
    first, second = make(path), make(path)
    first.change(Change("periods", "a", "1"))
    assert second.side("periods") == first.side("periods") == Ledger.existing(path).side("periods")
    second.charge("5eed5eed", COST, version="1", label="pages")
    first.change(Change("periods", "a", "2"))
    assert second.side("periods").entries == {"a": "2"}
    assert first.remaining() == Fraction(9, 10)


def test_it_is_written_with_its_charges_or_not_at_all(ledger: Ledger) -> None:
    dear = Charge("0badbad0", (Cost(Fraction(2)),), "1", "dear")
    with pytest.raises(BudgetError):
        charge_all([(ledger, dear)], changes=[(ledger, Change("periods", "a", "begun"))])
    assert ledger.side("periods") == ({}, "")
    fits = Charge("5eed5eed", COST, "1", "pages")
    assert charge_all([(ledger, fits)], changes=[(ledger, Change("periods", "a", "begun"))]) == [True]
    assert charge_all([(ledger, fits)], changes=[(ledger, Change("periods", "a", "again"))]) == [False]
    assert charge_all([], changes=[(ledger, Change("periods", "b", "free"))]) == []
    assert ledger.side("periods").entries == {"a": "again", "b": "free"}
    assert ledger.remaining() == Fraction(9, 10)


def test_of_two_that_decided_by_the_same_state_one_is_refused(ledger: Ledger) -> None:
    digest = ledger.side("periods").digest
    charge = Charge("5eed5eed", COST, "1", "pages")
    ledger.change(Change("periods", "a", "1", digest))
    with pytest.raises(LedgerError, match="another process has changed what this one decided by"):
        charge_all([(ledger, charge)], changes=[(ledger, Change("periods", "b", "2", digest))])
    assert ledger.side("periods").entries == {"a": "1"}
    assert ledger.remaining() == 1, "nothing was charged"
    ledger.change(Change("alerts", "b", "of another table"))
    now = ledger.side("periods").digest
    assert charge_all([(ledger, charge)], changes=[(ledger, Change("periods", "b", "2", now))]) == [True]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[tuple[Path, Ledger]]:
    """A ledger with two charges and three turns, which has seen all of them."""
    path = tmp_path / "L"
    ledger = make(path)
    ledger.change(Change("periods", "a", "begun"), Change("periods", "b", "begun"))
    ledger.charge("5eed5eed", COST, version="1", label="pages")
    ledger.change(Change("periods", "a", "published"))
    ledger.charge("5eed5eee", COST, version="1", label="users")
    ledger.change(Change("alerts", "low", "now"))
    yield path, ledger


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("statement", [
    "UPDATE side SET text = 'begun' WHERE key = 'a'",
    "UPDATE side SET key = 'c' WHERE key = 'b'",
    "UPDATE side SET name = 'alerts' WHERE key = 'b'",
    "DELETE FROM side WHERE key = 'a'",
    "DELETE FROM side WHERE name = 'periods'",
    "DELETE FROM side WHERE name = ''",
    "DELETE FROM side",
    "INSERT INTO side VALUES ('periods', 'c', 'begun')",
    "INSERT INTO side VALUES ('', 'c', 'begun')",
    "UPDATE side SET text = replace(text, '\"number\": 3', '\"number\": 4') WHERE name = ''",
    "UPDATE side SET text = '[]' WHERE name = ''",
    "UPDATE side SET text = x'00' WHERE key = 'a'",
    "DROP TABLE side",
    "ALTER TABLE side ADD COLUMN more",
    "CREATE TRIGGER t AFTER INSERT ON side BEGIN DELETE FROM side; END",
])  # fmt: skip
def test_every_edit_is_refused_by_who_reads_it(statement: str, kept: tuple[Path, Ledger]) -> None:
    path, running = kept
    edit(path, statement)
    for read in (lambda: running.side("periods"), lambda: Ledger.existing(path).side("periods"), running.entries,
                 lambda: running.change(Change("periods", "a", "x"))):  # fmt: skip
        with pytest.raises(LedgerError, match=r"^ledger [^\n]*(; put|\. Put) back"):
            read()


def test_tables_of_the_past_are_refused_as_rows_are(kept: tuple[Path, Ledger], tmp_path: Path) -> None:
    path, running = kept
    edit(path, f"ATTACH '{tmp_path / 'past'}' AS past", "CREATE TABLE past.side AS SELECT * FROM side")
    running.change(Change("periods", "b", "published"))
    edit(path, f"ATTACH '{tmp_path / 'past'}' AS past", "DELETE FROM side", "INSERT INTO side SELECT * FROM past.side")
    for use in (lambda: running.side("periods"), lambda: Ledger.existing(path), lambda: make(path)):
        with pytest.raises(LedgerError, match="older than its head says"):
            use()


def test_a_head_of_the_past_is_refused_beyond_one_act(kept: tuple[Path, Ledger], tmp_path: Path) -> None:
    path, running = kept
    head = path.with_name("L.head")
    heads = [head.read_bytes()]
    for text in ("1", "2"):
        running.change(Change("periods", "b", text))
        heads.append(head.read_bytes())
    newest = heads.pop()
    head.write_bytes(heads[0])
    with pytest.raises(LedgerError, match="head belongs to another history"):
        Ledger.existing(path)
    head.write_bytes(heads[1])
    assert Ledger.existing(path).side("periods").entries == {"a": "published", "b": "2"}, "one act behind is a crash"
    assert head.read_bytes() == newest


def test_a_head_of_the_rows_of_one_moment_and_the_tables_of_another_is_none(kept: tuple[Path, Ledger]) -> None:
    path, running = kept
    head = path.with_name("L.head")
    before = head.read_text().split()
    running.charge("5eed5eef", COST, version="1", label="days")
    running.change(Change("periods", "b", "1"))
    after = head.read_text().split()
    for mixed in ([*after[:3], *before[3:5], after[5]], [*before[:3], *after[3:5], before[5]],
                  [*before[:3], *after[3:]], [*after[:3], *before[3:]]):  # fmt: skip
        head.write_text(" ".join(mixed) + "\n")
        with pytest.raises(LedgerError, match="another history"):
            Ledger.existing(path)


def test_a_copy_of_everything_is_noticed_by_who_runs(kept: tuple[Path, Ledger], tmp_path: Path) -> None:
    """Also where only tables were changed since; nobody else can see it, since the head of the copy is right for it."""
    path, running = kept
    ends = ("", ".head")
    for end in ends:
        shutil.copy2(f"{path}{end}", tmp_path / f"old{end}")
    running.change(Change("periods", "b", "1"))
    decided = running.side("periods").digest
    for end in ends:
        shutil.copy2(tmp_path / f"old{end}", f"{path}{end}")
    with pytest.raises(LedgerError):
        running.change(Change("periods", "b", "2", decided))


KILLED = """
import os, pathlib, signal, sys
from fractions import Fraction
from wpinq.core.ledger import Change, Charge, Cost, Ledger, charge_all
from wpinq.core.ledger.rows import chain
ledger = Ledger.existing(pathlib.Path(sys.argv[1]))
chain.write_head = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
charge = Charge("5eed5eef", (Cost(Fraction(1, 10)),), "1", "days")
charge_all([(ledger, charge)][: int(sys.argv[2])], changes=[(ledger, Change("periods", "b", "killed"))])
"""


@pytest.mark.parametrize("charges", [0, 1])
def test_killed_before_the_head_is_written_the_act_counts_whole(charges: int, kept: tuple[Path, Ledger]) -> None:
    path, running = kept
    paths = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", KILLED, str(path), str(charges)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert Ledger.existing(path).side("periods").entries["b"] == "killed"
    assert running.remaining() == Fraction(8 - charges, 10)
    running.change(Change("periods", "b", "goes on"))
    assert Ledger.existing(path).side("periods").entries["b"] == "goes on"


def test_a_database_of_the_past_is_refused_by_who_saw_more(in_database: pathlib.Path, url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    from wpinq.core.ledger.stores.address import Address

    ledger, schema = make(in_database), Address.read(url).schema
    ledger.change(Change("periods", "a", "1"))
    with psycopg.connect(url.partition("?")[0], autocommit=True) as owner:
        for table in ("side", "head"):
            owner.execute(f"CREATE TABLE {schema}_{table} AS SELECT * FROM {schema}.{table}")
        ledger.change(Change("periods", "a", "2"))
        for table in ("side", "head"):
            owner.execute(f"DELETE FROM {schema}.{table}")
            owner.execute(f"INSERT INTO {schema}.{table} SELECT * FROM {schema}_{table}")
        for use in (lambda: ledger.side("periods"), lambda: make(in_database), ledger.remaining):
            with pytest.raises(LedgerError, match="restored, or failed over, to a moment before"):
                use()
        for table in ("side", "head"):
            owner.execute(f"DROP TABLE {schema}_{table}")
