"""A stream of eight partitions: one worker and two, by the CPU time of the busiest process, keeper included.

python tests/benchmarks/bench_shared.py [--rows 2000000] [--smoke]

Beside it, of one process with a journal: rows a CPU second in small epochs, of records and of people; CPU seconds until
a restart has taken in all that is kept; and memory over a week of epochs of a minute, by a clock that is made up.

Messages are JSON, and lie in memory as a broker's client hands them over; people are bounded, and windows are a minute
long. The workers and the keeper take turns in this process, and the CPU time of each is added up by itself: what a
machine with a core for each would need is that of the busiest. The database's server is another process, uncounted.
"""

from __future__ import annotations

import datetime as dt
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import polars as pl
import pyarrow as pa
from flags import flags
from servers import binaries, postgres

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.streaming.messages import read_as
from wpinq.streaming.shared.leases import Holder
from wpinq.streaming.shared.worker import Worker

PARTITIONS = 8
COLUMNS = {"user": "text", "page": "text", "at": "timestamp with time zone"}
BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def recorded(rows: int) -> list[pa.Array]:
    """The messages of each partition, in order of time: 20 minutes, by people and pages of which few are many."""
    draw, result = np.random.default_rng(37), []
    for _ in range(PARTITIONS):
        many = rows // PARTITIONS
        frame = pl.DataFrame(
            {
                "user": draw.zipf(1.3, many).clip(0, 50_000),
                "page": draw.zipf(1.5, many).clip(0, 2_000),
                "at": np.sort(draw.integers(0, 1200, many)),
            }
        )
        stamp = (pl.lit(BEGIN) + pl.duration(seconds="at")).dt.strftime("%Y-%m-%dT%H:%M:%SZ")
        text = pl.concat_str(
            pl.lit('{"user": "u'), "user", pl.lit('", "page": "/'), "page", pl.lit('", "at": "'), stamp, pl.lit('"}')
        )
        result.append(frame.select(text.cast(pl.Binary).alias("m"))["m"].to_arrow())
    return result


class Recorded:
    """Partitions behind the interface of the Kafka source."""

    name, moving = "kafka views ", True

    def __init__(self, messages: list[pa.Array], schema: Any, many: int) -> None:
        self._messages, self._schema, self._many, self._read = messages, schema, many, read_as("json")
        self._places: dict[str, int] = {}
        self.offered = 0

    def names(self) -> list[str]:
        return [f"kafka views {number}-views" for number in range(len(self._messages))]

    def assign(self, positions: dict[str, Any]) -> None:
        self._places = {name: place or 0 for name, place in positions.items()}

    def look(self) -> Iterator[pl.DataFrame]:
        for name in self._places:
            messages = self._messages[self.names().index(name)]
            some = messages.slice(self._places[name], self._many)
            self._places[name] += len(some)
            self.offered += len(some)
            yield self._read(some, None, self._schema)

    def positions(self) -> dict[str, Any]:
        return dict(self._places)


class Clock:
    """CPU seconds of one process of several that take turns in this one."""

    def __init__(self) -> None:
        self.spent = 0.0

    def __enter__(self) -> None:
        self._begun = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.spent += time.process_time() - self._begun


def run(url: str, name: str, messages: list[pa.Array], workers: int, many: int) -> tuple[list[float], float, Any]:
    """CPU seconds of each worker and of the keeper, and the answers, to compare."""
    clocks, keeper = [Clock() for _ in range(workers)], Clock()
    with tempfile.TemporaryDirectory() as folder:
        ledger = f"{url}?ledger={name}&may_lose=crash&state={folder}"
        views = wpinq.live(COLUMNS, 10**7, ledger=ledger, recover=ledger, secret=Secret(bytes(range(32))),
                           unit=wpinq.users("user", at_most=20), keep=30)  # fmt: skip
        total = views.map("page").measure(5000, continual=True)  # noise of which moves no answer: they are compared
        windows = views.window("1m", at="at").map("page").measure(5000)
        home = views._journal.parts.home
        with closing(views), home.connected() as connection:
            holders = [Holder(home, 3600) for _ in clocks]
            members = [Worker(home, Recorded(messages, home.columns, many), holder, connection) for holder in holders]
            for _ in range(2):  # each learns how many there are
                for member in members:
                    member._balance()
            while max(member._source.offered for member in members) == 0 or any(
                place < len(messages[0]) for member in members for place in member._source.positions().values()
            ):
                for clock, member in zip(clocks, members, strict=True):
                    with clock:
                        member.look()
                with keeper:
                    views.follow(wpinq.kafka("nobody:9", "views"), workers=0)
                    views.advance(until=BEGIN)
            answers = total.observe_many([f"/{number}" for number in range(1, 50)]).tolist()
            views.advance(until=BEGIN + dt.timedelta(hours=1))
            answers += windows.observe_many([f"/{number}" for number in range(1, 50)], BEGIN).tolist()
            for holder in holders:
                holder.close()
    return [clock.spent for clock in clocks], keeper.spent, answers


