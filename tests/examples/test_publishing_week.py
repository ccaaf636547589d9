"""The week of a site is told as it is: what was published, held, changed and refused, and what is left."""

import os
import subprocess
import sys
from pathlib import Path

from depth import deep

ROOT = Path(__file__).parents[2]


@deep
def test_a_week_of_a_site(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.publishing_week", str(tmp_path / "new")],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout
    assert "the budget lasts for 6 days" in said
    assert said.count(": published\n") == 6
    assert "2026-03-05: was published before" in said
    assert "HeldError: 2026-03-06: held back: views: views sums to about" in said  # noise explains it below 1e-8
    assert "for the curator: 2026-03-06" in said
    assert "BudgetError" in said
    assert "2026-03-02 computed anew: the same" in said
    assert "2026-03-08 refused" in said
