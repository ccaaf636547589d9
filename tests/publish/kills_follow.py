"""Following, killed (SIGKILL) at every durable step, over a log that grows or a topic, and started again.

python tests/publish/kills_follow.py --kills 300 [--topic]

Three looks at a stream publish two hours. Before each look records come; the one that is killed is begun again at the
same time of the clock. No record may be lost or counted twice, which an answer with next to no noise shows; each hour
is charged once; and what readers have seen of it, noise included, is what all sinks show in the end.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import importlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from kills import ROOT, Steps, calm, ended, forked, published

KEYS = ["/a", "/b"]
QUESTIONS = [{"name": name, "counts": ["page"], "keys": KEYS, "epsilon": epsilon, "plot": False}
             for name, epsilon in (("exact", 1000), ("noisy", 1))]  # fmt: skip
BUDGET, LEFT = 6 * 1001, 4 * 1001
LOOKS = (
    ("09:30", [("/a", "09:10"), ("/b", "09:20"), ("/a", "10:00")]),
    ("10:01", [("/a", "09:40"), ("/b", "10:20")]),
    ("11:01", [("/a", "10:30"), ("/a", "09:50")]),
)
"""Of each look its time, and page and time of what came before it; the last record is too late."""
WANTED = {"2026-11-21T09": {"/a": 2, "/b": 1}, "2026-11-21T10": {"/a": 2, "/b": 1}}
BROKER = """
import sys, confluent_kafka
producer = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0})
broker = next(f"{one.host}:{one.port}" for one in producer.list_topics(timeout=10).brokers.values())
print(broker, flush=True)
for line in sys.stdin:
    topic, message = line.rstrip("\\n").split("\\t")
    producer.produce(topic, message)
    assert producer.flush(10) == 0
    print("sent", flush=True)
