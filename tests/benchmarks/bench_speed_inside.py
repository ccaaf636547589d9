"""What can only be seen inside one process: the engine's share, noise for each bin, and what a live source takes.

    python tests/benchmarks/bench_speed_inside.py --batches 60 --rounds 12

The engine's share is bytewax against the same kernels in a loop, on the same batches of 262,144 rows in memory. Their
order rotates, and each runs twice a round: the difference between the two runs of one kind is what chance does (A/A).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from flags import flags

import wpinq
from wpinq.core.engines import reading
from wpinq.core.engines.job import needed_columns, representatives
from wpinq.core.noise import Words, mechanism
from wpinq.core.plan.node import Node, steps
from wpinq.core.plan.shapes import Keyed, Read, Stateless
from wpinq.core.records.identity import identities, integer_identities
from wpinq.core.records.reader import Steady
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.state.histogram import Histogram

ROWS = 1 << 18
KEY = bytes(range(16))


@dataclass
class Frames:
    """A reader of frames in memory."""

    schema: Schema
    frames: list[pl.DataFrame]
    total_bytes: int = 0
    steady: Steady = Steady.MEMORY

    def version(self) -> None:
        """None: they are in memory."""

    def batches(self, columns: Any, **_: Any) -> Iterator[pl.DataFrame]:
        """The frames, as they are."""
        return (frame.select(columns) for frame in self.frames)


def plan(batches: int) -> Node:
    """The CDF of pages in memory."""
    rng = np.random.default_rng(5)
    frames = [
        pl.DataFrame({"page": rng.zipf(1.3, ROWS) % 10**6 * 7919, "user": np.zeros(ROWS, np.int64)})
        for _ in range(batches)
    ]
    pages = wpinq.protect(frames[0], budget=1).map(lambda page: page)
    cdf = pages.shave().map(lambda page, index: index)._node
    source = steps(cdf)[0]
    object.__setattr__(source.data, "reader", Frames(source.schema, frames))
    return cdf


def looped(root: Node) -> Histogram:
    """The kernels of a chain of steps, in a loop."""
    needed = needed_columns([root], representatives([root]))
    shapes = [node.lower(needed[node]) for node in steps(root)]
    states = {place: shape.state(KEY) for place, shape in enumerate(shapes) if isinstance(shape, Keyed)}
    histogram = Histogram(root.schema, KEY, root.held.array)

    def push(batch: Any, place: int) -> None:
        for after in range(place, len(shapes)):
            shape = shapes[after]
            if isinstance(shape, Keyed):
                states[after].absorb(0, batch)
                return
            assert isinstance(shape, Stateless)
            batch = shape.kernel(batch)
        histogram.absorb(batch)

    read = shapes[0]
    assert isinstance(read, Read)
    for lots in reading.batches(read, (0, 1), None):
        for batch in lots:
            push(batch, 1)
    for place, state in states.items():
        push(state.emit(), place + 1)
    return histogram


def share(batches: int, rounds: int) -> None:
    """Print the engine's share."""
    from wpinq.core.engines.bytewax import flow  # which newer Pythons have not

    reading.BYTES_PER_LOT = 1
    root = plan(batches)
    kinds: list[tuple[str, Callable[[], Any]]] = [
        (name, run)
        for name, run in (("loop", lambda: looped(root)), ("flow", lambda: flow.run(flow.Job([root], KEY))[0]))
        for _ in range(2)
    ]
    assert str(looped(root).content()) == str(flow.run(flow.Job([root], KEY))[0].content())
    times: list[list[float]] = [[] for _ in kinds]
    for turn in range(rounds):
        for at in range(len(kinds)):
            place = (at + turn) % len(kinds)
            start = time.process_time()
            kinds[place][1]()
            times[place].append(time.process_time() - start)
    a, b, c, d = (statistics.median(each) for each in times)
    print(f"loop {a:.4f} / {b:.4f} s CPU, flow {c:.4f} / {d:.4f}; A/A {a / b - 1:+.1%}, {c / d - 1:+.1%}; ", end="")
    print(f"share {(c + d) / (a + b) - 1:+.1%}, {((c + d) - (a + b)) / 2 / batches * 1e6:+.0f} us a batch")


def bins(count: int) -> None:
    """Print microseconds of identity and noise for a bin."""
    texts = pl.DataFrame({"page": [f"page/{number}" for number in range(count)]})
    schema = Schema((Column("page", Kind.TEXT),))
    for scale in (Fraction(10), Fraction(10**4)):
        draw = mechanism("geometric", scale).draw
        for name, ids in (
            ("integer", lambda: integer_identities(np.arange(count), KEY)),
            ("text", lambda: identities(texts, schema, KEY)),
        ):
            rounds = []
            for _ in range(5):
                start = time.process_time()
                draw(Words(bytes(32)), ids())
                rounds.append(time.process_time() - start)
            print(f"{name} bins at scale {scale}: {min(rounds) / count * 1e6:.3f} us a bin, identity and noise")


def live(epochs: int, rows: int, rounds: int) -> None:
    """Print milliseconds from sending a thousand rows to an observed bin, after many rows."""
    rng = np.random.default_rng(3)
    share = np.cumsum(1 / np.arange(1, 500_001))
    names = pl.Series("page", [f"page/{number}" for number in range(len(share))])

    def table(size: int) -> pl.DataFrame:
        return pl.DataFrame({"page": names.gather(np.searchsorted(share / share[-1], rng.random(size)))})

    for title, shaved, asked in (("CDF", True, 5), ("page views", False, "page/5")):
        source = wpinq.live({"page": str}, budget=10**6)
        plan = source.shave().map(lambda page, index: index) if shaved else source.map(lambda page: page)
        plan.measure(1)
        for _ in range(epochs):
            source.send(table(rows))
            source.advance()
        times = []
        for _ in range(rounds):
            few, measured = table(1000), plan.measure(1)
            start, used = time.perf_counter(), time.process_time()
            source.send(few)
            source.advance()
            measured.observe(asked)
            times.append((time.perf_counter() - start, time.process_time() - used))
        source.close()
        wall, cpu = ([1e3 * one for one in each] for each in zip(*times, strict=True))
        print(f"1,000 rows more after {epochs * rows:,}, {title}: {statistics.median(wall):.2f} ms", end=" ")
        print(f"(at most {max(wall):.2f}), CPU {statistics.median(cpu):.2f} ms (at most {max(cpu):.2f})")


if __name__ == "__main__":
    parser = flags(__doc__, "a few batches and bins, once")
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--bins", type=int, default=1_000_000)
    options = parser.parse_args()
    batches, rounds, asked = (2, 1, 1000) if options.smoke else (options.batches, options.rounds, options.bins)
    share(batches, rounds)
    bins(asked)
    live(*((2, 1000, 3) if options.smoke else (20, 10**6, 100)))
