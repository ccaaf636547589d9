"""Names that nobody gave: how many `select` finds where people have many, beside what there was and others.

Usage: python tests/benchmarks/bench_names.py [--smoke]

People have a number of different items each, drawn from a power law, and nobody knows the items beforehand. Delta is
10^-6. "optimal for one" is partition selection of Desfontaines et al. for a unit that moves so many bins; "Gaussian
release" a measurement with Gaussian noise at half of delta and a threshold at the other half; "weighted, one round" the
algorithm of Gopi et al. ("Differentially private set union", ICML 2020); the last column is `select`. Of real data
(`shared/data` beside the repository, where it is) people have 50 records at the most, and optimal selection is given
items that are counted without noise.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
from bench_accuracy import SHARED
from flags import flags

import wpinq
from wpinq.core.noise import weighted_rounds
from wpinq.core.noise.selection import selection

SETS = ("BMS-WebView-1", "retail", "facebook", "wiki-vote")
DELTA = Fraction(1, 10**6)
CASES = [(2_000, 50, 5_000, 1), (2_000, 50, 5_000, 3), (20_000, 50, 50_000, 1), (20_000, 50, 50_000, 3),
         (20_000, 10, 50_000, 1), (20_000, 10, 50_000, 3)]  # fmt: skip


def drawn(people: int, own: int, items: int) -> pl.DataFrame:
    """One row for each person and item."""
    rng = np.random.default_rng(1)
    heavy = -0.8 * np.log(np.arange(1, items + 1))
    chosen = [np.argpartition(-(heavy + rng.gumbel(size=items)), own)[:own] for _ in range(people)]
    return pl.DataFrame({"user": np.repeat(np.arange(people), own), "item": np.concatenate(chosen)})


def found(frame: pl.DataFrame, own: int, epsilon: int) -> dict[str, float]:
    """How many names each way finds."""
    unit = wpinq.users("user", at_most=own, per=("item", 1))
    data = wpinq.protect(frame, budget=100, delta="1e-4", unit=unit, version="1").map("item")
    usual = selection(Fraction(epsilon), DELTA, own)
    optimal = sum(usual.places(one, 64) / 2**64 for one in frame.group_by("item").len()["len"].to_list())
    measured = data.measure(epsilon, delta=DELTA / 2, mechanism="gaussian").release(delta=DELTA / 2)
    ours, many = data.select(epsilon, DELTA).bins.height, weighted_rounds.MANY
    weighted_rounds.MANY = own + 1
    once = data.select(epsilon, DELTA, name="one round").bins.height
    weighted_rounds.MANY = many
    return {
        "optimal for one": optimal, "Gaussian release": measured.frame.height, "weighted, one round": once,
        "`select`": ours,
    }  # fmt: skip


def main(smoke: bool) -> None:
    """One row for each case."""
    print("| people | items each | epsilon | optimal for one | Gaussian release | weighted, one round | `select` |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for people, own, items, epsilon in CASES[:1] if smoke else CASES:
        frame = drawn(people // (5 if smoke else 1), own, items)
        shown = " | ".join(f"{names:.0f}" for names in found(frame, own, epsilon).values())
        print(f"| {frame['user'].n_unique():,} | {own} | {epsilon} | {shown} |", flush=True)
    if not smoke:
        real()


def real() -> None:
    """One row for each real data set and epsilon."""
    print("\n| data | people | epsilon | optimal for one | `select` |\n|---|--:|--:|--:|--:|")
    for name in SETS:
        if not (SHARED / f"{name}.parquet").exists():
            continue
        frame = pl.read_parquet(SHARED / f"{name}.parquet").select("user", "page")
        kept = frame.unique().sample(fraction=1, shuffle=True, seed=1).group_by("user").head(50)
        counts = kept.group_by("page").len()["len"].to_list()
        data = wpinq.protect(frame, budget=100, delta="1e-4", unit=wpinq.users("user", at_most=50), version="1")
        for epsilon in (1, 3):
            usual = selection(Fraction(epsilon), DELTA, 50)
            optimal = sum(usual.places(one, 64) / 2**64 for one in counts)
            both = f"{optimal:,.0f} | {data.map('page').select(epsilon, DELTA).bins.height:,}"
            print(f"| {name} | {frame['user'].n_unique():,} | {epsilon} | {both} |", flush=True)


if __name__ == "__main__":
    main(flags(__doc__).parse_args().smoke)
