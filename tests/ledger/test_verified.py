"""Attack 20, a long ledger: what is noted of its rows spares reading them, and hides nothing that is done to them."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from wpinq.core.ledger import Charge, Cost, Ledger, chain, verified
from wpinq.core.ledger.file import FilePages
from wpinq.core.ledger.secret import Secret
from wpinq.errors import BudgetError, LedgerError

Open = Callable[..., Ledger]
Spend = Callable[..., bool]
ROWS = 40
FILES = ("", ".head", ".secret", ".verified")


def beside(place: Path, end: str) -> Path:
    return place.with_name(place.name + end)


def keep(place: Path, where: Path, ends: tuple[str, ...] = FILES) -> Path:
    where.mkdir(exist_ok=True)
    for end in ends:
        shutil.copy2(beside(place, end), beside(where / place.name, end))
    return where / place.name


def edit(place: Path, *statements: str) -> None:
    connection = sqlite3.connect(place, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with charges of 0.36 in all."""
    place = tmp_path_factory.mktemp("made") / "views.ledger"
    ledger = Ledger.open(place, name="views", unit="record", budget=Fraction(1))
    for number in range(ROWS - 4):
        ledger.charge(f"{number:08x}", [Cost("1/100")], version="1", label=f"m{number}")
    ledger.seal("00000003", "1", b"digest")
    ledger.cap("ada", Fraction(1, 2))
    ledger.poison("closed")
    return place


@pytest.fixture(params=["header", "rows"])
def long(request: pytest.FixtureRequest, made: Path, place: Path, opened: Open, monkeypatch) -> Path:
    """A copy of its own, whose note is of its times and its first row, or of all rows."""
    if request.param == "rows":
        monkeypatch.setattr(verified, "FEW", -1)
    keep(made, place.parent)
    assert verified.Note(place, beside(place, ".verified"), opened().secret).untouched
    return place


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many codes were computed and how many rows were read."""
    found, link, rows = {"codes": 0, "rows": 0}, chain.link, FilePages.rows

    def linked(*row: Any) -> chain.Row:
        found["codes"] += 1
        return link(*row)

    def read(pages: FilePages, first: int | None) -> Any:
        for row in rows(pages, first):
            found["rows"] += 1
            yield row

    monkeypatch.setattr(chain, "link", linked)
    monkeypatch.setattr(FilePages, "rows", read)
    return found


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make a file system that tells nothing of changes: as somebody would who sets its clock or writes below it."""

    def call() -> None:
        monkeypatch.setattr(verified.Note, "_state", lambda note: (1, 2, 3, 4, 5))
        monkeypatch.setattr(verified.Note, "_stamp", lambda note, state: note._place.write_bytes(
            note._header(state) + note._place.read_bytes()[verified.HEADER:]))  # fmt: skip

    return call


# What is spared


def test_a_charge_reads_two_rows_and_computes_one_code_however_many_there_are(
    long: Path, opened: Open, spend: Spend, counted: dict[str, int]
) -> None:
    ledger = opened()
    for number in range(100, 105):
        counted.update(codes=0, rows=0)
        spend(ledger, number, "1/1000")
        assert counted == {"codes": 1, "rows": 2}


def test_a_process_that_opens_it_enters_only_the_rows_that_are_not_noted(
    opened: Open, spend: Spend, place: Path, counted: dict[str, int], monkeypatch
) -> None:
    monkeypatch.setattr(verified, "FEW", 5)
    ledger = opened()
    for number in range(20):
        spend(ledger, number, "1/100")
        counted.update(codes=0, rows=0)
        assert opened().spent()[0] == Fraction(number + 1, 100)
        assert counted["codes"] <= 6
    counted.update(codes=0)
    assert len(opened().entries()) == 21
    assert counted["codes"] >= 21, "who asks for the rows has all of them verified"


def test_a_ledger_without_a_note_opens_and_is_noted(long: Path, opened: Open, counted: dict[str, int]) -> None:
    before = opened().entries()
    beside(long, ".verified").unlink()
    counted.update(codes=0)
    assert opened().spent()[0] == Fraction(ROWS - 4, 100)
    assert counted["codes"] == ROWS
    assert opened().entries() == before


def test_rows_of_another_process_are_verified_and_no_others(
    long: Path, opened: Open, spend: Spend, spender: Any, counted: dict[str, int]
) -> None:
    mine = opened()
    for turn in range(2):
        granted = spender("some", long, turn, 3)()
        counted.update(codes=0)
        assert not mine.charge(granted[-1], [Cost("1/1000")], version="1", label="other")
        assert counted["codes"] == 3
        assert spend(mine, 200 + turn, "1/100")
    assert opened().spent() == mine.spent() == (Fraction(ROWS - 4, 100) + Fraction(2, 100) + 6 * Fraction(1, 1000), 0)


