"""A release that several hosts follow, broken at random for as long as is wanted, and counted in the end.

python -m streaming.broken_releases [--times 300] [--seed 37]     (with PYTHONPATH=tests)

Two hosts and two workers, one of each behind a proxy. Then, so many times: one of them is killed, or stopped for up to
twice a lease and goes on; the database's server is killed and started again; the proxy delays, swallows or cuts what
passes; or the clock goes on by an hour. Lines are written all the time; one of a period that has closed is counted in
the next (`late = "next"`). In the end each line must have been counted in one period, each period charged once, and no
published file changed.
"""

from __future__ import annotations

import csv
import datetime as dt
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from servers import Cluster
from streaming.breaking import SECONDS, Proxy, breaks_way, main
from streaming.follows import COST, FIRST, KEYS, Forks, declared

from wpinq.core.ledger import Ledger
from wpinq.core.ledger.rows.secret import Secret
from wpinq.streaming.shared.home import Home

BEGIN = dt.datetime.fromisoformat(FIRST)


class Hosts:
    """What runs, and what was written and published."""

    def __init__(
        self, forks: Forks, url: str, folder: Path, seed: int, *, plans: list[str] | None = None, hosts: int = 2,
        workers: int = 2, cluster: Cluster | None = None,
    ) -> None:  # fmt: skip
        self.draw, self.folder, self.forks, self.cluster = random.Random(seed), folder, forks, cluster
        self.written, self.did, self.seen = Counter[str](), Counter[str](), dict[str, bytes]()
        self.hour, self._plans = 0, plans or []
        self._clock, self._turns = folder / "clock", folder / "turns"
        self._turns.touch()
        self.clock(0)
        port = urlsplit(url).port
        assert port
        self.proxy = Proxy(port)
        self._urls = [url, url.replace(f":{port}/", f":{self.proxy.port}/")]
        self.files = [folder / f"views{number}.csv" for number in range(workers)]
        for file in self.files:
            file.write_text("user,page,time\n")
        self._home = self._known()
        self.hosts = [self._host(number) for number in range(hosts)]
        self.workers = [self._worker(number) for number in range(workers)]

    def _ledger(self, way: int, number: int | str) -> str:
        return f"{self._urls[way]}?ledger=views&may_lose=crash&state={self.folder}/state{number}"

    def _release(self, way: int, number: int | str) -> dict[str, Any]:
        return declared(self._ledger(way, number), str(self.files[0]), str(self.folder / "out"), late="next", keep=2)

    def _known(self) -> dict[str, Any]:
        """What workers are told of the stream, once there is a ledger."""
        import warnings

        from wpinq.apps.publish import Release

        secret = {"WPINQ_SECRET": bytes(range(32)).hex()}
        with warnings.catch_warnings(), patch.dict(os.environ, secret):  # other tests have secrets of their own
            warnings.simplefilter("ignore")
            release = Release(self._release(0, "none"), "site", self.folder, clock=lambda: BEGIN.replace(tzinfo=dt.UTC))
            with closing(release.follow(workers=0)) as follower:
                return follower.host.home.told()  # type: ignore[union-attr]

    def _host(self, number: int) -> int:
        way = number % 2 if not self._plans else 0
        return self.forks.start("host", release=self._release(way, number), home=str(self.folder / f"host{number}"),
                                clock=str(self._clock), seconds=SECONDS, said=str(self.folder / "said"),
                                turns=str(self._turns), plans=self._plans)  # fmt: skip

    def _worker(self, number: int) -> int:
        told = {**self._home, "conninfo": self._urls[number % 2]}
        source = {"pattern": str(self.files[number]), "form": {}, "history": True}
        return self.forks.start("work", home=told, source=source, every=0.02, seconds=SECONDS)

    @property
    def periods(self) -> int:
        """How many periods are published."""
        return len(list((self.folder / "out").glob("2*")))

    @property
    def turns(self) -> int:
        """How often a host began to keep the stream."""
        return self._turns.stat().st_size

    def clock(self, hour: int) -> None:
        """Set the clock to some minutes after the beginning of an hour, counted from the first period.

        An hour is short here, and a host may be held up for longer: then it would leave out what is written two hours
        after it has looked at the clock, as it should. So it is waited until all have seen the hour before.
        """
        if hour:
            before = self._clock.read_text()
            end = time.monotonic() + 60
            while time.monotonic() < end and not all(self._sees(index, before) for index in range(len(self.hosts))):
                time.sleep(0.02)
        self.hour = hour
        draft = self._clock.with_suffix(".new")
        draft.write_text((BEGIN + dt.timedelta(hours=hour, minutes=2)).isoformat())
        draft.rename(self._clock)

    def _sees(self, index: int, time: str) -> bool:
        """Whether a host that lives has seen a time."""
        seen = self.folder / f"host{index}" / "now"
        return not Forks.lives(self.hosts[index]) or (seen.exists() and seen.read_text() == time)

    def write(self, most: int = 20) -> None:
        """Write lines of now, and some of the hour before."""
        for _ in range(self.draw.randrange(1, most + 1)):
            page, back = self.draw.choice(KEYS), self.draw.random() < 0.2 and self.hour > 0
            at = BEGIN + dt.timedelta(hours=self.hour - back, minutes=1)
            self.written[page] += 1
            with self.draw.choice(self.files).open("a") as file:
                file.write(f"u{self.written.total()},{page},{at}\n")

    def revive(self) -> None:
        """Note what is published by now, and start again what has ended."""
        self.counts()
        for index, number in enumerate(self.hosts):
            if not Forks.lives(number):
                self.hosts[index] = self._host(index)
        for index, number in enumerate(self.workers):
            if not Forks.lives(number):
                self.workers[index] = self._worker(index)

    def breaks(self) -> None:
        """Do one of the things that go wrong, or let an hour pass."""
        kinds = ["kill", "freeze", "kill", "freeze", "delay", "swallow", "cut", "hour", "hour", "hour"]
        kind = self.draw.choice(kinds if self.cluster is None else [*kinds, "server"])
        self.did[kind] += 1
        number = self.draw.choice([*self.hosts, *self.hosts, *self.workers])
        if kind == "hour":
            self.clock(self.hour + 1)
        elif kind == "kill":
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        elif kind == "freeze":
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGSTOP)
                time.sleep(2 * SECONDS * self.draw.random())
                os.kill(number, signal.SIGCONT)
        else:
            breaks_way(self, kind)

    def counts(self) -> Counter[str]:
        """What was published of each page, over all periods; and, as "changed", of what that was another before."""
        result = Counter[str]()
        for path in (self.folder / "out").glob("2*/*.csv"):
            content = path.read_bytes()
            result["changed"] += self.seen.setdefault(str(path), content) != content
            if path.name == "exact.csv":
                result.update({row["page"]: int(row["count"]) for row in csv.DictReader(content.decode().splitlines())})
        return result

    def settles(self, until: Callable[[], bool], patience: float = 120) -> None:
        """Wait until something is so, or the patience has ended."""
        end = time.monotonic() + patience
        while not until() and time.monotonic() < end:
            self.counts()
            time.sleep(0.05)

    def settled(self, patience: float = 120) -> str:
        """Let hours pass until all is counted; what is wrong then, or nothing."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            counts = self.counts()
            if all(counts[page] >= self.written[page] for page in KEYS):
                break
            if not self._plans:
                self.revive()
            if self.periods >= self.hour:  # else periods would end faster than they can be published
                self.clock(self.hour + 1)
            time.sleep(0.1)
        time.sleep(0.5)
        counts = self.counts()
        wrong = [f"{page}: {self.written[page]} written and {counts[page]} counted" for page in KEYS
                 if counts[page] != self.written[page]]  # fmt: skip
        wrong += ["what was published has changed"] * bool(counts["changed"])
        wrong += self._charged()
        return "; ".join([*wrong, self.state()] if wrong else [])

    def _charged(self) -> list[str]:
        """What is wrong with the charges."""
        path = Ledger.path(self._ledger(0, "end"), self.folder)
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ledger = Ledger.existing(path, secret=Secret(bytes(range(32))))
        charged = Counter(row.version for row in ledger.entries() if row.kind == "charge")
        spent, published = ledger.spent()[0], self.periods
        few = spent < COST * published or spent > COST * (published + 1)
        return [f"{version} has {many} charges" for version, many in charged.items() if many != 2] + [
            f"{spent} was spent for {published} periods"] * few  # fmt: skip

    def state(self) -> str:
        """What the database and the hosts say, for whoever looks for a mistake."""
        home = Home.of(self._home)
        with home.connected() as connection:
            leases = "SELECT name, holder, fence, ends > clock_timestamp(), awaited FROM {leases} ORDER BY name"
            rows = connection.execute(home.sql(leases)).fetchall()
            parts = connection.execute(home.sql("SELECT count(*) FROM {parts}")).fetchall()
        lives = [Forks.lives(number) for number in (*self.hosts, *self.workers)]
        said = self.folder / "said"
        errors = [line for line in said.read_text().splitlines() if "Outcome(" not in line] if said.exists() else []
        return "\n".join([f"hour {self.hour}, parts {parts}, leases {rows}, living {lives}", *errors[-10:]])

    def __str__(self) -> str:
        lines = sum(self.written.values())
        return f"{dict(self.did)}: {lines:,} lines, {self.periods:,} periods, {self.turns} turns"

    def close(self) -> None:
        """End what runs."""
        self.proxy.close()
        for number in (*self.hosts, *self.workers):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)


@contextmanager
def hosts_of(cluster: Cluster, folder: Path, seed: int) -> Iterator[Hosts]:
    """Hosts, until they end."""
    with closing(Forks()) as forks, closing(Hosts(forks, cluster.url, folder, seed, cluster=cluster)) as hosts:
        yield hosts


if __name__ == "__main__":
    sys.exit(main(hosts_of, 300))
