"""Publishing, killed (SIGKILL) at every durable step, and run again as if nothing had been.

python tests/publish/kills.py --kills 1000

What survives a kill of the process is tested, not the loss of power. Every child is forked from a process that has
imported all that is needed and started no thread. Its randomness and its clock are fixed, so that what it publishes is
to be the same byte for byte, whether it was killed or not.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import importlib
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NOW = dt.datetime(2026, 11, 22, 6, tzinfo=dt.UTC)
DAY = "2026-11-21"
SINKS = {
    "directory": [{"directory": "out/{date}", "formats": ["csv", "parquet", "json"]}],
    "sqlite": [{"sqlite": "out.sqlite"}],
    "both": [{"directory": "out/{date}", "formats": ["csv"]}, {"sqlite": "out.sqlite"}],
}
STARTS = ("fresh", "second")
"""Before the ledger exists, and after a period was published."""
BOOKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "pure": ({"epsilon": 30}, {"epsilon": 1}),
    "rho": ({"rho": 3}, {"rho": "1/50"}),
    "renyi": ({"epsilon": 2, "delta": "1e-6", "accounting": "renyi"}, {"rho": "1/1000"}),
}
"""Budgets, and what the second question costs; the first one has Laplace noise."""
WRITES = ("INSERT", "DELETE", "CREATE", "COMMIT", "BEGIN", "UPDATE")


ACTS: dict[str, Callable[[Any], Any]] = {
    "run": lambda release: release.run(DAY),
    "accept": lambda release: release.run(DAY, accept=True),
    "again": lambda release: release.run(DAY, again=True),
    "backfill": lambda release: list(release.backfill(f"2026-11-19..{DAY}"))[-1],
    "deliver": lambda release: list(release.deliver(DAY))[-1],
}
"""What is killed: a period, one that is held, one whose records changed after its charge, three at a time; and one that
is delivered again to sinks that were lost.
"""
DATAFLOW = "def dataflow(views):\n    return {'pages': views.map('page').measure(epsilon=1)}\n"
OTHERS = [
    {"name": "degrees", "degrees": "page", "epsilon": 1},
    {"name": "flow", "dataflow": "../flow.py", "keys": ["/p0", "/p1"]},
    {"name": "found", "counts": ["page"], "delta": "1e-6", "epsilon": 1},
]
"""Questions of other kinds, with their plots."""


def given(sinks: str, views: Path, book: str = "pure", *, others: bool = False) -> dict[str, Any]:
    """A release of two questions, or of five."""
    keys = [f"/p{number}" for number in range(4)]
    sql = "SELECT page, COUNT(*) AS views FROM data GROUP BY page"
    return {
        "data": {"source": f"{views}/{{date}}.csv", "unit": {"column": "user", "at_most": 3}, "ledger": "ledger"},
        "budget": BOOKS[book][0] | ({"delta": "1e-5"} if others else {}),
        "question": [
            {"name": "views", "sql": sql, "keys": keys, "epsilon": "1/10" if book == "renyi" else 1, "plot": False},
            {"name": "pages", "counts": ["page"], "keys": keys, **BOOKS[book][1], "plot": False},
            *(OTHERS if others else []),
        ],
        "sink": SINKS[sinks],
    }


class Steps:
    """Counts durable steps, and kills this process before the one that is wanted.

    Args:
        fatal: Its number, from 1; 0 for none.
    """

    def __init__(self, fatal: int) -> None:
        self.fatal, self.done = fatal, list[str]()

    def step(self, name: str) -> None:
        """One step is about to be done."""
        self.done.append(name)
        if len(self.done) == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrap(self, owner: Any, name: str, shown: str) -> None:
        """Count the calls of a function."""
        inner: Callable[..., Any] = getattr(owner, name)

        def outer(*given: Any, **words: Any) -> Any:
            self.step(shown)
            return inner(*given, **words)

        setattr(owner, name, outer)

    def watch(self) -> None:
        """Count from here on: files, SQLite, sinks and stages."""
        from wpinq.apps.publish.sinks.directory import Directory
        from wpinq.apps.publish.sinks.sqlite import SqliteTables
        from wpinq.apps.publish.state import Register

        for name in ("fsync", "rename", "replace", "link", "unlink", "mkdir", "rmdir"):
            self.wrap(os, name, name)
        for place in (Directory, SqliteTables):
            self.wrap(place, "deliver", f"deliver {place.__name__}")
        self.wrap(Register, "enter", "enter")
        steps, connect = self, sqlite3.connect

        class Watched(sqlite3.Connection):
            def execute(self, sql: str, *rest: Any) -> Any:
                if sql.lstrip().startswith(WRITES):
                    steps.step(sql.split(maxsplit=1)[0])
                return super().execute(sql, *rest)

            def executemany(self, sql: str, *rest: Any) -> Any:
                steps.step("INSERT many")
                return super().executemany(sql, *rest)

            def __exit__(self, *error: Any) -> Any:
                steps.step("commit")
                return super().__exit__(*error)

        sqlite3.connect = lambda *rest, **words: connect(*rest, **{"factory": Watched, **words})  # type: ignore[assignment]


def calm() -> None:
    """Fix what is random, the ledger's secret and names, and its clock; names of drafts must stay new."""
    from wpinq.core.ledger import transaction as session

    class Still(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
            return NOW

    session.datetime = Still  # type: ignore[misc]
    true = os.urandom
    os.urandom = lambda size: true(size) if size == 8 else b"\x07" * size


def child(
    home: Path, sinks: str, act: Callable[[Any], Any], fatal: int, said: Path | None, book: str = "pure", *,
    others: bool = False,
) -> None:  # fmt: skip
    """Publish, and say what became of it; killed on the way, if that is wanted."""
    from wpinq.apps.publish import Release

    calm()
    steps = Steps(fatal)
    steps.watch()
    release = Release(given(sinks, home.parent / "views", book, others=others), "site", home, clock=lambda: NOW)
    outcome = act(release)
    many = list(steps.done)
    if said is not None:
        left = str(release.plan(DAY).left)
        differs = release.verify(outcome.period)
        said.write_text(json.dumps({"done": outcome.done, "left": left, "steps": many, "differs": differs}))


def forked(what: Callable[[], None], log: Path) -> int:
    """Do something in a child, and give its process id."""
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        with log.open("a") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        what()
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def ended(number: int) -> int:
    """How a child ended: its exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def published(home: Path) -> dict[str, Any]:
    """What readers can see: the files of each day, and the rows of each day in the database."""
    seen: dict[str, Any] = {}
    out = home / "out"
    for path in sorted(out.glob("*/*")) if out.exists() else []:
        if not path.parent.name.startswith("."):
            seen[f"{path.parent.name}/{path.name}"] = path.read_bytes()
    base = home / "out.sqlite"
    if base.exists():
        with contextlib.closing(sqlite3.connect(base)) as connection:
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                for row in connection.execute(f'SELECT * FROM "{table}" ORDER BY rowid').fetchall():
                    day = row[1] if table == "wpinq_published" else row[0]
                    seen.setdefault(f"{day} {table}", []).append(row)
    return seen


class Trial:
    """One sink and one start: what an unkilled run gives, and every killed one compared with it."""

    def __init__(
        self, place: Path, sinks: str, start: str, book: str = "pure", act: str = "run", *, others: bool = False
    ) -> None:
        self.place, self.sinks, self.start, self.book = place / f"{sinks}-{start}", sinks, start, book
        self.doing, self.others = ACTS[act], others
        self.log, self.said = self.place / "log", self.place / "said"
        self.home = self.place / "start"
        self.home.mkdir(parents=True)
        (self.place / "views").mkdir()
        (self.place / "flow.py").write_text(DATAFLOW)
        for day in (18, 19, 20, 21):
            self._viewed(day, 40)
        time.sleep(0.2)  # so that the state of these files is remembered in every run alike
        if start == "second":
            self._plain(self.home, lambda release: release.run("2026-11-20"))
        if act == "accept":  # three days are the past that the fourth breaks with
            self._viewed(21, 400)
            for day in (18, 19, 20):
                self._plain(self.home, lambda release, day=day: release.run(f"2026-11-{day}"))
            assert ended(self._run(self.home, ACTS["run"], 0, None)) == 1, "it is held"
        if act == "again":
            entered = [step for step, name in enumerate(self._plain(self.copied(), ACTS["run"])["steps"], 1)
                       if name == "enter"]  # fmt: skip
            assert ended(self._run(self.home, ACTS["run"], entered[1], None)) == -signal.SIGKILL
            self._viewed(21, 50)
            time.sleep(0.2)
        if act == "deliver":
            self._plain(self.home, ACTS["run"])
            shutil.rmtree(self.home / "out")
            (self.home / "out.sqlite").unlink(missing_ok=True)
        before = self.copied()
        begun = time.monotonic()
        told = self._finished(before)
        self.seconds = time.monotonic() - begun
        self.steps, self.left, self.whole = told["steps"], told["left"], published(before)
        assert told["done"].startswith("delivered again" if act == "deliver" else "published"), told
        assert not told["differs"], told

    def _viewed(self, day: int, users: int) -> None:
        rows = "".join(f"u{one},/p{(one + step) % 4}\n" for one in range(users) for step in range(3))
        (self.place / "views" / f"2026-11-{day}.csv").write_text("user,page\n" + rows)

    def _run(self, home: Path, act: Callable[[Any], Any], fatal: int, said: Path | None) -> int:
        """Do something in a child; its process id."""
        given = home, self.sinks, act, fatal, said, self.book
        return forked(lambda: child(*given, others=self.others), self.log)

    def _plain(self, home: Path, act: Callable[[Any], Any]) -> dict[str, Any]:
        """Do something that is not killed, and give what it says."""
        self.said.unlink(missing_ok=True)
        if ended(self._run(home, act, 0, self.said)):
            raise AssertionError(self.log.read_text()[-600:])
        result: dict[str, Any] = json.loads(self.said.read_text())
        return result

    def copied(self) -> Path:
        """The start, copied, always to the same place: a ledger remembers in which state files were seen."""
        shutil.rmtree(self.place / "home", ignore_errors=True)
        return Path(shutil.copytree(self.home, self.place / "home"))

    def killed(self, fatals: list[int] | None = None, moments: list[float] | None = None) -> list[str]:
        """Kill one run after the other, at steps or after seconds; then a plain run. What is wrong?"""
        home = self.copied()
        wrong = []
        for fatal in fatals or []:
            code = ended(self._run(home, self.doing, fatal, None))
            wrong += [f"ended with {code}"] * (code not in (0, -signal.SIGKILL)) + self._half(home)
        for moment in moments or []:
            number = self._run(home, self.doing, 0, None)
            self._watched(number, moment, home, wrong)
            wrong += self._half(home)
        told = self._finished(home, wrong)
        if told:
            wrong += [f"{told['left']} is left"] * (told["left"] != self.left) + told["differs"]
            seen = published(home)
            wrong += [f"{name}: other content" for name in sorted(seen.keys() | self.whole.keys())
                      if seen.get(name) != self.whole.get(name)]  # fmt: skip
            wrong += [f"left behind: {path}" for path in (home / "out").glob(".*")]
        return wrong

    def _watched(self, number: int, moment: float, home: Path, wrong: list[str]) -> None:
        """Kill a run after some seconds, looking all the while at what readers see."""
        end = time.monotonic() + moment
        while time.monotonic() < end:
            wrong += self._half(home)
            time.sleep(0.002)
        os.kill(number, signal.SIGKILL)
        code = ended(number)
        wrong += [f"ended with {code}"] * (code not in (0, -signal.SIGKILL))

    def _half(self, home: Path) -> list[str]:
        """Whether readers see a part of a day: each sink shows all of it or nothing."""
        seen, wrong = published(home), []
        for own in (lambda name: "/" in name, lambda name: " " in name):
            wanted = {name for name in self.whole if name.startswith(DAY) and own(name)}
            there = {name for name in seen if name.startswith(DAY) and own(name)}
            if there and (there != wanted or any(seen[name] != self.whole[name] for name in wanted)):
                wrong.append(f"half published: {sorted(there)}")
        return wrong

    def _finished(self, home: Path, wrong: list[str] | None = None) -> dict[str, Any]:
        """A run that is not killed, and what it says."""
        try:
            return self._plain(home, self.doing)
        except AssertionError as error:
            if wrong is None:
                raise
            wrong.append(f"the run after failed: {error}")
            return {}


def warm(place: Path, *, others: bool) -> None:
    """Import here what a run imports, without running anything here: threads do not survive a fork."""
    (place / "warm").mkdir()
    names = place / "names"

    def direct() -> None:
        home = place / "warm" / "home"
        for new in (home, place / "warm" / "views"):
            new.mkdir()
        (place / "warm" / "views" / f"{DAY}.csv").write_text("user,page\nu1,/p1\n")
        (place / "warm" / "flow.py").write_text(DATAFLOW)
        child(home, "both", ACTS["run"], 0, home / "said", others=others)
        names.write_text("\n".join(sys.modules))

    assert ended(forked(direct, place / "log")) == 0, (place / "log").read_text()
    for name in names.read_text().split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def everywhere(
    place: Path, sinks: list[str], starts: list[str], stride: int, book: str, act: str, *, others: bool
) -> tuple[Counter[str], list[str]]:
    """Kill at every step (or each so many), once: how often before which step, and what was wrong."""
    many, wrong = Counter[str](), list[str]()
    for sink in sinks:
        for start in starts:
            trial = Trial(place, sink, start, book, act, others=others)
            for fatal in range(1, len(trial.steps) + 1, stride):
                many[f"{sink} {start}: {trial.steps[fatal - 1]}"] += 1
                wrong += [f"{sink} {start} {fatal} {trial.steps[fatal - 1]}: {one}" for one in trial.killed([fatal])]
    return many, wrong


def at_random(place: Path, kills: int, seed: int, book: str) -> tuple[Counter[str], list[str]]:
    """Kill at random moments, up to four times before a run may end, over all sinks and starts."""
    draw = random.Random(seed)
    trials = [Trial(place, sink, start, book) for sink in SINKS for start in STARTS]
    many, wrong = Counter[str](), list[str]()
    while sum(many.values()) < kills:
        trial = draw.choice(trials)
        times = min(draw.randint(1, 4), kills - sum(many.values()))
        moments = [draw.random() * trial.seconds for _ in range(times)]
        many[f"{trial.sinks} {trial.start}"] += times
        wrong += [f"{trial.sinks} {trial.start} {moments}: {one}" for one in trial.killed(None, moments)]
    return many, wrong


def parser() -> argparse.ArgumentParser:
    """What may be asked for."""
    result = argparse.ArgumentParser(description=__doc__)
    result.add_argument("--kills", type=int, default=0, help="so many at random moments, beside those at steps")
    result.add_argument("--seed", type=int, default=1)
    result.add_argument("--stride", type=int, default=1, help="each so many of the steps only; 0 for none")
    result.add_argument("--sinks", nargs="*", default=list(SINKS))
    result.add_argument("--starts", nargs="*", default=list(STARTS))
    result.add_argument("--book", choices=list(BOOKS), default="pure", help="how the ledger adds up")
    result.add_argument("--act", choices=list(ACTS), default="run", help="what is killed")
    result.add_argument("--others", action="store_true", help="degrees, a dataflow and thresholds too, with plots")
    return result


def done(asked: argparse.Namespace, place: Path) -> dict[str, Any]:
    """Kill as it was asked for: how often, before which steps, and what was wrong."""
    many, wrong = Counter[str](), list[str]()
    if asked.stride:
        (place / "steps").mkdir(parents=True)
        many, wrong = everywhere(
            place / "steps", asked.sinks, asked.starts, asked.stride, asked.book, asked.act, others=asked.others
        )  # fmt: skip
    if asked.kills:
        (place / "random").mkdir(parents=True)
        found, odd = at_random(place / "random", asked.kills, asked.seed, asked.book)
        many, wrong = many + found, wrong + odd
    return {"kills": sum(many.values()), "by": many, "wrong": wrong}


def main() -> int:
    """Kill, and print as JSON a line for each set of options: what was killed how often and what was wrong.

    Several sets are divided by `+`; what they need is imported once.
    """
    sets: list[list[str]] = [[]]
    for word in sys.argv[1:]:
        if word == "+":
            sets.append([])
        else:
            sets[-1].append(word)
    every = [parser().parse_args(one) for one in sets]
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory(prefix="wpinq-kills-") as name:
        warm(Path(name), others=any(asked.others for asked in every))
        found = [done(asked, Path(name) / str(number)) for number, asked in enumerate(every)]
    for one in found:
        print(json.dumps(one))
    return 1 if any(one["wrong"] for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