def test_a_total_that_was_noted_is_the_total_of_the_rows(opened: Open, place: Path, monkeypatch) -> None:
    """Everything that an accountant holds comes back: parts, caps, seals, closed versions, amounts of any length."""
    monkeypatch.setattr(verified, "FEW", -1)
    ledger = opened(budget=Fraction(10**6), delta=Fraction(1, 3))
    third = Fraction(1, 3**2000)
    for number in range(12):
        under = (("by day", str(number % 3)), ("by page", f"p{number % 2}"))
        costs = [Cost(Fraction(number + 1, 7), under=under[: number % 3]), Cost(third, Fraction(1, 10**9))]
        ledger.charge(f"{number:08x}", costs, version=f"v{number % 2}", label=f"m{number % 4}",
                      analyst=(None, "ada", "Zoë")[number % 3])  # fmt: skip
    ledger.cap("ada", Fraction(1, 3), Fraction(1, 10))
    ledger.seal("00000001", "v1", b"digest")
    ledger.poison("v0")
    ledger.raise_budget(Fraction(10**7))
    noted = verified.Note(place, beside(place, ".verified"), ledger.secret).kept()
    with ledger.transaction() as session:
        assert noted == session.before
    assert len(opened(budget=None).entries()) == 18, "they are entered again and compared with what was noted"


# What is still seen, at the same moment

EDITS = [
    ["UPDATE entries SET body = replace(body, '1/100', '1/200') WHERE number = 7"],
    ["UPDATE entries SET body = replace(body, '1/100', '1/200') WHERE number = 36"],
    ["UPDATE entries SET mac = zeroblob(32) WHERE number = 5"],
    ["UPDATE entries SET number = -7 WHERE number = 7", "UPDATE entries SET number = 7 WHERE number = 8",
     "UPDATE entries SET number = 8 WHERE number = -7"],
    ["DELETE FROM entries WHERE number = 9"],
    ["DELETE FROM entries WHERE number = 1"],
    ["DELETE FROM entries WHERE number > 20"],
    ["DELETE FROM entries WHERE number = 40"],
    ["INSERT INTO entries SELECT 0, body, mac FROM entries WHERE number = 3"],
    ["INSERT INTO entries SELECT 41, body, mac FROM entries WHERE number = 40"],
    ["UPDATE entries SET body = (SELECT body FROM entries WHERE number = 4) WHERE number = 3",
     "UPDATE entries SET mac = (SELECT mac FROM entries WHERE number = 4) WHERE number = 3"],
    ["CREATE TABLE more (a)"],
]  # fmt: skip


@pytest.mark.parametrize("statements", EDITS)
def test_attack_20_every_edit_of_a_noted_row_is_refused_at_the_next_use(
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
    assert opened().remaining() == 1 - Fraction(ROWS - 4, 100) - Fraction(25, 1000)


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


@pytest.mark.parametrize("ends", [("",), ("", ".verified"), (".head",), (".head", ".verified")])
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
    assert opened().remaining() == 1 - Fraction(ROWS - 4, 100), "another process cannot know"


def test_attack_20_a_fork_with_its_note_is_refused(long: Path, opened: Open, spend: Spend, tmp_path: Path) -> None:
    fork, running = keep(long, tmp_path / "fork"), opened()
    spend(running, 99, "1/10")
    spend(opened(fork), 98, "1/1000")
    keep(fork, long.parent, ("", ".verified"))
    for use in (running.remaining, opened):
        with pytest.raises(LedgerError, match="another history"):
            use()


def test_attack_20_another_secret_is_refused_and_its_note_not_read(long: Path, opened: Open) -> None:
    for secret in (Secret.fresh(), Secret(bytes(32))):
        with pytest.raises(LedgerError, match="do not fit its secret"):
            opened(secret=secret)
    assert opened().remaining() == 1 - Fraction(ROWS - 4, 100)


# The note itself


def test_attack_20_whatever_is_done_to_the_note_the_ledger_is_the_same(
    long: Path, opened: Open, spend: Spend, tmp_path: Path
) -> None:
    """It is no part of the ledger: a note that is lost, cut, changed, older or another's costs time alone."""
    note, running = beside(long, ".verified"), opened()
    whole = note.read_bytes()
    other = opened(tmp_path / "other.ledger", name="other")
    twin = opened(tmp_path / "twin.ledger", secret=running.secret)
    for number in range(ROWS):
        spend(other, number, "1/1000")
        spend(twin, number, "1/1000")
    fork = keep(long, tmp_path / "fork")
    spend(opened(fork), 77, "1/2")
    notes = [whole[:size] for size in {0, 1, *range(0, len(whole), 499)}]
    notes += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(0, len(whole), 223)]
    notes += [b"\0" * len(whole), whole + b"more", *(
        beside(path, ".verified").read_bytes() for path in (tmp_path / "other.ledger", tmp_path / "twin.ledger", fork)
    )]  # fmt: skip
    for content, ledger in itertools.product(notes, (running, None)):
        note.write_bytes(content)
        ledger = ledger or opened()  # noqa: PLW2901
        assert ledger.spent() == (Fraction(ROWS - 4, 100), 0)
        assert not spend(ledger, 7, "1/100")
        with pytest.raises(LedgerError, match="closed"):
            spend(ledger, 300, version="closed")
        with pytest.raises(BudgetError):
            spend(ledger, 301, "0.65")
    note.unlink()
    assert spend(running, 77, "1/2"), "what a fork was charged is not free here"


