"""Coq for tests: compiles the proofs of `tests/proofs`, away from the sources, and says what each theorem assumes."""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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


def program(place: Path) -> Path:
    """The program that is made of the definitions; skips where there is no OCaml."""
    if not (place / "bridge").exists():
        pytest.skip("no OCaml is installed; .ci/proofs installs it")
    return place / "bridge"


def answers(program: Path, lines: list[str]) -> Iterator[list[list[str]]]:
    """What the program answers to each line: records and weights, as it writes them."""
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=True)
    for text in done.stdout.splitlines():
        yield [item.split(":") for item in text.split()]


def run(command: list[str], place: Path) -> str:
    """What a command prints; fails with its errors."""
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def compiled(place: Path) -> Path:
    """Compile all proofs in a directory, and the program that is made of their definitions.

    Several processes may ask for one directory: the first compiles, the others wait for it.
    """
    done = place / "done"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            _compile(place)
            done.touch()
    return place


def _compile(place: Path) -> None:
    for path in PROOFS.glob("*.v"):
        shutil.copy(path, place)
    names = sorted(path.name for path in place.glob("*.v"))
    made: dict[str, Future[str]] = {}

    def make(name: str) -> str:
        for files in re.findall(r"From Proofs Require (?:Import |Export )?(.*)\.\n", (place / name).read_text()):
            for file in files.split():
                made[f"{file}.v"].result()
        return run(["coqc", "-q", "-Q", ".", "Proofs", name], place)

    with ThreadPoolExecutor(2) as pool:
        for name in run(["coqdep", "-sort", "-Q", ".", "Proofs", *names], place).split():
            made[name] = pool.submit(make, name)  # after all that it needs, so none waits for one that waits for it
    for future in made.values():
        future.result()
    if shutil.which("ocamlopt"):
        shutil.copy(PROOFS / "bridge.ml", place)
        files = ["definitions.mli", "definitions.ml", "bridge.ml"]
        run(["ocamlopt", "-w", "-a", *files, "-o", "bridge"], place)


def assumptions(place: Path) -> str:
    """What all theorems of the compiled proofs together assume, in Coq's words."""
    every = [f"@{file}.{name}" for file, names in theorems().items() for name in names]
    lines = [f"From Proofs Require {file}." for file in theorems()]
    lines += [f"Definition every := ({', '.join(every)}).", "Print Assumptions every."]
    (place / "Assumed.v").write_text("\n".join(lines))
    return run(["coqc", "-q", "-Q", ".", "Proofs", "Assumed.v"], place).strip()
