"""Totals under an automatic bound, beside two mechanisms that choose one for totals: R2T and the shifted inverse.

How many records there are in all, where a person may have any number of them: epsilon 1 and 1/10, 200 runs a row, the
median of the relative error. Ours is what `at_most("auto")` does: half of epsilon chooses the bound, half pays for the
total (`wpinq/aggregates/automatic.py`). The others are as their papers' pseudo-code has them:

- R2T: for tau = b, b^2, ..., GS the total with each person's records cut at tau, with Laplace noise of scale
  log(GS) tau / epsilon, less log(GS) ln(log(GS) / beta) tau / epsilon, logarithms to the base b; the largest of these
  and 0. Dong, Fang, Yi, Tao and Machanavajjhala, SIGMOD 2022. GS = 10^6, beta = 0.1, and b = 5.5 as in the authors' own
  program, where the paper has 2: so it errs less (`bench_tpch.py --published`).
- The shifted inverse: an exponential mechanism among all totals up to D, of which the one scores best that is left when
  the 2 ln((D + 1) / beta) / epsilon people of most records are taken away, and others by how many people more or less
  it would take. Fang, Dong and Yi, CCS 2022. D = 2^30, beta = 0.1.

Usage: python tests/benchmarks/bench_totals.py [--smoke]

Real data is read from `shared/data` beside the repository; `--smoke` takes made-up numbers and few runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from bench_accuracy import SHARED
from flags import flags

from wpinq.aggregates.automatic import part
from wpinq.aggregates.bound_choice import GRID, best_bound

RUNS = 200
SETS = ("BMS-WebView-1", "retail", "facebook", "wiki-vote", "Caltech36", "CA-HepTh", "p2p-gnutella25", "msnbc")
GS, MOST, BETA, BASE = 10**6, 2**30, 0.1, 5.5
Floats = np.ndarray[Any, np.dtype[np.float64]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def degrees(smoke: bool) -> Iterator[tuple[str, Numbers]]:
    """How many records each person has, by the name of the data."""
    if not smoke:
        for name in SETS:
            place = SHARED / f"{name}.parquet"
            if place.exists():
                users = pl.scan_parquet(place).group_by("user").len().collect()["len"]
                yield name, np.sort(users.to_numpy().astype(np.int64))
    rng = np.random.default_rng(1)
    yield "made up: Zipf 2", np.sort(np.minimum(rng.zipf(2.0, 20_000), 2**20))
    yield "made up: lognormal", np.sort(np.ceil(rng.lognormal(1, 1.5, 20_000)).astype(np.int64))
    yield "made up: 20 each", np.full(20_000, 20)


def cut(counts: Numbers, most: int) -> int:
    """All records, of each person no more than a number."""
    return int(np.minimum(counts, most).sum())


def ours(counts: Numbers, epsilon: float, rng: np.random.Generator) -> float:
    """A chosen bound, and the total under it."""
    chosen = epsilon * float(part(1))
    rest = epsilon - chosen
    cells = np.bincount(np.searchsorted(GRID, np.minimum(counts, GRID[-1])), minlength=len(GRID))
    most = best_bound(cells + laplace(1 / chosen, rng, len(GRID)), 1 / chosen, 1 / rest)
    return cut(counts, most) + float(laplace(most / rest, rng, 1)[0])


def laplace(scale: float, rng: np.random.Generator, number: int) -> Floats:
    """Discrete Laplace noise, as the difference of two geometric numbers."""
    stop = -np.expm1(-1 / scale)
    return (rng.geometric(stop, number) - rng.geometric(stop, number)).astype(np.float64)


def race(counts: Numbers, epsilon: float, rng: np.random.Generator, most: int = GS) -> float:
    """R2T, for a person who adds no more than `most`."""
    steps = int(np.log(most) / np.log(BASE))
    taus = BASE ** np.arange(1, steps + 1)
    scale = steps * taus / epsilon
    totals = np.array([np.minimum(counts, tau).sum() for tau in taus])
    return float(max(0.0, (totals + rng.laplace(0, scale) - scale * np.log(steps / BETA)).max()))


def shifted(counts: Numbers, epsilon: float, rng: np.random.Generator) -> float:
    """The shifted inverse: an interval of totals by its score and its length, and a total in it."""
    shift = int(np.ceil(2 / epsilon * np.log((MOST + 1) / BETA)))
    left = np.concatenate([np.cumsum(counts)[::-1], [0]])  # when 0, 1, 2, ... people of most records are away
    known = np.arange(len(left))
    low = np.append(left[1:], -1)
    lengths = np.maximum(left - low, 0).astype(np.float64)  # totals that take exactly so many people
    scores = -np.abs(known - shift).astype(np.float64)
    above = float(MOST - left[0])
    weights = np.append(np.log(np.maximum(lengths, 1e-300)) + epsilon * scores / 2, np.log(above) - epsilon * shift / 2)
    chances = np.exp(weights - weights.max())
    place = int(rng.choice(len(weights), p=chances / chances.sum()))
    if place == len(left):
        return float(rng.integers(left[0] + 1, MOST + 1))
    return float(rng.integers(low[place] + 1, left[place] + 1))


MECHANISMS = {"R2T": race, "shifted inverse": shifted, "at_most auto": ours}


def medians(counts: Numbers, epsilon: float, runs: int) -> list[float]:
    """The median of the relative error of each mechanism."""
    whole, result = int(counts.sum()), []
    for mechanism in MECHANISMS.values():
        rng = np.random.default_rng(7)
        result.append(float(np.median([abs(mechanism(counts, epsilon, rng) - whole) / whole for _ in range(runs)])))
    return result


def main(smoke: bool) -> None:
    """One line for each data set and epsilon."""
    print("| data | people | records | of one | epsilon | " + " | ".join(MECHANISMS) + " |")
    print("|---|--:|--:|--:|--:|" + "--:|" * len(MECHANISMS))
    for name, counts in degrees(smoke):
        whole = int(counts.sum())
        for epsilon in (1.0, 0.1):
            cells = medians(counts, epsilon, 20 if smoke else RUNS)
            least = min(cells)
            shown = " | ".join(f"**{one:.2%}**" if one == least else f"{one:.2%}" for one in cells)
            print(f"| {name} | {len(counts):,} | {whole:,} | {counts[-1]:,} | {epsilon} | {shown} |")


if __name__ == "__main__":
    main(flags(__doc__).parse_args().smoke)
