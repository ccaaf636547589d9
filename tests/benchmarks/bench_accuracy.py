"""How far from the truth is each way to release a degree distribution, at the same epsilon, on many shapes?

Usage: python tests/benchmarks/bench_accuracy.py [--runs N] [--epsilon E] [--json OUT] [--smoke]

Volume between the released and the true CDF (records that must come or go), mean over runs with fresh discrete Laplace
noise. Two whole curves get half of epsilon each: `raw` (the noisy CDF), `isotonic` (Hay et al., PVLDB 2010: the noisy
sequence alone, at all of epsilon, with as many ranks more as noise might hide: told how many items there are, it errs
by 5 and not 43 on one item), `path`, `squares` and `posterior`; `best split` is the posterior at the best of four
splits of each data set, which nobody knows beforehand. `release` is one corner at all of epsilon. McSherry's published
fit of MiCo is one draw at 0.1 + 0.1: 2,117. Real data is read from `shared/data` beside the repository.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from flags import flags

from wpinq.degrees.observed import observe_corner
from wpinq.postprocess.degrees.distance import volume
from wpinq.postprocess.degrees.path import conjugate
from wpinq.postprocess.degrees.posterior.evidence import Cornered
from wpinq.postprocess.degrees.posterior.horizon import margin
from wpinq.postprocess.degrees.reconcile import nondecreasing, reconcile

SHARED = Path(__file__).parents[3] / "shared" / "data"
REAL = {
    "mico": "page", "retail": "page", "retail by user": "user", "msnbc by user": "user", "BMS-WebView-1": "page",
    "CA-GrQc": "page", "Caltech36": "page",
}  # fmt: skip
SPLITS = ("1/20", "1/4", "1/2", "3/4", "39/40")
WOMEN = [8, 8, 8, 7, 7, 6, 5, 4, 4, 4, 4, 4, 4, 4, 3, 2, 2, 2]


def shapes(smoke: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Names and true degrees, largest first."""
    for name, column in REAL.items():
        file = SHARED / f"{name.split(' by ')[0]}.parquet"
        if file.exists() and not (smoke and name != "CA-GrQc"):
            counts = pl.read_parquet(file).group_by(column).len()["len"].to_numpy()
            yield name, np.sort(counts.astype(np.int64))[::-1]
            if name == "mico":
                lumpy = counts.astype(np.int64)
                lumpy[::2] = np.maximum(5 * np.rint(lumpy[::2] / 5), 1)
                yield "mico, half in fives", np.sort(lumpy)[::-1]
    for items, longest in [] if smoke else [(10**5, 10**4), (10**6, 10**5)]:
        rng = np.random.default_rng(items)
        yield f"power law {items:,}", np.sort(np.minimum(rng.pareto(1.2, items) + 1, longest).astype(np.int64))[::-1]
    rng = np.random.default_rng(5)
    yield "power law 300", np.sort(np.minimum(rng.pareto(1.0, 300) + 1, 200).astype(np.int64))[::-1]
    yield "geometric 200", np.sort(rng.geometric(0.1, 200))[::-1]
    yield "Davis women", np.array(WOMEN)
    yield "2,000 alike", np.full(2_000, 50)
    yield "one item", np.array([1_000])
    yield "empty", np.zeros(0, np.int64)


