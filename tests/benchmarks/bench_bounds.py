"""Chosen bounds: how far `users(..., at_most="auto")` is from the best fixed bound in hindsight, on real data.

The error is the sum over the bins of the expected absolute error of a count: what the bound leaves out of the bin, and
Laplace noise. The best bound is found with the true records among numbers a tenth apart; it costs nothing. "at the same
epsilon" the chosen bound is used at the same epsilon as the best one, and "in all" at what the choice leaves of it.

Usage: python tests/benchmarks/bench_bounds.py [--smoke]

Real data is read from `shared/data` beside the repository; `--smoke` takes made-up views and few repetitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from bench_accuracy import SHARED
from flags import flags

from wpinq.aggregates.bound_choice import GRID, best_bound
from wpinq.core.noise.geometric import DiscreteLaplace
from wpinq.core.noise.words import Words

REPETITIONS = 200
SETS = ("BMS-WebView-1", "retail", "facebook", "wiki-vote", "Caltech36", "CA-HepTh", "p2p-gnutella25", "msnbc")
Floats = np.ndarray[Any, np.dtype[np.float64]]


def bounds(most: int) -> Floats:
    """Numbers a tenth apart."""
    found = [1]
    while found[-1] < most:
        found.append(max(found[-1] + 1, round(found[-1] * 1.1)))
    return np.array(found, np.float64)


def missing(views: pl.DataFrame, tried: Floats) -> Floats:
    """What each bound leaves out of each page on average, the largest pages first."""
    counts = views.group_by("user", "page").len().join(views.group_by("user").len("all"), on="user")
    pages = counts["page"].rank("dense").to_numpy().astype(np.int64) - 1
    own, whole = counts["len"].to_numpy(), counts["all"].to_numpy()
    lost = np.array([np.bincount(pages, own * (1 - np.minimum(1, bound / whole))) for bound in tried])
    return lost[:, np.argsort(-np.bincount(pages, own), kind="stable")]


def error(lost: Floats, tried: Floats, epsilon: float) -> Floats:
    """The expected absolute error of all bins together, for each bound."""
    scale = (tried / epsilon)[:, None]
    return np.asarray((lost + scale * np.exp(-lost / scale)).sum(1))


def data(smoke: bool) -> Iterator[tuple[str, pl.DataFrame]]:
    """The data sets by name, as far as they are here."""
    if smoke:
        rng = np.random.default_rng(1)
        yield "made up", pl.DataFrame({"user": rng.zipf(1.5, 5_000) % 900, "page": rng.zipf(1.5, 5_000) % 300})
        return
    for name in SETS:
        if (SHARED / f"{name}.parquet").exists():
            yield name, pl.read_parquet(SHARED / f"{name}.parquet")


def chosen(views: pl.DataFrame, price: float, cost: Fraction, repetitions: int) -> Floats:
    """What is chosen with noise of several keys."""
    lengths = np.minimum(views.group_by("user").len()["len"].to_numpy(), GRID[-1])
    cells = np.bincount(np.searchsorted(GRID, lengths), minlength=len(GRID))
    noise, ids = DiscreteLaplace(1 / cost), np.arange(2 * len(GRID), dtype=np.uint64).reshape(-1, 2)
    drawn = (noise.draw(Words(key.to_bytes(32, "little")), ids) for key in range(repetitions))
    return np.array([best_bound((cells + one).astype(np.float64), float(1 / cost), price) for one in drawn])


def main(smoke: bool) -> None:
    """One line for each data set, number of bins, and epsilon."""
    print("| data | people | bins | epsilon | best bound | chosen (5%, median, 95%) | at the same epsilon | in all |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, views in data(smoke):
        tried = bounds(int(views.group_by("user").len()["len"].max()))  # type: ignore[arg-type]
        lost = missing(views, tried)
        every = lost.shape[1]
        for bins, epsilon in ((every, 1.0), (every, 0.1), *(((100, 1.0),) if every > 100 else ())):
            cost = Fraction(epsilon).limit_denominator(100) / 10
            errors, left = (error(lost[:, :bins], tried, one) for one in (epsilon, epsilon * 0.9))
            found = chosen(views, bins / epsilon, cost, 20 if smoke else REPETITIONS)
            same, whole = (np.interp(found, tried, one).mean() / errors.min() for one in (errors, left))
            shown = ", ".join(f"{value:.0f}" for value in np.quantile(found, [0.05, 0.5, 0.95]))
            best = f"{tried[errors.argmin()]:.0f}"
            people = views["user"].n_unique()
            print(f"| {name} | {people:,} | {bins:,} | {epsilon} | {best} | {shown} | {same:.3f} | {whole:.3f} |")


if __name__ == "__main__":
    main(flags(__doc__).parse_args().smoke)
