"""What others do best, beside ours: one table of people, totals, names, quantiles, running counts, ranges and counts.

Usage: python tests/benchmarks/bench_peers.py [--smoke]

Each row is taken from the benchmark of its own name, which says how it was measured and has more cases. Less is better,
but for names, of which more were found. `suggest_bounds` has bars and no peer: none of many calls is wider than a
hundred times what 98% of the numbers take, or ten times where numbers are near 10^6 and one apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

import bench_continual
import bench_names
import bench_totals
import numpy as np
from bench_quantiles import DECILES, off
from bench_ranges import equal, usual
from flags import flags

import wpinq
from wpinq.aggregates import ranging
from wpinq.aggregates.heap import Heap
from wpinq.aggregates.range_tree import Tree
from wpinq.aggregates.ranging import IDENTITIES
from wpinq.aggregates.scale import SIZE, points
from wpinq.core.noise import Words
from wpinq.core.noise.gaussian_curve import shift_of
from wpinq.query import quoted

Row: TypeAlias = "tuple[str, str, float, float]"
"""The task, the best of the others by name, what it has, and what ours has."""
MOST, DELTA = 20, Fraction(1, 10**6)
PEOPLE = {
    "people, distinct, at_most 20": "SELECT COUNT(DISTINCT user) FROM v",
    "people by number of records": "SELECT n, COUNT(*) FROM (SELECT user, COUNT(*) n FROM v GROUP BY user) GROUP BY n",
    "people of more than one record": "SELECT COUNT(*) FROM (SELECT user FROM v GROUP BY user HAVING COUNT(*) > 1)",
}
"""Questions that a person is in once; a bound on their records is no reason for more noise."""


def people() -> Iterator[Row]:
    """How far one person moves what is asked."""
    unit = wpinq.users("user", at_most=MOST)
    views = wpinq.protect([("ann", "a")], 1, columns={"user": str, "page": str}, unit=unit, delta=DELTA, version="1")
    for task, query in PEOPLE.items():
        quote = quoted(query, {"v": views}, epsilon=1, keys=[1] if "n," in query else None)
        yield f"{task}: scale", "any", 1, float(quote.counts[0].scale)


def totals(smoke: bool, runs: int) -> Iterator[Row]:
    """The median of the relative error of a total, in percent."""
    for name, counts in bench_totals.degrees(smoke):
        race, shifted, ours = (100 * one for one in bench_totals.medians(counts, 1, runs))
        yield f"total, {name}: %", "R2T" if race < shifted else "shifted inverse", min(race, shifted), ours


def names(smoke: bool) -> Iterator[Row]:
    """How many names are found."""
    for epsilon in (1,) if smoke else (1, 3):
        found = bench_names.found(bench_names.drawn(400 if smoke else 2_000, 50, 5_000), 50, epsilon)
        *_, ours = found.values()
        best = max(list(found)[:-1], key=lambda way: found[way])
        yield f"unknown groups, 50 each, epsilon {epsilon}: names", best, found[best], ours


def quantiles(runs: int) -> Iterator[Row]:
    """How many ranks nine deciles are off."""
    for epsilon in (1.0, 0.1):
        found = off(DECILES, "lognormal", 20_000, epsilon, runs)
        best = min(("exponential mechanism", "ApproximateQuantiles"), key=lambda way: found[way])
        yield f"nine deciles, epsilon {epsilon:g}: ranks", best, found[best], found["wpinq"]


def running(horizons: tuple[int, ...]) -> Iterator[Row]:
    """The root mean square of a running count, told its horizon: beside the factorization that is published.

    Its matrix of sums is the square of a lower triangle of coefficients c(k) = binomial(2 k, k) / 4^k. Source:
    Fichtenberger, Henzinger and Upadhyay, ICML 2023.
    """
    shift = float(shift_of(Fraction(1), DELTA))
    for last in horizons:
        places = np.arange(1, last)
        squares = np.cumsum(np.concatenate([[1.0], np.cumprod(1 - 0.5 / places) ** 2]))
        published = math.sqrt(float(squares[-1]) * float(squares.mean())) / shift
        ours = math.sqrt(float(bench_continual.factored(last).mean()))
        yield f"running count, {last:,} epochs, (1, 1e-6): rms", "square root", published, ours


def ranges(size: int) -> Iterator[Row]:
    """The standard deviation of the count of a range, on average."""
    best = min(usual(equal(size, base)) for base in (8, 10, 12, 16, 24, 32))
    yield f"ranges over {size:,} bins: std", "HB", best, usual(Tree.of(size))


def counts(many: int) -> Iterator[Row]:
    """The standard deviation of each of many counts in one SELECT."""
    views = wpinq.protect([(1,)], 1, columns={"x": int}, delta=DELTA, version="1")
    query = ", ".join(f"COUNT(*) FILTER (WHERE x <> {each})" for each in range(many))
    quote = quoted(f"SELECT {query} FROM v", {"v": views}, epsilon=1, delta=DELTA, mechanism="gaussian")
    best = math.sqrt(many) / float(shift_of(Fraction(1), DELTA))
    yield f"{many} counts, (1, 1e-6): std", "exact Gaussian", best, quote.counts[0].query.stddev()


def bounds(calls: int) -> Iterator[str]:
    """The widest bounds of many calls of `suggest_bounds`, in times of what 98% of the numbers take, and their bars."""
    cases = {"50 to 150": (np.arange(50.0, 151).repeat(10), 100),
             "near 10^6": (1e6 + np.random.default_rng(1).normal(size=2_000), 10)}  # fmt: skip
    ids = np.arange(2 * IDENTITIES, dtype=np.uint64).reshape(-1, 2)
    for name, (values, bar) in cases.items():
        heap, rng = Heap(SIZE, *np.unique(points(values), return_counts=True)), np.random.default_rng(9)
        spread = np.ptp(np.quantile(values, [0.01, 0.99]))
        for epsilon in (Fraction(1, 2), Fraction(1)):
            ends = (ranging.bounds_of(heap, epsilon, 1, Words(rng.bytes(32)), ids) for _ in range(calls))
            widest = max((high - low) / spread for low, high in ends)
            verdict = "holds" if widest < bar else "MISSED"
            yield f"| {name} | {float(epsilon):g} | {calls:,} | {widest:.2f} | {bar} | {verdict} |"


def rows(smoke: bool) -> Iterator[Row]:
    """All rows of the table."""
    runs = 10 if smoke else 200
    yield from people()
    yield from totals(smoke, runs)
    yield from names(smoke)
    yield from quantiles(runs)
    yield from running((1_000,) if smoke else (1_000, 100_000, 1_000_000))
    yield from ranges(64 if smoke else 1_024)
    yield from counts(10 if smoke else 100)


def main(smoke: bool) -> None:
    """Print both tables."""
    print("| task, epsilon 1 unless said | best of the others | it | ours | ratio |\n|---|---|--:|--:|--:|")
    for task, best, others, ours in rows(smoke):
        ratio = others / ours if task.endswith("names") else ours / others
        print(f"| {task} | {best} | {others:.4g} | {ours:.4g} | {ratio:.2f} |", flush=True)
    print("\n| `suggest_bounds` of numbers | epsilon | calls | widest | bar | |\n|---|--:|--:|--:|--:|---|")
    for line in bounds(60 if smoke else 10_000):
        print(line, flush=True)


if __name__ == "__main__":
    main(flags(__doc__).parse_args().smoke)
