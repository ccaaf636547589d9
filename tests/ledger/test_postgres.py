"""A ledger in PostgreSQL: what holds of a file holds of it, by the same tests; and what is its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from depth import deep
from ledger import test_begin, test_ledger, test_together
from ledger.files import killed_while_made

from wpinq.core.ledger import Change, Charge, Cost, Ledger, charge_all
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.stores.address import Address, ledger_path
from wpinq.errors import BudgetError, ExtraError, LedgerError

psycopg = pytest.importorskip("psycopg")
Open = Callable[..., Ledger]
Spend = Callable[..., bool]


@pytest.fixture
def place(in_database: Path) -> Path:
    return in_database


@pytest.fixture
def ledger(opened: Open) -> Ledger:
    return opened()


# What is tried on files, tried here: `place` and `ledger` are those above

hasty = test_together.hasty
test_attack_15_eight_processes_never_spend_more_than_there_is = (
    test_together.test_attack_15_eight_processes_never_spend_more_than_there_is
)
test_attack_15_eight_threads_with_one_question_pay_once = (
    test_together.test_attack_15_eight_threads_with_one_question_pay_once
)
test_many_that_begin_at_once_begin_one = test_begin.test_many_that_begin_at_once_begin_one
for _name in (
    "test_attack_07_a_tenth_and_two_tenths_fill_three_tenths_to_the_last_drop",
    "test_attack_07_a_tiny_charge_is_not_lost",
    "test_a_row_s_code_is_computed_when_it_is_written_and_when_it_is_read_and_then_never_again",
    "test_rows_of_another_process_are_verified_and_only_they",
    "test_the_same_question_on_the_same_version_is_free",
    "test_the_same_question_is_free_after_a_restart",
    "test_the_same_question_at_another_cost_is_refused",
    "test_what_does_not_fit_is_refused_and_nothing_is_written",
    "test_parts_of_a_partition_cost_the_largest_and_late_parts_only_the_growth",
    "test_attack_11_a_second_digest_closes_the_version_for_every_question",
    "test_seals_and_closed_versions_survive_a_restart",
    "test_the_content_of_a_version_is_pinned_once_for_each_way_to_read_it",
    "test_what_is_refused_pins_nothing_and_other_content_charges_nothing",
    "test_no_seal_without_a_charge",
    "test_a_cap_is_an_allocation_within_the_budget",
    "test_the_budget_is_raised_by_the_curator_only",
    "test_attack_20_another_data_set_unit_budget_or_secret_is_refused",
    "test_repr_tells_name_budget_and_rest_and_no_ledger_is_pickled",
    "test_entries_tell_what_when_and_who",
):
    globals()[_name] = getattr(test_ledger, _name)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("shared", ["one object", "one file"])
def test_attack_15_eight_threads_never_spend_more_than_there_is(shared: str, opened: Open, spend: Spend) -> None:
    test_together.test_attack_15_eight_threads_never_spend_more_than_there_is(shared, opened, spend)


KILLED = [("charge", 256), ("cross", 4), ("open", 256), ("seal", 256)]


@pytest.mark.parametrize(("action", "every"), KILLED[:2])
def test_attack_13_a_client_killed_at_some_lines(
    action: str, every: int, place: Path, spender: Any, monkeypatch: pytest.MonkeyPatch, stride: int = 131
) -> None:
    """Between lines that lock, write, commit, anchor and decide: all of an act is there, or nothing."""
    monkeypatch.setenv("EVERY", str(every))
    done = spender("steps", place, action, stride)()
    assert done["lost"] == []
    assert done["finished"] == "done"
    assert done["steps"] >= 100  # lines


@deep
@pytest.mark.parametrize(("action", "every"), KILLED)
def test_attack_13_a_client_killed_at_any_line(
    action: str, every: int, place: Path, spender: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_attack_13_a_client_killed_at_some_lines(action, every, place, spender, monkeypatch, 5)


def test_two_ledgers_of_a_database_are_two(opened: Open, spend: Spend, url: str) -> None:
    other = ledger_path(f"{url}_other")
    ledgers = opened(), opened(other, name="clicks")
    spend(ledgers[0], 1)
    charge = Charge("5eed5eed", (Cost("1/2"),), "1", "both")
    assert charge_all([(each, charge) for each in ledgers]) == [True, True]
    assert [each.spent()[0] for each in ledgers] == [Fraction(6, 10), Fraction(5, 10)]
    with pytest.raises(BudgetError):
        charge_all([(each, Charge("5eed5eee", (Cost("0.45"),), "1", "both")) for each in ledgers])
    assert [each.spent()[0] for each in ledgers] == [Fraction(6, 10), Fraction(5, 10)]


def test_a_thousand_rows_are_read_in_parts(opened: Open, spend: Spend) -> None:
    ledger = opened()
    charges = [(ledger, Charge(f"{n:08x}", (Cost("1/2000"),), "1", "many")) for n in range(1100)]
    charge_all(charges)
    assert [entry.number for entry in ledger.entries()] == [*range(1, ledger.state().rows + 1)]
    assert opened().spent()[0] == Fraction(1100, 2000)
    assert not any(charge_all(charges))


# The secret is handed out


def test_without_a_secret_it_is_refused_and_nothing_is_made(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WPINQ_SECRET")
    with pytest.raises(LedgerError, match=r"openssl rand -hex 32.*WPINQ_SECRET_COMMAND.*secret="):
        opened()
    assert opened(secret=Secret(bytes(32))).remaining() == 1, "it is begun with the secret that came then"


def test_a_command_prints_the_secret(opened: Open, spend: Spend, monkeypatch: pytest.MonkeyPatch) -> None:
    spend(opened(), 1)
    monkeypatch.delenv("WPINQ_SECRET")
    program = "print(bytes(range(32)).hex())"
    monkeypatch.setenv("WPINQ_SECRET_COMMAND", f'{sys.executable} -c "{program}"')
    assert opened().remaining() == Fraction(9, 10)


@pytest.mark.parametrize(("command", "why"), [
    ("false", "failed with code 1"), ("/nowhere/is secret-marker", "cannot be run"), ("echo secret-marker", "64 hex"),
    ("'", "cannot be run"), ("", "cannot be run"),
])  # fmt: skip
def test_a_command_that_prints_none_is_refused_and_never_shown(
    command: str, why: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WPINQ_SECRET")
    monkeypatch.setenv("WPINQ_SECRET_COMMAND", command)
    with pytest.raises(LedgerError, match=f"^WPINQ_SECRET_COMMAND.*{why}") as caught:
        opened()
    assert "marker" not in str(caught.value)


def test_two_ways_to_give_a_secret_are_refused(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WPINQ_SECRET_COMMAND", "echo")
    with pytest.raises(LedgerError, match="two are set"):
        opened()


def test_another_secret_is_refused_by_who_saw_it_and_by_who_did_not(
    opened: Open, spend: Spend, url: str, tmp_path: Path
) -> None:
    spend(opened(), 1)
    for path in (ledger_path(url), ledger_path(f"{url}&state={tmp_path / 'new'}")):
        with pytest.raises(LedgerError, match=r"another secret|do not fit its secret"):
            opened(path, secret=Secret(bytes(32)))
    assert opened().remaining() == Fraction(9, 10)


# What is written in a URL


@pytest.mark.parametrize("url", [
    "postgresql://ann:pass/marker@h/d", "postgresql://ann:pass#marker@h/d", "postgresql://ann:12?marker@h/d",
    "postgresql://ann:marker", "postgres:/marker", "postgresql:marker", "postgresql://h/d?ledger=Marker",
    "postgresql://h/d?ledger=a&ledger=marker", "postgresql://h/d?may_lose=marker", "postgresql://h/d?ledger=",
    "postgresql://h/d?may_lose=", "POSTGRESQL://marker/d", "postgresql://h:marker/d", "postgresql://h/d?marker",
])  # fmt: skip
def test_a_url_that_cannot_be_read_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(LedgerError, match=r"^ledger postgresql://\.\.\.: .*write postgresql://user@host/") as caught:
        ledger_path(url)
    assert "marker" not in str(caught.value).lower()


def test_a_password_is_in_no_repr_label_or_path(url: str) -> None:
    assert "pass-word-marker" in url
    address = Address.read(f"{url}&password=pass-word-marker&sslpassword=pass-word-marker")
    assert "marker" not in f"{address!r} {address} {address.label} {address.anchor}"


def test_errors_of_the_server_are_one_line_without_user_and_password(opened: Open, url: str) -> None:
    away = re.sub(r"(?<=127\.0\.0\.1:)\d+", "1", url)
    for wrong in (away, url.replace("pass-word-marker@", "marker@"), url.replace("/postgres?", "/marker?")):
        with pytest.raises(LedgerError, match="cannot be reached, has too many clients, or refuses") as caught:
            opened(ledger_path(wrong))
        assert "\n" not in str(caught.value)
        assert not re.search(r"pass|marker@|postgres:", str(caught.value).replace("password", ""))
        assert caught.value.__suppress_context__
    with pytest.raises(LedgerError, match="libpq does not know"):
        opened(ledger_path(f"{url}&colour=blue"))


def test_without_psycopg_it_says_what_to_install(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ExtraError, match=r"pip install 'wpinq\[postgres\]'"):
        opened()


def test_a_ledger_in_a_file_loads_no_psycopg(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from fractions import Fraction
from wpinq.core.ledger import Ledger
Ledger.open(Path({str(tmp_path / "ledger")!r}), name="a", unit="record", budget=Fraction(1))
assert not [name for name in sys.modules if "psycopg" in name]
"""
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": ":".join(sys.path)}, check=True)


