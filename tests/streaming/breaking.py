"""A shared stream that is broken at random for as long as is wanted, and counted in the end.

python -m streaming.breaking [--times 500] [--seed 37]     (with PYTHONPATH=tests)

Two keepers and two workers, half of them behind a proxy and one of each with a clock that is an hour ahead. Then, so
many times: one of them is killed, or stopped for up to twice a lease and goes on; the database's server is killed and
started again; the proxy delays, swallows or cuts what passes; or a file is added, as a partition that is new. Lines are
written all the time. In the end each line must have been counted once, and no epoch answered in two ways.
"""

from __future__ import annotations

import argparse
import json
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Protocol
from urllib.parse import urlsplit

import processes
from servers import Cluster, memory

import wpinq
from wpinq.core.ledger.rows.secret import Secret

SECONDS = 0.8
"""How long a lease holds here."""
AHEAD = "import time as _t; _now, _ns = _t.time, _t.time_ns; _t.time = lambda: _now() + 3600; " \
        "_t.time_ns = lambda: _ns() + 3600 * 10**9\n"  # fmt: skip
KEEPER = """
import json, sys, time
import wpinq
import wpinq.streaming.shared.journal as journal
from wpinq.core.ledger.rows.secret import Secret
journal.SharedJournal.__init__.__defaults__ = (float(sys.argv[4]),)
ledger, path, out = sys.argv[1:4]
views = None
while views is None:
    try:
        views = wpinq.live({"user": "text", "page": "text"}, 10**7, ledger=ledger, recover=ledger,
                           secret=Secret(bytes(range(32))))
    except (wpinq.SourceError, wpinq.LedgerError):
        time.sleep(0.1)
pages = views.map("page").measure(500, continual=True)
noisy = views.map("page").measure(1, continual=True)
while True:
    views.follow(path, workers=0)
    views.advance()
    with open(out, "a") as file:
        answer = [views.epoch, pages.observe_many(["a", "b"]).tolist(), noisy.observe_many(["a", "b"]).tolist()]
        file.write(json.dumps(answer) + "\\n")
    time.sleep(0.02)
"""
WORKER = "import sys; from wpinq.streaming.shared.worker import main; sys.exit(main())"


class Proxy:
    """Passes bytes on to a port, unless it is told to delay, swallow or cut them; what was swallowed never comes."""

    def __init__(self, port: int) -> None:
        self._to, self.mode = port, "pass"
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.mode = "cut"
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(30)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self._to)) as server:
            others, lost = {client: server, server: client}, False
            while self.mode != "cut" and not (lost and self.mode != "swallow"):
                for one in select.select([client, server], [], [], 0.05)[0]:
                    if self.mode == "delay":
                        time.sleep(0.1)
                    data = one.recv(1 << 16)
                    if not data:
                        return
                    if self.mode == "swallow":
                        lost = True
                    elif not lost:
                        others[one].sendall(data)


class Breakable(Protocol):
    """What runs, is broken and goes on; settled, it says what is wrong, which is nothing where all is well."""

    draw: Random
    cluster: Cluster | None
    proxy: Proxy

    def write(self) -> None: ...
    def breaks(self) -> None: ...
    def revive(self) -> None: ...
    def settled(self) -> str: ...


def breaks_way(stream: Breakable, kind: str) -> None:
    """Kill the server and start it again, or let the proxy delay, swallow or cut for a while."""
    if kind == "server":
        assert stream.cluster is not None
        stream.cluster.kill()
        time.sleep(0.3 * stream.draw.random())
        stream.cluster.start()
    else:
        stream.proxy.mode = kind
        time.sleep(2 * SECONDS * stream.draw.random())
        stream.proxy.mode = "pass"


