"""Quantiles: how many ranks they are off, on average, beside the exponential mechanism and ApproximateQuantiles.

Both are as in the pseudo-code of Kaplan, Schnapp and Stemmer, "Differentially private approximate quantiles", ICML
2022: over the real numbers between the same bounds, for neighbours that differ by one record more, in floating point.
There each level of the recursion has epsilon / (log2(quantiles) + 1), and the exponential mechanism an equal part for
each quantile. "with intervals" is what our answers err by where a quarter of epsilon pays for intervals. Numbers are
drawn anew for every tenth run; all have the same ones.

Usage: python tests/benchmarks/bench_quantiles.py [--smoke] [--runs N]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
from flags import flags

import wpinq

LEAST, LARGEST = 0.0, 100.0
DECILES = [tenth / 10 for tenth in range(1, 10)]
PERCENTILES = [hundredth / 100 for hundredth in range(1, 100)]
CASES = [
    ("nine deciles", DECILES, "lognormal", 20_000, 1.0), ("nine deciles", DECILES, "lognormal", 20_000, 0.1),
    ("nine deciles", DECILES, "lognormal", 2_000, 0.1), ("nine deciles", DECILES, "even", 20_000, 1.0),
    ("nine deciles", DECILES, "two hills", 20_000, 1.0), ("99 percentiles", PERCENTILES, "lognormal", 20_000, 1.0),
    ("quartiles", [0.25, 0.5, 0.75], "lognormal", 20_000, 1.0), ("median", [0.5], "lognormal", 20_000, 1.0),
    ("median", [0.5], "lognormal", 2_000, 0.1),
]  # fmt: skip
PUBLISHED = {
    ("nine deciles", 20_000, 1.0): 5.9,
    ("nine deciles", 20_000, 0.1): 56.0,
    ("nine deciles", 2_000, 0.1): 69.0,
}
"""Of ApproximateQuantiles on lognormal numbers."""
Floats = np.ndarray[Any, np.dtype[np.float64]]


def drawn(shape: str, size: int, rng: np.random.Generator) -> Floats:
    """Numbers between the bounds, no two of them equal."""
    if shape == "even":
        found = rng.uniform(LEAST, LARGEST, size)
    elif shape == "two hills":
        found = np.where(rng.random(size) < 0.5, rng.normal(20, 2, size), rng.normal(70, 5, size))
    else:
        found = np.exp(rng.normal(0, 1, size))
    return np.sort(np.clip(found, LEAST, LARGEST))


def exponential(
    values: Floats, low: float, high: float, share: float, epsilon: float, rng: np.random.Generator
) -> float:
    """One quantile by the exponential mechanism over the real numbers, by the rate that add-remove neighbours allow."""
    edges = np.concatenate([[low], values, [high]])
    off = np.abs(np.arange(len(edges) - 1) - share * len(values))
    with np.errstate(divide="ignore"):
        likely = np.log(np.diff(edges)) - epsilon / (2 * max(share, 1 - share)) * off
    place = int(np.argmax(likely + rng.gumbel(size=len(likely))))
    return float(rng.uniform(edges[place], edges[place + 1]))


def approximate(
    values: Floats, low: float, high: float, shares: list[float], each: float, rng: np.random.Generator
) -> list[float]:
    """ApproximateQuantiles: the middle one, and those on both sides."""
    if not shares:
        return []
    middle = (len(shares) - 1) // 2
    share = shares[middle]
    found = exponential(values, low, high, share, each, rng)
    below, above = (
        [one / share for one in shares[:middle]],
        [(one - share) / (1 - share) for one in shares[middle + 1 :]],
    )
    return [
        *approximate(values[values < found], low, found, below, each, rng), found,
        *approximate(values[values > found], found, high, above, each, rng),
    ]  # fmt: skip


def ways(shares: list[float], epsilon: float, rng: np.random.Generator) -> Iterator[tuple[str, Callable[..., Any]]]:
    """What answers, by name: from sorted numbers and a collection of them."""
    each = epsilon / len(shares)
    yield (
        "exponential mechanism",
        lambda values, _: [exponential(values, LEAST, LARGEST, share, each, rng) for share in shares],
    )
    level = epsilon / (np.floor(np.log2(len(shares))) + 1)
    yield "ApproximateQuantiles", lambda values, _: approximate(values, LEAST, LARGEST, shares, level, rng)

    def ours(interval: bool) -> Callable[..., Any]:
        def answer(_: Floats, records: Any) -> Any:
            asked = records.quantiles(
                "x", shares, (LEAST, LARGEST), epsilon, interval=interval, name=str(rng.integers(2**60))
            )
            return asked.frame["value"].to_numpy()

        return answer

    yield "wpinq", ours(interval=False)
    yield "with intervals", ours(interval=True)


def off(shares: list[float], shape: str, size: int, epsilon: float, runs: int) -> dict[str, float]:
    """How many ranks each is off, on average over runs and shares."""
    rng, result = np.random.default_rng(2022), dict[str, list[float]]()
    for run in range(runs):
        if run % 10 == 0:
            values = drawn(shape, size, rng)
            records = wpinq.protect(pl.DataFrame({"x": values}), budget=10**9)
        for name, answer in ways(shares, epsilon, rng):
            found = np.searchsorted(values, answer(values, records))
            result.setdefault(name, []).append(float(np.abs(found - np.array(shares) * size).mean()))
    return {name: float(np.mean(each)) for name, each in result.items()}


def main(runs: int, cases: list[tuple[str, list[float], str, int, float]]) -> None:
    """Print a row for each case."""
    print(f"Ranks off, on average of {runs} runs; numbers between {LEAST:g} and {LARGEST:g}.\n")
    names = [name for name, _ in ways([0.5], 1, np.random.default_rng())]
    print("| quantiles | numbers | n | epsilon | published | " + " | ".join(names) + " |")
    print("|---|---|--:|--:|--:|" + "--:|" * len(names))
    for title, shares, shape, size, epsilon in cases:
        found = off(shares, shape, size, epsilon, runs)
        known = PUBLISHED.get((title, size, epsilon)) if shape == "lognormal" else None
        row = [title, shape, f"{size:,}", f"{epsilon:g}", "" if known is None else f"{known:g}"]
        print("| " + " | ".join([*row, *(f"{found[name]:.1f}" for name in names)]) + " |", flush=True)


if __name__ == "__main__":
    parser = flags(__doc__, "two cases, ten runs")
    parser.add_argument("--runs", type=int, default=200)
    given = parser.parse_args()
    main(10 if given.smoke else given.runs, [CASES[2], CASES[-1]] if given.smoke else CASES)
