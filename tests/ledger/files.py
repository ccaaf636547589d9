"""The files of a ledger in tests of damage: kept aside, and edited."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from wpinq.core.ledger import Ledger
from wpinq.core.ledger.open import placed
from wpinq.errors import LedgerError

FILES = ("", ".head", ".secret", ".lock")
ROWS = [
    ["DELETE FROM entries WHERE number = 8"],
    ["DELETE FROM entries WHERE number = 3"],
    ["DELETE FROM entries WHERE number = 1"],
    ["DELETE FROM entries"],
    ["DROP TABLE entries"],
    ["UPDATE entries SET body = replace(body, '1/10', '1/20') WHERE number = 3"],
    ["UPDATE entries SET body = replace(body, '1/1', '9/1') WHERE number = 1"],
    ["UPDATE entries SET body = replace(body, '1/10', '1/20') WHERE number = 6"],
    ["UPDATE entries SET body = body || ' ' WHERE number = 8"],
    ["UPDATE entries SET number = -3 WHERE number = 3", "UPDATE entries SET number = 3 WHERE number = 4",
     "UPDATE entries SET number = 4 WHERE number = -3"],
    ["UPDATE entries SET number = 9 WHERE number = 8"],
    ["INSERT INTO entries SELECT 9, body, mac FROM entries WHERE number = 8"],
    ["INSERT INTO entries SELECT 0, body, mac FROM entries WHERE number = 8"],
    ["ALTER TABLE entries RENAME TO held", "CREATE VIEW entries AS SELECT * FROM held WHERE number < 3"],
]  # fmt: skip
"""What whoever holds the rows of a full ledger may do to them, in a file and in a database."""


def beside(place: Path, end: str) -> Path:
    return place.with_name(place.name + end)


def keep(place: Path, where: Path, ends: tuple[str, ...] = FILES) -> Path:
    """Copy the files of a ledger to another directory."""
    where.mkdir(exist_ok=True)
    for end in ends:
        shutil.copy2(beside(place, end), beside(where / place.name, end))
    return where / place.name


def edit(place: Path, *statements: str) -> None:
    connection = sqlite3.connect(place, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def insist_that_alice_is_in_no_message(use: Callable[[], Ledger]) -> None:
    """A row says it, and so does a name in the database."""
    with pytest.raises(LedgerError) as caught:
        use()
    error: BaseException | None = caught.value
    while error is not None:
        assert "alice" not in str(error).lower()
        assert error.__suppress_context__ or error.__context__ is None
        error = error.__cause__


def killed_while_made(path: Path) -> None:
    """Leave a ledger as a process leaves it that is killed before its first row: the files are there, with no row."""
    store, secret = placed(path, None, new=True)
    with store.locked(secret) as pages:
        assert pages.last == 0
