"""Attack 20, a long ledger: checkpoints spare replaying its rows, and hide nothing that is done to them.

Kinds: counts of codes, rows and digests; edits, copies and forks, each with all rows after the last checkpoint and with
most before it; the same where the file system tells nothing of changes; checkpoints that are edited, spliced in, or
say what their rows do not.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger.files import beside, edit, keep

from wpinq.apps.cli import main
from wpinq.core.ledger import Asked, Charge, Cost, Ledger, replay, transaction
from wpinq.core.ledger.rows import chain
from wpinq.core.ledger.rows.chain import of_rows, packed
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.stores.file import _JOINED, _LOGS, CODE, TABLE, FilePages, FileStore
from wpinq.core.ledger.sums import accountant
from wpinq.core.ledger.sums.checkpoint import Since
from wpinq.core.ledger.versions import Pin
from wpinq.errors import BudgetError, LedgerError

Open = Callable[..., Ledger]
Spend = Callable[..., bool]
ACTS = 40
SMALL = 8


@pytest.fixture(scope="module", params=[256, SMALL])
def every(request: pytest.FixtureRequest) -> Iterator[int]:
    """No checkpoint, or one row in eight."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (accountant, replay, transaction):
            patch.setattr(module, "EVERY", request.param)
        yield request.param


