"""Directories that the publishing user may not write to: refused in one line before the charge, as no superuser."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from depth import thin

NOBODY = 65534
FILE = """
[data]
source = "{date}.csv"
ledger = "LEDGER"
[budget]
epsilon = 2
[[question]]
name = "views"
counts = ["page"]
keys = ["/a"]
epsilon = 2
plot = false
[[sink]]
directory = "closed/{date}"
"""
AS = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
ROOT = Path(__file__).parents[2]


def run(home, *command):
    """A Python process of an ordinary user."""
    return subprocess.run(
        [*AS, sys.executable, *command], cwd=home, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


@pytest.fixture
def home():
    """A directory of that user, in one that everyone may enter."""
    if AS and shutil.which(AS[0]) is None:
        pytest.skip("setpriv, which runs a command as another user, is not installed")
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    own = place / "own"
    own.mkdir()
    try:
        if run(place, "-c", "import wpinq").returncode:
            pytest.skip("another user cannot run this Python")
        (own / "2026-11-21.csv").write_text("user,page\nann,/a\n")
        if AS:
            os.chown(own, NOBODY, NOBODY)
        yield own
    finally:
        (own / "closed").chmod(0o755) if (own / "closed").exists() else None
        shutil.rmtree(place)


@thin(3)
@pytest.mark.parametrize("which", ["sink", "ledger"])
def test_a_place_without_permission_is_refused_before_the_charge(home, which):
    (home / "closed").mkdir(mode=0o755)
    (home / "closed").chmod(0o555)
    ledger = "closed/ledger" if which == "ledger" else "ledger"
    text = FILE.replace("LEDGER", ledger)
    (home / "site.toml").write_text(text if which == "sink" else text.replace('"closed/{date}"', '"out/{date}"'))
    command = ("-m", "wpinq", "publish", "run", "site.toml", "--period", "2026-11-21")
    done = run(home, *command)
    assert done.returncode == 2, done
    assert len(done.stderr.strip().splitlines()) == 1
    assert "closed" in done.stderr
    assert "cannot be written" in done.stderr
    assert not (home / ledger).exists(), "nothing was charged"
    if AS:
        os.chown(home / "closed", NOBODY, NOBODY)
    (home / "closed").chmod(0o755)
    done = run(home, *command)
    assert (done.returncode, done.stdout) == (0, "2026-11-21: published, epsilon 2.\n"), done.stderr
