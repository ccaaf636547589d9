"""Does the time of `observe` tell bins that exist from bins that do not? (Attack 12.)

    python tests/benchmarks/bench_observe_time.py --json observe_time.json

For each kind of measurement a present and an absent bin are asked in turn, in random order, many times, each time
another bin, so that caches know neither. Reported are the median of the difference within a turn (present less absent),
its 99% confidence interval by bootstrap, and how often the best threshold on the time of one question guesses right
(0.5: not at all). To show that the method sees a difference, present bins are also made to cost a little more.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from flags import flags

import wpinq

RECORDS = 200_000


def questions(records: int) -> dict[str, tuple[Any, Callable[[int], Any], Callable[[int], Any]]]:
    """Measurements, and for each a present and an absent bin of every number."""
    number = np.arange(records)
    table = pl.DataFrame({"user": [f"u{i}" for i in number], "page": [f"p{i:07d}" for i in number], "n": number * 2})
    views = wpinq.protect(table, budget=1000)
    texts, numbers = views.map(lambda page: page), views.map(lambda n: n)
    pairs = views.map(lambda user, page: (user, page))
    heavy = views.map(lambda n: n % 2).shave().map(lambda index: index)
    return {
        "text": (texts.measure(1), lambda i: f"p{i:07d}", lambda i: f"q{i:07d}"),
        "integer": (numbers.measure(1), lambda i: 2 * i, lambda i: 2 * i + 1),
        "pair": (pairs.measure(1), lambda i: (f"u{i}", f"p{i:07d}"), lambda i: (f"u{i}", f"p{i + 1:07d}")),
        "steps": (heavy.measure(1), lambda i: i + 1, lambda i: records + 1 + i),
    }


def ask(observe: Callable[[Any], Any], kinds: Sequence[Callable[[int], Any]], rounds: int, records: int) -> np.ndarray:
    """Nanoseconds of each question: shape (rounds, kinds). Both kinds are asked in every round, in random order."""
    generator = np.random.default_rng(12)
    times = np.empty((rounds, len(kinds)))
    for kind in kinds:
        observe(kind(0))
    gc.disable()
    for turn in range(rounds):
        places = generator.permutation(len(kinds))
        chosen = generator.integers(0, records, len(kinds))
        for place in places.tolist():
            one = kinds[place](int(chosen[place]))
            start = time.perf_counter_ns()
            observe(one)
            times[turn, place] = time.perf_counter_ns() - start
    gc.enable()
    return times


def compared(times: np.ndarray) -> dict[str, float]:
    """The median difference in microseconds, its 99% interval, and the accuracy of the best guess on fresh times."""
    generator = np.random.default_rng(1)
    rows = generator.integers(0, len(times), (500, len(times)))
    difference = times[:, 0] - times[:, 1]
    low, high = np.quantile(np.median(difference[rows], axis=1), [0.005, 0.995]) / 1e3
    half = len(times) // 2
    cuts = np.quantile(times[:half], np.linspace(0.01, 0.99, 99))
    right = [(times[:half, 0] > cut).mean() - (times[:half, 1] > cut).mean() for cut in cuts]
    best = int(np.argmax(np.abs(right)))
    fresh = (times[half:, 0] > cuts[best]).mean() - (times[half:, 1] > cuts[best]).mean()
    return {
        "median_us": float(np.median(times) / 1e3),
        "difference_us": float(np.median(difference) / 1e3),
        "low_us": float(low),
        "high_us": float(high),
        "guessed_right": float(0.5 + 0.5 * fresh * np.sign(right[best])),
    }


def main() -> None:
    """Measure, print a table, and write JSON where asked."""
    parser = flags(__doc__)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    records, rounds = (2000, 100) if arguments.smoke else (RECORDS, arguments.rounds)
    found = {}
    for name, (measurement, present, absent) in questions(records).items():
        found[name] = compared(ask(measurement.observe, (present, absent), rounds, records))
        if name == "text":

            def slower(one: str, observe: Callable[[Any], Any] = measurement.observe) -> None:
                observe(one)
                if one.startswith("p"):
                    sum(range(1000))

            found["text, made to differ"] = compared(ask(slower, (present, absent), rounds, records))
    for name, row in found.items():
        print(
            f"{name:22} median {row['median_us']:8.1f} us   present - absent {row['difference_us']:+7.2f} us"
            f"   99% [{row['low_us']:+.2f}, {row['high_us']:+.2f}]   guessed right {row['guessed_right']:.3f}"
        )
    if arguments.json:
        machine = {"python": platform.python_version(), "numpy": np.__version__, "cores": os.cpu_count()}
        report = {"benchmark": "observe time", "records": records, "rounds": rounds, "machine": machine, "kinds": found}
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