@pytest.fixture(scope="module")
def made(every: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with charges of 0.36 in all."""
    place = tmp_path_factory.mktemp("made") / "views.ledger"
    ledger = Ledger.open(place, name="views", unit="record", budget=Fraction(1))
    for number in range(ACTS - 4):
        ledger.charge(f"{number:08x}", [Cost("1/100")], version="1", label=f"m{number}")
    ledger.seal("00000003", "1", b"digest")
    ledger.cap("ada", Fraction(1, 2))
    ledger.poison("closed")
    return place


@pytest.fixture
def long(made: Path, place: Path, opened: Open) -> Path:
    """A copy of its own, which is known to be untouched."""
    keep(made, place.parent)
    opened()
    assert noted(place)
    return place


def noted(place: Path) -> bool:
    """Whether the lock file holds a code of how the ledger was left."""
    return any(beside(place, ".lock").read_bytes())


def rows_of(place: Path) -> int:
    connection = sqlite3.connect(place)
    (number,) = connection.execute("SELECT max(number) FROM entries").fetchone()
    connection.close()
    return int(number)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many codes and digests were computed and how many rows were read."""
    found, link, rows, digest = {"codes": 0, "rows": 0, "digests": 0}, chain.link, FilePages.rows, FilePages.digest

    def linked(*row: Any) -> chain.Row:
        found["codes"] += 1
        return link(*row)

    def read(pages: FilePages, first: int | None) -> Any:
        for row in rows(pages, first):
            found["rows"] += 1
            yield row

    def joined(pages: FilePages, first: int, end: int) -> str:
        found["digests"] += 1
        return digest(pages, first, end)

    monkeypatch.setattr(chain, "link", linked)
    monkeypatch.setattr(FilePages, "rows", read)
    monkeypatch.setattr(FilePages, "digest", joined)
    return found


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make a file system that tells nothing of changes: as somebody would who sets its clock or writes below it."""

    def call() -> None:
        monkeypatch.setattr(FileStore, "_state", lambda store: (1, 2, 3, 4, 5))
        monkeypatch.setattr(FileStore, "_times", lambda store: (1, 2, 3, 4, 5))

    return call


# What is spared


def test_a_charge_reads_two_rows_and_computes_one_code_however_many_there_are(
    long: Path, opened: Open, spend: Spend, counted: dict[str, int], every: int
) -> None:
    ledger = opened()
    for number in range(100, 105):
        counted.update(codes=0, rows=0, digests=0)
        spend(ledger, number, "1/1000")
        due = rows_of(long) % every == 0
        assert counted == {"codes": 1 + due, "rows": 2, "digests": 0}


def test_a_process_that_opens_it_enters_only_the_rows_after_the_last_checkpoint(
    opened: Open, spend: Spend, place: Path, counted: dict[str, int], every: int
) -> None:
    ledger = opened()
    for number in range(20):
        spend(ledger, number, "1/100")
        counted.update(codes=0, digests=0)
        assert opened().spent()[0] == Fraction(number + 1, 100)
        assert counted["codes"] == rows_of(place) % every + (rows_of(place) >= every)
        assert counted["digests"] == 0, "it is as the process has left it"
    counted.update(codes=0)
    assert len(opened().entries()) == rows_of(place) == 21 + 21 // (every - 1)
    assert counted["codes"] >= 21, "who asks for the rows has all of them verified"


def test_a_ledger_that_is_not_known_to_be_untouched_is_verified_as_a_whole(
    long: Path, opened: Open, counted: dict[str, int], every: int
) -> None:
    before = opened().entries()
    for spoil in (beside(long, ".lock").unlink, lambda: beside(long, ".lock").write_bytes(b"x" * CODE), long.touch):
        spoil()
        counted.update(digests=0)
        assert opened().spent()[0] == Fraction(ACTS - 4, 100)
        assert counted["digests"] == rows_of(long) // every
        counted.update(digests=0)
        assert opened().entries() == before
        assert counted["digests"] == 0
    assert {entry.number for entry in before if entry.kind == "checkpoint"} == {*range(every, len(before) + 1, every)}


def test_rows_of_another_process_are_verified_and_no_others(
    long: Path, opened: Open, spend: Spend, counted: dict[str, int], every: int
) -> None:
    mine, other = opened(), opened()
    for turn in range(2):
        first = rows_of(long)
        granted = [f"{turn + 1:04x}{number:04x}" for number in range(3)]
        assert all(other.charge(one, [Cost("1/1000")], version="1", label="other") for one in granted)
        counted.update(codes=0, digests=0)
        assert not mine.charge(granted[-1], [Cost("1/1000")], version="1", label="other")
        assert (counted["codes"], counted["digests"]) == (rows_of(long) - first, 0)
        assert spend(mine, 200 + turn, "1/100")
    assert opened().spent() == mine.spent() == (Fraction(ACTS - 4, 100) + Fraction(2, 100) + 6 * Fraction(1, 1000), 0)


@pytest.mark.parametrize("accounting", ["pure", "renyi"])
def test_what_checkpoints_say_is_what_the_rows_say(accounting: str, opened: Open, place: Path, every: int) -> None:
    """Everything that an accountant holds comes back: parts, caps, seals, closed versions, amounts of any length."""
    asked = Asked.of("protect", 10**6, Fraction(1, 3), accounting=accounting)
    ledger = opened(terms=asked)
    third = Fraction(1, 3**2000)
    for number in range(30):
        under = (("by day", str(number % 3)), ("by page", f"p{number % 2}"))
        costs = [Cost(Fraction(number + 1, 7), under=under[: number % 3]), Cost(third, Fraction(1, 10**9))]
        ledger.charge(f"{number:08x}", costs, version=f"v{number % 2}", label=f"m{number % 4}",
                      analyst=(None, "ada", "Zoë\n'")[number % 3])  # fmt: skip
        assert Ledger.existing(place)._accountant == ledger._accountant
    ledger.cap("ada", Fraction(1, 3), Fraction(1, 1000))
    ledger.seal("00000001", "v1", b"digest")
    ledger.pin(Pin("v1", "views", "csv", b"content"))
    ledger.poison("v0")
    ledger.raise_budget(Fraction(10**7))
    assert Ledger.existing(place)._accountant == ledger._accountant
    many = [Charge(f"{number:08x}", (Cost(1, under=(("w", str(number)),)),), "v2", "many") for number in range(40)]
    with ledger.transaction() as act:
        assert all(act.charge(one) for one in many)
    again = Ledger.existing(place)
    assert again._accountant == ledger._accountant
    assert list(again.state().questions) == list(ledger.state().questions), "in the order of the charges"
    assert len(again.entries()) == rows_of(place), "they are entered again and compared with what was resumed"
    with pytest.raises(LedgerError, match="closed"):
        again.charge("00000000", [Cost(1)], version="v0", label="m0")


# What is still seen, at the same moment

EDITS = [
    ["UPDATE entries SET body = replace(body, '1/100', '1/200') WHERE number = 7"],
    ["UPDATE entries SET body = replace(body, '1/100', '1/200') WHERE number = 36"],
    ["UPDATE entries SET mac = zeroblob(32) WHERE number = 5"],
    ["UPDATE entries SET number = -7 WHERE number = 7", "UPDATE entries SET number = 7 WHERE number = 9",
     "UPDATE entries SET number = 9 WHERE number = -7"],
    ["DELETE FROM entries WHERE number = 9"],
    ["DELETE FROM entries WHERE number = 1"],
    ["DELETE FROM entries WHERE number > 20"],
    ["DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)"],
    ["INSERT INTO entries SELECT 0, body, mac FROM entries WHERE number = 3"],
    ["INSERT INTO entries SELECT number + 1, body, mac FROM entries ORDER BY number DESC LIMIT 1"],
    ["UPDATE entries SET body = (SELECT body FROM entries WHERE number = 4) WHERE number = 3",
     "UPDATE entries SET mac = (SELECT mac FROM entries WHERE number = 4) WHERE number = 3"],
    ["UPDATE entries SET number = number - 100 WHERE number < 8"],
    ["UPDATE entries SET number = -number WHERE number = 1"],
    ["UPDATE entries SET number = 1000 + number"],
    ["UPDATE entries SET body = CAST(body AS BLOB) WHERE number = 5"],
    ["UPDATE entries SET body = body || char(0) || 'x' WHERE number = 5"],
    ["UPDATE entries SET body = body || char(10) WHERE number = 5"],
    ["UPDATE entries SET mac = CAST(mac AS TEXT) WHERE number = 5"],
    ["UPDATE entries SET mac = quote(mac) WHERE number = 5"],
    ["UPDATE entries SET mac = mac || x'00' WHERE number = 5"],
    ["UPDATE entries SET body = CAST(x'ff22' AS TEXT) WHERE number = 5"],
    ["UPDATE entries SET body = replace(body, 'at', 'At') WHERE number = 16"],
    ["UPDATE entries SET body = (SELECT body FROM entries WHERE number = 16) WHERE number = 24"],
    ["UPDATE entries SET body = '[]' WHERE number = 8"],
    ["UPDATE entries SET body = '{}' WHERE number = 8"],
    ["UPDATE entries SET body = body || ' ' WHERE number = (SELECT max(number) / 8 * 8 FROM entries)"],
    ["UPDATE entries SET mac = zeroblob(32) WHERE number = (SELECT max(number) / 8 * 8 - 1 FROM entries)"],
    ["CREATE TABLE more (a)"],
]  # fmt: skip


@pytest.mark.parametrize("statements", EDITS)
def test_attack_20_every_edit_of_a_row_before_or_after_a_checkpoint_is_refused_at_the_next_use(
    statements: list[str], long: Path, opened: Open, spend: Spend
) -> None:
    running = opened()
    times = long.stat()
    edit(long, *statements)
    os.utime(long, ns=(times.st_atime_ns, times.st_mtime_ns))
    for use in (lambda: spend(running, 99), lambda: spend(running, 1, "1/100"), running.remaining, running.entries,
                opened, lambda: Ledger.existing(long)):  # fmt: skip
        with pytest.raises(LedgerError):
            use()


def test_attack_20_a_byte_that_is_changed_as_soon_as_the_ledger_is_released_is_seen(
    long: Path, opened: Open, spend: Spend
) -> None:
    """Within one step of the file system's clock; the file keeps its size, and its old time of change is put back."""
    ledger = opened()
    for number in range(500, 525):
        spend(ledger, number, "1/1000", label="MARKED" if number == 500 else "pages")
        descriptor = os.open(long, os.O_RDWR)
        times, at = os.fstat(descriptor), long.read_bytes().index(b"MARKED")
        os.pwrite(descriptor, b"marked", at)
        os.utime(descriptor, ns=(times.st_atime_ns, times.st_mtime_ns))
        with pytest.raises(LedgerError, match="edited or damaged"):
            spend(ledger, 900)
        os.pwrite(descriptor, b"MARKED", at)
        os.close(descriptor)
    assert opened().remaining() == 1 - Fraction(ACTS - 4, 100) - Fraction(25, 1000)


def test_attack_20_a_file_of_equal_size_and_times_in_its_place_is_seen(
    long: Path, opened: Open, tmp_path: Path
) -> None:
    running, copy = opened(), tmp_path / "copy"
    shutil.copy2(long, copy)
    edit(copy, EDITS[0][0].replace("1/200", "1/900"))
    os.utime(copy, ns=(long.stat().st_atime_ns, long.stat().st_mtime_ns))
    assert copy.stat().st_size == long.stat().st_size
    copy.replace(long)
    for use in (running.remaining, opened):
        with pytest.raises(LedgerError, match="edited or damaged"):
            use()


@pytest.mark.parametrize("ends", [("",), ("", ".lock"), (".head",), (".head", ".lock")])
def test_attack_20_an_older_copy_is_refused_whatever_note_comes_with_it(
    ends: tuple[str, ...], long: Path, opened: Open, spend: Spend, tmp_path: Path
) -> None:
    old, running = keep(long, tmp_path / "old"), opened()
    spend(running, 98, "1/1000")
    spend(running, 99, "1/1000")
    keep(old, long.parent, ends)
    for use in (running.remaining, opened, lambda: spend(running, 97)):
        with pytest.raises(LedgerError, match=r"older than its head|another history"):
            use()


def test_rule_39_a_process_that_runs_notices_even_a_copy_of_everything_with_its_note(
    long: Path, opened: Open, spend: Spend, tmp_path: Path
) -> None:
    old, running = keep(long, tmp_path / "old"), opened()
    spend(running, 99, "1/1000")
    keep(old, long.parent)
    with pytest.raises(LedgerError, match="another ledger than the one that was opened"):
        spend(running, 98)
    assert opened().remaining() == 1 - Fraction(ACTS - 4, 100), "another process cannot know"


def test_attack_20_a_fork_with_its_note_is_refused(long: Path, opened: Open, spend: Spend, tmp_path: Path) -> None:
    fork, running = keep(long, tmp_path / "fork"), opened()
    spend(running, 99, "1/10")
    spend(opened(fork), 98, "1/1000")
    keep(fork, long.parent, ("", ".lock"))
    for use in (running.remaining, opened):
        with pytest.raises(LedgerError, match="another history"):
            use()


def test_attack_20_another_secret_is_refused_and_its_note_not_read(long: Path, opened: Open) -> None:
    for secret in (Secret.fresh(), Secret(bytes(32))):
        with pytest.raises(LedgerError, match="do not fit its secret"):
            opened(secret=secret)
    assert opened().remaining() == 1 - Fraction(ACTS - 4, 100)


# The note itself


def test_attack_20_whatever_is_done_to_the_note_the_ledger_is_the_same(
    long: Path, opened: Open, spend: Spend, tmp_path: Path
) -> None:
    """It is no part of the ledger: a note that is lost, cut, changed, older or another's costs time alone."""
    note, running = beside(long, ".lock"), opened()
    whole = note.read_bytes()
    other = opened(tmp_path / "other.ledger", name="other")
    twin = opened(tmp_path / "twin.ledger", secret=running.secret)
    for number in range(ACTS):
        spend(other, number, "1/1000")
        spend(twin, number, "1/1000")
    fork = keep(long, tmp_path / "fork")
    spend(opened(fork), 77, "1/2")
    notes = [whole[:size] for size in {0, 1, *range(0, len(whole), 9)}]
    notes += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(0, len(whole), 7)]
    notes += [b"\0" * len(whole), whole + b"more", *(
        beside(path, ".lock").read_bytes() for path in (tmp_path / "other.ledger", tmp_path / "twin.ledger", fork)
    )]  # fmt: skip
    for content, ledger in itertools.product(notes, (running, None)):
        note.write_bytes(content)
        ledger = ledger or opened()  # noqa: PLW2901
        assert ledger.spent() == (Fraction(ACTS - 4, 100), 0)
        assert not spend(ledger, 7, "1/100")
        with pytest.raises(LedgerError, match="closed"):
            spend(ledger, 300, version="closed")
        with pytest.raises(BudgetError):
            spend(ledger, 301, "0.65")
    note.unlink()
    assert spend(running, 77, "1/2"), "what a fork was charged is not free here"


