"""Live sources that end, are killed and begin again, and merge what they hold: answers stay, and are paid for once.

A case is a live source with its epochs, what is asked of it, and where it ends: closed, or killed at one of the calls
that make something durable. The same source that never ends and never merges gives the same answers, bit for bit, and
has spent the same; no epoch that was closed is lost, and none is counted twice, for exact counts are what was sent. Of
a source of files that is read in parts, each record is in one part, wherever the reading was broken off.

    python -m attacks.fuzz.restarts [--minutes 10] [--seed 0] [--case S] [--plant [NAME]]

In the long mode every tenth case is one of processes that are killed by SIGKILL, at random moments.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from attacks.fuzz.plants import Plant
from attacks.fuzz.search import main

import wpinq
from wpinq.measurements import merge
from wpinq.records.batch import WEIGHT
from wpinq.sources import open_source
from wpinq.sources.recovered import recovered
from wpinq.streaming import collection, head, journal, source
from wpinq.streaming.journal import Journal

NOON = dt.datetime(2026, 7, 31, 12)
COLUMNS = {"user": "text", "page": "text", "note": "text", "time": "timestamp"}
PAGES = ["a", "b", "C", "d"]
BINS = ["a", "b", "c", "d"]
UNITS: list[str] = [
    "None", "None", "wpinq.users('user', at_most=3)", "wpinq.users('user', at_most=1)",
    "wpinq.users('user', at_most=2, period='3m', at='time')",
]  # fmt: skip
CONTINUAL: dict[str, str] = {
    "pages": "views.map(lambda page: page).measure(1, continual=True)",
    "few": "views.filter(lambda note: note == 'in').map(lambda page: page).measure(1, continual=True)",
    "both": "views.map(lambda page: page).concat(views.map(lambda page: page)).measure(1, continual=True)",
    "notes": "views.map(lambda page, note: page if note is None else 'a').measure('1/2', continual=True)",
    "parts": "views.partition('page', ['a', 'b'])['a'].map(lambda page: page).measure(1, continual=True)",
}
ONCE: dict[str, str] = {
    "single": "views.map(lambda page: page).measure(1)",
    "shaved": "views.map(lambda page: page).shave().map(lambda page, index: page).measure(1)",
    "distinct": "views.map(lambda page: page).distinct().measure(1)",
    "users": "views.limit('page', 2).map(lambda page: page).measure(1)",
}
WINDOWS: dict[str, str] = {
    "minutes": "views.window('1m', at='time').map(lambda page: page).measure('1/100')",
    "threes": "views.window('3m', at='time').map(lambda page: page).measure('1/100')",
}
EXACT = "views.map(lambda page: page).measure(10**6, 'exact', continual=True)"
HEADER = "user,page,note,time\n"
Row = tuple[str, str, str | None, dt.datetime]


class KilledError(BaseException):
    """Ends what is done at once, as a kill does."""


@dataclass(frozen=True)
class Restarts:
    """A case.

    Attributes:
        epochs: What is sent in each.
        followed: The epochs whose records are lines of a file that is followed.
        ends: After which epochs the source is closed and opened again.
        kills: During which epochs it is killed, and before which durable call.
        asked: What is measured, by name.
        unit: Whom it protects.
        steps: What is done to each record before the bound.
        keep: For how many epochs records are held.
        every: After how many epochs some are merged.
    """

    epochs: tuple[tuple[Row, ...], ...]
    followed: frozenset[int]
    ends: frozenset[int]
    kills: tuple[tuple[int, int], ...]
    asked: tuple[str, ...]
    unit: str
    steps: str
    keep: int | None
    every: int


def grow(seed: int) -> Restarts:
    """The case of a number."""
    rng = Random(seed)
    last, users = rng.choice([6, 10, 14, 20]), rng.choice([2, 6])
    epochs = []
    for number in range(1, last + 1):
        at = NOON + dt.timedelta(minutes=number)
        epochs.append(tuple(
            (f"u{rng.randrange(users)}", rng.choice(PAGES), rng.choice(["in", "out", None]),
             at - dt.timedelta(seconds=rng.randrange(150)))
            for _ in range(rng.choice([0, 1, 4, 9]))
        ))  # fmt: skip
    pick = [name for name in CONTINUAL if rng.random() < 0.5] + [name for name in ONCE if rng.random() < 0.4]
    pick += [name for name in WINDOWS if rng.random() < 0.4]
    numbers = range(1, last + 1)
    return Restarts(
        tuple(epochs),
        frozenset(rng.sample(numbers, rng.choice([0, 0, last // 2]))),
        frozenset(rng.sample(numbers, min(last, rng.randint(1, 4)))),
        tuple((number, rng.randint(1, 14)) for number in sorted(rng.sample(numbers, min(last, rng.randint(0, 4))))),
        tuple(pick),
        rng.choice(UNITS),
        rng.choice(["{}", "{}", "{'where': \"note <> 'out'\"}", "{'derive': {'page': 'lower(page)'}}"]),
        rng.choice([None, 1, 1, 1, 1, 2]),
        rng.choice([1, 1, 1, 3]),
    )


class Player:
    """Plays a case in a directory.

    Args:
        case: The case.
        place: The directory.
        whole: Whether it never ends and never merges.
    """

    def __init__(self, case: Restarts, place: Path, *, whole: bool) -> None:
        self.case, self.place, self.whole = case, place, whole
        self.said: dict[str, Any] = {}
        self.wrong: list[str] = []
        self.spent: object = None
        self.exact: list[float] = []
        self.done = 0
        self.left = [] if whole else list(case.kills)
        self.ends = set() if whole else set(case.ends)

    def play(self) -> Player:
        """All of it."""
        with patch.object(journal, "EVERY", 10**9 if self.whole else self.case.every):
            while self.done < len(self.case.epochs) and not self.wrong:
                self.turn()
        return self

    def turn(self) -> None:
        """From one start to the next end."""
        try:
            views = opened(self.case, self.place)
        except wpinq.WpinqError as error:
            self.wrong.append(f"G after epoch {self.done} it does not begin again: {type(error).__name__}: {error}")
            return
        try:
            made = measured(self.case, views)
            self.resumed(views.resume(), made)
            while self.done < len(self.case.epochs) and not self.wrong:
                number = self.done + 1
                if self.left and self.left[0][0] <= number:
                    with dying(self.left.pop(0)[1]):
                        self.epoch(views, number)
                else:
                    self.epoch(views, number)
                self.done = number
                self.tell(asked(made, number))
                if number in self.ends:
                    self.ends.remove(number)
                    break
            self.spent = views._data.ledger.spent()
            self.exact = made["exact"].observe_many(BINS).tolist()
        except KilledError:
            pass
        except wpinq.WpinqError as error:
            self.wrong.append(f"G after epoch {self.done}: {type(error).__name__}: {error}")
        finally:
            views.close()

    def resumed(self, number: int, made: dict[str, Any]) -> None:
        """What a start finds."""
        if not self.done <= number <= self.done + 1:
            self.wrong.append(f"L epoch {self.done} was closed, and a start goes on from {number}")
        self.done = number
        for one in range(max(1, number - (self.case.keep or number) + 1), number + 1):
            self.tell(asked(made, one))

    def tell(self, found: dict[str, Any]) -> None:
        """Note answers; what was said stays said."""
        for name, values in found.items():
            if self.said.setdefault(name, values) != values:
                self.wrong.append(f"S {name}: it said {self.said[name]} and then {values}")

    def epoch(self, views: wpinq.Live, number: int) -> None:
        """Send and close one epoch."""
        send(self.case, views, self.place, number)
        closed = views.advance(until=NOON + dt.timedelta(minutes=number))
        if closed != number:
            self.wrong.append(f"L epoch {number} was closed as {closed}")


def opened(case: Restarts, place: Path) -> wpinq.Live:
    """The source."""
    return wpinq.live(
        COLUMNS, budget=10**9, ledger=place / "ledger", recover=place / "keep", keep=case.keep, unit=eval(case.unit),
        **eval(case.steps),
    )  # fmt: skip


def measured(case: Restarts, views: wpinq.Live) -> dict[str, Any]:
    """What is asked of it."""
    every = {**CONTINUAL, **ONCE, **WINDOWS}
    return {name: eval(every[name], {"views": views}) for name in case.asked} | {"exact": eval(EXACT)}


def asked(made: dict[str, Any], epoch: int) -> dict[str, Any]:
    """All that can be asked after an epoch."""
    found = {}
    for name, one in made.items():
        if name in ONCE:
            found[name] = one.observe_many(BINS).tolist()
        elif name in WINDOWS:
            for start in one.closed(epoch):
                found[f"{name} {start}"] = one.observe_many(BINS, start).tolist()
        else:
            found[f"{name} {epoch}"] = one.observe_many(BINS, epoch=epoch).tolist()
    return found


def send(case: Restarts, views: wpinq.Live, place: Path, number: int) -> None:
    """The records of an epoch: sent, or appended to a file that is followed."""
    rows, path = case.epochs[number - 1], place / "views.csv"
    if number not in case.followed:
        views.send(list(rows))
        return
    lines = [HEADER]
    for one in sorted(case.followed):
        if one <= number:
            lines += [
                f"{user},{page},{note or ''},{time.isoformat()}\n" for user, page, note, time in case.epochs[one - 1]
            ]
    with path.open("ab") as file:
        file.write("".join(lines).encode()[file.tell() :])
    views.follow(path)


def counts(case: Restarts) -> list[int] | None:
    """What exact counts are; None where a bound keeps a sample."""
    if case.unit != "None":
        return None
    total: Counter[str] = Counter()
    for number, rows in enumerate(case.epochs, 1):
        for _, page, note, _ in rows:
            known = ("" if number in case.followed else None) if note is None else note
            if "where" in case.steps and (known is None or known == "out"):
                continue
            total[page.lower() if "derive" in case.steps else page] += 1
    return [total[name] for name in BINS]


@contextmanager
def dying(calls: int) -> Iterator[None]:
    """Die before the n-th call that makes something durable, or that is about to."""
    left = [calls]

    def last(call: Callable[..., Any]) -> Callable[..., Any]:
        def died(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise KilledError
            return call(*args, **options)

        return died

    places: list[tuple[Any, str]] = [
        (os, "fsync"),
        (os, "pwrite"),
        (os, "close"),
        (head, "durable"),
        (journal, "durable"),
    ]
    places += [(Path, "replace"), (Path, "unlink"), (Journal, "append"), (Journal, "_told"), (Journal, "merge")]
    with ExitStack() as stack:
        for what, name in places:
            stack.enter_context(patch.object(what, name, last(getattr(what, name))))
        yield


# ---- what must hold


def check(seed: int) -> list[str]:
    """What is wrong with the case of a number."""
    case = grow(seed)
    with tempfile.TemporaryDirectory() as home:
        place, twin = Path(home) / "one", Path(home) / "two"
        place.mkdir()
        opened(case, place).close()
        shutil.copytree(place, twin)
        one, other = Player(case, place, whole=False).play(), Player(case, twin, whole=True).play()
        return [*one.wrong, *other.wrong] or [*compared(case, one, other), *parts(seed, Path(home))]


def compared(case: Restarts, one: Player, other: Player) -> Iterator[str]:
    """The answers are those of a source that never ended, at the same price, and of all that was sent."""
    for name, values in one.said.items():
        if other.said.get(name) != values:
            yield f"S {name}: {values}, and without an end {other.said.get(name)}"
            return
    if one.spent != other.spent:
        yield f"P {one.spent} was spent, and without an end {other.spent}"
    wanted = counts(case)
    if wanted is not None and one.exact != wanted:
        yield f"X {one.exact} were counted, and {wanted} were sent"


def parts(seed: int, home: Path) -> Iterator[str]:
    """Each record of a finite source is in one part, wherever the reading was broken off, in any shares."""
    rng, path = Random(seed), home / "records.csv"
    lines = [f"u{rng.randrange(5)},{rng.choice(PAGES)}\n" for _ in range(rng.choice([0, 1, 30, 3000]))]
    path.write_text("user,page\n" + "".join(lines))
    wanted = Counter(tuple(line.strip().split(",")) for line in lines)
    for _ in range(rng.randint(0, 3)):
        broken = recovered(open_source(path), home / "parts", bytes(32)).batches(("user", "page"))
        for _ in range(rng.randrange(5)):
            next(broken, None)
        broken.close()
    shares, found = rng.randint(1, 4), Counter[tuple[object, ...]]()
    reader = recovered(open_source(path), home / "parts", bytes(32))
    for share in rng.sample(range(shares), shares):
        for frame in reader.batches(("user", "page"), share=(share, shares)):
            for row in frame.select("user", "page", WEIGHT).rows():
                found[row[:2]] += row[2]
    if found != wanted:
        yield f"R {sum(found.values())} records were read of {len(lines)}"


def killed(seed: int) -> list[str]:
    """The same with processes that are killed in earnest, at random moments."""
    case, rng = grow(seed), Random(seed)
    with tempfile.TemporaryDirectory() as home:
        place, twin = Path(home) / "one", Path(home) / "two"
        place.mkdir()
        opened(case, place).close()
        shutil.copytree(place, twin)
        one, other = Player(case, place, whole=False), Player(case, twin, whole=True).play()
        kills = rng.randint(1, 4)
        for number in range(kills + 1):
            words = [sys.executable, "-W", "ignore", "-m", "attacks.fuzz.restarts", "--worker", str(seed), str(place)]
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as worker:
                assert worker.stdout is not None
                told = [worker.stdout.readline() for _ in range(rng.randrange(1, 6) if number < kills else 0)]
                if number < kills:
                    time.sleep(rng.random() / 20)
                    worker.send_signal(signal.SIGKILL)
                told += worker.stdout.readlines()
            for line in told:
                if line.endswith("\n"):
                    one.tell(json.loads(line))
            if number == kills and worker.returncode:
                one.wrong.append(f"G the last process ended with {worker.returncode}")
        last = opened(case, place)
        made = measured(case, last)
        if last.resume() != len(case.epochs):
            one.wrong.append(f"L {last.epoch} epochs were closed of {len(case.epochs)}")
        one.exact, one.spent = made["exact"].observe_many(BINS).tolist(), last._data.ledger.spent()
        last.close()
        return [*one.wrong, *other.wrong] or list(compared(case, one, other))


def work(seed: int, place: Path) -> None:
    """What a process does until it is killed."""
    player = Player(grow(seed), place, whole=False)
    player.left = []
    tell = player.tell

    def aloud(found: dict[str, Any]) -> None:
        tell(found)
        print(json.dumps(found), flush=True)

    player.tell = aloud  # type: ignore[method-assign]
    with patch.object(journal, "EVERY", player.case.every), suppress(KilledError):
        first = True
        while player.done < len(player.case.epochs) and not player.wrong:
            if first:  # where it stands is found by looking
                views = opened(player.case, place)
                measured(player.case, views)
                player.done, first = views.resume(), False
                views.close()
            player.turn()
    sys.exit(bool(player.wrong))


# ---- bugs that would be easy to make


def all_of_people() -> list[Any]:
    """A merge keeps all records of people, of which the bound then draws anew."""
    return [patch.object(merge._Keeper, "kept", lambda self, frame: frame)]


def first_again() -> list[Any]:
    """A merge takes in the first epoch, which stays as well."""
    real = merge.merge

    def merged(roots: Any, schema: Any, epochs: Any, last: int) -> Any:
        first = next(epochs)
        return real(roots, schema, chain([first, first], epochs), last)

    return [patch.object(collection, "merge", merged)]


def another_version() -> list[Any]:
    """A start is another version of the data."""
    real = source.open_journal

    def begun(*args: Any) -> Journal:
        found = real(*args)
        found.version = os.urandom(16).hex()
        return found

    return [patch.object(source, "open_journal", begun)]


def not_durable() -> list[Any]:
    """The head counts no epoch but the first."""
    real = head.Head.write

    def write(self: head.Head, told: bytes) -> None:
        if told.startswith((b"0 ", b"1 ")):
            real(self, told)

    return [patch.object(head.Head, "write", write)]


PLANTS = {
    "all_of_people": Plant("a merge forgets whom it bounds", all_of_people, "restarts", 23, "S"),
    "first_again": Plant("a merge counts the first epoch twice", first_again, "restarts", 119, "SX"),
    "another_version": Plant("a restart is charged again", another_version, "restarts", 1, "SP"),
    "not_durable": Plant("an epoch is closed, and the head does not count it", not_durable, "restarts", 1, "GLS"),
}


def show(seed: int) -> str:
    """A case as text."""
    return str(grow(seed))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(int(sys.argv[2]), Path(sys.argv[3]))
    sys.exit(main("attacks.fuzz.restarts", check, show, PLANTS, killed))
