"""Put small faults into the rooms that carry the guarantee, one by one, and count those that a test finds.

    python tests/mutation/run.py [--sample 160] [--seed 0] [--room noise] [--json OUT]   faults drawn by a fixed seed
    python tests/mutation/run.py --plants [NAME]          the named faults of `plants.py`, each by its named test
    python tests/mutation/run.py --smoke                  a fault and a plant, in seconds
    python tests/mutation/run.py --only FILE:LINE         all faults of one line

It works on a copy of the project, so that nothing here is changed, and runs the tests of the fault's room alone: those
first that name its module.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from mutants import Mutant, mutants  # noqa: E402
from plants import PLANTS  # noqa: E402
from rooms import ROOMS, SHARE  # noqa: E402

from wpinq.testing.checks.plants import planted  # noqa: E402

ROOT = HERE.parents[1]
SECONDS, EACH = 1800, 120
"""A run of a room's tests, and one test, take less on a busy machine; a test that takes longer has found a fault."""


class Copy:
    """A copy of the project, in which a file can be replaced for one run of some tests."""

    def __init__(self, place: Path) -> None:
        self.root = place / "copy"
        left_out = shutil.ignore_patterns("__pycache__", ".*", "out")
        shutil.copytree(ROOT, self.root, ignore=left_out)

    def run(self, tests: list[str], **options: str) -> tuple[str, str]:
        """What became of some tests: "passed", or "failed", "no end" or "broke", and the first test that failed."""
        command = [
            sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", "-o",
            f"timeout={EACH}", *tests,
        ]  # fmt: skip
        env = {**os.environ, "WPINQ_TESTS": "all", "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        env |= options
        with tempfile.TemporaryFile("w+") as said:
            one = subprocess.Popen(command, cwd=self.root, env=env, stdout=said, stderr=said, start_new_session=True)
            try:
                code = one.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(one.pid, signal.SIGKILL)
                one.wait()
                return "no end", ""
            said.seek(0)
            text = said.read()
        first = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
        if code in (4, 5):
            return "broke", text[-300:]
        return ("passed", "") if code == 0 else ("failed", first[1] if first else text[-300:])

    def with_fault(self, file: str, source: str, tests: list[str]) -> tuple[str, str]:
        """The same with another text of one file."""
        path = self.root / file
        before = path.read_text()
        path.write_text(source)
        try:
            return self.run(tests)
        finally:
            path.write_text(before)


def tests_of(root: Path, file: str, room: str) -> list[str]:
    """The test files of a room: the examples of the module, then those that name it most often."""
    stem = Path(file).stem
    files = sorted({path for pattern in ROOMS[room].tests for path in root.glob(pattern)})
    told = {path: path.read_text() for path in files}

    def rank(path: Path) -> tuple[bool, int]:
        return stem not in path.stem, -len(re.findall(rf"\b{stem}\b|{stem}", told[path]))

    return [file, *(str(path.relative_to(root)) for path in sorted(files, key=rank))]


def drawn(count: int, seed: int, only: str | None) -> list[tuple[str, Mutant]]:
    """Faults of all rooms, by their shares, the same for one seed and one text of the modules; rooms take turns."""
    found: list[tuple[float, str, Mutant]] = []
    for room, one in ROOMS.items():
        if only is not None and room != only:
            continue
        files = sorted({str(path.relative_to(ROOT)) for pattern in one.files for path in ROOT.glob(pattern)})
        every = [mutant for file in files for mutant in mutants(ROOT, file)]
        share = round(count * (1 if only else SHARE[room]))
        some = random.Random(seed).sample(every, min(share, len(every)))
        found += [(place / len(some), room, mutant) for place, mutant in enumerate(some)]
    return [(room, mutant) for _, room, mutant in sorted(found, key=lambda one: one[0])]


def work(copy: Copy, chosen: list[tuple[str, Mutant]], out: Path | None) -> int:
    """Try faults one by one; print each, and write what became of it; what is written is not done again.

    Returns how many nothing found.
    """
    results = json.loads(out.read_text()) if out and out.exists() else []
    known = {one["fault"] for one in results}
    for number, (room, mutant) in enumerate(chosen, start=1):
        if mutant.name in known:
            continue
        begun = time.monotonic()
        became, test = copy.with_fault(mutant.file, mutant.source, tests_of(copy.root, mutant.file, room))
        results.append({"fault": mutant.name, "room": room, "became": became, "by": test})
        spent = time.monotonic() - begun
        print(f"{number}/{len(chosen)} {spent:5.1f} s {became:7} {mutant.name}  {test}", flush=True)
        if out:
            out.write_text(json.dumps(results, indent=1))
    for room in dict.fromkeys(room for room, _ in chosen):
        own = [one for one in results if one["room"] == room]
        left = sum(one["became"] != "failed" for one in own)
        print(f"{room}: {len(own) - left} of {len(own)} found ({1 - left / max(len(own), 1):.1%})")
    return sum(one["became"] != "failed" for one in results)


def show_plants(copy: Copy, names: list[str]) -> int:
    """Put the named faults in, and run the test that is named for each. Returns how many it did not find."""
    missed = 0
    for name in names:
        plant = PLANTS[name]
        became, test = copy.with_fault(plant.file, planted(ROOT, plant), [plant.test])
        good = became == "failed"
        missed += not good
        print(f"{'found ' if good else 'MISSED'} {name:28} {plant.what}: {test or became}", flush=True)
    print(f"{len(names) - missed} of {len(names)} plants found")
    return missed


def main() -> int:
    """Run what the command line asks for; 1 where a plant was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", choices=list(ROOMS))
    parser.add_argument("--plants", nargs="?", const="")
    parser.add_argument("--only", metavar="FILE:LINE")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        copy = Copy(Path(place))
        if asked.smoke:
            one = next(one for one in mutants(ROOT, "wpinq/core/noise/words.py") if "//" in one.what or "<" in one.what)
            return work(copy, [("noise", one)], None) or show_plants(copy, [next(iter(PLANTS))])
        if asked.plants is not None:
            return 1 if show_plants(copy, [asked.plants] if asked.plants else list(PLANTS)) else 0
        chosen = drawn(asked.sample, asked.seed, asked.room)
        if asked.only:
            file, _, line = asked.only.rpartition(":")
            room = next(name for name, one in ROOMS.items() if any(Path(file).match(pattern) for pattern in one.files))
            chosen = [(room, one) for one in mutants(ROOT, file) if one.line == int(line)]
        work(copy, chosen, asked.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
