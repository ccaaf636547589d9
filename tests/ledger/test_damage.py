"""Attack 20: whatever happens to its files, a ledger is whole or is refused."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from ledger.files import ROWS, beside, edit, insist_that_alice_is_in_no_message, keep

from wpinq.core.ledger import Change, Ledger
from wpinq.core.ledger.rows.secret import Secret
from wpinq.errors import LedgerError

Open = Callable[..., Ledger]
Spend = Callable[..., bool]
ENDS = ("", ".head", ".secret")


@pytest.mark.parametrize(
    "statements",
    [
        *ROWS,
        ["DELETE FROM entries WHERE number = 3", "UPDATE entries SET number = number - 1 WHERE number > 3"],
        ["UPDATE entries SET body = CAST(body AS BLOB) WHERE number = 4"],
        ["UPDATE entries SET body = 7 WHERE number = 4"],
        ["UPDATE entries SET body = CAST(x'ff22' AS TEXT) WHERE number = 4"],
        ["UPDATE entries SET mac = zeroblob(32) WHERE number = 4"],
        ["UPDATE entries SET mac = 'text' WHERE number = 4"],
        ["UPDATE entries SET mac = x'' WHERE number = 8"],
        ["UPDATE entries SET number = number + 1000"],
        ["INSERT INTO entries VALUES (9, '{}', zeroblob(32))"],
        ["CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries WHERE number = new.number; END"],
        ["CREATE VIEW v AS SELECT 1"],
        ["ALTER TABLE entries ADD COLUMN more"],
        ["PRAGMA user_version = 1"],
    ],
)  # fmt: skip
def test_attack_20_every_edit_is_refused_at_the_next_charge_and_the_next_open(
    statements: list[str], full: Path, opened: Open, spend: Spend
) -> None:
    running = opened()
    edit(full, *statements)
    for use in (lambda: spend(running, 9), lambda: spend(running, 1), opened, lambda: Ledger.existing(full)):
        with pytest.raises(LedgerError, match=r"(?s)^ledger .*; |^ledger .*\. Put back"):
            use()


def test_attack_20_truncated_anywhere(full: Path, opened: Open) -> None:
    opened().change(Change("periods", "2026", "{}"))
    whole = full.read_bytes()
    for size in {0, 1, 15, 16, 99, 100, len(whole) - 1, *range(0, len(whole), 127)}:
        full.write_bytes(whole[:size])
        with pytest.raises(LedgerError):
            opened().side("periods")
    full.write_bytes(whole)
    assert opened().remaining() == Fraction(1, 2)


@pytest.mark.slow
def test_attack_20_a_byte_flipped_anywhere_is_refused_or_changes_nothing(full: Path, opened: Open) -> None:
    whole, entries, refused = full.read_bytes(), opened().entries(), 0
    offsets = [*range(100), *range(100, len(whole), 23)]
    for offset in offsets:
        for end in ("-wal", "-shm"):
            beside(full, end).unlink(missing_ok=True)
        full.write_bytes(whole[:offset] + bytes([whole[offset] ^ (1 << offset % 8)]) + whole[offset + 1 :])
        try:
            assert opened().entries() == entries
        except LedgerError:
            refused += 1
    used = sum(len(entry.at) for entry in entries)
    assert refused > used / 23


@pytest.mark.parametrize("end", [".head", ".secret"])
def test_attack_20_a_byte_flipped_in_the_head_or_the_secret(end: str, full: Path, opened: Open) -> None:
    path = beside(full, end)
    whole = path.read_bytes()
    for offset in range(len(whole)):
        for bit in (0, 2, 6):
            path.write_bytes(whole[:offset] + bytes([whole[offset] ^ (1 << bit)]) + whole[offset + 1 :])
            with pytest.raises(LedgerError):
                opened()
    for size in range(len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(LedgerError):
            opened()
    path.write_bytes(whole)
    assert opened().remaining() == Fraction(1, 2)


@pytest.mark.parametrize("end", ENDS)
def test_attack_20_a_missing_file_is_refused_and_not_made_anew(
    end: str, full: Path, opened: Open, spend: Spend
) -> None:
    running = opened()
    path = beside(full, end)
    held = path.read_bytes()
    path.unlink()
    with pytest.raises(LedgerError, match="is missing"):
        opened()
    if end != ".secret":
        with pytest.raises(LedgerError, match="is missing"):
            spend(running, 9)
    assert not path.exists()
    path.write_bytes(held)
    path.chmod(0o600)
    assert opened().remaining() == Fraction(1, 2)


def test_attack_20_an_older_copy_is_refused(full: Path, opened: Open, spend: Spend, tmp_path: Path) -> None:
    old = keep(full, tmp_path / "old")
    running = opened()
    spend(running, 9)
    shutil.copy2(old, full)
    for use in (opened, running.remaining, lambda: spend(running, 9)):
        with pytest.raises(LedgerError, match="older than its head"):
            use()


def test_attack_20_an_older_head_is_refused(full: Path, opened: Open, spend: Spend, tmp_path: Path) -> None:
    old = keep(full, tmp_path / "old")
    spend(opened(), 9)
    newer = keep(full, tmp_path / "newer")
    spend(opened(), 10)
    shutil.copy2(beside(old, ".head"), beside(full, ".head"))
    with pytest.raises(LedgerError, match="head belongs to another history"):
        opened()
    shutil.copy2(beside(newer, ".head"), beside(full, ".head"))
    assert opened().remaining() == Fraction(3, 10), "one row behind is a crash, and is adopted"


def test_rule_39_a_process_that_runs_notices_even_a_copy_of_everything(
    full: Path, opened: Open, spend: Spend, tmp_path: Path
) -> None:
    old = keep(full, tmp_path / "old")
    running = opened()
    spend(running, 9)
    keep(old, full.parent)
    with pytest.raises(LedgerError, match="another ledger than the one that was opened"):
        spend(running, 10)


def test_attack_20_a_head_made_up_for_an_older_copy_is_refused(
    full: Path, opened: Open, spend: Spend, tmp_path: Path
) -> None:
    old = keep(full, tmp_path / "old")
    connection = sqlite3.connect(old)
    number, code = connection.execute("SELECT number, mac FROM entries ORDER BY number DESC").fetchone()
    connection.close()
    spend(opened(), 9)
    shutil.copy2(old, full)
    beside(full, ".head").write_text(f"wpinq-head 2 {number} 0 {'00' * 32} {code.hex()}\n")
    with pytest.raises(LedgerError, match="another history"):
        opened()


def test_attack_20_two_histories_of_one_ledger_are_told_apart(
    full: Path, opened: Open, spend: Spend, tmp_path: Path
) -> None:
    fork = keep(full, tmp_path / "fork")
    spend(opened(), 9, "0.4")
    spend(opened(fork), 10, "0.1")
    shutil.copy2(fork, full)
    with pytest.raises(LedgerError, match="another history"):
        opened()


def test_attack_20_a_row_of_another_history_is_not_spliced_in(
    full: Path, opened: Open, spend: Spend, tmp_path: Path
) -> None:
    fork = keep(full, tmp_path / "fork")
    spend(opened(), 9, "0.4")
    spend(opened(), 10)
    spend(opened(fork), 11, "0.001")
    edit(full, f"ATTACH '{fork}' AS fork", "REPLACE INTO main.entries SELECT * FROM fork.entries WHERE number = 9")
    with pytest.raises(LedgerError, match="edited or damaged"):
        opened()


def test_attack_20_another_data_sets_files(full: Path, opened: Open, spend: Spend, tmp_path: Path) -> None:
    other = tmp_path / "other" / "clicks.ledger"
    other.parent.mkdir()
    spend(opened(other, name="clicks"), 1)
    for end in ENDS:
        held = beside(full, end).read_bytes()
        shutil.copy2(beside(other, end), beside(full, end))
        with pytest.raises(LedgerError):
            opened()
        beside(full, end).write_bytes(held)
    for end in ENDS:
        shutil.copy2(beside(other, end), beside(full, end))
    with pytest.raises(LedgerError, match="data set 'clicks'"):
        opened()


def test_attack_20_another_data_sets_rows_under_the_same_secret(
    full: Path, opened: Open, spend: Spend, tmp_path: Path
) -> None:
    secret = Secret.load_or_create(beside(full, ".secret"))
    twin = opened(tmp_path / "twin", secret=secret)
    for number in range(7):
        spend(twin, number, "1/100")
    shutil.copy2(tmp_path / "twin", full)
    with pytest.raises(LedgerError, match="another history"):
        opened()


@pytest.mark.parametrize("end", [*ENDS, ".lock", "-wal", "-shm", "-journal", ".head.new"])
@pytest.mark.parametrize("what", ["link", "directory"])
def test_attack_20_a_link_or_a_directory_is_refused(
    end: str, what: str, full: Path, opened: Open, spend: Spend, tmp_path: Path
) -> None:
    running, path = opened(), beside(full, end)
    target = tmp_path / "elsewhere"
    if path.exists():
        path.rename(target)
    if what == "link":
        path.symlink_to(target)
    else:
        path.mkdir()
    for use in (opened, lambda: spend(running, 9)):
        with pytest.raises(LedgerError):
            use()
    assert target.exists() == (end in (*ENDS, ".lock"))


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"user,page\n1,2\n" * 1000, bytes(8192)])
def test_attack_20_a_file_that_is_no_ledger_is_left_as_it_is(content: bytes, place: Path, opened: Open) -> None:
    place.write_bytes(content)
    with pytest.raises(LedgerError):
        opened()
    assert place.read_bytes() == content


def test_attack_20_a_head_without_a_ledger(full: Path, opened: Open) -> None:
    full.unlink()
    with pytest.raises(LedgerError, match="the file is missing, and its head is there"):
        opened()
    assert not full.exists()


def test_no_message_holds_what_a_damaged_row_says(full: Path, opened: Open) -> None:
    edit(full, "UPDATE entries SET body = 'Alice' WHERE number = 3", "CREATE VIEW alice AS SELECT 'Alice'")
    insist_that_alice_is_in_no_message(opened)


# What a crash leaves


@pytest.fixture
def crashed(full: Path) -> Iterator[Path]:
    """Killed after a charge of 0.2 was committed and before its head was written: the row is in the log only."""
    program = f"""
