"""The ledger by example: charge, seal, close, cap, raise, several at once, in memory."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from wpinq.core.ledger import Charge, Cost, Ledger, charge_all
from wpinq.core.ledger.budget import Allowance
from wpinq.core.ledger.rows import chain
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.versions import Pin
from wpinq.errors import BudgetError, ChangedError, ExactnessError, InternalError, LedgerError

Open = Callable[..., Ledger]
Spend = Callable[..., bool]


@pytest.fixture(params=["file", "memory"])
def ledger(request: pytest.FixtureRequest, opened: Open, place: Path) -> Ledger:
    return opened(place if request.param == "file" else None)


def test_attack_07_a_tenth_and_two_tenths_fill_three_tenths_to_the_last_drop(opened: Open, spend: Spend) -> None:
    ledger = opened(budget=Fraction(3, 10))
    assert spend(ledger, 1, 0.1)
    assert spend(ledger, 2, 0.2)
    assert ledger.remaining() == 0
    with pytest.raises(BudgetError):
        spend(ledger, 3, 1e-320)


def test_attack_07_a_tiny_charge_is_not_lost(opened: Open, spend: Spend) -> None:
    ledger = opened()
    for number in range(3):
        spend(ledger, number, 1e-320)
    assert opened().spent() == (3 * Fraction(1, 10**320), 0)
    with pytest.raises(BudgetError):
        spend(ledger, 9, 1)


@pytest.mark.parametrize("bad", [0, -1, float("inf"), float("nan"), True, "ten"])
def test_attack_07_a_budget_that_is_no_amount_is_refused(bad: object, opened: Open, place: Path) -> None:
    with pytest.raises(ExactnessError):
        opened(budget=bad)
    assert not any(place.parent.iterdir())


def test_a_row_s_code_is_computed_when_it_is_written_and_when_it_is_read_and_then_never_again(
    ledger: Ledger, spend: Spend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the price of a question grows with every one asked before: 1,000 took minutes."""
    codes, link = [], chain.link
    monkeypatch.setattr(chain, "link", lambda *row: codes.append(row) or link(*row))
    for number in range(30):
        spend(ledger, number, "1/100")
        ledger.remaining()
    assert len(codes) == 30


