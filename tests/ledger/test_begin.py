"""How a ledger begins: killed anywhere it begins again, and what was lost is not taken for what never was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ledger.files import beside, killed_while_made

from wpinq.core.ledger import Ledger
from wpinq.core.ledger.rows.secret import Secret
from wpinq.errors import LedgerError

Open = Callable[..., Ledger]
MORE = ("", ".head", ".lock")


def test_a_ledger_that_was_lost_but_for_its_secret_is_not_begun_anew(place: Path, opened: Open, spend) -> None:
    spend(opened(), 1, "1")
    for ends in (("", ".head"), MORE):
        kept = {end: beside(place, end).read_bytes() for end in MORE}
        for end in ends:
            beside(place, end).unlink()
        for _ in range(2):
            with pytest.raises(LedgerError, match="put back the newest copy of both") as caught:
                opened()
            assert "views.ledger.secret" in str(caught.value)
        for end, data in kept.items():
            beside(place, end).write_bytes(data)
        assert opened().remaining() == 0
    for end in (*MORE, ".secret"):
        beside(place, end).unlink()
    assert opened().remaining() == 1, "who removes all of it begins anew"


def test_a_secret_that_is_kept_elsewhere_begins_a_ledger(place: Path, opened: Open, monkeypatch) -> None:
    assert opened(secret=Secret.fresh()).remaining() == 1
    assert not beside(place, ".secret").exists()
    monkeypatch.setenv("WPINQ_SECRET", "5a" * 32)
    assert opened(place.with_name("other")).remaining() == 1


KILLED = """
import os, pathlib, signal, sys
from fractions import Fraction
from wpinq.core.ledger.rows import secret
from wpinq.core.ledger import Ledger
from wpinq.core.ledger.rows import chain
from wpinq.core.ledger.stores import file
from wpinq.core.ledger import ledger

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

step, number = sys.argv[2], 0
def trace(name, function):
    def call(*given, **named):
        global number
        if step == "before " + name: kill()
        found = function(*given, **named)
        if step == "after " + name: kill()
        return found
    return call

chain.write_head = trace("head", chain.write_head)
secret.Secret.keep = trace("secret", secret.Secret.keep)
os.replace = trace("replace", os.replace)
os.link = trace("link", os.link)
ledger.opening = trace("opening", ledger.opening)
Ledger.open(pathlib.Path(sys.argv[1]), name="views", unit="record", budget=Fraction(1))
"""


@pytest.mark.parametrize("step", ["before head", "after head", "before secret", "after secret", "before link",
                                  "after link", "before replace", "after replace", "before opening",
                                  "after opening"])  # fmt: skip
def test_killed_while_it_begins_it_begins_again(step: str, place: Path, opened: Open, spend) -> None:
    paths = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", KILLED, str(place), step]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not Ledger.exists(place), "who asks whether there is one gives its budget"
    ledger = opened()
    assert Ledger.exists(place) and ledger.remaining() == 1
    spend(ledger, 1, "1")
    assert opened().remaining() == 0


def test_a_ledger_whose_head_or_file_is_lost_is_there(place: Path, opened: Open, spend) -> None:
    """So that it is refused, and not begun anew."""
    spend(opened(), 1, "1")
    for end in ("", ".head"):
        kept = beside(place, end).read_bytes()
        beside(place, end).unlink()
        assert Ledger.exists(place)
        with pytest.raises(LedgerError, match="put"):
            Ledger.existing(place)
        beside(place, end).write_bytes(kept)
    assert opened().remaining() == 0


def test_where_a_ledger_was_only_made_its_curator_is_told_to_open_it(place: Path, opened: Open) -> None:
    killed_while_made(place)
    with pytest.raises(LedgerError, match="holds nothing yet"):
        Ledger.existing(place)
    with pytest.raises(LedgerError, match="a new ledger needs a budget"):
        opened(budget=None)
    assert opened().remaining() == 1


def test_many_that_begin_at_once_begin_one(place: Path, opened: Open) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: opened(), range(16)))
    assert len({ledger.identity for ledger in found}) == 1
    assert len({ledger.secret.derive("test") for ledger in found}) == 1