"""


class Broker:
    """A broker in a process of its own: one that is forked later must have no threads."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", BROKER]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self._said()

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def send(self, topic: str, message: str) -> None:
        """Append to a topic."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{topic}\t{message}\n")
        self._process.stdin.flush()
        assert self._said() == "sent"

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def look(home: Path, source: str, now: str, fatal: int) -> None:
    """Open the stream, take in what came, publish what is closed; killed on the way, if that is wanted."""
    from wpinq.apps.publish import Release

    calm()
    steps = Steps(fatal)
    steps.watch()
    clock = dt.datetime.fromisoformat(f"2026-11-21T{now}:00+00:00")
    release = Release(
        {
            "data": {"source": source, "ledger": "ledger", "unit": {"column": "user", "at_most": 3},
                     "columns": {"user": "text", "page": "text", "time": "timestamp"}},
            "stream": {"at": "time", "lateness": 60, "keep": 1}, "period": {"every": "hour", "first": "2026-11-21T09"},
            "budget": {"epsilon": BUDGET},
            "question": QUESTIONS,
            "sink": [{"directory": "out/{date}", "formats": ["csv"]}, {"sqlite": "out.sqlite"}],
        }, "site", home, clock=lambda: clock,
    )  # fmt: skip
    follower = release.follow()
    errors = [str(one) for one in follower.step() if isinstance(one, Exception)]
    follower.close()
    told = {"steps": list(steps.done), "left": str(release.funds().left), "errors": errors}
    (home.parent / "said").write_text(json.dumps(told))
    (home.parent / "modules").write_text("\n".join(sys.modules))


class Story:
    """A stream that comes and is looked at. The first telling is not killed; every other one is compared with it."""

    def __init__(self, place: Path, broker: Broker | None) -> None:
        self.place, self.home, self.broker = place, place / "home", broker
        self.names, self.kills = itertools.count(), 0
        self.whole: dict[str, Any] = {}
        self.steps: list[list[str]] = [[] for _ in LOOKS]
        self.seconds = [0.0 for _ in LOOKS]
        wrong = self.told({})
        assert not wrong, wrong
        self.whole = published(self.home)
        for module in (place / "modules").read_text().split():  # what is imported here, no child imports
            with contextlib.suppress(ImportError):
                if "confluent" not in module:
                    importlib.import_module(module)
        self.told({})  # which takes as long as all that follow

    def told(self, kills: dict[int, list[int | float]]) -> list[str]:
        """Tell it, with kills before steps or after seconds of some looks. What is wrong?"""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        self.seen: dict[str, Any] = {}
        source = "views.csv"
        if self.broker is not None:
            source = f"kafka://{self.broker.address}/views{next(self.names)}"
        else:
            (self.home / source).write_text("user,page,time\n")
        wrong: list[str] = []
        for number, (now, views) in enumerate(LOOKS):
            self._come(source, views[:-1])
            for kill in kills.get(number, ()):
                wrong += [f"look {number}, {kill}: {one}" for one in self._killed(source, now, kill)]
            self._come(source, views[-1:])  # one comes while nobody looks
            begun = time.monotonic()
            (self.place / "said").unlink(missing_ok=True)
            code = ended(self._look(source, now, 0))
            if code:
                return [*wrong, f"look {number} after {kills}: {(self.place / 'log').read_text()[-700:]}"]
            said = json.loads((self.place / "said").read_text())
            wrong += said["errors"] + self._half()
            if not kills:
                self.steps[number], self.seconds[number] = said["steps"], time.monotonic() - begun
        wrong += [f"{said['left']} is left"] * (said["left"] != str(LEFT))
        return wrong + self._other(published(self.home))

    def _come(self, source: str, views: list[tuple[str, str]]) -> None:
        for page, at in views:
            user, stamp = f"u{page}{at}", f"2026-11-21 {at}:00"
            if self.broker is not None:
                message = json.dumps({"user": user, "page": page, "time": stamp})
                self.broker.send(source.rpartition("/")[2], message)
            else:
                with (self.home / source).open("a") as log:
                    log.write(f"{user},{page},{stamp}\n")

    def _look(self, source: str, now: str, fatal: int) -> int:
        return forked(lambda: look(self.home, source, now, fatal), self.place / "log")

    def _killed(self, source: str, now: str, kill: float) -> list[str]:
        """Kill a look before a step, or after seconds."""
        number = self._look(source, now, kill if isinstance(kill, int) else 0)
        if isinstance(kill, float):
            time.sleep(kill)
            os.kill(number, signal.SIGKILL)
        code = ended(number)
        self.kills += code == -signal.SIGKILL
        return [f"ended with {code}"] * (code not in (0, -signal.SIGKILL)) + self._half()

    def _half(self) -> list[str]:
        """Whether readers see a part of an hour, or what they saw is gone: each sink shows all of it or nothing."""
        seen, wrong = published(self.home), []
        wrong += [f"{name} changed" for name, content in self.seen.items() if seen.get(name) != content]
        self.seen = seen
        for hour in WANTED if self.whole else ():
            for own in ("/", " "):
                wanted = {name for name in self.whole if name.startswith(hour) and own in name}
                there = {name for name in seen if name.startswith(hour) and own in name}
                wrong += [f"half published: {sorted(there)}"] * bool(there and there != wanted)
        return wrong

    def _other(self, seen: dict[str, Any]) -> list[str]:
        """What is published otherwise than it should be."""
        wrong = [f"left behind: {path}" for path in (self.home / "out").glob(".*")]
        for hour, wanted in WANTED.items():
            lines = {name: seen.get(f"{hour}/{name}.csv", b"").decode().split()[1:] for name in ("exact", "noisy")}
            rows = {
                name: [",".join(map(str, row[1:])) for row in seen.get(f"{hour} site_{name}", [])] for name in lines
            }
            exact = [f"{page},{count}" for page, count in wanted.items()]
            wrong += [f"{hour}: {lines}, {rows}"] * (
                lines != rows or [line.rsplit(",", 2)[0] for line in lines["exact"]] != exact or len(rows["noisy"]) != 2
            )
        return wrong + [f"{name} is there or not" for name in seen.keys() ^ (self.whole or seen).keys()]


def main() -> int:
    """Kill, and print as JSON what was killed how often and what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=0, help="so many at random moments, beside those at steps")
    parser.add_argument("--stride", type=int, default=1, help="each so many of the steps only; 0 for none")
    parser.add_argument("--together", action="store_true", help="one after the other in one telling: for the suite")
    parser.add_argument("--topic", action="store_true", help="a topic of Kafka, not a log")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    many, wrong, draw = Counter[str](), list[str](), random.Random(asked.seed)
    broker = Broker() if asked.topic else None
    with tempfile.TemporaryDirectory(prefix="wpinq-kills-") as name:
        story = Story(Path(name), broker)
        where = [(number, fatal) for number, steps in enumerate(story.steps) for fatal in range(1, len(steps) + 1)]
        steps = where[:: asked.stride] if asked.stride else []
        many.update(f"look {number}: {story.steps[number][fatal - 1]}" for number, fatal in steps)
        for some in [steps] if asked.together else [[one] for one in steps]:
            wrong += story.told({number: [fatal for other, fatal in some if other == number] for number, _ in some})
        wanted = story.kills + asked.kills
        while story.kills < wanted:
            kills: dict[int, list[int | float]] = {}
            for _ in range(draw.randint(1, 5)):
                number = draw.randrange(len(LOOKS))
                kills.setdefault(number, []).append(draw.random() * story.seconds[number])
            wrong += story.told(kills)
    if broker is not None:
        broker.end()
    json.dump({"kills": story.kills, "by": many, "wrong": wrong}, sys.stdout, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
