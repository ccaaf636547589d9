"""An intake, killed (SIGKILL) at random moments while records are sent, while it publishes and while it destroys.

python tests/publish/kills_intake.py --stories 20

Clients send each record until it is acknowledged, and some of them once more, under one key. Every record that was
acknowledged before its period closed is in the answer, which has next to no noise, once; one that was sent and not
acknowledged is there once or not at all; and at the end no key and no
record of the period is left, and each question was charged once.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import suppress
from pathlib import Path

FEATURES = [f"f{number}" for number in range(5)]
FILE = """
[data]
listen = "127.0.0.1:{port}"
columns = {{ install = "text", feature = "text", time = "instant" }}
unit = {{ column = "install", at_most = 3 }}
ledger = "ledger"
[stream]
at = "time"
lateness = {lateness}
every = 0.2
[intake]
requests = 0
[period]
every = "hour"
first = "{first}"
[budget]
epsilon = 3000
[[question]]
name = "features"
counts = ["feature"]
keys = {keys}
epsilon = 1000
plot = false
[[sink]]
directory = "out/{{date}}"
"""


class Story:
    """One period: records are sent for some seconds, then it closes."""

    def __init__(self, home: Path, chance: random.Random, *, seconds: float, kills: int, clients: int) -> None:
        self.home, self.chance, self.seconds, self.kills, self.clients = home, chance, seconds, kills, clients
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        now = dt.datetime.now(dt.UTC)
        over = now.replace(minute=0, second=0, microsecond=0)
        self.period = f"{over - dt.timedelta(hours=1):%Y-%m-%dT%H}"
        self.time = (over - dt.timedelta(minutes=30)).isoformat()
        self.end = time.time() + seconds
        lateness = (now - over).total_seconds() + seconds + 3
        text = FILE.format(port=self.port, lateness=lateness, first=self.period, keys=json.dumps(FEATURES))
        (home / "t.toml").write_text(text)
        self.held, self.maybe = Counter[str](), Counter[str]()
        self.lock = threading.Lock()

    def told(self) -> str:
        """What is wrong, if anything is."""
        threads = [threading.Thread(target=self._client, args=(number,), daemon=True) for number in range(self.clients)]
        run = self._started()
        for thread in threads:
            thread.start()
        killed, published = 0, self.home / "out" / self.period / "features.csv"
        until = time.time() + self.seconds + 60
        while time.time() < until and not (published.exists() and killed >= self.kills and not self._keys()):
            time.sleep(self.chance.uniform(0.05, 2 * (self.seconds + 6) / max(self.kills, 1)))
            if killed < self.kills:
                run.send_signal(signal.SIGKILL)
                run.wait()
                killed, run = killed + 1, self._started()
        run.send_signal(signal.SIGTERM)
        if run.wait(30) not in (0, 2, -signal.SIGTERM):  # the last where it had not begun to listen for signals
            return f"ended with {run.returncode}"
        if not published.exists():
            return f"nothing was published: {(self.home / 'log').read_text()[-500:]}"
        rows = {row["feature"]: round(float(row["count"])) for row in csv.DictReader(published.open())}
        if any(not 0 <= rows[name] - self.held[name] <= self.maybe[name] for name in FEATURES):
            return f"{dict(self.held)} were acknowledged and {rows} are counted"
        return "keys are left" if self._keys() else self._charged()

    def _keys(self) -> list[Path]:
        return list((self.home / "ledger.intake" / "t" / "keys").glob(f"{self.period}*"))

    def _charged(self) -> str:
        command = [sys.executable, "-m", "wpinq", "ledger", "show", str(self.home / "ledger"), "--json"]
        told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        charges = [row for row in told["entries"] if row["kind"] == "charge" and self.period in row["version"]]
        return "" if len(charges) == 1 else f"{len(charges)} charges"

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "wpinq", "publish", "follow", str(self.home / "t.toml")]
        with (self.home / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=Path(__file__).parents[2])

    def _client(self, number: int) -> None:
        chance, sent = random.Random(number), 0
        while time.time() < self.end:
            feature = chance.choice(FEATURES)
            record = {"install": f"{number} {sent}", "feature": feature, "time": self.time}
            times, acknowledged = chance.choice((1, 1, 2)), False
            while times:
                if self._posted(record, f"{sent}"):
                    times, acknowledged = times - 1, True
                elif time.time() > self.end + 2:  # the period may be closed by now
                    break
            with self.lock:
                (self.held if acknowledged else self.maybe)[feature] += 1
            sent += 1

    def _posted(self, record: dict[str, str], key: str) -> bool:
        url, body = f"http://127.0.0.1:{self.port}/", json.dumps(record).encode()
        with suppress(OSError, urllib.error.URLError):
            request = urllib.request.Request(url, body, {"Idempotency-Key": key})
            with urllib.request.urlopen(request, timeout=5) as found:
                return bool(found.status == 204)
        time.sleep(0.05)
        return False


def main() -> None:
    """Tell stories."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--stories", type=int, default=5)
    words.add_argument("--kills", type=int, default=5)
    words.add_argument("--seconds", type=float, default=15)
    words.add_argument("--clients", type=int, default=8)
    words.add_argument("--seed", type=int, default=1)
    given = words.parse_args()
    for number in range(given.stories):
        with tempfile.TemporaryDirectory() as home:
            chance = random.Random(given.seed + number)
            story = Story(Path(home), chance, seconds=given.seconds, kills=given.kills, clients=given.clients)
            wrong = story.told()
            print(f"story {number}: {sum(story.held.values()):,} acknowledged, {given.kills} kills: {wrong or 'well'}")
            if wrong:
                sys.exit(1)


if __name__ == "__main__":
    main()