def test_attack_20_an_edit_is_refused_whatever_note_is_beside(long: Path, opened: Open, tmp_path: Path) -> None:
    """Also with the note that was written when the ledger was whole, and once it was verified again."""
    note = beside(long, ".verified").read_bytes()
    edit(long, EDITS[0][0])
    for content in (note, b"", note[: verified.HEADER], bytes(verified.HEADER) + note[verified.HEADER :]):
        beside(long, ".verified").write_bytes(content)
        for _ in range(2):
            with pytest.raises(LedgerError, match="edited or damaged"):
                opened()


def test_a_file_system_whose_clock_stands_still_is_not_relied_on(
    long: Path, opened: Open, counted, monkeypatch
) -> None:
    monkeypatch.setattr(verified, "PAUSES", (0, 0))
    state = verified.Note._state
    monkeypatch.setattr(verified.Note, "_state", lambda note: (*(state(note) or (0,) * 5)[:4], 2**62))
    opened()
    counted.update(codes=0)
    opened()
    assert counted["codes"] == ROWS, "all of them, at every use"


@pytest.mark.parametrize("end", verified.LOGS)
def test_attack_20_a_log_beside_a_noted_ledger_has_all_rows_verified(
    end: str, long: Path, opened: Open, counted
) -> None:
    opened()
    counted.update(codes=0)
    beside(long, end).write_bytes(b"")
    opened()
    assert counted["codes"] == ROWS


# Where the file system tells nothing


@pytest.mark.parametrize("statements", EDITS[:5])
def test_rule_38_an_edit_that_no_time_tells_of_decides_nothing_and_is_seen_by_whoever_reads_rows(
    statements: list[str], long: Path, opened: Open, spend: Spend, blind: Callable[[], None]
) -> None:
    blind()
    running = opened()
    spend(running, 50, "1/100")
    edit(long, *statements)
    new = opened
    if verified.FEW > 0:  # a process without a note of the rows reads them
        with pytest.raises(LedgerError, match="edited or damaged"):
            opened()
        new = lambda: running  # noqa: E731
    for ledger in (running, new()):
        assert ledger.spent() == (Fraction(ROWS - 3, 100), 0)
        assert not any(spend(ledger, number, "1/100") for number in (0, 5, 6, 7, 35, 50))
        with pytest.raises(BudgetError):
            spend(ledger, 60, "0.631")
        with pytest.raises(LedgerError, match="another cost"):
            spend(ledger, 6, "1/200")
        with pytest.raises(LedgerError, match="edited or damaged"):
            ledger.entries()
    beside(long, ".verified").unlink()
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
    for ends, source in (((("",)), old), (("", ".verified"), old), (("", ".verified"), fork), ((".head",), fork)):
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
    assert opened().remaining() == 1 - Fraction(ROWS - 4, 100) - Fraction(1, 1000)


def test_a_note_of_another_version_is_written_anew_at_the_first_use(
    opened: Open, spend: Spend, place: Path, counted: dict[str, int], monkeypatch
) -> None:
    """Rows are read once after an upgrade, and not at each opening until many more have come."""
    monkeypatch.setattr(verified, "FEW", 5)
    ledger = opened()
    for number in range(20):
        spend(ledger, number, "1/100")
    monkeypatch.setattr(verified, "FORM", ("another",))
    assert opened().spent()[0] == Fraction(20, 100)
    counted.update(codes=0)
    assert opened().spent()[0] == Fraction(20, 100)
    assert counted["codes"] <= 6


def test_many_charges_at_once_are_noted(opened: Open, place: Path, counted: dict[str, int]) -> None:
    """SQLite would move its log to the file in between, which could not be told from what others write."""
    ledger = opened(budget=Fraction(10**6))
    with ledger.transaction() as session:
        for number in range(400):
            session.charge(Charge(f"{number:08x}", (Cost("1/1000"),), "1", "x" * 3000))
        session.commit()
    assert verified.Note(place, beside(place, ".verified"), ledger.secret).untouched
