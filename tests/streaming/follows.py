"""Hosts that follow a release, and workers that read for them: forked from one process, which has loaded all they need.

Standard input holds a JSON object a line, of what is to be started; its process number is printed. All end with this
process. A host goes by a clock in a file, and where its turn comes to keep the stream it takes the next of some plans:
"take before" kills it (SIGKILL) before it has committed pieces, "close after" after it has closed a period, and so on.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

KEYS = ["/a", "/b"]
COLUMNS = {"user": "text", "page": "text", "time": "timestamp"}
FIRST = "2021-11-21T09"
COST = 1001


def declared(ledger: str, source: str, out: str, **stream: Any) -> dict[str, Any]:
    """A release of two questions, one of which has next to no noise."""
    questions = [{"name": name, "counts": ["page"], "keys": KEYS, "epsilon": epsilon, "plot": False}
                 for name, epsilon in (("exact", COST - 1), ("noisy", 1))]  # fmt: skip
    return {
        "data": {"source": source, "ledger": ledger, "unit": {"column": "user", "at_most": 1}, "columns": COLUMNS},
        "stream": {"at": "time", "lateness": 60, **stream}, "period": {"every": "hour", "first": FIRST},
        "budget": {"epsilon": 10**6}, "question": questions,
        "sink": [{"directory": f"{out}/{{date}}"}], "checks": {"totals": False, "keys": False},
    }  # fmt: skip


def plans(told: dict[str, Any]) -> None:
    """Let each keeper take the next plan."""
    from wpinq.apps.publish.streams.spool_database import Database
    from wpinq.streaming.shared.keeper import Keeper

    doing, plan = "", ""
    begun, acted, entered, closed = Database.__init__, Keeper.act, Database.enter, Database.close

    def begins(self: Database, *words: Any) -> None:
        nonlocal plan
        begun(self, *words)
        turn = Path(told["turns"]).stat().st_size
        with Path(told["turns"]).open("a") as turns:
            turns.write(".")
        plan = told["plans"][turn] if turn < len(told["plans"]) else ""

    def enters(self: Database, facts: Any) -> None:
        nonlocal doing
        doing = "take" if self._pending else ""
        entered(self, facts)

    def closes(self: Database, *words: Any) -> None:
        nonlocal doing
        doing = "close"
        closed(self, *words)

    @contextmanager
    def acts(self: Keeper, head: str) -> Iterator[Any]:
        with acted(self, head) as database:
            yield database
            if plan == f"{doing} before":
                os.kill(os.getpid(), signal.SIGKILL)
        if plan == f"{doing} after":
            os.kill(os.getpid(), signal.SIGKILL)

    Database.__init__, Database.enter, Database.close, Keeper.act = begins, enters, closes, acts  # type: ignore[assignment, method-assign]


def host(told: dict[str, Any], parent: int) -> None:
    """Follow until the process ends that started this one."""
    from wpinq.apps.publish import Release
    from wpinq.apps.publish.streams.spool_database import Database
    from wpinq.errors import WpinqError

    Database.__init__.__defaults__ = (told["seconds"],)
    plans(told)
    clock, home = Path(told["clock"]), Path(told["home"])
    home.mkdir(exist_ok=True)

    def now() -> dt.datetime:
        time = clock.read_text()
        (home / "now").write_text(time)
        return dt.datetime.fromisoformat(time).replace(tzinfo=dt.UTC)

    release, follower = Release(told["release"], "site", home, clock=now), None
    while os.getppid() == parent:
        with suppress(WpinqError):
            follower = follower or release.follow(workers=0)
            for one in follower.step():
                with Path(told["said"]).open("a") as said:
                    said.write(f"{one}\n")
        time.sleep(0.02)


def work(told: dict[str, Any], parent: int) -> None:
    """Read for a stream until the process ends that started this one."""
    from wpinq.streaming.shared import worker

    stop = threading.Event()
    threading.Thread(target=worker.work, args=(told, stop), daemon=True).start()
    while os.getppid() == parent:
        time.sleep(0.05)


class Forks:
    """The process from which hosts and workers are forked."""

    def __init__(self) -> None:
        path = [str(Path(__file__).parents[1]), *sys.path]
        self._process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(path),
                                                         "WPINQ_SECRET": bytes(range(32)).hex()})  # fmt: skip
        self.running: list[int] = []

    def start(self, kind: str, **told: Any) -> int:
        """Start a "host" or a worker ("work"); its process number."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"kind": kind, **told}) + "\n")
        self._process.stdin.flush()
        self.running.append(int(self._process.stdout.readline()))
        return self.running[-1]

    @staticmethod
    def lives(number: int) -> bool:
        """Whether a process has not ended."""
        return Path(f"/proc/{number}").exists()

    def close(self) -> None:
        """End all."""
        for number in self.running:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def main() -> None:
    """Fork what each line says."""

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that end
    parent = os.getpid()
    for line in sys.stdin:
        told = json.loads(line)
        number = os.fork()
        if not number:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            (host if told.pop("kind") == "host" else work)(told, parent)
            os._exit(0)
        print(number, flush=True)


if __name__ == "__main__":
    main()
