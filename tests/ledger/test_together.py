"""Attacks 13 and 15: many who spend at once, and processes that are killed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from depth import DEEP, deeper, often, thin

from wpinq.core.ledger import Asked, Charge, Cost, Ledger, charge_all, replay, transaction
from wpinq.core.ledger.stores.file import FileStore
from wpinq.core.ledger.sums import accountant
from wpinq.core.ledger.sums.renyi import rate
from wpinq.errors import BudgetError

Open = Callable[..., Ledger]
Spend = Callable[..., bool]
Spender = Callable[..., Callable[[], Any]]


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let threads interrupt each other as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("shared", ["one object", "one file", "memory"])
def test_attack_15_eight_threads_never_spend_more_than_there_is(shared: str, opened: Open, spend: Spend) -> None:
    one = opened(None) if shared == "memory" else opened()

    def work(who: int) -> list[int]:
        ledger, granted = opened() if shared == "one file" else one, []
        for number in range(who * 100, who * 100 + 9):
            try:
                spend(ledger, number, Fraction(1, 37))
            except BudgetError:
                return granted
            granted.append(number)
        return granted

    with ThreadPoolExecutor(8) as pool:
        granted = [f"{number:08x}" for numbers in pool.map(work, range(8)) for number in numbers]
    charged = [entry.question for entry in one.entries() if entry.kind == "charge"]
    assert sorted(granted) == sorted(charged)
    assert len(granted) == 37
    assert one.remaining() == 0


def test_attack_15_eight_threads_with_one_question_pay_once(opened: Open, spend: Spend) -> None:
    ledger = opened()
    with ThreadPoolExecutor(8) as pool:
        fresh = list(pool.map(lambda _: spend(ledger, 1, "0.9"), range(24)))
    assert sum(fresh) == 1
    assert ledger.spent()[0] == Fraction(9, 10)


def test_attack_15_two_ledgers_locked_in_either_order_never_wait_for_each_other(opened: Open, tmp_path: Path) -> None:
    ledgers = [opened(tmp_path / end, name=end) for end in "ab"]

    def work(who: int) -> None:
        for number in range(8):
            charge = Charge(f"{who:04x}{number:04x}", (Cost("1/100"),), "1", "joined")
            charge_all([(ledger, charge) for ledger in ledgers[:: 1 if who % 2 else -1]])

    threads = [threading.Thread(target=work, args=(who,), daemon=True) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads), "they wait for each other"
    assert [ledger.spent()[0] for ledger in ledgers] == [Fraction(32, 100)] * 2


@pytest.mark.slow
def test_a_lock_that_is_deleted_meanwhile_loses_and_doubles_no_charge(place: Path, opened: Open, monkeypatch) -> None:
    """Two ledgers of one place are one, also where somebody deletes the lock whenever they are looked at."""
    lock, true = place.with_name(place.name + ".lock"), FileStore.key.fget
    ledgers, kept = [opened(), opened()], []

    def key(store: FileStore) -> tuple[int, int]:
        kept.append(lock.rename(lock.with_name(f"old {len(kept)}")))  # kept, so that the next one has another inode
        lock.touch(0o600)
        return true(store)

    monkeypatch.setattr(FileStore, "key", property(key))
    charge, more = (Charge(question, (Cost("1/10"),), "1", "pages") for question in ("5eed5eed", "5eed5eee"))
    assert charge_all([(ledgers[0], charge), (ledgers[1], more)]) == [True, True]
    assert charge_all([(ledgers[1], charge)]) == [False]
    assert ledgers[0].spent()[0] == Fraction(2, 10)
    assert kept


def test_attack_15_eight_processes_never_spend_more_than_there_is(opened: Open, place: Path, spender: Spender) -> None:
    waiting = [spender("spend", place, who, "1/101") for who in range(8)]
    shares = [result() for result in waiting]
    charged = [entry.question for entry in opened().entries() if entry.kind == "charge"]
    assert sorted(question for share in shares for question in share) == sorted(charged)
    assert len(charged) == 101
    assert opened().remaining() == 0
    assert sum(bool(share) for share in shares) >= 2, "they should have spent at the same time"


def test_processes_never_spend_more_rho_than_there_is(
    place: Path, spender: Spender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four processes with Gaussian noise on one ledger of format 2; 0.0005 of rho is 0.011 of its limit 0.535."""
    monkeypatch.setenv("ACCOUNTING", "renyi")
    monkeypatch.setenv("DELTA", "1e-6")
    waiting = [spender("spend", place, who, "1/2000") for who in range(4)]
    granted = [question for done in waiting for question in done()]
    ledger = Ledger.existing(place)
    assert len(granted) == len(set(granted)) == 48
    charges = [entry for entry in ledger.entries() if entry.kind == "charge"]
    assert sorted(entry.question for entry in charges) == sorted(granted)
    assert ledger.divergence == 48 * 22 * Fraction(1, 2000) <= ledger.promise.limit


@deeper
@thin(9)
@pytest.mark.slow
@pytest.mark.parametrize(("accounting", "rounds", "every"), [("pure", 120, 256), ("renyi", 30, 8)])
def test_attack_13_killed_at_random_moments_every_grant_is_in_the_ledger(
    accounting: str, rounds: int, every: int, opened: Open, place: Path, spender: Spender,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One of them crosses a checkpoint every seven charges."""
    rounds = often(rounds, 30)
    monkeypatch.setenv("ACCOUNTING", accounting)
    monkeypatch.setenv("EVERY", str(every))
    for module in (accountant, replay, transaction):
        monkeypatch.setattr(module, "EVERY", every)
    done = spender("kill", place, rounds, 1)()
    assert done["killed"] >= rounds * 5 // 6
    assert done["trouble"] == []
    ledger = opened(terms=Asked.of("protect", None, accounting=accounting))
    each = Fraction(1, 100_000) * rate(Fraction(1, 100_000), Fraction(1, 100_000), ledger.promise.order or Fraction(2))
    charged = [entry.question for entry in ledger.entries() if entry.kind == "charge"]
    assert set(done["granted"]) <= set(charged)
    assert len(done["granted"]) >= 100, "the children should have come to spend"
    assert len(charged) - len(done["granted"]) <= done["killed"], "at most the one under way is charged and not granted"
    assert ledger.spent()[0] == len(charged) * Fraction(1, 100_000)
    assert ledger.divergence == (len(charged) * each if accounting == "renyi" else 0)


@deeper
@pytest.mark.slow
@pytest.mark.parametrize(("action", "every"), [
    ("open", 256), ("charge", 256), ("seal", 256), ("measure", 256), ("cross", 4),
])  # fmt: skip
def test_attack_13_killed_at_any_line(
    action: str, every: int, place: Path, spender: Spender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in an act of a pin and its charges, before, at and after checkpoints: all of it is there, or nothing."""
    monkeypatch.setenv("EVERY", str(every))
    done = spender("steps", place, action, 1 if DEEP else 37 if action == "cross" else 13)()
    assert done["lost"] == []
    assert done["finished"] == "done"
    assert done["steps"] >= 100  # lines