def test_rows_of_another_process_are_verified_and_only_they(
    opened: Open, spend: Spend, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = opened(), opened()
    for number in range(5):
        spend(other, number)
    codes, link = [], chain.link
    monkeypatch.setattr(chain, "link", lambda *row: codes.append(row) or link(*row))
    assert mine.remaining() == Fraction(1, 2)
    assert len(codes) == 5


def test_the_same_question_on_the_same_version_is_free(ledger: Ledger, spend: Spend) -> None:
    assert spend(ledger, 1) is True
    assert spend(ledger, 1) is False
    assert ledger.spent()[0] == Fraction(1, 10)
    assert spend(ledger, 1, version="2") is True
    assert ledger.spent()[0] == Fraction(2, 10)


def test_the_same_question_is_free_after_a_restart(opened: Open, spend: Spend) -> None:
    assert spend(opened(), 1)
    assert not spend(opened(), 1)
    assert not spend(opened(budget=None), 1, analyst="other")
    assert opened().remaining() == Fraction(9, 10)


def test_the_same_question_at_another_cost_is_refused(ledger: Ledger, spend: Spend) -> None:
    spend(ledger, 1)
    with pytest.raises(LedgerError, match="another cost"):
        spend(ledger, 1, "1/11")
    assert ledger.spent()[0] == Fraction(1, 10)


def test_what_does_not_fit_is_refused_and_nothing_is_written(ledger: Ledger, spend: Spend) -> None:
    spend(ledger, 1, "0.7", label="pages")
    spend(ledger, 2, "0.1", label="pages")
    with pytest.raises(BudgetError) as caught:
        spend(ledger, 3, "0.3", label="users")
    error = caught.value
    assert (error.requested, error.remaining) == (Fraction(3, 10), Fraction(2, 10))
    assert error.spent == (("pages", Fraction(8, 10)),)
    assert str(error) == (
        "users: costs epsilon 0.3, 0.2 is left of data set 'views'; nothing was charged. Ask for less, or let the"
        " curator raise the budget. Spent so far:\n"
        "         0.8  pages"
    )
    assert len(ledger.entries()) == 3


def test_what_was_spent_is_told_part_by_part_also_on_one_line(ledger: Ledger, spend: Spend) -> None:
    spend(ledger, 1, "0.7", label="pages")
    spend(ledger, 2, "0.1", label="users")
    with pytest.raises(BudgetError) as caught:
        spend(ledger, 3, "0.3", label="days")
    assert " ".join(str(caught.value).split()).endswith("Spent so far: 0.7 pages; 0.1 users")
    assert spend(ledger, 4, "0.2")


def test_a_refusal_names_the_costliest_of_many_questions(ledger: Ledger, spend: Spend) -> None:
    """It named all, a line each, however many a ledger held."""
    for number in range(12):
        spend(ledger, number, Fraction(1 + (number == 11), 100), label=f"question {number}")
    spend(ledger, 12, "0.1", label="long " * 99)
    with pytest.raises(BudgetError) as caught:
        spend(ledger, 99, 1)
    told = str(caught.value).split("Spent so far:\n")[1].splitlines()
    assert [line.split() for line in told][-2:] == [["0.1", *["long"] * 15, "lo...;"], ["0.05", "5", "more"]]
    assert len(told) == 9 and len(caught.value.spent) == 13


def test_a_refusal_of_a_cap_names_what_counts_for_it(ledger: Ledger, spend: Spend) -> None:
    """It named the questions of others, too, so the parts were more than the cap."""
    ledger.cap("ann", "0.3")
    spend(ledger, 1, "0.5", label="pages")
    spend(ledger, 2, "0.2", label="users", analyst="ann")
    with pytest.raises(BudgetError) as caught:
        spend(ledger, 3, "0.2", label="days", analyst="ann")
    assert " ".join(str(caught.value).split()).endswith("Spent so far: 0.2 users")


def test_parts_of_a_partition_cost_the_largest_and_late_parts_only_the_growth(ledger: Ledger) -> None:
    def part(number: int, epsilon: str) -> bool:
        costs = [Cost(epsilon, under=(("by day", str(number)),))]
        return ledger.charge(f"{number:08x}", costs, version="1", label=f"day {number}")

    assert part(1, "0.8")
    assert part(2, "0.8")
    assert ledger.spent()[0] == Fraction(8, 10)
    assert part(3, "0.9")
    assert [entry.epsilon for entry in ledger.entries()[1:]] == [Fraction(8, 10), 0, Fraction(1, 10)]
    with pytest.raises(BudgetError) as caught:
        part(4, "1.1")
    assert caught.value.requested == Fraction(2, 10)


def test_a_path_for_each_use_is_charged(ledger: Ledger) -> None:
    ledger.charge("0" * 8, [Cost("0.1")] * 9, version="1", label="triangles")
    assert ledger.spent()[0] == Fraction(9, 10)


def test_delta_has_a_budget_of_its_own(opened: Open) -> None:
    ledger = opened(delta="1e-6")
    ledger.charge("0" * 8, [Cost("0.1", "6e-7")], version="1", label="a")
    with pytest.raises(BudgetError, match=r"delta 0\.0000006"):
        ledger.charge("1" * 8, [Cost("0.1", "6e-7")], version="1", label="b")
    assert ledger.spent() == (Fraction(1, 10), Fraction(6, 10**7))
    with pytest.raises(BudgetError):
        opened(None).charge("0" * 8, [Cost("0.1", "1e-9")], version="1", label="a")
    for bad in (1, -1, 2):
        with pytest.raises(ExactnessError):
            opened(None, delta=bad)


def test_a_charge_is_known_by_hexadecimal_digits_and_costs_something(ledger: Ledger) -> None:
    with pytest.raises(InternalError):
        ledger.charge("lambda user: user", [Cost(1)], version="1", label="a")
    with pytest.raises(InternalError):
        ledger.charge("0" * 8, [], version="1", label="a")


# Seals and versions


def test_attack_11_a_second_digest_closes_the_version_for_every_question(ledger: Ledger, spend: Spend) -> None:
    for number in (1, 2):
        spend(ledger, number)
        ledger.seal(f"{number:08x}", "1", b"digest")
    ledger.seal("00000001", "1", b"digest")
    with pytest.raises(LedgerError) as first:
        ledger.seal("00000001", "1", b"changed")
    refused: list[Callable[[], Any]] = [
        lambda: ledger.seal("00000001", "1", b"digest"),
        lambda: ledger.seal("00000002", "1", b"digest"),
        lambda: ledger.check_version("1"),
        lambda: spend(ledger, 1),
        lambda: spend(ledger, 3),
    ]
    for action in refused:
        with pytest.raises(LedgerError) as other:
            action()
        assert str(other.value) == str(first.value)
    assert spend(ledger, 1, version="2")


def test_seals_and_closed_versions_survive_a_restart(opened: Open, spend: Spend) -> None:
    spend(opened(), 1)
    opened().seal("00000001", "1", b"digest")
    with pytest.raises(LedgerError, match="closed"):
        opened().seal("00000001", "1", b"changed")
    with pytest.raises(LedgerError, match="closed"):
        opened().check_version("1")
    opened().check_version("2")
    opened().poison("2")
    with pytest.raises(LedgerError, match="closed"):
        opened().check_version("2")


def test_the_content_of_a_version_is_pinned_once_for_each_way_to_read_it(ledger: Ledger) -> None:
    ledger.pin(Pin("1", "views", "", b"content"))
    ledger.pin(Pin("1", "views", "", b"content"))
    ledger.pin(Pin("2", "views", "", b"other"))
    ledger.pin(Pin("1", "views", "as text", b"other"))
    for _ in range(2):
        with pytest.raises(ChangedError, match="views: holds other records than those first read as '1' on 20"):
            ledger.pin(Pin("1", "views", "", b"other"))
    ledger.pin(Pin("1", "views", "", b"content"))
    ledger.poison("1")
    with pytest.raises(LedgerError, match="closed"):
        ledger.pin(Pin("1", "views", "", b"content"))


def test_what_is_refused_pins_nothing_and_other_content_charges_nothing(ledger: Ledger) -> None:
    """Content is pinned with the charge or not at all."""
    charge = Charge("00000001", (Cost(100),), "1", "views")
    with pytest.raises(BudgetError):
        charge_all([(ledger, charge)], [(ledger, Pin("1", "views", "", b"content"))])
    assert not ledger.pinned("1")
    ledger.pin(Pin("1", "views", "", b"other"))
    with pytest.raises(ChangedError):
        charge_all([(ledger, replace(charge, costs=(Cost("0.1"),)))], [(ledger, Pin("1", "views", "", b"content"))])
    assert ledger.spent() == (0, 0)


def test_no_seal_without_a_charge(ledger: Ledger, spend: Spend) -> None:
    spend(ledger, 1)
    for question, version in (("00000002", "1"), ("00000001", "2")):
        with pytest.raises(InternalError):
            ledger.seal(question, version, b"digest")


def test_rule_03_equal_digests_are_not_seen_to_be_equal_and_never_kept_in_clear(
    opened: Open, spend: Spend, place: Path
) -> None:
    ledger, digest = opened(), b"0123456789abcdef" * 2
    for number in (1, 2):
        spend(ledger, number)
        ledger.seal(f"{number:08x}", "1", digest)
    ledger.pin(Pin("1", "views", "", digest))
    ledger.pin(Pin("2", "views", "", digest))
    with closing(sqlite3.connect(place)) as connection, connection:
        bodies = [json.loads(body) for (body,) in connection.execute("SELECT body FROM entries")]
    connection.close()
    codes = [body["mac"] for body in bodies if body["kind"] == "seal"]
    assert len(set(codes)) == 4
    kept = b"".join(path.read_bytes() for path in place.parent.iterdir())
    assert digest not in kept
    assert digest.hex().encode() not in kept
    shown = str(ledger.entries()) + repr(ledger)
    assert not any(code in shown for code in codes)


# Caps and raises


def test_a_cap_is_an_allocation_within_the_budget(ledger: Ledger, spend: Spend) -> None:
    ledger.cap("ada", Fraction(1, 4))
    assert spend(ledger, 1, "0.2", analyst="ada")
    with pytest.raises(BudgetError, match="cap of analyst 'ada'") as caught:
        spend(ledger, 2, "0.1", analyst="ada")
    assert caught.value.remaining == Fraction(1, 20)
    assert spend(ledger, 2, "0.1", analyst="bob")
    assert not spend(ledger, 2, "0.1", analyst="ada")
    ledger.cap("ada", Fraction(1, 10))
    with pytest.raises(BudgetError, match=", 0 is left of the cap"):
        spend(ledger, 3, "0.001", analyst="ada")
    for bad in (-1, 2):
        with pytest.raises(ExactnessError):
            ledger.cap("ada", Fraction(bad))


def test_a_cap_of_delta_binds_beside_that_of_epsilon_and_counts_what_was_before(opened: Open) -> None:
    ledger = opened(budget=Fraction(1), delta=Fraction(1, 10))

    def spend(number: int, delta: str, analyst: str = "ada") -> bool:
        return ledger.charge(f"{number:08x}", [Cost("0.01", Fraction(delta))], version="1", label="m", analyst=analyst)

    assert spend(1, "0.01")
    ledger.cap("ada", Fraction(1, 2), Fraction(3, 100))
    ledger.cap("ada", Fraction(1, 4))  # which leaves that of delta as it is
    assert spend(2, "0.02")
    for again in (ledger, opened(budget=None, delta=None)):
        ledger = again
        with pytest.raises(BudgetError, match=r"costs delta 0\.001, 0 is left of the delta cap of analyst 'ada'"):
            spend(3, "0.001")
        assert not spend(2, "0.02") and ledger.spent()[1] == Fraction(3, 100)
    assert spend(4, "0.05", "bob")
    ada = Allowance.capped(ledger)["ada"]
    assert (ada.cap, ada.spent, ada.delta_cap, ada.delta_spent) == tuple(
        Fraction(one) for one in ("1/4", "1/50", "3/100", "3/100")
    )
    with pytest.raises(BudgetError, match=r"delta 0.03, 0.02 is left of data set"):  # the budget's own delta
        spend(5, "0.03", "bob")
    for bad in ("-1/10", "1/5"):
        with pytest.raises(ExactnessError):
            ledger.cap("ada", Fraction(1, 4), Fraction(bad))
    first = next(row for row in ledger.entries() if "cap" in row.kind)
    assert (first.kind, first.delta) == ("delta_cap", Fraction(3, 100))


def test_rule_42_an_analyst_does_not_see_what_others_asked(ledger: Ledger, spend: Spend) -> None:
    spend(ledger, 1, "0.5", analyst="ada", label="own")
    spend(ledger, 2, "0.3", analyst="bob", label="bobs idea")
    with pytest.raises(BudgetError) as caught:
        spend(ledger, 3, "0.5", analyst="ada")
    assert caught.value.spent == (("own", Fraction(1, 2)), ("others", Fraction(3, 10)))
    assert "bob" not in str(caught.value)


def test_the_budget_is_raised_by_the_curator_only(opened: Open, spend: Spend) -> None:
    ledger = opened()
    with pytest.raises(LedgerError, match="wpinq ledger raise"):
        opened(budget=Fraction(2))
    with pytest.raises(ExactnessError):
        ledger.raise_budget(Fraction(1))
    ledger.raise_budget(Fraction(2))
    assert spend(opened(budget=Fraction(2)), 1, "1.5")
    with pytest.raises(LedgerError, match="its budget is epsilon 2"):
        opened()
    assert opened(budget=None).budget == 2


# Opening


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "clicks"}, "data set 'views'"),
        ({"unit": "user, at most 20"}, "privacy unit"),
        ({"budget": Fraction(2)}, "budget is epsilon 1, delta 0, and not epsilon 2, delta 0"),
        ({"delta": Fraction(1, 1000)}, "not epsilon 1, delta 0.001"),
        ({"secret": Secret(bytes(32))}, "secret"),
    ],
)
def test_attack_20_another_data_set_unit_budget_or_secret_is_refused(
    change: dict[str, Any], words: str, opened: Open
) -> None:
    opened()
    with pytest.raises(LedgerError, match=words):
        opened(**change)
    opened()