import os, signal
from pathlib import Path
from wpinq.core.ledger import Cost, Ledger
from wpinq.core.ledger.rows import chain
chain.write_head = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
Ledger.existing(Path({str(full)!r})).charge("0badcafe", [Cost("0.2")], version="1", label="crash")
"""
    done = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": ":".join(sys.path)}, check=False)
    assert done.returncode == -9
    assert beside(full, "-wal").stat().st_size > 0
    yield full


def test_rule_38_a_charge_without_its_head_is_adopted(crashed: Path, opened: Open) -> None:
    ledger = opened()
    assert ledger.entries()[-1].question == "0badcafe"
    assert ledger.remaining() == Fraction(3, 10)
    assert not beside(crashed, "-wal").exists()
    opened()


def test_attack_20_an_adopted_charge_cannot_be_taken_back(crashed: Path, opened: Open, tmp_path: Path) -> None:
    old = keep(crashed, tmp_path / "old", ("",))
    opened()
    shutil.copy2(old, crashed)
    with pytest.raises(LedgerError, match="older"):
        opened()


@pytest.mark.slow
def test_attack_20_a_byte_flipped_in_the_log_of_a_crash(crashed: Path, opened: Open, tmp_path: Path) -> None:
    ends = (*ENDS, "-wal")
    state = keep(crashed, tmp_path / "state", ends)
    log = beside(state, "-wal").read_bytes()
    beside(crashed, "-shm").unlink(missing_ok=True)
    for offset in [*range(56), *range(56, len(log), 61)]:
        keep(state, crashed.parent, ends)
        beside(crashed, "-shm").unlink(missing_ok=True)
        beside(crashed, "-wal").write_bytes(log[:offset] + bytes([log[offset] ^ 4]) + log[offset + 1 :])
        try:
            assert opened().remaining() in (Fraction(3, 10), Fraction(5, 10))
        except LedgerError:
            continue


def test_attack_20_a_byte_of_the_schema_that_is_no_text_is_refused(full: Path, opened: Open) -> None:
    """SQLite quotes what it cannot read, and Python then fails to decode the message."""
    whole = full.read_bytes()
    first, length = whole.index(b"CREATE TABLE"), len("CREATE TABLE entries (number INTEGER")
    for offset in range(first, first + length):
        full.write_bytes(whole[:offset] + bytes([whole[offset] | 0x80]) + whole[offset + 1 :])
        with pytest.raises(LedgerError, match=r"^ledger "):
            opened()