class Broken:
    """What runs, and what was written."""

    def __init__(self, url: str, folder: Path, seed: int, cluster: Cluster | None = None) -> None:
        self.draw, self.folder, self.cluster = Random(seed), folder, cluster
        self.out, self.written, self.did = folder / "answers", Counter[str](), Counter[str]()
        self.files = [folder / "views.csv"]
        self.files[0].write_text("user,page\n")
        port = urlsplit(url).port
        assert port
        self.proxy = Proxy(port)
        self.ledgers = [
            f"{each}?ledger=views&may_lose=crash&state={folder}/state"
            for each in (url, url.replace(f":{port}/", f":{self.proxy.port}/"))
        ]
        self.told = [self._home(ledger) for ledger in self.ledgers]
        self.running: list[subprocess.Popen[Any]] = []
        self.places: list[tuple[str, int]] = [(kind, way) for kind in ("keeper", "worker") for way in (0, 1)]
        self.running = [self._started(*place) for place in self.places]

    def _home(self, ledger: str) -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the anchor of this way to the server is new
            secret = Secret(bytes(range(32)))
            views = wpinq.live({"user": "text", "page": "text"}, 10**7, ledger=ledger, recover=ledger, secret=secret)
        with closing(views):
            assert views._journal is not None
            assert views._journal.parts is not None
            return views._journal.parts.home.told()

    def _started(self, kind: str, way: int, file: int = 0) -> subprocess.Popen[Any]:
        """A keeper or a worker; way 1 is behind the proxy, with a clock that is ahead."""
        ahead = AHEAD if way else ""
        if kind == "keeper":
            words = [self.ledgers[way], str(self.files[0]), str(self.out), str(SECONDS)]
            return processes.Popen([sys.executable, "-c", ahead + KEEPER, *words], stderr=subprocess.DEVNULL)
        process = processes.Popen([sys.executable, "-c", ahead + WORKER], stdin=subprocess.PIPE, text=True,
                                  stderr=subprocess.DEVNULL)  # fmt: skip
        source = {"pattern": str(self.files[file]), "form": {}, "history": False}
        told = {"home": self.told[way], "source": source, "every": 0.02, "seconds": SECONDS}
        assert process.stdin is not None
        process.stdin.write(json.dumps(told) + "\n")
        process.stdin.flush()
        return process

    def revive(self) -> None:
        """Start again what has ended."""
        for index, process in enumerate(self.running):
            if process.poll() is not None:
                if process.stdin is not None:
                    process.stdin.close()
                kind, way = self.places[index][:2]
                self.running[index] = self._started(kind, way, index - 3 if index > 3 else 0)

    def write(self) -> None:
        for _ in range(self.draw.randrange(20)):
            page = self.draw.choice("ab")
            self.written[page] += 1
            with self.draw.choice(self.files).open("a") as file:
                file.write(f"u,{page}\n")

    def breaks(self) -> None:
        """Do one of the things that go wrong."""
        kinds = ["kill", "freeze", "kill", "freeze", "delay", "swallow", "cut"]
        if self.cluster is not None:
            kinds += ["server"]
        if len(self.files) < 3:
            kinds += ["file"]
        kind = self.draw.choice(kinds)
        self.did[kind] += 1
        process = self.draw.choice(self.running)
        if kind == "kill":
            process.kill()
        elif kind == "freeze" and process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(2 * SECONDS * self.draw.random())
            process.send_signal(signal.SIGCONT)
        elif kind in ("delay", "swallow", "cut", "server"):
            breaks_way(self, kind)
        elif kind == "file":
            self.files.append(self.folder / f"more{len(self.files)}.csv")
            self.files[-1].write_text("user,page\n")
            self.places.append(("worker", 0))
            self.running.append(self._started("worker", 0, len(self.files) - 1))

    def settled(self, patience: float = 120) -> str:
        """What is wrong once what was written is counted, or the patience has ended; nothing where all is well."""
        end, expected = time.monotonic() + patience, [self.written["a"], self.written["b"]]
        while time.monotonic() < end:
            answers = self.answers()
            if answers and answers[-1][1] == expected:
                break
            self.revive()
            time.sleep(0.1)
        answers, by_epoch = self.answers(), dict[int, Any]()
        if not answers or answers[-1][1] != expected:
            return f"written {expected}, and answered {answers[-1:]}"
        for epoch, *values in answers:
            if by_epoch.setdefault(epoch, values) != values:
                return f"epoch {epoch} was answered in two ways"
        return ""

    def answers(self) -> list[list[Any]]:
        """The whole lines that keepers wrote, by epoch."""
        lines = self.out.read_text().splitlines(keepends=True) if self.out.exists() else []
        return sorted(json.loads(line) for line in lines if line.endswith("\n") and line.startswith("["))

    def __str__(self) -> str:
        epochs = len({answer[0] for answer in self.answers()})
        return f"{dict(self.did)}: {sum(self.written.values()):,} lines, {epochs:,} epochs answered"

    def close(self) -> None:
        self.proxy.close()
        for process in self.running:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()


@contextmanager
def running_server() -> Iterator[Cluster]:
    """A server that may be killed: it writes to the disk before it confirms."""
    with tempfile.TemporaryDirectory(prefix="wpinq-postgres-", dir=memory()) as folder:
        Path(folder).chmod(0o711)
        cluster = Cluster(Path(folder) / "server")
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


def broken(stream: Breakable, times: int) -> str:
    """Break it so many times; what is wrong in the end."""
    for _ in range(times):
        stream.write()
        time.sleep(0.4 * stream.draw.random())
        stream.breaks()
        stream.revive()
    return stream.settled()


def main(begin: Callable[[Cluster, Path, int], AbstractContextManager[Breakable]], times: int) -> int:
    """Break a stream as the command line says.

    Args:
        begin: Gives what is broken, of a server, a folder and a seed; printed, it says what happened.
        times: How often by default.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=times)
    parser.add_argument("--seed", type=int, default=37)
    words = parser.parse_args()
    with (
        running_server() as cluster,
        tempfile.TemporaryDirectory() as folder,
        begin(cluster, Path(folder), words.seed) as stream,
    ):
        why = broken(stream, words.times)
        print(f"{stream}; {why or 'right'}")
    return bool(why)


if __name__ == "__main__":
    sys.exit(main(lambda cluster, folder, seed: closing(Broken(cluster.url, folder, seed, cluster)), 500))
