"""An act is one transaction: how often a ledger is locked, written and made durable by what people do.

Kinds: counts of each act, and heads that are behind by one act or by more. Found: seven transactions for one question,
one for each seal of a hundred measurements that waited, and evidence that was read from five states.
"""

import os
import shutil
from collections import Counter
from contextlib import contextmanager

import pytest

import wpinq
from wpinq.core.ledger import Charge, Cost, Ledger
from wpinq.core.ledger.stores.file import FilePages, FileStore
from wpinq.errors import LedgerError


@pytest.fixture
def acts(monkeypatch):
    """Counts: how often a ledger was locked, and rows were committed, and files made durable beside SQLite's own."""
    count, locked, commit, fsync = Counter(), FileStore.locked, FilePages.commit, os.fsync

    @contextmanager
    def counted(self, secret):
        count["locked"] += 1
        with locked(self, secret) as pages:
            yield pages

    def committed(self, rows, changes, head):
        count["commits"] += 1
        count["rows"] += len(rows)
        commit(self, rows, changes, head)

    def durable(descriptor):
        count["fsyncs"] += 1
        fsync(descriptor)

    monkeypatch.setattr(FileStore, "locked", counted)
    monkeypatch.setattr(FilePages, "commit", committed)
    monkeypatch.setattr(os, "fsync", durable)

    def act(work):
        count.clear()
        result = work()
        return result, dict(count)

    return act


def test_each_act_of_a_question_is_one_transaction(tmp_path, acts):
    path = tmp_path / "views.csv"
    path.write_text("user,page\nann,a\nbob,b\n")
    opened = {"budget": 99, "ledger": tmp_path / "L"}
    one = {"locked": 1, "commits": 1, "fsyncs": 2}  # the head, and its folder
    views, count = acts(lambda: wpinq.protect(path, **opened))
    assert count == {"locked": 1, "commits": 1, "rows": 1, "fsyncs": 6}, "with the first head and the secret"
    pages, count = acts(lambda: views.map("page").measure(1))
    assert count == {**one, "rows": 2}, "what the version holds is pinned with the first charge"
    _, count = acts(lambda: pages.observe("a"))
    assert count == {**one, "rows": 1}
    _, count = acts(lambda: pages.observe_many(["a", "b"]))
    assert count == {}
    many = [views.map("page").measure("0.1", name=f"{number}") for number in range(20)]
    _, count = acts(lambda: many[3].observe("a"))
    assert count == {**one, "rows": 20}, "all that wait are sealed together"
    again, count = acts(lambda: wpinq.protect(path, **opened))
    assert count == {"locked": 1}, "what is known is recognised in the transaction that opens"
    pages, count = acts(lambda: again.map("page").measure(1))
    assert count == {"locked": 1}
    _, count = acts(lambda: pages.observe("b"))
    assert count == {"locked": 1}


@pytest.fixture
def acted(tmp_path):
    """A ledger of three acts of one row, three rows and two rows; and its head before each."""
    ledger, heads = Ledger.open(tmp_path / "L", name="views", unit="record", budget=99), []
    for rows in (3, 2):
        heads.append((tmp_path / "L.head").read_bytes())
        with ledger.transaction() as transaction:
            for number in range(rows):
                transaction.charge(Charge(f"{rows}{number:08}", (Cost(1),), "1", "pages"))
    return tmp_path / "L", heads


def test_a_head_that_is_one_act_behind_is_of_a_process_that_was_killed(acted):
    path, (_, last) = acted
    whole = (path.parent / "L.head").read_bytes()
    (path.parent / "L.head").write_bytes(last)
    assert Ledger.existing(path).spent()[0] == 5
    assert (path.parent / "L.head").read_bytes() == whole


def test_a_head_that_is_two_acts_behind_is_refused(acted):
    path, (first, _) = acted
    (path.parent / "L.head").write_bytes(first)
    with pytest.raises(LedgerError, match="forked"):
        Ledger.existing(path)


def test_rows_of_an_act_are_written_all_or_none(acted, monkeypatch):
    path, _ = acted
    ledger, kept = Ledger.existing(path), shutil.copytree(path.parent, path.parent.parent / "kept")

    def full(self, head):
        raise OSError(28, "no space")

    with monkeypatch.context() as patch, pytest.raises(LedgerError):
        patch.setattr(FilePages, "adopt", full)
        with ledger.transaction() as transaction:
            for number in range(3):
                transaction.charge(Charge(f"a{number:08}", (Cost(1),), "1", "pages"))
    assert Ledger.existing(path).spent()[0] == 8, "they were committed, and the head is brought up to them"
    with pytest.raises(ZeroDivisionError), ledger.transaction() as transaction:
        transaction.charge(Charge("b0000000", (Cost(1),), "1", "pages"))
        raise ZeroDivisionError
    assert Ledger.existing(path).spent()[0] == 8
    assert Ledger.existing(kept / "L").spent()[0] == 5
