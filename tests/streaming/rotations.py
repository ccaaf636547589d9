"""A log at full speed, rotated by renaming and by copying, followed by a process that is killed again and again.

`python tests/streaming/rotations.py --lines 1000000 --rate 50000 --rotations 40 --kills 10` writes numbered lines at a
rate, rotates the log now by renaming it and now by copying and cutting it, kills the follower, and says how many lines
were read never or twice. The follower keeps positions and lines in one SQLite transaction, as a journal does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

FOLLOW = """
import json, sqlite3, sys, time
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.streaming.file_tail import Growing

home, pattern, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])
with sqlite3.connect(home + "/kept.db", isolation_level=None) as kept:
    kept.execute("PRAGMA synchronous = NORMAL")
    kept.execute("CREATE TABLE IF NOT EXISTS lines (number INTEGER)")
    kept.execute("CREATE TABLE IF NOT EXISTS positions (one INTEGER PRIMARY KEY, told TEXT)")
    row = kept.execute("SELECT told FROM positions").fetchone()
    told, schema = [json.loads(row[0])] if row else [], Schema((Column("number", Kind.INT),))
    growing = Growing(home + "/" + pattern, schema, told, format="csv")
    while True:
        kept.execute("BEGIN")
        for frame in growing.take():
            kept.executemany("INSERT INTO lines VALUES (?)", frame.select("number").rows())
        kept.execute("INSERT OR REPLACE INTO positions VALUES (1, ?)", (json.dumps(growing.positions()),))
        kept.execute("COMMIT")
        print("looked", flush=True)
        time.sleep(pause)
"""


def shift(path: Path) -> None:
    """Move each rotated log one number on, as logrotate does."""
    numbers = sorted((int(one.suffix[1:]) for one in path.parent.glob(f"{path.name}.[0-9]*")), reverse=True)
    for number in numbers:
        path.with_name(f"{path.name}.{number}").rename(path.with_name(f"{path.name}.{number + 1}"))


class Log:
    """A log that is written to and rotated."""

    def __init__(self, path: Path) -> None:
        self.path, self.sent = path, 0
        self.path.write_text("number\n")
        self.file = path.open("a")

    def write(self, many: int) -> None:
        """Numbered lines; a CSV file whose header comes with each new file."""
        self.file.write("".join(f"{number}\n" for number in range(self.sent, self.sent + many)))
        self.file.flush()
        self.sent += many

    def rename(self, late: int) -> None:
        """Rename it, as most servers' logs are; what is being answered is still written to the old file."""
        shift(self.path)
        self.path.rename(self.path.with_name(f"{self.path.name}.1"))
        old = self.file
        self.path.write_text("number\n")
        self.file = self.path.open("a")
        new, self.file = self.file, old
        self.write(late)
        old.close()
        self.file = new

    def copy(self) -> None:
        """Copy and cut it. Nothing is written meanwhile: what a server writes then is dropped by logrotate."""
        shift(self.path)
        shutil.copyfile(self.path, self.path.with_name(f"{self.path.name}.1"))
        os.truncate(self.path, 0)
        self.file.write("number\n")
        self.file.flush()


def follower(home: Path, pattern: str, pause: float) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", FOLLOW, str(home), pattern, str(pause)], text=True,
                            stdout=subprocess.PIPE)  # fmt: skip


def tried(
    home: Path, *, lines: int, rate: float, rotations: int, kills: int, pattern: str = "access.csv", pause: float = 0.2,
    seed: int = 1,
) -> tuple[int, int, int]:  # fmt: skip
    """How many lines were written, read never, and read twice."""
    chance, log = random.Random(seed), Log(home / "access.csv")
    process = follower(home, pattern, pause)
    assert process.stdout is not None
    process.stdout.readline()  # it has begun
    steps = 10 * rotations
    turn = sorted(chance.sample(range(steps), rotations))
    killed = set(chance.sample(range(steps), kills))
    begin = time.monotonic()
    for step in range(steps):
        log.write((step + 1) * lines // steps - log.sent)
        if step in turn:
            log.rename(chance.randrange(50)) if turn.index(step) % 2 else log.copy()
        if step in killed:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
            process = follower(home, pattern, pause)
            assert process.stdout is not None
        time.sleep(max(0.0, begin + log.sent / rate - time.monotonic()))
    process.stdout.close()
    process.send_signal(signal.SIGKILL)
    process.wait()
    last = follower(home, pattern, 0.0)
    assert last.stdout is not None
    for _ in range(2):
        last.stdout.readline()
    last.kill()
    last.wait()
    last.stdout.close()
    log.file.close()
    with closing(sqlite3.connect(home / "kept.db")) as kept, kept:
        found = dict(kept.execute("SELECT number, COUNT(*) FROM lines WHERE number IS NOT NULL GROUP BY number"))
    return log.sent, log.sent - len(found), sum(many > 1 for many in found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, number in (("lines", 1_000_000), ("rate", 50_000), ("rotations", 40), ("kills", 10), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--pattern", default="access.csv")
    parser.add_argument("--pause", type=float, default=0.2)
    given = vars(parser.parse_args())
    with tempfile.TemporaryDirectory() as place:
        sent, lost, twice = tried(Path(place), **given)
    print(json.dumps({"lines": sent, "lost": lost, "twice": twice, **given}))
    sys.exit(bool(lost or twice))


if __name__ == "__main__":
    main()
