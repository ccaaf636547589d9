"""Attack 20 in a database: whatever its administrator does to rows, head and tables, it is whole or is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from depth import thin
from ledger.files import ROWS, insist_that_alice_is_in_no_message

from wpinq.core.ledger import Ledger
from wpinq.core.ledger.stores.address import Address, ledger_path
from wpinq.errors import LedgerError

psycopg = pytest.importorskip("psycopg")
Open = Callable[..., Ledger]
Spend = Callable[..., bool]
Edit = Callable[..., None]


@pytest.fixture
def place(in_database: Path) -> Path:
    return in_database


@pytest.fixture
def edit(url: str, database: str) -> Edit:
    """What an administrator does, in the ledger's schema."""

    def call(*statements: str) -> None:
        with psycopg.connect(database.partition("?")[0], autocommit=True) as connection:
            connection.execute(f"SET search_path = {Address.read(url).schema}")
            for statement in statements:
                connection.execute(statement)

    return call


def new_client(url: str, tmp_path: Path) -> Path:
    return ledger_path(f"{url}&state={tmp_path / 'new client'}")


EDITS = [
    *ROWS,
    ["DELETE FROM entries WHERE number = 3", "UPDATE entries SET number = -number WHERE number > 3",
     "UPDATE entries SET number = -number - 1 WHERE number < 0"],
    ["TRUNCATE entries"],
    ["UPDATE entries SET mac = '' WHERE number = 4"],
    ["INSERT INTO entries VALUES (9, '{}', 'x')"],
    ["ALTER TABLE entries DROP CONSTRAINT entries_pkey", "INSERT INTO entries SELECT * FROM entries WHERE number = 4"],
    ["CREATE RULE r AS ON INSERT TO entries DO INSTEAD NOTHING"],
    ["CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
     "CREATE TRIGGER t BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION f()"],
    ["ALTER TABLE entries ENABLE ROW LEVEL SECURITY"],
    ["ALTER TABLE entries ADD COLUMN more text"],
    ["ALTER TABLE entries ALTER COLUMN body TYPE varchar(9000)"],
    ["ALTER TABLE entries SET UNLOGGED"],
    ["CREATE TABLE child () INHERITS (entries)"],
    ["UPDATE head SET number = 7"],
    ["UPDATE head SET number = 9"],
    ["UPDATE head SET mac = 'x'"],
    ["UPDATE head SET format = 9"],
    ["DELETE FROM head"],
    ["INSERT INTO head SELECT * FROM head"],
    ["DROP TABLE head"],
]  # fmt: skip


@thin(3)
@pytest.mark.parametrize("statements", EDITS)
def test_every_edit_is_refused_by_the_next_who_opens_it_whether_or_not_it_saw_the_ledger(
    statements: list[str], full: Path, opened: Open, url: str, edit: Edit, tmp_path: Path
) -> None:
    edit(*statements)
    new = new_client(url, tmp_path)
    for use in (opened, lambda: Ledger.existing(full), lambda: opened(new), lambda: Ledger.existing(new)):
        with pytest.raises(LedgerError, match=r"^ledger postgresql://[\d.]+:\d+/postgres\?ledger=\w+: ") as caught:
            use()
        assert "\n" not in str(caught.value)


@thin(3)
@pytest.mark.parametrize("statements", EDITS)
def test_an_edit_changes_no_charge_and_no_answer_of_a_process_that_runs(
    statements: list[str], full: Path, opened: Open, spend: Spend, edit: Edit
) -> None:
    """Either it is refused, or it is of a row that decides nothing any more, and is refused by who reads all rows."""
    running = opened()
    edit(*statements)
    try:
        assert not spend(running, 1), "what was charged is free"
        assert spend(running, 9, "1/2")
        assert running.remaining() == 0
    except LedgerError:
        pass
    with pytest.raises(LedgerError):
        running.entries()


@pytest.mark.parametrize("statements", [
    ["UPDATE entries SET mac = '' WHERE number = 8"],
    ["DELETE FROM entries WHERE number = 8"],
    ["UPDATE head SET number = 7"],
    ["UPDATE head SET mac = 'x'"],
])  # fmt: skip
def test_an_edit_of_the_end_is_seen_at_the_next_use(
    statements: list[str], full: Path, opened: Open, spend: Spend, edit: Edit
) -> None:
    running = opened()
    edit(*statements)
    for use in (lambda: spend(running, 9), lambda: spend(running, 1), running.remaining):
        with pytest.raises(LedgerError):
            use()


def test_rows_and_head_of_the_past_are_refused_by_who_saw_more(
    full: Path, opened: Open, spend: Spend, url: str, edit: Edit, tmp_path: Path
) -> None:
    """A restored database: a whole ledger, of the past. Who saw what came since refuses it; a new client cannot."""
    edit("CREATE TABLE old AS SELECT * FROM entries", "CREATE TABLE old_head AS SELECT * FROM head")
    old = new_client(url, tmp_path)
    with pytest.warns(RuntimeWarning, match="begins .*from now on it notices"):
        opened(old)
    running = opened()
    spend(running, 9)
    edit("DELETE FROM entries", "INSERT INTO entries SELECT * FROM old", "DELETE FROM head",
         "INSERT INTO head SELECT * FROM old_head")  # fmt: skip
    for use in (opened, running.remaining, lambda: spend(running, 9), lambda: spend(running, 1)):
        with pytest.raises(LedgerError, match=r"restored, or failed over, to a moment before rows"):
            use()
    assert opened(old).remaining() == Fraction(1, 2), "it saw nothing of what was lost"
    for number in range(20, 23):
        spend(opened(old), number, "1/100")
    for use in (opened, running.remaining):
        with pytest.raises(LedgerError, match="another history"):
            use()
    with pytest.raises(LedgerError, match="another history"):
        Ledger.existing(full)