def test_a_new_ledger_needs_a_budget_and_leaves_nothing_behind_without_one(opened: Open, place: Path) -> None:
    with pytest.raises(LedgerError, match="give a budget"):
        opened(budget=None)
    with pytest.raises(LedgerError, match="check the path"):
        Ledger.existing(place)
    assert not any(place.parent.iterdir())
    with pytest.raises(LedgerError, match="give budget="):
        opened(None, budget=None)


def test_files_are_for_their_owner_only_and_a_ledger_at_rest_is_one_file(
    opened: Open, spend: Spend, place: Path
) -> None:
    spend(opened(), 1)
    files = {path.name: path.stat().st_mode & 0o777 for path in place.parent.iterdir()}
    assert files == {f"views.ledger{end}": 0o600 for end in ("", ".secret", ".head", ".lock")}


def test_the_secret_may_live_elsewhere(
    opened: Open, spend: Spend, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WPINQ_SECRET", "ab" * 32)
    assert spend(opened(), 1)
    assert not place.with_name("views.ledger.secret").exists()
    assert opened().secret.mac("test", b"") == Secret(bytes.fromhex("ab" * 32)).mac("test", b"")
    monkeypatch.delenv("WPINQ_SECRET")
    with pytest.raises(LedgerError, match=r"secret views\.ledger\.secret is missing"):
        opened()
    assert not place.with_name("views.ledger.secret").exists()


def test_the_ledger_is_found_from_another_directory(opened: Open, spend: Spend, place: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(place.parent)
    ledger = opened(Path("views.ledger"))
    monkeypatch.chdir("/")
    assert spend(ledger, 1)
    assert not spend(opened(), 1)


def test_repr_tells_name_budget_and_rest_and_no_ledger_is_pickled(ledger: Ledger, spend: Spend) -> None:
    spend(ledger, 1)
    assert repr(ledger) == "<Ledger 'views': budget 1, remaining 0.9>"
    for action in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="open it again"):
            action(ledger)


def test_entries_tell_what_when_and_who(ledger: Ledger, spend: Spend) -> None:
    spend(ledger, 1, analyst="ada", label="pages")
    ledger.cap("ada", Fraction(1, 2))
    opening, charge, cap = ledger.entries()
    assert (opening.kind, opening.label, opening.epsilon) == ("open", "views", 1)
    assert (charge.number, charge.kind, charge.label, charge.question) == (2, "charge", "pages", "00000001")
    assert (charge.version, charge.analyst, charge.epsilon, charge.delta) == ("1", "ada", Fraction(1, 10), 0)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", charge.at)
    assert (cap.kind, cap.analyst, cap.epsilon) == ("cap", "ada", Fraction(1, 2))


def test_strange_names_are_kept_as_they_are(opened: Open, spend: Spend, tmp_path: Path) -> None:
    path = tmp_path / "späce %41 ?#.ledger"
    label = "x\ny\0\udcff'\"[bold]"
    spend(opened(path, name=label), 1, label=label, version=label)
    assert opened(path, name=label).entries()[1].label == label


def test_a_ledger_in_memory_is_refused_in_a_fork() -> None:
    program = """
import os
from fractions import Fraction
from wpinq.core.ledger import Ledger
from wpinq.errors import LedgerError
ledger = Ledger.open(None, name="views", unit="record", budget=Fraction(1))
if os.fork() == 0:
    try:
        ledger.remaining()
    except LedgerError:
        os._exit(7)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]), ledger.remaining())
"""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")])),
    }
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["7", "1"]


