"""A publishing process may be killed anywhere: charged once, published whole, the same bytes. See kills.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import postgres


def killed(*options):
    """What kills.py finds, of a release's first day into two sinks."""
    command = [sys.executable, Path(__file__).with_name("kills.py"), "--sinks", "both", "--starts", "fresh", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    found = json.loads(done.stdout)
    assert not found["wrong"], found["wrong"][:5]
    assert done.returncode == 0
    return found


@pytest.mark.parametrize(("book", "stride", "least"), [("pure", "9", 12), ("rho", "29", 4)])
def test_killed_at_durable_steps_and_at_random_moments(book, stride, least):
    """Each ninth step of a release's first day into two sinks, and a few moments; the long mode does all of them."""
    found = killed("--stride", stride, "--book", book)
    assert found["kills"] >= least
    steps = {name.partition(": ")[2] for name in found["by"]}
    assert len(steps) >= 3 + 2 * (book == "pure"), steps


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--act", "accept", "--stride", "17"), ("--others", "--stride", "90")])
def test_killed_while_held_and_with_other_questions(options):
    """A few steps of each; the long mode has all of them, and periods that are charged again or made up for."""
    assert killed(*options)["kills"] >= 2


@pytest.mark.slow
def test_killed_before_any_word_to_postgres_it_is_there_once(tmp_path):
    """Before each statement, the commit and what comes after it; `kills_postgres.py` is what does it."""
    script = Path(__file__).with_name("kills_postgres.py")
    with postgres() as url:
        command = [sys.executable, script, url, tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert not found["wrong"], found["wrong"][:3]
    assert found["killed"] >= 8
