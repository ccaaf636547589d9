"""What a charge, an opening, an epoch and an answer cost after ten, a hundred, a thousand times as many of them.

    python tests/benchmarks/bench_growth.py
    python tests/benchmarks/bench_growth.py --smoke

CPU of this process; what it waits for the disk is told apart, as milliseconds inside of `fsync`. No column should grow
from one row to the next but the ones that say so: opening reads what all charges come to, and memory holds it; without
`keep=` a live source holds all that was sent.
"""

from __future__ import annotations

import hashlib
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from flags import flags

import wpinq
from wpinq.core.ledger import Asked, Charge, Cost, Ledger

ROWS = 1000
"""Rows in an epoch."""
waited = [0.0]


def fsync(descriptor: int, true: Callable[[int], None] = os.fsync) -> None:
    """Note how long it takes."""
    start = time.perf_counter()
    true(descriptor)
    waited[0] += time.perf_counter() - start


@contextmanager
def timed(times: int) -> Iterator[dict[str, float]]:
    """Milliseconds for each of some uses: CPU, and waiting for the disk."""
    found: dict[str, float] = {}
    cpu, waited[0] = time.process_time(), 0.0
    yield found
    found.update(cpu=1e3 * (time.process_time() - cpu) / times, fsync=1e3 * waited[0] / times)


def filled(place: Path, rows: int, accounting: str) -> None:
    """Make a ledger of so many charges, without their durable writes one by one."""
    with opened(place, accounting).transaction() as act:
        for number in range(rows - 1):
            question = hashlib.blake2b(str(number).encode(), digest_size=32).hexdigest()
            curve = (Fraction(1, 10 + number % 1000), Fraction(1, 2 * 10**7)) if accounting == "renyi" else None
            cost = Cost("1/10", under=(("windows", str(number)),) if number % 2 else (), curve=curve)
            act.charge(Charge(question, (cost,), "1", "pages"))


def opened(place: Path, accounting: str) -> Ledger:
    asked = Asked.of("protect", 10**6, accounting=accounting)
    return Ledger.open(place, name="views", unit="record", terms=asked)


def ledger(place: Path, rows: int, uses: int, accounting: str = "pure") -> dict[str, float]:
    """A ledger of so many rows: verified as a copy is, opened as a process has left it, charged."""
    path = place / f"ledger {rows} {accounting}"
    filled(path, rows, accounting)
    path.touch()  # so all rows are verified
    with timed(1) as first:
        opened(path, accounting)
    with timed(3) as again:
        for _ in range(3):
            book = opened(path, accounting)
    with timed(uses) as charged:
        for number in range(uses):
            curve = Fraction(1, 3000 + number), Fraction(1, 10**8)
            cost = Cost("1/10", under=(("windows", f"new {number}"),), curve=curve)
            book.charge(f"{number:08x}", [cost], version="2", label="more")
    return {
        "first open": first["cpu"],
        "open, grows": again["cpu"],
        "charge": charged["cpu"],
        "fsync": charged["fsync"],
    }


def source(place: Path, keep: int | None, journal: bool) -> Any:
    kept = {"ledger": place / "ledger", "recover": place / "kept"} if journal else {}
    return wpinq.live({"user": str, "page": str}, budget=10**9, keep=keep, **kept)


def live(place: Path, epochs: int, uses: int, *, keep: int | None, journal: bool) -> dict[str, float]:
    """A live source after so many epochs: the next ones, and answers at the last one and at an early one."""
    place = place / f"live {epochs} {keep} {journal}"
    place.mkdir()
    views = source(place, keep, journal)
    pages = views.map(lambda page: page)
    held, ever = pages.measure(1), pages.measure(1, continual=True)
    draw = np.random.default_rng(1)
    tables = [
        pl.DataFrame(
            {"user": draw.integers(0, 5000, ROWS).astype(str), "page": draw.zipf(1.5, ROWS).clip(0, 1000).astype(str)}
        )
        for _ in range(20)
    ]

    def turn(times: int) -> None:
        for number in range(times):
            views.send(tables[number % len(tables)])
            views.advance()

    turn(epochs)
    with timed(uses) as epoch:
        turn(uses)
    with timed(uses) as one:
        for number in range(uses):
            held.observe(str(number))
    with timed(uses) as last:
        for number in range(uses):
            ever.observe(str(number))
    views.close()
    return {
        "epoch": epoch["cpu"], "fsync": epoch["fsync"], "observe": one["cpu"], "continual": last["cpu"],
        "peak MB so far": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def shown(title: str, sizes: list[int], work: Callable[[int], dict[str, float]]) -> None:
    """Print a line for each size: milliseconds, but for memory."""
    print(title)
    for number, size in enumerate(sizes):
        found = work(size)
        if not number:
            print(" " * 10 + "".join(f"{name:>16}" for name in found))
        print(f"{size:10,}" + "".join(f"{value:16,.3f}" for value in found.values()), flush=True)


def main() -> None:
    """Measure each over three decades."""
    parser = flags(__doc__, "two small sizes of each")
    parser.add_argument("--million", action="store_true", help="a ledger of a million rows too")
    options = parser.parse_args()
    os.fsync = fsync
    rows, epochs, uses = (
        ([10, 100], [3, 30], 5) if options.smoke else ([100, 1000, 10**4, 10**5], [10, 100, 1000, 10**4], 50)
    )
    rows += [10**6] if options.million else []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        shown("charges in a ledger", rows, lambda size: ledger(place, size, uses))
        shown("with Renyi accounting", rows, lambda size: ledger(place, size, uses, "renyi"))
        shown("epochs, keep=100", epochs, lambda size: live(place, size, uses, keep=100, journal=False))
        shown("epochs, all kept", epochs[:-1], lambda size: live(place, size, uses, keep=None, journal=False))
        shown("epochs, in a journal", epochs[:-1], lambda size: live(place, size, uses, keep=100, journal=True))


if __name__ == "__main__":
    main()