# Several ledgers


def test_a_measurement_over_two_data_sets_is_charged_to_both_or_none(opened: Open, tmp_path: Path) -> None:
    rich, poor = opened(tmp_path / "a"), opened(tmp_path / "b", name="clicks", budget=Fraction(1, 10))

    def ask(number: int, epsilon: str) -> list[bool]:
        charge = Charge(f"{number:08x}", (Cost(epsilon),), "1", "joined")
        return charge_all([(rich, charge), (poor, charge)])

    assert ask(1, "0.1") == [True, True]
    for order in ("rich first", "poor first"):
        with pytest.raises(BudgetError, match="'clicks'"):
            ask(2, "0.1")
        rich, poor = (poor, rich) if order == "rich first" else (rich, poor)
    assert {ledger.spent()[0] for ledger in (rich, poor)} == {Fraction(1, 10)}
    assert ask(1, "0.1") == [False, False]


def test_rule_28_two_sources_that_share_a_ledger_are_charged_the_sum(opened: Open) -> None:
    first, second = opened(), opened()
    same = Charge("0" * 8, (Cost("0.1"),), "1", "self join")
    assert charge_all([(first, same), (second, same)]) == [True, True]
    assert first.spent()[0] == Fraction(2, 10)
    other = Charge("0" * 8, (Cost("0.1"),), "2", "other file")
    assert charge_all([(first, same), (second, same), (second, other)]) == [False, False, True]
    assert second.spent()[0] == Fraction(3, 10)
    big = [Charge("1" * 8, (Cost("0.4"),), version, "big") for version in "12"]
    with pytest.raises(BudgetError):
        charge_all([(first, big[0]), (second, big[1])])
    assert first.spent()[0] == Fraction(3, 10)


def test_a_closed_version_stops_the_charge_to_every_ledger(opened: Open, tmp_path: Path) -> None:
    ledgers = [opened(tmp_path / end, name=end) for end in "ab"]
    ledgers[1].poison("1")
    charge = Charge("0" * 8, (Cost("0.1"),), "1", "joined")
    with pytest.raises(LedgerError, match="closed"):
        charge_all([(ledger, charge) for ledger in ledgers])
    assert [ledger.spent()[0] for ledger in ledgers] == [0, 0]