def test_a_head_made_up_for_rows_of_the_past_is_refused(
    full: Path, opened: Open, url: str, edit: Edit, tmp_path: Path
) -> None:
    edit(
        "DELETE FROM entries WHERE number = 8",
        "UPDATE head SET number = 7, mac = (SELECT mac FROM entries WHERE number = 7)",
    )
    with pytest.raises(LedgerError, match="restored, or failed over"):
        opened()
    with pytest.raises(LedgerError, match="another history"):
        opened(new_client(url, tmp_path))


def test_a_head_that_is_behind_is_no_crash_here(
    full: Path, opened: Open, spend: Spend, url: str, edit: Edit, tmp_path: Path
) -> None:
    """In a file rows may be ahead of the head by one act; here both are one transaction."""
    edit("CREATE TABLE old_head AS SELECT * FROM head")
    spend(opened(), 9)
    edit("DELETE FROM head", "INSERT INTO head SELECT * FROM old_head")
    with pytest.raises(LedgerError, match="its head is behind its rows"):
        opened()
    with pytest.raises(LedgerError, match="its head is behind its rows"):
        opened(new_client(url, tmp_path))


def test_a_ledger_that_is_dropped_is_not_begun_anew_by_who_saw_it(
    full: Path, opened: Open, spend: Spend, url: str, edit: Edit
) -> None:
    running = opened()
    edit(f"DROP SCHEMA {Address.read(url).schema} CASCADE")
    with pytest.raises(LedgerError, match="holds no ledger of this name any more, and this client has seen one"):
        opened()
    for use in (running.remaining, lambda: spend(running, 1), lambda: Ledger.existing(full)):
        with pytest.raises(LedgerError):
            use()
    full.unlink()
    with pytest.raises(LedgerError, match="there is none"):
        Ledger.existing(full)
    assert opened().remaining() == 1
    with pytest.raises(LedgerError, match=r"another history|another ledger"):
        running.remaining()


def test_another_ledgers_rows_under_the_same_secret(
    full: Path, opened: Open, spend: Spend, url: str, edit: Edit
) -> None:
    twin = opened(ledger_path(f"{url}_twin"))
    for number in range(7):
        spend(twin, number, "1/100")
    other = Address.read(f"{url}_twin").schema
    edit("DELETE FROM entries", f"INSERT INTO entries SELECT * FROM {other}.entries", "DELETE FROM head",
         f"INSERT INTO head SELECT * FROM {other}.head")  # fmt: skip
    with pytest.raises(LedgerError, match="another history"):
        opened()


# The anchor


@pytest.mark.parametrize("content", [b"", b"wpinq-head 1 3 ", b"x" * 400, b"wpinq-head 1 8 " + b"0" * 64 + b"\n"])
def test_a_damaged_anchor_is_refused(content: bytes, full: Path, opened: Open) -> None:
    held = full.read_bytes()
    full.write_bytes(content)
    with pytest.raises(LedgerError, match=r"is damaged|another history"):
        opened()
    full.write_bytes(held)
    assert opened().remaining() == Fraction(1, 2)


def test_an_anchor_is_durable_before_anything_is_answered(full: Path, opened: Open, spend: Spend) -> None:
    """It is the head that was committed, whoever reads or writes it; one that cannot be written answers nothing."""
    running = opened()
    spend(running, 9)
    assert full.read_text().split()[2] == "9"
    full.parent.chmod(0o500)
    held = full.with_name(f"{full.name}.new")
    held.mkdir(exist_ok=True)  # where it is written before it is renamed
    with pytest.raises(LedgerError, match=r"its anchor .* needs a directory that is writable"):
        spend(running, 10)
    held.rmdir()
    full.parent.chmod(0o700)
    assert not spend(running, 10), "it was charged, and is free now"
    assert full.read_text().split()[2] == "10"


def test_an_anchor_never_goes_back(full: Path, opened: Open, spend: Spend) -> None:
    from wpinq.core.ledger.stores.anchor import Anchor

    anchor = Anchor(full, "ledger")
    before = anchor.seen()
    spend(opened(), 9)
    assert before is not None
    anchor.keep(before)
    now = anchor.seen()
    assert now is not None
    assert now.number == before.number + 1


def test_no_message_holds_what_a_damaged_row_says(full: Path, opened: Open, edit: Edit) -> None:
    edit("UPDATE entries SET body = 'Alice' WHERE number = 3", "CREATE VIEW alice AS SELECT 'Alice'",
         "ALTER TABLE entries ADD CONSTRAINT alice CHECK (number < 9)")  # fmt: skip
    insist_that_alice_is_in_no_message(opened)
