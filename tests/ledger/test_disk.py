"""Attack 20, the disk: full, read-only, or with files limited in size."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from wpinq.core.ledger import Charge, Cost, Ledger, charge_all
from wpinq.core.ledger.stores.file import FileStore
from wpinq.errors import LedgerError

Open = Callable[..., Ledger]
Spend = Callable[..., bool]


def run(*command: object) -> bool:
    return subprocess.run(list(map(str, command)), capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 400 kB of its own."""
    where = tmp_path / "disk"
    where.mkdir()
    if not shutil.which("mount") or not run("mount", "-t", "tmpfs", "-o", "size=400k", "wpinq-test", where):
        pytest.skip("only a user who can mount has a small disk")
    yield where
    assert run("umount", "-l", where)


def fill(disk: Path) -> None:
    with (disk / "rest").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def charges(ledger: Ledger) -> list[str]:
    return [entry.question for entry in ledger.entries() if entry.kind == "charge"]


def test_attack_20_a_full_disk_refuses_and_loses_nothing(disk: Path, opened: Open, spend: Spend) -> None:
    ledger = opened(disk / "views.ledger")
    spend(ledger, 1)
    fill(disk)
    for use in (lambda: spend(ledger, 2), lambda: opened(disk / "new.ledger"), lambda: spend(ledger, 3)):
        with pytest.raises(LedgerError, match=r"room|space"):
            use()
    (disk / "rest").unlink()
    assert charges(ledger) == ["00000001"]
    assert not spend(ledger, 1)
    assert spend(ledger, 2)
    assert opened(disk / "new.ledger").remaining() == 1


@pytest.mark.slow
def test_attack_20_a_disk_that_fills_up_at_every_point(disk: Path, opened: Open, spend: Spend) -> None:
    ledger, granted, refused = opened(disk / "views.ledger", budget=Fraction(10**9)), [], 0
    for free in range(1, 60):
        fill(disk)
        os.truncate(disk / "rest", max(0, (disk / "rest").stat().st_size - free * 4096))
        for number in range(free * 1000, free * 1000 + 3):
            try:
                spend(ledger, number, label="x" * 3000)
                granted.append(f"{number:08x}")
            except LedgerError:
                refused += 1
        (disk / "rest").unlink()
        held = charges(opened(disk / "views.ledger", budget=None))
        assert set(granted) <= set(held)
        if (disk / "views.ledger").stat().st_size > 200_000:
            break
    assert refused > 5
    assert len(granted) > 5


@pytest.mark.parametrize("last", ["views.ledger", "full.ledger"])
def test_attack_20_of_two_ledgers_that_on_the_full_disk_is_named(
    last: str, disk: Path, tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever is locked last: who frees space must know where. What one was charged is free then."""
    monkeypatch.setattr(FileStore, "key", property(lambda store: (int(store.path.name == last), 0)))
    ledgers, refused = [opened(tmp_path / "views.ledger"), opened(disk / "full.ledger")], 0
    for free in range(20):
        fill(disk)
        os.truncate(disk / "rest", max(0, (disk / "rest").stat().st_size - free * 4096))
        charge = Charge(f"{free:08x}", (Cost(Fraction(1, 1000)),), "1", "x" * 3000)
        try:
            charge_all([(ledger, charge) for ledger in ledgers])
        except LedgerError as error:
            assert f"ledger {disk / 'full.ledger'}:" in str(error)
            refused += 1
        (disk / "rest").unlink()
        charge_all([(ledger, charge) for ledger in ledgers])
        assert charges(ledgers[0]) == charges(ledgers[1])
    assert 3 < refused < 20


def test_attack_20_a_read_only_disk_refuses(disk: Path, opened: Open, spend: Spend) -> None:
    ledger = opened(disk / "views.ledger")
    spend(ledger, 1)
    assert run("mount", "-o", "remount,ro", disk)
    for use in (lambda: spend(ledger, 2), lambda: opened(disk / "views.ledger"), lambda: opened(disk / "new.ledger")):
        with pytest.raises(LedgerError, match="writ"):
            use()
    assert run("mount", "-o", "remount,rw", disk)
    assert charges(ledger) == ["00000001"]


@pytest.mark.parametrize("end", ["", ".head"])
def test_attack_20_a_file_that_cannot_be_written_refuses(
    end: str, tmp_path: Path, place: Path, opened: Open, spend: Spend
) -> None:
    ledger = opened()
    path = place.with_name(place.name + end)
    if not shutil.which("chattr") or not run("chattr", "+i", path):
        pytest.skip("this file system has no immutable files, and modes do not bind every user")
    try:
        with pytest.raises(LedgerError, match="writ"):
            spend(ledger, 1)
    finally:
        assert run("chattr", "-i", path)
    assert spend(ledger, 2)
    assert charges(opened()) == (["00000002"] if not end else ["00000001", "00000002"])


@pytest.mark.parametrize("last", ["views.ledger", "fixed.ledger"])
def test_attack_20_of_two_ledgers_one_cannot_be_written_so_neither_is_charged(
    last: str, tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each further question would cost the one that can be, and have no answer."""
    monkeypatch.setattr(FileStore, "key", property(lambda store: (int(store.path.name == last), 0)))
    ledgers = [opened(tmp_path / name) for name in ("views.ledger", "fixed.ledger")]
    first, second = (Charge(f"{number:08x}", (Cost("0.1"),), "1", "joined") for number in range(2))
    charge_all([(ledger, first) for ledger in ledgers])
    if not shutil.which("chattr") or not run("chattr", "+i", tmp_path / "fixed.ledger"):
        pytest.skip("this file system has no immutable files, and modes do not bind every user")
    try:
        with pytest.raises(LedgerError, match=r"fixed\.ledger: it cannot be written"):
            charge_all([(ledger, second) for ledger in ledgers])
    finally:
        assert run("chattr", "-i", tmp_path / "fixed.ledger")
    assert [charges(ledger) for ledger in ledgers] == [["00000000"]] * 2


def test_attack_20_a_directory_that_is_not_there_or_is_not_one(tmp_path: Path, opened: Open) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "none" / "views.ledger", tmp_path / "file" / "views.ledger", tmp_path):
        with pytest.raises(LedgerError):
            opened(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize("limit", [33_000, 45_000, 60_000])
def test_attack_20_files_limited_in_size_refuse_and_lose_nothing(
    limit: int, place: Path, opened: Open, spender: Any
) -> None:
    done = spender("room", place, limit)()
    assert str(place) in done["error"]
    held = charges(opened())
    assert held[: len(done["granted"])] == done["granted"]
    assert len(held) - len(done["granted"]) in (0, 1)