def test_attack_20_an_edit_is_refused_whatever_note_is_beside(long: Path, opened: Open, tmp_path: Path) -> None:
    """Also with the note that was written when the ledger was whole, and once it was verified again."""
    note = beside(long, ".lock").read_bytes()
    edit(long, EDITS[0][0])
    for content in (note, b"", note[: CODE - 1], bytes(CODE), b"\1" * CODE):
        beside(long, ".lock").write_bytes(content)
        for _ in range(2):
            with pytest.raises(LedgerError, match="edited or damaged"):
                opened()


def test_a_file_system_whose_clock_stands_still_is_not_relied_on(
    long: Path, opened: Open, spend: Spend, counted: dict[str, int], every: int, monkeypatch
) -> None:
    times = FileStore._times
    monkeypatch.setattr(FileStore, "_times", lambda store: (*times(store)[:4], 2**62))
    ledger = opened()
    for use in (opened, lambda: spend(ledger, 99, "1/100"), ledger.remaining):
        counted.update(digests=0)
        checkpoints = rows_of(long) // every
        use()
        assert counted["digests"] == checkpoints, "all of them, at every use"
        assert not noted(long)


@pytest.mark.parametrize("end", _LOGS)
def test_attack_20_a_log_beside_an_untouched_ledger_has_all_rows_verified(
    end: str, long: Path, opened: Open, counted: dict[str, int], every: int
) -> None:
    ledger = opened()
    for use in (opened, ledger.remaining):
        counted.update(digests=0, codes=0)
        beside(long, end).write_bytes(b"")
        use()
        assert counted["digests"] == rows_of(long) // every
        assert counted["codes"] == rows_of(long) % every + (rows_of(long) >= every)


