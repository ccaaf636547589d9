"""A publishing process may be killed anywhere: charged once, published whole, the same bytes. See kills.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("book", "stride", "least"), [("pure", "9", 12), ("rho", "29", 4)])
def test_killed_at_durable_steps_and_at_random_moments(book, stride, least):
    """Each ninth step of a release's first day into two sinks, and a few moments; the long mode does all of them."""
    command = [sys.executable, Path(__file__).with_name("kills.py"), "--sinks", "both", "--starts", "fresh",
               "--stride", stride, "--book", book]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    found = json.loads(done.stdout)
    assert not found["wrong"], found["wrong"][:5]
    assert done.returncode == 0
    assert found["kills"] >= least
    steps = {name.partition(": ")[2] for name in found["by"]}
    assert len(steps) >= 3 + 2 * (book == "pure"), steps
