"""Send a thousand records, advance, observe: against the same states called in a loop, without an engine.

python tests/benchmarks/bench_live.py
"""

import statistics
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from strategies import Driver

import wpinq
from wpinq.core.plan.shapes import Keyed, Read, Stateless
from wpinq.core.records.batch import Batch

ROUNDS, ROWS = 200, 1000


def tables():
    draw = np.random.default_rng(1)
    for _ in range(ROUNDS):
        users = draw.integers(0, 5000, ROWS).astype(str)
        yield pl.DataFrame({"user": users, "page": draw.zipf(1.5, ROWS).clip(0, 1000).astype(str)})


def direct(plan):
    """The kernels and states of the plan, called one after another."""
    driver = Driver(plan)
    times = []
    for table in tables():
        start = time.perf_counter()
        found = {}
        for node in driver.order:
            shape = driver.shapes[node]
            ups = [found[driver.chosen[one]] for one in node.inputs]
            if isinstance(shape, Read):
                found[node] = [Batch.of(table, node.schema).consolidate().select(shape.columns)]
            elif isinstance(shape, Stateless):
                found[node] = [shape.kernel(one) for one in ups[0]]
            else:
                assert isinstance(shape, Keyed)
                state = driver.states[node].setdefault("all", shape.state(driver.key))
                for one in ups[0]:
                    state.absorb(0, one)
                found[node] = [state.emit()]
        for one in found[driver.chosen[driver.root]]:
            driver.histogram.absorb(one)
        times.append(time.perf_counter() - start)
    return times


def live(views, measurement, bins):
    times = []
    for table in tables():
        start = time.perf_counter()
        views.send(table)
        views.advance()
        measurement.observe_many(bins)
        times.append(time.perf_counter() - start)
    return times


def shown(name, times):
    low, *_, high = statistics.quantiles(times, n=10)
    middle = statistics.median(times)
    print(f"{name:32} median {middle * 1e3:6.2f} ms   10% {low * 1e3:6.2f}   90% {high * 1e3:6.2f}")
    return middle


def pages(views):
    return views.map(lambda page: page)


def degrees(views):
    return pages(views).shave().map(lambda page, index: index)


def main():
    columns = {"user": "text", "page": "text"}
    for name, make, continual in (("pages, every epoch", pages, True), ("degree CDF, kept up to date", degrees, False)):
        plan = make(wpinq.protect([], budget=1, columns=columns))
        views = wpinq.live(columns, budget=1000)
        measurement = make(views).measure(1, continual=continual)
        views.advance()
        print(name)
        slow = shown("  live: send, advance, observe", live(views, measurement, ["1"] if continual else [1]))
        fast = shown("  direct: kernels in a loop", direct(plan))
        print(f"  ratio {slow / fast:.2f}\n")
        before = time.process_time()
        time.sleep(2)
        print(f"  idle: {(time.process_time() - before) / 2:.2%} of a core\n")
        views.close()


if __name__ == "__main__":
    main()