# Where the file system tells nothing


@pytest.mark.parametrize("statements", EDITS[:5])
def test_rule_38_an_edit_that_no_time_tells_of_decides_nothing_and_is_seen_by_whoever_reads_rows(
    statements: list[str], long: Path, opened: Open, spend: Spend, blind: Callable[[], None], every: int
) -> None:
    blind()
    running = opened()
    spend(running, 50, "1/100")
    edit(long, *statements)
    new = opened
    if every > ACTS:  # a process that opens it reads what no checkpoint tells
        with pytest.raises(LedgerError, match="edited or damaged"):
            opened()
        new = lambda: running  # noqa: E731
    for ledger in (running, new()):
        assert ledger.spent() == (Fraction(ACTS - 3, 100), 0)
        assert not any(spend(ledger, number, "1/100") for number in (0, 5, 6, 7, 35, 50))
        with pytest.raises(BudgetError):
            spend(ledger, 60, "0.631")
        with pytest.raises(LedgerError, match="another cost"):
            spend(ledger, 6, "1/200")
        with pytest.raises(LedgerError, match="edited or damaged"):
            ledger.entries()
    beside(long, ".lock").unlink()
    for use in (opened, running.remaining):
        with pytest.raises(LedgerError, match="edited or damaged"):
            use()


