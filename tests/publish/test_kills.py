"""A publishing process may be killed anywhere: charged once, published whole, the same bytes. See kills.py."""

import json
import sys
from pathlib import Path

import processes
import pytest
from depth import DEEP, deep, deeper

from tests.servers import postgres

WAYS = {
    "pure": ("--stride", "9" if DEEP else "26", "--book", "pure"),
    "rho": ("--stride", "19", "--book", "rho"),
    "held": ("--act", "accept", "--stride", "17"),
    "deliver": ("--act", "deliver", "--stride", "7"),
    "others": ("--others", "--stride", "90"),
}


@deeper
def test_killed_at_durable_steps():
    """Some steps of a release's first day into two sinks; the deep run has a few of each other way, the long mode all.

    It has periods that are charged again or made up for too. One process imports what a release needs, for all.
    """
    words = [sys.executable, Path(__file__).with_name("kills.py")]
    ways = WAYS if DEEP else {way: WAYS[way] for way in ("pure", "deliver")}
    for number, way in enumerate(ways.values()):
        words += [*(["+"] if number else []), "--sinks", "both", "--starts", "fresh", *way]
    done = processes.run(words, capture_output=True, text=True, check=False, timeout=280)
    found = dict(zip(ways, map(json.loads, done.stdout.splitlines()), strict=True))
    assert not any(one["wrong"] for one in found.values()), {way: one["wrong"][:5] for way, one in found.items()}
    assert done.returncode == 0
    pure = (12, 5) if DEEP else (2, 2)
    for way, kills, kinds in (("pure", *pure), ("rho", 4, 3), ("held", 2, 1), ("deliver", 3, 2), ("others", 2, 1)):
        if way in ways:
            assert found[way]["kills"] >= kills
            assert len({name.partition(": ")[2] for name in found[way]["by"]}) >= kinds


@deep
@pytest.mark.slow
def test_killed_before_any_word_to_postgres_it_is_there_once(tmp_path):
    """Before each statement, the commit and what comes after it; `kills_postgres.py` is what does it."""
    script = Path(__file__).with_name("kills_postgres.py")
    with postgres() as url:
        command = [sys.executable, script, url, tmp_path]
        done = processes.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert not found["wrong"], found["wrong"][:3]
    assert found["killed"] >= 8


@deep
@pytest.mark.slow
def test_no_record_that_an_intake_acknowledged_is_lost_or_counted_twice():
    """Killed at random moments while it takes, publishes and destroys; `kills_intake.py` does it."""
    script = Path(__file__).with_name("kills_intake.py")
    command = [sys.executable, script, "--stories", "1", "--kills", "4"]
    done = processes.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0 and "4 kills: well" in done.stdout, done.stdout + done.stderr[-2000:]