# Locks


def test_a_lock_that_is_not_released_is_one_line(
    opened: Open, spend: Spend, url: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wpinq.core.ledger.stores import server

    ledger = opened()
    monkeypatch.setitem(server._SETTINGS, "lock_timeout", "200ms")
    with psycopg.connect(database.partition("?")[0]) as other:
        other.execute(f"SELECT * FROM {Address.read(url).schema}.head FOR UPDATE")
        with pytest.raises(LedgerError, match="another client has held its lock for 60 seconds"):
            spend(ledger, 1)
    assert spend(ledger, 1)


def test_a_user_who_may_not_is_refused_in_one_line(opened: Open, spend: Spend, url: str, database: str) -> None:
    spend(opened(), 1)
    name, schema = f"r{url[-8:]}", Address.read(url).schema
    plain = database.partition("?")[0]
    with psycopg.connect(plain, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'other'")
    theirs = re.sub(r"//[^@]*@", f"//{name}:other@", url)
    with pytest.raises(LedgerError, match="this user may not use its tables"):
        opened(ledger_path(theirs))
    with psycopg.connect(plain, autocommit=True) as owner:
        owner.execute(f"GRANT USAGE ON SCHEMA {schema} TO {name}")
        owner.execute(f"GRANT SELECT, INSERT ON {schema}.entries TO {name}")
        owner.execute(f"GRANT SELECT, UPDATE ON {schema}.head TO {name}")
        owner.execute(f"GRANT SELECT, INSERT, DELETE ON {schema}.side TO {name}")
    mine = opened(ledger_path(theirs))
    assert spend(mine, 2), "these rights are enough"
    mine.change(Change("periods", "site 2026", "{}"))
    assert opened(ledger_path(url)).spent()[0] == Fraction(2, 10)


def test_killed_while_it_was_made_it_is_made_again(place: Path, opened: Open) -> None:
    assert not Ledger.exists(place)
    killed_while_made(place)
    assert not Ledger.exists(place), "who asks whether there is one gives its budget"
    with pytest.raises(LedgerError, match="holds nothing yet"):
        Ledger.existing(place)
    assert opened().remaining() == 1 and Ledger.exists(place)