def views_of(folder: str, **more: Any) -> Any:
    """A stream with a journal in a folder."""
    return wpinq.live({"user": "text", "page": "text", "at": "timestamp"}, 10**6, secret=Secret(bytes(range(32))),
                      ledger=Path(folder, "ledger"), recover=Path(folder, "epochs"), **more)  # fmt: skip


def sent(draw: np.random.Generator, rows: int, at: dt.datetime = dt.datetime(2026, 1, 1)) -> pl.DataFrame:
    """Records of one epoch."""
    users, pages = draw.integers(0, 5000, rows).astype(str), draw.zipf(1.5, rows).clip(0, 1000).astype(str)
    return pl.DataFrame({"user": users, "page": pages, "at": [at] * rows})


def epochs(rows: int, many: int, unit: Any) -> float:
    """Rows a CPU second, in epochs of so many rows, each answered once."""
    draw = np.random.default_rng(1)
    frames = [sent(draw, rows) for _ in range(many)]
    with tempfile.TemporaryDirectory() as folder, closing(views_of(folder, unit=unit, keep=10)) as views:
        total = views.map("page").measure(100, continual=True)
        begun = time.process_time()
        for frame in frames:
            views.send(frame)
            views.advance()
            total.observe("1")
        return rows * many / (time.process_time() - begun)


def restarted(rows: int, many: int) -> float:
    """CPU seconds until so many epochs of so many rows, of people, are taken in after a restart."""
    draw, unit, found = np.random.default_rng(1), wpinq.users("user", at_most=20), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2):
            with closing(views_of(folder, unit=unit)) as views:
                total = views.map("page").measure(100, continual=True)
                for _ in range(0 if number else many):
                    views.send(sent(draw, rows))
                    views.advance()
                begun = time.process_time()
                views.resume()
                spent = time.process_time() - begun
                found.append(total.observe_many(["1", "2"]).tolist())
        assert found[0] == found[1], "the answers are the same"
    return spent


def week(minutes: int) -> list[float]:
    """Memory in MB at the end of each seventh of so many epochs, each a minute, with windows of an hour."""
    draw, begin, memory = np.random.default_rng(1), dt.datetime(2026, 1, 1), []
    unit = wpinq.users("user", at_most=20, period="1h", at="at")
    with tempfile.TemporaryDirectory() as folder, closing(views_of(folder, unit=unit, keep=63)) as views:
        hours = views.window("1h", at="at").map("page").measure(1)
        for minute in range(minutes):
            now = begin + dt.timedelta(minutes=minute)
            views.send(sent(draw, 500, now))
            views.advance(until=now)
            if minute % 60 == 5 and minute > 60:
                hours.observe("1", window=begin + dt.timedelta(hours=minute // 60 - 1))
            if minute % (minutes // 7) == minutes // 7 - 1:
                memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 10**6)
    return memory


def alone(smoke: bool) -> None:
    """Print the figures of one process."""
    for rows, asked in ((1_000, 400_000), (10_000, 600_000)):
        of_records = epochs(rows, 20 if smoke else 300, None)
        of_people = epochs(rows, 20 if smoke else 300, wpinq.users("user", at_most=20))
        print(f"epochs of {rows:,} rows: {of_records:,.0f} rows a CPU second, of people {of_people:,.0f};"
              f" {asked:,} were asked for")  # fmt: skip
    rows, many = (1_000, 10) if smoke else (100_000, 100)
    print(
        f"{rows * many:,} rows are taken in after a restart in {restarted(rows, many):.1f} s of CPU; 10 were asked for"
    )
    memory = week(700 if smoke else 7 * 24 * 60)
    print(f"memory by the day: {', '.join(f'{each:.0f}' for each in memory)} MB")


def main() -> None:
    """Print CPU seconds, rows a CPU second of the busiest, and the ratio."""
    parser = flags(__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    words = parser.parse_args()
    rows = 40_000 if words.smoke else words.rows
    messages, found, speeds = recorded(rows), [], []
    with nullcontext() if binaries() is None else postgres() as url:
        for workers in (1, 2) if url else ():
            spent, kept, answers = run(url, f"s{workers}", messages, workers, max(rows // PARTITIONS // 20, 1))
            found.append(answers)
            speeds.append(rows / max(*spent, kept))
            each = " and ".join(f"{seconds:.2f}" for seconds in spent)
            print(
                f"{workers} workers: {each} s of CPU, keeper {kept:.2f}; {speeds[-1]:,.0f} rows a second of the busiest"
            )
    if not found:
        print("no PostgreSQL server is installed here, and several workers need one")
        alone(words.smoke)
        return
    assert found[0] == found[1], "the answers are the same"
    print(f"two workers: {speeds[1] / speeds[0]:.2f} times one; 1.7 was asked for")
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")
    alone(words.smoke)


if __name__ == "__main__":
    main()
