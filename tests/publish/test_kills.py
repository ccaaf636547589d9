"""A publishing process may be killed anywhere: charged once, published whole, the same bytes. See kills.py."""

import json
import subprocess
import sys
from pathlib import Path


def test_killed_at_durable_steps_and_at_random_moments(tmp_path):
    """Each ninth step of a release's first day into two sinks, and a few moments; the long mode does all of them."""
    command = [sys.executable, Path(__file__).with_name("kills.py"), "--sinks", "both", "--starts", "fresh",
               "--stride", "9"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    found = json.loads(done.stdout)
    assert not found["wrong"], found["wrong"][:5]
    assert done.returncode == 0
    assert found["kills"] >= 12
    steps = {name.partition(": ")[2] for name in found["by"]}
    assert len(steps) >= 5, steps
