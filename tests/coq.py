"""Coq for tests: compiles the proofs of `tests/proofs`, away from the sources, and says what each theorem assumes."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

PROOFS = Path(__file__).parent / "proofs"


@cache
def theorems() -> dict[str, list[str]]:
    """For each file of proofs the names of its theorems."""
    return {
        path.stem: re.findall(r"^Theorem (\w+)", path.read_text(), re.MULTILINE) for path in sorted(PROOFS.glob("*.v"))
    }


def needed() -> None:
    """Skip where there is no Coq."""
    if shutil.which("coqc") is None:
        pytest.skip("no Coq is installed; .ci/proofs installs it")


def run(command: list[str], place: Path) -> str:
    """What a command prints; fails with its errors."""
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def compiled(place: Path) -> Path:
    """Compile all proofs in a directory, each after what it needs."""
    for path in PROOFS.glob("*.v"):
        shutil.copy(path, place)
    names = sorted(path.name for path in place.glob("*.v"))
    for name in run(["coqdep", "-sort", "-Q", ".", "Proofs", *names], place).split():
        run(["coqc", "-q", "-Q", ".", "Proofs", name], place)
    return place


def assumptions(place: Path) -> str:
    """What all theorems of the compiled proofs together assume, in Coq's words."""
    every = [f"@{file}.{name}" for file, names in theorems().items() for name in names]
    lines = [f"From Proofs Require {file}." for file in theorems()]
    lines += [f"Definition every := ({', '.join(every)}).", "Print Assumptions every."]
    (place / "Assumed.v").write_text("\n".join(lines))
    return run(["coqc", "-q", "-Q", ".", "Proofs", "Assumed.v"], place).strip()
