"""A live source that is played in a directory: epochs that are sent, ends, kills, and what is said after each."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import wpinq
from wpinq.streaming import head, journal
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
        seed: Of the case.
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
    seed: int


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
        seed,
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
            for start, _ in [moment.window for moment in one.times.moments(epoch)]:
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
        (os, "fsync"), (os, "pwrite"), (os, "close"), (head, "durable"), (journal, "durable"),
        (Path, "replace"), (Path, "unlink"), (Journal, "append"), (Journal, "_told"), (Journal, "merge"),
    ]  # fmt: skip
    with ExitStack() as stack:
        for what, name in places:
            stack.enter_context(patch.object(what, name, last(getattr(what, name))))
        yield
