"""Live sources that end, are killed and begin again, and merge what they hold: answers stay, and are paid for once.

A case is a live source with its epochs, what is asked of it, and where it ends: closed, or killed at one of the calls
that make something durable. The same source that never ends and never merges gives the same answers, bit for bit, and
has spent the same; no epoch that was closed is lost, and none is counted twice, for exact counts are what was sent. Of
a source of files that is read in parts, each record is in one part, wherever the reading was broken off.

In a search every tenth case is one of processes that are killed by SIGKILL, at random moments.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from attacks.fuzz.fuzzer import Fuzzer
from attacks.fuzz.plant import Plant
from attacks.fuzz.restarts_play import BINS, PAGES, KilledError, Player, Restarts, grow, measured, opened

from wpinq.core.records.batch import WEIGHT
from wpinq.core.runs import compaction
from wpinq.sources import open_source
from wpinq.sources.recovered import recovered
from wpinq.streaming import collection, head, journal, source
from wpinq.streaming.journal import Journal


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
def twins(case: Restarts) -> Iterator[tuple[Path, Path]]:
    """Two directories in which a source begins."""
    with tempfile.TemporaryDirectory() as home:
        place, twin = Path(home) / "one", Path(home) / "two"
        place.mkdir()
        opened(case, place).close()
        shutil.copytree(place, twin)
        yield place, twin


def judge(case: Restarts) -> list[str]:
    """What is wrong with a case."""
    with twins(case) as (place, twin):
        one, other = Player(case, place, whole=False).play(), Player(case, twin, whole=True).play()
        return [*one.wrong, *other.wrong] or [*compared(case, one, other), *parts(case.seed, place.parent)]


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


def killed(case: Restarts) -> list[str]:
    """The same with processes that are killed in earnest, at random moments."""
    rng = Random(case.seed)
    with twins(case) as (place, twin):
        one, other = Player(case, place, whole=False), Player(case, twin, whole=True).play()
        for _ in range(rng.randint(1, 4)):
            told(one, place, rng)
        if code := told(one, place, None):
            one.wrong.append(f"G the last process ended with {code}")
        last = opened(case, place)
        made = measured(case, last)
        if last.resume() != len(case.epochs):
            one.wrong.append(f"L {last.epoch} epochs were closed of {len(case.epochs)}")
        one.exact, one.spent = made["exact"].observe_many(BINS).tolist(), last._data.ledger.spent()
        last.close()
        return [*one.wrong, *other.wrong] or list(compared(case, one, other))


def told(one: Player, place: Path, rng: Random | None) -> int:
    """Note what a process says until it ends, or is killed at a random moment; give how it ended."""
    words = [sys.executable, "-W", "ignore", "-m", "attacks.fuzz.restarts", str(one.case.seed), str(place)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as worker:
        assert worker.stdout is not None
        lines = [worker.stdout.readline() for _ in range(rng.randrange(1, 6) if rng else 0)]
        if rng:
            time.sleep(rng.random() / 20)
            worker.send_signal(signal.SIGKILL)
        lines += worker.stdout.readlines()
    for line in lines:
        if line.endswith("\n"):
            one.tell(json.loads(line))
    return worker.returncode


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
    return [patch.object(compaction._Keeper, "kept", lambda self, frame, epochs: frame)]


def first_again() -> list[Any]:
    """A merge takes in the first epoch, which stays as well."""
    real = compaction.merge

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
    "all_of_people": Plant("a merge forgets whom it bounds", all_of_people, 23, "S"),
    "first_again": Plant("a merge counts the first epoch twice", first_again, 119, "SX"),
    "another_version": Plant("a restart is charged again", another_version, 1, "SP"),
    "not_durable": Plant("an epoch is closed, and the head does not count it", not_durable, 1, "GLS"),
}
FUZZER = Fuzzer("restarts", grow, judge, PLANTS, slow=killed)

if __name__ == "__main__":
    work(int(sys.argv[1]), Path(sys.argv[2]))