def test_rule_38_what_is_cut_off_put_back_or_forked_is_refused_where_no_time_tells_of_it(
    long: Path, opened: Open, spend: Spend, blind: Callable[[], None], tmp_path: Path
) -> None:
    blind()
    old, fork = keep(long, tmp_path / "old"), keep(long, tmp_path / "fork")
    running = opened()
    spend(running, 99, "1/1000")
    spend(opened(fork), 98, "1/100")
    new = keep(long, tmp_path / "new")
    for ends, source in (((("",)), old), (("", ".lock"), old), (("", ".lock"), fork), ((".head",), fork)):
        keep(source, long.parent, ends)
        for use in (running.remaining, opened):
            with pytest.raises(LedgerError, match=r"older than|another history|another ledger than"):
                use()
        keep(new, long.parent)
    keep(old, long.parent)
    with pytest.raises(LedgerError, match="another ledger than the one that was opened"):
        spend(running, 97)
    keep(new, long.parent)
    edit(long, "DELETE FROM entries WHERE number > 20")
    for use in (running.remaining, opened):
        with pytest.raises(LedgerError):
            use()


def test_attack_20_a_row_that_is_changed_while_the_ledger_is_in_use_is_seen_at_the_next_use(
    long: Path, opened: Open, spend: Spend
) -> None:
    """Somebody who does not ask for the lock writes after the rows were verified and before the ledger is noted."""
    ledger, whole = opened(), long.read_bytes()
    at = whole.index(b'"m7"') + 1
    for number, charged in ((800, True), (801, False)):
        with ledger.transaction() as session:
            if charged:
                session.charge(Charge(f"{number:08x}", (Cost("1/1000"),), "1", "meanwhile"))
            descriptor = os.open(long, os.O_RDWR)
            os.pwrite(descriptor, b"X7", at)
            session.commit()
        for use in (ledger.remaining, opened):
            with pytest.raises(LedgerError, match="edited or damaged"):
                use()
        os.pwrite(descriptor, b"m7", at)
        os.close(descriptor)
    assert opened().remaining() == 1 - Fraction(ACTS - 4, 100) - Fraction(1, 1000)


def test_many_charges_at_once_are_noted(opened: Open, place: Path) -> None:
    """SQLite would move its log to the file in between, which could not be told from what others write."""
    ledger = opened(budget=Fraction(10**6))
    with ledger.transaction() as session:
        for number in range(400):
            session.charge(Charge(f"{number:08x}", (Cost("1/1000"),), "1", "x" * 3000))
        session.commit()
    assert noted(place)


# The checkpoints themselves


