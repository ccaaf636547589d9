"""Degree distributions of a hierarchy: how far each level is from the truth, beside fits of each node by itself.

Usage: python tests/benchmarks/bench_hierarchy.py [--leaves N] [--smoke]

The items of MiCo (`shared/data` beside the repository, or made-up ones) are dealt to leaves of very different sizes, of
50 nodes above them. `degrees.release(by=...)` divides epsilon 1 among three levels. Errors are sums over all nodes of a
level of the distance between true and fitted degrees, in records. Beside them: the root released by itself at the same
share, all leaves added up, and for each node an isotonic regression of its noisy CDF (level by level, as is usual).
"""

from __future__ import annotations

import time
import warnings
from fractions import Fraction

import numpy as np
import polars as pl
from bench_accuracy import SHARED
from flags import flags
from scipy.optimize import isotonic_regression

import wpinq

SHARE = Fraction(1, 3)
BEYOND = 50
"""Scales of the noise that the isotonic regression is told columns beyond the largest degree."""


def dealt(smoke: bool, leaves: int) -> pl.DataFrame:
    """One row a view: the node, the leaf and the item that is viewed."""
    rng = np.random.default_rng(5)
    if smoke or not (SHARED / "mico.parquet").exists():
        items = rng.zipf(1.7, 3_000) % 500
    else:
        items = pl.read_parquet(SHARED / "mico.parquet")["page"].rank("dense").to_numpy().astype(np.int64)
    shares = rng.pareto(1.0, leaves) + 0.05
    leaf = rng.choice(leaves, size=int(items.max()) + 1, p=shares / shares.sum())[items]
    return pl.DataFrame({"node": leaf % 50, "leaf": leaf, "item": items})


def degrees(views: pl.DataFrame) -> np.ndarray:
    """True degrees, largest first."""
    return np.sort(views.group_by("item").len()["len"].to_numpy().astype(np.int64))[::-1]


def apart(true: np.ndarray, found: np.ndarray) -> float:
    """The sum of distances, item by item."""
    size = max(len(true), len(found))
    return float(np.abs(np.pad(true, (0, size - len(true))) - np.pad(found, (0, size - len(found)))).sum())


def isotonic(true: np.ndarray, rng: np.random.Generator) -> float:
    """The error of the nearest decreasing curve to a noisy CDF, at the same share."""
    columns = int(true[:1].sum()) + int(BEYOND / SHARE)
    cdf = np.array([np.sum(true >= k) for k in range(1, columns + 1)], np.float64)
    chance = 1 - np.exp(-float(SHARE))
    noisy = cdf + rng.geometric(chance, columns) - rng.geometric(chance, columns)
    fitted = np.maximum(np.rint(isotonic_regression(noisy, increasing=False).x), 0)
    return float(np.abs(fitted - cdf).sum())


def main(leaves: int, smoke: bool) -> None:
    """One line for each level."""
    frame = dealt(smoke, leaves)
    nodes = frame.select("node", "leaf").unique().sort("node", "leaf")
    views = wpinq.protect(frame, budget=2, version="1")
    start = time.perf_counter()
    found = wpinq.degrees.release(views, 1, by=("node", "leaf"), nodes=nodes)
    took = time.perf_counter() - start
    rng = np.random.default_rng(6)
    print(f"{len(found):,} nodes in {took:.1f} s\n\nlevel   nodes    by=  isotonic   ratio")
    for depth, columns in enumerate([[], ["node"], ["node", "leaf"]]):
        own = frame.partition_by(columns, as_dict=True) if columns else {(): frame}
        true = {key: degrees(part) for key, part in own.items()}
        errors = sum(apart(true[key], found[key].sequence) for key in true)
        usual = sum(isotonic(one, rng) for one in true.values())
        print(f"{depth:5} {len(true):7,} {errors:6,.0f} {usual:9,.0f} {errors / usual:7.2f}")
    alone = wpinq.degrees.release(views.map(pl.col("item")), SHARE)
    added = np.sort(np.concatenate([found[key].sequence for key in found if len(key) == 2]))[::-1]
    whole = degrees(frame)
    print(f"\nthe root alone {apart(whole, alone.sequence):,.0f}; all leaves added up {apart(whole, added):,.0f}")


if __name__ == "__main__":
    parser = flags(__doc__)
    parser.add_argument("--leaves", type=int, default=600)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    main(60 if given.smoke else given.leaves, given.smoke)