def noise(rng: np.random.Generator, scale: float, size: int) -> np.ndarray:
    p = 1 - np.exp(-1 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


class Corner:
    """A measured corner, simulated: `bins[side]` are made once, as far as they are asked."""

    def __init__(self, truth: tuple[np.ndarray, np.ndarray], scale: Fraction, rng: np.random.Generator) -> None:
        self.scale, self._truth, self._rng = scale, truth, rng

    def observe_many(self, bins: np.ndarray) -> np.ndarray:
        curve, offset = (self._truth[0], 0) if bins[0] > 0 else (self._truth[1], 1)
        known = np.zeros(len(bins), np.int64)
        ranks = np.abs(bins)
        inside = ranks <= len(curve)
        known[inside] = np.maximum(curve[ranks[inside] - 1] - ranks[inside] + offset, 0)
        return known + noise(self._rng, float(self.scale), len(bins))


def two_curves(
    truth: tuple[np.ndarray, np.ndarray], epsilons: tuple[Fraction, Fraction], rng: np.random.Generator
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[Fraction, Fraction]]:
    """Noisy CDF and sequence, a margin beyond the truth, as `horizon` observes them."""
    scales = 1 / epsilons[0], 1 / epsilons[1]
    margins = 21 * float(scales[1]), 21 * float(scales[0])
    padded = [np.pad(curve, (0, min(int(most), 5_000) + 1)) for curve, most in zip(truth, margins, strict=True)]
    return tuple(
        curve + noise(rng, float(scale), len(curve)) for curve, scale in zip(padded, scales, strict=True)
    ), scales  # type: ignore[return-value]


def one_run(truth: tuple[np.ndarray, np.ndarray], epsilon: Fraction, rng: np.random.Generator) -> dict[str, float]:
    """The error of every way, with fresh noise for each split."""
    errors: dict[str, float] = {}

    def err(name: str, cdf: np.ndarray) -> None:
        errors[name] = volume(cdf, truth[0])

    for split in map(Fraction, SPLITS):
        (v, h), scales = two_curves(truth, (split * epsilon, (1 - split) * epsilon), rng)
        fitted = reconcile(v, h, scales=scales)
        err(f"posterior {split}", fitted.cdf)
        if split == Fraction(1, 2):
            err("raw", v)
            for method in ("path", "squares"):
                err(method, reconcile(v, h, scales=scales, method=method).cdf)
    ranks = np.pad(truth[1], (0, margin(1 / epsilon)))  # nobody knows how many items there are
    h = ranks + noise(rng, float(1 / epsilon), len(ranks))
    alone = np.maximum(np.rint(-nondecreasing(-h.astype(np.float64))), 0).astype(np.int64)
    err("isotonic", conjugate(np.append(alone, 0), int(alone.max(initial=0))))
    corner = Corner(truth, 1 / epsilon, rng)
    err("release", Cornered(observe_corner(corner), corner.scale).staircases((0.5,))[0][0])
    return errors


def measure(degrees: np.ndarray, epsilon: Fraction, runs: int) -> dict[str, float]:
    """Mean errors."""
    truth = conjugate(np.append(degrees, 0), int(degrees.max(initial=0))), degrees
    found = [one_run(truth, epsilon, np.random.default_rng(run)) for run in range(runs)]
    means = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    splits = {split: means.pop(f"posterior {Fraction(split)}") for split in SPLITS}
    best = min(splits.values())
    deviation = float(np.std([one["release"] for one in found]) / np.sqrt(runs))
    figure = {**means, "posterior": splits["1/2"], "best split": best, "release s.e.": deviation}
    others = [value for name, value in figure.items() if name not in ("release", "release s.e.")]
    return {**figure, "ratio": figure["release"] / max(min(others), 1.0)}


COLUMNS = ("raw", "isotonic", "squares", "path", "posterior", "best split", "release", "release s.e.", "ratio")


def main(show: Callable[[str], None] = print) -> None:
    parser = flags(__doc__, "small shapes, two runs")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--epsilon", type=Fraction, default=Fraction(1, 5))
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    runs = 2 if options.smoke else options.runs
    show(" | ".join(["data".ljust(20), *(column.rjust(12) for column in COLUMNS)]))
    figures = {}
    for name, degrees in shapes(options.smoke):
        few = max(runs // 6, 2) if len(degrees) > 500_000 else runs
        figures[name] = {"items": len(degrees), "records": int(degrees.sum()), "runs": few}
        figures[name] |= measure(degrees, options.epsilon, few)
        cells = (
            f"{figures[name][column]:12,.2f}" if column == "ratio" else f"{figures[name][column]:12,.0f}"
            for column in COLUMNS
        )
        show(" | ".join([name.ljust(20), *cells]))
    worst = max(figures, key=lambda name: figures[name]["ratio"])
    show(f"release / best other, worst: {figures[worst]['ratio']:.2f} ({worst})")
    if options.json:
        options.json.write_text(json.dumps({"epsilon": float(options.epsilon), "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