@pytest.mark.parametrize("seen", [True, False], ids=["times", "blind"])
def test_attack_20_a_checkpoint_of_a_fork_is_not_spliced_in(
    seen: bool, made: Path, every: int, long: Path, opened: Open, blind: Callable[[], None], tmp_path: Path
) -> None:
    """Its code is right, and so is that of the row before it: it is of another history of the same secret."""
    if not seen:
        blind()
    fork, more = keep(made, tmp_path / "fork"), 3 * min(every, 128)
    for path, label in ((long, "mine"), (fork, "fork")):
        with opened(path).transaction() as act:
            for number in range(more):
                act.charge(Charge(f"{number:08x}", (Cost("1/10000"),), label, label))
    last, whole = rows_of(long) // every * every, long.read_bytes()
    for number in {last, max(last - every, every)}:
        edit(long, f"ATTACH '{fork}' AS fork", "REPLACE INTO main.entries SELECT * FROM fork.entries WHERE number IN "
             f"({number}, {number - 1})")  # fmt: skip
        with pytest.raises(LedgerError, match="edited or damaged"):
            opened()
        long.write_bytes(whole)
    assert opened().spent()[0] == Fraction(ACTS - 4, 100) + more * Fraction(1, 10_000)


def test_attack_20_a_checkpoint_that_says_what_its_rows_do_not_is_found_by_a_replay(
    every: int, opened: Open, place: Path, monkeypatch
) -> None:
    """Whoever has the secret could write one, and so could a fault of the accountant."""
    true = accountant.Accountant.checkpoint

    def lies(books: accountant.Accountant) -> dict[str, Any]:
        return {**true(books), "spent": {**true(books)["spent"], "epsilon": "1/1000"}}

    ledger = opened()
    with monkeypatch.context() as patch:
        patch.setattr(accountant.Accountant, "checkpoint", lies)
        with ledger.transaction() as act:
            for number in range(300):
                act.charge(Charge(f"{number:08x}", (Cost("1/1000"),), "1", "pages"))
    for use in (Ledger.existing(place).entries, ledger.entries):
        with pytest.raises(LedgerError, match="another version of wpinq"):
            use()


def test_a_ledger_in_memory_has_checkpoints_too(every: int, opened: Open, spend: Spend) -> None:
    ledger = opened(None)
    for number in range(300):
        spend(ledger, number, "1/1000")
    entries = ledger.entries()
    assert [entry.number for entry in entries if entry.kind == "checkpoint"] == [*range(every, len(entries) + 1, every)]
    assert ledger.spent()[0] == Fraction(300, 1000)


def test_the_command_shows_checkpoints_where_all_rows_are_asked_for(every: int, long: Path) -> None:
    for more, many in (([], 0), (["--all"], rows_of(long) // every)):
        with redirect_stdout(io.StringIO()) as said:
            assert main(["ledger", "show", str(long), *more]) == 0
        assert said.getvalue().count("checkpoint") == many


def test_a_checkpoint_stands_where_its_number_says_and_nowhere_else(every: int, opened: Open) -> None:
    ledger = opened()
    with pytest.raises(ValueError), ledger.transaction() as act:
        act._add(act.accountant.checkpoint())
    with pytest.raises(ValueError), ledger.transaction() as act:
        for number in range(every):
            act._add(Charge(f"{number:08x}", (Cost("1/1000"),), "1", "pages").body())
    assert ledger.spent() == (0, 0)


@given(st.lists(st.tuples(st.text(), st.binary(min_size=32, max_size=32)), min_size=1, max_size=9))
def test_sqlite_joins_rows_as_their_digest_is_made(drawn: list[tuple[str, bytes]]) -> None:
    rows = [chain.Row(number, json.dumps(text), mac) for number, (text, mac) in enumerate(drawn, 1)]
    connection = sqlite3.connect(":memory:")
    connection.execute(TABLE)
    connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", rows)
    number, count, joined = connection.execute(_JOINED, (-9, 99)).fetchone()
    connection.close()
    assert (number, count) == (1, len(rows))
    assert of_rows(joined) == of_rows(b"\n".join(map(packed, rows)))
    since = Since()
    for row in rows:
        since.row(row)
    assert since.body({})["rows"] == of_rows(joined)


def test_a_ledger_of_another_format_is_refused_in_one_line(long: Path, opened: Open) -> None:
    for version in (0, 1, 2, 3, 5):
        edit(long, f"PRAGMA user_version = {version}")
        with pytest.raises(LedgerError, match=r"^ledger [^\n]*: it was written by another version of wpinq[^\n]*$"):
            opened()
